"""The rows of weight tables: dense rows, and sparse rows where labels are many.

Sparse rows take as much memory as they have weights; those with weights for many labels are full,
that is, they have an entry for each label, in their order. Learning and scoring are the same with
all, bit for bit. The lattice has dense rows only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.kernels.weight_table import most_entries
from laso.engine.layout import Array, WeightTable
from laso.engine.memory_limit import check_room

LARGEST_WEIGHT = 1e-12  # of the largest number of its type: no sum of weights overflows
MANY_LABELS = 80  # rows are sparse from so many labels on
SMALLEST = 2  # entries that a sparse row has room for
ROWS_AT_A_TIME = 10_000  # rows to work on at a time
MATRICES = ("v", "u", "precisions")
ENTRIES = (*MATRICES, "entry_labels")  # arrays with something for each entry of sparse rows


def is_sparse(table: WeightTable) -> bool:
    """Return whether the rows of a table are sparse."""
    return len(table.heads) > 0


def n_labels(table: WeightTable) -> int:
    """Return the number of labels of a table."""
    return int(table.ints[at.LABELS]) if is_sparse(table) else int(table.v.shape[1])


def n_rows(table: WeightTable) -> int:
    """Return the number of rows that a table has room for."""
    return len(table.heads) if is_sparse(table) else len(table.v)


def n_weights(table: WeightTable) -> int:
    """Return the number of weights that are not zero."""
    return int(np.count_nonzero(all_weights(table)))


def all_weights(table: WeightTable) -> Array:
    """Return the weights of a table, of any shape; zeros may be among them."""
    if not is_sparse(table):
        return table.v
    return np.asarray(table.v[entries_of(table, all_rows(table)), 0])


def all_rows(table: WeightTable) -> Array:
    """Return the numbers of all rows that are in use."""
    return np.arange(min(int(table.ints[at.ROWS]), n_rows(table)))


def capacity(lengths: Array) -> Array:
    """Return the room of sparse rows of these lengths: the next power of two."""
    room = np.maximum(lengths, 1) - 1
    for shift in (1, 2, 4, 8, 16):
        room = room | room >> shift
    return np.where(lengths > 0, np.maximum(room + 1, SMALLEST), 0)


def entries_of(table: WeightTable, rows: Array) -> Array:
    """Return the indices of all entries of sparse rows, row by row."""
    heads = table.heads[rows].astype(np.int64)
    return entries_in(heads[:, at.HEAD_START], heads[:, at.HEAD_LENGTH])


def entries_in(starts: Array, lengths: Array) -> Array:
    """Return the indices from each start on, as many as each length says."""
    shifted = starts - (np.cumsum(lengths) - lengths)
    return np.asarray(np.repeat(shifted, lengths) + np.arange(int(lengths.sum())))


def dense_rows(table: WeightTable, rows: Array | int, name: str = "v") -> Array:
    """Return some rows of one of MATRICES with a column for each label."""
    matrix: Array = getattr(table, name)
    if not is_sparse(table):
        return np.asarray(matrix[rows])
    chosen = np.atleast_1d(np.asarray(rows))
    dense = np.zeros((len(chosen), n_labels(table)), matrix.dtype)
    if len(matrix):
        entries = entries_of(table, chosen)
        of = np.repeat(np.arange(len(chosen)), table.heads[chosen, at.HEAD_LENGTH])
        dense[of, table.entry_labels[entries]] = matrix[entries, 0]
    return dense if np.ndim(rows) else dense[0]


def densified(table: WeightTable) -> WeightTable:
    """Return the table with dense rows."""
    if not is_sparse(table):
        return table
    check_dense(table)
    rows = np.arange(len(table.mark)) if len(table.mark) else all_rows(table)
    dense = {
        name: dense_rows(table, rows if len(getattr(table, name)) else rows[:0], name)
        for name in MATRICES
    }
    return table._replace(**dense, heads=no_heads(), entry_labels=at.NO_LABELS)


def check_dense(table: WeightTable) -> None:
    """Raise OutOfMemory if the rows of a table take too much memory as dense rows."""
    matrices = [name for name in MATRICES if len(getattr(table, name))]
    rows, labels = len(table.mark) or int(table.ints[at.ROWS]), n_labels(table)
    check_room(
        float(rows) * labels * table.v.itemsize * len(matrices),
        f"{rows} rows of {labels} labels, which exact() and shards have dense",
        "a beam and one shard",
    )


def no_heads() -> Array:
    """Return the heads of a table of dense rows."""
    return np.zeros((0, len(at.HeadColumn)), np.int32)


def new_rows(n: int, labels: int, dtype: Any, *, sparse: bool) -> dict[str, Array]:
    """Return the arrays of a table with room for n empty rows."""
    if not sparse:
        return {
            "v": np.zeros((n, labels), dtype),
            "u": np.zeros((n, labels), dtype),
            "precisions": np.zeros((0, labels), dtype),
            "heads": no_heads(),
        }
    entries = 4 * n
    return {
        "v": np.zeros((entries, 1), dtype),
        "u": np.zeros((entries, 1), dtype),
        "precisions": np.zeros((0, 1), dtype),
        "heads": np.zeros((n, len(at.HeadColumn)), np.int32),
        "entry_labels": np.zeros(entries, np.int32),
    }


class NewRows:
    """The arrays of sparse rows of known lengths, filled some rows at a time.

    Parameters
    ----------
    lengths : array
        The number of entries of each row.
    width : int
        The number of labels.
    dtypes : dict
        The type of each of MATRICES that has values.
    """

    def __init__(self, lengths: Array, width: int, dtypes: dict[str, Any]) -> None:
        n, self.width, self.lengths = len(lengths), width, lengths
        self.full = lengths > most_entries(width)
        room = np.where(self.full, width, capacity(lengths))
        self.starts = np.cumsum(room) - room
        used = int(room.sum())
        heads = np.zeros((max(n, 1), len(at.HeadColumn)), np.int32)
        heads[:n, at.HEAD_START] = self.starts
        heads[:n, at.HEAD_LENGTH] = np.where(self.full, width, lengths)
        self.arrays: dict[str, Array] = {"heads": heads, "entry_labels": np.zeros(used, np.int32)}
        for name in MATRICES:
            self.arrays[name] = np.zeros((used if name in dtypes else 0, 1), dtypes["v"])

    def fill(self, some: slice, labels: Array, values: dict[str, Array]) -> None:
        """Write labels and values of all entries of some rows, row by row."""
        starts, lengths, full = self.starts[some], self.lengths[some], self.full[some]
        places = entries_in(starts, lengths)
        if full.any():
            in_full = np.repeat(full, lengths)
            places[in_full] = np.repeat(starts[full], lengths[full]) + labels[in_full]
            whole = starts[full][:, None] + np.arange(self.width)
            self.arrays["entry_labels"][whole] = np.arange(self.width)
        self.arrays["entry_labels"][places] = labels
        for name, value in values.items():
            self.arrays[name][places, 0] = value


def batches_of(n: int) -> Iterator[slice]:
    """Yield all of n rows, some at a time: what is computed of these stays in the cache."""
    return (slice(first, min(first + ROWS_AT_A_TIME, n)) for first in range(0, n, ROWS_AT_A_TIME))


def from_triples(
    rows: Array, labels: Array, matrices: dict[str, Array], n: int, width: int
) -> dict[str, Array]:
    """Return the arrays of n sparse rows, given (row, label) of their entries, sorted by row.

    ``matrices`` has the values of v, and of u and precisions if there are any; ``width`` is the
    number of labels.
    """
    lengths = np.bincount(rows, minlength=n)
    builder = NewRows(lengths, width, {name: values.dtype for name, values in matrices.items()})
    ends = np.concatenate([[0], np.cumsum(lengths)])
    for batch in batches_of(n):
        inside = slice(ends[batch.start], ends[batch.stop])
        builder.fill(
            batch, labels[inside], {name: values[inside] for name, values in matrices.items()}
        )
    return builder.arrays


def triples(table: WeightTable, numbers: Array) -> tuple[Array, dict[str, Array]]:
    """Return where the entries of sparse rows belong, as number * labels + label, and their values.

    The i-th row has the i-th of the numbers; matrices without entries have no values.
    """
    rows = np.arange(len(numbers))
    entries = entries_of(table, rows)
    labels = table.entry_labels[entries]
    of = np.repeat(numbers, table.heads[rows, at.HEAD_LENGTH])
    matrices = {name: getattr(table, name) for name in MATRICES}
    values = {n: m[entries, 0] if len(m) else m.reshape(-1) for n, m in matrices.items()}
    return of * n_labels(table) + labels, values


def spread(array: Array, places: Array, length: int) -> Array:
    """Return an array of a length that has the given rows at some places, and zeros elsewhere."""
    filled = np.zeros((length, *array.shape[1:]), array.dtype)
    if len(array):
        filled[places] = array
    return filled


def sparse_rows(table: WeightTable, rows: Array) -> dict[str, Array]:
    """Return the arrays of some rows as sparse rows, without entries that are all zero."""
    names = [name for name in MATRICES if len(getattr(table, name)) == len(table.v)]
    lengths = np.zeros(len(rows), np.int64)
    for batch in batches_of(len(rows)):
        before = table.heads[rows[batch], at.HEAD_LENGTH]
        kept = _nonzero_entries(table, rows[batch], names)[1]
        of = np.repeat(np.arange(len(before)), before)
        lengths[batch] = np.bincount(of[kept], minlength=len(before))
    builder = NewRows(lengths, n_labels(table), dict.fromkeys(names, table.v.dtype))
    for batch in batches_of(len(rows)):
        entries, kept = _nonzero_entries(table, rows[batch], names)
        chosen = entries[kept]
        values = {name: getattr(table, name)[chosen, 0] for name in names}
        builder.fill(batch, table.entry_labels[chosen], values)
    return builder.arrays


def _nonzero_entries(table: WeightTable, rows: Array, names: list[str]) -> tuple[Array, Array]:
    """Return the entries of some rows, and which of these are not zero in all the matrices."""
    entries = entries_of(table, rows)
    return entries, np.logical_or.reduce([getattr(table, name)[entries, 0] != 0 for name in names])


def grown_entries(table: WeightTable, moves: int) -> WeightTable:
    """Return a table of sparse rows with room for so many more moves of rows, or half as much more.

    Memory that is not used yet is not taken from the system.
    """
    used = int(table.ints[at.USED])
    need = used + max(used // 2, 2 * moves * n_labels(table) + SMALLEST)
    if need <= len(table.v):
        return table
    grown = {}
    for name in ENTRIES:
        old: Array = getattr(table, name)
        kept = len(old) or name != "precisions"
        new = np.zeros((need if kept else 0, *old.shape[1:]), old.dtype)
        new[: min(used, len(old))] = old[:used]
        grown[name] = new
    return table._replace(**grown)


def measure(table: WeightTable) -> None:
    """Compute the squared norm of the weights, from which ALMA continues."""
    rows = int(table.ints[at.ROWS])
    square = 0.0
    for first in range(0, rows, ROWS_AT_A_TIME):
        batch = slice(first, min(first + ROWS_AT_A_TIME, rows))
        dense = dense_rows(table, np.arange(rows)[batch]) if is_sparse(table) else table.v[batch]
        weights = dense.astype(np.float64)
        square += float(np.einsum("ij,ij->", weights, weights))  # vdot starts threads of BLAS
    table.reals[at.SQUARE] = table.reals[at.SCALE] ** 2 * square


def largest_of(table: WeightTable) -> float:
    """Return the largest absolute weight, relative to the largest number of its type."""
    largest = np.abs(all_weights(table)).max(initial=0.0)
    return float(largest) / float(np.finfo(table.v.dtype).max)
