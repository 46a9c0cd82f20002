"""Locks that no fork leaves locked in the child, where the thread that holds them does not exist.

Web servers and ``multiprocessing`` fork while other threads predict. So a fork first takes every
``shared_lock``: what it protects, such as the code that LLVM is loading, is complete in the child.
It does not wait for an ``own_lock``, which may be held for hours: in the child that lock is free.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

WAIT = 60.0  # seconds that a fork waits at most for what another thread compiles or loads

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:  # noqa: N801
        """``functools.cached_property`` without the lock of Python 3.11, which a fork may leave."""

        def __init__(self, function):
            self.function, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner, name):
            self.name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            return vars(instance).setdefault(self.name, self.function(instance))


class Lock:
    """A lock for a with statement, which the thread that holds it may take again."""

    def __init__(self, lock: Any = None) -> None:
        self._lock = threading.RLock() if lock is None else lock
        self._owner, self._depth = 0, 0

    def acquire(self, timeout: float = -1.0) -> bool:
        """Take the lock; return whether that was possible within ``timeout`` seconds."""
        if not self._lock.acquire(timeout=timeout):
            return False
        self._owner, self._depth = threading.get_ident(), self._depth + 1
        return True

    def release(self) -> None:
        """Give the lock back."""
        self._depth -= 1
        if not self._depth:
            self._owner = 0
        self._lock.release()

    def renew(self) -> None:
        """Make it free in a new process, unless the only thread there holds it."""
        if self._owner != threading.get_ident():
            self._lock, self._owner, self._depth = threading.RLock(), 0, 0

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


_shared: list[Lock] = []
_adopted: list[Lock] = []
_own: weakref.WeakSet[Lock] = weakref.WeakSet()
_taken: list[Lock] = []  # by the fork that goes on


def shared_lock() -> Lock:
    """Return a lock of a module, for short work; forks wait for it."""
    lock = Lock()
    # Modules import what they call: the lock that is made later is taken first.
    _shared.insert(0, lock)
    return lock


def adopt(lock: Any) -> None:
    """Let forks wait for a lock of another library, too, which our threads take last."""
    _adopted.append(Lock(lock))


def own_lock() -> Lock:
    """Return a lock of one object, for work that publishes its result at once; no fork waits."""
    lock = Lock()
    _own.add(lock)
    return lock


def _before_fork() -> None:
    _taken[:] = [lock for lock in (*_shared, *_adopted) if lock.acquire(WAIT)]


def _after_fork() -> None:
    taken, _taken[:] = [*_taken], []  # before another thread can take them for a fork of its own
    for lock in reversed(taken):
        lock.release()


def _after_fork_in_child() -> None:
    _after_fork()
    for lock in (*_shared, *_own):
        lock.renew()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=_after_fork,
        after_in_child=_after_fork_in_child,
    )
