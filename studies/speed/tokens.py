"""Tokens per second where users feel it: from file to file, and from columns in Python.

Each function of MEASURES measures one key of speed.json and returns its rows. All systems learn
from the same data with CRFsuite's template, and are measured in the same run.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from laso.data import Sentence
from laso.metrics.evaluation import main_score
from studies import corpus, measure
from studies.measure import Row
from studies.peers import systems, template
from studies.peers.systems import Tag, VowpalWabbit, crfsuite_tag, crfsuite_trainer, labels_of

ROUNDS = 9  # of calls from Python
RUNS = 5  # of processes
ENOUGH = 60.0  # seconds of a program with the larger file, after which it runs no more
SMALL, LARGE = 4, 24  # times the test data: the difference is what tokens cost without the start
PEER, RUST = "python-crfsuite", "crfs"  # both read the models of CRFsuite
VOWPAL_WABBIT = "vowpalwabbit"
TRAINING: dict[str, Any] = {"algorithm": "ap", "max_iterations": 20}
CHOSEN = measure.ROOT / "benchmarks" / "results" / "chosen.json"
SETTINGS: dict[str, Any] = {"update": systems.UPDATES[1], "strategy": "restart", "epochs": 4}
BEAMS = {"beam 5": 5, "greedy": 1}
DEFAULTS = "beam 5, default templates"
TAG_BY_PEER = """
import sys
from studies.speed.tokens import tag_by_peer
system, model, source, _, target = sys.argv[1:]
tag_by_peer(system, model, source, target)
"""


def row(
    key: str, system: str, config: str, value: float, f: float | None = None, **more: Any
) -> Row:
    """Return a row of speed.json."""
    value, score = round(value, 4), None if f is None else round(f, 2)
    return {"key": key, "system": system, "config": config, "value": value, "f": score, **more}


# --------------------------------------------------------------------------- models


def models(work: Path, train: Path) -> dict[str, Path]:
    """Train our models and save them; return the file of each configuration."""
    from laso import Tagger

    found = {}
    for config, width in BEAMS.items():
        settings = {**SETTINGS, "queue": width}
        found[config] = work / f"{width}.laso"
        Tagger(**systems.parameters(settings)).fit(train).save(found[config])
    found[DEFAULTS] = work / "defaults.laso"
    Tagger(epochs=SETTINGS["epochs"], threads=1).fit(train).save(found[DEFAULTS])
    return found


def peer(work: Path, train: Path) -> Path:
    """Train python-crfsuite's model, unless it is there; return its file."""
    path, sentences = work / "peer.model", corpus.plain_read(train)
    if not path.exists():
        items = map(template.as_lists, sentences)
        crfsuite_trainer(items=items, labels=labels_of(sentences), **TRAINING).train(str(path))
    return path


def peer_tag(system: str, model: str) -> Tag:
    """Return the function of a peer that labels the feature lists of a sentence."""
    if system != RUST:
        return crfsuite_tag(model)
    import crfs

    tag: Tag = crfs.Model.open(model).tag
    return tag


def readers() -> list[str]:
    """Return the installed peers that read CRFsuite's model."""
    return [name for name, module in ((PEER, "pycrfsuite"), (RUST, "crfs")) if find_spec(module)]


def vowpal_wabbit(work: Path, train: Path) -> Callable[[list[Sentence]], tuple[Any, float]] | None:
    """Train Vowpal Wabbit; return what gives labels and seconds; None if it is not installed."""
    peer = VowpalWabbit()
    (config,) = peer.defaults
    if systems.absent(peer.module):
        return None
    chosen = measure.load(CHOSEN) or {}
    settings = chosen.get(f"{VOWPAL_WABBIT}/{config}", {}).get("settings", peer.defaults[config])
    model = work / "vowpal"
    if not model.exists():
        peer.learn(train, settings, model)

    def label(sentences: list[Sentence]) -> tuple[Any, float]:
        found = peer.decode(model, settings, sentences)
        return found.labels, found.decode_s

    return label


def tag_by_peer(system: str, model: str, source: str, target: str) -> None:
    """Label a column file with a peer, as its users would."""
    tag = peer_tag(system, model)
    with Path(target).open("w", encoding="utf-8") as out:
        for sentence in corpus.plain_read(source):
            labels = tag(template.as_lists(sentence))
            for token, label in zip(sentence, labels, strict=True):
                out.write(f"{' '.join(token)} {label}\n")
            out.write("\n")


def f_of(gold: list[Sentence], predicted: list[list[str]]) -> float:
    """Return the chunk F of predicted labels, in per cent."""
    return 100 * main_score(labels_of(gold), predicted)


# --------------------------------------------------------------------------- from file to file


def file_tokens(work: Path) -> list[Row]:
    """``laso tag`` and python-crfsuite from a column file to another, without their start."""
    files = corpus.files("conll2000", work, quick=False)
    test = corpus.plain_read(files.test)
    tokens = sum(map(len, test))
    text = Path(files.test).read_bytes().rstrip(b"\n") + b"\n\n"
    sources = {times: work / f"{times}.txt" for times in (SMALL, LARGE)}
    for times, path in sources.items():
        path.write_bytes(times * text)
    laso = [str(Path(sys.executable).with_name("laso")), "tag"]
    programs: dict[tuple[str, str], list[str]] = {}
    for config, model in models(work, files.train).items():
        for jobs in ("1", "2"):
            name = f"Tagger, {config}, --jobs {jobs}"
            programs["laso", name] = [*laso, "--jobs", jobs, str(model)]
    for system in readers():
        model = peer(work, files.train)
        programs[system, "lists"] = [sys.executable, "-c", TAG_BY_PEER, system, str(model)]
    seconds: dict[tuple[str, str], dict[int, list[float]]] = {}
    scores: dict[tuple[str, str], float] = {}
    for _ in range(RUNS):  # all in turn, so that a slow minute of the machine is no one's alone
        for key, program in programs.items():
            own = seconds.setdefault(key, {times: [] for times in sources})
            if sum(own[LARGE]) > ENOUGH:
                continue
            for times, source in sources.items():
                own[times].append(_process_seconds(program, source))
            if key not in scores:
                predicted = corpus.plain_read(_target(sources[SMALL]))[: len(test)]
                scores[key] = f_of(test, labels_of(predicted))
    rows = []
    for (system, config), own in seconds.items():
        rate = (LARGE - SMALL) * tokens / (min(own[LARGE]) - min(own[SMALL]))
        rows.append(row("file_tokens_per_s", system, config, round(rate), scores[system, config]))
    return rows


def _target(source: Path) -> Path:
    return source.with_suffix(".labelled")


def _process_seconds(program: list[str], source: Path) -> float:
    began = time.perf_counter()
    command = [*program, str(source), "--output", str(_target(source))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


# --------------------------------------------------------------------------- from columns in Python


def columns_tokens(work: Path) -> list[Row]:
    """``predict`` on lists of tuples, and python-crfsuite with its features, in turn."""
    from laso import load_model

    files = corpus.files("conll2000", work, quick=False)
    gold = corpus.plain_read(files.test)
    tokens = sum(map(len, gold))
    calls: dict[tuple[str, str], Callable[[list[Sentence]], list[list[str]]]] = {}
    for config, path in models(work, files.train).items():
        model = load_model(path)
        model.threads = 1
        calls["laso", f"Tagger, {config}"] = model.predict
    for system in readers():
        tag = peer_tag(system, str(peer(work, files.train)))
        calls[system, "lists, features included"] = partial(_tag_each, tag)
    times: dict[tuple[str, str], list[float]] = {name: [] for name in calls}
    predicted: dict[tuple[str, str], list[list[str]]] = {}
    for _ in range(1 + ROUNDS):  # the first call makes what later ones use
        for name, call in calls.items():
            # New strings in every call: Python keeps the hashes of those that it has seen.
            sentences = [[token[:2] for token in s] for s in corpus.plain_read(files.test)]
            began = time.perf_counter()
            predicted[name] = call(sentences)
            times[name].append(time.perf_counter() - began)
    if label := vowpal_wabbit(work, files.train):
        name = (VOWPAL_WABBIT, "sequence, through files")
        sentences = [[token[:2] for token in s] for s in gold]
        found = [label(sentences) for _ in range(1 + ROUNDS)]
        predicted[name], times[name] = found[0][0], [seconds for _, seconds in found]
    return [
        row(
            "columns_tokens_per_s",
            *name,
            round(tokens / statistics.median(seconds[1:])),
            f_of(gold, predicted[name]),
        )
        for name, seconds in times.items()
    ]


def _tag_each(tag: Tag, sentences: list[Sentence]) -> list[list[str]]:
    return [tag(template.as_lists(sentence)) for sentence in sentences]


MEASURES: dict[str, Callable[[Path], list[Row]]] = {
    "file_tokens_per_s": file_tokens,
    "columns_tokens_per_s": columns_tokens,
}
MEANINGS = {
    "file_tokens_per_s": "tokens per second, file to file",
    "columns_tokens_per_s": "tokens per second, from columns in Python",
}
