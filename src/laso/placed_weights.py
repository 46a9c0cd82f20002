"""Weight tables in files without compression: the arrays that decoding uses, with keys placed.

To load them takes no sorting and no copying. What compiled code would read out of bounds, or look
for without end, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, WeightTable
from laso.engine.rows import all_rows, entries_of, is_sparse, no_heads
from laso.errors import BadModel
from laso.model_file import Tensors, compact_table
from laso.sparse_matrix import check_finite, check_labels

SOME = 1 << 12  # slots to check at a time, of which one must be free
SLOTS, WEIGHTS, LENGTHS, LABELS = "slots", "weights", "lengths", "labels"


def pack_table(table: WeightTable) -> Tensors:
    """Return a weight table as tensors that need no unpacking."""
    made = compact_table(table)
    tensors = {SLOTS: made.slots.ravel().astype("<i8")}
    v = made.v
    if is_sparse(made):
        rows = all_rows(made)
        lengths = made.heads[rows, at.HEAD_LENGTH]
        entries = entries_of(made, rows)
        entries = entries[np.lexsort((made.entry_labels[entries], np.repeat(rows, lengths)))]
        tensors[LENGTHS] = lengths.astype("<u4")
        v, tensors[LABELS] = v[entries], made.entry_labels[entries].astype("<i4")
    return tensors | {WEIGHTS: v.ravel().astype(v.dtype.newbyteorder("<"))}


def unpack_table(
    tensors: Mapping[str, Array], n_labels: int, dtype: Any, bits: int, *, sparse: bool
) -> WeightTable:
    """Return the weight table that ``pack_table`` stored, whose arrays are those of the file."""
    slots, weights = _native(tensors[SLOTS], np.int64), _native(tensors[WEIGHTS], dtype)
    check_finite(weights)
    if (LENGTHS in tensors) != sparse or (LABELS in tensors) != sparse:
        raise BadModel(f"its rows are sparse or not, expected them otherwise for {n_labels} labels")
    labels = at.NO_LABELS
    if sparse:
        heads, labels = _heads(tensors[LENGTHS]), _native(tensors[LABELS], np.int32)
        v, n = weights.reshape(-1, 1), len(tensors[LENGTHS])
        _check_entries(heads[:n], labels, len(v), n_labels)
    else:
        v, heads = _divided(weights, n_labels), no_heads()
        n = len(v)
    used = len(v) if sparse else 0
    placed = _divided(slots, len(at.SlotColumn))
    _check_slots(placed, n)
    return WeightTable(
        placed,
        v,
        np.zeros((0, 1 if sparse else n_labels), v.dtype),
        np.zeros(0, np.int64),
        np.array([n, 1, 0, bits, n_labels, used], np.int64),
        np.array([1.0, 0.0, 0.0, 0.0]),
        np.zeros((0, 1 if sparse else n_labels), v.dtype),
        heads,
        entry_labels=labels,
    )


def _native(array: Array, dtype: Any) -> Array:
    """Return an array of this type as compiled code takes it; it is copied only if need be."""
    kind = np.dtype(dtype)
    if array.dtype != kind.newbyteorder("<"):
        raise BadModel(f"found an array of {array.dtype}, expected {kind}")
    return np.require(array, kind, ["C", "ALIGNED", "WRITEABLE"])


def _divided(array: Array, width: int) -> Array:
    """Return an array as a matrix of this width."""
    if not width or len(array) % width:
        raise BadModel(f"found {len(array)} numbers, expected rows of {width}")
    return array.reshape(-1, width)


def _check_slots(slots: Array, n_rows: int) -> None:
    """Raise BadModel unless each look-up ends after few slots, with a row below n_rows."""
    capacity = len(slots)
    if capacity & (capacity - 1) or capacity <= n_rows:
        raise BadModel(f"found {capacity} places for {n_rows} keys, expected a power of two")
    n = 0
    for first in range(0, capacity, SOME):  # what is computed of so many stays in the cache
        rows = slots[first : first + SOME, at.SLOT_ROW]
        if rows.view(np.uint64).max() > n_rows:  # as such numbers, those below 0 are large
            raise BadModel(f"found keys of other rows than its {n_rows}")
        used = int(np.count_nonzero(rows))
        if used == SOME:
            raise BadModel("its feature keys collide too often; laso.mix makes keys that do not")
        n += used
    if n != n_rows:
        raise BadModel(f"found {n} keys, expected one for each of {n_rows} rows")


def check_keys(table: WeightTable) -> None:
    """Raise BadModel unless a table finds all its keys, each once, as all of our files have them.

    Who loads a file does not wait for that, but what is saved is then the same by all of its ways.
    """
    slots, mask = table.slots, len(table.slots) - 1
    where = np.flatnonzero(slots[:, at.SLOT_ROW])
    keys = slots[where, at.SLOT_KEY]
    moved = (where - (keys & mask)) & mask
    # The places that a key was moved past are in use if its own is so many keys before it.
    own = np.arange(len(where)) - moved
    if len(where) and (moved.max() >= len(where) or (where[own] != keys & mask).any()):
        raise BadModel("found a key that is not in its place")
    if (np.diff(np.sort(keys)) == 0).any():
        raise BadModel("found a key twice")


def _heads(lengths: Array) -> Array:
    """Return where sparse rows are, which follow each other."""
    ends = np.cumsum(lengths, dtype=np.int64)
    if lengths.dtype != np.dtype("<u4") or (len(ends) and ends[-1] > np.iinfo(np.int32).max):
        raise BadModel("found rows of too many weights")
    heads = np.zeros((max(1, len(lengths)), len(at.HeadColumn)), np.int32)
    heads[: len(lengths), at.HEAD_START] = ends - lengths
    heads[: len(lengths), at.HEAD_LENGTH] = lengths
    return heads


def _check_entries(heads: Array, labels: Array, n: int, n_labels: int) -> None:
    """Raise BadModel unless rows have all n entries, each row the labels once and in order."""
    if not int(heads[:, at.HEAD_LENGTH].sum(dtype=np.int64)) == len(labels) == n:
        raise BadModel("the rows of its weights do not add up")
    check_labels(labels, heads[1:, at.HEAD_START], n_labels)
