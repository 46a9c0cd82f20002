"""Passes over a corpus with the compiled engine: epochs, progress, held-out score, interruption."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import averaged, current
from laso.training import Progress, visiting_order

CHUNK = 256  # examples between two chances to report and to be interrupted


@dataclass
class Training:
    """The state of a training run: saved and loaded, it goes on as if it had never stopped."""

    table: Table
    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -np.inf
    best: Table | None = None
    scores: list[float] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    squares: Array | None = None  # of past slopes, for adagrad()
    clock: float = 0.0  # the sum of the rates of all steps, for adagrad() and sgd()

    def judge(self, kept: Table, score: float) -> None:
        """Note the score of an epoch, and keep its weights if no other was as good."""
        self.scores.append(score)
        if score > self.best_score:
            self.best_score, self.best_epoch, self.best = score, self.epoch, kept


@dataclass(frozen=True)
class Plan:
    """How long to train and in what order."""

    epochs: int = 10
    seed: int | None = 0
    patience: int | None = None  # stop after so many epochs without a better held-out score
    average: bool = True  # keep the average of the weights, not those that learning ended with
    after: Callable[[Training], None] = lambda training: None  # called after each epoch

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, found {self.epochs}")
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience must be at least 1, found {self.patience}")

    def order(self, epoch: int, n: int) -> Array:
        """The order of an epoch: a function of seed and epoch, so that a run can be resumed."""
        return np.array(visiting_order(n, self.seed, epoch), np.int64)

    def kept(self, table: Table) -> Table:
        """What is kept of the weights of the moment, as a table that only scores."""
        return averaged(table) if self.average else current(table)

    def is_over(self, training: Training) -> bool:
        """Has the held-out score not become better for too long?"""
        waited = training.epoch - training.best_epoch
        return bool(training.scores) and self.patience is not None and waited >= self.patience

    def finish(self, training: Training, *, scored: bool) -> None:
        """See to it that there are best weights: the last ones, if no epoch was scored."""
        if training.best is None or not scored:
            training.best = self.kept(training.table)
            training.best_epoch = training.epoch


class Learner(Protocol):
    """What learns from examples: a ``Machine``, or one like it."""

    def new_run(self, corpus: Corpus, order: Array, table: Table) -> Any:
        """Working space for the largest of the inputs named."""

    def learn(self, corpus: Corpus, order: Array, table: Table, run: Any) -> tuple[Table, Any, int]:
        """Learn from the examples named, in turn; table and run as grown, and the errors."""


def train(
    machine: Learner,
    corpus: Corpus,
    training: Training,
    plan: Plan,
    *,
    score: Callable[[Table], float] | None = None,
    progress: Callable[[Progress], None] | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Training:
    """Go on from ``training`` to the end of the plan; Ctrl-C ends it after the present examples.

    With ``score``, the weights of the best epoch (see ``Plan.average``) are in ``training.best``;
    without, those of the last. An interrupted epoch counts in the averages, and is begun anew if
    resumed. ``settle`` is called before the weights are used.
    """
    n = len(corpus.starts) - 1
    run = None
    tell = progress or (lambda report: None)
    with _deferred_interrupt() as stop:
        try:
            while training.epoch < plan.epochs and not training.converged:
                epoch = training.epoch + 1
                order = plan.order(epoch, n)
                if run is None:
                    run = machine.new_run(corpus, order, training.table)
                before = _updates(training)
                wrong = 0
                for first in range(0, n, CHUNK):
                    part = order[first : first + CHUNK]
                    training.table, run, errors = machine.learn(corpus, part, training.table, run)
                    wrong += errors
                    done = first + len(part)
                    tell(Progress(epoch, plan.epochs, done, n, _updates(training), wrong / done))
                    stop()
                training.epoch = epoch
                training.converged = _updates(training) == before
                settle()
                if score is not None:
                    kept = plan.kept(training.table)
                    training.judge(kept, score(kept))
                    rate, value = wrong / max(1, n), training.scores[-1]
                    tell(Progress(epoch, plan.epochs, n, n, _updates(training), rate, value))
                plan.after(training)
                stop()
                if plan.is_over(training):
                    break
        except KeyboardInterrupt:
            training.interrupted = True
            settle()
    plan.finish(training, scored=score is not None)
    return training


def _updates(training: Training) -> int:
    return int(training.table.ints[at.GENERATION]) - 1


@contextlib.contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], None]]:
    """Hold Ctrl-C back until the function yielded is called, so that no update is cut in two.

    A second Ctrl-C is not held back. Outside the main thread there are no signals to hold.
    """
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def stop() -> None:
        if asked:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield stop
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
