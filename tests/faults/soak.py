"""All at once for a while: threads predict, one learns, one saves and loads, one forks.

    python -m tests.faults.soak SECONDS

Every result is compared with what one of the published models answers.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from laso import Tagger, load_model
from tests.faults.forks import survived
from tests.faults.threads import PARTS, X


class Soak:
    """One model in many threads, and what was counted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = Tagger(epochs=1).fit(PARTS[0])
        self.known = {repr(self.model.predict(X))}
        for part in PARTS[1:]:
            self.known.add(repr(Tagger(epochs=1).fit(part).predict(X)))
        self.counts: Counter[str] = Counter()
        self.over = threading.Event()

    def check(self, what: str, good: bool) -> None:
        """Counts a check, and whether it failed."""
        self.counts[what] += 1
        self.counts["failed"] += not good

    def predict(self) -> None:
        """Predicts: the answer is that of a published model."""
        self.check("predictions", repr(self.model.predict(X)) in self.known)

    def learn(self) -> None:
        """Learns one of the parts anew."""
        self.model.fit(PARTS[self.counts["trainings"] % len(PARTS)])
        self.counts["trainings"] += 1

    def save(self) -> None:
        """Saves the model and loads it."""
        path = self.folder / "model.laso"
        self.model.save(path, training=True)
        self.check("files", repr(load_model(path).predict(X)) in self.known)

    def pickle(self) -> None:
        """Pickles the model."""
        made = pickle.loads(pickle.dumps(self.model))
        self.check("pickles", repr(made.predict(X)) in self.known)

    def fork(self) -> None:
        """Forks, and predicts in the child."""
        pid = os.fork()
        if pid == 0:
            code = 2
            try:
                code = int(repr(self.model.predict(X)) not in self.known)
            finally:
                os._exit(code)
        self.check("forks", survived(pid, 60.0) == "predicted")

    def again(self, work: Callable[[], Any]) -> None:
        """Does something again and again until it is over; an error fails a check."""
        while not self.over.is_set():
            try:
                work()
            except Exception as error:
                self.check(f"error {error!r:.200}", False)


def run(seconds: float) -> dict[str, Any]:
    """Does everything at once for so many seconds; returns what was counted."""
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(Path(name))
        begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        works = [soak.predict] * 2 + [soak.learn, soak.save, soak.pickle]
        threads = [threading.Thread(target=soak.again, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            soak.fork()
        soak.over.set()
        for thread in threads:
            thread.join(60.0)
        stuck = sum(thread.is_alive() for thread in threads)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begin
    return {"seconds": seconds, "stuck": stuck, "grown kB": grown, **dict(soak.counts)}


if __name__ == "__main__":
    json.dump(run(float(sys.argv[1])), sys.stdout)
