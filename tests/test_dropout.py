"""Dropout: which features are left out, where it is possible, and training that is resumed."""

import numpy as np
import pytest

from laso import CRF, Chunker, JointTagger, Parser, Tagger, beam, exact, load_model, perceptron
from laso.data import load_bundled
from laso.engine.dropout import WithDropout
from laso.engine.hashing import mix
from laso.engine.kernels.weight_table import drop_features
from laso.engine.layout import DROPOUT_SCALE, Out
from laso.engine.machine import Machine
from laso.engine.options import options_for
from laso.estimators.learning.dropout_rates import FEW, MANY, RATE, default_rate
from laso.tasks.tagging.problem import Tagging

TRAIN, TEST = load_bundled()
Y = [[token[2] for token in sentence] for sentence in TRAIN[:40]]
DROPOUT = RATE


def lists(sentences, more=MANY):
    """Return feature lists of tokens, with some more features that say nothing."""
    same = [f"same={i}" for i in range(int(more))]
    return [
        [[f"w={word}", f"pos={pos}", *same] for word, pos, *_ in sentence] for sentence in sentences
    ]


def columns(sentences):
    return [[token[:2] for token in sentence] for sentence in sentences]


X = lists(TRAIN[:40])


def kept(n, rate, seed):
    """Return the places of the features that stay, of n."""
    out = Out(np.arange(n), np.arange(n) / 2)
    left = drop_features(out, n, mix(seed, 1), round(rate * DROPOUT_SCALE))
    assert (out.values[:left] * 2).tolist() == out.keys[:left].tolist()
    return out.keys[:left]


def test_nothing_is_left_out_at_a_rate_of_0():
    assert kept(5, 0.0, 0).tolist() == [0, 1, 2, 3, 4]
    assert kept(0, 0.5, 0).tolist() == []


def test_what_is_left_keeps_its_order():
    assert all((np.diff(kept(30, 0.5, seed)) > 0).all() for seed in range(20))


def test_the_share_is_the_rate_and_draws_are_independent():
    n = 10_000
    stays = [np.isin(np.arange(n), kept(n, 0.2, seed)) for seed in (1, 2)]
    assert [s.mean() for s in stays] == pytest.approx([0.8, 0.8], abs=0.015)
    assert (stays[0] & stays[1]).mean() == pytest.approx(0.64, abs=0.02)
    assert (stays[0][1:] & stays[0][:-1]).mean() == pytest.approx(0.64, abs=0.02)


def test_draws_of_visits_and_blocks_are_independent():
    first = [[0 in kept(1, 0.5, mix(visit, block)) for visit in range(60)] for block in range(60)]
    stays = np.array(first)
    assert stays.mean() == pytest.approx(0.5, abs=0.03)
    for a, b in ((stays[1:], stays[:-1]), (stays[:, 1:], stays[:, :-1])):
        assert (a & b).mean() == pytest.approx(0.25, abs=0.03)


def test_the_default_applies_to_every_queue_but_exact_search():
    def rate(X=X, **parameters):
        model = Tagger(epochs=1, **parameters).fit(X[:5], Y[:5])
        return model.dropout_rate()

    assert rate() == rate(X=[[dict.fromkeys(t, 1.0) for t in x] for x in X]) == DROPOUT
    assert rate(dropout=0.5) == 0.5
    assert rate(dropout=0) == rate(queue=exact()) == 0
    assert rate(X=columns(TRAIN)) == rate(shards=2) == DROPOUT
    assert CRF("ap", max_iterations=1).fit(X, Y).dropout_rate() == 0


def test_the_default_falls_with_the_number_of_features():
    assert default_rate(1.0) == default_rate(FEW) == 0.0
    assert default_rate(MANY) == default_rate(1e9) == RATE
    assert default_rate((FEW + MANY) / 2) == pytest.approx(RATE / 2)
    few = Tagger(epochs=2).fit(lists(TRAIN[:40], more=0), Y)
    assert few.dropout_rate() == 0.0
    # Also where the update has a margin of its own.
    assert Tagger(epochs=1, update=perceptron(margin=1.0)).fit(X, Y).dropout_rate() == RATE


def test_it_changes_the_weights_and_hides_no_feature_from_the_model():
    X = columns(TRAIN[:40])
    models = [Tagger(epochs=3, dropout=rate).fit(X, Y) for rate in (0.0, None, DROPOUT)]
    weights = [model.weights_.v for model in models]
    assert not np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[1], weights[2])
    assert all(model.score(X, Y) > 0.8 for model in models)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, "half"])
def test_rates_that_make_no_sense(dropout):
    with pytest.raises(ValueError, match="dropout"):
        Tagger(dropout=dropout).fit(X, Y)


def test_where_it_is_impossible_it_is_refused():
    with pytest.raises(ValueError, match="dropout needs a problem with blocks and a queue other"):
        Tagger(dropout=0.1, queue=exact()).fit(X, Y)


def test_shards_leave_out_features_of_their_own():
    models = [Tagger(epochs=3, shards=2, dropout=r).fit(X, Y) for r in (0.0, 0.2, 0.2)]
    weights = [model.weights_.v for model in models]
    assert not np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[1], weights[2])
    learner = WithDropout(Machine(Tagging, options_for(Tagging, beam(2), perceptron())), 0.2, 7)
    rounds = [(0, [3, 1]), (0, [2, 0]), (4, [3, 1]), (4, [0, 2])]
    assert len({learner.for_round(n, np.array(order)).seed for n, order in rounds}) == 4


def test_problems_without_blocks_have_none():
    with pytest.raises(ValueError, match="found ArcEager without blocks"):
        Parser(dropout=0.1).validate()


@pytest.mark.parametrize("make", [Tagger, Chunker])
def test_columns(make):
    models = [make(epochs=3, dropout=r).fit(columns(TRAIN[:40]), Y) for r in (0.0, 1e-9, 0.3)]
    weights = [model.weights_.v for model in models]
    assert np.array_equal(weights[0], weights[1])  # next to nothing is left out
    assert not np.array_equal(weights[0], weights[2])
    assert models[2].score(columns(TRAIN[:40]), Y) > 0.8


def test_estimators_other_than_tagger_leave_out_nothing_by_default():
    for model in (Chunker(), JointTagger(layers=["pos", "chunk"])):
        assert model.dropout_rate() == 0.0


def test_a_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = Tagger(epochs=4).fit(X, Y)
    Tagger(epochs=2).fit(X, Y).save(tmp_path / "model", training=True)
    again = load_model(tmp_path / "model").resume(X, Y, epochs=4)
    assert again.predict(lists(TEST[:5])) == whole.predict(lists(TEST[:5]))
    assert np.array_equal(again.weights_.v, whole.weights_.v)
