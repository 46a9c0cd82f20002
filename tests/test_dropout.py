"""Dropout: which features are left out, where it is possible, and training that is resumed."""

import numpy as np
import pytest

from laso import CRF, Tagger, exact, load_model
from laso.data import load_bundled
from laso.engine.dataset import make_dataset
from laso.estimators.dropout import with_fewer_features
from laso.estimators.tagger import DROPOUT

TRAIN, TEST = load_bundled()
Y = [[token[2] for token in sentence] for sentence in TRAIN[:40]]


def lists(sentences):
    return [[[f"w={word}", f"pos={pos}"] for word, pos, *_ in sentence] for sentence in sentences]


X = lists(TRAIN[:40])


def ranges(counts):
    ends = np.cumsum(counts)
    return np.stack([ends - counts, ends], axis=1)


def example():
    """Three inputs of two items with some features each; the pool numbers the features."""
    items = ranges(np.array([3, 0, 2, 5, 1, 4]))
    outputs = [[0, 1], [2, 3], [4, 5]]
    values = np.arange(15) / 2
    return make_dataset(np.split(items, 3), outputs, pool=np.arange(15), values=values)


def features(dataset, i):
    rows = dataset.items[dataset.starts[i] : dataset.starts[i + 1]]
    return [dataset.pool[a:b].tolist() for a, b in rows]


def test_nothing_is_left_out_at_a_rate_of_0():
    chosen = with_fewer_features(example(), np.array([2, 0]), 0.0, 1)
    assert features(chosen, 0) == [[10], [11, 12, 13, 14]]
    assert features(chosen, 1) == [[0, 1, 2], []]
    assert (chosen.values * 2).tolist() == chosen.pool.tolist()
    assert chosen.outputs.tolist() == [4, 5, 0, 1]


def test_what_is_left_keeps_its_token_its_order_and_its_value():
    whole = example()
    for seed in range(20):
        some = with_fewer_features(whole, np.array([1, 2, 0]), 0.5, seed)
        for i, j in enumerate((1, 2, 0)):
            for fewer, all_of_them in zip(features(some, i), features(whole, j), strict=True):
                assert fewer == [feature for feature in all_of_them if feature in fewer]
        assert (some.values * 2).tolist() == some.pool.tolist()


def test_the_share_is_the_rate_and_draws_are_independent():
    n = 20_000
    whole = make_dataset([ranges(np.full(n // 10, 10))], [[0] * (n // 10)], pool=np.arange(n))
    kept = []
    for seed in (1, 2):
        some = with_fewer_features(whole, np.array([0]), 0.2, seed)
        kept.append(np.isin(np.arange(n), some.pool))
    assert [k.mean() for k in kept] == pytest.approx([0.8, 0.8], abs=0.01)
    assert (kept[0] & kept[1]).mean() == pytest.approx(0.64, abs=0.015)
    assert (kept[0][1:] & kept[0][:-1]).mean() == pytest.approx(0.64, abs=0.015)


def test_which_features_are_left_out_depends_on_their_place_alone():
    whole = example()
    together = with_fewer_features(whole, np.array([0, 1, 2]), 0.5, 3)
    for i in range(3):
        alone = with_fewer_features(whole, np.array([i]), 0.5, 3)
        assert features(alone, 0) == features(together, i)


def test_the_default_applies_to_feature_lists_learned_in_turn():
    def rate(X=X, **parameters):
        model = Tagger(epochs=1, **parameters).fit(X[:5], Y[:5])
        return model.dropout_rate()

    assert rate() == rate(X=[[dict.fromkeys(t, 1.0) for t in x] for x in X]) == DROPOUT
    assert rate(dropout=0.5) == 0.5
    assert rate(dropout=0) == rate(queue=exact()) == rate(shards=2) == 0
    assert rate(X=[[token[0] for token in sentence] for sentence in TRAIN]) == 0
    assert CRF("ap", max_iterations=1).fit(X, Y).dropout_rate() == 0


def test_it_changes_the_weights_and_hides_no_feature_from_the_model():
    models = [Tagger(epochs=3, dropout=rate).fit(X, Y) for rate in (0.0, None, DROPOUT)]
    weights = [model.weights_.v for model in models]
    assert not np.array_equal(weights[0], weights[1])
    assert np.array_equal(weights[1], weights[2])
    assert all(model.score(X, Y) > 0.8 for model in models)


@pytest.mark.parametrize("dropout", [-0.1, 1.0, "half"])
def test_rates_that_make_no_sense(dropout):
    with pytest.raises(ValueError, match="dropout"):
        Tagger(dropout=dropout).fit(X, Y)


@pytest.mark.parametrize("parameters", [{"queue": exact()}, {"shards": 2}])
def test_where_it_is_impossible_it_is_refused(parameters):
    with pytest.raises(ValueError, match="dropout needs a queue other than exact"):
        Tagger(dropout=0.1, **parameters).fit(X, Y)
    with pytest.raises(ValueError, match="found columns"):
        Tagger(dropout=0.1).fit([["a", "b"]], [["A", "B"]])


def test_a_training_goes_on_as_if_it_had_not_stopped(tmp_path):
    whole = Tagger(epochs=4).fit(X, Y)
    Tagger(epochs=2).fit(X, Y).save(tmp_path / "model", training=True)
    again = load_model(tmp_path / "model").resume(X, Y, epochs=4)
    assert again.predict(lists(TEST[:5])) == whole.predict(lists(TEST[:5]))
    assert np.array_equal(again.weights_.v, whole.weights_.v)
