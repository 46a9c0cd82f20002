"""The cache of compiled code: a folder for each fingerprint, in it a file for each signature.

An edit of what code depends on leads to another fingerprint and so to another folder. Several
processes may fill a folder at once, since files are renamed into place. A file carries its checksum
and the user's signature; ``trust`` says which folders and files are used.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import logging
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from laso.engine.native import trust
from laso.files.atomic import naming, new_file, remove_leftovers

log = logging.getLogger("laso.engine")

MAGIC = b"laso native 3\n"
KEEP_DAYS = 60
KEEP_FOLDERS = 400
O_BINARY = getattr(os, "O_BINARY", 0)


def cache_root() -> Path:
    """Returns the folder of compiled code, below LASO_CACHE or the user's cache folder."""
    if os.environ.get("LASO_CACHE"):
        return Path(os.environ["LASO_CACHE"]) / "kernels"
    from platformdirs import user_cache_path

    return Path(user_cache_path("laso")) / "kernels"


def found_or_made(
    name: str, signature: str, make: Callable[[], tuple[str, bytes]]
) -> tuple[str, bytes]:
    """Returns symbol and code for arguments of these types, from the folder of this name.

    What is missing is made and kept. Of several processes that miss it, one makes it.
    """
    folder = folder_for(name)
    file = folder / f"{hashlib.sha256(signature.encode()).hexdigest()[:16]}.native"
    code = read(file)
    if code is None:
        with alone(file.with_suffix(".lock")):
            code = read(file)
            if code is None:
                code = make()
                keep(file, *code)
    return code


@contextlib.contextmanager
def alone(path: Path) -> Iterator[None]:
    """Lets other processes wait at the same path, where the system has such locks."""
    try:
        import fcntl

        file = open(path, "ab")  # noqa: SIM115
    except (ImportError, OSError):
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield  # closing the file gives the lock back


def folder_for(name: str) -> Path:
    """Returns the folder of this name; makes it if possible, and removes old ones.

    A folder that others could fill is not used: the process gets one of its own.
    """
    root = cache_root()
    folder = root / name
    problem = trust.untrusted(folder)
    if problem:
        warn_untrusted(str(folder), problem)
        return _own_folder()
    with contextlib.suppress(OSError):  # a cache that can only be read is a cache too
        trust.make_folder(folder)
        (folder / "used").touch(0o600)
        _prune(root, folder)
    return folder


def _own_folder() -> Path:
    """Returns a folder for this process and this user alone, which goes with the process."""
    folder = Path(tempfile.mkdtemp(prefix="laso-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def warn_untrusted(path: str, problem: str) -> None:
    """Logs once that code is not run, since others could have written it."""
    log.warning("not running the code in %s, but compiling again: %s", path, problem)


@functools.cache
def warn_unwritable(folder: Path, reason: str) -> None:
    """Logs once for each cache that its code will be compiled again in the next process."""
    log.warning("cannot write the cache %s (%s): compiling for this process only", folder, reason)


def _prune(root: Path, current: Path) -> None:
    """Removes folders that have not been used for KEEP_DAYS, and the oldest beyond KEEP_FOLDERS."""
    with contextlib.suppress(OSError):
        ages = sorted(
            (
                (time.time() - (folder / "used").stat().st_mtime, folder)
                for folder in root.iterdir()
                if (folder / "used").exists() and folder != current
            ),
            key=lambda pair: pair[0],
        )
        for n, (age, folder) in enumerate(ages):
            if age > KEEP_DAYS * 86400 or n >= KEEP_FOLDERS:
                shutil.rmtree(folder, ignore_errors=True)


def keep(file: Path, symbol: str, code: bytes) -> None:
    """Writes object code for later processes; if that is impossible, a warning says so."""
    try:
        save(file, symbol, code)
    except (OSError, MemoryError) as error:
        warn_unwritable(cache_root(), getattr(error, "strerror", None) or str(error))


def save(file: Path, symbol: str, code: bytes) -> None:
    """Writes object code and the name of its function, completely or not at all."""
    payload = symbol.encode() + b"\0" + code
    head = MAGIC + hashlib.sha256(payload).digest() + trust.signature(payload)
    with naming(file):
        remove_leftovers(file.parent)
        part, out = new_file(file.parent)
        try:
            with out:
                out.write(head + payload)
            part.replace(file)
        finally:
            part.unlink(missing_ok=True)


def read(file: Path) -> tuple[str, bytes] | None:
    """Returns what ``save`` wrote; None if the file is missing, damaged, or perhaps not ours."""
    try:
        number = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | O_BINARY)
    except OSError as error:
        if error.errno == errno.ELOOP:
            warn_untrusted(str(file), f"{file} is a link")
        return None
    with os.fdopen(number, "rb") as opened:
        status = os.fstat(number)
        problem = trust.judged(status)
        if problem:
            warn_untrusted(str(file), f"{file} {problem}")
            return None
        content = opened.read()
    signed = parsed(content)
    if signed is None:
        return None
    payload, by = signed
    if not trust.is_signed(payload, by, status):
        warn_untrusted(str(file), f"{file} is not signed with this user's key")
        return None
    symbol, _, code = payload.partition(b"\0")
    return symbol.decode(), code


def parsed(content: bytes) -> tuple[bytes, bytes] | None:
    """Returns the payload of a file and its signature, not yet verified; None if it is damaged."""
    digest = len(MAGIC) + hashlib.sha256().digest_size
    begin = digest + trust.SIGNATURE_SIZE
    payload = content[begin:]
    if content[:digest] != MAGIC + hashlib.sha256(payload).digest():
        return None
    return payload, content[digest:begin]
