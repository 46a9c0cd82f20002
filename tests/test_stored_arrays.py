"""Arrays and matrices of a model file come back."""

import zlib

import numpy as np
import pytest

from laso import (
    BadModel,
)
from laso.compression import compress, decompress
from laso.engine import layout as at
from laso.engine.machine import as_names, new_table
from laso.model_file import (
    compact_table,
    make_table,
    pack_weights,
    unpack_weights,
)
from laso.sparse_matrix import to_dense, to_sparse


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
        decompress(stored, dtype, size)


@pytest.mark.parametrize("dtype", ["|u1", "<f4", "<u8"])
@pytest.mark.parametrize("n", [0, 1, 7, 70_000])
def test_compressed_arrays_are_zlib_whether_they_shrink_or_not(dtype, n):
    random = np.random.default_rng(n)
    flat, noise = np.arange(n) % 7, random.integers(0, 256, n * np.dtype(dtype).itemsize, np.uint8)
    for array in (flat.astype(dtype), noise.view(dtype)):
        stored = compress(array).tobytes()
        planes = array.view(np.uint8).reshape(n, array.itemsize).T
        assert zlib.decompress(stored) == planes.tobytes()
        found = decompress(stored, dtype, n)
        assert found.dtype == array.dtype
        assert found.tobytes() == array.tobytes()
        assert len(stored) <= array.nbytes + 16 * array.itemsize + array.nbytes // 10_000 + 16


# Parts


@pytest.mark.parametrize("kind", ["|u1", "|i1", "<u2", "<u8", "<i8", "<f2", "<f4", "<f8"])
@pytest.mark.parametrize("n", [0, 1, 5])
def test_arrays_come_back(kind, n):
    array = np.arange(n).astype(kind)
    again = decompress(compress(array).tobytes(), kind, n)
    assert again.dtype == array.dtype
    assert again.tolist() == array.tolist()


@pytest.mark.parametrize("columns", [1, 3, 255, 256, 257, 70000])
def test_matrices_of_few_non_zeros_come_back(columns):
    matrix = np.zeros((3, columns), np.float32)
    matrix[0, -1], matrix[2] = 2.0, 1.0
    stored = to_sparse(matrix)
    assert (to_dense(stored, 3, columns) == matrix).all()


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
