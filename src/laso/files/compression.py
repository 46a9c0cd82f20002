"""Arrays of model files as compressed bytes."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadModel, quoted

LEVEL = 2  # level 6 takes twice the time to save, for files 2 % smaller
WORTH = 0.95  # of its size that compressed data may have
ZLIB_HEAD, ZLIB_END = b"\x78\x5e", b"\x03\x00"  # before the blocks, and an empty last one
LARGEST_RATIO = 1100  # the largest compression ratio of zlib
DTYPES = {"|u1", "|i1", "<u2", "<u4", "<u8", "<i4", "<i8", "<f2", "<f4", "<f8"}


def compressed(array: Array) -> tuple[bytes, int]:
    """Return an array as bytes of zlib's format, and how many of its numbers are in these.

    Real numbers that are mostly zero are stored as a bit for each, then those that are not zero.
    The first bytes of all numbers are followed by their second bytes, which are similar. Bytes that
    hardly become fewer, as the last ones of real numbers, are stored as they are: to read them
    takes a tenth of the time.
    """
    if array.dtype.str not in DTYPES or array.ndim != 1:
        raise ValueError(f"cannot store an array of {array.dtype} with {array.ndim} dimensions")
    pieces = []
    if array.dtype.kind == "f":
        is_kept = array.view(f"u{array.itemsize}") != 0  # -0.0 is kept
        if 2 * np.count_nonzero(is_kept) < len(array):
            pieces, array = [np.packbits(is_kept)], array[is_kept]
    pieces += list(array.view(np.uint8).reshape(len(array), array.itemsize).T)
    parts, checksum = [ZLIB_HEAD], 1
    for piece in pieces:
        data = piece.tobytes()
        small = _blocks(data, LEVEL)
        parts.append(small if len(small) < WORTH * len(data) else _blocks(data, 0))
        checksum = zlib.adler32(data, checksum)
    return b"".join([*parts, ZLIB_END, checksum.to_bytes(4, "big")]), len(array)


def _blocks(data: bytes, level: int) -> bytes:
    """Return the blocks of zlib's format for some bytes, to which others may be appended."""
    compressor = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush(zlib.Z_FULL_FLUSH)


def decompressed(stored: Any, dtype: str, size: int, kept: int) -> Array:
    """Return the array that ``compressed`` compressed; other bytes raise BadModel."""
    expected, inflate = check_array(len(stored), dtype, size, kept), zlib.decompressobj()
    raw = np.frombuffer(inflate.decompress(stored, expected + 1), np.uint8)
    if len(raw) != expected or not inflate.eof:
        raise BadModel(f"found an array of {len(raw)} bytes, expected {expected}")
    kind = np.dtype(dtype)
    planes = raw[expected - kept * kind.itemsize :].reshape(kind.itemsize, kept)
    values = np.ascontiguousarray(planes.T).reshape(-1).view(kind)
    if kept == size:
        return values
    is_kept = np.unpackbits(raw[: expected - kept * kind.itemsize], count=size).view(bool)
    if np.count_nonzero(is_kept) != kept:
        raise BadModel(f"found places of other numbers than the {kept} that are stored")
    array = np.zeros(size, kind)
    array[is_kept] = values
    return array


def check_array(stored: int, dtype: str, size: int, kept: int) -> int:
    """Return the bytes of an array before compression; BadModel: there are too few stored.

    ``kept`` is the number of its numbers that are stored; the others are zero.
    """
    is_size = type(size) is int and type(kept) is int and 0 <= kept <= size
    if dtype not in DTYPES or not is_size:
        raise BadModel(f"found an array of {quoted(size)} times {quoted(dtype)}")
    nbytes = kept * np.dtype(dtype).itemsize + (-(-size // 8) if kept < size else 0)
    if nbytes > LARGEST_RATIO * stored:
        raise BadModel(f"found {stored} bytes for an array of {nbytes}")
    return nbytes
