"""All systems and configurations on the test data: results/peers.json."""

from __future__ import annotations

import shutil
from typing import Any

from benchmarks.corpus import Files, warmup_file
from benchmarks.jobs import Bench, medians, versions
from benchmarks.systems import System, all_systems
from laso.experiments.measure import Row, load, machine, save

MEASURES = (
    "read_s",
    "features_s",
    "train_s",
    "decode_s",
    "tokens_per_s",
    "peak_mb",
    "model_bytes",
    "f",
    "accuracy",
    "import_s",
    "process_s",
    "cpu_s",
    "load_s",
    "first_call_s",
    "later_process_s",
)


def run(bench: Bench, systems: list[System], files: Files, *, runs: int, corpus: str) -> list[Row]:
    """Measure what has not been measured so often yet, and keep each run as soon as it is done."""
    path = bench.results / "peers.json"
    rows: list[Row] = load(path) or []
    chosen = load(bench.results / "chosen.json") or {}
    for system in systems:
        for config in bench.chosen(system):
            label = f"{system.name} {config}"
            choice = chosen.get(f"{system.name}/{config}", {}).get("settings")
            facts: Row = {
                "system": system.name,
                "config": config,
                "corpus": f"{corpus}, a slice" if bench.quick else corpus,
                "settings": choice or system.defaults[config],
                "chosen_on_held_out": bool(choice),
                "versions": versions(system),
                "machine": machine(),
            }
            done = [] if bench.again else _runs_of(rows, facts)
            with bench.going_on(label):
                for n in range(len(done), runs):
                    bench.say(f"{label}: run {n + 1} of {runs}")
                    done = [*done, one_run(bench, system, facts["settings"], files)]
                    row = facts | medians(done, MEASURES) | {"runs": done}
                    rows = [*(old for old in rows if _name(old) != _name(row)), row]
                    rows.sort(key=_place)
                    save(path, rows)
                    bench.say(f"{label}: {summary(done[-1])}")
                bench.say(f"{label}: done")
    return rows


def one_run(bench: Bench, system: System, settings: dict[str, Any], files: Files) -> Row:
    """One measurement; for ours also the first call in an empty cache, and a later process."""
    if system.name != "laso":
        return bench.measure(system, settings, files)
    given = {"settings": settings, "train": warmup_file(files.train, bench.work)}
    times: Row = {"first_call_s": None}
    if bench.cache is not None:
        # The cache that the first call fills is then the warm one for all that follows.
        shutil.rmtree(bench.cache, ignore_errors=True)
        first = bench.job(system, "start", first=True, model=bench.work / "start.bin", **given)
        times["first_call_s"] = first["seconds"]
    result = bench.measure(system, settings, files)
    later = bench.job(system, "start", first=False, model=bench.model, **given)
    return result | times | {"later_process_s": later["seconds"]}


def summary(row: Row) -> str:
    """One line on one run."""
    return (
        f"F {row['f']:.2f}, read {row['read_s']:.2f} s, features {row['features_s']:.2f} s, "
        f"train {row['train_s']:.2f} s, {row['tokens_per_s']:,.0f} tokens/s, "
        f"{row['peak_mb']:.0f} MB, model {row['model_bytes']:,} bytes"
    )


def _place(row: Row) -> int:
    """Where a row stands in the table; what is no more measured comes first."""
    names = [(s.name, config) for s in all_systems().values() for config in s.defaults]
    return names.index(_name(row)) if _name(row) in names else -1


def _name(row: Row) -> tuple[str, str]:
    return row["system"], row["config"]


def _runs_of(rows: list[Row], facts: Row) -> list[Row]:
    """The runs measured before under the very same circumstances."""
    for row in rows:
        if all(row.get(name) == value for name, value in facts.items()):
            return list(row["runs"])
    return []
