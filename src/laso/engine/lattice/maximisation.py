"""Maximise the conditional likelihood: by gradient steps, or by L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from laso.engine import layout as at
from laso.engine.epochs import InTurn, Plan, Training, train
from laso.engine.lattice import layout as la
from laso.engine.lattice.objective import Evaluator, Objective
from laso.engine.lattice.quasi_newton import descend, dot
from laso.engine.lattice.space import Space
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import longer
from laso.engine.weights.row_layouts import ROWS_AT_A_TIME, measure
from laso.training import Progress
from laso.updates import AdaGrad, Climb, Lbfgs

if TYPE_CHECKING:
    from laso.engine.lattice.exact import ExactMachine

Score = Callable[[WeightTable], float]
Callback = Callable[[Progress], None]


# --------------------------------------------------------------------------- gradient steps


def climb(
    machine: ExactMachine,
    rule: Climb,
    dataset: Dataset,
    training: Training,
    plan: Plan,
    *,
    score: Score | None = None,
    progress: Callback | None = None,
) -> Training:
    """Train by gradient steps on the likelihood (see ``passes.train``).

    An example counts as an error while its output has less than half of the probability.
    """
    climber = Climber(machine, rule, training, plan.average, len(dataset.starts) - 1)
    one_pass = InTurn(climber)
    return train(
        one_pass, dataset, training, plan, score=score, progress=progress, settle=climber.settle
    )


class Climber:
    """Gradient steps, in the form that ``passes.train`` expects of a machine."""

    def __init__(
        self,
        machine: ExactMachine,
        rule: Climb,
        training: Training,
        average: bool,
        examples: int,
    ) -> None:
        self.machine, self.rule, self.training = machine, rule, training
        self.average, self.examples = average, examples
        self.adaptive = isinstance(rule, AdaGrad)
        self.first = rule.first if isinstance(rule, AdaGrad) else 1.0
        self.space: Space | None = None
        self.total = 0.0  # the log-likelihood of this epoch's examples

    def new_run(self, dataset: Dataset, order: Array, table: WeightTable) -> Space:
        """Return working space with the state of past steps."""
        space = self.space = self.machine.new_run(dataset, order, table)
        if not self.average:
            _forget_average(table)
        past = self.training.squares
        if self.adaptive:
            empty = np.zeros((0, table.v.shape[1]), table.v.dtype)
            space.squares = longer(empty if past is None else past, len(table.v))
        space.clock[0] = self.training.clock
        space.clocks = np.full(len(table.v), self.training.clock)
        return space

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, space: Space
    ) -> tuple[WeightTable, Space, int]:
        """Take a step for every batch of the given examples."""
        space.table = table
        logs = self.machine.likelihood(dataset, order, space, la.GRADIENT_STEP, self)
        self.total += float(logs.sum())
        return space.table, space, int((logs < math.log(0.5)).sum())

    def settle(self) -> None:
        """Apply the prior to the rows that have missed steps, as ``lattice.ascend`` does."""
        space = self.space
        if space is None:
            return
        # After an interruption it may be newer than what the training knows.
        table = self.training.table = space.table
        rows = int(table.ints[at.ROWS])
        behind = np.flatnonzero(space.clocks[:rows] < space.clock[0])
        for batch in np.array_split(behind, 1 + len(behind) // ROWS_AT_A_TIME):
            missed = (space.clock[0] - space.clocks[batch]) * self.rule.prior(self.examples)
            size = np.sqrt(self.first + space.squares[batch]) if self.adaptive else 1.0
            before = table.v[batch]
            table.v[batch] = before / (1.0 + missed[:, None] / size)
            table.u[batch] += table.reals[at.SCALES] * (table.v[batch] - before)
        space.clocks[:rows] = space.clock[0]
        self.training.clock = float(space.clock[0])
        self.training.squares = space.squares[:rows] if self.adaptive else None
        measure(table)
        penalty = float(table.reals[at.SQUARE]) / (2.0 * self.rule.variance)
        self.training.objective = (self.total - penalty) / max(1, self.examples)
        self.total = 0.0


def _forget_average(table: WeightTable) -> None:
    """Drop the running sum; continue from the present weights."""
    table.v[:] *= table.v.dtype.type(table.reals[at.SCALE])
    table.u.fill(0.0)
    table.reals[at.SCALE], table.reals[at.SCALES] = 1.0, 0.0
    table.ints[at.TICKS] = 0


# --------------------------------------------------------------------------- L-BFGS


def maximise(
    machine: ExactMachine,
    rule: Lbfgs,
    dataset: Dataset,
    training: Training,
    plan: Plan,
    *,
    evaluator: Evaluator,
    score: Score | None = None,
    progress: Callback | None = None,
) -> Training:
    """Maximise the likelihood with its priors by L-BFGS, starting at the weights of ``training``.

    An epoch is an iteration. Ctrl-C ends the run with the best weights so far. ``evaluator`` says
    where the gradients of the parts of the examples are computed.
    """
    objective = Objective(machine, dataset, training.table, rule, evaluator)
    best, n = objective.start, len(dataset.starts) - 1
    values: list[float] = []
    training.converged = False
    l1 = rule.l1 / objective.examples
    try:
        for point in descend(objective, best, l1=l1, memory=rule.memory):
            best = point.x
            training.converged = rule.has_converged(point.slope, values, point.value)
            if values:
                training.epoch += 1
                training.error_rate, training.objective = objective.wrong, -point.value
                value = None
                if score is not None:
                    kept = plan.kept(objective.finished(best))
                    value = score(kept)
                    training.judge(kept, value)
                if progress is not None:
                    done, wrong, reached = objective.evaluations, objective.wrong, -point.value
                    epoch, epochs = training.epoch, plan.epochs
                    progress(Progress(epoch, epochs, n, n, done, wrong, value, reached))
                if plan.after is not None:
                    training.norm = math.sqrt(dot(best, best))
                    training.active = int(np.count_nonzero(best))
                    plan.after(training, partial(objective.finished, best))
            values.append(point.value)
            if plan.is_over(training):
                break
    except KeyboardInterrupt:
        training.interrupted = True
    finally:  # also if workers are lost
        training.table = objective.finished(best)
    plan.finish(training, scored=score is not None)
    return training
