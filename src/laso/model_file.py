"""Model files: one safetensors file whose metadata is a JSON header; loading never runs code.

The header has the format's version, the task, the parameters and the digest of the whole file
(computed with zeros in place of the digest), so that damaged or truncated files are detected.
Tensors are zlib-compressed bytes, whose types and lengths are in the header. Queue, update and
strategy are stored as the text that ``laso.values.parse`` reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import mmap
import os
import re
import secrets
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import safetensors.numpy

from laso.engine import layout as at
from laso.engine.layout import Array, WeightTable
from laso.engine.machine import SOME, placed
from laso.engine.passes import Training
from laso.errors import BadModel, LasoError
from laso.features.templates import Template
from laso.values import parse, unparse

FORMAT = 2
LARGEST_HEADER = 100_000_000
LARGEST_TABLE = 1 << 36
LEVEL = 2  # level 6 takes twice the time to save, for files 2 % smaller
LARGEST_RATIO = 1100  # the largest compression ratio of zlib
DTYPES = {"|u1", "|i1", "<u2", "<u4", "<u8", "<i8", "<f2", "<f4", "<f8"}
DIGEST = re.compile(rb'\\"digest\\":\\"([0-9a-f]{32})\\"')

Header = dict[str, Any]
Tensors = dict[str, Array]

# --------------------------------------------------------------------------- the file


def write_file(path: str | os.PathLike[str], header: Header, tensors: Tensors) -> int:
    """Write a model file atomically and return its size in bytes."""
    data = file_bytes(header, tensors)
    _write_atomically(Path(path), data)
    return len(data)


def file_bytes(header: Header, tensors: Tensors) -> bytes:
    """Return the bytes of a model file."""
    from laso import __version__

    arrays = {name: [t.dtype.str, len(t)] for name, t in tensors.items()}
    full = {
        "digest": "0" * 32,
        "format": FORMAT,
        "library": f"laso {__version__}",
        **header,
        "arrays": arrays,
    }
    data: bytes = safetensors.numpy.save(
        {name: compress(tensor) for name, tensor in tensors.items()},
        {"laso": json.dumps(full, separators=(",", ":"), allow_nan=False)},
    )
    place = DIGEST.search(data)
    assert place is not None
    return data[: place.start(1)] + _digest(data) + data[place.end(1) :]


def read_file(path: str | os.PathLike[str], task: str | None = None) -> tuple[Header, Tensors]:
    """Check a model file and return its header and tensors.

    A file for another task than ``task`` raises BadModel; None: any task.
    """
    with Path(path).open("rb") as file, as_bad_model(path):
        return read_bytes(_memory_map(file), task)


def read_bytes(data: memoryview, task: str | None = None) -> tuple[Header, Tensors]:
    """Check the bytes of a model file and return its header and tensors."""
    header, stored = _check_file(data)
    if header["format"] != FORMAT:
        newer = " (a later version of laso has made it)" if header["format"] > FORMAT else ""
        raise BadModel(f"found format {header['format']!r}, expected {FORMAT}{newer}")
    if task is not None and header["task"] != task:
        raise BadModel(f"found a model for {header['task']!r}, expected {task!r}")
    if set(stored) != set(header["arrays"]):
        raise BadModel("its tensors are not those that its header names")
    tensors = {}
    for name, (dtype, size) in header["arrays"].items():
        first, end = stored[name]
        tensors[name] = decompress(data[first:end], dtype, size)
    return header, tensors


def _memory_map(file: IO[bytes]) -> memoryview:
    """Return the bytes of a file, mapped into memory."""
    if not os.fstat(file.fileno()).st_size:
        raise BadModel("it is empty")
    # The map is closed with the last view of it; an error may still hold one.
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _check_file(data: memoryview) -> tuple[Header, dict[str, tuple[int, int]]]:
    """Verify the digest; return the header and the first and last offset of each tensor."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else LARGEST_HEADER
    if size > min(LARGEST_HEADER, len(data) - 8):
        raise BadModel("it is no model file of laso, or cut short")
    head = bytes(data[8 : 8 + size])
    place = DIGEST.search(head)
    if place is None:
        raise BadModel("it is no model file of laso")
    digest = hashlib.blake2b(digest_size=16)
    for part in (data[: 8 + place.start(1)], b"0" * 32, data[8 + place.end(1) :]):
        digest.update(part)
    if digest.hexdigest().encode() != place[1]:
        raise BadModel("it is damaged or cut short: its digest differs")
    entries = json.loads(head)
    header = json.loads(entries.pop("__metadata__")["laso"])
    stored = {}
    for name, entry in entries.items():
        first, end = (8 + size + offset for offset in entry["data_offsets"])
        whole = entry["dtype"] == "U8" and entry["shape"] == [end - first]
        if not whole or not 8 + size <= first <= end <= len(data):
            raise BadModel(f"its tensor {name!r} is not plain bytes, or beyond the end")
        stored[name] = (first, end)
    return header, stored


@contextlib.contextmanager
def as_bad_model(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise any error inside the block as BadModel with the path of the file."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LasoError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
        struct.error,
        zlib.error,
    ) as error:
        raise BadModel(f"{os.fspath(path)} cannot be loaded: {error}") from error


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).hexdigest().encode()


def _write_atomically(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def compress(array: Array) -> Array:
    """Compress an array: first bytes of all numbers, then second bytes, which are similar."""
    if array.dtype.str not in DTYPES or array.ndim != 1:
        raise ValueError(f"cannot store an array of {array.dtype} with {array.ndim} dimensions")
    planes = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), array.itemsize).T
    return np.frombuffer(zlib.compress(planes.tobytes(), LEVEL), np.uint8)


def decompress(stored: memoryview | bytes, dtype: str, size: int) -> Array:
    """Return the array that ``compress`` compressed; other bytes raise BadModel."""
    if dtype not in DTYPES or type(size) is not int or size < 0:
        raise BadModel(f"found an array of {size!r} times {dtype!r}")
    kind = np.dtype(dtype)
    expected = size * kind.itemsize
    if expected > LARGEST_RATIO * len(stored):
        raise BadModel(f"found {len(stored)} bytes for an array of {expected}")
    inflate = zlib.decompressobj()
    raw = inflate.decompress(stored, expected + 1)
    if len(raw) != expected or not inflate.eof:
        raise BadModel(f"found an array of {len(raw)} bytes, expected {expected}")
    planes = np.frombuffer(raw, np.uint8).reshape(kind.itemsize, size)
    return np.ascontiguousarray(planes.T).reshape(-1).view(kind)


# --------------------------------------------------------------------------- weights

PRECISIONS = ("float32", "float16", "int8")


def compact_table(table: WeightTable) -> WeightTable:
    """Return a weight table for prediction: no zero rows, rows with the most non-zeros first.

    Frequent features have weights for many labels, so that their look-ups are the shortest.
    """
    keys, rows = keys_and_rows(table)
    return _fullest_first(keys, rows, table.v, int(table.ints[at.BITS]))


def _fullest_first(keys: Array, rows: Array, v: Array, bits: int) -> WeightTable:
    """Return a weight table of these rows, sorted by their number of non-zeros."""
    filled = _nonzero_counts(v)[rows]
    order = np.argsort(-filled, kind="stable")[: np.count_nonzero(filled)]
    return make_table(keys[order], v[rows[order]], bits=bits)


def _nonzero_counts(v: Array) -> Array:
    """Return the number of non-zero weights of each row."""
    return np.concatenate([np.count_nonzero(v[i], axis=1) for i in _batches(np.arange(len(v)))])


def keys_and_rows(table: WeightTable) -> tuple[Array, Array]:
    """Return the feature keys of a weight table, sorted, and the row of each key."""
    entries = table.slots[table.slots[:, 1] != 0]
    entries = entries[entries[:, 1] <= len(table.v)]
    entries = entries[np.argsort(entries[:, 0].view(np.uint64), kind="stable")]
    return entries[:, 0], entries[:, 1] - 1


def make_table(keys: Array, v: Array, *, u: Array | None = None, bits: int = 0) -> WeightTable:
    """Return a weight table of rows ``v`` and their feature keys; with ``u``, one for training."""
    n = len(keys)
    # Of keys that hash to one slot the last inserted gets it; the first rows are the most frequent.
    entries = np.stack([keys, np.arange(1, n + 1)], axis=1)[::-1]
    slots = placed(entries, 1 << (3 * n // 2).bit_length())
    return WeightTable(
        slots,
        np.ascontiguousarray(v),
        v[:0].copy() if u is None else u,
        np.full(0 if u is None else n, -1, np.int64),
        np.array([n, 1, 0, bits], np.int64),
        np.array([1.0, 0.0, 0.0, 0.0]),
        v[:0].copy(),
    )


def pack_weights(table: WeightTable, precision: str | None) -> Tensors:
    """Return a weight table as tensors: sorted feature keys and non-zero weights.

    ``precision`` is "float32", "float16" or "int8"; None keeps the weights as they are.
    """
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(f"precision must be None or {', '.join(PRECISIONS)}, found {precision!r}")
    keys, rows = keys_and_rows(table)
    parts = [_round_weights(table.v[some], precision) for some in _batches(rows)]
    return {"keys": _delta_encode(keys), **_concatenate(parts)}


def _round_weights(v: Array, precision: str | None) -> Tensors:
    scales: Tensors = {}
    if precision in ("float32", "float16"):
        most = np.finfo(precision).max
        v = np.clip(v, -most, most).astype(precision)
    elif precision == "int8":
        # One scale for each row, so that errors are small relative to the row's largest weight.
        largest = np.abs(v).max(axis=1, initial=0)
        scale = np.minimum(largest / 127, np.finfo(np.float16).max).astype(np.float16)
        scale = np.maximum(scale, np.finfo(np.float16).smallest_subnormal)
        v = np.clip(np.rint(v / scale[:, None].astype(np.float64)), -127, 127).astype(np.int8)
        scales = {"scales": scale}
    return {**scales, **to_sparse(v)}


def _batches(rows: Array) -> list[Array]:
    """Split rows into batches, so that little memory is copied at a time."""
    return np.array_split(rows, 1 + len(rows) // SOME)


def _concatenate(parts: Sequence[Tensors]) -> Tensors:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def unpack_weights(
    tensors: Mapping[str, Array], n_labels: int, dtype: Any, bits: int
) -> WeightTable:
    """Return the compact weight table that ``pack_weights`` stored."""
    keys = _delta_decode(tensors["keys"])
    v = to_dense(tensors, len(keys), n_labels).astype(dtype)
    if "scales" in tensors:
        if tensors["scales"].shape != (len(keys),):
            raise BadModel("its rows and their scales are not equally many")
        v *= tensors["scales"][:, None].astype(dtype)
    check_finite(v)
    return _fullest_first(keys, np.arange(len(keys)), v, bits)


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
    counts, columns, values = (tensors[prefix + name] for name in ("counts", "labels", "values"))
    if len(counts) != n_rows or counts.sum(dtype=np.int64) != len(columns):
        raise BadModel("the rows of its weights do not add up")
    if len(columns) != len(values) or (columns >= n_columns).any():
        raise BadModel(f"found weights for other labels than its {n_columns}")
    if n_rows * n_columns * values.itemsize > LARGEST_TABLE:
        raise BadModel(f"found {n_rows} rows of {n_columns} weights, more than can be")
    v = np.zeros((n_rows, n_columns), values.dtype)
    v[np.repeat(np.arange(n_rows), counts), columns] = values
    return v


def check_finite(array: Array) -> None:
    """Raise BadModel unless all numbers are finite."""
    if not np.isfinite(array).all():
        raise BadModel("found weights that are no finite numbers")


def _delta_encode(keys: Array) -> Array:
    """Return the differences of sorted keys, which compress better."""
    return np.diff(keys.view(np.uint64), prepend=np.uint64(0)).astype("<u8")


def _delta_decode(gaps: Array) -> Array:
    if gaps.dtype != np.dtype("<u8") or (gaps[1:] == 0).any():
        raise BadModel("found a key twice")
    keys = np.cumsum(gaps.astype(np.uint64), dtype=np.uint64)
    if (keys[1:] < keys[:-1]).any():
        raise BadModel("found keys out of order")
    return keys.view(np.int64)


def pack_learning(training: Training) -> Tensors:
    """Return the state of training as tensors: all rows, running sums and counters."""
    table = training.table
    keys, rows = keys_and_rows(table)
    matrices = {"v": table.v, "u": table.u}
    if training.squares is not None:
        matrices["squares"] = training.squares
    if len(table.precisions):
        matrices["precisions"] = table.precisions
    tensors = {
        "learning.keys": _delta_encode(keys),
        "learning.ints": table.ints.astype("<i8"),
        "learning.reals": table.reals.astype("<f8"),
        "learning.clock": np.array([training.clock], "<f8"),
    }
    for name, matrix in matrices.items():
        prefix = f"learning.{name}."
        tensors |= _concatenate([to_sparse(matrix[some], prefix) for some in _batches(rows)])
    return tensors


def unpack_learning(
    training: Training, tensors: Mapping[str, Array], n_labels: int, dtype: Any
) -> None:
    """Restore the state of training that ``pack_learning`` stored."""
    keys = _delta_decode(tensors["learning.keys"])
    v = to_dense(tensors, len(keys), n_labels, "learning.v.")
    u = to_dense(tensors, len(keys), n_labels, "learning.u.")
    ints, reals = tensors["learning.ints"].astype(np.int64), tensors["learning.reals"].copy()
    if v.dtype != dtype or u.dtype != dtype or ints.shape != (4,) or reals.shape != (4,):
        raise BadModel("the state of its training is not of the right shape")
    clock = tensors["learning.clock"]
    if clock.shape != (1,):
        raise BadModel("the clock of its training is none")
    sums: dict[str, Array] = {}
    for name in ("squares", "precisions"):
        if f"learning.{name}.counts" in tensors:
            sums[name] = to_dense(tensors, len(keys), n_labels, f"learning.{name}.").astype(dtype)
            if (sums[name] < 0.0).any():
                raise BadModel(f"found {name} below zero")
    for array in (v, u, reals, clock, *sums.values()):
        check_finite(array)
    if ints[at.GENERATION] < 1 or ints[at.TICKS] < 0 or not 0 <= ints[at.BITS] < 63:
        raise BadModel("the counters of its training are out of range")
    ints[at.ROWS] = len(keys)
    precisions = sums.get("precisions", v[:0].copy())
    table = make_table(keys, v, u=u)
    training.table = table._replace(ints=ints, reals=reals, precisions=precisions)
    training.squares, training.clock = sums.get("squares"), float(clock[0])


# --------------------------------------------------------------------------- parameters


def parameter_to_json(value: Any) -> Any:
    """Return a parameter as JSON; queues, updates and strategies as the text of ``unparse``."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Template):
        return str(value)
    if isinstance(value, Sequence):
        return [parameter_to_json(each) for each in value]
    if isinstance(value, Mapping):
        pairs = value.items()
        return {"table": [[parameter_to_json(part) for part in pair] for pair in pairs]}
    return {"value": unparse(value)}


def parameter_from_json(stored: Any) -> Any:
    """Return the parameter that ``parameter_to_json`` stored."""
    if isinstance(stored, list):
        return [parameter_from_json(each) for each in stored]
    if not isinstance(stored, dict):
        return stored
    if "table" in stored:
        pairs = stored["table"]
        return {parameter_from_json(key): parameter_from_json(value) for key, value in pairs}
    return parse(stored["value"])
