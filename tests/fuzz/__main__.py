"""Attack the readers with mutated files: ``python -m tests.fuzz --seconds 60``.

Mutants are made of the corpus beside this file, and of those mutants that reach lines of the
library that no earlier one has reached. They run in child processes with bounded memory, one batch
in each; a crash, or more than five seconds of CPU time for one file, ends only that child. Files
that give any other answer than a result or a LasoError are kept in ``--keep``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from tests.fuzz.targets import TARGETS, Target, outcome, without_compiler

BATCH = 50  # mutants in one child process
SECONDS = 5.0  # of CPU time for one mutant
MEMORY = 3 << 30  # bytes that a child may take beside what it begins with
GOOD = ("ok", "error", "compile")  # a result, a LasoError, a result that a compiler must make first
KINDS = (*GOOD, "crash", "hang", "memory", "foreign", "lost")
SOURCES = f"{os.sep}laso{os.sep}"


@dataclass
class Campaign:
    """What has been tried of one target, and what came of it."""

    target: Target
    pool: list[bytes]
    seeds: int  # how many of the pool are from the corpus
    counts: Counter[str] = field(default_factory=Counter)
    lines: set[tuple[str, int]] = field(default_factory=set)
    findings: list[str] = field(default_factory=list)


def traced(lines: set[tuple[str, int]]) -> Any:
    """Return a trace function that collects the lines of the library's own sources."""

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        name = frame.f_code.co_filename
        if SOURCES not in name or f"{os.sep}engine{os.sep}" in name:
            return None
        lines.add((name, frame.f_lineno))
        return trace

    return trace


def child(campaign: Campaign, numbers: range, seed: int, folder: Path, out: int) -> None:
    """Run mutants; write a line before and after each: its number, outcome and new lines."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    without_compiler()
    known = set(campaign.lines)
    for i in numbers:
        draw = Random(f"{seed}/{campaign.target.name}/{i}")
        pool = campaign.pool if draw.random() < 0.5 else campaign.pool[: campaign.seeds]
        data = campaign.target.mutant(draw.choice(pool), draw)
        (folder / "mutant").write_bytes(data)
        os.write(out, json.dumps([i]).encode() + b"\n")
        seen: set[tuple[str, int]] = set()
        sys.settrace(traced(seen))
        try:
            kind, text = outcome(campaign.target, data, folder)
        finally:
            sys.settrace(None)
        new = sorted(seen - known)
        known |= seen
        if new:
            (folder / f"new-{i}").write_bytes(data)
        os.write(out, json.dumps([i, kind, text, new]).encode() + b"\n")


def batch(campaign: Campaign, numbers: range, seed: int, keep: Path) -> int:
    """Run a batch in a child process; return the number of the first mutant not tried."""
    with tempfile.TemporaryDirectory(prefix="laso-fuzz-") as name:
        folder = Path(name)
        to_read, to_write = os.pipe()
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                os.close(to_read)
                child(campaign, numbers, seed, folder, to_write)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(to_write)
        running, hung = watched(campaign, pid, to_read, folder, keep)
        _, status = os.waitpid(pid, 0)
        if running is None and status == 0:
            return numbers.stop
        number = numbers.start if running is None else running
        kind = "hang" if hung else "crash"
        record(campaign, kind, f"mutant {number}: status {status}", folder / "mutant", keep)
        return number + 1


def watched(
    campaign: Campaign, pid: int, pipe: int, folder: Path, keep: Path
) -> tuple[int | None, bool]:
    """Read what a child reports; return the mutant that it ended in, and whether it hung."""
    running, rest, begun = None, b"", 0.0
    with os.fdopen(pipe, "rb", buffering=0) as lines:
        while True:
            ready, _, _ = select.select([lines], [], [], 0.5)
            if not ready:
                if running is not None and cpu_time(pid) - begun > SECONDS:
                    os.kill(pid, signal.SIGKILL)
                    return running, True
                continue
            part = os.read(lines.fileno(), 1 << 16)
            if not part:
                return running, False
            *whole, rest = (rest + part).split(b"\n")
            for line in whole:
                report = json.loads(line)
                if len(report) == 1:
                    running, begun = report[0], cpu_time(pid)
                    continue
                i, kind, text, new = report
                running = None
                campaign.lines |= {(name, number) for name, number in new}
                if new and kind in GOOD:
                    campaign.pool.append((folder / f"new-{i}").read_bytes())
                source = folder / (f"new-{i}" if new else "mutant")
                record(campaign, kind, f"mutant {i}: {text}", source, keep)


def cpu_time(pid: int) -> float:
    """Return the seconds of CPU time that a process has used."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def record(campaign: Campaign, kind: str, text: str, source: Path, keep: Path) -> None:
    """Count an outcome, and keep the file of one that must not be."""
    campaign.counts[kind] += 1
    if kind in GOOD:
        return
    campaign.findings.append(f"{campaign.target.name}, {kind}, {text}")
    keep.mkdir(parents=True, exist_ok=True)
    if source.exists():
        name = f"{kind}-{campaign.counts.total()}-{campaign.target.ends[0].lstrip('.')}"
        (keep / name).write_bytes(source.read_bytes())


def report(figures: dict[str, Any]) -> str:
    """Return the figures as a table, which ``tools/figures.py`` puts into documents."""
    titles = {
        "mutants": "mutants",
        "ok": "results",
        "error": "`LasoError`",
        "compile": "needs a compiler",
        "crash": "crashes",
        "hang": f"over {SECONDS:.0f} s",
        "memory": "out of memory",
        "foreign": "other exceptions",
        "lost": "models lost",
    }
    rows = figures["targets"]
    total = {kind: sum(row[kind] for row in rows.values()) for kind in titles}
    lines = [["file", *titles.values()], ["---", *["---:"] * len(titles)]]
    for name, row in [*rows.items(), ("all", total)]:
        lines.append([name, *(f"{row[kind]:,}" for kind in titles)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return (
        f"# Fuzzing\n\n`python -m tests.fuzz --mutants {total['mutants']} --seed "
        f"{figures['seed']}` took {figures['seconds']:,} s.\n\n{table}\n"
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the command; the exit code is 1 if there are findings."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--mutants", type=int, default=1 << 60, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--targets", default=",".join(TARGETS))
    parser.add_argument("--keep", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    given = parser.parse_args(arguments)
    pools = [(TARGETS[name], TARGETS[name].seeds()) for name in given.targets.split(",")]
    campaigns = [Campaign(target, files, len(files)) for target, files in pools]
    with tempfile.TemporaryDirectory(prefix="laso-fuzz-") as name:
        for campaign in campaigns:  # compiled here, so that children measure the library alone
            for data in campaign.pool:
                outcome(campaign.target, data, Path(name))
    begun = time.monotonic()
    next_number = Counter[str]()
    tried = 0
    while time.monotonic() - begun < given.seconds and tried < given.mutants:
        # Half of all mutants are model files.
        others = len(campaigns) - 1
        shares = [
            (c.counts.total() * (1 if c.target.name == "model" else others), c) for c in campaigns
        ]
        campaign = min(shares, key=lambda share: share[0])[1]
        first = next_number[campaign.target.name]
        numbers = range(first, first + min(BATCH, given.mutants - tried))
        next_number[campaign.target.name] = batch(campaign, numbers, given.seed, given.keep)
        tried = sum(c.counts.total() for c in campaigns)
    figures = {
        "seconds": round(time.monotonic() - begun),
        "seed": given.seed,
        "targets": {
            c.target.name: {
                "mutants": c.counts.total(),
                **{kind: c.counts[kind] for kind in KINDS},
                "lines": len(c.lines),
            }
            for c in campaigns
        },
        "findings": [finding for c in campaigns for finding in c.findings],
    }
    text = json.dumps(figures, indent=1) + "\n"
    sys.stdout.write(text)
    if given.json is not None:
        given.json.write_text(text, encoding="utf-8")
        given.json.with_suffix(".md").write_text(report(figures), encoding="utf-8")
    return int(bool(figures["findings"]))


if __name__ == "__main__":
    sys.exit(main())
