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


def do(job: Row) -> Row:
    """Do one of JOBS and return its result."""
    with tempfile.TemporaryDirectory() as folder:
        return JOBS[job["what"]](job, Path(folder))


def trained(job: Row, work: Path, make: Callable[..., Any]) -> tuple[Any, Row]:
    """Return a model of a file, and how long that took; code is loaded before."""
    make(epochs=1).fit(Path(job["few"])).save(work / "few.laso")
    began, cpu = time.perf_counter(), time.process_time()
    model = make().fit(Path(job["train"]))
    model.save(work / "model.laso")
    took = {"train_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
    return model, {**took, "peak_mb": peak_mb()}


def train_chunker(job: Row, work: Path) -> Row:
    """Train and test a ``Chunker``; file to file, and from Python's columns."""
    from laso import Chunker
    from laso.metrics import chunk_scores

    def make(**given: Any) -> Any:
        return Chunker(queue=BEAM, threads=1, **given)

    model, took = trained(job, work, make)
    test, gold = Path(job["test"]), plain_read(job["test"])
    words = [[token[:2] for token in sentence] for sentence in gold]
    tokens = sum(map(len, gold))

    def to_file() -> None:
        predicted = model.predict(test)
        text = "\n\n".join("\n".join(tags) for tags in predicted)
        (work / "tags.txt").write_text(text, encoding="utf-8")

    predicted = model.predict(words)
    return {
        **took,
        "file": tokens / fastest(to_file),
        "columns": tokens / fastest(lambda: model.predict(words)),
        "f": chunk_scores(labels_of(gold), predicted).f,
    }


def train_layers(job: Row, work: Path) -> Row:
    """Train and test a ``JointTagger`` for the three layers of UD English EWT."""
    settings = {"queue": BEAM, **PERCEPTRON, "epochs": EWT_EPOCHS}

    def make(**given: Any) -> Any:
        chosen = parameters({**settings, **given})
        return ewt.make_estimator(how=ewt.TOGETHER, **chosen, threads=1)

    model, took = trained(job, work, make)
    tokens = sum(map(len, plain_read(job["test"])))
    scores = ewt.evaluate(model, Path(job["test"]))
    speed = tokens / fastest(lambda: model.predict(Path(job["test"])))
    return {**took, "tokens_per_s": speed, "f": scores["all_acc"]}


def train_likelihood(job: Row, work: Path) -> Row:
    """Train by L-BFGS on feature dicts that are in memory, with as many iterations for both."""
    sentences = plain_read(job["train"])[:LBFGS_SENTENCES]
    X, y = [single.feature_dicts(sentence) for sentence in sentences], labels_of(sentences)
    fit = {LASO: _fit_ours, CRFSUITE: _fit_theirs}[job["system"]]
    fit(X[:20], y[:20], work / "few")
    began, cpu = time.perf_counter(), time.process_time()
    fit(X, y, work / "model")
    return {"train_s": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}


def _fit_ours(X: Any, y: Any, path: Path) -> None:
    from laso import CRF

    CRF(algorithm="lbfgs", threads=1, **LBFGS).fit(X, y).save(path)


def _fit_theirs(X: Any, y: Any, path: Path) -> None:
    crfsuite_trainer("lbfgs", X, y, **LBFGS).train(str(path))


def tag_lists(job: Row, work: Path) -> Row:
    """Tag feature dicts and lists of strings by exact search: raw, and encoded before."""
    import pycrfsuite

    test = plain_read(job["test"])
    made = single.models(plain_read(job["train"])[: single.SENTENCES])
    ours, tag = made[single.LASO], made[single.THEIRS].tagger_.tag
    dicts = [single.feature_dicts(sentence) for sentence in test]
    lists = [[[f"{k}:{v}" for k, v in token.items()] for token in x] for x in dicts]
    tokens, result = sum(map(len, test)), {}
    forms: dict[str, list[Any]] = {"dicts": dicts, "lists of strings": lists}
    for form, X in forms.items():
        encoded, items = ours.encoded(X), [pycrfsuite.ItemSequence(x) for x in X]
        calls: dict[tuple[str, str], Callable[[], object]] = {
            (LASO, "raw"): partial(ours.predict, X),
            (CRFSUITE, "raw"): partial(_each, tag, X),
            (LASO, "encoded"): partial(ours.decode, *encoded),
            (CRFSUITE, "encoded"): partial(_each, tag, items),
        }
        for (system, kind), call in calls.items():
            result[f"{system}/{form}, {kind}"] = tokens / fastest(call)
    return result


def _each(call: Callable[[Any], Any], X: list[Any]) -> list[Any]:
    return [*map(call, X)]


JOBS: Mapping[str, Callable[[Row, Path], Row]] = {
    "chunks": train_chunker,
    "layers": train_layers,
    "likelihood": train_likelihood,
    "lists": tag_lists,
}


# --------------------------------------------------------------------------- rows


def _job(what: str, corpus: str, work: Path, **more: Any) -> Row:
    """Return the result of a job on a corpus, from a process of its own."""
    given = files(corpus, work, quick=False)
    job = {"what": what, "train": given.train, "test": given.test, **more}
    job["few"] = warmup_file(given.train, work)
    return measure.Processes(work).run(f"{__name__}:do", job)


def chunks(work: Path) -> list[Row]:
    """Return the rows of a ``Chunker`` on CoNLL-2000."""
    found = _job("chunks", "conll2000", work)
    config, f = f"Chunker, beam {BEAM}", found["f"]
    return [
        row("chunk_train_s", LASO, config, found["train_s"], f, cpu_s=found["cpu_s"]),
        row("chunk_tokens_per_s", LASO, f"{config}, file to file", found["file"], f),
        row("chunk_tokens_per_s", LASO, f"{config}, from columns", found["columns"], f),
    ]


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


def three_layers(work: Path) -> list[Row]:
    """Return the rows of a ``JointTagger`` on UD English EWT; f is the accuracy of all layers."""
    found = _job("layers", "ud_ewt", work)
    config, f = f"JointTagger, beam {BEAM}, {EWT_EPOCHS} epochs", found["f"]
    return [
        row("ewt_joint_train_s", LASO, config, found["train_s"], f, cpu_s=found["cpu_s"]),
        row("ewt_joint_peak_mb", LASO, config, found["peak_mb"], f),
        row("ewt_joint_tokens_per_s", LASO, config, found["tokens_per_s"], f),
    ]


def likelihood(work: Path) -> list[Row]:
    """Return the rows of training by L-BFGS with the same settings."""
    config = f"{LBFGS_SENTENCES:,} sentences, {LBFGS['max_iterations']} iterations"
    rows = []
    for system in (LASO, CRFSUITE):
        found = _job("likelihood", "conll2000", work, system=system)
        more = {"cpu_s": found["cpu_s"]}
        rows.append(row("lbfgs_train_s", system, config, found["train_s"], None, **more))
    return rows


def lists(work: Path) -> list[Row]:
    """Return the rows of tagging feature dicts and lists of strings."""
    found = _job("lists", "conll2000", work)
    rows = []
    for name, value in found.items():
        system, _, config = name.partition("/")
        rows.append(row("dicts_tokens_per_s", system, config, value))
    return rows


# --------------------------------------------------------------------------- keys

SOURCES: Mapping[str, Measure] = {
    "chunk_tokens_per_s": chunks,
    "chunk_train_s": chunks,
    "joint_train_s": two_layers,
    "joint_tokens_per_s": two_layers,
    "ewt_joint_train_s": three_layers,
    "ewt_joint_peak_mb": three_layers,
    "ewt_joint_tokens_per_s": three_layers,
    "lbfgs_train_s": likelihood,
    "dicts_tokens_per_s": lists,
}
MEANINGS = {
    "chunk_tokens_per_s": "chunks of CoNLL-2000, tokens/s",
    "chunk_train_s": "learn the chunks of CoNLL-2000",
    "joint_train_s": "learn tags and chunks of CoNLL-2000 jointly",
    "joint_tokens_per_s": "tags and chunks of CoNLL-2000 jointly, tokens/s",
    "ewt_joint_train_s": "learn three layers of UD English EWT jointly",
    "ewt_joint_peak_mb": "peak memory of that",
    "ewt_joint_tokens_per_s": "three layers of UD English EWT jointly, tokens/s",
    "lbfgs_train_s": "train a CRF by L-BFGS",
    "dicts_tokens_per_s": "feature dicts and lists by exact search, tokens/s",
}
_measured: dict[Measure, list[Row]] = {}


def rows_of(key: str) -> Measure:
    """Return the function that measures a key; keys of one source are measured at once."""

    def measured(work: Path) -> list[Row]:
        source = SOURCES[key]
        if source not in _measured:
            _measured[source] = source(work)
        return [one for one in _measured[source] if one["key"] == key]

    return measured


MEASURES: dict[str, Measure] = {key: rows_of(key) for key in SOURCES}
