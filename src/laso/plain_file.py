"""Model files without compression: the bytes of a tensor are those of the array.

They are read into arrays at once, or mapped into memory. The digest in the header is that of the
head of the file alone; each tensor has a CRC-32, which is computed in a fraction of the time.
"""

from __future__ import annotations

import json
import mmap
import os
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadModel

PLAIN_FORMAT = 3
HEAD_DIGEST = "head_digest"
PART = 1 << 18  # bytes to read at a time
ALIGNMENT = 64  # bytes: the arrays begin at a multiple, as those of NumPy do


def plain_bytes(
    header: Callable[[dict[str, Any]], str], tensors: dict[str, Array]
) -> tuple[bytes, bytes]:
    """Return the head of a file, with zeros for its digest, and the tensors.

    ``header`` returns the JSON of the header, given what this format adds to it. The numbers with
    the most bytes come first, so that all are where the processor wants them.
    """
    names = sorted(tensors, key=lambda name: (-tensors[name].itemsize, name))
    parts = {name: np.ascontiguousarray(tensors[name]).tobytes() for name in names}
    checksums = {name: zlib.crc32(part) for name, part in parts.items()}
    text = header({HEAD_DIGEST: "0" * 32, "format": PLAIN_FORMAT, "checksums": checksums})
    entries: dict[str, Any] = {"__metadata__": {"laso": text}}
    end = 0
    for name, part in parts.items():
        offsets = [end, end := end + len(part)]
        entries[name] = {"dtype": "U8", "shape": [len(part)], "data_offsets": offsets}
    head = json.dumps(entries, separators=(",", ":")).encode()
    head += b" " * (-(8 + len(head)) % ALIGNMENT)
    return len(head).to_bytes(8, "little") + head, b"".join(parts.values())


class Pieces:
    """The bytes of a file, of which a slice is read when it is asked for."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.file, self.size = file, size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, part: slice) -> bytes:
        first, end, _ = part.indices(self.size)
        self.file.seek(first)
        found = self.file.read(max(0, end - first))
        if len(found) < end - first:
            raise _shortened()
        return found

    def fill(self, array: Array, first: int) -> int:
        """Read the bytes from a place on into an array; return their checksum.

        It is computed of each part while that is in the processor's cache.
        """
        self.file.seek(first)
        target, checksum = array.view(np.uint8).data, 0
        for begin in range(0, len(target), PART):
            part = target[begin : begin + PART]
            if self.file.readinto(part) < len(part):  # type: ignore[attr-defined]
                raise _shortened()
            checksum = zlib.crc32(part, checksum)
        return checksum


class Mapped:
    """The bytes of a file, mapped into memory.

    What is changed in memory does not change the file, but who changes the file changes the arrays,
    and who cuts it short ends the process: it is for files that stay as they are.
    """

    def __init__(self, file: BinaryIO) -> None:
        if not os.fstat(file.fileno()).st_size:
            raise BadModel("it is empty")
        self.bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))

    def __len__(self) -> int:
        return len(self.bytes)

    def __getitem__(self, part: slice) -> memoryview:
        return self.bytes[part]


def plain_array(
    data: memoryview | Pieces | Mapped,
    place: tuple[int, int],
    dtype: str,
    size: int,
    checksum: int,
) -> Array:
    """Return an array of a file; its checksum is not computed if the file is mapped."""
    kind, (first, end) = np.dtype(dtype), place
    if size * kind.itemsize != end - first:
        raise BadModel(f"found {end - first} bytes for an array of {size * kind.itemsize}")
    if isinstance(data, Mapped):
        return np.frombuffer(data[first:end], kind)
    array = np.empty(size, kind)
    if isinstance(data, Pieces):
        found = data.fill(array, first)
    else:
        array.view(np.uint8)[:] = np.frombuffer(data[first:end], np.uint8)
        found = zlib.crc32(data[first:end])
    if found != checksum:
        raise BadModel("it is damaged: the checksum of an array differs")
    return array


def _shortened() -> BadModel:
    return BadModel("it was cut short while it was read")
