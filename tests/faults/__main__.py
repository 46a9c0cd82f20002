"""The campaign: faults at every call, kills, forks, and all at once for a while; writes figures.

    python -m tests.faults [--kills N] [--forks N] [--soak SECONDS] [--results FOLDER]

It ends with 1 if anything was lost, hung or failed. ``tools/figures.py`` puts its report into the
documents.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

from laso.files.atomic import write_text
from tests.faults import forks, kills, soak
from tests.faults.operations import OPERATIONS, survive

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def injected() -> dict[str, dict[str, int]]:
    """Lets every call of every operation fail; returns the number of faults of each kind."""
    found: dict[str, dict[str, int]] = {}
    for operation in OPERATIONS:
        for kind in operation.kinds:
            with tempfile.TemporaryDirectory() as folder:
                faults = survive(operation, Path(folder), kind)
                found.setdefault(operation.name, {})[kind] = faults
    return found


def is_good(figures: dict[str, Any]) -> bool:
    """Returns whether nothing was lost, hung or failed."""
    killed, forked, soaked = figures["kills"], figures["forks"], figures["soak"]
    bad = [killed["models lost"], killed["other results"], killed["left behind"]]
    bad += [forked["failed"], forked["hung"], soaked["failed"], soaked["stuck"]]
    return not any(bad)


def report(figures: dict[str, Any]) -> str:
    """Returns the figures as the part of a document."""
    killed, forked, soaked = figures["kills"], figures["forks"], figures["soak"]
    rows = [
        (name, str(kinds.get("files", "")), str(kinds.get("memory", "")))
        for name, kinds in figures["faults"].items()
    ]
    all_faults = sum(sum(kinds.values()) for kinds in figures["faults"].values())
    checks = sum(soaked.get(name, 0) for name in ("predictions", "files", "pickles", "forks"))
    lines = [
        "# Faults",
        "",
        f"The campaign made {all_faults} calls fail, one at a time: each call of these operations "
        "that opens, writes, syncs or renames a file or makes a folder, and each that allocates an "
        "array. After each fault the old file was intact and could be loaded, the error named the "
        "file, no temporary file was left, and the operation succeeded when it was repeated.",
        "",
        "| operation | failed calls about files | failed allocations |",
        "|---|---:|---:|",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
        "| trial | number | failed |",
        "|---|---:|---:|",
        f"| trainings killed at a random moment; lost models | {killed['kills']} | "
        f"{killed['models lost']} |",
        f"| killed trainings resumed to the end; files that differ from an undisturbed run | "
        f"{killed['runs']} | {killed['other results']} |",
        f"| forks while four threads load code and predict; children that hung or failed | "
        f"{forked['forks']} | {forked['failed'] + forked['hung']} |",
        f"| checks while five threads and forks predicted, learned, saved and pickled for "
        f"{soaked['seconds']:.0f} s, with {soaked['trainings']} trainings; failed or stuck | "
        f"{checks} | {soaked['failed'] + soaked['stuck']} |",
        "",
        f"Measured with Python {figures['python']} on {figures['system']}.",
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    """Runs the campaign; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults")
    parser.add_argument("--kills", type=int, default=70)
    parser.add_argument("--forks", type=int, default=200)
    parser.add_argument("--soak", type=float, default=300.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    figures = {
        "python": platform.python_version(),
        "system": platform.system(),
        "faults": injected(),
        "forks": forks.run(given.forks, 60.0),
        "soak": soak.run(given.soak),
        "kills": kills.run(given.kills, given.seed),
    }
    write_text(given.results / "faults.json", json.dumps(figures, indent=1) + "\n")
    write_text(given.results / "faults.md", report(figures))
    return not is_good(figures)


if __name__ == "__main__":
    sys.exit(main())
