"""Tagger, epoch after epoch: held-out scores, interruptions, going on."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from laso import (
    Tagger,
    alma,
    perceptron,
)
from laso.data import load_bundled
from laso.engine.machine import as_names
from laso.errors import BadData
from laso.features import CHUNKING
from laso.training import Progress
from tests.interruption import StopAfter

TRAIN, TEST = load_bundled()
FEW = TRAIN[:60]


def weights(tagger):
    return as_names(tagger.weights_)


def last_best(scores):
    """The last epoch of the best score."""
    return max(i for i, score in enumerate(scores, start=1) if score == max(scores))


# Held-out scores, interruption, going on


def test_held_out_scores_and_the_best_epoch():
    reports: list[Progress] = []
    tagger = Tagger(features=CHUNKING, queue=2, epochs=6, held_out=0.25)
    tagger.fit(TRAIN, progress=reports.append)
    assert len(tagger.scores_) == tagger.n_iter_ == 6
    assert tagger.best_epoch_ == last_best(tagger.scores_)
    assert [r.score for r in reports if r.score is not None] == tagger.scores_
    assert reports[0].examples == len(TRAIN) - round(len(TRAIN) / 4)
    again = clone(tagger).set_params(epochs=tagger.best_epoch_).fit(TRAIN)
    assert weights(again) == weights(tagger)


def test_early_stop():
    tagger = Tagger(features=["w[0]"], queue=1, epochs=50, held_out=0.3, patience=2).fit(FEW)
    first_best = 1 + int(np.argmax(tagger.scores_))
    assert tagger.n_iter_ == first_best + 2 < 50
    assert tagger.resume(FEW, epochs=50).n_iter_ == first_best + 2


def test_of_equal_held_out_scores_the_last_is_kept():
    tagger = Tagger(features=["w[0]"], queue=1, epochs=50, held_out=0.3, patience=2).fit(FEW)
    assert len(set(tagger.scores_)) < len(tagger.scores_)
    assert tagger.best_epoch_ == last_best(tagger.scores_) > 1 + int(np.argmax(tagger.scores_))


def test_a_development_set_of_ones_own_may_have_labels_never_seen():
    tagger = Tagger(features=CHUNKING, queue=2, epochs=2)
    strange: list[Any] = [[("the", "DT", "B-NEW")], *TEST]
    tagger.fit(TRAIN, dev=strange)
    assert tagger.scores_[tagger.best_epoch_ - 1] == tagger.score(strange)
    X, y = ([[t[:2] for t in s] for s in strange], [[t[2] for t in s] for s in strange])
    assert clone(tagger).fit(TRAIN, dev=(X, y)).scores_ == tagger.scores_


@pytest.mark.parametrize("average", [True, False])
def test_held_out_scores_are_those_of_the_weights_kept(average):
    tagger = Tagger(features=CHUNKING, queue=1, epochs=3, average=average)
    tagger.fit(FEW, dev=TEST)
    assert max(tagger.scores_) == tagger.score(TEST)


def test_without_averaging_the_last_weights_count():
    tagger = Tagger(features=["w[0]"], queue=1, epochs=2, average=False).fit(FEW)
    assert tagger.training_ is not None
    last = as_names(tagger.training_.table)
    assert weights(tagger) == last
    assert weights(clone(tagger).set_params(average=True).fit(FEW)) != last


@pytest.mark.parametrize("reports", [1, 3, 4])
def test_an_interruption_keeps_what_was_learned(reports):
    tagger = Tagger(features=CHUNKING, queue=2, epochs=9)
    tagger.fit(TRAIN, progress=StopAfter(reports))
    assert tagger.interrupted_
    assert tagger.n_iter_ < 4
    assert tagger.score(TEST) > 0.3
    tagger.resume(TRAIN, epochs=5)
    assert not tagger.interrupted_
    assert tagger.n_iter_ == 5


@pytest.mark.parametrize("reports", [1, 2, 3, 4, 5])
def test_an_interruption_with_a_held_out_score_keeps_the_best_until_then(reports):
    """Of three reports an epoch the last comes with the score, and may be interrupted too."""
    tagger = Tagger(features=CHUNKING, queue=1, epochs=9)
    tagger.fit(FEW, dev=TEST, progress=StopAfter(reports))
    assert tagger.interrupted_
    expected = max(tagger.scores_) if tagger.scores_ else None
    assert expected in (None, tagger.score(TEST))
    assert tagger.score(TEST) > 0.2


def test_an_interruption_before_the_first_score_keeps_the_last_weights_if_asked():
    tagger = Tagger(features=CHUNKING, queue=1, epochs=9, average=False)
    tagger.fit(TRAIN, dev=TEST, progress=StopAfter(1))
    assert tagger.interrupted_
    assert not tagger.scores_
    assert tagger.training_ is not None
    assert weights(tagger) == as_names(tagger.training_.table)


@pytest.mark.parametrize("held_out", [None, 0.2])
@pytest.mark.parametrize("update", [perceptron(), alma()])
def test_going_on_is_bit_identical(held_out, update):
    tagger = Tagger(features=CHUNKING, queue=2, epochs=5, held_out=held_out, update=update)
    whole = clone(tagger).fit(FEW)
    parts = clone(tagger).set_params(epochs=2).fit(FEW)
    parts.resume(FEW, epochs=3).resume(FEW, epochs=5)
    assert weights(parts) == weights(whole)
    assert parts.scores_ == whole.scores_
    assert parts.training_ is not None
    assert whole.training_ is not None
    assert as_names(parts.training_.table) == as_names(whole.training_.table)
    assert (parts.training_.table.reals == whole.training_.table.reals).all()
    assert (parts.n_iter_, parts.best_epoch_) == (whole.n_iter_, whole.best_epoch_)


def test_resume_wants_the_same_data():
    tagger = Tagger(features=["w[0]"], queue=1, epochs=1).fit(FEW)
    with pytest.raises(ValueError, match="resume needs the data of fit"):
        tagger.resume(FEW[:-1], epochs=2)
    with pytest.raises(NotFittedError):
        Tagger().resume(FEW, epochs=2)


def test_passes_one_by_one():
    """The same data over and over is the same as epochs; new words are learned on the way."""
    tagger = Tagger(features=CHUNKING, queue=2, epochs=3)
    parts = clone(tagger)
    for _ in range(3):
        parts.partial_fit(FEW)
    assert weights(parts) == weights(clone(tagger).fit(FEW))
    classes = sorted({tag for s in TRAIN for *_, tag in s})
    stream = clone(tagger)
    for _ in range(3):
        for i in range(0, len(TRAIN), 100):
            stream.partial_fit(TRAIN[i : i + 100], classes=classes)
    assert stream.score(TEST) > 0.7
    before = stream.predict(TEST)
    with pytest.raises(BadData, match="found the label 'B-NEW', which training has not seen"):
        stream.resume([[("a", "DT", "B-NEW")]], epochs=99)
    assert stream.predict(TEST) == before


def test_learning_ends_when_nothing_is_left_to_learn():
    tagger = Tagger(features=["w[0]"], queue=1, epochs=20).fit([[("a", "X"), ("b", "Y")]])
    assert tagger.converged_
    assert tagger.n_iter_ < 20
    assert tagger.resume([[("a", "X"), ("b", "Y")]], epochs=30).n_iter_ == tagger.n_iter_
