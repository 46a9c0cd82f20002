"""Run any experiment: choose settings on held-out data, run missing jobs, save their results.

A job is one row of a table with one seed, in a fresh process. Each result is saved as soon as it is
available, so that an interrupted run can be continued.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from laso.locks import own_lock
from studies import EXPERIMENTS, corpus, measure
from studies.measure import Failures, Grid, Processes, Row, Say, Settings, Trials, load, save
from studies.report import Plan

RUN_JOB = "studies.training:run_job"
PACKAGES = ("laso", "numba", "numpy")
QUICK_EPOCHS, QUICK_VALUES = 2, 2


@dataclass(frozen=True)
class Config:
    """A row of a table: fixed settings, and a grid of values to choose from on held-out data.

    Of equally good values in ``grid`` the first wins. The number of epochs is not part of the grid:
    it is the epoch with the best held-out score.
    """

    settings: Settings
    grid: Grid = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One table of the paper, as data and three functions.

    Parameters
    ----------
    plan : Plan
        The plan of the report, with the name of the experiment.
    rows : mapping of str to Config
        The rows of the table.
    estimator : callable
        Imports and returns a function that makes the estimator.
    evaluate : callable
        Returns the measures of a fitted estimator on a test file; a list of measures under
        ``parts`` becomes several results.
    write : callable
        Writes the report from results and choices, and returns the paths of its files; by default
        as planned.
    shown : mapping of str to int
        The measures to print, with their numbers of decimals.
    features : tuple of str
        The feature sets that the experiment can use.
    epochs, patience : int
        The largest number of epochs when choosing, and the number of epochs to wait for a better
        held-out score.
    scored : str
        The name of the held-out score.
    chosen_by : str
        Another experiment with the same rows, whose chosen settings are used.
    sentences : int
        If above 0, the number of training sentences, which are also the test sentences; no
        settings are chosen.
    seeds : int
        The default number of seeds.
    tests : bool
        Whether models are evaluated on test data, after settings have been chosen.
    corpora : tuple of str
        The corpora that the experiment can use; the first is the default.
    """

    plan: Plan
    rows: Mapping[str, Config]
    estimator: Callable[[], Any]
    evaluate: Callable[[Any, Path], Row]
    shown: Mapping[str, int]
    features: tuple[str, ...] = ("paper", "rich")
    epochs: int = 20
    patience: int = 4
    scored: str = "F"
    chosen_by: str = ""
    sentences: int = 0
    seeds: int = 3
    tests: bool = True
    corpora: tuple[str, ...] = ("conll2000", "bundled")
    write: Callable[[list[Row], dict[str, Row], Path], list[Path]] | None = None

    @property
    def name(self) -> str:
        """The name of the experiment."""
        return self.plan.name

    def report(self, results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
        """Write the report and return the paths of its files."""
        planned = self.plan.write if self.tests else self.plan.write_held_out
        return (self.write or planned)(results, chosen, folder)


@dataclass(frozen=True)
class Request:
    """A request to run rows with a feature set, resources and seeds."""

    rows: tuple[str, ...]
    features: str
    resources: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    corpus: str = "conll2000"
    quick: bool = False
    again: bool = False

    def identity(self, row: str) -> Row:
        """Return the fields that identify a row in results and in choices."""
        return {
            "row": row,
            "features": self.features,
            "resources": list(self.resources),
            "corpus": f"{self.corpus}, a slice" if self.quick else self.corpus,
        }


def experiment(name: str) -> Experiment:
    """Return the experiment of this name."""
    loaded = import_module(EXPERIMENTS[name]).EXPERIMENT
    assert isinstance(loaded, Experiment)
    return loaded


class Pace:
    """Estimates the remaining time from the durations of finished jobs."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._seconds: dict[str, list[float]] = {}
        self._left: dict[str, int] = {}
        self.done = 0

    @property
    def total(self) -> int:
        """The number of all jobs, done or not."""
        return self.done + sum(self._left.values())

    def expect(self, row: str, jobs: int) -> None:
        """Add jobs of a row to those expected; a negative number removes jobs."""
        self._left[row] = self._left.get(row, 0) + jobs

    def took(self, row: str, seconds: float) -> None:
        """Record the duration of a job."""
        self._seconds.setdefault(row, []).append(seconds)

    def finish(self, row: str) -> None:
        """Record that a job of the row has ended or failed."""
        self.expect(row, -1)
        self.done += 1

    def left_s(self) -> float | None:
        """Return the estimated seconds left; unknown rows count as the mean of the others."""
        known = {row: statistics.mean(seconds) for row, seconds in self._seconds.items()}
        if not known:
            return None
        usual = statistics.mean(known.values())
        return sum(known.get(row, usual) * n for row, n in self._left.items()) / self._jobs


def duration(seconds: float) -> str:
    """Return a length of time as text, in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


class Lab:
    """Runs an experiment, with results in a folder; ``say`` gets a line about each job's end."""

    def __init__(
        self, experiment: Experiment, results: Path, work: Path, say: Say, *, jobs: int = 1
    ) -> None:
        self.experiment, self.results, self.jobs = experiment, results, jobs
        self.failures = Failures(say)
        self._work, self._say = work, say
        self._processes = Processes(work)
        self._lock = own_lock()
        self._warming = own_lock()
        self._warm: set[str] = set()
        self._pace = Pace(jobs)

    # ----------------------------------------------------------------------- results

    @property
    def results_file(self) -> Path:
        """The path of the results."""
        return self.results / f"{self.experiment.name}.json"

    @property
    def choices_file(self) -> Path:
        """The path of the chosen settings and all trials."""
        return self.results / "chosen.json"

    def all_results(self) -> list[Row]:
        """Return all results so far, of any request."""
        return load(self.results_file) or []

    def choices(self) -> dict[str, Row]:
        """Return all choices of this experiment so far, by name."""
        chosen: dict[str, Row] = (load(self.choices_file) or {}).get(self._chosen_by, {})
        return chosen

    @property
    def _chosen_by(self) -> str:
        return self.experiment.chosen_by or self.experiment.name

    def results_of(self, request: Request) -> list[Row]:
        """Return the results for a request, in the order of rows and seeds."""
        return [row for row in self.all_results() if _matches(row, request)]

    def write_report(self) -> list[Path]:
        """Write the report from all results and return the paths of its files."""
        self.results.mkdir(parents=True, exist_ok=True)
        return self.experiment.report(self.all_results(), self.choices(), self.results)

    # ----------------------------------------------------------------------- the run

    def run(self, request: Request) -> list[Row]:
        """Run the missing jobs of a request and return its results."""
        undecided = [row for row in request.rows if not self._choice(request, row)]
        if request.again and not self.experiment.sentences:
            undecided = list(request.rows)
        missing = self._missing(request) if self.experiment.tests else []
        if missing or (undecided and not self.experiment.tests):
            whole = corpus.files(request.corpus, self._work, quick=request.quick)
            if self.experiment.sentences:
                whole = corpus.first_sentences(whole, self._work, self.experiment.sentences)
            held_out = corpus.held_out(whole, self._work)
            for row, _ in missing:
                self._pace.expect(row, 1)
            for row in undecided:
                self._pace.expect(row, _trials(self._grid(request, row)))
            self._in_threads(
                lambda row: self._choose(request, row, held_out), dict.fromkeys(undecided)
            )
            chosen = {row: self._choice(request, row) for row in request.rows}
            ready = [(row, seed) for row, seed in missing if chosen[row]]
            self._in_threads(lambda one: self._measure(request, one, whole), ready)
        return self.results_of(request)

    def _in_threads(self, work: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Work on several items at a time; an interruption stops all processes."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                for future in [pool.submit(work, item) for item in items]:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._processes.stop()
                raise

    def _job(self, row: str, job: Row) -> Row:
        started = time.perf_counter()
        try:
            result = self._processes.run(RUN_JOB, job)
            with self._lock:
                self._pace.took(row, time.perf_counter() - started)
        finally:
            with self._lock:
                self._pace.finish(row)
        return result

    def _report_end(self, line: str) -> None:
        left_s = self._pace.left_s()
        left = "" if left_s is None else f", about {duration(left_s)} left"
        self._say(f"{line} ({self._pace.done} of {self._pace.total}{left})")

    def _prepare(self, request: Request, row: str, settings: Settings, files: corpus.Files) -> None:
        """Compile code in another process than the measured one, once for each row."""
        with self._warming:
            if row not in self._warm:
                few = corpus.warmup_file(files.train, self._work)
                job = self._job_settings(request, row, settings | {"epochs": 1}, 0)
                self._processes.run(RUN_JOB, job | {"train": few, "test": few})
                self._warm.add(row)

    def _job_settings(self, request: Request, row: str, settings: Settings, seed: int) -> Row:
        return {
            "module": EXPERIMENTS[self.experiment.name],
            "settings": settings,
            "features": request.features,
            "resources": list(request.resources),
            "seed": seed,
        }

    # ----------------------------------------------------------------------- choosing

    def _grid(self, request: Request, row: str) -> Grid:
        grid = self.experiment.rows[row].grid
        if request.quick:
            return {name: values[:QUICK_VALUES] for name, values in grid.items()}
        return grid

    def _choice(self, request: Request, row: str) -> Row | None:
        """Return the finished choice for a row on the same corpus, or None."""
        if self.experiment.sentences:
            settings = dict(self.experiment.rows[row].settings)
            if request.quick:
                settings["epochs"] = QUICK_EPOCHS
            return {"settings": settings, "held_out": []}
        entry = self.choices().get(choice_name(request.identity(row)))
        finished = (
            entry and "settings" in entry and entry["corpus"] == request.identity(row)["corpus"]
        )
        return entry if finished else None

    def _choose(self, request: Request, row: str, files: corpus.Files) -> None:
        """Choose the settings of a row; save the choice and every trial."""
        identity = request.identity(row)
        name = choice_name(identity)
        entry = self.choices().get(name, {})
        if request.again or entry.get("corpus") != identity["corpus"]:
            entry = {}
        trials: list[Row] = entry.get("trials", [])
        entry = identity | {"versions": measure.versions(PACKAGES), "trials": trials}
        self._pace.expect(row, -len(trials))

        def keep(trial: Row) -> None:
            self._keep_choice(name, entry)
            scored = f"held-out {self.experiment.scored} {trial['f']:.2f}"
            self._report_end(f"{row}, {measure.format_settings(trial['settings'])}: {scored}")

        score = Trials(trials, lambda given: self._trial(request, row, given, files), keep)
        with self.failures.collect(f"choosing for {row}"):
            settings = self.experiment.rows[row].settings
            best = measure.coordinate_search(settings, self._grid(request, row), score)
            trial = score.trial(best)  # without a grid, only the epochs are chosen
            chosen = best | {"epochs": trial["epochs"]}
            entry |= {"settings": chosen, "f": trial["f"], "held_out": trial["held_out"]}
            self._keep_choice(name, entry)

    def _trial(self, request: Request, row: str, settings: Settings, files: corpus.Files) -> Row:
        """Return the held-out score of each epoch, the best score and its epoch."""
        epochs = QUICK_EPOCHS if request.quick else self.experiment.epochs
        self._prepare(request, row, settings, files)
        given = self._job_settings(request, row, settings | {"epochs": epochs}, 0)
        job = given | {
            "train": files.train,
            "dev": files.test,
            "patience": self.experiment.patience,
        }
        result = self._job(row, job)
        curve = result["held_out"]
        best = max(curve)
        return {
            "f": best,
            "epochs": curve.index(best) + 1,
            "held_out": curve,
            "train_s": result["train_s"],
        }

    def _keep_choice(self, name: str, entry: Row) -> None:
        with self._lock:
            mine = {self._chosen_by: self.choices() | {name: entry}}
            save(self.choices_file, (load(self.choices_file) or {}) | mine)

    # ----------------------------------------------------------------------- measuring

    def _missing(self, request: Request) -> list[tuple[str, int]]:
        """Return rows and seeds that have no result yet with the chosen settings."""
        if request.again:
            return [(row, seed) for row in request.rows for seed in request.seeds]
        done = set()
        for result in self.results_of(request):
            choice = self._choice(request, result["row"])
            if choice and choice["settings"] == result["settings"]:
                done.add((result["row"], result["seed"]))
        planned = [(row, seed) for row in request.rows for seed in request.seeds]
        return [one for one in planned if one not in done]

    def _measure(self, request: Request, one: tuple[str, int], files: corpus.Files) -> None:
        row, seed = one
        label = f"{row}, seed {seed}"
        choice = self._choice(request, row)
        assert choice is not None
        with self.failures.collect(label):
            self._prepare(request, row, choice["settings"], files)
            job = self._job_settings(request, row, choice["settings"], seed)
            result = self._job(row, job | {"train": files.train, "test": files.test})
            identity = {**request.identity(row), "seed": seed}
            parts = result.pop("parts", [{}])
            conditions = {
                "settings": choice["settings"],
                "held_out": choice["held_out"],
                "versions": measure.versions(PACKAGES),
                "machine": measure.machine(),
                "jobs": self.jobs,
            }
            kept = [{**identity, **result, **part, **conditions} for part in parts]
            with self._lock:
                others = [old for old in self.all_results() if _name(old) != _name(identity)]
                save(self.results_file, sorted([*others, *kept], key=self._place))
                self._report_end(f"{label}: {self._format_measures(kept[-1])}")

    def _place(self, row: Row) -> tuple[Any, ...]:
        """Return the sort key of a result in its file, the order of the table."""
        number = [*self.experiment.rows].index(row["row"])
        return row["features"], row["resources"], number, row["seed"]

    def _format_measures(self, result: Row) -> str:
        shown = self.experiment.shown
        return ", ".join(f"{name} {result[name]:.{digits}f}" for name, digits in shown.items())


def choice_name(identity: Row) -> str:
    """Return the name of a choice in its file."""
    resources = measure.resource_names(identity["resources"])
    return f"{identity['row']}, {identity['features']}, {resources}"


def _trials(grid: Grid) -> int:
    """Return the number of settings that ``coordinate_search`` scores, starting in the grid."""
    return 1 + sum(len(values) - 1 for values in grid.values())


def _name(row: Row) -> tuple[Any, ...]:
    return row["row"], row["features"], row["resources"], row["seed"]


def _matches(row: Row, request: Request) -> bool:
    asked = row["row"] in request.rows and row["seed"] in request.seeds
    return asked and row == row | request.identity(row["row"])
