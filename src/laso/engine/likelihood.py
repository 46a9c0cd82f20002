"""Climb the conditional likelihood of an exact search: step by step, or to its maximum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from laso.engine import lattice as la
from laso.engine import layout as at
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import SOME, all_of, longer, mapped
from laso.engine.machine import parts as parts_of
from laso.engine.passes import Plan, Training, train
from laso.engine.space import Space, fixed_gradient
from laso.training import Progress
from laso.updates import AdaGrad, Climb, Lbfgs

if TYPE_CHECKING:
    from laso.engine.exact import ExactMachine

Score = Callable[[Table], float]
Callback = Callable[[Progress], None]


# --------------------------------------------------------------------------- step by step


def climb(
    machine: ExactMachine,
    rule: Climb,
    corpus: Corpus,
    training: Training,
    plan: Plan,
    *,
    score: Score | None = None,
    progress: Callback | None = None,
) -> Training:
    """``passes.train`` up the likelihood.

    An example counts as an error while its output has less than half of the probability.
    """
    climber = Climber(machine, rule, training, plan.average, len(corpus.starts) - 1)
    return train(
        climber, corpus, training, plan, score=score, progress=progress, settle=climber.settle
    )


class Climber:
    """What ``passes.train`` takes for a machine."""

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

    def new_run(self, corpus: Corpus, order: Array, table: Table) -> Space:
        """Working space, with what past steps have left."""
        space = self.space = self.machine.new_run(corpus, order, table)
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
        self, corpus: Corpus, order: Array, table: Table, space: Space
    ) -> tuple[Table, Space, int]:
        """A step for every batch of the examples named."""
        space.table = table
        logs = self.machine.likelihood(corpus, order, space, la.STEP, self)
        return space.table, space, int((logs < math.log(0.5)).sum())

    def settle(self) -> None:
        """Let the prior pull at the rows that have missed steps, as lattice.ascend does."""
        space = self.space
        if space is None:
            return
        # After an interruption it may be newer than what the training knows.
        table = self.training.table = space.table
        rows = int(table.ints[at.ROWS])
        behind = np.flatnonzero(space.clocks[:rows] < space.clock[0])
        for some in np.array_split(behind, 1 + len(behind) // SOME):
            missed = (space.clock[0] - space.clocks[some]) * self.rule.prior(self.examples)
            size = np.sqrt(self.first + space.squares[some]) if self.adaptive else 1.0
            before = table.v[some]
            table.v[some] = before / (1.0 + missed[:, None] / size)
            table.u[some] += table.reals[at.SCALES] * (table.v[some] - before)
        space.clocks[:rows] = space.clock[0]
        self.training.clock = float(space.clock[0])
        self.training.squares = space.squares[:rows] if self.adaptive else None
        _measure(table)


def _forget_average(table: Table) -> None:
    """Go on from the present weights alone."""
    table.v[:] *= table.v.dtype.type(table.reals[at.SCALE])
    table.u.fill(0.0)
    table.reals[at.SCALE], table.reals[at.SCALES] = 1.0, 0.0
    table.ints[at.TICKS] = 0


def _measure(table: Table) -> None:
    """Note the squared length of the weights, which learning by ALMA goes on from."""
    rows = int(table.ints[at.ROWS])
    square = 0.0
    for first in range(0, rows, SOME):
        weights = table.v[first : min(first + SOME, rows)].astype(np.float64)
        square += float(np.vdot(weights, weights))
    table.reals[at.SQUARE] = table.reals[at.SCALE] ** 2 * square


# --------------------------------------------------------------------------- to the maximum


class Enough(Exception):
    """The held-out score has not become better for long."""


def maximise(
    machine: ExactMachine,
    rule: Lbfgs,
    corpus: Corpus,
    training: Training,
    plan: Plan,
    *,
    threads: int = 1,
    score: Score | None = None,
    progress: Callback | None = None,
) -> Training:
    """To the maximum of the likelihood with its prior, from the weights of ``training`` on.

    An epoch is an iteration. Ctrl-C ends it with the best weights so far.
    """
    from scipy.optimize import minimize

    objective = Objective(machine, corpus, training.table, rule, threads)
    best, n = objective.start, len(corpus.starts) - 1

    def after(theta: Array) -> None:
        nonlocal best
        best = theta.copy()
        training.epoch += 1
        value = None
        if score is not None:
            kept = plan.kept(objective.finished(best))
            value = score(kept)
            training.judge(kept, value)
        if progress is not None:
            done, wrong = objective.evaluations, objective.wrong
            epochs, reached = plan.epochs, objective.value
            progress(Progress(training.epoch, epochs, n, n, done, wrong, value, reached))
        training.table = objective.finished(best)
        plan.after(training)
        if plan.is_over(training):
            raise Enough

    options = {
        "maxiter": plan.epochs - training.epoch,
        "maxfun": 10 * plan.epochs,
        "maxcor": rule.memory,
        "gtol": rule.tolerance,
        "ftol": 1e-13,
    }
    try:
        minimize(objective, best, jac=True, method="L-BFGS-B", callback=after, options=options)
    except KeyboardInterrupt:
        training.interrupted = True
    except Enough:
        pass
    _, slopes = objective(best)
    training.converged = float(np.abs(slopes).max(initial=0.0)) <= rule.tolerance
    training.table = objective.finished(best)
    plan.finish(training, scored=score is not None)
    return training


class Objective:
    """The likelihood with its prior, per example and negated, as a function of chosen weights."""

    def __init__(
        self, machine: ExactMachine, corpus: Corpus, table: Table, rule: Lbfgs, threads: int
    ) -> None:
        order = all_of(corpus)
        self.machine, self.corpus, self.rule = machine, corpus, rule
        self.dtype, self.examples = table.v.dtype, max(1, len(order))
        self.table, self.chosen = self._supported(order, table)
        rows = int(self.table.ints[at.ROWS])
        self.weights = self.table.v[:rows].reshape(-1)
        self.start = self.weights[self.chosen]
        self.parts = parts_of(order, threads)
        self.spaces = [machine.new_run(corpus, part, self.table) for part in self.parts]
        for space in self.spaces:
            space.gradient = fixed_gradient(space.run, rows)
        self.table.mark[:] = np.arange(len(self.table.mark))
        self.evaluations, self.value, self.wrong = 0, 0.0, 0.0

    def _supported(self, order: Array, table: Table) -> tuple[Table, Array]:
        """A table of float64 with rows for all features wanted, and which weights are variable."""
        rows, support = int(table.ints[at.ROWS]), self.rule.support
        known = table.v[:rows] * table.reals[at.SCALE]
        work = table._replace(
            slots=table.slots.copy(),
            v=np.zeros(table.v.shape),
            u=np.zeros(table.v.shape),
            mark=np.full(len(table.v), -1, np.int64),
            ints=np.array([rows, 1, 0, table.ints[at.BITS]], np.int64),
            reals=np.array([1.0, 0.0, 0.0, table.reals[at.MARGIN]]),
        )
        space = self.machine.new_run(self.corpus, order, work)
        mode = la.ALL_ROWS if support == "lattice" else la.GOOD_ROWS
        self.machine.likelihood(self.corpus, order, space, mode)
        work, used = space.table, int(space.gradient.ints[la.SLOTS])
        work.v[:rows] = known
        chosen = np.ones((int(work.ints[at.ROWS]), work.v.shape[1]), bool)
        if support == "pairs":
            chosen[:] = False
            chosen[space.gradient.rows[:used]] = space.gradient.values[:used] != 0.0
            chosen[:rows] |= known != 0.0
        return work, np.flatnonzero(chosen)

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Its value at these weights, and its slopes."""
        self.weights[self.chosen] = theta
        self.table.ints[at.GENERATION] += 1  # so that no sum of old weights is used again
        logs = np.concatenate(mapped(self._part, list(range(len(self.parts)))))
        slopes = np.sum([space.gradient.values for space in self.spaces], axis=0)
        self.evaluations += 1
        self.wrong = float(np.mean(logs < math.log(0.5))) if len(logs) else 0.0
        variance, n = self.rule.variance, self.examples
        self.value = (logs.sum() - theta @ theta / (2.0 * variance)) / n
        return -self.value, (theta / variance - slopes.reshape(-1)[self.chosen]) / n

    def _part(self, number: int) -> Array:
        space = self.spaces[number]
        space.gradient.values.fill(0.0)
        return self.machine.likelihood(self.corpus, self.parts[number], space, la.FIXED)

    def finished(self, theta: Array) -> Table:
        """A table of its own with these weights, to score or to go on learning with."""
        self.weights[self.chosen] = theta
        table = self.table
        made = table._replace(
            slots=table.slots.copy(),
            v=table.v.astype(self.dtype),
            u=np.zeros(table.v.shape, self.dtype),
            mark=np.full(len(table.v), -1, np.int64),
            ints=table.ints.copy(),
            reals=table.reals.copy(),
        )
        _measure(made)
        return made
