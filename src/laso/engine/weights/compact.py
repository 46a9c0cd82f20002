"""Weight tables made of keys and rows, and compact ones for prediction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, WeightTable
from laso.engine.weights.hash_table import placed, unchecked
from laso.engine.weights.row_layouts import (
    ROWS_AT_A_TIME,
    is_sparse,
    n_labels,
    n_rows,
    no_heads,
    sparse_rows,
)


def keys_and_rows(table: WeightTable) -> tuple[Array, Array]:
    """Return the feature keys of a weight table, sorted, and the row of each key."""
    entries = table.slots[table.slots[:, 1] != 0]
    entries = entries[entries[:, 1] <= n_rows(table)]
    entries = entries[np.argsort(entries[:, 0].view(np.uint64), kind="stable")]
    return entries[:, 0], entries[:, 1] - 1


def compact_table(table: WeightTable) -> WeightTable:
    """Return a weight table for prediction: no zero rows, rows with the most non-zeros first.

    Frequent features have weights for many labels, so that their look-ups are the shortest.
    """
    keys, rows = keys_and_rows(table)
    bits = int(table.ints[at.BITS])
    if not is_sparse(table):
        order = _by_fullness(_nonzero_counts(table.v)[rows])
        return make_table(keys[order], table.v[rows[order]], bits=bits)
    arrays = sparse_rows(table._replace(u=table.u[:0], precisions=table.precisions[:0]), rows)
    order = _by_fullness(arrays["heads"][: len(keys), at.HEAD_LENGTH])
    arrays["heads"] = np.ascontiguousarray(arrays["heads"][order])
    return make_sparse_table(keys[order], arrays, n_labels(table), bits)


def _by_fullness(filled: Array) -> Array:
    """Return the rows with non-zeros, by falling numbers of these, equal ones in their order."""
    fullest = int(filled.max(initial=0))
    # NumPy sorts small integers much faster than large ones.
    kind = next((kind for kind in (np.uint8, np.uint16) if fullest <= np.iinfo(kind).max), np.int64)
    return np.argsort((fullest - filled).astype(kind), kind="stable")[: np.count_nonzero(filled)]


def _nonzero_counts(v: Array) -> Array:
    """Return the number of non-zero weights of each row."""
    parts = np.array_split(v, 1 + len(v) // ROWS_AT_A_TIME)
    return np.concatenate([np.count_nonzero(part, axis=1) for part in parts])


def make_table(
    keys: Array,
    v: Array,
    *,
    u: Array | None = None,
    bits: int = 0,
    check: Callable[[int, int], None] = unchecked,
) -> WeightTable:
    """Return a weight table of rows ``v`` and their feature keys; with ``u``, one for training.

    ``check`` is that of ``placed``.
    """
    none = v[:0].copy()
    arrays = {"v": np.ascontiguousarray(v), "u": none if u is None else u, "precisions": none}
    arrays |= {"heads": no_heads(), "entry_labels": at.NO_LABELS}
    slots = slots_of(keys, check)
    return table_of(slots, arrays, len(keys), v.shape[1], bits, training=u is not None)


def make_sparse_table(
    keys: Array,
    arrays: Mapping[str, Array],
    labels: int,
    bits: int,
    *,
    training: bool = False,
    check: Callable[[int, int], None] = unchecked,
) -> WeightTable:
    """Return a weight table of sparse rows and their feature keys; ``check`` as in ``placed``."""
    if not len(keys):
        arrays = {**arrays, "heads": np.zeros((1, len(at.HeadColumn)), np.int32)}
    slots = slots_of(keys, check)
    return table_of(slots, arrays, len(keys), labels, bits, training=training)


def slots_of(keys: Array, check: Callable[[int, int], None] = unchecked) -> Array:
    """Return the hash table of the keys of rows, in the order of these."""
    n = len(keys)
    numbered = np.stack([keys, np.arange(1, n + 1)]).T
    return placed(numbered, 1 << (3 * n // 2).bit_length(), check=check)


def table_of(
    slots: Array,
    arrays: Mapping[str, Array],
    n: int,
    labels: int,
    bits: int,
    *,
    training: bool = False,
) -> WeightTable:
    """Return a weight table of a hash table and the arrays of n rows, dense or sparse ones."""
    sparse = len(arrays["heads"]) > 0
    return WeightTable(
        slots,
        arrays["v"],
        arrays["u"],
        np.full(n if training else 0, -1, np.int64),
        np.array([n, 1, 0, bits, labels, len(arrays["v"]) if sparse else 0], np.int64),
        np.array([1.0, 0.0, 0.0, 0.0]),
        arrays["precisions"],
        arrays["heads"],
        entry_labels=arrays["entry_labels"],
    )
