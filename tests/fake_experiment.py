"""An experiment whose estimator learns nothing, at once; it notes what it was asked to do."""

import json
import os
import time
from pathlib import Path

from studies.report import Plan
from studies.runner import Config, Experiment

CURVES = {"low": [50.0, 60.0, 55.0], "high": [50.0, 70.0, 70.0], "worse": [10.0, 20.0, 30.0]}


class Fake:
    def __init__(self, *, queue, update, strategy, epochs, seed, features, resources, **others):
        self.epochs, self.seed, self.others = epochs, seed, others
        self.kind = "high" if update.margin else "low"
        if update.margin == 2.0:
            raise ValueError("this row always fails")
        self.width = queue if isinstance(queue, int) else 99
        self.interrupted_ = seed == 7
        self.resources = resources

    def fit(self, path, *, dev=None):
        self.n_iter_ = self.epochs
        self.scores_ = [f / 100 for f in CURVES[self.kind][: self.epochs]]
        warming = Path(path).name == "few.txt"
        what = "warm" if warming else "trial" if dev else "final"
        with Path(os.environ["FAKE_LOG"]).open("a", encoding="utf-8") as log:
            log.write(json.dumps([what, self.width, self.seed, self.epochs]) + "\n")
        if self.seed == 5:
            time.sleep(100)
        return self

    def save(self, path):
        Path(path).write_bytes(b"model")
        return 5


def evaluate(model, path):
    f = 90.0 + model.width / 10 + model.seed / 100
    return {"test_s": 0.5, "precision": f + 1, "recall": f - 1, "f": f}


def report(results, chosen, folder):
    path = folder / "fake.md"
    path.write_text(f"{len(results)} results, {len(chosen)} choices\n", encoding="utf-8")
    return [path]


EXPERIMENT = Experiment(
    plan=Plan("fake", "Fake", (), ""),
    rows={
        "one": Config({"queue": 1, "margin": 0.0}, {"margin": [0.0, 1.0]}),
        "exact": Config({"queue": "exact"}),
        "broken": Config({"queue": 1, "margin": 2.0}),
    },
    estimator=lambda: Fake,
    evaluate=evaluate,
    write=report,
    shown={"f": 2, "train_s": 1},
)
