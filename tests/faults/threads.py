"""Threads that predict while others learn: every prediction is that of one published model."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from laso.data import load_bundled

TRAIN, TEST = load_bundled()
PARTS = [TRAIN[0:12], TRAIN[12:30], TRAIN[30:45]]
X = [[token[:2] for token in sentence] for sentence in TEST[:6]]


class Reader(threading.Thread):
    """Calls a function again and again, and keeps its distinct results and errors."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__(daemon=True)
        self.call, self.over = call, threading.Event()
        self.results: dict[str, int] = {}
        self.errors: list[str] = []

    def run(self) -> None:
        while not self.over.is_set():
            try:
                found = repr(self.call())
            except Exception as error:
                self.errors.append(repr(error))
            else:
                self.results[found] = self.results.get(found, 0) + 1


def while_reading(
    call: Callable[[], Any], work: Callable[[], Any], readers: int = 3
) -> list[Reader]:
    """Calls a function in several threads while this one works; returns the threads."""
    threads = [Reader(call) for _ in range(readers)]
    for thread in threads:
        thread.start()
    try:
        work()
        time.sleep(0.05)  # so that they see the end
    finally:
        for thread in threads:
            thread.over.set()
        for thread in threads:
            thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "a thread is stuck"
    return threads


def together(*works: Callable[[], Any], seconds: float = 120) -> list[str]:
    """Runs functions in threads of their own; returns their errors, also for what is stuck."""
    errors: list[str] = []

    def run(work: Callable[[], Any]) -> None:
        try:
            work()
        except Exception as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    return errors + ["stuck"] * sum(thread.is_alive() for thread in threads)
