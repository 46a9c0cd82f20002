"""Forks while other threads predict: every child must be able to predict, too.

    python -m tests.faults.forks FORKS [SECONDS]

forks so often while four threads predict, with code that is loaded again and again, and prints how
many children predicted, as JSON. A child that takes longer than SECONDS counts as hung.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from laso import Tagger
from laso.data import load_bundled
from laso.engine.native import dispatch

TRAIN, TEST = load_bundled()
X = [[token[:2] for token in sentence] for sentence in TEST[:5]]


def forget() -> None:
    """Forgets all compiled code, so that the next prediction loads it again."""
    dispatch._compiled.clear()


def child(model: Tagger, expected: Any) -> None:
    """Predicts in the child; the exit code tells whether as before."""
    code = 2
    try:
        forget()
        code = int(model.predict(X) != expected)
    finally:
        os._exit(code)


def survived(pid: int, seconds: float) -> str:
    """Waits for a child, and returns how it ended."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return "predicted" if status == 0 else "failed"
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hung"


def run(forks: int, seconds: float) -> dict[str, int]:
    """Forks so often while threads predict, and counts how the children ended."""
    model = Tagger(epochs=1).fit(TRAIN[:20])
    expected = model.predict(X)
    over = threading.Event()

    def predict() -> None:
        while not over.is_set():
            forget()
            assert model.predict(X) == expected

    threads = [threading.Thread(target=predict) for _ in range(4)]
    for thread in threads:
        thread.start()
    found = {"forks": forks, "predicted": 0, "failed": 0, "hung": 0}
    for _ in range(forks):
        pid = os.fork()
        if pid == 0:
            child(model, expected)
        found[survived(pid, seconds)] += 1
    over.set()
    for thread in threads:
        thread.join()
    return found


if __name__ == "__main__":
    forks, *limit = sys.argv[1:]
    json.dump(run(int(forks), float(limit[0]) if limit else 20.0), sys.stdout)
