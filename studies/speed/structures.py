"""Speed of chunks, layers of labels and feature lists, and of L-BFGS, for ``studies.speed.speed``.

Each training runs once, in a fresh process with one thread; python-crfsuite, where it is a peer, in
the same run. Training time is from reading the file to the saved model, decoding time is from raw
words to labels. Keys that one training answers share it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from studies import measure
from studies.corpus import files, plain_read, warmup_file
from studies.measure import Row, fastest, peak_mb
from studies.paper import ewt
from studies.paper.joint import PERCEPTRON
from studies.peers import joint, single
from studies.peers.systems import crfsuite_trainer, labels_of
from studies.speed.tokens import row
from studies.training import parameters

LASO, CRFSUITE = "laso", "python-crfsuite"
BEAM = 5
EWT_EPOCHS = 8
LBFGS: dict[str, Any] = {"c1": 0.0, "c2": 1.0, "max_iterations": 20}
LBFGS_SENTENCES = 2000

Measure = Callable[[Path], list[Row]]


# --------------------------------------------------------------------------- one process


def measure_rows(job: Row) -> Row:
    """Return the rows that one of JOBS measures."""
    with tempfile.TemporaryDirectory() as folder:
        return {"rows": JOBS[job["what"]](job, Path(folder))}


def trained(job: Row, work: Path, make: Callable[..., Any]) -> tuple[Any, Row]:
    """Return a model of a file, and how long that took; code is loaded before."""
    make(epochs=1).fit(Path(job["few"])).save(work / "few.laso")
    model = make()
    return model, timed(lambda: model.fit(Path(job["train"])).save(work / "model.laso"))


def timed(call: Callable[[], object]) -> Row:
    """Return the time and the CPU time of a call."""
    began, cpu = time.perf_counter(), time.process_time()
    call()
    return {"value": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


def train_chunker(job: Row, work: Path) -> list[Row]:
    """Train and test a ``Chunker`` on CoNLL-2000; file to file, and from Python's columns."""
    from laso import Chunker
    from laso.metrics import chunk_scores

    model, took = trained(job, work, partial(Chunker, queue=BEAM, threads=1))
    test, gold = Path(job["test"]), plain_read(job["test"])
    words = [[token[:2] for token in sentence] for sentence in gold]
    tokens = sum(map(len, gold))

    def to_file() -> None:
        text = "\n\n".join("\n".join(tags) for tags in model.predict(test))
        (work / "tags.txt").write_text(text, encoding="utf-8")

    config, f = f"Chunker, beam {BEAM}", chunk_scores(labels_of(gold), model.predict(words)).f
    speeds = {
        "file to file": tokens / fastest(to_file),
        "from columns": tokens / fastest(lambda: model.predict(words)),
    }
    return [
        row("chunk_train_s", LASO, config, f=f, **took),
        *(row("chunk_tokens_per_s", LASO, f"{config}, {k}", v, f) for k, v in speeds.items()),
    ]


def train_layers(job: Row, work: Path) -> list[Row]:
    """Train and test a ``JointTagger`` on UD English EWT; f is the accuracy of all layers."""
    settings = {"queue": BEAM, **PERCEPTRON, "epochs": EWT_EPOCHS}

    def make(**given: Any) -> Any:
        chosen = parameters({**settings, **given})
        return ewt.make_estimator(how=ewt.TOGETHER, **chosen, threads=1)

    model, took = trained(job, work, make)
    peak, tokens = peak_mb(), sum(map(len, plain_read(job["test"])))
    f = ewt.evaluate(model, Path(job["test"]))["all_acc"]
    speed = tokens / fastest(lambda: model.predict(Path(job["test"])))
    config = f"JointTagger, beam {BEAM}, {EWT_EPOCHS} epochs"
    return [
        row("ewt_joint_train_s", LASO, config, f=f, **took),
        row("ewt_joint_peak_mb", LASO, config, peak, f),
        row("ewt_joint_tokens_per_s", LASO, config, speed, f),
    ]


def train_likelihood(job: Row, work: Path) -> list[Row]:
    """Train by L-BFGS on feature dicts that are in memory, with as many iterations for both."""
    sentences = plain_read(job["train"])[:LBFGS_SENTENCES]
    X, y = [single.feature_dicts(sentence) for sentence in sentences], labels_of(sentences)
    fit = {LASO: _fit_ours, CRFSUITE: _fit_theirs}[job["system"]]
    fit(X[:20], y[:20], work / "few")
    took = timed(lambda: fit(X, y, work / "model"))
    config = f"{LBFGS_SENTENCES:,} sentences, {LBFGS['max_iterations']} iterations"
    return [row("lbfgs_train_s", job["system"], config, **took)]


def _fit_ours(X: Any, y: Any, path: Path) -> None:
    from laso import CRF

    CRF(algorithm="lbfgs", threads=1, **LBFGS).fit(X, y).save(path)


def _fit_theirs(X: Any, y: Any, path: Path) -> None:
    crfsuite_trainer("lbfgs", X, y, **LBFGS).train(str(path))


def tag_lists(job: Row, work: Path) -> list[Row]:
    """Tag feature dicts and lists of strings by exact search: raw, and encoded before."""
    import pycrfsuite

    test = plain_read(job["test"])
    made = single.models(plain_read(job["train"])[: single.SENTENCES])
    ours, tag = made[single.LASO], made[single.THEIRS].tagger_.tag
    tokens, rows = sum(map(len, test)), []
    for form, X in single.forms(test).items():
        encoded, items = ours.encoded(X), [pycrfsuite.ItemSequence(x) for x in X]
        calls: dict[tuple[str, str], Callable[[], object]] = {
            (LASO, "raw"): partial(ours.predict, X),
            (CRFSUITE, "raw"): partial(_each, tag, X),
            (LASO, "encoded"): partial(ours.decode, *encoded),
            (CRFSUITE, "encoded"): partial(_each, tag, items),
        }
        for (system, kind), call in calls.items():
            value = tokens / fastest(call)
            rows.append(row("dicts_tokens_per_s", system, f"{form}, {kind}", value))
    return rows


def _each(call: Callable[[Any], Any], X: list[Any]) -> list[Any]:
    return [*map(call, X)]


JOBS: Mapping[str, Callable[[Row, Path], list[Row]]] = {
    "chunks": train_chunker,
    "layers": train_layers,
    "likelihood": train_likelihood,
    "lists": tag_lists,
}


# --------------------------------------------------------------------------- keys


def in_process(what: str, work: Path, corpus: str = "conll2000", **more: str) -> list[Row]:
    """Return the rows of a job on a corpus, from a process of its own."""
    given = files(corpus, work, quick=False)
    few = warmup_file(given.train, work)
    job = {"what": what, "train": given.train, "test": given.test, "few": few, **more}
    return [*measure.Processes(work).run(f"{__name__}:measure_rows", job)["rows"]]


def two_layers(work: Path) -> list[Row]:
    """Return the rows of a ``JointTagger`` on CoNLL-2000, and of CRFsuite on product labels."""
    given = files("conll2000", work, quick=False)
    peer = next(iter(joint.PEERS))
    rows = []
    for name, system, config in (
        (joint.LASO, LASO, f"JointTagger, LaSOa_{joint.BEAM}"),
        (peer, CRFSUITE, "averaged perceptron, product labels"),
    ):
        one = joint.in_process(name, given, work)
        more = {"cpu_s": one["cpu_s"], "joint_acc": round(one["joint_acc"], 2)}
        rows.append(row("joint_train_s", system, config, one["train_s"], one["f"], **more))
        rows.append(row("joint_tokens_per_s", system, config, one["tokens_per_s"], one["f"]))
    return rows


def likelihood(work: Path) -> list[Row]:
    """Return the rows of training by L-BFGS with the same settings."""
    systems = (LASO, CRFSUITE)
    return [one for name in systems for one in in_process("likelihood", work, system=name)]


SOURCES: Mapping[Measure, Mapping[str, str]] = {
    partial(in_process, "chunks"): {
        "chunk_tokens_per_s": "chunks of CoNLL-2000, tokens/s",
        "chunk_train_s": "learn the chunks of CoNLL-2000",
    },
    two_layers: {
        "joint_train_s": "learn tags and chunks of CoNLL-2000 jointly",
        "joint_tokens_per_s": "tags and chunks of CoNLL-2000 jointly, tokens/s",
    },
    partial(in_process, "layers", corpus="ud_ewt"): {
        "ewt_joint_train_s": "learn three layers of UD English EWT jointly",
        "ewt_joint_peak_mb": "peak memory of that",
        "ewt_joint_tokens_per_s": "three layers of UD English EWT jointly, tokens/s",
    },
    likelihood: {"lbfgs_train_s": "train a CRF by L-BFGS"},
    partial(in_process, "lists"): {
        "dicts_tokens_per_s": "feature dicts and lists by exact search, tokens/s"
    },
}
"""The functions that measure, and what the keys of their rows mean."""
MEANINGS = {key: text for keys in SOURCES.values() for key, text in keys.items()}
_measured: dict[Measure, list[Row]] = {}


def of_key(source: Measure, key: str, work: Path) -> list[Row]:
    """Return the rows of a key; keys of one source are measured at once."""
    if source not in _measured:
        _measured[source] = source(work)
    return [one for one in _measured[source] if one["key"] == key]


MEASURES: dict[str, Measure] = {
    key: partial(of_key, source, key) for source, keys in SOURCES.items() for key in keys
}
