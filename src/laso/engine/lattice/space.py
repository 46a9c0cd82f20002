"""The working space of exact search, and how it grows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.failures import failure
from laso.engine.lattice import layout as la
from laso.engine.lattice.layout import Gradient, Lattice
from laso.engine.layout import Array, Dataset, Run, WeightTable
from laso.engine.machine import grown_table, longer
from laso.engine.memory_limit import check_room, new_arrays
from laso.engine.problem import CompiledProblem
from laso.errors import SearchFailed


@dataclass
class Space:
    """The arrays of the kernels. The table is the newest one, should a call be interrupted."""

    table: WeightTable
    run: Run
    lattice: Lattice
    gradient: Gradient
    squares: Array
    clocks: Array
    clock: Array


SMALLER = "shorter inputs, fewer labels or paths, or a beam instead of exact()"


def new_lattice(run: Run, *, lists: int, nodes: int, edges: int) -> Lattice:
    """Return room for a lattice whose nodes keep ``lists`` paths."""
    slots = 1 << (2 * nodes - 1).bit_length()
    rounds = len(run.agenda) - at.EXTRA_LISTS
    long, real = np.int64, np.float64
    shapes: dict[str, tuple[tuple[int, ...], Any]] = {
        "states": ((nodes, run.states.shape[1]), np.int32),
        "nodes": ((nodes, len(la.LatticeNode)), long),
        "reals": ((nodes, len(la.LatticeReal)), real),
        "values": ((nodes, lists), real),
        "backs": ((nodes, lists), long),
        "edges": ((edges, len(la.EdgeColumn)), np.int32),
        "scores": ((edges,), real),
        "terms": ((edges,), real),
        "masses": ((edges,), real),
        "slots": ((slots,), long),
        "order": ((nodes,), long),
        "rounds": ((rounds, len(la.RoundColumn)), long),
        "meta": ((len(la.LatticeMeta),), long),
    }
    what = f"exact search with {lists} paths of each of {nodes} nodes"
    return Lattice(**new_arrays(shapes, what, SMALLER))


def new_gradient(run: Run, slots: int) -> Gradient:
    """Return room for a gradient of ``slots`` rows."""
    blocks, labels = len(run.block_owners), len(run.sums)
    shapes: dict[str, tuple[tuple[int, ...], Any]] = {
        "rows": ((slots,), np.int64),
        "values": ((slots, labels), np.float64),
        "block_values": ((blocks, labels), np.float64),
        "block_marks": ((blocks,), np.int64),
        "ints": ((len(la.GradientInt),), np.int64),
    }
    return Gradient(**new_arrays(shapes, f"a gradient for {labels} labels", SMALLER))


def fixed_gradient(run: Run, rows: int) -> Gradient:
    """Return a gradient with a slot for every row of the table, in their order."""
    gradient = new_gradient(run, rows)
    gradient.rows[:] = np.arange(rows)
    return gradient


def grow(
    space: Space, status: int, problem: type[CompiledProblem], dataset: Dataset, i: int
) -> None:
    """Make the room that a kernel lacks at input i, or raise the error that the status means."""
    lattice, gradient = space.lattice, space.gradient
    if status in (at.MORE_NODES, at.MORE_EDGES):
        nodes, edges = len(lattice.nodes), len(lattice.edges)
        if status == at.MORE_NODES:
            nodes *= 2
        else:
            edges *= 2
        lists = lattice.values.shape[1]
        size = sum(array.nbytes for array in lattice) * 2.0
        check_room(size, f"{problem.__name__}, input {i + 1}", SMALLER)
        space.lattice = new_lattice(space.run, lists=lists, nodes=nodes, edges=edges)
    elif status == at.MORE_SLOTS:
        n = 2 * len(gradient.rows)
        space.gradient = gradient._replace(
            rows=longer(gradient.rows, n), values=longer(gradient.values, n)
        )
    elif status == at.MORE_ENTRIES:
        n = 2 * len(space.run.delta)
        delta = np.zeros((n, len(at.DeltaColumn)), np.int64)
        space.run = space.run._replace(delta=delta, values=np.zeros(n))
    elif status == at.MORE_ROWS:
        # The gradient has room already for as many more rows as the table lacks.
        space.table = table = grown_table(space.table, len(gradient.rows))
        used = int(gradient.ints[la.USED_SLOTS])
        table.mark[gradient.rows[:used]] = np.arange(used)
        if len(space.squares):
            space.squares = longer(space.squares, len(table.v))
        if len(space.clocks):
            space.clocks = longer(space.clocks, len(table.v))
    else:
        if status == at.FAILED:
            raise SearchFailed(f"input {i + 1}: no path leads to a goal")
        raise failure(status, dataset, i, problem, space.run)
