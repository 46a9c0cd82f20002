"""Which files of compiled code are run: those that nobody else can have written.

Compiled code is code. A file of it is run if the file and all folders above it belong to this user
or to the administrator, and nobody else can change or replace any of them. What this user has
compiled must also be signed with the user's key, so that a file which someone could write for a
moment, or over a network, is not run. What the administrator has put there is trusted as installed
programs are.
"""

from __future__ import annotations

import functools
import hashlib
import hmac
import logging
import os
import stat
from pathlib import Path

log = logging.getLogger("laso.engine")

ROOT = 0
MOST_LINKS = 40
KEY_SIZE = 32
KEY_NAME = "compile.key"
SIGNATURE_SIZE = hashlib.sha256().digest_size


# --------------------------------------------------------------------------- owners and modes


def untrusted(path: Path) -> str | None:
    """Returns who else could put code at a path, with the place; None if nobody can.

    What does not exist yet is judged by the folders above it. Links are followed, and each place
    on the way is judged.
    """
    if os.name == "nt":  # the folders of a user are private there
        return None
    path = Path.cwd() / path
    for _ in range(MOST_LINKS):
        for part in (*reversed(path.parents), path):
            try:
                status = os.lstat(part)
            except (FileNotFoundError, NotADirectoryError):
                return None
            except OSError as error:
                return f"{part} cannot be read ({error.strerror})"
            reason = judged(status, above=part != path)
            if reason:
                return f"{part} {reason}"
            if stat.S_ISLNK(status.st_mode):
                path = part.parent / os.readlink(part) / path.relative_to(part)
                break
        else:
            return None
    return f"{path} leads through too many links"


def judged(status: os.stat_result, *, above: bool = False) -> str | None:
    """Returns what is wrong with a file or folder of this status; None if nothing is.

    In a folder ``above`` with the sticky bit, as /tmp, others cannot replace what is not theirs.
    """
    if os.name == "nt":
        return None
    if status.st_uid not in (ROOT, os.geteuid()):
        return "belongs to another user"
    if stat.S_ISLNK(status.st_mode) or (above and status.st_mode & stat.S_ISVTX):
        return None
    by_group = status.st_mode & stat.S_IWGRP and not _is_private(status.st_gid)
    if by_group or status.st_mode & stat.S_IWOTH:
        return f"can be changed by others (mode {stat.S_IMODE(status.st_mode):o}; chmod go-w)"
    return None


@functools.cache
def _is_private(group: int) -> bool:
    """Returns whether a group is the administrator's, or has this user as its only member."""
    if group == ROOT:
        return True
    try:
        import grp
        import pwd

        user, members = pwd.getpwuid(os.geteuid()), grp.getgrgid(group)
    except (ImportError, KeyError):
        return False
    is_personal = group == user.pw_gid and members.gr_name == user.pw_name
    return is_personal and {*members.gr_mem} <= {user.pw_name}


# --------------------------------------------------------------------------- signatures


def signature(payload: bytes) -> bytes:
    """Returns the signature of compiled code by the user's key."""
    return hmac.digest(key(), payload, "sha256")


def is_signed(payload: bytes, by: bytes, status: os.stat_result) -> bool:
    """Returns whether a file of this status may be run: signed by this user, or installed."""
    if os.name != "nt" and status.st_uid == ROOT != os.geteuid():
        return True
    return hmac.compare_digest(signature(payload), by)


@functools.cache
def key() -> bytes:
    """Returns the user's key, from a file that only the user can read; it is made when missing."""
    from platformdirs import user_cache_path, user_config_path

    problem = "no folder can be written"
    for folder in (user_config_path("laso"), user_cache_path("laso")):
        try:
            return _read_key(Path(folder) / KEY_NAME) or _new_key(Path(folder) / KEY_NAME)
        except (OSError, ValueError) as error:
            problem = str(error)
    log.warning("there is no key for compiled code (%s): compiling for this process only", problem)
    return os.urandom(KEY_SIZE)


def _read_key(path: Path) -> bytes | None:
    """Returns the key of a file; None if there is no file; ValueError if others know it."""
    try:
        number = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
    except FileNotFoundError:
        return None
    with os.fdopen(number, "rb") as file:
        status = os.fstat(number)
        problem = untrusted(path)
        if not problem and os.name != "nt":
            if status.st_uid != os.geteuid():
                problem = f"{path} belongs to another user"
            elif status.st_mode & 0o077:
                problem = f"{path} can be read by others (chmod 600, or delete it)"
        key = file.read(KEY_SIZE + 1)
    if problem or len(key) != KEY_SIZE:
        raise ValueError(problem or f"{path} has no key (delete it)")
    return key


def _new_key(path: Path) -> bytes:
    """Makes a key; of several processes that do so at once, all use the one of the first."""
    make_folder(path.parent)
    beside = path.with_name(f"{KEY_NAME}.{os.urandom(8).hex()}")
    number = os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    try:
        with os.fdopen(number, "wb") as file:
            file.write(os.urandom(KEY_SIZE))
        try:
            os.link(beside, path)  # unlike a renaming, it replaces no other key
        except FileExistsError:
            pass
        except OSError:  # a file system without links
            os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    key = _read_key(path)
    if key is None:
        raise FileNotFoundError(f"{path} has vanished")
    return key


def make_folder(folder: Path) -> None:
    """Makes a folder, and those missing above it, for this user alone."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
