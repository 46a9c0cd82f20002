"""Files that are written completely or not at all.

A file is written beside its target, under a name of our own, and renamed when it is complete: an
error, a full disk or a kill leaves the old file. What a killed process left beside is removed when
the next one writes into that folder. Errors name the file that was asked for.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import platform
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

PATTERN = re.compile(r"\.laso-([0-9a-f]{8})-(\d+)-([0-9a-f]{8})-[0-9a-f]{8}\.tmp")
OLD = 86400.0  # seconds until a file is taken for left behind, where processes cannot be asked for
PROCESS = os.urandom(4).hex()  # tells this process from an earlier one with the same number

FilePath = str | os.PathLike[str]


@contextlib.contextmanager
def replacing(path: FilePath) -> Iterator[BinaryIO]:
    """Yield a new file, which takes the place of ``path`` when the block ends without an error.

    It gets the mode and, if possible, the owner of the file that it replaces. A symbolic link is
    followed: the file that it leads to is replaced. A device or a pipe is written to directly.
    """
    target = Path(os.path.realpath(path))
    with naming(path):
        before = _status(target)
        if before is not None and not stat.S_ISREG(before.st_mode):
            with target.open("wb") as direct:  # of a folder this is an error
                yield direct
            return
        remove_leftovers(target.parent)
        temporary, file = new_file(target.parent, private=before is not None)
        try:
            with file:
                if before is not None:
                    _take_over(file.fileno(), before)
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    _sync_folder(target.parent)


def check_writable(path: FilePath) -> None:
    """Raise the error that ``replacing`` would raise, as far as that is known before the work."""
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(Path(path).parent))
    with naming(path):
        before = _status(target)
        if before is not None and stat.S_ISDIR(before.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if before is None or stat.S_ISREG(before.st_mode):
            temporary, file = new_file(target.parent)
            file.close()
            discard(temporary)


def write_bytes(path: FilePath, data: bytes) -> None:
    """Write a file completely or not at all."""
    with replacing(path) as file:
        file.write(data)


def write_text(path: FilePath, text: str, *, errors: str = "strict") -> None:
    """Write a file in UTF-8, with the line ends that the text has, completely or not at all."""
    write_bytes(path, text.encode("utf-8", errors))


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``, which draws into files."""
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "the package matplotlib is not there: python -m pip install 'laso[plots]'",
            name="matplotlib",
        ) from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save_figure(figure: object, path: FilePath, **options: object) -> None:
    """Save a figure of matplotlib, in the format that the ending of the file's name says."""
    path = Path(path)
    path = path if path.suffix else path.with_name(f"{path.name}.png")
    with replacing(path) as file:
        figure.savefig(file, format=path.suffix[1:], **options)  # type: ignore[attr-defined]


@contextlib.contextmanager
def naming(path: FilePath) -> Iterator[None]:
    """Let every OSError of the block that names no file, or one of ours, name this one.

    Where memory does not suffice, that is such an error, too.
    """
    try:
        yield
    except MemoryError as error:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM), os.fspath(path)) from error
    except OSError as error:
        name = error.filename
        ours = isinstance(name, str) and any(map(PATTERN.fullmatch, Path(name).parts))
        if name is not None and not ours:
            raise
        text = error.strerror or str(error) or type(error).__name__
        raise type(error)(error.errno or 0, text, os.fspath(path)) from error


# --------------------------------------------------------------------------- temporary files


def new_file(folder: Path, *, private: bool = True) -> tuple[Path, BinaryIO]:
    """Return a new temporary file of a folder, open for reading and writing."""
    path = folder / _new_name()
    flags = os.O_CREAT | os.O_EXCL | os.O_RDWR | getattr(os, "O_BINARY", 0)
    number = os.open(path, flags, 0o600 if private else 0o666)
    return path, cast(BinaryIO, os.fdopen(number, "w+b"))


def _new_name() -> str:
    return f".laso-{_host()}-{os.getpid()}-{PROCESS}-{os.urandom(4).hex()}.tmp"


@contextlib.contextmanager
def temporary_folder(folder: Path) -> Iterator[Path]:
    """Yield a new folder inside a folder; it is removed with all its files when the block ends."""
    with naming(folder):
        remove_leftovers(folder)
        path = folder / _new_name()
        path.mkdir(mode=0o700)
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):  # Windows keeps files that are mapped into memory
            _remove_folder(path)


def _remove_folder(path: FilePath) -> None:
    """Remove a folder that has only files."""
    for entry in list(os.scandir(path)):
        os.unlink(entry.path)
    os.rmdir(path)


def remove_leftovers(folder: Path) -> list[Path]:
    """Remove what processes that have ended left in a folder; return the paths."""
    removed = []
    with contextlib.suppress(OSError):  # a folder that cannot be listed keeps what it has
        for entry in os.scandir(folder):
            match = PATTERN.fullmatch(entry.name)
            if match and _is_left(match, entry):
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        _remove_folder(entry.path)
                    else:
                        os.unlink(entry.path)
                    removed.append(Path(entry.path))
    return removed


def discard(path: Path) -> None:
    """Remove a temporary file; Windows keeps the name of one that is mapped into memory."""
    with contextlib.suppress(PermissionError):
        path.unlink(missing_ok=True)


def _is_left(found: re.Match[str], entry: os.DirEntry[str]) -> bool:
    """Return whether the process that made a temporary file has ended."""
    host, number, process = found[1], int(found[2]), found[3]
    if host != _host() or entry.is_symlink():
        return False
    if number == os.getpid():
        return process != PROCESS
    if os.name == "nt":
        return time.time() - entry.stat(follow_symlinks=False).st_mtime > OLD
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # it is another user's
        return False
    return False


def _host() -> str:
    """Return what tells apart the machines, or containers, that may share a folder."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")  # process numbers are those of a container
    return hashlib.sha256(f"{platform.node()}/{space}".encode()).hexdigest()[:8]


# --------------------------------------------------------------------------- details


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _take_over(number: int, before: os.stat_result) -> None:
    """Give an open file the owner and the mode of the one that it will replace."""
    if not hasattr(os, "fchmod"):
        return
    now = os.fstat(number)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        with contextlib.suppress(OSError):  # only an administrator may give files away
            os.fchown(number, before.st_uid, before.st_gid)
    os.fchmod(number, stat.S_IMODE(before.st_mode))


def _sync_folder(folder: Path) -> None:
    """Make a renaming last; the file itself is complete without it."""
    with contextlib.suppress(OSError):  # not every system lets a folder be opened
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
