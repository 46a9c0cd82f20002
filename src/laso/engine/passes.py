"""Passes over a corpus with the compiled engine: epochs, progress, held-out score, interruption."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import Machine, averaged

CHUNK = 256  # examples between two chances to report and to be interrupted


@dataclass(frozen=True)
class Report:
    """What the ``progress`` callback is told, after every few examples and at each epoch's end."""

    epoch: int
    epochs: int
    example: int
    examples: int
    updates: int
    error_rate: float
    score: float | None = None  # of the averaged weights on held-out data, at an epoch's end


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


@dataclass(frozen=True)
class Plan:
    """How long to train and in what order."""

    epochs: int = 10
    seed: int | None = 0
    patience: int | None = None  # stop after so many epochs without a better held-out score

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ValueError(f"epochs must be at least 1, found {self.epochs}")
        if self.patience is not None and self.patience < 1:
            raise ValueError(f"patience must be at least 1, found {self.patience}")

    def order(self, epoch: int, n: int) -> Array:
        """The order of an epoch: a function of seed and epoch, so that a run can be resumed."""
        visit = list(range(n))
        if self.seed is not None:
            random.Random(f"{self.seed}/{epoch}").shuffle(visit)
        return np.array(visit, np.int64)


def train(
    machine: Machine,
    corpus: Corpus,
    training: Training,
    plan: Plan,
    *,
    score: Callable[[Table], float] | None = None,
    progress: Callable[[Report], None] | None = None,
) -> Training:
    """Go on from ``training`` to the end of the plan; Ctrl-C ends it after the present examples.

    With ``score``, the averaged weights of the best epoch are kept in ``training.best``; without,
    those of the last. An interrupted epoch counts in the averages, and is begun anew if resumed.
    """
    n = len(corpus.starts) - 1
    run = None
    while training.epoch < plan.epochs and not training.converged:
        epoch = training.epoch + 1
        order = plan.order(epoch, n)
        if run is None:
            run = machine.new_run(corpus, order, training.table)
        before = int(training.table.ints[at.GENERATION])
        wrong = 0
        try:
            for first in range(0, n, CHUNK):
                part = order[first : first + CHUNK]
                training.table, run, errors = machine.learn(corpus, part, training.table, run)
                wrong += errors
                if progress is not None:
                    done = first + len(part)
                    updates = int(training.table.ints[at.GENERATION]) - 1
                    progress(Report(epoch, plan.epochs, done, n, updates, wrong / done))
        except KeyboardInterrupt:
            training.interrupted = True
            break
        training.epoch = epoch
        training.converged = int(training.table.ints[at.GENERATION]) == before
        if score is not None:
            average = averaged(training.table)
            training.scores.append(score(average))
            if training.scores[-1] > training.best_score:
                training.best_score, training.best_epoch = training.scores[-1], epoch
                training.best = average
            if progress is not None:
                updates = int(training.table.ints[at.GENERATION]) - 1
                rate = wrong / max(1, n)
                progress(Report(epoch, plan.epochs, n, n, updates, rate, training.scores[-1]))
            if plan.patience is not None and epoch - training.best_epoch >= plan.patience:
                break
    if training.best is None or score is None:
        training.best = averaged(training.table)
        training.best_epoch = training.epoch
    return training
