"""Run measurements, each in a process of its own, and save their results as JSON."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.corpus import Files, warmup_file
from benchmarks.systems import Settings, System
from laso.experiments import measure
from laso.experiments.measure import JobFailed, Row

ROOT = Path(__file__).parent.parent
Say = Callable[[str], None]
# Files of laso that a tagger does not use.
OTHER_TASKS = (
    "estimators/chunker.py",
    "features/lists.py",
    "features/schemes.py",
    "tasks/chunking/encoder.py",
    "tasks/chunking/feature_sets.py",
    "tasks/chunking/problem.py",
    "tasks/chunking/task.py",
    "tasks/clustering/problem.py",
    "tasks/parsing/arc_eager.py",
    "tasks/parsing/arc_hybrid.py",
    "tasks/parsing/arc_standard.py",
    "tasks/parsing/configuration.py",
    "tasks/parsing/encoder.py",
    "tasks/parsing/names.py",
    "tasks/parsing/operators.py",
    "tasks/parsing/systems.py",
    "tasks/parsing/task.py",
    "tasks/parsing/templates.py",
    "tasks/parsing/trees.py",
)


@dataclass(frozen=True)
class Bench:
    """The folders for temporary files and results, the progress callback, and options."""

    work: Path
    results: Path
    say: Say
    quick: bool = False
    again: bool = False
    configs: tuple[str, ...] = ()  # none: all
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def collect_failure(self, what: str) -> Iterator[None]:
        """Record a measurement that fails, so that the others still run."""
        try:
            yield
        except JobFailed as error:
            self.failures.append(what)
            self.say(f"{what} FAILED: {error}")

    def chosen(self, system: System) -> list[str]:
        """Return the configurations of a system to measure; report those that cannot be."""
        configs = [name for name in system.defaults if name in self.configs or not self.configs]
        for name in configs:
            if system.missing(name):
                self.say(f"{system.name} {name}: skipped, {system.missing(name)}")
        return [name for name in configs if not system.missing(name)]

    @property
    def cache(self) -> Path | None:
        """The cache of compiled code for these measurements; None if ``quick``: the user's own."""
        return None if self.quick else self.work / "cache"

    @property
    def model(self) -> Path:
        """The path of the model that was trained last."""
        return self.work / "model.bin"

    def job(self, system: System, what: str, **details: Any) -> Row:
        """Run one job in a fresh process and return its result."""
        job = {"job": what, "system": system.name, "started": time.time(), **details}
        environment = {} if self.cache is None else {"LASO_CACHE": str(self.cache)}
        processes = measure.Processes(self.work, environment=environment, cwd=ROOT)
        try:
            return processes.run("benchmarks.worker", job)
        except JobFailed as error:
            raise JobFailed(f"{system.name} {what}: {error}") from error

    def measure(
        self, system: System, settings: Settings, files: Files, *, growth: bool = False
    ) -> Row:
        """Train in one process and decode in another.

        For ``growth``, labels need not be chunk tags, and the time to load code is not counted.
        """
        self.model.unlink(missing_ok=True)
        warm = warmup_file(files.train, self.work) if growth else ""
        given = {"settings": settings, "model": self.model}
        started = time.perf_counter()
        result = self.job(system, "train", train=files.train, warm=warm, **given)
        result["process_s"] = time.perf_counter() - started
        result |= self.job(system, "decode", test=files.test, chunks=not growth, **given)
        return result


def medians(runs: list[Row], names: Iterable[str]) -> Row:
    """Return the median of each measure over the runs; None if it was not measured."""
    result: Row = {}
    for name in names:
        values = [run[name] for run in runs if run.get(name) is not None]
        result[name] = statistics.median(values) if values else None
    return result


def versions(system: System) -> dict[str, str]:
    """Return the versions of Python and of a system's packages."""
    return measure.versions(system.packages, OTHER_TASKS)
