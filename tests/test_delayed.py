"""Delayed LaSO: Figure 2 with the same weights until the end of an example, then one update."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import (
    MissingData,
    Parser,
    Tagger,
    alma,
    beam,
    delayed,
    learn,
    load_model,
    passive_aggressive,
    perceptron,
    restart,
    uniform,
    worst,
)
from laso.data import find_corpus
from laso.examples.tagging import Tagging
from laso.vectors import combined
from studies.corpus import CONLLU, read_conllu

PROBLEM = Tagging("ABC")
sentences = st.lists(st.sampled_from("xyz"), min_size=1, max_size=5)
RULES = [
    perceptron(),
    perceptron(weighting=worst, margin=1.0, by_loss=True),
    alma(alpha=0.5),
    passive_aggressive(C=math.inf),
]


def gold(x):
    return tuple("ABC"["xyz".index(word)] for word in x)


def errors_of(x, w, queue, weighting):
    """The terms of each error if the weights never change."""
    found: list[Any] = []

    def note(w, x, sibs, nodes):
        found.append(weighting(sibs, nodes))
        return w

    learn(PROBLEM, x, gold(x), w, queue, note)
    return found


@pytest.mark.parametrize("rule", RULES, ids=repr)
@settings(deadline=None, max_examples=60)
@given(st.lists(sentences, min_size=1, max_size=4), st.integers(1, 3))
def test_one_step_along_the_sum_of_all_differences(rule, corpus, width):
    w, twin = rule.start(), rule.start()
    for x in map(tuple, corpus):
        queue = beam(width)
        terms = errors_of(x, w, queue, rule.weighting)
        before = w.k
        w = delayed(PROBLEM, x, gold(x), w, queue, rule)
        if terms:
            twin = rule.step(twin, [term for each in terms for term in each], len(terms))
        assert w.k - before <= 1
        assert w.weights == twin.weights


@settings(deadline=None, max_examples=60)
@given(sentences, st.integers(1, 3))
def test_passive_aggressive_steps_give_each_error_its_margin(x, width):
    rule = passive_aggressive(C=math.inf)
    w = rule.start()
    terms = errors_of(tuple(x), w, beam(width), rule.weighting)
    w = delayed(PROBLEM, tuple(x), gold(x), w, beam(width), rule)
    delta = combined([term for each in terms for term in each])
    if any(delta.values()):
        assert w.dot(delta) == pytest.approx(len(terms) * rule.margin)


def test_later_errors_see_the_weights_of_the_first():
    # After one update of "x is A", plain LaSO makes no second error on the second x.
    x, y = ("x", "x"), ("B", "B")
    rule: Any = perceptron(weighting=uniform)
    once = restart(PROBLEM, x, y, rule.start(), beam(1), rule)
    both = delayed(PROBLEM, x, y, rule.start(), beam(1), rule)
    assert once.weights["B x"] == 1.0
    assert both.weights["B x"] == 2.0
    assert both.k == 2


def test_an_update_in_one_part_is_refused():
    def own(w, x, sibs, nodes):
        return w

    with pytest.raises(ValueError, match="delayed updates need the methods weighting and step"):
        delayed(PROBLEM, ("x",), ("B",), perceptron().start(), beam(1), own)  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", [perceptron(), passive_aggressive(), alma()], ids=repr)
def test_an_estimator_learns_with_it_and_keeps_it(rule, tmp_path):
    X = [["ein", "Hund", "bellt"], ["der", "Hund"], ["ein", "Ball"]] * 4
    y = [["D", "N", "V"], ["D", "N"], ["D", "N"]] * 4
    model = Tagger(queue=2, strategy=delayed, update=rule, epochs=5).fit(X, y)
    assert list(model.predict(X)) == y
    model.save(tmp_path / "m.laso")
    assert load_model(tmp_path / "m.laso").strategy is delayed


def test_an_example_of_many_errors_finds_room():
    """It begins anew without the rows it had added, and must not do so for ever."""
    try:
        file = find_corpus("ud_ewt") / "en_ewt-ud-train.conllu"
    except MissingData as missing:
        pytest.skip(str(missing))
    sentences = read_conllu(file, CONLLU["ud_ewt_trees"])[::10]
    X = [[token[:3] for token in sentence] for sentence in sentences]
    y = [[(int(token[3]), token[4]) for token in sentence] for sentence in sentences]
    given: dict[str, Any] = {"update": perceptron(weighting=worst), "strategy": delayed}
    parser = Parser(system="arc-hybrid", queue=1, epochs=1, threads=1, **given).fit(X, y)
    assert parser.n_iter_ == 1
