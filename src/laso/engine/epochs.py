"""Train the compiled engine: epochs, progress, held-out score, interruption."""

from __future__ import annotations

import contextlib
import math
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import averaged, current
from laso.engine.native import waiting
from laso.engine.weights.row_layouts import measure
from laso.training import Progress, visiting_order

CHUNK = 256  # examples between two reports, where training can be interrupted

LEARNING, ENDED, CORRECTING = STAGES = ("learning", "ended", "correcting")
"""The stages of a training: until ``fit`` has ended, since then, and since more data came."""


@dataclass
class Training:
    """The state of a training run: once saved and loaded, it continues as if never stopped."""

    table: WeightTable
    epoch: int = 0
    best_epoch: int = 0
    best_score: float = -np.inf
    best: WeightTable | None = None
    scores: list[float] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    stage: str = LEARNING
    squares: Array | None = None  # AdaGrad's sums of squared gradients
    clock: float = 0.0  # the sum of the rates of all steps, for adagrad() and sgd()
    error_rate: float = 0.0  # of the last epoch: the fraction of the examples with an error
    objective: float | None = None  # of the last epoch: log-likelihood with prior, per example
    norm: float = 0.0  # of the weights after the last epoch
    active: int = 0  # the number of weights that are not zero, for lbfgs()

    def copied(self) -> Training:
        """Return a copy to go on with; ``best`` is never changed, only replaced."""
        return replace(
            self,
            table=WeightTable(*(array.copy() for array in self.table)),
            scores=[*self.scores],
            squares=None if self.squares is None else self.squares.copy(),
        )

    def judge(self, kept: WeightTable, score: float) -> None:
        """Record the score of an epoch, and keep its weights if none before is better.

        Of epochs that are equally good on held-out data, the last has learned most.
        """
        self.scores.append(score)
        if score >= self.best_score:
            self.best_score, self.best_epoch, self.best = score, self.epoch, kept


def start_at_average(table: WeightTable) -> None:
    """Make the averaged weights the present ones, to learn on from them."""
    ticks, scale = int(table.ints[at.TICKS]), table.reals[at.SCALE]
    if not ticks:
        return
    average = averaged(table).v
    table.v[: len(average)] = average / scale
    table.u[:] = 0
    table.reals[at.SCALES] = ticks * scale
    table.ints[at.GENERATION] += 1  # so that no sum of old weights is used again
    measure(table)


def shorten_past(table: WeightTable, ticks: int) -> None:
    """Let the average so far count as at most so many examples."""
    if table.ints[at.TICKS] > ticks:
        share = ticks / int(table.ints[at.TICKS])
        table.u[:] *= share
        table.reals[at.SCALES] *= share
        table.ints[at.TICKS] = ticks


After = Callable[[Training, Callable[[], WeightTable]], None]


@dataclass(frozen=True)
class Plan:
    """How long to train and in what order."""

    epochs: int = 10
    seed: int | None = 0
    patience: int | None = None  # stop after so many epochs without a better held-out score
    average: bool = True  # keep the averaged weights instead of the last ones
    after: After | None = None  # called after each epoch; the weights are made if it asks for them

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, found {self.epochs}")
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience must be at least 1, found {self.patience}")

    def order(self, epoch: int, n: int) -> Array:
        """Return the order of an epoch: a function of seed and epoch, so that a run can resume."""
        return np.array(visiting_order(n, self.seed, epoch), np.int64)

    def kept(self, table: WeightTable) -> WeightTable:
        """Return the weights to keep of the present ones, as a table for scoring only."""
        return averaged(table) if self.average else current(table)

    def is_over(self, training: Training) -> bool:
        """Return whether training has had all its epochs, has converged or is out of patience."""
        done = training.epoch >= self.epochs or training.converged
        return done or self.is_out_of_patience(training)

    def is_out_of_patience(self, training: Training) -> bool:
        """Return whether the held-out score has not improved for ``patience`` epochs."""
        if not training.scores or self.patience is None:
            return False
        first_best = int(np.argmax(training.scores))
        return len(training.scores) - 1 - first_best >= self.patience

    def finish(self, training: Training, *, scored: bool) -> None:
        """Set the best weights to the last ones if no epoch was scored."""
        if training.best is None or not scored:
            training.best = self.kept(training.table)
            training.best_epoch = training.epoch


class Learner(Protocol):
    """What ``InTurn`` needs of an engine: that of a ``Machine``."""

    def new_run(self, dataset: Dataset, order: Array, table: WeightTable) -> Any:
        """Return working space for the largest of the given inputs."""

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, run: Any
    ) -> tuple[WeightTable, Any, int]:
        """Learn from the given examples in turn; return table and run as grown, and the errors."""


class Pass(Protocol):
    """One pass over the examples: ``InTurn``, or that of shards."""

    def __call__(
        self, dataset: Dataset, order: Array, training: Training
    ) -> Iterator[tuple[int, int]]:
        """Learn from the examples; yield how many are done, and how many of them had errors."""


class InTurn:
    """Learns from one example after the other."""

    def __init__(self, machine: Learner) -> None:
        self.machine = machine
        self.run: Any = None

    def __call__(
        self, dataset: Dataset, order: Array, training: Training
    ) -> Iterator[tuple[int, int]]:
        """Learn from the examples; yield how many are done, and how many of them had errors."""
        if self.run is None:
            self.run = self.machine.new_run(dataset, order, training.table)
        wrong = 0
        for first in range(0, len(order), CHUNK):
            part = order[first : first + CHUNK]
            training.table, self.run, errors = self.machine.learn(
                dataset, part, training.table, self.run
            )
            wrong += errors
            yield first + len(part), wrong


def train(
    one_pass: Pass,
    dataset: Dataset,
    training: Training,
    plan: Plan,
    *,
    score: Callable[[WeightTable], float] | None = None,
    progress: Callable[[Progress], None] | None = None,
    settle: Callable[[], None] = lambda: None,
) -> Training:
    """Continue ``training`` to the end of the plan; Ctrl-C ends it after the present examples.

    With ``score``, ``training.best`` has the weights of the best epoch (see ``Plan.average``), else
    those of the last. An interrupted epoch counts in the averages, and starts again when resumed.
    ``settle`` is called before the weights are used.
    """
    n = len(dataset.starts) - 1
    tell = progress or (lambda report: None)
    with _deferred_interrupt() as stop:
        try:
            while not plan.is_over(training):
                epoch = training.epoch + 1
                before = _updates(training)
                wrong = 0
                for done, wrong in one_pass(dataset, plan.order(epoch, n), training):
                    tell(Progress(epoch, plan.epochs, done, n, _updates(training), wrong / done))
                    stop()
                training.epoch = epoch
                training.converged = _updates(training) == before
                training.error_rate = wrong / max(1, n)
                settle()
                if score is not None:
                    kept = plan.kept(training.table)
                    training.judge(kept, score(kept))
                    rate, value = wrong / max(1, n), training.scores[-1]
                    tell(Progress(epoch, plan.epochs, n, n, _updates(training), rate, value))
                if plan.after is not None:
                    training.norm = math.sqrt(max(0.0, float(training.table.reals[at.SQUARE])))
                    plan.after(training, lambda: training.table)
                stop()
        except waiting.Abandoned:  # the weights may still change
            raise
        except KeyboardInterrupt:
            training.interrupted = True
            settle()
    plan.finish(training, scored=score is not None)
    return training


def _updates(training: Training) -> int:
    return int(training.table.ints[at.GENERATION]) - 1


@contextlib.contextmanager
def _deferred_interrupt() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C until the yielded function is called, so that no update is cut in two.

    A second Ctrl-C is not deferred. Outside the main thread there are no signals to defer.
    """
    asked = False

    def note(number: int, frame: Any) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        waiting.defer(asked=True)

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
        waiting.defer(asked=False)
        signal.signal(signal.SIGINT, before)
