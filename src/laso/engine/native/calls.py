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

    function.keep_alive, function.start = keep_alive, start  # type: ignore[attr-defined]
    return function


class Prepared:
    """A call with arguments that are described once; one thread at a time may make it.

    Parameters
    ----------
    function : Function
        The compiled function.
    numbers : list of int
        The arguments as numbers.
    arguments : tuple
        The arguments, which stay alive with the call.
    """

    def __init__(self, function: Function, numbers: list[int], arguments: tuple[Any, ...]) -> None:
        self._function, self._block = function, array("q", numbers)
        self._arrays: list[Any] = []
        self._places: list[int] = []
        self._start: Any = function.start  # type: ignore[attr-defined]
        self._failure = ctypes.POINTER(Failure)()
        self._where = (ctypes.byref(ctypes.c_void_p()), self._failure, self._block.buffer_info()[0])
        self._find_arrays(arguments, FIRST)

    def _find_arrays(self, arguments: Iterable[Any], place: int) -> int:
        for value in arguments:
            if isinstance(value, tuple):
                place = self._find_arrays(value, place)
            elif isinstance(value, np.ndarray):
                self._arrays.append(value)
                self._places.append(place)
                place += 1 + 2 * value.ndim
            else:
                place += 1
        return place

    def __call__(self) -> tuple[int, int]:
        """Makes the call, and returns its first two results."""
        if self._start(*self._where) not in RETURNED:
            raise _raised(self._failure)
        return self._block[1], self._block[2]

    def replace(self, i: int, value: Any) -> bool:
        """Puts an array in the place of the i-th; False if it has another type or order."""
        before = self._arrays[i]
        if value is before:
            return True
        if value.dtype != before.dtype or value.ndim != before.ndim or not value.flags.carray:
            return False
        block, place = self._block, self._places[i]
        if value.size:  # the way by value.ctypes takes three times as long
            block[place] = ctypes.addressof(ctypes.c_char.from_buffer(value))
        for number in (*value.shape, *value.strides):
            place += 1
            block[place] = number
        self._arrays[i] = value
        return True

    def resize(self, i: int, n: int) -> None:
        """Lets the i-th array have n elements, or rows, of those that it was given with."""
        self._block[self._places[i] + 1] = n

    def copy_from(self, other: Prepared, n: int) -> None:
        """Takes over the first n arrays of another call, which the arguments of both begin with."""
        end = self._places[n]
        self._block[FIRST:end] = other._block[FIRST:end]
        self._arrays[:n] = other._arrays[:n]


def _raised(failure: Any) -> Exception:
    if not failure:
        return RuntimeError("compiled code has failed")
    info = failure.contents
    kind, arguments, _ = pickle.loads(ctypes.string_at(info.pickled, info.size))
    error: Exception = kind(*arguments)
    return error
