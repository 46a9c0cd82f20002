"""Measure every system on every dataset, each in a process of its own: linkage.json."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from studies import measure
from studies.linkage import report
from studies.linkage.data import DATASETS, package_folder, package_of
from studies.linkage.systems import SYSTEMS
from studies.measure import ROOT, Failures, Job, Processes, Row, Say, run_missing

RESULTS = ROOT / "experiments" / "results"
SEEDS = 3
VERSIONS = ("laso", "splink", "dedupe", "recordlinkage", "duckdb", "scikit-learn", "numpy")


def run(
    say: Say,
    *,
    results: Path = RESULTS,
    systems: Sequence[str] = (),
    datasets: Sequence[str] = (),
    again: bool = False,
) -> tuple[list[Path], Failures]:
    """Run what is missing, and write the report; return its files, and what failed."""
    failures, path = Failures(say), results / "linkage.json"
    with tempfile.TemporaryDirectory(prefix="laso-linkage-") as work:
        jobs = _jobs(Path(work), say, systems or [*SYSTEMS], datasets or [*DATASETS])
        tell = "{dataset}, {system}, seed {seed}: F {f:.2f}, {wall_s:.2f} s, {peak_mb:.0f} MB"
        run_missing(
            path,
            jobs,
            lambda row: say(tell.format(**row)),
            again=again,
            order=_place,
            failures=failures,
        )
    return report.write(path), failures


def _jobs(work: Path, say: Say, systems: Sequence[str], datasets: Sequence[str]) -> Iterator[Job]:
    processes = Processes(work, LASO_CACHE=str(work / "cache"))
    for name in systems:
        system = SYSTEMS[name]
        for dataset in [each for each in datasets if each in (system.datasets or datasets)]:
            if not all(
                _is_there(package, say) for package in (system.package, package_of(dataset))
            ):
                continue
            data = work / f"{dataset}.json"
            for seed in range(SEEDS if system.is_random else 1):
                key: Row = {"dataset": dataset, "system": name, "seed": seed}
                yield key, partial(_measured, processes, {**key, "data": str(data)})


def _measured(processes: Processes, job: Row) -> Row:
    if not Path(job["data"]).exists():
        processes.run("studies.linkage.systems:prepare", job)
    if job["system"] == "laso" and not (Path(job["data"]).parent / "cache").exists():
        processes.run("studies.linkage.systems:measure", job)  # compiles
    measured = processes.run("studies.linkage.systems:measure", job)
    return {**measured, "versions": measure.versions(VERSIONS), "machine": measure.machine()}


def _is_there(package: str, say: Say) -> bool:
    try:
        package_folder(package)
    except ModuleNotFoundError as error:
        say(f"skipped: {error}")
        return False
    return True


def _place(row: Row) -> tuple[int, int, int]:
    """Return the place of a row in the file."""
    return [*DATASETS].index(row["dataset"]), [*SYSTEMS].index(row["system"]), row["seed"]
