"""Names of features, what models weigh, and why they decide as they do."""

import json
from typing import Any

import numpy as np
import pytest

from laso import Chunker, JointTagger, Tagger, beam, exact
from laso.data import load_bundled, write_columns
from laso.engine.key_origins import recorded
from laso.engine.machine import all_of
from laso.engine.reference import Reference, input_of
from laso.engine.weights.compact import keys_and_rows
from laso.estimators.capabilities.explain import explained
from laso.estimators.capabilities.inspection import inspected
from laso.estimators.capabilities.render import as_html, as_text
from laso.estimators.capabilities.scored_reference import Walk
from laso.features.inputs import read_input
from laso.tasks.feature_names import Namer

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:60]
WORDS = [[token[:2] for token in sentence] for sentence in TEST[:8]]


def dicts(sentences, value=1.0):
    return [[{"w": w, "pos": p, "n": value * len(w)} for w, p, *_ in s] for s in sentences]


TAGS = [[tag for *_, tag in s] for s in SMALL]
FEW = ["w[0]", "label[-1]"]
JOINT: dict[str, Any] = {
    "layers": ("pos", "chunk"),
    "features": ["w[-1..1]", "bias", "label[-1]", "chunk[0]|w[1]|pos[0]", "pos[0]|chunk[-1]|w[0]"],
    "queue": 3,
}
MODELS = {
    "tagger": lambda: (Tagger(epochs=2).fit(SMALL), WORDS),
    "greedy": lambda: (Tagger(epochs=2, queue=1).fit(SMALL), WORDS),
    "exact": lambda: (Tagger(epochs=2, queue=exact(), features=FEW).fit(SMALL), WORDS),
    "constraints": lambda: (Tagger(epochs=2, constraints="BIO").fit(SMALL), WORDS),
    "hashed": lambda: (Tagger(epochs=2, hash_bits=10).fit(SMALL), WORDS),
    "dicts": lambda: (Tagger(epochs=2).fit(dicts(SMALL), TAGS), dicts(WORDS)),
    "chunker": lambda: (Chunker(epochs=2, features="paper").fit(SMALL), WORDS),
    "joint": lambda: (
        JointTagger(epochs=2, **JOINT).fit(SMALL),
        [[t[0] for t in s] for s in WORDS],
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request):
    return MODELS[request.param]()


def test_a_recorded_problem_is_the_same_problem(fitted):
    model, sentences = fitted
    corpus = model.task_.encode(model.task_.read_inputs(sentences[:1]))
    problem = model.task_.problem_for(corpus)
    again, origins = recorded(problem)
    n = len(model.task_.encoder_.labels)
    x = input_of(corpus, 0)
    one, two = Reference(problem, n), Reference(again, n)
    state = one.initial(x)
    for operator in list(one.operators(x, state))[::5]:
        found = two.features(x, state, operator)
        assert found == one.features(x, state, operator)
        if model.task_.encoder_.names:  # features of tokens are not mixed of anything
            templates = Namer(model.task_.encoder_).templates
            assert all(key in origins or key in templates for key, _ in found)


def test_the_weights_of_the_decisions_sum_to_the_score(fitted):
    model, sentences = fitted
    for sentence, answer in zip(sentences[:4], model.predict(sentences[:4]), strict=True):
        shown = explained(model, sentence, features=10**6)
        assert shown["output"] == answer
        total = sum(decision["score"] for decision in shown["decisions"])
        assert total == pytest.approx(shown["score"], rel=1e-4, abs=1e-3)
        assert sum(d["tokens"] for d in shown["decisions"]) == len(sentence)
        for decision in shown["decisions"]:
            parts = sum(each["weight"] * each["value"] for each in decision["features"])
            assert parts == pytest.approx(decision["score"], rel=1e-4, abs=1e-3)
            assert not any(each["name"].startswith("#") for each in decision["features"])
        assert json.loads(json.dumps(shown))["decisions"] == shown["decisions"]
        assert "output: " in as_text(shown)


def test_the_runner_up_of_a_greedy_search_has_the_next_best_score():
    model = Tagger(epochs=2, queue=1).fit(SMALL)
    for sentence in WORDS[:4]:
        corpus = model.task_.encode(model.task_.read_inputs([sentence]))
        steps, x = Walk(model, corpus), input_of(corpus, 0)
        state = steps.initial(x)
        chosen, _, _ = model.engine(corpus).decode(corpus, all_of(corpus), model.weights_)
        for operator, decision in zip(
            chosen.tolist(), explained(model, sentence)["decisions"], strict=True
        ):
            scores = [  # of equal scores, the first label comes first
                (steps.step_score(x, state, (0, label)), label)
                for label in range(len(model.classes_))
            ]
            (first, best), (second, label) = sorted(scores, key=lambda pair: -pair[0])[:2]
            assert operator == [0, best]
            assert decision["score"] == pytest.approx(first)
            assert decision["runner_up"]["label"] == model.classes_[label]
            assert decision["runner_up"]["score"] == pytest.approx(second)
            assert decision["margin"] == pytest.approx(first - second)
            assert decision["runner_up"]["lost"]["when"] == "at once"
            state = steps.apply(x, state, tuple(operator))


def test_an_alternative_kept_to_the_end_is_as_far_behind_as_its_output():
    """Two words and a beam that holds everything: all outputs can be enumerated."""
    model = Tagger(epochs=2, features=["w[0]", "pos[0]", "label[-1]"], queue=beam(1000)).fit(SMALL)
    sentence = WORDS[0][:2]
    shown = explained(model, sentence)
    corpus = model.task_.encode(model.task_.read_inputs([sentence]))
    steps, x = Walk(model, corpus), input_of(corpus, 0)
    n = len(model.classes_)
    start = steps.initial(x)
    totals = np.zeros((n, n))
    for a in range(n):
        after = steps.apply(x, start, (0, a))
        for b in range(n):
            totals[a, b] = steps.step_score(x, start, (0, a)) + steps.step_score(x, after, (0, b))
    best = np.unravel_index(totals.argmax(), totals.shape)
    others = np.delete(totals.max(axis=1), best[0])
    lost = shown["decisions"][0]["runner_up"]["lost"]
    assert (lost["when"], lost["after"]) == ("never", 2)
    assert lost["behind"] == pytest.approx(totals.max() - others.max())


def test_names_found_by_trying_are_those_seen(fitted):
    model, sentences = fitted
    if model.hash_bits:
        return
    keys, _ = keys_and_rows(model.weights_)
    tried = Namer(model.task_.encoder_).of_keys(keys)
    assert len(tried) > 0.3 * len(keys)
    seen = 0
    for sentence in sentences[:2]:
        data = read_input([sentence])
        corpus = model.task_.encode(data)
        steps, x = Walk(model, corpus), input_of(corpus, 0)
        state = steps.initial(x)
        for key, _ in steps.reference.features(x, state, next(steps.operators(x, state))):
            if key in tried and "some words" not in tried[key]:
                assert tried[key] == steps.feature_name(key, x.items[:0])
                seen += 1
    assert seen


def test_the_top_features_are_those_of_the_largest_weights(fitted):
    model, sentences = fitted
    shown = inspected(model, features=3, data=sentences)
    assert json.loads(json.dumps(shown))["labels"] == list(model.task_.encoder_.labels)
    for label, some in shown["top"].items():
        weights = [weight for _, weight in some["for"]]
        assert weights == sorted(weights, reverse=True)
        assert all(weight < 0 for _, weight in some["against"])
        assert len(weights) <= 3
        assert label in as_text(shown)
    page = as_html(shown)
    assert page.startswith("<!doctype html>")
    assert page.count("<table>") == len(shown["labels"])


def test_names_say_what_a_feature_is():
    model = Tagger(epochs=2, features=["w[0]", "w[-1]|pos[0]", "label[-1]", "bias"]).fit(SMALL)
    names = set(Namer(model.task_.encoder_).of_keys(keys_and_rows(model.weights_)[0]).values())
    assert {"bias", "w[0]=the", "label[-1]=B-NP"} <= names
    assert any(name.startswith("w[-1]=(1 before the beginning) | pos[0]=") for name in names)
    with_pairs = inspected(model, data=WORDS)
    assert with_pairs["named"] >= len(names)


def test_the_commands(laso, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_columns("train.txt", SMALL)
    laso("train", "train.txt", "--task", "tag", "--epochs", "2")
    shown = laso("inspect", "train.laso")
    assert (shown.code, shown.err) == (0, "")
    assert "Tagger (tagging)" in shown.out
    result = json.loads(laso("inspect", "train.laso", "train.txt", "--json").out)
    assert result["metadata"]["data"]["files"] == ["train.txt"]
    assert "<table>" in laso("inspect", "train.laso", "--html").out
    assert laso("inspect", "train.laso", "--html", "--json").code == 2
    text = "The DT\nkettle NN\nboiled VBD\n"
    told = laso("explain", "train.laso", "--features", "2", stdin=text)
    assert told.code == 0
    assert "next best:" in told.out
    (record,) = map(
        json.loads, laso("explain", "train.laso", "--json", stdin=text).out.splitlines()
    )
    assert [d["label"] for d in record["decisions"]] == record["output"]
    assert record["tokens"] == ["The", "kettle", "boiled"]
