"""Measure all systems and configurations on the test data: results/peers.json."""

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
    """Measure each configuration ``runs`` times; earlier runs count, and each run is saved."""
    path = bench.results / "peers.json"
    rows: list[Row] = load(path) or []
    chosen = load(bench.results / "chosen.json") or {}
    for system in systems:
        for config in bench.chosen(system):
            label = f"{system.name} {config}"
            choice = chosen.get(f"{system.name}/{config}", {}).get("settings")
            conditions: Row = {
                "system": system.name,
                "config": config,
                "corpus": f"{corpus}, a slice" if bench.quick else corpus,
                "settings": choice or system.defaults[config],
                "chosen_on_held_out": bool(choice),
                "versions": versions(system),
                "machine": machine(),
            }
            done = [] if bench.again else _runs_of(rows, conditions)
            with bench.collect_failure(label):
                for n in range(len(done), runs):
                    bench.say(f"{label}: run {n + 1} of {runs}")
                    done = [*done, one_run(bench, system, conditions["settings"], files)]
                    row = conditions | medians(done, MEASURES) | {"runs": done}
                    rows = [*(old for old in rows if _name(old) != _name(row)), row]
                    rows.sort(key=_place)
                    save(path, rows)
                    bench.say(f"{label}: {summary(done[-1])}")
                bench.say(f"{label}: done")
    return rows


def one_run(bench: Bench, system: System, settings: dict[str, Any], files: Files) -> Row:
    """Measure once; laso also with an empty cache, and in a later process."""
    if system.name != "laso":
        return bench.measure(system, settings, files)
    given = {"settings": settings, "train": warmup_file(files.train, bench.work)}
    times: Row = {"first_call_s": None}
    if bench.cache is not None:
        # The first call fills the cache that all later processes use.
        shutil.rmtree(bench.cache, ignore_errors=True)
        first = bench.job(system, "start", first=True, model=bench.work / "start.bin", **given)
        times["first_call_s"] = first["seconds"]
    result = bench.measure(system, settings, files)
    later = bench.job(system, "start", first=False, model=bench.model, **given)
    return result | times | {"later_process_s": later["seconds"]}


def summary(row: Row) -> str:
    """Return one line about a run."""
    return (
        f"F {row['f']:.2f}, read {row['read_s']:.2f} s, features {row['features_s']:.2f} s, "
        f"train {row['train_s']:.2f} s, {row['tokens_per_s']:,.0f} tokens/s, "
        f"{row['peak_mb']:.0f} MB, model {row['model_bytes']:,} bytes"
    )


def _place(row: Row) -> int:
    """Return the position of a row in the table; rows no longer measured come first."""
    names = [(s.name, config) for s in all_systems().values() for config in s.defaults]
    return names.index(_name(row)) if _name(row) in names else -1


def _name(row: Row) -> tuple[str, str]:
    return row["system"], row["config"]


def _runs_of(rows: list[Row], conditions: Row) -> list[Row]:
    """Return the earlier runs under the same conditions."""
    for row in rows:
        if all(row.get(name) == value for name, value in conditions.items()):
            return list(row["runs"])
    return []
