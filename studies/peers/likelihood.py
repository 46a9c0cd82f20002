"""Training by likelihood at equal settings: ``CRF`` against CRFsuite, both with L-BFGS.

``python -m studies likelihood`` trains both on CoNLL-2000 with CRFsuite's template and the same
priors, each in a process of its own. At the optimum both have the same weights, so they should have
the same objective, F and number of weights; what differs is the time. A result is saved as soon as
it is there, and the same command goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from studies import measure
from studies.corpus import Files, plain_read
from studies.measure import Row, Say, format_table, peak_mb
from studies.peers import template
from studies.peers.systems import crfsuite_tag, crfsuite_trainer, labels_of

LASO, THEIRS = "laso", "python-crfsuite"
PRIORS = ((0.0, 1.0), (0.1, 0.1), (0.3, 0.3))  # c1 and c2
ITERATIONS = 1000  # at most; training ends where the objective no longer improves
PACKAGES = (LASO, "numba", "numpy", THEIRS)


# --------------------------------------------------------------------------- one training


def train(job: Row) -> Row:
    """Train in this process, and return what was measured; F is that of chunks."""
    from laso.metrics import chunk_scores

    sentences, test = plain_read(job["train"]), plain_read(job["test"])
    given = {"c1": job["c1"], "c2": job["c2"], "max_iterations": ITERATIONS}
    X = [template.as_lists(sentence) for sentence in test]
    path = str(Path(job["work"], "model"))
    found, predicted = TRAINERS[job["system"]](sentences, X, given, path)
    f = chunk_scores(labels_of(test), [list(labels) for labels in predicted]).f
    return {**found, "f": f, "peak_mb": peak_mb()}


def _train_ours(train: Any, test: Any, given: Row, path: str) -> tuple[Row, Any]:
    from laso import CRF

    few = [template.as_lists(sentence) for sentence in train[:2]]
    CRF("lbfgs", max_iterations=1, threads=1).fit(few, labels_of(train[:2]))  # compiles
    model = CRF("lbfgs", **given, threads=1)
    began = time.process_time()
    model.fit(map(template.as_lists, train), labels_of(train))
    seconds = time.process_time() - began
    return _told(model.training_log_.last_iteration, seconds), model.predict(test)


def _train_theirs(train: Any, test: Any, given: Row, path: str) -> tuple[Row, Any]:
    import pycrfsuite  # noqa: F401 (loaded before the measurement)

    began = time.process_time()
    items = map(template.as_lists, train)
    trainer = crfsuite_trainer("lbfgs", items, labels_of(train), **given)
    trainer.train(path)
    seconds = time.process_time() - began
    tag = crfsuite_tag(path)
    return _told(trainer.logparser.last_iteration, seconds), [tag(x) for x in test]


TRAINERS: dict[str, Callable[..., tuple[Row, Any]]] = {LASO: _train_ours, THEIRS: _train_theirs}


def _told(iteration: Row, seconds: float) -> Row:
    """Return what a log says of the last iteration, and the seconds of CPU."""
    return {
        "loss": float(iteration["loss"]),
        "weights": int(iteration["active_features"]),
        "iterations": int(iteration["num"]),
        "train_s": seconds,
    }


# --------------------------------------------------------------------------- all of it


def run(files: Files, work: Path, results: Path, say: Say) -> Path:
    """Measure what is missing, save likelihood.json and write likelihood.md; return its path."""

    def measured(key: Row) -> Row:
        job = {**key, "train": files.train, "test": files.test, "work": work}
        found = measure.Processes(work).run(f"{__name__}:train", job)
        return {**found, "machine": measure.machine(), "versions": measure.versions(PACKAGES)}

    keys = [{"system": name, "c1": c1, "c2": c2} for c1, c2 in PRIORS for name in TRAINERS]
    rows = measure.run_missing(
        results / "likelihood.json",
        ((key, partial(measured, key)) for key in keys),
        lambda row: say("c1={c1} c2={c2}, {system}: F {f:.2f} in {train_s:.1f} s".format(**row)),
    )
    return measure.write(results / "likelihood.md", report(rows))


def report(rows: list[Row]) -> str:
    """Return the text of likelihood.md."""
    columns = {
        "c1": "{c1:g}",
        "c2": "{c2:g}",
        "system": "{system}",
        "F": "{f:.2f}",
        "objective": "{loss:.1f}",
        "weights": "{weights:,}",
        "iterations": "{iterations}",
        "CPU s": "{train_s:.1f}",
        "peak MB": "{peak_mb:.0f}",
    }
    parts = ["# Training by likelihood", NOTES, format_table(rows, columns, left=3)]
    return "\n\n".join(parts) + "\n"


NOTES = f"""\
Made by `python -m studies likelihood` on CoNLL-2000 with CRFsuite's template and L-BFGS, until
the objective no longer improves, {ITERATIONS} iterations at most. Features, priors and stopping
criteria are the same, so the optimum is, too. Training times are seconds of CPU with the conversion
of features, without compilation. F is that of chunks in the test data."""
