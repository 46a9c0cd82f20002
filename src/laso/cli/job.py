"""The work of ``laso train``: which examples are held out, which estimator learns, and learning."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laso.cli import own, settings
from laso.cli.examples import Examples, read
from laso.cli.own import usage_errors
from laso.cli.settings import Settings
from laso.data.formats import TREE
from laso.errors import BadData, BadModel
from laso.locks import cached_property

if TYPE_CHECKING:
    from rich.console import Console

    from laso.cli.interrupts import Interrupts
    from laso.cli.progress import Display
    from laso.cli.watch import Watch
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task

CHECKPOINT = ".checkpoint"


@dataclass
class Job:
    """The examples to learn from, those to choose the number of epochs on, and the settings."""

    settings: Settings
    task: str
    all: Examples
    train: Examples
    dev: Examples | None = None
    resumed: bool = False
    store: Path | None = None  # the folder of encoded data that memory does not hold

    def estimator(self, epochs: int | None = None) -> SearchEstimator:
        """Return the estimator to train; with ``epochs``, for exactly that number of epochs."""
        max_epochs = settings.EPOCHS
        patience = settings.PATIENCE if self.dev is not None else None
        if epochs is not None:
            max_epochs, patience = epochs, None
        elif self.settings.epochs is not None:
            max_epochs = self.settings.epochs
        limits: dict[str, Any] = {"epochs": max_epochs, "patience": patience}
        model: SearchEstimator = settings.estimator(
            self.own_task or self.task, self.settings, self.all.roles, limits
        )
        return model

    @property
    def own_task(self) -> Task | None:
        """The task if it is the user's own."""
        return self.all.task if own.is_own(self.task) else None

    @cached_property
    def data(self) -> dict[str, Any]:
        """The counts and the checksum of the data, to resume a run and for the model's metadata."""
        files = [self.all.crc, *([] if self.dev is None else [self.dev.crc])]
        return {
            "files": [Path(name).name for name, _ in self.all.files],
            **self.train.counts(),
            "held out": len(self.dev) if self.dev is not None else 0,
            "checksum": zlib.crc32(repr(files).encode()),
        }

    def fit(self, model: SearchEstimator, data: Examples, **how: Any) -> None:
        """Train a model on data, or resume its training if ``how`` has a number of epochs."""
        resumed = "epochs" in how
        with data.located():
            if self.store is not None:
                stream = model.resume_stream if resumed else model.fit_stream
                stream(data.pairs, store=self.store, **how)
            else:
                begin = model.resume if resumed else model.fit
                begin(*data.labelled, **how)


# --------------------------------------------------------------------------- planning


def planned(files: Sequence[str], given: Settings, *, store: Path | None = None) -> Job:
    """Read the files, and decide on the task and on what is held out."""
    name = given.task
    of_columns = [each for each in settings.ABOUT_COLUMNS if each != "templates"]
    if name is None and not any(getattr(given, each) for each in of_columns):
        name = own.detected(files[0])
    task = own.reader(name)
    examples = read(files, given, task=task, on_disk=store is not None)
    name = name or detected_task(examples)
    given = with_constraints(with_strategy(given, examples), name, examples)
    if given.dev is None:
        return Job(given, name, examples, *split(examples, given), store=store)
    dev = read([given.dev], replace(given, label=None, inputs=None), task=task)
    if task is None and not dev.fits(examples.roles):
        raise BadData("found other columns than in the training data", file=given.dev, line=1)
    return Job(given, name, examples, examples, replace(dev, roles=examples.roles), store=store)


def split(data: Examples, given: Settings) -> tuple[Examples, Examples | None]:
    """Return the examples to learn from, and the held-out ones or None."""
    from laso.estimators.learning.fitting import held_out

    n, fraction = len(data), given.held_out
    if fraction is None:
        fraction = settings.HELD_OUT if n >= settings.FEWEST else 0.0
    if not fraction or n < 2:
        return data, None
    with usage_errors():
        chosen = held_out(n, fraction, (given.set or {}).get("seed", 0))
    return data.parted(chosen)


def with_strategy(given: Settings, examples: Examples) -> Settings:
    """Return the settings; where labels are unknown, with the strategy max_violation."""
    chosen = given.set or {}
    if {"strategy", "queue"} & set(chosen) or examples.form.kind != "jsonl":
        return given
    if examples.is_fully_labelled():
        return given
    return replace(given, set={**chosen, "strategy": "max_violation"})


def with_constraints(given: Settings, task: str, examples: Examples) -> Settings:
    """Return the settings; tags that mark chunks by BIO or IOBES are constrained to that scheme."""
    from laso.tasks.constraints import scheme_of

    chosen = given.set or {}
    if task != "tag" or "constraints" in chosen:
        return given
    scheme = scheme_of(examples.label_sequences())
    return given if scheme is None else replace(given, set={**chosen, "constraints": scheme})


def detected_task(examples: Examples) -> str:
    """Return "tag"; several columns of labels are predicted jointly, head and deprel as a tree."""
    if examples.roles.labels == TREE:
        return "parse"
    return "joint" if len(examples.roles.labels) > 1 else "tag"


# --------------------------------------------------------------------------- learning


def learn(
    job: Job,
    path: Path,
    console: Console,
    shown: Display,
    keys: Interrupts,
    *,
    fresh: bool,
    watch: Watch | None = None,
) -> SearchEstimator:
    """Train, from where an earlier run was cut short if there is one."""
    from laso.estimators import Checkpoint
    from laso.estimators.learning.fitting import most_epochs

    beside = path.with_name(path.name + CHECKPOINT)
    model = job.estimator()
    how: dict[str, Any] = {
        "dev": None if job.dev is None else job.dev.labelled,
        "progress": shown,
        "checkpoint": Checkpoint(beside, metadata={"data": job.data}),
    }
    earlier = None if fresh else unfinished(beside, model, job)
    job.resumed = earlier is not None
    if earlier is not None:
        console.print(f"resuming a run that was cut short after epoch {earlier.n_iter_}")
        how["epochs"], model = most_epochs(model), earlier
    elif watch is not None:
        how["after_epoch"] = watch.after_epoch(job, model)
    keys.model = model
    with nullcontext() if job.dev is None else job.dev.located(name="dev"):
        job.fit(model, job.train, **how)
    return model


def refitted(job: Job, model: SearchEstimator, shown: Display) -> SearchEstimator | None:
    """Return a model trained on all examples for as many epochs as were chosen; None if cut short.

    It keeps the metadata of the first model: the calibration and the held-out scores.
    """
    again = job.estimator(epochs=model.best_epoch_)
    job.fit(again, job.all, progress=shown)
    chosen = {"epoch": model.best_epoch_, "scores": model.scores_}
    again.metadata_ |= {**model.metadata_, "chosen": chosen}
    return None if again.interrupted_ else again


def unfinished(path: Path, model: SearchEstimator, job: Job) -> Any:
    """Return the model of a checkpoint of the same settings and data; None if there is none."""
    from laso.estimators import load_model
    from laso.files.estimator import described_parameters

    if not path.exists():
        return None
    try:
        earlier = load_model(path, task=job.own_task)
    except BadModel:
        return None
    same = type(earlier) is type(model) and earlier.metadata_.get("data") == job.data
    return (
        earlier if same and described_parameters(earlier) == described_parameters(model) else None
    )
