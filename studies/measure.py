"""Helpers of all studies: fresh processes, results in JSON, versions, choosing settings, tables."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeAlias

import laso
from laso.files.atomic import write_text
from laso.locks import own_lock

Row: TypeAlias = dict[str, Any]
Settings: TypeAlias = dict[str, Any]
Grid: TypeAlias = Mapping[str, list[Any]]
Say: TypeAlias = Callable[[str], object]

ROOT = Path(__file__).parents[1]
EXCLUDED = ("cli", "examples")  # folders of laso that do not affect measurements
WORKER = "studies.worker"


class JobFailed(Exception):
    """A measurement failed; the message is the output of its process."""


class Stopped(Exception):
    """A measurement was stopped, or did not start, because the run was stopped."""


class Failures(list[str]):
    """The names of the jobs that failed."""

    def __init__(self, say: Say) -> None:
        super().__init__()
        self._say = say

    @contextmanager
    def collect(self, what: str) -> Iterator[None]:
        """Record a job that fails and report its error, so that the others still run."""
        try:
            yield
        except JobFailed as error:
            self.append(what)
            self._say(f"{what} FAILED: {error}")


class Processes:
    """Runs each job in a process of its own; ``run`` may be called from several threads.

    Jobs and results are JSON files, since a measured program may write to standard output. The
    processes do not receive Ctrl-C, which would end training early and keep the model.
    """

    def __init__(self, work: Path, **environment: str) -> None:
        self._work = work
        self._environment = {**os.environ, **environment}
        self._running: set[subprocess.Popen[str]] = set()
        self._stopped = False
        self._lock = own_lock()

    def run(self, call: str, job: Row) -> Row:
        """Return what a function, named as ``module:function``, returns for a job."""
        with tempfile.TemporaryDirectory(dir=self._work) as folder:
            job_file, result_file = Path(folder, "job.json"), Path(folder, "result.json")
            job_file.write_text(json.dumps({**job, "call": call}, default=str), encoding="utf-8")
            process = self._start([sys.executable, "-m", WORKER, str(job_file), str(result_file)])
            try:
                _, errors = process.communicate()
            finally:
                process.kill()  # no effect unless an interruption came first
                process.wait()
                with self._lock:
                    self._running.discard(process)
            if self._stopped:
                raise Stopped
            if process.returncode or not result_file.exists():
                raise JobFailed(errors.strip() or f"exit code {process.returncode}")
            result: Row = json.loads(result_file.read_text(encoding="utf-8"))
            return result

    def _start(self, command: list[str]) -> subprocess.Popen[str]:
        with self._lock:
            if self._stopped:
                raise Stopped
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=self._environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self._running.add(process)
            return process

    def stop(self) -> None:
        """Stop the running processes and start no more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.kill()


def load(path: Path) -> Any:
    """Return the content of a JSON file, or None if there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def save(path: Path, value: Any, *, by_line: bool = False) -> None:
    """Write a JSON file atomically: an interruption leaves the old file or the new one.

    With ``by_line``, the value is a list of rows, each on a line of its own.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False)
    if by_line:
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in value)
        text = f"[\n{lines}\n]"
    write(path, text + "\n")


def write(path: Path, text: str) -> Path:
    """Write a text file atomically, in a folder that is made if there is none; return the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text)
    return path


Job: TypeAlias = tuple[Row, Callable[[], Row]]
"""The fields that identify a row, and the function that measures the others."""


def run_missing(
    path: Path,
    jobs: Iterable[Job],
    tell: Callable[[Row], object],
    *,
    again: bool = False,
    by_line: bool = False,
    replaced: Sequence[str] = (),
    order: Callable[[Row], Any] | None = None,
    failures: Failures | None = None,
) -> list[Row]:
    """Run the jobs that have no row in a JSON file, or ``again`` all of them; return all rows.

    Each row is saved as soon as it is there, so that an interrupted run can be continued, and
    passed to ``tell``. It replaces rows with the same fields ``replaced``, by default all that
    identify it. Rows are sorted by the key ``order``; without one, new rows are the last.
    ``failures`` collects the jobs that fail; without it, a failure ends the run.
    """
    rows: list[Row] = load(path) or []
    for key, measured in jobs:
        if not again and any(key.items() <= row.items() for row in rows):
            continue
        same = {name: key[name] for name in replaced or key}
        with nullcontext() if failures is None else failures.collect(format_settings(same)):
            row = {**key, **measured()}
            rows = [*(other for other in rows if not same.items() <= other.items()), row]
            rows = rows if order is None else sorted(rows, key=order)
            save(path, rows, by_line=by_line)
            tell(row)
    return rows


def versions(packages: Iterable[str], excluded: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the versions of Python and of packages; laso's with a hash of its measured code."""
    result = {"python": platform.python_version()}
    for package in packages:
        try:
            result[package] = version(package)
        except PackageNotFoundError:
            result[package] = "not installed as a package"
    if "laso" in result:
        result["laso"] += f", source {source_hash(excluded)}"
    return result


@cache
def source_hash(excluded: tuple[str, ...] = ()) -> str:
    """Return a short hash of laso's code, so that results of different code can be told apart."""
    digest = hashlib.sha256()
    folder = Path(laso.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder)
        if name.parts[0] not in EXCLUDED and not name.as_posix().startswith(excluded):
            digest.update(f"{name}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def machine() -> dict[str, Any]:
    """Return the kind of machine, without anything that identifies it."""
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
    """Return the peak memory of this process, in MB (a million bytes).

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


def coordinate_search(start: Settings, grid: Grid, score: Callable[[Settings], float]) -> Settings:
    """Choose settings one by one: each takes the value of the grid with the best score.

    The settings not yet chosen keep their start values; of equally good values the first wins.
    """
    best = dict(start)
    for name, values in grid.items():
        scores = [score(best | {name: value}) for value in values]
        best[name] = values[scores.index(max(scores))]
    return best


class Trials:
    """Scores settings on held-out data; trials that are in ``done`` are not repeated.

    ``measured`` returns the fields of a trial, with its score as ``f``; ``keep`` saves all trials.
    """

    def __init__(
        self, done: list[Row], measured: Callable[[Settings], Row], keep: Callable[[Row], object]
    ) -> None:
        self._done, self._measured, self._keep = done, measured, keep

    def __call__(self, settings: Settings) -> float:
        """Return the score of settings."""
        return float(self.trial(settings)["f"])

    def trial(self, settings: Settings) -> Row:
        """Return the trial of settings, from those that are done if possible."""
        for trial in self._done:
            if trial["settings"] == settings:
                return trial
        self._done.append({"settings": settings, **self._measured(settings)})
        self._keep(self._done[-1])
        return self._done[-1]


def format_settings(settings: Settings) -> str:
    """Return the settings as one line of text."""
    return ", ".join(f"{name} {value}" for name, value in settings.items())


def resource_names(resources: Iterable[str]) -> str:
    """Return the names of the resources as text."""
    return ", ".join(resources) or "no resources"


def table(head: list[str], lines: Iterable[list[str]], *, left: int = 2) -> str:
    """Return a Markdown table; all columns but the first ``left`` are right-aligned."""
    marks = ["---" if i < left else "---:" for i in range(len(head))]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in [head, marks, *lines])
    return "\n".join("| " + " | ".join(line) + " |" for line in cells)


def format_table(rows: Iterable[Row], columns: Mapping[str, str], *, left: int = 2) -> str:
    """Return a Markdown table of rows; each head has a format string such as ``{f:.2f}``."""
    lines = ([form.format(**row) for form in columns.values()] for row in rows)
    return table([*columns], lines, left=left)


def fastest(
    call: Callable[[], object], rounds: int = 3, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the seconds of the fastest of some calls."""
    times = []
    for _ in range(rounds):
        began = clock()
        call()
        times.append(clock() - began)
    return min(times)


def timed_predict(model: Any, path: Path) -> tuple[Any, float]:
    """Return a model's predictions for a file, and the seconds from reading to the last label."""
    began = time.perf_counter()
    predicted = model.predict(path)
    return predicted, time.perf_counter() - began
