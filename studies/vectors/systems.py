"""The tasks, and the systems of each: sparse features, vectors beside them, tuned ones, peers.

A system chooses its settings on held-out sentences, which are a tenth of the training part, or the
development part where there is one; then it learns from the training part for the chosen number of
epochs, and is scored once on the test part.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.data import find_corpus, read_columns
from laso.data.reading import read
from studies.measure import Grid, Row, Settings, coordinate_search

ENCODER = "minilm"
FOLDS, TAG_EPOCHS = 5, 8
Sentences = list[list[Any]]


class Part(NamedTuple):
    """Sentences and their gold outputs."""

    X: Sentences
    y: Sentences

    @property
    def words(self) -> list[list[str]]:
        """The words of the sentences."""
        return [[token if isinstance(token, str) else token[0] for token in x] for x in self.X]

    @property
    def n_words(self) -> int:
        """The number of words."""
        return sum(map(len, self.X))


class Data(NamedTuple):
    """What a system learns from, what its settings are chosen on, and what it is scored on."""

    train: Part
    held_out: Part | None  # None: a tenth of the training part
    test: Part

    def to_choose(self) -> tuple[Part, Part]:
        """Return what trials learn from, and what they are scored on."""
        if self.held_out is not None:
            return self.train, self.held_out
        order = list(range(len(self.train.X)))
        random.Random(7).shuffle(order)
        n = len(order) // 10
        return _taken(self.train, order[n:]), _taken(self.train, order[:n])


def _taken(part: Part, chosen: Sequence[int]) -> Part:
    return Part([part.X[i] for i in chosen], [part.y[i] for i in chosen])


def _columns(path: Path, inputs: int) -> Part:
    sentences = read_columns(path)
    X = [[token[:inputs] if inputs > 1 else token[0] for token in x] for x in sentences]
    return Part(X, [[token[-1] for token in x] for x in sentences])


def _chunks() -> Data:
    folder = find_corpus("conll2000")
    return Data(_columns(folder / "train.txt", 2), None, _columns(folder / "test.txt", 2))


def _entities() -> Data:
    folder = find_corpus("wnut17")
    return Data(*(_columns(folder / f"{part}.conll", 1) for part in ("train", "dev", "test")))


def _treebank(part: str, *, trees: bool) -> Part:
    path = find_corpus("ud_ewt") / f"en_ewt-ud-{part}.conllu"
    rows = [block.tokens for block in read(path, format="conllu") if block.tokens]
    if trees:
        X: Sentences = [[(row[1], row[3], row[4]) for row in each] for each in rows]
        return Part(X, [[(int(row[6]), row[7]) for row in each] for each in rows])
    return Part([[row[1] for row in each] for each in rows], [[row[3] for row in r] for r in rows])


def _tags() -> Data:
    return Data(*(_treebank(part, trees=False) for part in ("train", "dev", "test")))


def _trees() -> Data:
    return Data(*(_treebank(part, trees=True) for part in ("train", "dev", "test")))


# --------------------------------------------------------------------------- laso's systems


def _tagger(settings: Settings, *, encoder: Any, **fixed: Any) -> Any:
    from laso import Tagger

    return Tagger(encoder=encoder, **{**fixed, **settings})


def _parser(settings: Settings, *, encoder: Any, **fixed: Any) -> Any:
    from laso import Parser, Tagger

    given = dict(settings)
    of_tags: Row = {"queue": 1, "epochs": TAG_EPOCHS, "encoder": encoder}
    if encoder is not None:
        of_tags |= {"vector_window": 1, "vector_scale": given.get("vector_scale")}
    tagger = {"pos": Tagger(**of_tags), "xpos": Tagger(**of_tags)}
    return Parser(encoder=encoder, tagger=tagger, folds=FOLDS, **{**fixed, **given})


NO_GRID: Grid = {}


class System(NamedTuple):
    """A system of a task: how it is made, and the values that are tried for its settings."""

    make: Callable[..., Any]
    encoder: str = ""  # the name of the encoder; nothing: sparse features only
    tuned: bool = False
    epochs: int = 12  # at most
    grid: Grid = NO_GRID
    seeds: int = 3


class Task(NamedTuple):
    """A task: its data, its measure, and its systems."""

    load: Callable[[], Data]
    measure: str
    systems: Mapping[str, System]


LAYERS = [ENCODER, f"{ENCODER}:4", f"{ENCODER}:2"]  # the third layer is the default
GRID: Grid = {"vector_window": [1, 0, 2], "encoder": LAYERS}
SPARSE, FROZEN, TUNED = "sparse", "frozen", "tuned"


def _systems(make: Callable[..., Any], *, epochs: int = 12) -> dict[str, System]:
    return {
        SPARSE: System(make, epochs=epochs),
        FROZEN: System(make, ENCODER, epochs=epochs, grid=GRID),
        TUNED: System(make, ENCODER, tuned=True, epochs=4),
    }


TASKS = {
    "chunks": Task(_chunks, "F", _systems(partial(_tagger, constraints="BIO"))),
    "entities": Task(_entities, "F", _systems(partial(_tagger, constraints="BIO"), epochs=20)),
    "tags": Task(_tags, "accuracy", _systems(_tagger)),
    "trees": Task(
        _trees,
        "LAS",
        {SPARSE: System(_parser, epochs=10), FROZEN: System(_parser, ENCODER, epochs=10)},
    ),
}


# --------------------------------------------------------------------------- measuring


def choose(job: Row) -> Row:
    """Return the settings of a system that are best on held-out sentences, with all trials."""
    task = TASKS[job["task"]]
    system, data = task.systems[job["row"]], task.load()
    train, held_out = data.to_choose()
    trials: list[Row] = []

    def score(settings: Settings) -> float:
        for trial in trials:
            if settings.items() <= trial["settings"].items():
                return float(trial["held_out"])
        encoder = encoder_of(system, settings, train)
        fixed = {name: value for name, value in settings.items() if name != "encoder"}
        model = system.make(fixed, encoder=encoder, epochs=system.epochs)
        model.fit(train.X, train.y, dev=(held_out.X, held_out.y))
        chosen = {**settings, "epochs": model.best_epoch_}
        if encoder is not None:
            chosen["vector_scale"] = model.task_.dense.scale
        trials.append({"settings": chosen, "held_out": 100 * max(model.scores_)})
        return float(trials[-1]["held_out"])

    start = dict(job["frozen"])
    if system.grid:
        coordinate_search(
            {name: values[0] for name, values in system.grid.items()}, system.grid, score
        )
    else:
        score(start)
    best = max(trials, key=lambda trial: trial["held_out"])
    return {"settings": best["settings"], "trials": trials}


def encoder_of(system: System, settings: Settings, train: Part, *, cache: bool = True) -> Any:
    """Return the encoder of a system with its settings, None for sparse features."""
    from laso.encoders import Schedule, load_encoder

    if not system.encoder:
        return None
    name = settings.get("encoder", system.encoder)
    if not system.tuned:
        return load_encoder(name, cache=cache)
    from laso.encoders.torch import TorchEncoder

    steps = system.epochs * len(train.X) // Schedule().sentences
    return TorchEncoder(name, schedule=Schedule(steps=steps))


def measure(job: Row) -> Row:
    """Return the score of a system on test data with chosen settings, and its times."""
    task = TASKS[job["task"]]
    system, data = task.systems[job["row"]], task.load()
    settings = job["settings"]
    encoder, encode_s = encoder_of(system, settings, data.train), 0.0
    fixed = {name: value for name, value in settings.items() if name != "encoder"}
    if encoder is not None and not system.tuned:
        # Timed without the disk; from then on vectors are there.
        plain = encoder_of(system, settings, data.train, cache=False)
        plain.encode(data.test.words[:50])
        began = time.perf_counter()
        plain.encode(data.train.words)
        encode_s = time.perf_counter() - began
        encoder.encode([*data.train.words, *data.test.words])
    model = system.make(fixed, encoder=encoder, seed=job["seed"])
    model.fit(data.train.X[:20], data.train.y[:20])  # compiles
    if system.tuned:
        encoder = encoder_of(system, settings, data.train)
        model = system.make(fixed, encoder=encoder, seed=job["seed"])
    began = time.perf_counter()
    model.fit(data.train.X, data.train.y)
    train_s = time.perf_counter() - began
    score = 100 * model.score(data.test.X, data.test.y)
    return {
        "features": "default",
        "encoder": system.encoder,
        "layer": (getattr(encoder, "name", "") or "").rpartition(":")[2],
        "scale": settings.get("vector_scale"),
        "tuned": system.tuned,
        "score": score,
        "train_s": train_s,
        "encode_s": encode_s,
        "test_s": test_seconds(model, system, settings, data),
        "words": data.train.n_words,
        "test_words": data.test.n_words,
    }


def test_seconds(model: Any, system: System, settings: Settings, data: Data) -> float:
    """Return the seconds from test sentences to outputs, encoding them anew."""
    if system.encoder and not system.tuned:
        model.task_.dense.encoder = encoder_of(system, settings, data.train, cache=False)
    began = time.perf_counter()
    model.predict(data.test.X)
    return time.perf_counter() - began


def softmax(job: Row) -> Row:
    """Return the score of a plain softmax over the same standardised vectors, word by word."""
    task = TASKS[job["task"]]
    data = task.load()
    encoder = encoder_of(task.systems[FROZEN], {}, data.train)
    labels = sorted({label for y in data.train.y for label in y})
    began = time.perf_counter()
    train = np.concatenate(encoder.encode(data.train.words))
    mean, deviation = train.mean(0), train.std(0) + 1e-6
    train = (train - mean) / deviation
    gold = np.array([labels.index(label) for y in data.train.y for label in y])
    random_, weights = (
        np.random.default_rng(job["seed"]),
        np.zeros((train.shape[1] + 1, len(labels))),
    )
    total, count = np.zeros_like(weights), 0
    for epoch in range(5):
        order = random_.permutation(len(train))
        for first in range(0, len(order), 64):
            part = order[first : first + 64]
            x = np.concatenate([train[part], np.ones((len(part), 1), np.float32)], axis=1)
            scores = x @ weights
            p = np.exp(scores - scores.max(axis=1, keepdims=True))
            p /= p.sum(axis=1, keepdims=True)
            p[np.arange(len(part)), gold[part]] -= 1
            weights -= 0.05 / (1 + epoch) * (x.T @ p) / len(part)
            total, count = total + weights, count + 1
    train_s = time.perf_counter() - began
    weights = total / count
    plain = encoder_of(task.systems[FROZEN], {}, data.train, cache=False)
    began = time.perf_counter()
    predicted = []
    for vectors in plain.encode(data.test.words):
        x = (vectors - mean) / deviation
        best = (x @ weights[:-1] + weights[-1]).argmax(axis=1)
        predicted.append([labels[i] for i in best.tolist()])
    test_s = time.perf_counter() - began
    return scored(data, Part(data.test.X, predicted), train_s, test_s) | {"encoder": ENCODER}


def scored(data: Data, predicted: Part, train_s: float, test_s: float) -> Row:
    """Return the row of a system that is no model of laso."""
    from laso.metrics.evaluation import main_score

    return {
        "tuned": False,
        "score": 100 * main_score(data.test.y, predicted.y),
        "train_s": train_s,
        "test_s": test_s,
        "words": data.train.n_words,
        "test_words": data.test.n_words,
    }
