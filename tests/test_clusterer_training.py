"""Clusterer: learning with every setting, going on, streams, files, and scikit-learn."""

from __future__ import annotations

import pickle

import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score

from laso import Clusterer, average_models, load_model
from laso.estimators import Checkpoint
from laso.estimators.learning import streaming
from tests.interruption import StopAfter
from tests.people import GOLD, TEST, X, Y, weights


@pytest.fixture(scope="module")
def model() -> Clusterer:
    return Clusterer(epochs=4, seed=1).fit(X, Y)


def test_later_documents_are_learned():
    later = Clusterer(seed=1)
    for _ in range(3):
        later.partial_fit(X[:6], Y[:6])
    before = later.score(TEST, GOLD)
    later.partial_fit([[{"name": "New One", "year": 7}] * 2], [[0, 0]])
    assert abs(later.score(TEST, GOLD) - before) < 0.2
    assert later.predict([[{"name": "New One", "year": 7}] * 2]) == [[0, 0]]


@pytest.mark.parametrize(
    "how",
    [
        {"hash_bits": 12},
        {"shards": 2, "n_jobs": 2},
        {"held_out": 0.3, "patience": 2},
        {"epochs": 2},
        {"queue": 1},
        {"queue": 20, "window": 4},
        {"class_weight": "balanced"},
        {"average": False},
    ],
    ids=str,
)
def test_settings(how, tmp_path):
    made = Clusterer(**{"epochs": 3, **how}).fit(X, Y)
    assert made.score(TEST, GOLD) > 0.6
    made.save(tmp_path / "model", training=True)
    assert load_model(tmp_path / "model").predict(TEST) == made.predict(TEST)


def test_weights_of_joining_and_of_beginning():
    def clusters(weight: dict[str, float]) -> int:
        made = Clusterer(epochs=1, class_weight=weight, window=2).fit(X, Y)
        return sum(len({*ids}) for ids in made.predict(TEST))

    assert clusters({"join": 20.0}) < clusters({"new": 20.0})


def test_a_bias_against_joining(model):
    counts = [
        sum(len({*ids}) for ids in model.biased({"new": bias}).predict(TEST))
        for bias in (-1e4, 0.0, 1e4)
    ]
    assert counts == sorted(counts)
    assert counts[0] == len(TEST)
    assert counts[-1] == sum(map(len, TEST))


def test_training_goes_on_as_if_it_had_not_ended(tmp_path):
    assert Clusterer(epochs=5).fit(X, Y, progress=StopAfter(2)).interrupted_
    Clusterer(epochs=1, seed=2).fit(X, Y).save(tmp_path / "model", training=True)
    resumed = load_model(tmp_path / "model").resume(X, Y, epochs=3)
    assert weights(resumed) == weights(Clusterer(epochs=3, seed=2).fit(X, Y))


def test_files_of_every_form(model, tmp_path):
    small = model.freeze(TEST)
    small.save(tmp_path / "small")
    assert load_model(tmp_path / "small").predict(TEST) == model.predict(TEST)
    assert small.size_.weights < model.size_.weights
    model.save(tmp_path / "plain", compress=False)
    for mapped in (False, True):
        assert load_model(tmp_path / "plain", mmap=mapped).predict(TEST) == model.predict(TEST)
    mean = average_models([model, Clusterer(epochs=4, seed=2).fit(X, Y)])
    assert mean.score(TEST, GOLD) > 0.8


def test_streams_and_checkpoints_learn_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 5)  # parts are joined
    memory = Clusterer(epochs=2, seed=1).fit(X, Y)
    pairs = list(zip(X, Y, strict=True))
    streamed = Clusterer(epochs=2, seed=1)
    streamed.fit_stream(lambda: iter(pairs), store=tmp_path / "store")
    assert weights(streamed) == weights(memory)
    saved = Checkpoint(tmp_path / "checkpoint", seconds=0)
    Clusterer(epochs=1, seed=1).fit(X, Y, checkpoint=saved)
    resumed = load_model(tmp_path / "checkpoint").resume(X, Y, epochs=2)
    assert weights(resumed) == weights(memory)


def test_scikit_learn(model):
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert again is not model
    assert weights(again.fit(X, Y)) == weights(model)
    assert pickle.loads(pickle.dumps(model)).predict(TEST) == model.predict(TEST)
    scores = cross_val_score(Clusterer(epochs=2), X, Y, cv=2)
    assert scores.min() > 0.5
    assert "window=7" in repr(Clusterer(window=7))
