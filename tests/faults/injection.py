"""Makes the n-th call fail that opens, writes, syncs, renames or allocates, for n = 1, 2, 3, ...

    for n in count(1):
        with failing(folder, n) as fault:
            operation()
        check()
        if not fault.happened:
            break

Calls count if they are about files of the folder; allocations, if the library asks NumPy for them.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import laso

PACKAGE = str(Path(laso.__file__).parent)
FILES = ("open", "replace", "rename", "mkdir", "link")  # of os, with a path
ALLOCATIONS = (
    *("zeros", "empty", "ones", "full", "array", "concatenate", "stack", "arange", "frombuffer"),
    *("ascontiguousarray", "bincount", "argsort", "cumsum", "diff", "nonzero", "repeat"),
)
KINDS = ("files", "memory")


@dataclass
class Fault:
    """The fault of one run: which call fails, and what has been counted."""

    folder: str
    n: int
    calls: list[str] = field(default_factory=list)
    numbers: set[int] = field(default_factory=set)  # of the open files that count

    @property
    def happened(self) -> bool:
        """Whether there were as many calls."""
        return len(self.calls) >= self.n

    def count(self, name: str, error: Callable[[], BaseException]) -> None:
        """Counts a call, and lets it fail if it is the one."""
        self.calls.append(name)
        if len(self.calls) == self.n:
            raise error()

    def is_inside(self, path: Any) -> bool:
        """Whether a path, or the number of an open file, counts."""
        if isinstance(path, int):
            return path in self.numbers
        return isinstance(path, (str, os.PathLike)) and os.path.abspath(path).startswith(
            self.folder
        )


def full(path: Any = None) -> OSError:
    """The error of a full disk; that of a write names no file."""
    given = () if path is None else (os.fspath(path),)
    return OSError(errno.ENOSPC, "No space left on device", *given)


class File:
    """An open file whose writes count."""

    def __init__(self, file: Any, fault: Fault) -> None:
        self._file, self._fault = file, fault

    def write(self, data: Any) -> Any:
        self._fault.count("write", full)
        return self._file.write(data)

    def flush(self) -> None:
        self._fault.count("flush", full)
        self._file.flush()

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: Any) -> None:
        self._file.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _file_calls(fault: Fault) -> Iterator[Any]:
    """Yields the patches of all calls about files."""
    plain_open, plain_sync = io.open, os.fsync

    def patched(name: str) -> Callable[..., Any]:
        plain = getattr(os, name)

        def call(path: Any, *args: Any, **options: Any) -> Any:
            if not fault.is_inside(path):
                return plain(path, *args, **options)
            fault.count(name, lambda: full(path))
            found = plain(path, *args, **options)
            if name == "open":
                fault.numbers.add(found)
            return found

        return call

    def opened(path: Any, *args: Any, **options: Any) -> Any:
        if not fault.is_inside(path):
            return plain_open(path, *args, **options)
        if not isinstance(path, int):
            fault.count("open", lambda: full(path))
        file = plain_open(path, *args, **options)
        fault.numbers.add(file.fileno())
        return File(file, fault) if file.writable() else file

    def sync(number: int) -> None:
        if number in fault.numbers:
            fault.count("fsync", full)
        plain_sync(number)

    for name in FILES:
        yield mock.patch.object(os, name, patched(name))
    yield mock.patch.object(io, "open", opened)
    yield mock.patch("builtins.open", opened)
    yield mock.patch.object(os, "fsync", sync)


def _allocations(fault: Fault) -> Iterator[Any]:
    """Yields the patches of NumPy's functions that allocate."""

    def patched(name: str) -> Callable[..., Any]:
        plain = getattr(np, name)

        def call(*args: Any, **options: Any) -> Any:
            if sys._getframe(1).f_code.co_filename.startswith(PACKAGE):
                fault.count(name, lambda: MemoryError("Unable to allocate"))
            return plain(*args, **options)

        return call

    for name in ALLOCATIONS:
        yield mock.patch.object(np, name, patched(name))


@contextmanager
def failing(folder: Path, n: int, kind: str = "files") -> Iterator[Fault]:
    """Lets the n-th call of a kind fail inside the block."""
    fault = Fault(os.path.abspath(folder), n)
    patches = [*(_file_calls if kind == "files" else _allocations)(fault)]
    for patch in patches:
        patch.start()
    try:
        yield fault
    finally:
        for patch in reversed(patches):
            patch.stop()
