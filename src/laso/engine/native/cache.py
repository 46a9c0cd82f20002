"""The cache of compiled code: one folder for each fingerprint, one file for each entry point.

An edit of any source leads to another fingerprint and so to another folder. Several processes may
fill a folder at once, since files are renamed into place. A file carries its checksum.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import logging
import os
import shutil
import tempfile
import threading
import time
from pathlib import Path

log = logging.getLogger("laso.engine")

MAGIC = b"laso native 2\n"
KEEP_DAYS = 60
KEEP_FOLDERS = 40


def cache_root() -> Path:
    """Returns the folder of compiled code, below LASO_CACHE or the user's cache folder."""
    if os.environ.get("LASO_CACHE"):
        return Path(os.environ["LASO_CACHE"]) / "kernels"
    from platformdirs import user_cache_path

    return Path(user_cache_path("laso")) / "kernels"


def folder_for(name: str, fingerprint: str) -> Path:
    """Returns the folder of a problem; makes it if possible, and removes old ones."""
    root = cache_root()
    folder = root / f"{name}-{fingerprint}"
    with contextlib.suppress(OSError):  # a cache that can only be read is a cache too
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "used").touch()
        _prune(root, folder)
    return folder


def writable(folder: Path) -> Path:
    """Returns the folder, or a temporary one if it cannot be written."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        warn_unwritable(folder, error.strerror)
        folder = Path(tempfile.mkdtemp(prefix="laso-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def warn_unwritable(folder: Path, reason: str) -> None:
    """Logs once for each folder that its code will be compiled again in the next process."""
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


def file_name(entry: str, signature: str) -> str:
    """Returns the name of the file for an entry point with arguments of these types."""
    return f"{entry}-{hashlib.sha256(signature.encode()).hexdigest()[:16]}.native"


def save(file: Path, symbol: str, code: bytes) -> None:
    """Writes object code and the name of its function, completely or not at all."""
    payload = symbol.encode() + b"\0" + code
    part = file.with_name(f"{file.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        part.write_bytes(MAGIC + hashlib.sha256(payload).digest() + payload)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)


def read(file: Path) -> tuple[str, bytes] | None:
    """Returns what ``save`` wrote, or None if the file is missing or damaged."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    begin = len(MAGIC) + hashlib.sha256().digest_size
    payload = content[begin:]
    if content[:begin] != MAGIC + hashlib.sha256(payload).digest():
        return None
    symbol, _, code = payload.partition(b"\0")
    return symbol.decode(), code
