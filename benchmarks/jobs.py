"""Start measurements, each in a process of its own, and keep their results in JSON."""

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
# Of laso, what a tagger does not use.
OTHER_TASKS = (
    "estimators/chunker.py",
    "features/lists.py",
    "features/schemes.py",
    "features/segments.py",
    "tasks/chunking.py",
    "tasks/clustering.py",
    "tasks/parsing.py",
)


@dataclass(frozen=True)
class Bench:
    """Where to work, where compiled code is kept, where results go, and whom to tell."""

    work: Path
    results: Path
    say: Say
    quick: bool = False
    again: bool = False
    configs: tuple[str, ...] = ()  # none: all
    failures: list[str] = field(default_factory=list)

    @contextmanager
    def going_on(self, what: str) -> Iterator[None]:
        """Tell of a measurement that fails, and go on with the next one."""
        try:
            yield
        except JobFailed as error:
            self.failures.append(what)
            self.say(f"{what} FAILED: {error}")

    def chosen(self, system: System) -> list[str]:
        """The configurations of a system to measure; those that cannot be are told."""
        wanted = [name for name in system.defaults if name in self.configs or not self.configs]
        for name in wanted:
            if system.missing(name):
                self.say(f"{system.name} {name}: skipped, {system.missing(name)}")
        return [name for name in wanted if not system.missing(name)]

    @property
    def cache(self) -> Path | None:
        """A cache of compiled code for these measurements; None: the user's own, if ``quick``."""
        return None if self.quick else self.work / "cache"

    @property
    def model(self) -> Path:
        """The model that was trained last."""
        return self.work / "model.bin"

    def job(self, system: System, what: str, **details: Any) -> Row:
        """The result of one job in a fresh process."""
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

        For ``growth`` the labels may be other than chunk tags, and loading code is not counted.
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
    """The median of each measure over the runs, None where it was not measured."""
    result: Row = {}
    for name in names:
        values = [run[name] for run in runs if run.get(name) is not None]
        result[name] = statistics.median(values) if values else None
    return result


def versions(system: System) -> dict[str, str]:
    """Versions of Python and of the packages that a system consists of."""
    return measure.versions(system.packages, OTHER_TASKS)
