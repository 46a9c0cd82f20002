"""Maximise the conditional likelihood: by gradient steps, or by L-BFGS."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from laso.engine import layout as at
from laso.engine.chains import chain_likelihood, chain_of
from laso.engine.lattice import layout as la
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import all_of, longer, mapped
from laso.engine.machine import parts as parts_of
from laso.engine.passes import InTurn, Plan, Training, train
from laso.engine.quasi_newton import descend, dot
from laso.engine.rows import SOME, dense_rows, is_sparse
from laso.engine.space import Space, fixed_gradient
from laso.training import Progress
from laso.updates import AdaGrad, Climb, Lbfgs

if TYPE_CHECKING:
    from laso.engine.exact import ExactMachine

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
        for some in np.array_split(behind, 1 + len(behind) // SOME):
            missed = (space.clock[0] - space.clocks[some]) * self.rule.prior(self.examples)
            size = np.sqrt(self.first + space.squares[some]) if self.adaptive else 1.0
            before = table.v[some]
            table.v[some] = before / (1.0 + missed[:, None] / size)
            table.u[some] += table.reals[at.SCALES] * (table.v[some] - before)
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


def measure(table: WeightTable) -> None:
    """Compute the squared norm of the weights, from which ALMA continues."""
    rows = int(table.ints[at.ROWS])
    square = 0.0
    for first in range(0, rows, SOME):
        some = slice(first, min(first + SOME, rows))
        found = dense_rows(table, np.arange(rows)[some]) if is_sparse(table) else table.v[some]
        weights = found.astype(np.float64)
        square += float(np.einsum("ij,ij->", weights, weights))  # vdot starts threads of BLAS
    table.reals[at.SQUARE] = table.reals[at.SCALE] ** 2 * square


# --------------------------------------------------------------------------- L-BFGS


def maximise(
    machine: ExactMachine,
    rule: Lbfgs,
    dataset: Dataset,
    training: Training,
    plan: Plan,
    *,
    threads: int = 1,
    score: Score | None = None,
    progress: Callback | None = None,
) -> Training:
    """Maximise the likelihood with its priors by L-BFGS, starting at the weights of ``training``.

    An epoch is an iteration. Ctrl-C ends the run with the best weights so far.
    """
    objective = Objective(machine, dataset, training.table, rule, threads)
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
    training.table = objective.finished(best)
    plan.finish(training, scored=score is not None)
    return training


class Objective:
    """The negative log-likelihood with its Gaussian prior, per example, by chosen weights."""

    def __init__(
        self, machine: ExactMachine, dataset: Dataset, table: WeightTable, rule: Lbfgs, threads: int
    ) -> None:
        order = all_of(dataset)
        self.machine, self.dataset, self.rule = machine, dataset, rule
        self.dtype, self.examples = table.v.dtype, max(1, len(order))
        self.table, self.chosen = self._supported(order, table)
        rows = int(self.table.ints[at.ROWS])
        self.weights = self.table.v[:rows].reshape(-1)
        self.start = self.weights[self.chosen]
        self.parts = parts_of(order, threads)
        self.spaces: dict[int, Space] = {}
        self.evaluations, self.wrong = 0, 0.0
        chain = chain_of(machine, dataset, machine.new_run(dataset, order, self.table))
        self.on_chains = None
        if chain is not None:
            self.on_chains = chain_likelihood(machine, chain, self.parts, rows, self.chosen)

    def _supported(self, order: Array, table: WeightTable) -> tuple[WeightTable, Array]:
        """Return a float64 table with rows for all supported features, and the variable weights."""
        rows = int(table.ints[at.ROWS])
        known = table.v[:rows] * table.reals[at.SCALE]
        work = table._replace(
            slots=table.slots.copy(),
            v=np.zeros(table.v.shape),
            u=np.zeros(table.v.shape),
            mark=np.full(len(table.v), -1, np.int64),
            ints=table.ints.copy(),
            reals=table.reals.copy(),
        )
        work.ints[at.GENERATION], work.ints[at.TICKS] = 1, 0
        work.reals[at.SCALE], work.reals[at.SCALES], work.reals[at.SQUARE] = 1.0, 0.0, 0.0
        space = self.machine.new_run(self.dataset, order, work)
        chosen = np.zeros((0, table.v.shape[1]), bool)
        for part, support in self._supports():
            mode = la.ALL_ROWS if support == "lattice" else la.GOOD_ROWS
            self.machine.likelihood(self.dataset, order, space, mode, part=part)
            chosen = longer(chosen, int(space.table.ints[at.ROWS]))
            gradient = space.gradient
            used = int(gradient.ints[la.USED_SLOTS])
            counts, seen = gradient.values[:used], gradient.rows[:used]
            occurs = counts != 0.0
            chosen[seen] |= occurs if support == "pairs" else occurs.any(axis=1, keepdims=True)
            gradient.values.fill(0.0)
        work = space.table
        work.v[:rows] = known
        # Weights from before stay variable.
        pairs = any(support == "pairs" for _, support in self._supports())
        chosen[:rows] |= known != 0.0 if pairs else True
        return work, np.flatnonzero(chosen)

    def _supports(self) -> list[tuple[int, str]]:
        """Return the support of each part of the features."""
        blocks, others = self.rule.support, self.rule.transitions or self.rule.support
        if blocks == others:
            return [(int(la.ALL_FEATURES), blocks)]
        return [(int(la.IN_BLOCKS), blocks), (int(la.OUTSIDE_BLOCKS), others)]

    def __call__(self, theta: Array) -> tuple[float, Array]:
        """Return the value and the gradient at these weights."""
        if self.on_chains is not None:
            logs, slopes = self.on_chains(theta)
            lost = np.flatnonzero(np.isnan(logs))  # left the range of floats
            if len(lost):
                logs[lost], more = self._on_lattices(theta, [lost])
                slopes += more
        else:
            logs, slopes = self._on_lattices(theta, self.parts)
        self.evaluations += 1
        self.wrong = float(np.mean(logs < math.log(0.5))) if len(logs) else 0.0
        variance, n = self.rule.variance, self.examples
        value = (dot(theta, theta) / (2.0 * variance) - logs.sum()) / n
        return float(value), (theta / variance - slopes) / n

    def _on_lattices(self, theta: Array, parts: list[Array]) -> tuple[Array, Array]:
        """Return log p(y | x) of each example of some parts, and the gradient of their sum."""
        self.weights[self.chosen] = theta
        self.table.ints[at.GENERATION] += 1  # so that no sum of old weights is used again
        rows = int(self.table.ints[at.ROWS])
        for number, part in enumerate(parts):
            if number not in self.spaces or self.on_chains is not None:
                space = self.machine.new_run(self.dataset, part, self.table)
                space.gradient = fixed_gradient(space.run, rows)
                self.spaces[number] = space
        self.table.mark[:] = np.arange(len(self.table.mark))

        def logs_of(number: int) -> Array:
            space = self.spaces[number]
            space.gradient.values.fill(0.0)
            return self.machine.likelihood(self.dataset, parts[number], space, la.FIXED_ROWS)

        numbers = list(range(len(parts)))
        logs = np.concatenate(mapped(logs_of, numbers))
        slopes = np.sum([self.spaces[number].gradient.values for number in numbers], axis=0)
        return logs, slopes.reshape(-1)[self.chosen]

    def finished(self, theta: Array) -> WeightTable:
        """Return a table with these weights, to score or to continue training with."""
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
        measure(made)
        return made
