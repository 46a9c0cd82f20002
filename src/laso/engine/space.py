"""The arrays that exact search works in, and how they grow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laso.engine import lattice as la
from laso.engine import layout as at
from laso.engine.lattice import Gradient, Lattice
from laso.engine.layout import Array, Run, Table
from laso.engine.machine import grown_table, longer
from laso.errors import LasoError, SearchFailed, Unreachable


@dataclass
class Space:
    """What the kernels work in. The table is the newest one, should a call be interrupted."""

    table: Table
    run: Run
    lattice: Lattice
    gradient: Gradient
    squares: Array
    clocks: Array
    clock: Array


def new_lattice(run: Run, lists: int, nodes: int, edges: int) -> Lattice:
    """Room for a lattice whose nodes keep so many paths."""
    slots = 1 << (2 * nodes - 1).bit_length()
    return Lattice(
        np.zeros((nodes, run.states.shape[1]), np.int32),
        np.zeros((nodes, 12), np.int64),
        np.zeros((nodes, 4)),
        np.zeros((nodes, lists)),
        np.zeros((nodes, lists), np.int64),
        np.zeros((edges, 5), np.int32),
        np.zeros(edges),
        np.zeros(edges),
        np.zeros(edges),
        np.zeros(slots, np.int64),
        np.zeros(nodes, np.int64),
        np.zeros((len(run.lists), 4), np.int64),
        np.zeros(la.META, np.int64),
    )


def new_gradient(run: Run, slots: int) -> Gradient:
    """Room for the gradient by so many rows."""
    cells, labels = run.cells.shape
    return Gradient(
        np.zeros(slots, np.int64),
        np.zeros((slots, labels)),
        np.zeros((cells, labels)),
        np.zeros(cells, np.int64),
        np.zeros(2, np.int64),
    )


def fixed_gradient(run: Run, rows: int) -> Gradient:
    """A gradient with a place for every row of the table, in their order."""
    gradient = new_gradient(run, rows)
    gradient.rows[:] = np.arange(rows)
    return gradient


def grow(space: Space, status: int, what: str) -> None:
    """Make room for what a kernel lacks, or raise the error that it stands for."""
    lattice, gradient = space.lattice, space.gradient
    if status in (at.MORE_NODES, la.MORE_EDGES):
        nodes, edges = len(lattice.nodes), len(lattice.edges)
        if status == at.MORE_NODES:
            nodes *= 2
        else:
            edges *= 2
        space.lattice = new_lattice(space.run, lattice.values.shape[1], nodes, edges)
    elif status == la.MORE_SLOTS:
        n = 2 * len(gradient.rows)
        space.gradient = gradient._replace(
            rows=longer(gradient.rows, n), values=longer(gradient.values, n)
        )
    elif status == at.MORE_ENTRIES:
        n = 2 * len(space.run.delta)
        space.run = space.run._replace(delta=np.zeros((n, 3), np.int64), values=np.zeros(n))
    elif status == at.MORE_ROWS:
        # The gradient has room already for as many more rows as the table lacks.
        space.table = table = grown_table(space.table, len(gradient.rows))
        used = int(gradient.ints[la.SLOTS])
        table.mark[gradient.rows[:used]] = np.arange(used)
        if len(space.squares):
            space.squares = longer(space.squares, len(table.v))
        if len(space.clocks):
            space.clocks = longer(space.clocks, len(table.v))
    else:
        raise _failure(status, what)


def _failure(status: int, what: str) -> Exception:
    if status == at.UNREACHABLE:
        return Unreachable(f"{what}: no allowed path leads to its output")
    if status == la.BAD_KEY:
        return LasoError(f"{what}: the key must rise with every step and stay within STEPS")
    return SearchFailed(f"{what}: no path leads to a goal")
