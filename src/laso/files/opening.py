"""Opening files that others have named: nothing that blocks, and nothing without an end.

A model, a word list and a checkpoint are regular files. Data may also come through a pipe, such as
``<(zcat corpus.gz)``; devices such as ``/dev/zero`` have no end and are refused.
"""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from laso.errors import BadData

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def kind_of(mode: int) -> str:
    """Return what kind of file has this mode, "" for a regular file."""
    return next((name for test, name in _KINDS if test(mode)), "")


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file to read; anything else raises BadData, and is not waited for."""
    # Without O_NONBLOCK a pipe that nobody writes to would block.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    file = open(path, "rb", opener=lambda name, _: os.open(name, flags))  # noqa: SIM115
    return _checked(file, path, allowed=("",))


def open_input(path: str | os.PathLike[str], *, buffering: int = -1) -> BinaryIO:
    """Open a file of data to read: a regular file or a pipe; anything else raises BadData."""
    kind = kind_of(os.stat(path).st_mode)
    if kind in ("a device", "a socket"):  # to open a folder is an error of the system
        raise _unexpected(kind, path, "a file or a pipe")
    return _checked(open(path, "rb", buffering=buffering), path, allowed=("", "a pipe"))


def _checked(file: BinaryIO, path: str | os.PathLike[str], allowed: tuple[str, ...]) -> BinaryIO:
    kind = kind_of(os.fstat(file.fileno()).st_mode)
    if kind not in allowed:
        file.close()
        raise _unexpected(kind, path, "a regular file")
    return file


def _unexpected(found: str, path: str | os.PathLike[str], expected: str) -> BadData:
    return BadData(f"found {found}, expected {expected}", file=os.fspath(path))
