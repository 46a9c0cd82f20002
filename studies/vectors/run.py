"""Choose settings on held-out data, then score every system on test data: encoder.json."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from studies import measure
from studies.measure import ROOT, Failures, Job, Processes, Row, Say, load, run_missing
from studies.vectors import report
from studies.vectors.systems import FROZEN, TASKS

SEEDS = 3
RESULTS = ROOT / "experiments" / "results"
PEERS = {
    "softmax": "studies.vectors.systems:softmax",
    "CRFsuite": "studies.vectors.peers:crfsuite",
    "spaCy": "studies.vectors.peers:spacy",
}
"""Systems that are no models of laso, and the functions that measure them."""
NEEDS = {"CRFsuite": "pycrfsuite", "spaCy": "spacy"}
VERSIONS = ("laso", "numpy", "numba", "torch", "tokenizers", "safetensors")


def run(
    say: Say,
    *,
    results: Path = RESULTS,
    tasks: Sequence[str] = (),
    rows: Sequence[str] = (),
    seeds: Sequence[int] = (),
    again: bool = False,
) -> tuple[list[Path], Failures]:
    """Run what is missing, and write the report; return its files, and what failed."""
    failures = Failures(say)
    with tempfile.TemporaryDirectory(prefix="laso-vectors-") as work:
        processes = Processes(Path(work))
        run_missing(
            results / "encoder-chosen.json",
            _choices(processes, results, tasks or [*TASKS], rows),
            lambda row: say("{task}, {row}: chose {settings}".format(**row)),
            failures=failures,
        )
        run_missing(
            results / "encoder.json",
            _scores(processes, results, tasks or [*TASKS], rows, seeds),
            lambda row: say("{task}, {row}, seed {seed}: {score:.2f}".format(**row)),
            again=again,
            order=_place,
            failures=failures,
        )
    return report.write(results / "encoder.json"), failures


def _wanted(tasks: Sequence[str], rows: Sequence[str]) -> Iterator[tuple[str, str]]:
    for task in tasks:
        for row, system in TASKS[task].systems.items():
            if row in (rows or (row,)) and (not system.tuned or find_spec("torch")):
                yield task, row


def _choices(
    processes: Processes, results: Path, tasks: Sequence[str], rows: Sequence[str]
) -> Iterator[Job]:
    for task, row in _wanted(tasks, rows):
        job: Row = {"task": task, "row": row}
        system = TASKS[task].systems[row]
        frozen = _chosen(results, task, FROZEN) if system.tuned else {}
        rest = {name: value for name, value in frozen.items() if name != "epochs"}
        yield job, partial(processes.run, "studies.vectors.systems:choose", {**job, "frozen": rest})


def _chosen(results: Path, task: str, row: str) -> Row:
    """Return the settings that were chosen for a system."""
    found: list[Any] = load(results / "encoder-chosen.json") or []
    return next(
        (each["settings"] for each in found if (each["task"], each["row"]) == (task, row)), {}
    )


def _scores(
    processes: Processes,
    results: Path,
    tasks: Sequence[str],
    rows: Sequence[str],
    seeds: Sequence[int],
) -> Iterator[Job]:
    for task, row in _wanted(tasks, rows):
        for seed in seeds or range(TASKS[task].systems[row].seeds):
            job: Row = {"task": task, "row": row, "seed": seed}
            settings = _chosen(results, task, row)
            if settings:
                call = "studies.vectors.systems:measure"
                yield job, partial(_measured, processes, call, {**job, "settings": settings})
    for task in tasks:
        for name, call in PEERS.items():
            if name in (rows or PEERS) and _is_possible(task, name):
                for seed in seeds or range(SEEDS):
                    job = {"task": task, "row": name, "seed": seed}
                    yield job, partial(_measured, processes, call, job)


def _is_possible(task: str, peer: str) -> bool:
    """Return whether a peer can be measured on a task: those of chunks are too slow for more."""
    if peer == "softmax":
        return TASKS[task].measure != "LAS"
    return task == "chunks" and find_spec(NEEDS[peer]) is not None


def _measured(processes: Processes, call: str, job: Row) -> Row:
    measured = processes.run(call, job)
    return {**measured, "versions": measure.versions(VERSIONS), "machine": measure.machine()}


def _place(row: Row) -> tuple[int, int, int]:
    """Return the place of a row in the file."""
    names = [*TASKS[row["task"]].systems, *PEERS]
    place = names.index(row["row"]) if row["row"] in names else len(names)
    return [*TASKS].index(row["task"]), place, row["seed"]
