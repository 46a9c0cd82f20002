"""The objective of L-BFGS: the likelihood with its prior, summed over parts of the examples.

Each part gives the log-likelihood of its examples and the gradient; the sums are taken in the order
of the parts. So the result depends on the number of parts, and not on where they were computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from laso.engine import layout as at
from laso.engine.lattice import layout as la
from laso.engine.lattice.chain_likelihood import chain_likelihood, chain_of
from laso.engine.lattice.quasi_newton import dot
from laso.engine.lattice.space import Space, fixed_gradient
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import all_of, longer, mapped
from laso.engine.machine import parts as parts_of
from laso.engine.weights.row_layouts import measure
from laso.locks import own_lock
from laso.updates import Lbfgs

if TYPE_CHECKING:
    from laso.engine.lattice.exact import ExactMachine


class VariableWeights:
    """A float64 weight table, some weights of which are the variables; all others are zero."""

    def __init__(self, table: WeightTable, chosen: Array) -> None:
        self.table, self.chosen = table, chosen  # the flat numbers of the variables
        self.rows = int(table.ints[at.ROWS])
        self.values = table.v[: self.rows].reshape(-1)
        self._lock, self._number = own_lock(), -1

    def set(self, theta: Array, number: int) -> None:
        """Write the values of an evaluation, unless another part has done so; -1: of none."""
        with self._lock:
            if number < 0 or number != self._number:
                self.values[self.chosen] = theta
                self.table.ints[at.GENERATION] += 1  # so that no sum of old weights is used again
                self._number = number


class Slope(NamedTuple):
    """What a part of the examples gives."""

    logs: Array  # log p(y | x) of each example
    where: Array | None  # the variables that have a gradient; None: all
    values: Array  # the gradient of the sum of the logs

    @property
    def nbytes(self) -> int:
        """The size of the arrays, which travel from a worker."""
        return sum(each.nbytes for each in self if each is not None)


Evaluate: TypeAlias = Callable[[Array, int], Iterable[Slope]]
"""Returns the slopes of all parts in their order, given the variables and the evaluation's number.
"""

Evaluator: TypeAlias = "Callable[[ExactMachine, Dataset, VariableWeights], Evaluate]"


class PartLikelihood:
    """The log-likelihood of some examples, and its gradient, by the variable weights."""

    def __init__(
        self, machine: ExactMachine, dataset: Dataset, order: Array, weights: VariableWeights
    ) -> None:
        self.machine, self.dataset, self.order, self.weights = machine, dataset, order, weights
        self._mark = np.arange(len(weights.table.mark))  # its own, since parts run at once
        space = machine.new_run(dataset, order, self._table())
        chain = chain_of(machine, dataset, order, space)
        self.on_chains = None
        if chain is not None:
            self.on_chains = chain_likelihood(chain, weights.rows, weights.chosen)
        self._space: Space | None = None

    def _table(self) -> WeightTable:
        return self.weights.table._replace(mark=self._mark)

    def __call__(self, theta: Array, number: int) -> Slope:
        """Return the value and the gradient at these weights."""
        if self.on_chains is None:
            logs, slopes = self._on_lattices(theta, number, self.order)
            return Slope(logs, None, slopes)
        logs, slopes = self.on_chains(theta)
        lost = np.flatnonzero(np.isnan(logs))  # left the range of floats
        if len(lost):
            logs[lost], more = self._on_lattices(theta, number, self.order[lost])
            slopes += more
        return Slope(logs, None, slopes)

    def _on_lattices(self, theta: Array, number: int, order: Array) -> tuple[Array, Array]:
        """Return log p(y | x) of some examples, and the gradient of their sum."""
        self.weights.set(theta, number)
        if self._space is None or order is not self.order:
            self._space = self.machine.new_run(self.dataset, order, self._table())
            self._space.gradient = fixed_gradient(self._space.run, self.weights.rows)
        space = self._space
        space.table.mark[:] = np.arange(len(space.table.mark))
        space.gradient.values.fill(0.0)
        logs = self.machine.likelihood(self.dataset, order, space, la.FIXED_ROWS)
        return logs, space.gradient.values.reshape(-1)[self.weights.chosen]


def in_threads(threads: int) -> Evaluator:
    """Divide the examples into as many parts as there are threads."""

    def evaluator(machine: ExactMachine, dataset: Dataset, weights: VariableWeights) -> Evaluate:
        orders = parts_of(all_of(dataset), threads)
        parts = [PartLikelihood(machine, dataset, order, weights) for order in orders]
        return lambda theta, number: mapped(lambda part: part(theta, number), parts)

    return evaluator


class Objective:
    """The negative log-likelihood with its Gaussian prior, per example, by chosen weights."""

    def __init__(
        self,
        machine: ExactMachine,
        dataset: Dataset,
        table: WeightTable,
        rule: Lbfgs,
        evaluator: Evaluator,
    ) -> None:
        self.machine, self.rule = machine, rule
        self.dtype, self.examples = table.v.dtype, max(1, len(dataset.starts) - 1)
        self.weights = VariableWeights(*self._supported(dataset, table))
        self.start = self.weights.values[self.weights.chosen]
        self.evaluate = evaluator(machine, dataset, self.weights)
        self.evaluations, self.wrong = 0, 0.0

    def _supported(self, dataset: Dataset, table: WeightTable) -> tuple[WeightTable, Array]:
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
        order = all_of(dataset)
        space = self.machine.new_run(dataset, order, work)
        chosen = np.zeros((0, table.v.shape[1]), bool)
        for part, support in self._supports():
            mode = la.ALL_ROWS if support == "lattice" else la.GOOD_ROWS
            self.machine.likelihood(dataset, order, space, mode, part=part)
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
        logs, slopes = [], np.zeros(len(theta))
        for part in self.evaluate(theta, self.evaluations):
            logs.append(part.logs)
            if part.where is None:
                slopes += part.values
            else:
                slopes[part.where] += part.values
        log_likelihoods = np.concatenate(logs)
        self.evaluations += 1
        self.wrong = (
            float(np.mean(log_likelihoods < math.log(0.5))) if len(log_likelihoods) else 0.0
        )
        variance, n = self.rule.variance, self.examples
        value = (dot(theta, theta) / (2.0 * variance) - log_likelihoods.sum()) / n
        return float(value), (theta / variance - slopes) / n

    def finished(self, theta: Array) -> WeightTable:
        """Return a table with these weights, to score or to continue training with."""
        self.weights.set(theta, -1)
        table = self.weights.table
        finished = table._replace(
            slots=table.slots.copy(),
            v=table.v.astype(self.dtype),
            u=np.zeros(table.v.shape, self.dtype),
            mark=np.full(len(table.v), -1, np.int64),
            ints=table.ints.copy(),
            reals=table.reals.copy(),
        )
        measure(finished)
        return finished
