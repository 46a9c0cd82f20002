"""Class weights: what it costs to miss a label, of every estimator."""

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from laso import (
    Chunker,
    JointTagger,
    Tagger,
    adagrad,
    early,
    exact,
    load_model,
    perceptron,
    predict,
    worst,
)
from laso.data import load_bundled
from laso.engine.costs import with_costs
from laso.engine.machine import all_of, as_names
from laso.engine.reference import Reference, input_of, output_of
from laso.estimators.learning import streaming
from laso.estimators.learning.class_weights import for_rare_chunks

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:60]
WORDS = [[token[:2] for token in s] for s in TEST]
JOINT: dict[str, Any] = {
    "layers": ("pos", "chunk"),
    "features": ["w[-1..1]", "label[-1]", "pos[0]|chunk[0]"],
    "queue": 3,
}
MODELS: dict[str, Any] = {
    "tagger": (Tagger, {"features": ["w[-1..1]", "pos[0]", "label[-1]"]}, "O"),
    "chunker": (Chunker, {"features": "paper"}, "O"),
    "joint": (JointTagger, JOINT, "chunk=O"),
}


def made(name, **given):
    cls, parameters, _ = MODELS[name]
    return cls(**{"epochs": 2, "threads": 1, **parameters, **given})


def weights(model):
    return as_names(model.weights_)


@pytest.mark.parametrize("name", MODELS)
def test_weights_of_one_change_nothing(name):
    label = MODELS[name][2]
    assert weights(made(name).fit(SMALL)) == weights(made(name, class_weight={label: 1}).fit(SMALL))


@pytest.mark.parametrize("name", MODELS)
def test_a_label_that_costs_more_is_missed_less(name):
    label = MODELS[name][2]

    def found(weight):
        model = made(name, class_weight={label: weight}, epochs=3).fit(TRAIN)
        tags = [tag for tags in model.predict(TEST) for tag in tags]
        return sum(tag == "O" or tag[-1] == "O" for tag in tags)

    low, high = found(0.05), found(20)
    assert low < high


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("strategy", [None, early])
def test_both_engines_learn_alike(name, strategy):
    """The compiled engine inside an estimator against Figure 2 in plain Python."""
    label = MODELS[name][2]
    given = {} if strategy is None else {"strategy": strategy}
    rule = perceptron(weighting=worst, margin=1.0)
    few = [s[:5] for s in SMALL[:9]]
    model = made(
        name,
        class_weight={label: 2.5},
        update=rule,
        dtype="float64",
        seed=None,
        epochs=1,
        average=False,
        dropout=0.0,
        **given,
    )
    model.fit(few)
    data, answers = model.task_.read(few, None)
    corpus = model.task_.encode(data, answers)
    corpus = with_costs(corpus, model.task_.encoder_.labels, {label: 2.5})
    problem = Reference(model.task_.problem, len(model.task_.encoder_.labels))
    queue = model.search_queue(model.task_)
    rule = perceptron(weighting=worst, margin=1.0, by_loss=True)
    w: Any = rule.start()
    for i in all_of(corpus):
        w = model.strategy(problem, input_of(corpus, i), output_of(corpus, i), w, queue, rule)
    theirs = {name: value for name, value in w.weights.items() if value}
    mine = weights(model)
    assert mine.keys() == theirs.keys()
    assert all(value == pytest.approx(theirs[name], abs=1e-9) for name, value in mine.items())
    assert any(value % 1 for value in mine.values())
    assert predict(problem, input_of(corpus, 0), w, queue)


@pytest.mark.parametrize("name", MODELS)
def test_balanced_is_what_scikit_learn_has(name, tmp_path, monkeypatch):
    from sklearn.utils.class_weight import compute_class_weight

    model = made(name, class_weight="balanced").fit(SMALL)
    _, answers = model.task_.read(SMALL, None)
    if name == "chunker":
        spans = answers.spans
        layers = {"": [spans.names[i] for i in spans.types]}
    elif name == "tagger":
        layers = {"": [token[-1] for s in SMALL for token in s]}
    else:
        layers = {
            "pos=": [token[1] for s in SMALL for token in s],
            "chunk=": [token[2] for s in SMALL for token in s],
        }
    expected = {}
    for layer, labels in layers.items():
        classes = np.array(sorted(set(labels)))
        for label, weight in zip(
            classes, compute_class_weight("balanced", classes=classes, y=labels), strict=True
        ):
            expected[layer + str(label)] = weight
    assert model.class_weight_ == pytest.approx(expected)
    # The same of a stream, and of a file.
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 7)
    streamed = made(name, class_weight="balanced").fit_stream(lambda: SMALL, store=tmp_path / "s")
    assert streamed.class_weight_ == pytest.approx(expected)
    assert weights(streamed) == weights(model)
    model.save(tmp_path / "m", training=True)
    loaded = load_model(tmp_path / "m")
    assert loaded.class_weight_ == model.class_weight_
    assert loaded.get_params()["class_weight"] == "balanced"
    loaded.resume(SMALL, epochs=3)
    assert weights(loaded) == weights(made(name, class_weight="balanced", epochs=3).fit(SMALL))


@pytest.mark.parametrize("update", [None, adagrad()], ids=["laso", "likelihood"])
def test_exact_search_knows_weights(update):
    def found(weight):
        model = made("tagger", queue=exact(), update=update, class_weight={"O": weight})
        model.fit(SMALL)
        return Counter(tag for tags in model.predict(TEST) for tag in tags)["O"]

    assert found(0.05) < found(20)


def test_what_cannot_be_a_weight(tmp_path):
    wrong: Any
    for wrong in ("heavy", {"O": 0}, {"O": float("inf")}, {None: 2.0}, {"O": True}, 3):
        with pytest.raises(ValueError, match="class_weight must be None, 'balanced'"):
            Tagger(class_weight=wrong).fit(SMALL)
    with pytest.raises(ValueError, match="found a class weight for 1, expected one of"):
        Tagger(class_weight={1: 2.0}).fit(SMALL)
    with pytest.raises(ValueError, match="found a class weight for 'B-XY', expected one of"):
        Tagger(class_weight={"B-XY": 2.0}).fit(SMALL)
    with pytest.raises(ValueError, match="needs all data at once"):
        Tagger(class_weight="balanced").partial_fit(SMALL)


def test_later_labels_have_the_weights_given():
    model = Tagger(features=["w[0]", "label[-1]"], class_weight={"LOC": 3.0})
    model.partial_fit([[("Anna", "PER"), ("sleeps", "O")]], classes=["LOC"])
    for _ in range(3):
        model.partial_fit([[("Rome", "LOC"), ("sleeps", "O")]])
    assert model.predict([["Rome", "sleeps"]]) == [["LOC", "O"]]
    assert len(model.task_.encode(model.task_.read_inputs([["Rome"]])).costs) == 0


RARE = [*[[("Rome", "B-LOC"), *[("sleeps", "O")] * 12]] * 3, [("Rome", "B-LOC"), ("sleeps", "O")]]


def test_outside_costs_less_where_chunks_are_rare(tmp_path):
    """By default, in ``Tagger``; then the model is the one of the weights that are given."""
    found = Tagger(epochs=2).fit(RARE)
    assert found.class_weight_ == {"O": 0.49}
    assert weights(found) == weights(Tagger(epochs=2, class_weight={"O": 0.49}).fit(RARE))
    found.save(tmp_path / "model", training=True)
    assert load_model(tmp_path / "model").resume(RARE, epochs=3).class_weight_ == {"O": 0.49}
    streamed = Tagger(epochs=2).fit_stream(lambda: RARE, store=tmp_path)
    assert weights(streamed) == weights(found)


def test_the_weight_of_outside_falls_smoothly_with_the_share_in_chunks():
    def weight(inside):
        found = for_rare_chunks([{"O": 1000 - inside, "B-x": inside}])
        return 1.0 if found is None else found["O"]

    found = [weight(inside) for inside in range(1000)]
    assert found[1] == found[50] == 0.3
    assert found[100] == 0.5
    assert found[200] == found[999] == 1.0
    assert all(0 <= b - a <= 0.011 for a, b in pairwise(found[1:]))


@pytest.mark.parametrize(
    ("given", "examples"),
    [
        ({"class_weight": {}}, RARE),
        ({"update": perceptron(weighting=worst, margin=5.0)}, RARE),
        ({"queue": exact()}, RARE),
        ({}, [s[:3] for s in RARE]),  # chunks are not rare
        ({}, [[(w, tag.replace("B-", "")) for w, tag in s] for s in RARE]),  # no chunks
        ({}, [[(w, "O") for w, _ in s] for s in RARE]),
    ],
)
def test_labels_without_weights(given, examples):
    """Whatever a parameter says counts; other labels have no weights."""
    assert Tagger(epochs=1, **given).fit(examples).class_weight_ is None
