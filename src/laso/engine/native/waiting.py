"""Calls that Ctrl-C can end: another thread makes them, and this one waits.

Python handles signals in its main thread, between two of its own instructions: never while that
thread runs compiled code. Kernels look at ``meta[STOP]`` at every node. A call that does not end
even so, since a method of a user's own problem has a loop without end, is abandoned: its thread
goes on, and nobody uses its arrays any more.
"""

from __future__ import annotations

import _thread
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from laso.engine.layout import STOP, Array

GRACE = 1.0  # seconds that a call has to end once it is asked to
GOES_ON = "interrupted: a call of compiled code has not ended, and goes on in its own thread"
LOOK = 0.2  # seconds between two looks at the signals that another thread has received

_calls: dict[int, _Call] = {}  # by their threads
_waited: list[_Call] = []  # those for which the main thread waits
_deferred: list[bool] = []  # an entry after a Ctrl-C that was deferred


class Abandoned(KeyboardInterrupt):
    """Ctrl-C, after which a call of compiled code did not end: its arrays may still change."""


class _Call:
    """A call of a function in a thread of its own."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function, self.done = function, _thread.allocate_lock()
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_over, self.asked_at = False, 0.0
        self.meta: Array | None = None  # while it is in compiled code
        self.done.acquire()
        try:
            _thread.start_new_thread(self._run, ())
        except RuntimeError:  # there are no more threads, or Python ends
            self._run()

    def _run(self) -> None:
        _calls[threading.get_ident()] = self
        try:
            self.result = self.function()
        except BaseException as error:  # the thread that waits raises it
            self.error = error
        finally:
            del _calls[threading.get_ident()]
            self.done.release()

    def ends_within(self, seconds: float) -> bool:
        """Wait for the end of the call; return whether it has come."""
        self.is_over = self.is_over or self.done.acquire(timeout=seconds)
        return self.is_over

    def ask(self) -> None:
        """Ask the call to end soon."""
        self.asked_at = self.asked_at or time.monotonic()
        meta = self.meta
        if meta is not None:
            meta[STOP] = 1

    def is_late(self) -> bool:
        """Return whether the call has not ended though it was asked to."""
        return self.asked_at > 0 and time.monotonic() > self.asked_at + GRACE


def results_of(functions: Sequence[Callable[[], Any]]) -> list[Any]:
    """Return the results of functions, each called in a thread of its own."""
    calls = [_Call(function) for function in functions]
    is_main = in_main_thread()
    if is_main:
        _waited.extend(calls)
    if is_main and _deferred:
        ask(calls)
    try:
        _wait(calls)
    except BaseException as error:  # of a signal handler
        ask(calls)
        if not _have_ended(calls) and isinstance(error, KeyboardInterrupt):
            raise Abandoned(GOES_ON) from None
        raise
    finally:
        if is_main:
            del _waited[-len(calls) :]
    for call in calls:
        if call.error is not None:
            raise call.error
    return [call.result for call in calls]


def _wait(calls: Sequence[_Call]) -> None:
    if not _have_ended(calls):
        raise Abandoned(GOES_ON)


def _have_ended(calls: Sequence[_Call]) -> bool:
    """Wait for calls; return whether all have ended, if they were asked to, in time."""
    for call in calls:
        while not call.ends_within(LOOK):
            if call.is_late():
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(call))  # its code stays in memory
                return False
    return True


def ask(calls: Sequence[_Call]) -> None:
    """Ask calls to end soon."""
    for call in calls:
        call.ask()


def defer(*, asked: bool) -> None:
    """Ask all calls that the main thread makes from now on to end soon, until it is not asked."""
    _deferred[:] = [asked] if asked else []
    if asked:
        ask(_waited)


def in_main_thread() -> bool:
    """Return whether this thread is the one that receives signals."""
    return threading.get_ident() == threading.main_thread().ident


def entered(call: Callable[[], Any], meta: Array | None) -> Any:
    """Return what a call of compiled code returns, which others can ask to end by its meta."""
    known = _calls.get(threading.get_ident())
    if meta is not None:
        meta[STOP] = 0
    if known is None:
        return call()
    known.meta = meta
    if known.asked_at:
        raise KeyboardInterrupt
    try:
        return call()
    finally:
        known.meta = None
