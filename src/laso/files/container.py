"""Model files: one safetensors file whose metadata is a JSON header; loading never runs code.

The header has the format's version, the task, the parameters, a digest of the head of the file
(computed with zeros in place of the digest) and a checksum of each array, so that damaged or
truncated files are detected. The arrays are there as they are, so that a file can be mapped into
memory, or compressed one by one.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadData, BadModel, InputError, LasoError, cut, quoted
from laso.files.atomic import naming, write_bytes
from laso.files.compression import check_array, compressed, decompressed
from laso.files.limits import check_needs, finite_json
from laso.files.opening import open_regular

FORMAT = 5
LARGEST_HEADER = 100_000_000
PART = 1 << 18  # bytes to read at a time
ALIGNMENT = 64  # bytes: the arrays begin at a multiple, as those of NumPy do
DIGEST = re.compile(rb'\\"digest\\":\\"([0-9a-f]{32})\\"')
SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
ZEROS = b"0" * 32

Header = dict[str, Any]
Tensors = dict[str, Array]

# --------------------------------------------------------------------------- writing


def write_file(
    path: str | os.PathLike[str], header: Header, tensors: Tensors, *, compress: bool = True
) -> int:
    """Write a model file atomically and return its size in bytes."""
    with naming(path):
        data = file_bytes(header, tensors, compress=compress)
        write_bytes(path, data)
    return len(data)


def file_bytes(header: Header, tensors: Tensors, *, compress: bool = True) -> bytes:
    """Return the bytes of a model file.

    The numbers with the most bytes come first, so that all are where the processor wants them.
    """
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    parts, arrays = {}, {}
    for name in names:
        tensor = np.ascontiguousarray(tensors[name])
        kept = len(tensor)
        if compress:
            parts[name], kept = compressed(tensor)
        else:
            parts[name] = tensor.tobytes()
        arrays[name] = [tensor.dtype.str, len(tensor), kept, zlib.crc32(parts[name])]
    entries: dict[str, Any] = {"__metadata__": {"laso": _header_text(header, arrays, compress)}}
    end = 0
    for name, part in parts.items():
        offsets = [end, end := end + len(part)]
        entries[name] = {"dtype": "U8", "shape": [len(part)], "data_offsets": offsets}
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    head = len(text).to_bytes(8, "little") + text
    return b"".join([head.replace(ZEROS, _digest(head), 1), *parts.values()])


def _header_text(header: Header, arrays: dict[str, list[Any]], compress: bool) -> str:
    """Return a header as JSON; what every file has is before and after it."""
    from laso import __version__

    first = {"digest": ZEROS.decode(), "format": FORMAT, "compressed": compress}
    full = {**first, "library": f"laso {__version__}", **header, "arrays": arrays}
    try:
        text = json.dumps(full, separators=(",", ":"), allow_nan=False)
        check_text(text, header)
        return text
    except (RecursionError, TypeError, ValueError) as error:
        raise BadData(f"found in the metadata what a model file cannot have: {error}") from error


def check_text(text: str, header: Header) -> None:
    """Raise UnicodeEncodeError for half a pair of surrogates in a header, or in its JSON text."""
    text.encode()
    if SURROGATE.search(text):
        json.dumps(header, ensure_ascii=False).encode()


def _digest(head: bytes) -> bytes:
    return hashlib.blake2b(head, digest_size=16).hexdigest().encode()


# --------------------------------------------------------------------------- reading


class Contents:
    """The bytes of a file, which are read when they are asked for, or mapped into memory.

    A change in memory does not change a mapped file. A change of the file changes the arrays, and
    truncating it crashes the process. So map only files that stay as they are.
    """

    def __init__(self, file: BinaryIO, *, mapped: bool = False) -> None:
        self.file, self.size = file, file.seek(0, os.SEEK_END)
        self.bytes: Array | None = None
        if not self.size:
            raise BadModel("it is empty")
        if mapped:
            import mmap

            self.bytes = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), "u1")

    def part(self, first: int, end: int, checksum: int | None = None) -> Array:
        """Return the bytes between two places; those that are read must have the checksum."""
        if self.bytes is not None:
            return self.bytes[first:end]
        self.file.seek(first)
        array, crc = np.empty(end - first, np.uint8), 0
        for begin in range(0, len(array), PART):  # the checksum of what is in the cache
            piece = array.data[begin : begin + PART]
            if self.file.readinto(piece) < len(piece):  # type: ignore[attr-defined]
                raise BadModel("it was cut short while it was read")
            crc = zlib.crc32(piece, crc)
        if checksum is not None and crc != checksum:
            raise BadModel("it is damaged: the checksum of an array differs")
        return array


def read_file(
    path: str | os.PathLike[str], *, limit: float | None = None, mmap: bool = False
) -> tuple[Header, Tensors]:
    """Check a model file and return its header and tensors.

    ``limit`` is the largest number of bytes that the model may take in memory. With ``mmap`` the
    tensors are the file itself in memory, of which only the head is checked against damage.
    """
    with naming(path), as_bad_model(path), open_regular(path) as file:
        return _read(Contents(file, mapped=mmap), limit)


def read_bytes(data: bytes, *, limit: float | None = None) -> tuple[Header, Tensors]:
    """Check the bytes of a model file and return its header and tensors."""
    return _read(Contents(io.BytesIO(data)), limit)


def _read(data: Contents, limit: float | None) -> tuple[Header, Tensors]:
    header, places = _read_head(data)
    version, is_compressed = header["format"], header["compressed"]
    if version != FORMAT or type(version) is not int:
        newer = " (a later version of laso has made it)" if version > FORMAT else ""
        raise BadModel(f"found format {quoted(version)}, expected {FORMAT}{newer}")
    if set(places) != set(header["arrays"]):
        raise BadModel("its tensors are not those that its header names")
    if data.bytes is not None and is_compressed:
        raise BadModel("it is compressed, expected a file of save(path, compress=False) to map")
    for name, (dtype, size, kept, _) in header["arrays"].items():
        stored = places[name][1] - places[name][0]
        nbytes = check_array(stored, dtype, size, kept)
        if not is_compressed and (stored != nbytes or kept != size):
            raise BadModel(f"found {stored} bytes for an array of {nbytes}")
    check_needs(header, data.size, limit)
    tensors = {}
    for name, (dtype, size, kept, checksum) in header["arrays"].items():
        part = data.part(*places[name], int(checksum))
        tensors[name] = decompressed(part, dtype, size, kept) if is_compressed else part.view(dtype)
    return header, tensors


def _read_head(data: Contents) -> tuple[Header, dict[str, tuple[int, int]]]:
    """Verify the digest; return the header, and where each tensor begins and ends."""
    size = struct.unpack("<Q", data.part(0, 8).tobytes())[0] if data.size >= 8 else LARGEST_HEADER
    if size > min(LARGEST_HEADER, data.size - 8):
        raise BadModel("it is no model file of laso, or cut short")
    head = data.part(0, 8 + size).tobytes()
    place = DIGEST.search(head)
    if place is None:
        raise BadModel("it is no model file of laso")
    if _digest(head[: place.start(1)] + ZEROS + head[place.end(1) :]) != place[1]:
        raise BadModel("it is damaged or cut short: its digest differs")
    entries = json.loads(head[8:])
    text = entries.pop("__metadata__")["laso"]
    header = finite_json(text)
    check_text(text, header)
    places, end = {}, 8 + size
    for name, entry in entries.items():
        first, before = 8 + size + entry["data_offsets"][0], end
        end = 8 + size + entry["data_offsets"][1]
        is_bytes = entry["dtype"] == "U8" and entry["shape"] == [end - first]
        if not is_bytes or not before == first <= end:
            raise BadModel(f"its tensor {quoted(name)} is not plain bytes after those before it")
        places[name] = (first, end)
    if end != data.size:
        raise BadModel(f"found {data.size} bytes, expected {end}: it is cut short, or has too many")
    return header, places


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
