"""Exact search where a problem promises chains: no lattice is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.lattice.chain_layout import LANES, ChainRow, ChainSearch
from laso.engine.lattice.layout import Paths
from laso.engine.lattice.space import Space, grow
from laso.engine.layout import Array, Dataset, Run, WeightTable
from laso.engine.machine import sizes
from laso.engine.memory_limit import check_room

if TYPE_CHECKING:
    from laso.engine.lattice.exact import ExactMachine


def new_chain_search(run: Run, table: WeightTable, longest: int) -> ChainSearch:
    """Return working space for inputs of at most ``longest`` items."""
    labels = table.v.shape[1]
    width = -(-labels // LANES) * LANES
    check_pairs(width, table.v.itemsize + 24)
    return ChainSearch(
        states=np.zeros((2, run.states.shape[1]), np.int32),
        transitions=np.zeros((labels + 1, labels), table.v.dtype),
        values=np.zeros((longest + 1, labels)),
        factors=np.zeros((2, width, width)),
        transposed=np.zeros((width, width)),
        raised=np.zeros((longest, width)),
        alphas=np.zeros((longest, width)),
        scales=np.zeros(longest),
        rows=np.zeros((len(ChainRow), width)),
    )


def check_pairs(labels: int, item: float) -> None:
    """Raise OutOfMemory if there is no room for ``item`` bytes for each pair of labels."""
    check_room(
        item * labels * labels,
        f"exact search over all pairs of {labels} labels",
        "fewer labels, or a beam instead of exact()",
    )


def decode_chains(
    machine: ExactMachine, dataset: Dataset, order: Array, space: Space, paths: Paths
) -> None:
    """Append the best path of each given input; where there are several, the lattice's first."""
    work = new_chain_search(space.run, space.table, _longest(dataset, order))
    done = 0
    while done < len(order):
        n, status = machine.kernels(
            "best_chains", dataset, order[done:], space.table, space.run, work, paths
        )
        done += n
        if status == at.NO_CHAIN:
            machine.drive("best_many", dataset, order[done : done + 1], space, lambda _: paths)
            done += 1
        elif status != at.DONE:
            grow(space, status, machine.problem, dataset, int(order[done]))


def chain_probabilities(
    machine: ExactMachine, dataset: Dataset, order: Array, table: WeightTable
) -> Array:
    """Return the probability of each label at each item of the inputs, end to end."""
    lengths = sizes(dataset, order)
    ends = np.cumsum(lengths)
    space = machine.new_run(dataset, order, table)
    table = space.table  # with dense rows
    probabilities = np.zeros((int(lengths.sum()), table.v.shape[1]))
    work = new_chain_search(space.run, table, _longest(dataset, order))
    done = 0
    while done < len(order):
        first = int(ends[done] - lengths[done])
        arguments: Any = (dataset, order[done:], table, space.run, work, probabilities[first:])
        n, status = machine.kernels("chain_probabilities", *arguments)
        done += n
        if status == at.NO_CHAIN:
            one = slice(int(ends[done] - lengths[done]), int(ends[done]))
            probabilities[one] = machine.summed_marginals(dataset, order[done : done + 1], table)
            done += 1
        elif status != at.DONE:
            grow(space, status, machine.problem, dataset, int(order[done]))
    return probabilities


def _longest(dataset: Dataset, order: Array) -> int:
    return int(sizes(dataset, order).max(initial=0))
