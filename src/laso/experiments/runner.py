"""Run any experiment: choose settings on held-out data, do the jobs that are missing, keep results.

A job is one row of a table with one seed, in a fresh process. Each result is saved as soon as it is
there, so that an interrupted run goes on where it was.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from laso.experiments import EXPERIMENTS, corpus
from laso.experiments.measure import (
    Grid,
    JobFailed,
    Processes,
    Row,
    Settings,
    descend,
    described,
    load,
    machine,
    save,
    versions,
)

WORKER = "laso.experiments.worker"
PACKAGES = ("laso", "numba", "numpy")
QUICK_EPOCHS, QUICK_VALUES = 2, 2


@dataclass(frozen=True)
class Config:
    """A row of a table: settings, and the values among which held-out data choose.

    In ``grid`` the first of equally good values is taken. The number of epochs is not in it: it is
    read off the held-out score of each epoch.
    """

    settings: Settings
    grid: Grid = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """One table of the paper, as plain data and three functions.

    ``estimator`` imports the class; ``tested`` gives the measures of a fitted one on a test file;
    or, as ``parts``, a list of them, of which each becomes a result. ``report`` writes the files of
    the report from results and choices, and names them. ``shown`` are the measures to print, with
    their digits. ``epochs`` is the most that a choice tries, ``patience`` how many it waits for a
    better held-out score, which is what ``scored`` says. ``chosen_by`` is another experiment with
    the same rows, whose choices count. With ``sentences``, so many are trained and tested on, and
    nothing is chosen. ``seeds`` is how many there are unless told. If not ``tests``, it ends with
    the held-out scores. ``corpora`` are those it can be run on, the first unless told.
    """

    name: str
    rows: Mapping[str, Config]
    estimator: Callable[[], Any]
    tested: Callable[[Any, Path], Row]
    report: Callable[[list[Row], dict[str, Row], Path], list[Path]]
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


@dataclass(frozen=True)
class Request:
    """What is asked for: which rows, with what, how often."""

    rows: tuple[str, ...]
    features: str
    resources: tuple[str, ...] = ()
    seeds: tuple[int, ...] = (0,)
    corpus: str = "conll2000"
    quick: bool = False
    again: bool = False

    def facts(self, row: str) -> Row:
        """What a result and the choice for it have in common."""
        return {
            "row": row,
            "features": self.features,
            "resources": list(self.resources),
            "corpus": f"{self.corpus}, a slice" if self.quick else self.corpus,
        }


class Watcher(Protocol):
    """Is told how a run goes."""

    def begin(self, label: str) -> None:
        """A job begins."""

    def end(self, line: str, done: int, total: int, left_s: float | None) -> None:
        """A job ended; how many have, of how many, and the seconds that may be left."""

    def fail(self, line: str) -> None:
        """A job failed."""


def experiment(name: str) -> Experiment:
    """The experiment of this name."""
    found = import_module(EXPERIMENTS[name]).EXPERIMENT
    assert isinstance(found, Experiment)
    return found


class Pace:
    """How long jobs took, so as to tell how long the rest may take."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._seconds: dict[str, list[float]] = {}
        self._left: dict[str, int] = {}
        self.done = 0

    @property
    def total(self) -> int:
        """All jobs, done or not."""
        return self.done + sum(self._left.values())

    def expect(self, row: str, jobs: int) -> None:
        """So many jobs more, or fewer, of a row."""
        self._left[row] = self._left.get(row, 0) + jobs

    def took(self, row: str, seconds: float) -> None:
        """A job has taken this long."""
        self._seconds.setdefault(row, []).append(seconds)

    def finish(self, row: str) -> None:
        """A job of the row has ended, well or not."""
        self.expect(row, -1)
        self.done += 1

    def left_s(self) -> float | None:
        """Seconds that may be left; a row without a measurement is taken to be like the others."""
        known = {row: statistics.mean(seconds) for row, seconds in self._seconds.items()}
        if not known:
            return None
        usual = statistics.mean(known.values())
        return sum(known.get(row, usual) * n for row, n in self._left.items()) / self._jobs


class Lab:
    """Where an experiment is run: the results' folder, processes, and who is told."""

    def __init__(
        self,
        experiment: Experiment,
        results: Path,
        work: Path,
        watcher: Watcher,
        *,
        jobs: int = 1,
    ) -> None:
        self.experiment, self.results, self.jobs = experiment, results, jobs
        self.failures: list[str] = []
        self._work, self._watcher = work, watcher
        self._processes = Processes(work)
        self._lock = threading.RLock()
        self._warming = threading.Lock()
        self._warm: set[str] = set()
        self._pace = Pace(jobs)

    # ----------------------------------------------------------------------- what is there

    @property
    def results_file(self) -> Path:
        """The list of results."""
        return self.results / f"{self.experiment.name}.json"

    @property
    def choices_file(self) -> Path:
        """The settings chosen, with all trials."""
        return self.results / "chosen.json"

    def all_results(self) -> list[Row]:
        """All results so far, also those of other requests."""
        return load(self.results_file) or []

    def choices(self) -> dict[str, Row]:
        """All choices of this experiment so far, by their names."""
        found: dict[str, Row] = (load(self.choices_file) or {}).get(self._chosen_by, {})
        return found

    @property
    def _chosen_by(self) -> str:
        return self.experiment.chosen_by or self.experiment.name

    def results_of(self, request: Request) -> list[Row]:
        """The results that answer a request, in the order of the table, then of the seeds."""
        return [row for row in self.all_results() if _answers(row, request)]

    def write_report(self) -> list[Path]:
        """Write the report from what is there; the files."""
        self.results.mkdir(parents=True, exist_ok=True)
        return self.experiment.report(self.all_results(), self.choices(), self.results)

    # ----------------------------------------------------------------------- the run

    def run(self, request: Request) -> list[Row]:
        """Do what is missing, and answer with the results asked for."""
        unchosen = [row for row in request.rows if not self._choice(request, row)]
        if request.again and not self.experiment.sentences:
            unchosen = list(request.rows)
        missing = self._missing(request) if self.experiment.tests else []
        if missing or (unchosen and not self.experiment.tests):
            whole = corpus.files(request.corpus, self._work, quick=request.quick)
            if self.experiment.sentences:
                whole = corpus.first(whole, self._work, self.experiment.sentences)
            held_out = corpus.held_out(whole, self._work)
            for row, _ in missing:
                self._pace.expect(row, 1)
                self._learn_pace(request, row)
            for row in unchosen:
                self._pace.expect(row, _trials(self._grid(request, row)))
            self._in_threads(
                lambda row: self._choose(request, row, held_out), dict.fromkeys(unchosen)
            )
            chosen = {row: self._choice(request, row) for row in request.rows}
            ready = [(row, seed) for row, seed in missing if chosen[row]]
            self._in_threads(lambda one: self._measure(request, one, whole), ready)
        return self.results_of(request)

    def _in_threads(self, work: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Several at a time; an interruption ends the processes, and all."""
        with ThreadPoolExecutor(self.jobs) as pool:
            try:
                for future in [pool.submit(work, item) for item in items]:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                self._processes.stop()
                raise

    @contextmanager
    def _going_on(self, what: str) -> Iterator[None]:
        """Tell of a job that fails, and go on with the next one."""
        try:
            yield
        except JobFailed as error:
            with self._lock:
                self.failures.append(what)
                self._watcher.fail(f"{what} FAILED: {error}")

    def _job(self, row: str, label: str, job: Row) -> Row:
        self._watcher.begin(label)
        started = time.perf_counter()
        try:
            result = self._processes.run(WORKER, job)
            with self._lock:
                self._pace.took(row, time.perf_counter() - started)
        finally:
            with self._lock:
                self._pace.finish(row)
        return result

    def _told(self, line: str) -> None:
        pace = self._pace
        self._watcher.end(line, pace.done, pace.total, pace.left_s())

    def _prepare(self, request: Request, row: str, settings: Settings, files: corpus.Files) -> None:
        """See to it that code is compiled in another process than the one that is measured."""
        with self._warming:
            if row not in self._warm:
                few = corpus.few(files.train, self._work)
                job = self._given(request, row, settings | {"epochs": 1}, 0)
                self._processes.run(WORKER, job | {"train": few, "test": few})
                self._warm.add(row)

    def _given(self, request: Request, row: str, settings: Settings, seed: int) -> Row:
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
        """The finished choice for a row, if it was made on the same data."""
        if self.experiment.sentences:
            settings = dict(self.experiment.rows[row].settings)
            if request.quick:
                settings["epochs"] = QUICK_EPOCHS
            return {"settings": settings, "held_out": []}
        entry = self.choices().get(choice_name(request.facts(row)))
        finished = entry and "settings" in entry and entry["corpus"] == request.facts(row)["corpus"]
        return entry if finished else None

    def _choose(self, request: Request, row: str, files: corpus.Files) -> None:
        """Choose the settings of a row, and save them with every trial."""
        facts = request.facts(row)
        name = choice_name(facts)
        entry = self.choices().get(name, {})
        if request.again or entry.get("corpus") != facts["corpus"]:
            entry = {}
        trials: list[Row] = entry.get("trials", [])
        entry = facts | {"versions": versions(PACKAGES), "trials": trials}
        self._pace.expect(row, -len(trials))

        def score(settings: Settings) -> float:
            for trial in trials:
                if trial["settings"] == settings:
                    return float(trial["f"])
            trial = {"settings": settings, **self._trial(request, row, settings, files)}
            trials.append(trial)
            self._keep_choice(name, entry)
            scored = f"held-out {self.experiment.scored} {trial['f']:.2f}"
            self._told(f"{row}, {described(settings)}: {scored}")
            return float(trial["f"])

        with self._going_on(f"choosing for {row}"):
            config = self.experiment.rows[row]
            grid = self._grid(request, row)
            best = descend(config.settings, grid, score)
            score(best)  # where nothing is to be chosen, the epochs still are
            trial = next(trial for trial in trials if trial["settings"] == best)
            chosen = best | {"epochs": trial["epochs"]}
            entry |= {"settings": chosen, "f": trial["f"], "held_out": trial["held_out"]}
            self._keep_choice(name, entry)

    def _trial(self, request: Request, row: str, settings: Settings, files: corpus.Files) -> Row:
        """The held-out scores of each epoch, the best of them, and its epoch."""
        epochs = QUICK_EPOCHS if request.quick else self.experiment.epochs
        self._prepare(request, row, settings, files)
        given = self._given(request, row, settings | {"epochs": epochs}, 0)
        job = given | {
            "train": files.train,
            "dev": files.test,
            "patience": self.experiment.patience,
        }
        result = self._job(row, f"choosing for {row}: {described(settings)}", job)
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
        """Rows and seeds that have no result yet with the settings chosen."""
        if request.again:
            return [(row, seed) for row in request.rows for seed in request.seeds]
        done = set()
        for result in self.results_of(request):
            choice = self._choice(request, result["row"])
            if choice and choice["settings"] == result["settings"]:
                done.add((result["row"], result["seed"]))
        wanted = [(row, seed) for row in request.rows for seed in request.seeds]
        return [one for one in wanted if one not in done]

    def _measure(self, request: Request, one: tuple[str, int], files: corpus.Files) -> None:
        row, seed = one
        label = f"{row}, seed {seed}"
        choice = self._choice(request, row)
        assert choice is not None
        with self._going_on(label):
            self._prepare(request, row, choice["settings"], files)
            job = self._given(request, row, choice["settings"], seed)
            result = self._job(row, label, job | {"train": files.train, "test": files.test})
            facts = {**request.facts(row), "seed": seed}
            parts = result.pop("parts", [{}])
            circumstances = {
                "settings": choice["settings"],
                "held_out": choice["held_out"],
                "versions": versions(PACKAGES),
                "machine": machine(),
                "jobs": self.jobs,
            }
            kept = [{**facts, **result, **part, **circumstances} for part in parts]
            with self._lock:
                others = [old for old in self.all_results() if _name(old) != _name(facts)]
                save(self.results_file, sorted([*others, *kept], key=self._place))
                self._told(f"{label}: {self._shown(kept[-1])}")

    def _place(self, row: Row) -> tuple[Any, ...]:
        """Where a result stands in its file: in the order of the table."""
        number = [*self.experiment.rows].index(row["row"])
        return row["features"], row["resources"], number, row["seed"]

    def _shown(self, result: Row) -> str:
        shown = self.experiment.shown
        return ", ".join(f"{name} {result[name]:.{digits}f}" for name, digits in shown.items())

    def _learn_pace(self, request: Request, row: str) -> None:
        """What earlier runs took tells how long this one may."""
        known = [result for result in self.results_of(request) if result["row"] == row]
        trials = self.choices().get(choice_name(request.facts(row)), {}).get("trials", [])
        for one in [*known, *trials]:
            self._pace.took(row, one["train_s"] + one.get("test_s", 0.0))


def resource_names(resources: Iterable[str]) -> str:
    """The resources in a few words."""
    return ", ".join(resources) or "no resources"


def choice_name(facts: Row) -> str:
    """The name of a choice in its file."""
    return f"{facts['row']}, {facts['features']}, {resource_names(facts['resources'])}"


def _trials(grid: Grid) -> int:
    """How many settings ``descend`` looks at, if it begins with values of the grid."""
    return 1 + sum(len(values) - 1 for values in grid.values())


def _name(row: Row) -> tuple[Any, ...]:
    return row["row"], row["features"], row["resources"], row["seed"]


def _answers(row: Row, request: Request) -> bool:
    asked = row["row"] in request.rows and row["seed"] in request.seeds
    return asked and row == row | request.facts(row["row"])
