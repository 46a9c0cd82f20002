"""Training by likelihood at equal settings: ``CRF`` against CRFsuite, both with L-BFGS.

``python -m benchmarks likelihood`` trains both on CoNLL-2000 with CRFsuite's template and the same
priors, each in a process of its own. At the optimum both have the same weights, so they should have
the same objective, F and number of weights; what differs is the time. A result is saved as soon as
it is there, and the same command goes on where it was.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from benchmarks import template
from benchmarks.corpus import Files, plain_read
from laso.experiments import measure
from laso.experiments.measure import Row, peak_mb, table

LASO, THEIRS = "laso", "python-crfsuite"
PRIORS = ((0.0, 1.0), (0.1, 0.1), (0.3, 0.3))  # c1 and c2
ITERATIONS = 1000  # at most; training ends where the objective no longer improves
PACKAGES = (LASO, "numba", "numpy", THEIRS)


# --------------------------------------------------------------------------- one training


def main(job_file: str, result_file: str) -> None:
    """Train in this process, and write what was measured."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    train, test = plain_read(Path(job["train"])), plain_read(Path(job["test"]))
    given = {"c1": job["c1"], "c2": job["c2"], "max_iterations": ITERATIONS}
    X = [template.as_lists(sentence) for sentence in test]
    found, predicted = TRAINERS[job["system"]](train, X, given, str(Path(job["work"], "model")))
    result = {**found, "f": f_of(test, predicted), "peak_mb": peak_mb()}
    Path(result_file).write_text(json.dumps(result), encoding="utf-8")


def _train_ours(train: Any, test: Any, given: Row, path: str) -> tuple[Row, Any]:
    from laso import CRF

    few = [template.as_lists(sentence) for sentence in train[:2]]
    CRF("lbfgs", max_iterations=1, threads=1).fit(few, _labels(train[:2]))  # compiles
    model = CRF("lbfgs", **given, threads=1)
    began = time.process_time()
    model.fit(map(template.as_lists, train), _labels(train))
    seconds = time.process_time() - began
    return _told(model.training_log_.last_iteration, seconds), model.predict(test)


def _train_theirs(train: Any, test: Any, given: Row, path: str) -> tuple[Row, Any]:
    import pycrfsuite

    trainer = pycrfsuite.Trainer("lbfgs", given, verbose=False)
    began = time.process_time()
    for sentence, labels in zip(train, _labels(train), strict=True):
        trainer.append(template.as_lists(sentence), labels)
    trainer.train(path)
    seconds = time.process_time() - began
    model = pycrfsuite.Tagger()
    model.open(path)
    return _told(trainer.logparser.last_iteration, seconds), [model.tag(x) for x in test]


TRAINERS: dict[str, Callable[..., tuple[Row, Any]]] = {LASO: _train_ours, THEIRS: _train_theirs}


def _told(iteration: Row, seconds: float) -> Row:
    """Return what a log says of the last iteration, and the seconds of CPU."""
    return {
        "loss": float(iteration["loss"]),
        "weights": int(iteration["active_features"]),
        "iterations": int(iteration["num"]),
        "train_s": seconds,
    }


def _labels(sentences: Iterable[Any]) -> list[list[str]]:
    return [[token[-1] for token in sentence] for sentence in sentences]


def f_of(test: Any, predicted: Iterable[Any]) -> float:
    """Return the F of chunks."""
    from laso.metrics import chunk_scores

    return chunk_scores(_labels(test), [list(labels) for labels in predicted]).f


# --------------------------------------------------------------------------- all of it


def run(files: Files, work: Path, results: Path, say: Callable[[str], None]) -> Path:
    """Measure what is missing, save likelihood.json and write likelihood.md; return its path."""
    path = results / "likelihood.json"
    rows: list[Row] = measure.load(path) or []
    for c1, c2 in PRIORS:
        for system in TRAINERS:
            key = {"system": system, "c1": c1, "c2": c2}
            if any(key.items() <= row.items() for row in rows):
                continue
            job = {**key, "train": files.train, "test": files.test, "work": work}
            row = {**key, **measure.Processes(work).run("benchmarks.likelihood", job)}
            row |= {"machine": measure.machine(), "versions": measure.versions(PACKAGES)}
            rows.append(row)
            measure.save(path, rows)
            say(f"c1={c1} c2={c2}, {system}: F {row['f']:.2f} in {row['train_s']:.1f} s")
    report_path = results / "likelihood.md"
    report_path.write_text(report(rows), encoding="utf-8")
    return report_path


def report(rows: list[Row]) -> str:
    """Return the text of likelihood.md."""
    lines = [
        [
            f"{row['c1']:g}",
            f"{row['c2']:g}",
            row["system"],
            f"{row['f']:.2f}",
            f"{row['loss']:.1f}",
            f"{row['weights']:,}",
            str(row["iterations"]),
            f"{row['train_s']:.1f}",
            f"{row['peak_mb']:.0f}",
        ]
        for row in rows
    ]
    head = ["c1", "c2", "system", "F", "objective", "weights", "iterations", "CPU s", "peak MB"]
    return "\n\n".join(["# Training by likelihood", NOTES, table(head, lines, left=3)]) + "\n"


NOTES = f"""\
Made by `python -m benchmarks likelihood` on CoNLL-2000 with CRFsuite's template and L-BFGS, until
the objective no longer improves, {ITERATIONS} iterations at most. Features, priors and stopping
criteria are the same, so the optimum is, too. Training times are seconds of CPU with the conversion
of features, without compilation. F is that of chunks in the test data."""


if __name__ == "__main__":
    main(*sys.argv[1:])
