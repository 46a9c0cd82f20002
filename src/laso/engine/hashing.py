"""64-bit feature keys, equal in compiled and plain code, prefetching, and views of arrays."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

_K1 = 0x9E3779B97F4A7C15
_K2 = 0xBF58476D1CE4E5B9
_MASK = (1 << 64) - 1


def mix(a: int, b: int) -> int:
    """Return a key for the pair (a, b); chain it for more: ``mix(mix(a, b), c)``. Order matters.

    Examples
    --------
    >>> from laso import mix
    >>> mix(1, 2) == mix(2, 1)
    False
    """
    z = (int(a) & _MASK) ^ ((int(b) & _MASK) * _K1 & _MASK)
    z = (z ^ (z >> 32)) * _K2 & _MASK
    z ^= z >> 29
    return z - (1 << 64) if z >> 63 else z


def prefetch(rows: np.ndarray[Any, Any], i: int) -> None:
    """Tell the processor that row i will be read soon; changes nothing."""


def flat(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a view of a contiguous array with one dimension, whose loops compile to fast code."""
    return array.reshape(-1)


_U1, _U2, _S1, _S2 = np.uint64(_K1), np.uint64(_K2), np.uint64(32), np.uint64(29)


@functools.cache
def teach_numba() -> None:
    """Register the compiled forms of these functions with Numba."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import lower_builtin, overload, type_callable
    from numba.np.arrayobj import make_array, populate_array

    @overload(mix)
    def _mix(a, b):  # type: ignore[no-untyped-def]
        def mixed(a, b):  # type: ignore[no-untyped-def]
            z = np.uint64(a) ^ (np.uint64(b) * _U1)
            z = (z ^ (z >> _S1)) * _U2
            return np.int64(z ^ (z >> _S2))

        return mixed

    # Not by overloads, which are functions: to compile one for each type of array takes long, and
    # functions of kernels cannot return new arrays.
    @type_callable(prefetch)
    def _prefetch_type(context):  # type: ignore[no-untyped-def]
        return lambda rows, i: types.void

    @lower_builtin(prefetch, types.Array, types.Integer)
    def _prefetch(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        array = make_array(signature.args[0])(context, builder, arguments[0])
        step = cgutils.unpack_tuple(builder, array.strides)[0]
        start = builder.bitcast(array.data, cgutils.voidptr_t)
        row = context.cast(builder, arguments[1], signature.args[1], types.int64)
        place = builder.gep(start, [builder.mul(row, step)])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        called = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        builder.call(called, [place, number(0), number(3), number(1)])
        return context.get_dummy_value()

    @type_callable(flat)
    def _flat_type(context):  # type: ignore[no-untyped-def]
        return lambda array: types.Array(array.dtype, 1, "C")

    @lower_builtin(flat, types.Array)
    def _flat(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        given = make_array(signature.args[0])(context, builder, arguments[0])
        of_pointer = make_array(signature.return_type)(context, builder)
        populate_array(
            of_pointer,
            data=given.data,
            shape=cgutils.pack_array(builder, [given.nitems]),
            strides=cgutils.pack_array(builder, [given.itemsize]),
            itemsize=given.itemsize,
            meminfo=given.meminfo,
            parent=given.parent,
        )
        return of_pointer._getvalue()


OVERLOADED: set[Any] = {flat, mix, prefetch}
"""Functions that Numba compiles by their overload instead of their own code."""
