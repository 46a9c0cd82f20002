"""The gradients of L-BFGS on joblib's workers: each computes those of its part of the examples.

Workers of other processes read the examples, the weight table and the variables from files. A
worker prepares a part once and keeps it; another one, which gets the part after a loss, does the
same again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import laso
from laso.engine.lattice.objective import Evaluate, PartLikelihood, Slope, VariableWeights
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import all_of
from laso.engine.machine import parts as parts_of
from laso.engine.parallel.array_files import ArrayFile, InFiles, in_file, in_files
from laso.engine.parallel.workers import Workers, shared_folder, telling
from laso.engine.weights.row_layouts import new_rows
from laso.files.atomic import naming
from laso.locks import own_lock

if TYPE_CHECKING:
    from laso.engine.lattice.exact import ExactMachine


class ZeroWeights(NamedTuple):
    """The weight table of an objective without its weights: the variables, which follow."""

    slots: Array
    ints: Array
    reals: Array
    chosen: Array
    n_labels: int
    n_rows: int

    def table(self) -> VariableWeights:
        """Return the table with weights of zero."""
        rows = new_rows(self.n_rows, self.n_labels, np.float64, sparse=False)
        mark, ints, reals = np.full(self.n_rows, -1), self.ints.copy(), self.reals.copy()
        table = WeightTable(self.slots, mark=mark, ints=ints, reals=reals, **rows)
        return VariableWeights(table, self.chosen)


@dataclass(frozen=True)
class Part:
    """A part of the examples, from the first to the one before the end."""

    machine: ExactMachine
    data: InFiles[Dataset]
    weights: InFiles[ZeroWeights]
    first: int
    end: int
    version: str

    def __call__(self, theta: ArrayFile, number: int) -> Slope:
        """Return the log-likelihood and its gradient at the variables of an evaluation."""
        with telling(self.version, self.end - self.first):
            slope = self._prepared()(np.array(theta.opened()), number)
            where = np.flatnonzero(slope.values)
            if 2 * len(where) > len(slope.values):
                return slope
            return Slope(slope.logs, where, slope.values[where])

    def _prepared(self) -> PartLikelihood:
        """Return the likelihood of the part, which this process keeps."""
        with _lock:
            if self.weights not in _weights:
                _weights.clear()  # what another training has left
                _parts.clear()
                _weights[self.weights] = self.weights.opened().table()
            key = self.first, self.end
            if key not in _parts:
                order, weights = np.arange(self.first, self.end), _weights[self.weights]
                data = self.data.opened()
                _parts[key] = PartLikelihood(self.machine, data, order, weights)
            return _parts[key]


_weights: dict[InFiles[ZeroWeights], VariableWeights] = {}
_parts: dict[tuple[int, int], PartLikelihood] = {}
_lock = own_lock()


class OnWorkers:
    """Evaluates the likelihood of parts of the examples; with a folder, in other processes."""

    def __init__(self, workers: Workers, shards: int, folder: Path | None) -> None:
        self.workers, self.shards, self.folder = workers, shards, folder
        self.traffic: list[tuple[int, int]] = []  # bytes to and from workers, of each evaluation

    def __call__(
        self, machine: ExactMachine, dataset: Dataset, weights: VariableWeights
    ) -> Evaluate:
        """Return a function of the variables."""
        orders = parts_of(all_of(dataset), self.shards)
        if self.folder is None:
            parts = [PartLikelihood(machine, dataset, order, weights) for order in orders]

            def evaluate(theta: Array, number: int) -> Iterator[Slope]:
                jobs = [(part, theta, number) for part in parts]
                return self._counted(jobs, theta.nbytes * len(parts))

            return evaluate
        return self._remote(machine, in_files(dataset, self.folder), orders, weights)

    def _remote(
        self,
        machine: ExactMachine,
        data: InFiles[Dataset],
        orders: list[Array],
        weights: VariableWeights,
    ) -> Evaluate:
        folder = self.folder
        assert folder is not None
        table = weights.table
        zero = ZeroWeights(
            *(table.slots, table.ints, table.reals, weights.chosen),
            n_labels=table.v.shape[1],
            n_rows=weights.rows,
        )
        files = in_files(zero, folder)
        ends = np.cumsum([len(order) for order in orders]).tolist()
        parts = [
            Part(machine, data, files, end - len(order), end, laso.__version__)
            for order, end in zip(orders, ends, strict=True)
        ]

        def evaluate(theta: Array, number: int) -> Iterator[Slope]:
            path = folder / f"variables-{number}"
            with naming(folder.parent):
                file = in_file(theta, path)
            jobs = [(part, file, number) for part in parts]
            try:
                yield from self._counted(jobs, theta.nbytes * min(len(parts), self.workers.count))
            finally:
                path.unlink(missing_ok=True)

        return evaluate

    def _counted(self, jobs: Sequence[tuple[object, ...]], sent: int) -> Iterator[Slope]:
        received = 0
        for slope in self.workers.run(_call, jobs):
            received += slope.nbytes
            yield slope
        self.traffic.append((sent, received))


def _call(part: Part | PartLikelihood, theta: ArrayFile | Array, number: int) -> Slope:
    return part(theta, number)  # type: ignore[arg-type]


@contextmanager
def gradients_on(workers: Workers, shards: int, dataset: Dataset) -> Iterator[OnWorkers]:
    """Give the evaluation of the likelihood in shards, on workers that stay until its end."""
    with ExitStack() as stack:
        stack.enter_context(workers)
        yield OnWorkers(workers, shards, stack.enter_context(shared_folder(workers, dataset)))
