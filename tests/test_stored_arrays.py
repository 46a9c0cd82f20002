"""Arrays and matrices of a model file come back."""

import zlib
from typing import Any

import numpy as np
import pytest

from laso import (
    BadModel,
)
from laso.engine import layout as at
from laso.engine.machine import as_names, new_table
from laso.engine.weights.compact import compact_table, make_table
from laso.files.compression import compressed, decompressed
from laso.files.weight_tensors import pack_weights, unpack_weights


@pytest.mark.parametrize(
    ("stored", "dtype", "size"),
    [
        (zlib.compress(bytes(10**6)), "|u1", 10**6 - 1),
        (zlib.compress(bytes(10**6)), "|u1", 10**6 + 1),
        (zlib.compress(bytes(8)), "<u8", 10**12),
        (zlib.compress(bytes(8)), "O", 1),
        (zlib.compress(bytes(8)), "|u1", -8),
        (zlib.compress(bytes(8)), "|u1", True),
        (zlib.compress(bytes(8))[:-1], "|u1", 8),
    ],
)
def test_compressed_arrays_are_of_the_size_they_say(stored, dtype, size):
    with pytest.raises((BadModel, zlib.error)):
        decompressed(stored, dtype, size, size)


@pytest.mark.parametrize("dtype", ["|u1", "<f4", "<u8"])
@pytest.mark.parametrize("n", [0, 1, 7, 70_000])
def test_compressed_arrays_are_zlib_whether_they_shrink_or_not(dtype, n):
    random = np.random.default_rng(n)
    flat, noise = (
        1 + np.arange(n) % 7,
        random.integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8),
    )
    for array in (flat.astype(dtype), noise.view(dtype)):
        stored, kept = compressed(array)
        assert kept == n
        planes = array.view(np.uint8).reshape(n, array.itemsize).T
        assert zlib.decompress(stored) == planes.tobytes()
        found = decompressed(stored, dtype, n, n)
        assert found.dtype == array.dtype
        assert found.tobytes() == array.tobytes()
        assert len(stored) <= array.nbytes + 16 * array.itemsize + array.nbytes // 10_000 + 16


# Parts


@pytest.mark.parametrize("kind", ["|u1", "|i1", "<u2", "<u8", "<i8", "<f2", "<f4", "<f8"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_arrays_come_back(kind, n):
    array = np.arange(n).astype(kind)
    stored, kept = compressed(array)
    again = decompressed(stored, kind, n, kept)
    assert again.dtype == array.dtype
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("n", [3, 8, 9, 70_000])
@pytest.mark.parametrize("kind", ["<f2", "<f4", "<f8"])
def test_arrays_of_few_non_zeros_come_back_and_take_little(n, kind):
    array = np.zeros(n, kind)
    array[[0, -1]] = 2.0, -0.0
    stored, kept = compressed(array)
    assert kept == (2 if n > 4 else n)
    assert len(stored) < 120 + n // 500
    assert decompressed(stored, kind, n, kept).tobytes() == array.tobytes()


def test_places_and_numbers_are_equally_many():
    stored, kept = compressed(np.array([0, 0, 1, 0, 0], "<f4"))
    raw = zlib.decompress(stored)
    assert (kept, raw[0]) == (1, 0b00100000)
    for places in (0, 0b00110000, 0b00000001):  # the last one is beyond the end
        with pytest.raises(BadModel, match="places of other numbers"):
            decompressed(zlib.compress(bytes([places]) + raw[1:]), "<f4", 5, 1)
    numbers: list[Any] = [-1, 6, True, 1.0]
    for number in numbers:
        with pytest.raises(BadModel, match="found an array of 5 times"):
            decompressed(stored, "<f4", 5, number)


def test_packing_keeps_every_weight_and_drops_empty_rows():
    rng = np.random.default_rng(0)
    keys = rng.integers(-(2**63), 2**63 - 1, 500)
    v = rng.normal(size=(500, 7)) * (rng.random((500, 7)) < 0.2)
    table = make_table(keys, v)
    small = compact_table(table)
    assert as_names(small) == as_names(table)
    assert len(small.v) == (v != 0).any(axis=1).sum()
    again = unpack_weights(pack_weights(small, None), 7, np.float64, 0)
    assert as_names(again) == as_names(table)
    empty = compact_table(new_table(3))
    assert as_names(unpack_weights(pack_weights(empty, None), 3, np.float32, 0)) == {}
    assert empty.ints[at.ROWS] == 0
