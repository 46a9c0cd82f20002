"""Forced decoding, the precision/recall dial, partial annotation, and labels that come later."""

import itertools

import numpy as np
import pytest

from laso import BadData, Chunker, SearchFailed, Tagger, beam, exact, max_violation
from laso.data import load_bundled
from laso.engine.layout import TICKS
from laso.engine.weights.compact import keys_and_rows
from laso.estimators.capabilities.precision_recall import curve, plot
from laso.estimators.learning.fitting import resumable
from tests.test_confidence import LITTLE, SHORT, all_outputs, few_labels

TRAIN, TEST = load_bundled()


@pytest.mark.parametrize("queue", [exact(), beam(1000)], ids=["exact", "beam"])
def test_forced_answers_are_the_best_that_fit(queue):
    model = Tagger(features=LITTLE, queue=queue, epochs=2).fit(few_labels(TRAIN[:60]))
    labels = list(model.classes_)
    for sentence in SHORT[:2]:
        outputs = all_outputs(model, sentence)
        assert model.predict_forced([sentence]) == model.predict([sentence])
        for place, label in itertools.product(range(3), labels):
            known = [label if i == place else None for i in range(3)]
            (found,) = model.predict_forced([sentence], known=[known])
            best = next(p for _, p in outputs if p[place][1] == labels.index(label))
            assert found == [labels[n] for _, n in best]
            assert model.predict_forced([sentence], known=[[(label, place, place + 1)]]) == [found]
            banned = [[label] if i == place else [] for i in range(3)]
            (found,) = model.predict_forced([sentence], banned=[banned])
            best = next(p for _, p in outputs if p[place][1] != labels.index(label))
            assert found == [labels[n] for _, n in best]
        (found,) = model.predict_forced([sentence], banned=[["N"]])
        assert "N" not in found


def test_forced_chunks():
    model = Chunker(epochs=2, features="paper").fit(TRAIN[:60])
    sentence = [token[:2] for token in TEST[0]]
    assert model.predict_forced([sentence]) == model.predict([sentence])
    (found,) = model.predict_forced([sentence], known=[[("VP", 2, 5)]])
    assert found[2:5] == ["B-VP", "I-VP", "I-VP"]
    assert found[5][0] != "I" or found[5] != "I-VP"
    (found,) = model.predict_forced([sentence], banned=[["NP"]])
    assert not any(tag.endswith("-NP") for tag in found)
    most = model.task_.state_["longest"]["VP"]
    with pytest.raises(BadData, match=f"'VP' from 0 to {most + 1} .* at most {most} long"):
        model.predict_forced([sentence], known=[[("VP", 0, most + 1)]])


def test_forced_answers_keep_constraints_or_are_none():
    model = Tagger(epochs=1, constraints="BIO").fit(TRAIN[:60])
    sentence = [token[:2] for token in TEST[0]]
    known: list[str | None] = [None] * len(sentence)
    known[3] = "I-NP"
    (found,) = model.predict_forced([sentence], known=[known])
    assert found[2] in ("B-NP", "I-NP")
    known[0] = "I-NP"
    with pytest.raises(SearchFailed, match="fits what is known"):
        model.predict_forced([sentence], known=[known])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"known": [["B-NP"]]}, "1 known labels for 2 tokens"),
        ({"known": [["what", None]]}, "found 'what' as known, which training has not seen"),
        ({"known": [[("B-NP", 1, 3)]]}, "from 1 to 3, expected a span of 2 tokens"),
        ({"known": [[("B-NP", 0, 2)]]}, "from 0 to 2 as known, expected at most 1 long"),
        ({"banned": [[["O"]]]}, "banned labels for 1 tokens, expected 2"),
    ],
)
def test_what_cannot_be_forced_is_told(given, message):
    model = Tagger(epochs=1).fit(TRAIN[:20])
    with pytest.raises(BadData, match=message):
        model.predict_forced([[("a", "DT"), ("b", "NN")]], **given)


# the dial


@pytest.mark.parametrize("model", [Tagger(epochs=2), Chunker(epochs=2, features="paper")])
def test_a_bias_trades_precision_for_recall(model, tmp_path):
    model.fit(TRAIN[:100])
    wanted = [[tag for *_, tag in s] for s in TEST]
    assert model.biased({"O": 0.0}).predict(TEST) == model.predict(TEST)
    outside = [
        sum(tag == "O" for tags in model.biased({"O": bias}).predict(TEST) for tag in tags)
        for bias in (-50.0, -5.0, 0.0, 5.0, 50.0)
    ]
    assert outside == sorted(outside)
    assert outside[0] < outside[-1]
    points = curve(model, TEST, wanted, biases=(-50.0, 0.0, 50.0))
    assert points[0].recall >= points[-1].recall
    assert points[0].precision <= points[-1].precision
    with pytest.raises(ValueError, match="found a bias for 'what'"):
        model.biased({"what": 1.0})
    pytest.importorskip("matplotlib")
    plot(points, tmp_path / "curve.png")
    assert (tmp_path / "curve.png").exists()


def test_without_a_feature_that_is_always_there_is_no_bias():
    model = Tagger(features=["w[0]"], epochs=1).fit(TRAIN[:20])
    with pytest.raises(ValueError, match="expected 'bias'"):
        model.biased({"O": 1.0})
    always = Tagger(features=["w[0]", "bias"], epochs=1, hash_bits=8).fit(TRAIN[:20])
    all_outside = always.biased({"O": 1e6}).predict(TEST[:3])
    assert {tag for tags in all_outside for tag in tags} == {"O"}


# partial annotation, and labels that come later


def test_learning_from_some_labels():
    X = [[token[:2] for token in s] for s in TRAIN[:200]]
    draw = np.random.default_rng(0)
    y = [[token[2] if draw.random() < 0.5 else None for token in s] for s in TRAIN[:200]]
    model = Tagger(strategy=max_violation, epochs=4).fit(X, y)
    assert model.score(TEST) > 0.75


@pytest.mark.parametrize("make", [Tagger, lambda: Chunker(features="paper")])
def test_new_labels_words_and_lengths_are_learned_later(make):
    kinds = ("NP", "O")
    first = [s for s in TRAIN if {t.partition("-")[2] or t for *_, t in s} <= set(kinds)][:20]
    first += [[(w, p, t) for w, p, t in s if t[-2:] == "NP" or t == "O"] for s in TRAIN[:60]]
    first = [s for s in first if s]
    model = make().partial_fit(first)
    known = list(model.task_.encoder_.labels)
    keys, rows = keys_and_rows(model.weights_)
    before = dict(zip(keys.tolist(), model.weights_.v[rows].tolist(), strict=True))
    for _ in range(4):
        model.partial_fit(TRAIN[:150])
    labels = list(model.task_.encoder_.labels)
    assert labels[: len(known)] == known
    assert len(labels) > len(known)
    assert list(model.classes_) == labels
    assert model.score(TEST) > 0.6
    assert before
    found = {tag for tags in model.predict(TEST) for tag in tags}
    assert any(tag.endswith("VP") for tag in found)


@pytest.mark.parametrize("saved", [False, True])
def test_corrections_after_fit_are_learned_in_a_handful_of_calls(saved, tmp_path):
    model = Tagger(epochs=10).fit(TRAIN)
    before = model.score(TEST)
    for word in ("Zorgon", "Quix", "Blarg"):
        sentence = [(word, "NNP"), ("sleeps", "VBZ")]
        for calls in range(13):
            assert calls < 12
            if saved:
                model.save(tmp_path / "model.laso", training=True)
                model = Tagger.load(tmp_path / "model.laso")
            [(first, second)] = model.predict([sentence])
            if first == "B-ALIEN":
                break
            model.partial_fit([sentence], [["B-ALIEN", second]])
    assert model.score(TEST) > before - 0.005


def test_a_stream_of_examples_averages_over_all_of_them():
    whole, parts = Tagger(epochs=1, dropout=0, seed=None), Tagger(dropout=0, seed=None)
    whole.partial_fit(TRAIN[:40])
    for sentence in TRAIN[:40]:
        parts.partial_fit([sentence])
    ticks = [resumable(model).table.ints[TICKS] for model in (parts, whole)]
    assert ticks == [40, 40]


def test_new_labels_leave_old_weights_alone():
    model = Tagger(features=["w[0]"], queue=1, average=False)
    model.partial_fit([[("a", "X"), ("b", "Y")]] * 3)
    old = model.predict([["a", "b"]])
    model.partial_fit([[("c", "Z")]])
    assert model.predict([["a", "b"]]) == old == [["X", "Y"]]
    for _ in range(3):
        model.partial_fit([[("c", "Z")]])
    assert model.predict([["c"]]) == [["Z"]]
