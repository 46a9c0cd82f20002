"""The calling convention of compiled entry points.

An entry point takes one pointer, to an array of int64: the number of its results and the results,
then from FIRST on the arguments, flattened. An array is its address, shape and strides; a real
number its bits.
"""

from __future__ import annotations

import ctypes
import pickle
import struct
from array import array
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

FIRST = 8  # where the arguments begin
RETURNED = (0, -2)  # the status of a function compiled by Numba: it returned a value, or None

Function = Callable[[list[int]], Any]


def described(arguments: Iterable[Any]) -> tuple[str, list[int]]:
    """Returns the types of the arguments of a call, and the arguments as numbers."""
    kinds: list[str] = []
    numbers = [0] * FIRST
    for value in arguments:
        _describe(value, kinds, numbers)
    return " ".join(kinds), numbers


def _describe(value: Any, kinds: list[str], numbers: list[int]) -> None:
    if isinstance(value, np.ndarray):
        kinds.append(f"{value.dtype.str}{value.ndim}{_order(value.flags)}")
        numbers.append(value.ctypes.data)
        numbers += value.shape
        numbers += value.strides
    elif isinstance(value, tuple):
        kinds.append(f"{type(value).__qualname__}(")
        for part in value:
            _describe(part, kinds, numbers)
        kinds.append(")")
    else:
        kinds.append(type(value).__name__)
        real = isinstance(value, float | np.floating)
        numbers += struct.unpack("<q", struct.pack("<d", value)) if real else [int(value)]


def _order(flags: Any) -> str:
    """Returns the memory order of an array, as Numba's types distinguish it."""
    if flags.carray:
        return "C"
    order = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
    return order + "r" * (not flags.writeable) + "u" * (not flags.aligned)


class Failure(ctypes.Structure):
    """What a function compiled by Numba points to when it raises: the exception, pickled."""

    _fields_ = (("pickled", ctypes.c_void_p), ("size", ctypes.c_int32))


# A call by ctypes releases the interpreter's lock, so that threads run in parallel.
COMPILED = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(ctypes.POINTER(Failure)), ctypes.c_void_p
)


def function_at(address: int, *, keep_alive: Any) -> Function:
    """Returns the compiled function at an address; ``keep_alive`` owns its memory."""
    start = COMPILED(address)

    def function(numbers: list[int]) -> tuple[int, ...] | None:
        block = array("q", numbers)
        failure = ctypes.POINTER(Failure)()
        status = start(ctypes.byref(ctypes.c_void_p()), failure, block.buffer_info()[0])
        if status not in RETURNED:
            raise _raised(failure)
        return tuple(block[1 : 1 + block[0]]) or None

    function.keep_alive = keep_alive  # type: ignore[attr-defined]
    return function


def _raised(failure: Any) -> Exception:
    if not failure:
        return RuntimeError("compiled code has failed")
    info = failure.contents
    kind, arguments, _ = pickle.loads(ctypes.string_at(info.pickled, info.size))
    error: Exception = kind(*arguments)
    return error
