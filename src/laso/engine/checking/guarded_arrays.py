"""Arrays for the uncompiled methods of a problem: they check every access as compiled code cannot.

A guarded array has exactly the size that the problem promised, knows its own name, and may be
read-only. What is read are plain numbers; an integer that does not fit is cut to the array's type,
as in compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from laso.engine.layout import Array

# Before a method is called, what it must write has a value that no method would write on purpose.
# A second value tells an entry that was left out from one that has the first value by accident.
UNWRITTEN = (-2_001_234_567, 1_987_654_321)


class ReadOnly(Exception):
    """A method writes to an array that it may only read."""


class Guard(np.ndarray[Any, Any]):
    """An array whose errors name it; see ``guarded``."""

    label: str
    unwritten: frozenset[int]

    def __array_finalize__(self, source: Any) -> None:
        self.label = getattr(source, "label", "an array")
        self.unwritten = frozenset()

    def __getitem__(self, index: Any) -> Any:
        if self.unwritten and index in self.unwritten:
            raise IndexError(f"index {index} has not been written in {self.label}")
        try:
            value = super().__getitem__(index)
        except IndexError as error:
            raise IndexError(f"{error} in {self.label}") from None
        return value.item() if isinstance(value, np.generic) else value

    def __setitem__(self, index: Any, value: Any) -> None:
        if not self.flags.writeable:
            raise ReadOnly(self.label)
        if isinstance(value, int):
            value = _fitted(value, self.dtype)
        try:
            super().__setitem__(index, value)
        except IndexError as error:
            raise IndexError(f"{error} in {self.label}") from None

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))


def guarded(
    array: Array, label: str, *, writable: bool = False, unwritten: Sequence[int] = ()
) -> Guard:
    """Return a view of an array that checks every index and, unless ``writable``, every write.

    Entries that are ``unwritten`` may not be read.
    """
    view = array.view(Guard)
    view.unwritten = frozenset(unwritten)
    view.label = label
    view.flags.writeable = writable
    return view


def first_unwritten(buffers: Sequence[Array], write: Callable[[], int]) -> tuple[int, int]:
    """Let ``write`` fill buffers, and return how many entries it says it wrote.

    The second number is the first of these entries that it left out in some buffer, or -1.
    """
    n, missing = 0, -1
    for value in UNWRITTEN:
        for buffer in buffers:
            buffer.fill(value)
        n = write()
        left = [np.flatnonzero(buffer[:n] == value) for buffer in buffers]
        missing = min((int(indices[0]) for indices in left if len(indices)), default=-1)
        if missing < 0:
            break
    return n, missing


def _fitted(value: int, kind: np.dtype[Any]) -> int:
    """Return the integer cut to the bits of a type of integers; as it is for other types."""
    if kind.kind != "i":
        return value
    bits = 8 * kind.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value
