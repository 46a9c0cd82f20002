"""The working space of exact search, and how it grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laso.engine import layout as at
from laso.engine.lattice import layout as la
from laso.engine.lattice.layout import Gradient, Lattice
from laso.engine.layout import Array, Dataset, Run, WeightTable
from laso.engine.machine import failure, grown_table, longer
from laso.engine.memory_limit import check_room
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


def new_lattice(run: Run, *, lists: int, nodes: int, edges: int) -> Lattice:
    """Return room for a lattice whose nodes keep ``lists`` paths."""
    slots = 1 << (2 * nodes - 1).bit_length()
    rounds = len(run.agenda) - at.EXTRA_LISTS
    return Lattice(
        states=np.zeros((nodes, run.states.shape[1]), np.int32),
        nodes=np.zeros((nodes, len(la.LatticeNode)), np.int64),
        reals=np.zeros((nodes, len(la.LatticeReal))),
        values=np.zeros((nodes, lists)),
        backs=np.zeros((nodes, lists), np.int64),
        edges=np.zeros((edges, len(la.EdgeColumn)), np.int32),
        scores=np.zeros(edges),
        terms=np.zeros(edges),
        masses=np.zeros(edges),
        slots=np.zeros(slots, np.int64),
        order=np.zeros(nodes, np.int64),
        rounds=np.zeros((rounds, len(la.RoundColumn)), np.int64),
        meta=np.zeros(len(la.LatticeMeta), np.int64),
    )


def new_gradient(run: Run, slots: int) -> Gradient:
    """Return room for a gradient of ``slots`` rows."""
    blocks, labels = len(run.block_owners), len(run.sums)
    return Gradient(
        rows=np.zeros(slots, np.int64),
        values=np.zeros((slots, labels)),
        block_values=np.zeros((blocks, labels)),
        block_marks=np.zeros(blocks, np.int64),
        ints=np.zeros(len(la.GradientInt), np.int64),
    )


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
        expected = "shorter inputs, fewer labels, or a beam instead of exact()"
        check_room(size, f"{problem.__name__}, input {i + 1}", expected)
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
