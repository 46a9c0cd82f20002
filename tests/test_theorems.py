"""The theorems as properties where their margin holds, and what happens where it does not."""

import math
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from laso import (
    alma,
    beam,
    fit,
    greedy,
    loss_proportional,
    perceptron,
    restart,
    uniform,
    worst,
)
from laso.problem import Vector
from laso.theorem_bounds import (
    corollary2,
    corollary5,
    deviation,
    margin,
    margins,
    pairs,
    radius,
    theorem1,
    theorem4,
)
from tests.separable import (
    TREE,
    Example,
    choice,
    dot,
    norm,
    random_data,
    random_weights,
    rescaled,
    same_depth_pairs,
    separated,
)

QUICK = settings(deadline=None, derandomize=True, max_examples=100)
seeds = st.integers(0, 2**32 - 1)
sizes = st.fixed_dictionaries(
    {
        "examples": st.integers(1, 3),
        "depth": st.integers(1, 3),
        "branching": st.integers(2, 3),
        "whole": st.booleans(),
    }
)
weightings = st.sampled_from((uniform, loss_proportional, worst))


def separable_data(seed: int, size, gamma: float) -> tuple[list[Example], Vector]:
    """Random data with weights that hold all same-depth pairs at least gamma apart."""
    rng = Random(seed)
    weights = random_weights(rng)
    return separated(random_data(rng, **size), weights, gamma), weights


def trained(data, queue, rule, *, bound: float):
    """Training until no error is left; one epoch more than the bound allows would be too many."""
    return fit(
        TREE, data, queue=queue, update=rule, epochs=int(bound) + 2, average=False, seed=None
    )


def after_passes(data, queue, rule, passes: int):
    w = rule.start()
    for _ in range(passes):
        for x, y in data:
            w = restart(TREE, x, y, w, queue, rule)
    return w


class Watched:
    """A rule that notes w . Delta before and the weights after each update."""

    def __init__(self, rule):
        self._rule = rule
        self.before: list[float] = []
        self.weights: list[Vector] = [{}]

    def start(self):
        return self._rule.start()

    def __call__(self, w, x, sibs, nodes):
        self.before.append(w.dot(w.combine(self._rule.weighting(sibs, nodes))))
        w = self._rule(w, x, sibs, nodes)
        self.weights.append(dict(w.weights))
        return w


# Theorem 1


@QUICK
@given(seeds, sizes, st.sampled_from((0.4, 1.0)), weightings)
def test_theorem_1_for_greedy_search(seed, size, gamma, weighting):
    data, weights = separable_data(seed, size, gamma)
    found = margin(TREE, data, weights)
    assert found >= gamma * (1.0 - 1e-9)
    bound = theorem1(radius(TREE, data), found)
    rule = Watched(perceptron(weighting=weighting))
    model = trained(data, greedy(), rule, bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)
    assert all(before <= 1e-9 for before in rule.before)


@QUICK
@given(seeds, st.sampled_from((0.4, 1.0)), weightings)
def test_theorem_1_for_greedy_search_with_several_good_paths(seed, gamma, weighting):
    rng = Random(seed)
    weights = random_weights(rng)
    data = [
        (x, {*y, tuple(rng.randrange(3) for _ in range(2))})
        for x, y in random_data(rng, examples=2, depth=2, branching=3)
    ]
    assume(any(deltas for deltas in pairs(TREE, data)))
    data = separated(data, weights, gamma)
    bound = theorem1(radius(TREE, data), margin(TREE, data, weights))
    model = trained(data, greedy(), perceptron(weighting=weighting), bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)


@QUICK
@given(seeds, sizes, st.integers(2, 4))
def test_theorem_1_for_a_beam_with_all_same_depth_pairs_apart(seed, size, width):
    """In a beam any two nodes of equal depth meet, so R and gamma are taken over all of them."""
    data, weights = separable_data(seed, size, 0.5)
    deltas = same_depth_pairs(data)
    gamma = min(dot(weights, delta) for delta in deltas)
    bound = theorem1(max(map(norm, deltas)), gamma)
    rule = Watched(perceptron(weighting=worst))
    model = trained(data, beam(width), rule, bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)
    assert all(before <= 1e-9 for before in rule.before)


@QUICK
@given(seeds, sizes, st.sampled_from((0.5, 3.0)))
def test_a_constant_margin_adds_twice_itself_to_the_square_of_r(seed, size, asked):
    """At an error w . Delta is at most the margin asked for, so ||w||^2 grows by R^2 + 2 of it."""
    data, weights = separable_data(seed, size, 0.5)
    found = margin(TREE, data, weights)
    bound = (radius(TREE, data) ** 2 + 2.0 * asked) / found**2
    model = trained(data, greedy(), perceptron(margin=asked), bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)


def test_theorem_1_can_be_met_exactly():
    data = [choice({"a": 1.0}, {"b": 1.0})]
    bound = theorem1(radius(TREE, data), margin(TREE, data, {"a": 1.0, "b": -1.0}))
    assert bound == pytest.approx(1.0)
    assert trained(data, greedy(), perceptron(), bound=bound).updates == 1


def test_the_literal_r_of_the_paper_is_too_small():
    """||Phi(x, n) - Phi(x, m)|| of a node and its successor is the length of one step only."""
    x, y = choice({"a": 1.0}, {"b": 1.0})
    literal = max(norm(features) for features in x.values())
    gamma = margin(TREE, [(x, y)], {"a": 1.0, "b": -1.0})
    assert literal == 1.0
    assert gamma == pytest.approx(math.sqrt(2.0))
    assert theorem1(literal, gamma) == pytest.approx(0.5)
    errors = perceptron_errors([(x, y)], greedy(), perceptron(), epochs=3)
    assert errors == [1, 0, 0]
    assert theorem1(radius(TREE, [(x, y)]), gamma) == pytest.approx(1.0)


def perceptron_errors(data, queue, rule, epochs: int) -> list[int]:
    """The errors of each epoch."""
    w = rule.start()
    counts = []
    for _ in range(epochs):
        before = w.k
        for x, y in data:
            w = restart(TREE, x, y, w, queue, rule)
        counts.append(w.k - before)
    return counts


# Corollary 2


@QUICK
@given(seeds, sizes, st.integers(1, 6), st.sampled_from((0.1, 0.5, 1.0, 3.0)), weightings)
def test_corollary_2_on_any_data(seed, size, passes, gamma, weighting):
    """All passes are one sequence: D sums over every decision that was presented."""
    rng = Random(seed)
    data = random_data(rng, **size)
    weights = random_weights(rng)
    rule = perceptron(weighting=weighting)
    errors = after_passes(data, greedy(), rule, passes).k - 1
    D = deviation(margins(TREE, data, weights) * passes, gamma)
    assert errors <= corollary2(radius(TREE, data), gamma, D) * (1.0 + 1e-9)


CONTRADICTION = [choice({"a": 1.0}, {}), choice({}, {"a": 1.0})]


def test_corollary_2_needs_the_deviation_of_the_whole_sequence():
    passes = 20
    errors = after_passes(CONTRADICTION, greedy(), perceptron(), passes).k - 1
    assert errors == 2 * passes
    once = margins(TREE, CONTRADICTION, {"a": 1.0})
    assert once == [1.0, -1.0]
    assert errors > corollary2(1.0, 1.0, deviation(once, 1.0))
    assert errors <= corollary2(1.0, 1.0, deviation(once * passes, 1.0))


# Theorem 4


@QUICK
@given(seeds, sizes, st.sampled_from((0.5, 0.9, 1.0)), weightings)
def test_theorem_4_for_greedy_search(seed, size, alpha, weighting):
    data, weights = separable_data(seed, size, 0.7)
    gamma = margin(TREE, data, weights, projected=True)
    assert 0.0 < gamma <= 1.0 + 1e-9
    bound = theorem4(gamma, alpha)
    rule = alma(alpha=alpha, weighting=weighting)
    assert (rule.b, rule.C) == (math.sqrt(8.0) / alpha, math.sqrt(2.0))
    model = trained(data, greedy(), rule, bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)


@QUICK
@given(seeds, sizes, st.sampled_from((0.5, 0.9, 1.0)), st.integers(2, 3))
def test_theorem_4_for_a_beam_with_all_same_depth_pairs_apart(seed, size, alpha, width):
    data, weights = separable_data(seed, size, 0.7)
    gamma = min(dot(weights, d) / max(1.0, norm(d)) for d in same_depth_pairs(data))
    bound = theorem4(gamma, alpha)
    model = trained(data, beam(width), alma(alpha=alpha, weighting=worst), bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)


@settings(QUICK, max_examples=40)
@given(seeds, st.sampled_from((0.3, 0.5, 0.9)))
def test_a_smaller_alpha_promises_a_larger_margin(seed, alpha):
    """At least (1 - alpha) of the largest margin, if no difference is longer than one."""
    size = {"examples": 2, "depth": 2, "branching": 2}
    data, weights = separable_data(seed, size, 0.7)
    data = rescaled(data, 1.0 / radius(TREE, data))
    gamma = margin(TREE, data, weights)
    model = trained(data, greedy(), alma(alpha=alpha), bound=theorem4(gamma, alpha))
    assert model.converged
    assert margin(TREE, data, model.w.weights) >= (1.0 - alpha) * gamma * (1.0 - 1e-9)


# Corollary 5


def doubled_corollary5(gamma: float, D: float, *, C: float) -> float:
    """Corollary 5 with rho = 2 / (C gamma), which the proof in docs/explanation/theory.md gives."""
    rho, short = 2.0 / (C * gamma), D / gamma
    return short + rho**2 / 2.0 + rho * math.sqrt(rho**2 / 4.0 + short + 1.0)


def valid_alma(alpha: float, C: float, weighting=uniform):
    """B such that C^2 + 2 (1 - alpha) B C = 1; at alpha = 1 it plays no part."""
    B = 1.0 if alpha == 1.0 else (1.0 - C**2) / (2.0 * (1.0 - alpha) * C)
    return alma(alpha=alpha, B=B, C=C, weighting=weighting)


@settings(QUICK, max_examples=200)
@given(
    seeds,
    sizes,
    st.integers(1, 6),
    st.sampled_from((0.1, 0.4, 0.8, 1.0)),
    st.sampled_from(((1.0, 1.0), (0.5, 0.6), (0.9, 0.9))),
    weightings,
)
def test_corollary_5_on_any_data(seed, size, passes, gamma, setting, weighting):
    """It holds as printed if u . w never falls below zero, and with a doubled rho always."""
    alpha, C = setting
    rng = Random(seed)
    data = random_data(rng, **size)
    u = random_weights(rng)
    rule = Watched(valid_alma(alpha, C, weighting))
    corrections = after_passes(data, greedy(), rule, passes).k - 1
    D = deviation(margins(TREE, data, u, projected=True) * passes, gamma, order=1)
    assert corrections <= doubled_corollary5(gamma, D, C=C) * (1.0 + 1e-9)
    if all(dot(u, weights) >= 0.0 for weights in rule.weights):
        printed = corollary5(gamma, D, alpha=alpha, B=valid_alma(alpha, C).b, C=C)
        assert corrections <= printed * (1.0 + 1e-9)


@QUICK
@given(seeds, sizes, st.sampled_from(((1.0, 1.0), (0.5, 0.6), (0.9, 0.9))))
def test_corollary_5_on_separable_data(seed, size, setting):
    """There u . w is never negative, so the printed bound holds, with D = 0."""
    alpha, C = setting
    data, u = separable_data(seed, size, 0.7)
    gamma = margin(TREE, data, u, projected=True)
    rule = valid_alma(alpha, C)
    bound = corollary5(gamma, 0.0, alpha=alpha, B=rule.b, C=C)
    model = trained(data, greedy(), rule, bound=bound)
    assert model.converged
    assert model.updates <= bound * (1.0 + 1e-9)


# Five differences of length one, each an error when it comes: the first turns w away from u = e1,
# while steps are long; the others turn it back, while they are short.
TURNED_AWAY = [
    choice({"u": u, "v": v}, {})
    for u, v in ((-0.8, -0.6), (0.8, -0.6), (1.0, 0.0), (12 / 13, 5 / 13), (0.6, 0.8))
]


def test_corollary_5_as_printed_can_be_exceeded():
    w = after_passes(TURNED_AWAY, greedy(), valid_alma(1.0, 1.0), 1)
    found = margins(TREE, TURNED_AWAY, {"u": 1.0}, projected=True)
    assert found == pytest.approx([-0.8, 0.8, 1.0, 12 / 13, 0.6])
    D = deviation(found, 1.0, order=1)
    corrections = w.k - 1
    assert corrections == len(TURNED_AWAY) == 5
    assert corollary5(1.0, D, alpha=1.0, B=1.0, C=1.0) < 4.95
    assert corrections <= doubled_corollary5(1.0, D, C=1.0)


def test_corollary_5_needs_a_sum_of_hinges():
    """The root of squares, which Corollary 2 uses, grows too slowly."""
    passes = 100
    corrections = after_passes(CONTRADICTION, greedy(), valid_alma(1.0, 1.0), passes).k - 1
    found = margins(TREE, CONTRADICTION, {"a": 1.0}, projected=True) * passes
    bounds = [
        corollary5(1.0, deviation(found, 1.0, order=order), alpha=1.0, B=1.0, C=1.0)
        for order in (1, 2)
    ]
    assert bounds[1] < corrections <= bounds[0]
