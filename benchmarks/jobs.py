"""Start measurements, each in a process of its own, and keep their results in JSON."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import laso
from benchmarks.corpus import Files, few
from benchmarks.systems import Settings, System

ROOT = Path(__file__).parent.parent
Say = Callable[[str], None]
Row = dict[str, Any]


class JobFailed(Exception):
    """A measurement ended with an error; the message is what the process wrote."""


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
        job_file, result_file = self.work / "job.json", self.work / "result.json"
        result_file.unlink(missing_ok=True)
        job = {"job": what, "system": system.name, "started": time.time(), **details}
        job_file.write_text(json.dumps(job, default=str), encoding="utf-8")
        environment = dict(os.environ)
        if self.cache is not None:
            environment["LASO_CACHE"] = str(self.cache)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.worker", str(job_file), str(result_file)],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not result_file.exists():
            raise JobFailed(f"{system.name} {what}: {done.stderr.strip() or done.returncode}")
        result: Row = json.loads(result_file.read_text(encoding="utf-8"))
        return result

    def measure(
        self, system: System, settings: Settings, files: Files, *, growth: bool = False
    ) -> Row:
        """Train in one process and decode in another.

        For ``growth`` the labels may be other than chunk tags, and loading code is not counted.
        """
        self.model.unlink(missing_ok=True)
        warm = few(files.train, self.work) if growth else ""
        given = {"settings": settings, "model": self.model}
        started = time.perf_counter()
        result = self.job(system, "train", train=files.train, warm=warm, **given)
        result["process_s"] = time.perf_counter() - started
        result |= self.job(system, "decode", test=files.test, chunks=not growth, **given)
        return result


def load(path: Path) -> Any:
    """What the file holds, or None."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def save(path: Path, value: Any) -> None:
    """Write the file in one step, so that an interruption leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)


def medians(runs: list[Row], names: Iterable[str]) -> Row:
    """The median of each measure over the runs, None where it was not measured."""
    result: Row = {}
    for name in names:
        values = [run[name] for run in runs if run.get(name) is not None]
        result[name] = statistics.median(values) if values else None
    return result


def versions(system: System) -> dict[str, str]:
    """Versions of Python and of the packages that a system consists of."""
    found = {"python": platform.python_version()}
    for package in system.packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    if "laso" in found:
        found["laso"] += f", source {source_hash()}"
    return found


@cache
def source_hash() -> str:
    """A short hash of laso's code, so that a figure of other code is not taken for one of this."""
    digest = hashlib.sha256()
    folder = Path(laso.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        digest.update(f"{path.relative_to(folder)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def machine() -> dict[str, Any]:
    """What the machine is, without saying which one it is."""
    cpu, memory = platform.processor(), None
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    if hasattr(os, "sysconf"):
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": memory,
    }
