"""Exact search where a problem promises chains: no lattice is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.lattice.chain_layout import LANES, ChainRow, ChainSearch
from laso.engine.lattice.layout import Paths
from laso.engine.lattice.space import SMALLER, Space, grow
from laso.engine.layout import Array, Dataset, Run, WeightTable
from laso.engine.machine import sizes
from laso.engine.memory_limit import new_arrays

if TYPE_CHECKING:
    from laso.engine.lattice.exact import ExactMachine


def new_chain_search(run: Run, table: WeightTable, longest: int) -> ChainSearch:
    """Return working space for inputs of at most ``longest`` items."""
    labels = table.v.shape[1]
    width = -(-labels // LANES) * LANES
    real = np.float64
    shapes: dict[str, tuple[tuple[int, ...], Any]] = {
        "states": ((2, run.states.shape[1]), np.int32),
        "transitions": ((labels + 1, labels), table.v.dtype),
        "values": ((longest + 1, labels), real),
        "factors": ((2, width, width), real),
        "transposed": ((width, width), real),
        "raised": ((longest, width), real),
        "alphas": ((longest, width), real),
        "scales": ((longest,), real),
        "rows": ((len(ChainRow), width), real),
    }
    return ChainSearch(**new_arrays(shapes, pairs_of(labels), SMALLER))


def pairs_of(labels: int) -> str:
    """Return what takes memory with the square of the number of labels."""
    return f"exact search over all pairs of {labels} labels"


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
