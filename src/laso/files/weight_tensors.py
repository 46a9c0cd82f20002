"""Weight tables and the state of training as arrays of model files.

Dense rows are a matrix with a column for each label. Sparse rows are the weights of all rows end
to end, the label of each, and the length of each row. Files without compression have the keys
placed in their hash table, so that it can be mapped into memory; others have the keys alone. What
compiled code would read out of bounds, or look for without end, is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.epochs import Training
from laso.engine.layout import Array, WeightTable
from laso.engine.weights.compact import (
    compact_table,
    keys_and_rows,
    make_sparse_table,
    make_table,
    slots_of,
    table_of,
)
from laso.engine.weights.row_layouts import (
    LARGEST_WEIGHT,
    entries_of,
    from_triples,
    is_sparse,
    no_heads,
    sparse_rows,
)
from laso.errors import BadModel
from laso.files.container import Tensors
from laso.files.limits import check_collisions, check_finite

PRECISIONS = ("float32", "float16")
LARGEST_TABLE = 1 << 36  # bytes
CHECKED_AT_A_TIME = (
    1 << 12
)  # slots or entries to check at a time: what is computed of them stays in the cache
NAMES = {"v": "weights", "u": "sums", "precisions": "precisions", "squares": "squares"}
SLOTS, KEYS, LENGTHS, LABELS, LEARNING = "slots", "keys", "lengths", "labels", "learning."

# --------------------------------------------------------------------------- weights
MOST_STEPS = 1 << 53  # of a training


def pack_weights(
    table: WeightTable, precision: str | None = None, *, compress: bool = True
) -> Tensors:
    """Return a weight table as tensors, with its keys, or with its hash table for a mapped file.

    ``precision`` is "float32" or "float16"; None keeps the weights as they are.
    """
    if precision is not None:
        if precision not in PRECISIONS:
            expected = ", ".join(PRECISIONS)
            raise ValueError(f"precision must be None or {expected}, found {precision!r}")
        largest = np.finfo(precision).max
        table = table._replace(v=np.clip(table.v, -largest, largest).astype(precision))
    table = compact_table(table)
    tensors = _pack_rows(table, {"v": table.v}, int(table.ints[at.ROWS]))
    if not compress:
        return tensors | {SLOTS: table.slots.ravel().astype("<i8")}
    used = table.slots[table.slots[:, at.SLOT_ROW] != 0]
    keys = np.empty(len(used), np.int64)
    keys[used[:, at.SLOT_ROW] - 1] = used[:, at.SLOT_KEY]
    return tensors | {KEYS: _differences(keys)}


def unpack_weights(
    tensors: Mapping[str, Array], n_labels: int, dtype: Any, bits: int, *, sparse: bool = True
) -> WeightTable:
    """Return the weight table that ``pack_weights`` stored; its arrays may be those of the file.

    Sparse rows are refused unless ``sparse``: dense ones would take far more memory.
    """
    if LENGTHS in tensors:
        if not sparse:
            raise BadModel(f"its rows are sparse, expected dense ones of {n_labels} labels")
        lengths, labels = _sparse_rows(tensors, n_labels)
        v, n = _matrix(tensors, "v", 1, dtype), len(lengths)
        if len(v) != len(labels):
            raise BadModel("its labels and their weights are not equally many")
        arrays = {"v": v, "heads": _heads(lengths), "entry_labels": labels}
    else:
        v = _matrix(tensors, "v", n_labels, dtype)
        n, arrays = len(v), {"v": v, "heads": no_heads(), "entry_labels": at.NO_LABELS}
    if SLOTS in tensors:
        slots = _divided(_numbers(tensors[SLOTS], "<i8"), len(at.SlotColumn))
        check_slots(slots, n)
    else:
        slots = slots_of(_keys(tensors[KEYS], n), check_collisions)
    none = v[:0].copy()
    return table_of(slots, arrays | {"u": none, "precisions": none}, n, n_labels, bits)


def check_slots(slots: Array, n_rows: int) -> None:
    """Raise BadModel unless each look-up ends after few slots, with a row below n_rows."""
    capacity = len(slots)
    if capacity & (capacity - 1) or capacity <= n_rows:
        raise BadModel(f"found {capacity} places for {n_rows} keys, expected a power of two")
    n = 0
    for first in range(0, capacity, CHECKED_AT_A_TIME):
        rows = slots[first : first + CHECKED_AT_A_TIME, at.SLOT_ROW]
        if rows.view(np.uint64).max() > n_rows:  # as such numbers, those below 0 are large
            raise BadModel(f"found keys of other rows than its {n_rows}")
        used = int(np.count_nonzero(rows))
        if used == CHECKED_AT_A_TIME:
            raise BadModel("its feature keys collide too often; laso.mix makes keys that do not")
        n += used
    if n != n_rows:
        raise BadModel(f"found {n} keys, expected one for each of {n_rows} rows")


def check_keys(table: WeightTable) -> None:
    """Raise BadModel unless a table finds all its keys, each once, as all of our files have them.

    This is checked when a model is saved, not when it is loaded.
    """
    slots, mask = table.slots, len(table.slots) - 1
    where = np.flatnonzero(slots[:, at.SLOT_ROW])
    keys = slots[where, at.SLOT_KEY]
    moved = (where - (keys & mask)) & mask
    # The places that a key was moved past are in use if its own place is so many keys before it.
    first = np.arange(len(where)) - moved
    if len(where) and (moved.max() >= len(where) or (where[first] != keys & mask).any()):
        raise BadModel("found a key that is not in its place")
    _check_distinct(keys)


# --------------------------------------------------------------------------- training


def pack_learning(training: Training) -> Tensors:
    """Return the state of training as tensors."""
    table = training.table
    keys, rows = keys_and_rows(table)
    names = ["v", "u", *(["precisions"] if len(table.precisions) else [])]
    if is_sparse(table):
        table = table._replace(**sparse_rows(table, rows))
        matrices = {name: getattr(table, name) for name in names}
    else:
        matrices = {name: getattr(table, name)[rows] for name in names}
        if training.squares is not None:
            matrices["squares"] = training.squares[rows]
    return {
        f"{LEARNING}keys": _differences(keys),
        f"{LEARNING}ints": table.ints[: at.SAVED_INTS].astype("<i8"),
        f"{LEARNING}reals": table.reals.astype("<f8"),
        f"{LEARNING}clock": np.array([training.clock], "<f8"),
        **_pack_rows(table, matrices, len(keys), LEARNING),
    }


def unpack_learning(
    training: Training, tensors: Mapping[str, Array], n_labels: int, dtype: Any
) -> None:
    """Restore the state of training that ``pack_learning`` stored."""
    part = {n.removeprefix(LEARNING): t for n, t in tensors.items() if n.startswith(LEARNING)}
    ints, reals = _numbers(part["ints"], "<i8").copy(), _numbers(part["reals"], "<f8").copy()
    clock, names = _numbers(part["clock"], "<f8"), [name for name in NAMES if NAMES[name] in part]
    if ints.shape != (at.SAVED_INTS,) or reals.shape != (4,) or clock.shape != (1,):
        raise BadModel("the state of its training is not of the right shape")
    for array in (reals, clock):
        check_finite(array)
    if (
        not 1 <= ints[at.GENERATION] <= MOST_STEPS
        or not 0 <= ints[at.TICKS] <= MOST_STEPS
        or not 0 <= ints[at.BITS] < 63
    ):
        raise BadModel("the counters of its training are out of range")
    if not 1e-9 <= reals[at.SCALE] <= 1e9 or np.abs(reals).max() > 1e30 or abs(clock[0]) > 1e30:
        raise BadModel("the scales of its training are out of range")
    width = 1 if LENGTHS in part else n_labels
    if any(part[NAMES[name]].dtype != np.dtype(dtype) for name in names):
        raise BadModel("the state of its training is of another type than its weights")
    matrices = {name: _matrix(part, name, width, dtype) for name in names}
    if any((matrices[name] < 0.0).any() for name in names if name in ("squares", "precisions")):
        raise BadModel("found sums of squares below zero")
    if LENGTHS in part:
        table = _sparse_training(part, matrices, n_labels)
    else:
        if len({len(matrix) for matrix in matrices.values()}) > 1:
            raise BadModel("the rows of its weights do not add up")
        keys = _keys(part[KEYS], len(matrices["v"]))
        table = make_table(keys, matrices["v"], u=matrices["u"], check=check_collisions)
        table = table._replace(precisions=matrices.get("precisions", table.precisions))
        training.squares = matrices.get("squares")
    ints[at.ROWS] = table.ints[at.ROWS]
    table.ints[: at.SAVED_INTS] = ints
    training.table = table._replace(reals=reals)
    training.clock = float(clock[0])


def _sparse_training(
    part: Mapping[str, Array], matrices: Mapping[str, Array], n_labels: int
) -> WeightTable:
    """Return a table of sparse rows for training, whose rows have room to grow."""
    lengths, labels = _sparse_rows(part, n_labels)
    if any(len(matrix) != len(labels) for matrix in matrices.values()) or "squares" in matrices:
        raise BadModel("its labels and their weights are not equally many")
    values = {name: matrix[:, 0] for name, matrix in matrices.items()}
    rows = np.repeat(np.arange(len(lengths)), lengths)
    arrays = from_triples(rows, labels, values, len(lengths), n_labels)
    keys = _keys(part[KEYS], len(lengths))
    return make_sparse_table(keys, arrays, n_labels, 0, training=True, check=check_collisions)


# --------------------------------------------------------------------------- rows


def _pack_rows(
    table: WeightTable, matrices: Mapping[str, Array], n: int, prefix: str = ""
) -> Tensors:
    """Return the first n rows of matrices as tensors; sparse rows have their labels in order."""
    tensors = {}
    if is_sparse(table):
        lengths = table.heads[:n, at.HEAD_LENGTH]
        rows = np.arange(len(lengths))
        entries = entries_of(table, rows)
        labels = table.entry_labels[entries]
        order = np.lexsort((labels, np.repeat(rows, lengths)))
        tensors = {LENGTHS: lengths.astype("<u4"), LABELS: labels[order].astype("<i4")}
        matrices = {name: matrix[entries[order]] for name, matrix in matrices.items()}
    for name, matrix in matrices.items():
        tensors[NAMES[name]] = matrix.ravel().astype(matrix.dtype.newbyteorder("<"), copy=False)
    return {f"{prefix}{name}": tensor for name, tensor in tensors.items()}


def _matrix(tensors: Mapping[str, Array], name: str, width: int, dtype: Any) -> Array:
    """Return a matrix of finite numbers of a type; numbers of fewer bits become such."""
    array, kind = tensors[NAMES[name]], np.dtype(dtype)
    if array.dtype.kind != "f" or array.itemsize > kind.itemsize:
        raise BadModel(f"found an array of {array.dtype}, expected {kind}")
    if array.nbytes > LARGEST_TABLE:
        raise BadModel(f"found {len(array)} weights, more than can be")
    array = np.require(array.astype(kind, copy=False), kind, ["C", "ALIGNED", "WRITEABLE"])
    check_finite(array)
    if name == "v":
        check_size(array)
    return _divided(array, width)


def check_size(array: Array) -> None:
    """Raise BadModel if sums of weights may overflow, also where a temperature raises them."""
    largest = float(np.abs(array).max(initial=0.0))
    if largest > float(np.finfo(array.dtype).max) * LARGEST_WEIGHT:
        raise BadModel(f"found a weight of {largest:.3g}, with which scores overflow")


def _numbers(array: Array, dtype: str) -> Array:
    """Return an array of this type as compiled code takes it; it is copied only if need be."""
    if array.dtype.str != dtype:
        raise BadModel(f"found an array of {array.dtype}, expected {np.dtype(dtype)}")
    return np.require(array, np.dtype(dtype).newbyteorder("="), ["C", "ALIGNED", "WRITEABLE"])


def _divided(array: Array, width: int) -> Array:
    """Return an array as a matrix of this width."""
    if not width or len(array) % width:
        raise BadModel(f"found {len(array)} numbers, expected rows of {width}")
    return array.reshape(-1, width)


def _sparse_rows(tensors: Mapping[str, Array], n_labels: int) -> tuple[Array, Array]:
    """Return the lengths of sparse rows, and the labels of all entries, which rise in each row."""
    lengths, labels = _numbers(tensors[LENGTHS], "<u4"), _numbers(tensors[LABELS], "<i4")
    ends = np.cumsum(lengths, dtype=np.int64)
    total = int(ends[-1]) if len(ends) else 0
    if total > np.iinfo(np.int32).max:
        raise BadModel("found rows of too many weights")
    if total != len(labels):
        raise BadModel("the rows of its weights do not add up")
    rises = np.ones(max(1, total), bool)  # is the label of the next entry larger?
    for first in range(0, total, CHECKED_AT_A_TIME):
        part = labels[first : first + CHECKED_AT_A_TIME + 1]
        if part.view(np.uint32).max() >= n_labels:  # as such numbers, those below 0 are large
            raise BadModel(f"found weights for other labels than its {n_labels}")
        np.greater(part[1:], part[:-1], out=rises[first : first + len(part) - 1])
    starts = ends[:-1]
    rises[starts[(starts > 0) & (starts < total)] - 1] = True
    if not rises.all():
        raise BadModel("found a label twice, or out of order, in a row of its weights")
    return lengths, labels


def _heads(lengths: Array) -> Array:
    """Return where sparse rows are, which follow each other."""
    heads = np.zeros((max(1, len(lengths)), len(at.HeadColumn)), np.int32)
    heads[: len(lengths), at.HEAD_START] = np.cumsum(lengths, dtype=np.int64) - lengths
    heads[: len(lengths), at.HEAD_LENGTH] = lengths
    return heads


def _differences(keys: Array) -> Array:
    """Return the difference of each key to the one before it, which compresses better."""
    return np.diff(keys.view(np.uint64), prepend=np.uint64(0)).astype("<u8")


def _keys(differences: Array, n: int) -> Array:
    """Return the keys of n rows that ``_differences`` stored; each must be there once."""
    keys = np.cumsum(_numbers(differences, "<u8"), dtype=np.uint64).view(np.int64)
    if len(keys) != n:
        raise BadModel(f"found {len(keys)} keys, expected one for each of {n} rows")
    _check_distinct(keys)
    return keys


def _check_distinct(keys: Array) -> None:
    if (np.diff(np.sort(keys)) == 0).any():
        raise BadModel("found a key twice")
