"""What every measurement needs: fresh processes, results in JSON, circumstances, choosing."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import laso

Row: TypeAlias = dict[str, Any]
Settings: TypeAlias = dict[str, Any]
Grid: TypeAlias = Mapping[str, list[Any]]

NO_PART = ("cli", "examples", "experiments")  # of what is measured


class JobFailed(Exception):
    """A measurement ended with an error; the message is what the process wrote."""


class Stopped(Exception):
    """A measurement was ended, or did not begin, since all was to end."""


class Processes:
    """Does jobs, each in a process of its own; several threads may ask for one at a time.

    A job and its result are JSON in files, since what is measured may write to standard output.
    Ctrl-C does not reach the processes, which could take it for the end of learning.
    """

    def __init__(
        self, work: Path, *, environment: dict[str, str] | None = None, cwd: Path | None = None
    ) -> None:
        self._work, self._cwd = work, cwd
        self._environment = {**os.environ, **(environment or {})}
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self._lock = threading.Lock()

    def run(self, module: str, job: Row) -> Row:
        """The result of ``python -m module JOB.json RESULT.json``."""
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            job_file, result_file = Path(folder, "job.json"), Path(folder, "result.json")
            job_file.write_text(json.dumps(job, default=str), encoding="utf-8")
            process = self._begun([sys.executable, "-m", module, str(job_file), str(result_file)])
            try:
                _, errors = process.communicate()
            finally:
                process.kill()  # if an interruption came first; else it has ended
                process.wait()
                with self._lock:
                    self._running.discard(process)
            if self._stopped:
                raise Stopped
            if process.returncode or not result_file.exists():
                raise JobFailed(errors.strip() or f"exit code {process.returncode}")
            result: Row = json.loads(result_file.read_text(encoding="utf-8"))
            return result

    def _begun(self, command: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                command,
                cwd=self._cwd,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def stop(self) -> None:
        """End the processes under way, and begin no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


def load(path: Path) -> Any:
    """What the file holds, or None."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def save(path: Path, value: Any) -> None:
    """Write the file in one step, so that an interruption leaves the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    new.replace(path)


def versions(packages: Iterable[str], without: tuple[str, ...] = ()) -> dict[str, str]:
    """Versions of Python and of these packages; of laso, without modules that play no part."""
    found = {"python": platform.python_version()}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed as a package"
    if "laso" in found:
        found["laso"] += f", source {source_hash(without)}"
    return found


@cache
def source_hash(without: tuple[str, ...] = ()) -> str:
    """A short hash of laso's code, so that a figure of other code is not taken for one of this."""
    digest = hashlib.sha256()
    folder = Path(laso.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] not in NO_PART and name.as_posix() not in without:
            digest.update(f"{name}\n".encode() + path.read_bytes())
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


def peak_mb() -> float:
    """The most memory that this process has had, all of it, in MB (a million bytes).

    On Linux ``ru_maxrss`` also counts the process that started this one; VmHWM is the same figure
    without that.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource  # not on Windows

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def descend(start: Settings, grid: Grid, score: Callable[[Settings], float]) -> Settings:
    """Settings in which each value of the grid, taken in turn, has the best score.

    Of equally good values the first is taken.
    """
    best = dict(start)
    for name, values in grid.items():
        scores = [score(best | {name: value}) for value in values]
        best[name] = values[scores.index(max(scores))]
    return best


def described(settings: Settings) -> str:
    """The settings in one line."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def table(head: list[str], lines: Iterable[list[str]], *, left: int = 2) -> str:
    """A table in Markdown; all columns but the first ``left`` to the right."""
    marks = ["---" if i < left else "---:" for i in range(len(head))]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in [head, marks, *lines])
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def timed(model: Any, path: Path) -> tuple[Any, float]:
    """What a model finds in a file, and the seconds from reading it to the last label."""
    began = time.perf_counter()
    found = model.predict(path)
    return found, time.perf_counter() - began
