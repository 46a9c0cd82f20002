"""One measurement in one fresh process: ``python -m benchmarks.worker JOB.json RESULT.json``.

Jobs and results are JSON files, since some systems write to standard output. The jobs are
``train``, ``decode``, ``forms`` and ``start``: the time from the start of the process to the first
labels, of a model trained here (``first``) or loaded.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.corpus import plain_read
from benchmarks.peers import time_forms
from benchmarks.systems import System, all_systems
from laso.data import Sentence
from laso.experiments.measure import peak_mb
from laso.metrics import accuracy, chunk_scores


def main(job_file: str, result_file: str) -> None:
    """Run the job and write its result."""
    job = json.loads(Path(job_file).read_text(encoding="utf-8"))
    result = JOBS[job["job"]](all_systems()[job["system"]], job)
    Path(result_file).write_text(json.dumps(result), encoding="utf-8")


def train(system: System, job: dict[str, Any]) -> dict[str, Any]:
    """Read, make features, train and save; return times, memory and the size of the model.

    ``warm`` is a short file to train on first, so that code is loaded before the measurement.
    """
    import_s = system.prepare()
    model = Path(job["model"])
    if job["warm"]:
        system.learn(Path(job["warm"]), job["settings"], model)
    cpu = time.process_time()
    learned = system.learn(Path(job["train"]), job["settings"], model)
    return {
        "import_s": import_s,
        **learned._asdict(),
        "cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "model_bytes": model.stat().st_size,
    }


def decode(system: System, job: dict[str, Any]) -> dict[str, Any]:
    """Label the test sentences and score the predicted labels."""
    system.prepare()
    gold, inputs = split(plain_read(job["test"]))
    decoded = system.decode(Path(job["model"]), job["settings"], inputs)
    tokens = sum(map(len, inputs))
    return {
        "load_s": decoded.load_s,
        "decode_s": decoded.decode_s,
        "tokens_per_s": tokens / decoded.decode_s,
        "tokens": tokens,
        "f": chunk_scores(gold, decoded.labels).f if job["chunks"] else None,
        "accuracy": accuracy(gold, decoded.labels),
    }


def start(system: System, job: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds to the first labels since the parent's time ``started``."""
    model = Path(job["model"])
    if job["first"]:
        system.learn(Path(job["train"]), job["settings"], model)
    _, inputs = split(plain_read(job["train"])[:1])
    system.decode(model, job["settings"], inputs)
    return {"seconds": time.time() - job["started"]}


def forms(system: System, job: dict[str, Any]) -> dict[str, Any]:
    """Return the seconds that passing features takes in each form."""
    return time_forms(plain_read(job["train"])[:2000])


def split(sentences: list[Sentence]) -> tuple[list[list[str]], list[Sentence]]:
    """Return the labels, and the sentences without them."""
    gold = [[token[2] for token in sentence] for sentence in sentences]
    return gold, [[token[:2] for token in sentence] for sentence in sentences]


JOBS = {"train": train, "decode": decode, "start": start, "forms": forms}

if __name__ == "__main__":
    main(*sys.argv[1:])
