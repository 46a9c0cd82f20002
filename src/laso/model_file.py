"""Model files: one safetensors file whose metadata is a JSON header; loading never runs code.

The header has the format's version, the task, the parameters and the digest of the whole file
(computed with zeros in place of the digest), so that damaged or truncated files are detected.
Tensors are zlib-compressed bytes, whose types and lengths are in the header; in a file without
compression (``laso.plain_file``) they are the arrays themselves. Queue, update and strategy are
stored as the text that ``laso.values.parse`` reads.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

import numpy as np

from laso.compression import check_array, decompress
from laso.compression import compress as compressed
from laso.engine import layout as at
from laso.engine.layout import Array, WeightTable
from laso.engine.rows import (
    ROWS_AT_A_TIME,
    dense_rows,
    from_triples,
    is_sparse,
    n_labels,
    n_rows,
    no_heads,
    sparse_rows,
)
from laso.engine.slots import placed, unchecked
from laso.errors import BadData, BadModel, InputError, LasoError, cut, quoted
from laso.features.templates import Template
from laso.files import naming, write_bytes
from laso.load_limits import check_collisions, check_needs, finite_json
from laso.opening import open_regular
from laso.plain_file import HEAD_DIGEST, PLAIN_FORMAT, Mapped, Pieces, plain_array, plain_bytes
from laso.sparse_matrix import (
    check_finite,
    check_size,
    delta_decode,
    delta_encode,
    to_sparse,
    triples,
)
from laso.values import parse, unparse

FORMAT = 2
FORMATS = (FORMAT, PLAIN_FORMAT)
LARGEST_HEADER = 100_000_000
SMALL = 1 << 26  # bytes; a larger file is read piece by piece, for it would be in memory twice
PIECE = 1 << 20
DIGEST = re.compile(rb'\\"(?:head_)?digest\\":\\"([0-9a-f]{32})\\"')

Header = dict[str, Any]
Tensors = dict[str, Array]

# --------------------------------------------------------------------------- the file


def write_file(
    path: str | os.PathLike[str], header: Header, tensors: Tensors, *, compress: bool = True
) -> int:
    """Write a model file atomically and return its size in bytes."""
    with naming(path):
        data = file_bytes(header, tensors, compress=compress)
        write_bytes(path, data)
    return len(data)


def file_bytes(header: Header, tensors: Tensors, *, compress: bool = True) -> bytes:
    """Return the bytes of a model file."""
    if not compress:
        head, data = plain_bytes(lambda more: _header_text(header, tensors, more), tensors)
        return _digested(head) + data
    import safetensors.numpy

    text = _header_text(header, tensors, {"digest": "0" * 32, "format": FORMAT})
    stored = {name: compressed(tensor) for name, tensor in tensors.items()}
    return _digested(safetensors.numpy.save(stored, {"laso": text}))


def _header_text(header: Header, tensors: Tensors, more: Header) -> str:
    """Return a header as JSON, ``more`` before what every file has."""
    from laso import __version__

    arrays = {name: [t.dtype.str, len(t)] for name, t in tensors.items()}
    full = {**more, "library": f"laso {__version__}", **header, "arrays": arrays}
    try:
        return json.dumps(full, separators=(",", ":"), allow_nan=False)
    except (RecursionError, TypeError, ValueError) as error:
        raise BadData(f"found in the metadata what a model file cannot have: {error}") from error


def _digested(data: bytes) -> bytes:
    """Return bytes with their digest in its place, which has zeros."""
    place = DIGEST.search(data)
    assert place is not None
    digest = hashlib.blake2b(data, digest_size=16).hexdigest().encode()
    return data[: place.start(1)] + digest + data[place.end(1) :]


def read_file(
    path: str | os.PathLike[str],
    task: str | None = None,
    *,
    limit: float | None = None,
    mmap: bool = False,
) -> tuple[Header, Tensors]:
    """Check a model file and return its header and tensors.

    A file for another task than ``task`` raises BadModel; None: any task. ``limit`` is the largest
    number of bytes that the model may take in memory. With ``mmap`` the tensors are the file itself
    in memory, of which only the head is checked against damage.
    """
    with naming(path), as_bad_model(path), open_regular(path) as file:
        return read_bytes(Mapped(file) if mmap else contents(file), task, limit=limit)


def read_bytes(
    data: Contents, task: str | None = None, *, limit: float | None = None
) -> tuple[Header, Tensors]:
    """Check the bytes of a model file and return its header and tensors."""
    header, stored = _check_file(data)
    found = header["format"]
    if found not in FORMATS or type(found) is not int:
        newer = " (a later version of laso has made it)" if found > max(FORMATS) else ""
        expected = " or ".join(map(str, FORMATS))
        raise BadModel(f"found format {quoted(found)}, expected {expected}{newer}")
    if task is not None and header["task"] != task:
        raise BadModel(f"found a model for {quoted(header['task'])}, expected {task!r}")
    if set(stored) != set(header["arrays"]):
        raise BadModel("its tensors are not those that its header names")
    plain = found == PLAIN_FORMAT
    if plain != (HEAD_DIGEST in header):
        raise BadModel(f"found a digest of another format than {found}")
    if isinstance(data, Mapped) and not plain:
        raise BadModel("it is compressed, expected a file of save(path, compress=False) to map")
    for name, (dtype, size) in header["arrays"].items():
        check_array(stored[name][1] - stored[name][0], dtype, size)
    check_needs(header, len(data), limit)
    tensors = {}
    for name, (dtype, size) in header["arrays"].items():
        first, end = stored[name]
        if plain:
            checksum = header["checksums"][name]
            tensors[name] = plain_array(data, (first, end), dtype, size, checksum)
        else:
            tensors[name] = decompress(data[first:end], dtype, size)
    return header, tensors


Contents = memoryview | Pieces | Mapped


def contents(file: BinaryIO) -> Contents:
    """Return the bytes of a file: a small compressed one is read at once, others by pieces."""
    size = os.fstat(file.fileno()).st_size
    if not size:
        raise BadModel("it is empty")
    pieces = Pieces(file, size)
    if size > SMALL or _of_head(_head(pieces)):
        return pieces
    return memoryview(pieces[:])


def _head(data: Contents) -> bytes:
    """Return the head of a file, a JSON object."""
    size = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else LARGEST_HEADER
    if size > min(LARGEST_HEADER, len(data) - 8):
        raise BadModel("it is no model file of laso, or cut short")
    return bytes(data[8 : 8 + size])


def _of_head(head: bytes) -> bool:
    """Return whether the digest of a file is that of its head, not that of the whole file."""
    place = DIGEST.search(head)
    return place is not None and HEAD_DIGEST.encode() in place[0]


def _check_file(data: Contents) -> tuple[Header, dict[str, tuple[int, int]]]:
    """Verify the digest; return the header and the first and last offset of each tensor."""
    head = _head(data)
    size, place = len(head), DIGEST.search(head)
    if place is None:
        raise BadModel("it is no model file of laso")
    digest = hashlib.blake2b(digest_size=16)
    digest.update(bytes(data[: 8 + place.start(1)]) + b"0" * 32)
    whole = 8 + size if _of_head(head) else len(data)
    for first in range(8 + place.end(1), whole, PIECE):
        digest.update(data[first : min(first + PIECE, whole)])
    if digest.hexdigest().encode() != place[1]:
        raise BadModel("it is damaged or cut short: its digest differs")
    entries = json.loads(head)
    header = finite_json(entries.pop("__metadata__")["laso"])
    stored = {}
    for name, entry in entries.items():
        first, end = (8 + size + offset for offset in entry["data_offsets"])
        is_plain = entry["dtype"] == "U8" and entry["shape"] == [end - first]
        if not is_plain or not 8 + size <= first <= end <= len(data):
            raise BadModel(f"its tensor {quoted(name)} is not plain bytes, or beyond the end")
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
        ImportError,
        LasoError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
        struct.error,
        zlib.error,
    ) as error:
        reason = error.message if isinstance(error, InputError) else str(error)
        raise BadModel(f"{os.fspath(path)} cannot be loaded: {cut(reason)}") from error


# --------------------------------------------------------------------------- weights

PRECISIONS = ("float32", "float16", "int8")


def compact_table(table: WeightTable) -> WeightTable:
    """Return a weight table for prediction: no zero rows, rows with the most non-zeros first.

    Frequent features have weights for many labels, so that their look-ups are the shortest.
    """
    keys, rows = keys_and_rows(table)
    bits = int(table.ints[at.BITS])
    if not is_sparse(table):
        return _fullest_first(keys, rows, table.v, bits)
    made = sparse_rows(table._replace(u=table.u[:0], precisions=table.precisions[:0]), rows)
    return _longest_first(keys, made, n_labels(table), bits)


def _longest_first(
    keys: Array,
    made: dict[str, Array],
    labels: int,
    bits: int,
    check: Callable[[int, int], None] = unchecked,
) -> WeightTable:
    """Return a weight table of sparse rows, sorted by their number of entries."""
    order = _by_fullness(made["heads"][: len(keys), at.HEAD_LENGTH])
    heads = np.ascontiguousarray(made["heads"][order])
    return make_sparse_table(keys[order], made | {"heads": heads}, labels, bits, check=check)


def _fullest_first(keys: Array, rows: Array, v: Array, bits: int) -> WeightTable:
    """Return a weight table of these rows, sorted by their number of non-zeros."""
    order = _by_fullness(_nonzero_counts(v)[rows])
    return make_table(keys[order], v[rows[order]], bits=bits)


def _by_fullness(filled: Array) -> Array:
    """Return the rows with non-zeros, by falling numbers of these, equal ones in their order."""
    most = int(filled.max(initial=0))
    # NumPy sorts small integers much faster than large ones.
    kind = next((kind for kind in (np.uint8, np.uint16) if most <= np.iinfo(kind).max), np.int64)
    return np.argsort((most - filled).astype(kind), kind="stable")[: np.count_nonzero(filled)]


def make_sparse_table(
    keys: Array,
    made: Mapping[str, Array],
    labels: int,
    bits: int,
    *,
    training: bool = False,
    check: Callable[[int, int], None] = unchecked,
) -> WeightTable:
    """Return a weight table of sparse rows and their feature keys; ``check`` as in ``placed``."""
    n = len(keys)
    heads = made["heads"] if n else np.zeros((1, len(at.HeadColumn)), np.int32)
    entries = np.stack([keys, np.arange(1, n + 1)]).T
    return WeightTable(
        placed(entries, 1 << (3 * n // 2).bit_length(), check=check),
        made["v"],
        made["u"],
        np.full(n if training else 0, -1, np.int64),
        np.array([n, 1, 0, bits, labels, len(made["v"])], np.int64),
        np.array([1.0, 0.0, 0.0, 0.0]),
        made["precisions"],
        heads,
        entry_labels=made["entry_labels"],
    )


def _nonzero_counts(v: Array) -> Array:
    """Return the number of non-zero weights of each row."""
    return np.concatenate([np.count_nonzero(v[i], axis=1) for i in batches(np.arange(len(v)))])


def keys_and_rows(table: WeightTable) -> tuple[Array, Array]:
    """Return the feature keys of a weight table, sorted, and the row of each key."""
    entries = table.slots[table.slots[:, 1] != 0]
    entries = entries[entries[:, 1] <= n_rows(table)]
    entries = entries[np.argsort(entries[:, 0].view(np.uint64), kind="stable")]
    return entries[:, 0], entries[:, 1] - 1


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
    n = len(keys)
    entries = np.stack([keys, np.arange(1, n + 1)]).T
    slots = placed(entries, 1 << (3 * n // 2).bit_length(), check=check)
    return WeightTable(
        slots,
        np.ascontiguousarray(v),
        v[:0].copy() if u is None else u,
        np.full(0 if u is None else n, -1, np.int64),
        np.array([n, 1, 0, bits, v.shape[1], 0], np.int64),
        np.array([1.0, 0.0, 0.0, 0.0]),
        v[:0].copy(),
        no_heads(),
    )


def pack_weights(table: WeightTable, precision: str | None) -> Tensors:
    """Return a weight table as tensors: sorted feature keys and non-zero weights.

    ``precision`` is "float32", "float16" or "int8"; None keeps the weights as they are.
    """
    if precision is not None and precision not in PRECISIONS:
        raise ValueError(f"precision must be None or {', '.join(PRECISIONS)}, found {precision!r}")
    keys, rows = keys_and_rows(table)
    parts = [_round_weights(dense_rows(table, some), precision) for some in batches(rows)]
    return {"keys": delta_encode(keys), **concatenate(parts)}


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


def batches(rows: Array) -> list[Array]:
    """Split rows into batches, so that little memory is copied at a time."""
    return np.array_split(rows, 1 + len(rows) // ROWS_AT_A_TIME)


def concatenate(parts: Sequence[Tensors]) -> Tensors:
    """Return the tensors of all parts, each end to end."""
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def unpack_weights(
    tensors: Mapping[str, Array], n_labels: int, dtype: Any, bits: int, *, sparse: bool = False
) -> WeightTable:
    """Return the compact weight table that ``pack_weights`` stored."""
    keys = delta_decode(tensors["keys"])
    rows, columns, values = triples(tensors, len(keys), n_labels, "")
    values = values.astype(dtype)
    if "scales" in tensors:
        if tensors["scales"].shape != (len(keys),):
            raise BadModel("its rows and their scales are not equally many")
        values *= tensors["scales"][rows].astype(dtype)
    check_finite(values)
    if not (values != 0).all():  # no file of ours
        kept = values != 0
        rows, columns, values = rows[kept], columns[kept], values[kept]
    if sparse:
        return _sparse_from(keys, (rows, columns, values), n_labels, bits)
    return _dense_from(keys, (rows, columns, values), n_labels, bits)


Triples = tuple[Array, Array, Array]  # row, column and value of all weights, row by row


def _dense_from(keys: Array, weights: Triples, labels: int, bits: int) -> WeightTable:
    rows, columns, values = weights
    order = _by_fullness(np.bincount(rows, minlength=len(keys)))
    check_size(len(order), labels, values.itemsize)
    starts = np.zeros(len(keys), np.int64)
    starts[order] = np.arange(0, labels * len(order), labels)
    v = np.zeros(len(order) * labels, values.dtype)
    places = starts.take(rows)
    places += columns
    v[places] = values
    table = v.reshape(len(order), labels)
    return make_table(keys[order], table, bits=bits, check=check_collisions)


def _sparse_from(keys: Array, weights: Triples, labels: int, bits: int) -> WeightTable:
    rows, columns, values = weights
    made = from_triples(rows, columns, {"v": values}, len(keys), labels)
    return _longest_first(keys, made, labels, bits, check_collisions)


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
