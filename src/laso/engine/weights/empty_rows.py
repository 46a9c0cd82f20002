"""Rows of weight tables that have no weight, and how they are removed."""

from __future__ import annotations

import numpy as np

from laso.engine import layout as at
from laso.engine import thresholds
from laso.engine.layout import WeightTable
from laso.engine.weights.hash_table import placed, used_slots
from laso.engine.weights.row_layouts import MATRICES, dense_rows, is_sparse, sparse_rows

SAMPLE = 2000  # rows by which their share is estimated


def has_empty_rows(table: WeightTable) -> bool:
    """Return whether many rows have no weight, by a sample, or sparse rows have left many places.

    Removing them takes long, so that a few may stay.
    """
    rows = int(table.ints[at.ROWS])
    sample = np.arange(0, rows, 1 + rows // SAMPLE)
    names = [name for name in MATRICES if len(getattr(table, name))]
    filled = [dense_rows(table, sample, name).any(axis=1) for name in names]
    empty = len(sample) - np.count_nonzero(np.logical_or.reduce(filled))
    unused = int(table.ints[at.USED]) - int(table.heads[:rows, at.HEAD_LENGTH].sum())
    return bool(thresholds.EMPTY_OF * empty > len(sample) or 2 * unused > int(table.ints[at.USED]))


def without_empty_rows(table: WeightTable) -> WeightTable:
    """Return the table without the rows that have no weight, now or in the average.

    An update makes a row for every feature it looks at, also where good and bad nodes cancel out.
    """
    rows = int(table.ints[at.ROWS])
    arrays = [table.v, table.u, *([table.precisions] if len(table.precisions) else [])]
    if is_sparse(table):
        table = _without_zeros(table)
        arrays = [table.heads]
        used = table.heads[:rows, at.HEAD_LENGTH] > 0
    else:
        used = np.logical_or.reduce([array[:rows].any(axis=1) for array in arrays])
    numbers = np.cumsum(used)  # the new number of a row, plus 1
    kept = int(numbers[-1]) if rows else 0
    entries = used_slots(table)
    entries = entries[used[entries[:, at.SLOT_ROW] - 1]]
    entries[:, at.SLOT_ROW] = numbers[entries[:, at.SLOT_ROW] - 1]
    for weights in arrays:
        weights[:kept] = weights.take(np.flatnonzero(used), axis=0)
        weights[kept:rows] = 0
    table.ints[at.ROWS] = kept
    return table._replace(slots=placed(entries, len(table.slots)))


def _without_zeros(table: WeightTable) -> WeightTable:
    """Return a table of sparse rows without entries of no weight, and without gaps."""
    rows = int(table.ints[at.ROWS])
    arrays = sparse_rows(table, np.arange(rows))
    table.heads[:rows] = arrays.pop("heads")[:rows]
    table.ints[at.USED] = len(arrays["v"])
    return table._replace(**arrays)
