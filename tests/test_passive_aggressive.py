"""The passive-aggressive update and AROW."""

from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from laso import (
    arow,
    fit,
    greedy,
    passive_aggressive,
    worst,
)
from laso.vectors import Linear
from tests.separable import (
    TREE,
    choice,
    dot,
    minus,
    norm,
    successors,
)
from tests.test_updates import QUICK, queue_of, seeds, weights_of

# Passive-aggressive


@QUICK
@given(seeds)
def test_an_unclipped_passive_aggressive_update_makes_the_margin_one(seed):
    rng = Random(seed)
    rule = passive_aggressive(C=1e9)
    w: Any = rule.start()
    assert w.margin == 1.0
    for _ in range(5):
        sibs, nodes = queue_of(rng, w)
        (good, _), (bad, _) = worst(sibs, nodes)
        short = dot(w.weights, minus(good.phi(), bad.phi())) < 1.0
        before = w.weights
        rule(w, None, sibs, nodes)
        margin = dot(w.weights, minus(good.phi(), bad.phi()))
        if short:
            assert margin == pytest.approx(1.0)
        else:
            assert w.weights == before


def test_a_passive_aggressive_step_is_clipped_by_c():
    rule = passive_aggressive(C=0.1)
    bad, good = successors(choice({"a": 1.0}, {"b": 1.0}))
    w: Any = rule(rule.start(), None, [good], [bad])
    # The full step would be (1 - 0) / 2.
    assert w.weights == pytest.approx({"a": 0.1, "b": -0.1})
    assert w.k == 2
    for _ in range(4):
        w = rule(w, None, [good], [bad])
    assert w.weights == pytest.approx({"a": 0.5, "b": -0.5})
    # Now the margin is one: nothing is left to correct.
    w = rule(w, None, [good], [bad])
    assert w.weights == pytest.approx({"a": 0.5, "b": -0.5})


def test_a_passive_aggressive_call_that_changes_nothing_is_not_counted():
    rule = passive_aggressive()
    bad, good = successors(choice({"a": 1.0}, {"b": 1.0}))
    w: Any = Linear({"a": 0.5, "b": -0.5})
    assert rule(w, None, [good], [bad]).k == 1  # the margin is one already
    assert rule(w, None, [good], [good]).k == 1  # there is no difference to learn from
    assert w.weights == {"a": 0.5, "b": -0.5}
    assert rule(w, None, [bad], [good]).k == 2


def test_passive_aggressive_training_converges_at_the_margin():
    data = [choice({"a": 1.0}, {"b": 1.0})]
    model = fit(TREE, data, queue=greedy(), update=passive_aggressive(), epochs=50)
    assert model.converged
    assert model.predict(data[0][0]) == ("good",)
    plain = fit(TREE, data, queue=greedy(), update=passive_aggressive(), epochs=50, average=False)
    assert weights_of(plain.w) == pytest.approx({"a": 0.5, "b": -0.5})


def test_a_passive_aggressive_step_is_the_least_that_gives_the_margin():
    rule = passive_aggressive(C=1e9)
    bad, good = successors(choice({"a": 2.0, "b": 1.0}, {"c": 1.0}))
    delta = minus(good.phi(), bad.phi())
    w = Linear({"a": -0.2})
    before = w.weights
    rule(w, None, [good], [bad])
    # The distance from a point to the half-space in which the margin is one.
    distance = (1.0 - dot(before, delta)) / norm(delta)
    assert norm(minus(w.weights, before)) == pytest.approx(distance)
    assert dot(w.weights, delta) == pytest.approx(1.0)


def test_passive_aggressive_is_passive_beyond_the_margin():
    rule = passive_aggressive()
    bad, good = successors(choice({"a": 2.0}, {"c": 1.0}))
    w = Linear({"a": 0.2, "c": -1.0})
    rule(w, None, [good], [bad])
    assert w.weights == {"a": 0.2, "c": -1.0}


# AROW


@pytest.mark.parametrize("options", [{"variance": 0}, {"gamma": 0.0}, {"margin": -1}])
def test_invalid_arow_parameters_are_refused(options):
    with pytest.raises(ValueError, match="must be"):
        arow(**options)


@QUICK
@given(seeds)
def test_arow_is_crammers_with_a_diagonal_covariance(seed):
    """A twin in the paper's terms: mean mu and covariance Sigma, by matrices."""
    rng = Random(seed)
    variance, gamma = rng.uniform(0.1, 3.0), rng.uniform(0.1, 3.0)
    rule = arow(variance=variance, gamma=gamma)
    w: Any = rule.start()
    names: list[Any] = []
    mu, sigma = np.zeros(0), np.zeros(0)
    for _ in range(6):
        sibs, nodes = queue_of(rng, w)
        (good, _), (bad, _) = worst(sibs, nodes)
        delta = minus(good.phi(), bad.phi())
        new = [name for name in delta if name not in names]
        names += new
        mu, sigma = np.append(mu, np.zeros(len(new))), np.append(sigma, [variance] * len(new))
        x = np.array([delta.get(name, 0.0) for name in names])
        loss = 1.0 - mu @ x
        if loss > 0 and x.any():
            beta = 1.0 / (x @ (sigma * x) + gamma)
            mu = mu + loss * beta * sigma * x
            sigma = 1.0 / (1.0 / sigma + x * x / gamma)
        rule(w, None, sibs, nodes)
        assert {name: w.weights.get(name, 0.0) for name in names} == pytest.approx(
            dict(zip(names, mu.tolist(), strict=True))
        )


def test_weights_that_changed_often_change_less():
    rule = arow()
    w: Any = rule.start()
    bad, good = successors(choice({"a": 1.0}, {}))
    steps = []
    for _ in range(3):
        before = w.weights.get("a", 0.0)
        w = rule(w, None, [good], [bad])
        steps.append(w.weights["a"] - before)
    assert steps == sorted(steps, reverse=True)
    assert steps[0] == pytest.approx(0.5)  # hinge 1, variance 1, gamma 1
    rule(w, None, [good], [good])
    assert w.k == 4
