"""Matrices and keys as model files have them: the non-zeros of each row, differences of keys."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadModel

LARGEST_TABLE = 1 << 36
SOME = 1 << 12  # entries to check at a time

Tensors = dict[str, Array]


def to_sparse(v: Array, prefix: str = "") -> Tensors:
    """Return a sparse matrix as the non-zeros of each row: counts, columns and values."""
    rows, columns = np.nonzero(v)
    kind = "|u1" if v.shape[1] <= 256 else "<u4"
    counts = np.bincount(rows, minlength=len(v))
    return {
        f"{prefix}counts": counts.astype("|u1" if v.shape[1] < 256 else "<u4"),
        f"{prefix}labels": columns.astype(kind),
        f"{prefix}values": v[rows, columns].astype(v.dtype.newbyteorder("<")),
    }


def to_dense(tensors: Mapping[str, Array], n_rows: int, n_columns: int, prefix: str = "") -> Array:
    """Return the matrix that ``to_sparse`` stored."""
    rows, columns, values = triples(tensors, n_rows, n_columns, prefix)
    check_size(n_rows, n_columns, values.itemsize)
    v = np.zeros((n_rows, n_columns), values.dtype)
    v[rows, columns] = values
    return v


def check_size(n_rows: int, n_columns: int, item: int) -> None:
    """Raise BadModel if a matrix of so many elements is too large; ``item`` is in bytes."""
    if n_rows * n_columns * item > LARGEST_TABLE:
        raise BadModel(f"found {n_rows} rows of {n_columns} weights, more than can be")


def triples(
    tensors: Mapping[str, Array], n_rows: int, n_columns: int, prefix: str
) -> tuple[Array, Array, Array]:
    """Return row, column and value of the non-zeros that ``to_sparse`` stored."""
    counts, columns, values = (tensors[prefix + name] for name in ("counts", "labels", "values"))
    if len(counts) != n_rows or counts.sum(dtype=np.int64) != len(columns):
        raise BadModel("the rows of its weights do not add up")
    if len(columns) != len(values):
        raise BadModel("its labels and their weights are not equally many")
    check_labels(columns, np.cumsum(counts, dtype=np.int64)[:-1], n_columns)
    return np.repeat(np.arange(n_rows), counts), columns, values


def check_labels(labels: Array, starts: Array, n_labels: int) -> None:
    """Raise BadModel unless labels are below n_labels, and rise in each row.

    ``starts`` are the first entries of all rows but the first.
    """
    n = len(labels)
    rises = np.ones(max(1, n), bool)  # is the label of the next entry larger?
    for first in range(0, n, SOME):  # what is computed of so many stays in the cache
        some = labels[first : first + SOME + 1]
        # As numbers without a sign, those below 0 are large.
        if some.view(f"u{some.itemsize}").max() >= n_labels:
            raise BadModel(f"found weights for other labels than its {n_labels}")
        np.greater(some[1:], some[:-1], out=rises[first : first + len(some) - 1])
    rises[starts[(starts > 0) & (starts < n)] - 1] = True
    if not rises.all():
        raise BadModel("found a label twice, or out of order, in a row of its weights")


def check_finite(array: Array) -> None:
    """Raise BadModel unless all numbers are finite."""
    if not np.isfinite(array).all():
        raise BadModel("found weights that are no finite numbers")


def delta_encode(keys: Array) -> Array:
    """Return the differences of sorted keys, which compress better."""
    return np.diff(keys.view(np.uint64), prepend=np.uint64(0)).astype("<u8")


def delta_decode(gaps: Array) -> Array:
    """Return the keys that ``delta_encode`` encoded."""
    if gaps.dtype != np.dtype("<u8") or (gaps[1:] == 0).any():
        raise BadModel("found a key twice")
    keys = np.cumsum(gaps.astype(np.uint64), dtype=np.uint64)
    if (keys[1:] < keys[:-1]).any():
        raise BadModel("found keys out of order")
    return keys.view(np.int64)
