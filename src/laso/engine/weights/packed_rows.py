"""Packed rows, for decoding alone: slots store start and length of the row itself.

Each look-up of a sparse row reads four places that are far apart: the slot of the key, the head of
the row, its weights, and their labels. In packed rows the slot has start and length of the row in
place of its number, and the labels follow the weights, so that two places are left. Learning would
have to change the slots of rows that move, so it does not use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from laso.engine import layout as at
from laso.engine import thresholds
from laso.engine.kernels.weight_table import PACKED_BITS, PACKED_MASK
from laso.engine.layout import Array, WeightTable
from laso.engine.problem import CompiledProblem, is_shared
from laso.engine.weights.bloom import filtered
from laso.engine.weights.row_layouts import all_rows, is_sparse, n_labels

ROWS_AT_A_TIME = 1 << 14  # rows to pack at a time


def faster(problem: type[CompiledProblem], table: WeightTable, items: int) -> WeightTable:
    """Return a table with which decoding is faster, if so many items pay for making it."""
    with_filter = filtered(problem, table, items)
    if (
        thresholds.PACKED_SLOTS_PER_ITEM * items < len(table.slots)
        or not is_sparse(table)
        or is_shared(problem)
    ):
        return with_filter
    return packed(with_filter)


def is_packed(table: WeightTable) -> bool:
    """Return whether a table has packed rows."""
    return is_sparse(table) and table.heads.shape[1] == 0


def packed(table: WeightTable) -> WeightTable:
    """Return a table of sparse rows with packed rows; one that cannot have them as it is."""
    labels = n_labels(table)
    if table.v.dtype != np.float32 or labels > PACKED_MASK or is_packed(table):
        return table
    rows = all_rows(table)
    starts, lengths = (table.heads[rows, column].astype(np.int64) for column in at.HeadColumn)
    room = np.where(lengths == labels, lengths, 2 * lengths)
    new, v = np.zeros_like(starts), np.zeros(int(room.sum()), np.float32)
    end = 0
    for alike in _of_one_length(lengths):
        width = int(room[alike[0]])
        new[alike] = end + width * np.arange(len(alike))
        block = v[end : end + width * len(alike)].reshape(len(alike), width)
        entries = starts[alike, None] + np.arange(lengths[alike[0]])
        block[:, : entries.shape[1]] = table.v[:, 0][entries]
        if width > entries.shape[1]:
            block.view(np.int32)[:, entries.shape[1] :] = table.entry_labels[entries]
        end += block.size
    values = np.concatenate([[0], (new << PACKED_BITS | lengths) + 1])
    slots = np.empty_like(table.slots)
    slots[:, at.SLOT_KEY] = table.slots[:, at.SLOT_KEY]
    slots[:, at.SLOT_ROW] = values[table.slots[:, at.SLOT_ROW]]
    none = np.zeros((1, 0), np.int32)
    packed_v = v.reshape(-1, 1)
    return table._replace(slots=slots, v=packed_v, entry_labels=v.view(np.int32), heads=none)


def _of_one_length(lengths: Array) -> Iterator[Array]:
    """Yield the numbers of all rows, longest first, some at a time, which have the same length."""
    order = np.argsort(-lengths, kind="stable")
    changes = np.flatnonzero(np.diff(lengths[order])) + 1
    for begin, end in pairwise([0, *changes.tolist(), len(order)]):
        for first in range(
            begin, end, ROWS_AT_A_TIME
        ):  # what is computed of so many stays in the cache
            yield order[first : min(first + ROWS_AT_A_TIME, end)]
