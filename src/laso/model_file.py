"""Model files: one safetensors file whose metadata is a JSON header; loading never runs code.

The header has the format's version, the task, the configuration and the digest of the whole file
(with zeros in its own place), so that a damaged or truncated file is noticed before it is used.
Tensors are zlib-compressed bytes; the header says what each of them holds. Queue, update and
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
LEVEL = 2  # 6 takes twice the time to save, for files 2 % smaller
LARGEST_RATIO = 1100  # zlib makes nothing smaller than that
DTYPES = {"|u1", "|i1", "<u2", "<u4", "<u8", "<i8", "<f2", "<f4", "<f8"}
_DIGEST = re.compile(rb'\\"digest\\":\\"([0-9a-f]{32})\\"')

Header = dict[str, Any]
Tensors = dict[str, Array]

# --------------------------------------------------------------------------- the file


def write_file(path: str | os.PathLike[str], header: Header, tensors: Tensors) -> int:
    """Write a model file in one step, so that nobody ever sees half of one; its size in bytes."""
    from laso import __version__

    arrays = {name: [t.dtype.str, len(t)] for name, t in tensors.items()}
    full = {
        "digest": "0" * 32,
        "format": FORMAT,
        "library": f"laso {__version__}",
        **header,
        "arrays": arrays,
    }
    data = safetensors.numpy.save(
        {name: _squeezed(tensor) for name, tensor in tensors.items()},
        {"laso": json.dumps(full, separators=(",", ":"), allow_nan=False)},
    )
    place = _DIGEST.search(data)
    assert place is not None
    data = data[: place.start(1)] + _digest(data) + data[place.end(1) :]
    _write_whole(Path(path), data)
    return len(data)


def read_file(path: str | os.PathLike[str], task: str | None = None) -> tuple[Header, Tensors]:
    """Header and tensors of a model file, after all that can be checked has been.

    A file for another ``task`` is refused, if one is given.
    """
    with Path(path).open("rb") as file, reading(path):
        data = _mapped(file)
        header, stored = _checked(data)
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
            tensors[name] = _unsqueezed(data[first:end], dtype, size)
    return header, tensors


def _mapped(file: IO[bytes]) -> memoryview:
    """The bytes of a file where the system has them, not copied."""
    if not os.fstat(file.fileno()).st_size:
        raise BadModel("it is empty")
    # It is closed with the last part of it that is in use: an error may hold one.
    return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _checked(data: memoryview) -> tuple[Header, dict[str, tuple[int, int]]]:
    """The header, and where each tensor begins and ends, if the file is as it was written."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else LARGEST_HEADER
    if size > min(LARGEST_HEADER, len(data) - 8):
        raise BadModel("it is no model file of laso, or cut short")
    head = bytes(data[8 : 8 + size])
    place = _DIGEST.search(head)
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
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Whatever is found wrong inside is one clear error about the file."""
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


def _write_whole(path: Path, data: bytes) -> None:
    beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _squeezed(array: Array) -> Array:
    """Compressed bytes: all first bytes, then all second bytes, for these are alike."""
    if array.dtype.str not in DTYPES or array.ndim != 1:
        raise ValueError(f"cannot store an array of {array.dtype} with {array.ndim} dimensions")
    planes = np.ascontiguousarray(array).view(np.uint8).reshape(len(array), array.itemsize).T
    return np.frombuffer(zlib.compress(planes.tobytes(), LEVEL), np.uint8)


def _unsqueezed(stored: memoryview | bytes, dtype: str, size: int) -> Array:
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

PACKINGS = ("float32", "float16", "int8")


def packed(table: WeightTable) -> WeightTable:
    """The table that only scores: without rows that are all zero, the fullest rows first.

    Common features have weights for many labels, so that they are found first.
    """
    keys, rows = stored_rows(table)
    return _fullest_first(keys, rows, table.v, int(table.ints[at.BITS]))


def _fullest_first(keys: Array, rows: Array, v: Array, bits: int) -> WeightTable:
    """A table of the rows named, whose keys are in their order."""
    filled = _filled(v)[rows]
    order = np.argsort(-filled, kind="stable")[: np.count_nonzero(filled)]
    return table_of(keys[order], v[rows[order]], bits=bits)


def _filled(v: Array) -> Array:
    """How many weights of each row are not zero."""
    return np.concatenate([np.count_nonzero(v[i], axis=1) for i in _in_parts(np.arange(len(v)))])


def stored_rows(table: WeightTable) -> tuple[Array, Array]:
    """The keys of a table, sorted, and the row of each."""
    entries = table.slots[table.slots[:, 1] != 0]
    entries = entries[entries[:, 1] <= len(table.v)]
    entries = entries[np.argsort(entries[:, 0].view(np.uint64), kind="stable")]
    return entries[:, 0], entries[:, 1] - 1


def table_of(keys: Array, v: Array, *, u: Array | None = None, bits: int = 0) -> WeightTable:
    """A table of given rows; with ``u``, one to go on learning with."""
    n = len(keys)
    # Of keys that want one slot the last is given it: so the first rows, which are asked for most.
    entries = np.stack([keys, np.arange(1, n + 1)], axis=1)[::-1]
    slots = placed(entries, 1 << (3 * n // 2).bit_length())
    return WeightTable(
        slots,
        np.ascontiguousarray(v),
        v[:0].copy() if u is None else u,
        np.full(0 if u is None else n, -1, np.int64),
        np.array([n, 1, 0, bits], np.int64),
        np.array([1.0, 0.0, 0.0, 0.0]),
    )


def pack_weights(table: WeightTable, packing: str | None) -> Tensors:
    """The weights as tensors: sorted keys, and the weights that are not zero; None: unchanged."""
    if packing is not None and packing not in PACKINGS:
        raise ValueError(f"weights must be None or {', '.join(PACKINGS)}, found {packing!r}")
    keys, rows = stored_rows(table)
    parts = [_packed_part(table.v[some], packing) for some in _in_parts(rows)]
    return {"keys": _gaps(keys), **_joined(parts)}


def _packed_part(v: Array, packing: str | None) -> Tensors:
    scales: Tensors = {}
    if packing in ("float32", "float16"):
        most = np.finfo(packing).max
        v = np.clip(v, -most, most).astype(packing)
    elif packing == "int8":
        # One scale a row: a weight's error is then small beside the row's largest.
        largest = np.abs(v).max(axis=1, initial=0)
        scale = np.minimum(largest / 127, np.finfo(np.float16).max).astype(np.float16)
        scale = np.maximum(scale, np.finfo(np.float16).smallest_subnormal)
        v = np.clip(np.rint(v / scale[:, None].astype(np.float64)), -127, 127).astype(np.int8)
        scales = {"scales": scale}
    return {**scales, **sparse(v)}


def _in_parts(rows: Array) -> list[Array]:
    """Rows to be worked on part by part, so that little is copied at a time."""
    return np.array_split(rows, 1 + len(rows) // SOME)


def _joined(parts: Sequence[Tensors]) -> Tensors:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def unpack_weights(
    tensors: Mapping[str, Array], n_labels: int, dtype: Any, bits: int
) -> WeightTable:
    """The table that ``pack_weights`` took apart, packed."""
    keys = _summed(tensors["keys"])
    v = dense(tensors, len(keys), n_labels).astype(dtype)
    if "scales" in tensors:
        if tensors["scales"].shape != (len(keys),):
            raise BadModel("its rows and their scales are not equally many")
        v *= tensors["scales"][:, None].astype(dtype)
    check_finite(v)
    return _fullest_first(keys, np.arange(len(keys)), v, bits)


def sparse(v: Array, prefix: str = "") -> Tensors:
    """A matrix of few non-zeros as how many each row has, their columns, and their values."""
    rows, columns = np.nonzero(v)
    kind = "|u1" if v.shape[1] <= 256 else "<u4"
    counts = np.bincount(rows, minlength=len(v))
    return {
        f"{prefix}counts": counts.astype("|u1" if v.shape[1] < 256 else "<u4"),
        f"{prefix}labels": columns.astype(kind),
        f"{prefix}values": v[rows, columns].astype(v.dtype.newbyteorder("<")),
    }


def dense(tensors: Mapping[str, Array], n_rows: int, n_columns: int, prefix: str = "") -> Array:
    """The matrix that ``sparse`` took apart."""
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
    """Weights must be finite numbers."""
    if not np.isfinite(array).all():
        raise BadModel("found weights that are no finite numbers")


def _gaps(keys: Array) -> Array:
    """Sorted keys as differences, whose first bytes are mostly zero."""
    return np.diff(keys.view(np.uint64), prepend=np.uint64(0)).astype("<u8")


def _summed(gaps: Array) -> Array:
    if gaps.dtype != np.dtype("<u8") or (gaps[1:] == 0).any():
        raise BadModel("found a key twice")
    keys = np.cumsum(gaps.astype(np.uint64), dtype=np.uint64)
    if (keys[1:] < keys[:-1]).any():
        raise BadModel("found keys out of order")
    return keys.view(np.int64)


def pack_learning(training: Training) -> Tensors:
    """A table in the midst of learning: every row, the running sums and the counters."""
    table = training.table
    keys, rows = stored_rows(table)
    matrices = {"v": table.v, "u": table.u}
    if training.squares is not None:
        matrices["squares"] = training.squares
    tensors = {
        "learning.keys": _gaps(keys),
        "learning.ints": table.ints.astype("<i8"),
        "learning.reals": table.reals.astype("<f8"),
        "learning.clock": np.array([training.clock], "<f8"),
    }
    for name, matrix in matrices.items():
        prefix = f"learning.{name}."
        tensors |= _joined([sparse(matrix[some], prefix) for some in _in_parts(rows)])
    return tensors


def unpack_learning(
    training: Training, tensors: Mapping[str, Array], n_labels: int, dtype: Any
) -> None:
    """Give a training what ``pack_learning`` took apart."""
    keys = _summed(tensors["learning.keys"])
    v = dense(tensors, len(keys), n_labels, "learning.v.")
    u = dense(tensors, len(keys), n_labels, "learning.u.")
    ints, reals = tensors["learning.ints"].astype(np.int64), tensors["learning.reals"].copy()
    if v.dtype != dtype or u.dtype != dtype or ints.shape != (4,) or reals.shape != (4,):
        raise BadModel("the state of its training is not of the right shape")
    clock = tensors["learning.clock"]
    if clock.shape != (1,):
        raise BadModel("the clock of its training is none")
    squares = None
    if "learning.squares.counts" in tensors:
        squares = dense(tensors, len(keys), n_labels, "learning.squares.").astype(dtype)
        if (squares < 0.0).any():
            raise BadModel("found squares below zero")
    for array in (v, u, reals, clock, *([] if squares is None else [squares])):
        check_finite(array)
    if ints[at.GENERATION] < 1 or ints[at.TICKS] < 0 or not 0 <= ints[at.BITS] < 63:
        raise BadModel("the counters of its training are out of range")
    ints[at.ROWS] = len(keys)
    training.table = table_of(keys, v, u=u)._replace(ints=ints, reals=reals)
    training.squares, training.clock = squares, float(clock[0])


# --------------------------------------------------------------------------- parameters


def described(thing: Any) -> Any:
    """A parameter as JSON: queues, updates and strategies by the text that ``parse`` reads."""
    if thing is None or isinstance(thing, (bool, int, float, str)):
        return thing
    if isinstance(thing, Template):
        return str(thing)
    if isinstance(thing, Sequence):
        return [described(each) for each in thing]
    if isinstance(thing, Mapping):
        return {"table": [[described(key), described(value)] for key, value in thing.items()]}
    return {"value": unparse(thing)}


def restored(description: Any) -> Any:
    """The parameter that ``described`` described."""
    if isinstance(description, list):
        return [restored(each) for each in description]
    if not isinstance(description, dict):
        return description
    if "table" in description:
        return {restored(key): restored(value) for key, value in description["table"]}
    return parse(description["value"])
