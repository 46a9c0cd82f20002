"""The quantities of the theorems against values computed by hand."""

import math

import pytest

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
from tests.separable import TREE, choice, norm

# Two steps: at the root a good successor (3a) and a bad one (4b); after the good one, a good one
# (c, so Phi = 3a + c) and two bad ones (0.5 c and nothing); after a bad one no decision counts.
TWO_STEPS = (
    {
        ("bad",): {"b": 4.0},
        ("good",): {"a": 3.0},
        ("good", "half"): {"c": 0.5},
        ("good", "none"): {},
        ("good", "good"): {"c": 1.0},
        ("bad", "end"): {"b": 100.0},
    },
    {("good", "good")},
)


def test_pairs_compare_good_with_bad_successors_of_good_nodes():
    assert list(pairs(TREE, [TWO_STEPS])) == [
        [{"a": 3.0, "b": -4.0}],
        [{"c": 0.5}, {"c": 1.0}],
    ]


def test_pairs_follow_every_good_path():
    x = {(0,): {"a": 1.0}, (1,): {"b": 1.0}, (2,): {"c": 1.0}}
    assert list(pairs(TREE, [(x, {(0,), (1,)})])) == [
        [{"a": 1.0, "c": -1.0}, {"b": 1.0, "c": -1.0}]
    ]


def test_radius_is_the_longest_difference():
    assert radius(TREE, [TWO_STEPS]) == 5.0
    assert radius(TREE, [TWO_STEPS, choice({"a": 6.0}, {"b": 8.0})]) == 10.0


def test_a_forced_decision_has_no_pair():
    forced = choice({"a": 7.0})
    assert list(pairs(TREE, [forced])) == [[]]
    assert radius(TREE, [forced]) == 0.0
    assert margins(TREE, [forced], {"a": 1.0}) == []
    assert margin(TREE, [forced], {"a": 1.0}) == math.inf


WEIGHTS: Vector = {"a": 2.0, "b": -1.0, "c": 2.0}  # of norm 3


def test_margins_are_the_smallest_of_each_decision_for_weights_of_norm_one():
    assert norm(WEIGHTS) == 3.0
    assert margins(TREE, [TWO_STEPS], WEIGHTS) == pytest.approx([10.0 / 3.0, 1.0 / 3.0])
    assert margin(TREE, [TWO_STEPS], WEIGHTS) == pytest.approx(1.0 / 3.0)


def test_projected_margins_divide_by_the_size_of_long_differences_only():
    # ||3a - 4b|| = 5; ||0.5 c|| and ||c|| are not above one.
    found = margins(TREE, [TWO_STEPS], WEIGHTS, projected=True)
    assert found == pytest.approx([2.0 / 3.0, 1.0 / 3.0])


def test_the_length_of_the_weights_does_not_matter():
    longer: Vector = {name: 7.0 * value for name, value in WEIGHTS.items()}
    assert margins(TREE, [TWO_STEPS], longer) == pytest.approx(margins(TREE, [TWO_STEPS], WEIGHTS))


def test_a_negative_margin_says_that_the_weights_do_not_separate():
    assert margin(TREE, [TWO_STEPS], {"a": -1.0}) == -3.0


@pytest.mark.parametrize("weights", [{}, {"a": 0.0}])
def test_zero_weights_have_no_margin(weights):
    with pytest.raises(ValueError, match="zero weight vector"):
        margins(TREE, [TWO_STEPS], weights)


def test_deviation_counts_what_is_missing_to_gamma():
    found = [3.0, 1.0, -2.0]
    assert deviation(found, 2.0) == pytest.approx(math.sqrt(1.0 + 16.0))
    assert deviation(found, 2.0, order=1) == pytest.approx(5.0)
    assert deviation([3.0, 2.0], 2.0) == deviation([3.0, 2.0], 2.0, order=1) == 0.0


def test_theorem1_by_hand():
    assert theorem1(5.0, 0.5) == 100.0


def test_corollary2_by_hand_and_without_deviation():
    assert corollary2(5.0, 0.5, 3.0) == 256.0
    assert corollary2(5.0, 0.5, 0.0) == theorem1(5.0, 0.5)


def test_theorem4_by_hand():
    # alpha = 1: 2 / gamma^2 + 4; alpha = 1/2: 18 / gamma^2 + 12.
    assert theorem4(0.5, 1.0) == pytest.approx(12.0)
    assert theorem4(0.5, 0.5) == pytest.approx(84.0)


def test_theorem4_on_the_figures_of_the_paper():
    """The paper prints margin 1.299e-2 and bound 17724; both fit one margin before rounding."""
    assert round(theorem4(0.01299, 0.9), 1) == 17710.5
    assert round(theorem4(0.012985, 0.9)) == 17724
    assert theorem4(0.012995, 0.9) < 17724 < theorem4(0.012985, 0.9) + 0.5
    # No other alpha that the paper mentions comes near.
    assert theorem4(0.01299, 1.0) < 15932
    assert theorem4(0.01299, 0.5) > 100_000


def test_theorem4_is_the_algebra_of_appendix_a():
    """gamma m <= (4/alpha - 2) sqrt(4/alpha - 3 + m/2) ends just below the bound."""
    for alpha in (0.3, 0.5, 0.9, 1.0):
        for gamma in (0.01, 0.1, 0.7):
            # The larger root of gamma^2 m^2 = a^2 (b + m/2), a = 4/alpha - 2, b = 4/alpha - 3.
            a, b = 4.0 / alpha - 2.0, 4.0 / alpha - 3.0
            half = a**2 / (4.0 * gamma**2)
            root = half + math.sqrt(half**2 + a**2 * b / gamma**2)
            assert root <= theorem4(gamma, alpha)
            assert root >= 2.0 * half


def test_corollary5_by_hand():
    # alpha = 1, C = 1: rho = 1 / gamma = 2, D / gamma = 3.
    assert corollary5(0.5, 1.5, alpha=1.0, B=1.0, C=1.0) == pytest.approx(
        3.0 + 2.0 + 2.0 * math.sqrt(1.0 + 3.0 + 1.0)
    )


def test_corollary5_is_where_gamma_m_meets_its_growth():
    """m - D/gamma = rho sqrt(m + 1), which is what the proof arrives at."""
    alpha, C = 0.5, 0.6
    B = (1.0 - C**2) / (2.0 * (1.0 - alpha) * C)
    for gamma, D in ((0.1, 0.0), (0.5, 2.0), (1.0, 30.0)):
        m = corollary5(gamma, D, alpha=alpha, B=B, C=C)
        assert m - D / gamma == pytest.approx(math.sqrt(m + 1.0) / (C * gamma))


def test_corollary5_refuses_b_and_c_that_miss_its_condition():
    with pytest.raises(ValueError, match=r"needs C\^2 \+ 2 \(1 - alpha\) B C = 1, found 2"):
        corollary5(0.5, 0.0, alpha=1.0, B=math.sqrt(8.0), C=math.sqrt(2.0))
    with pytest.raises(ValueError, match=r"alpha=0\.9"):
        corollary5(0.5, 0.0, alpha=0.9, B=1.0 / 0.9, C=1.0)


@pytest.mark.parametrize("gamma", [0.0, -0.1, math.nan])
@pytest.mark.parametrize(
    "bound",
    [
        lambda gamma: theorem1(1.0, gamma),
        lambda gamma: corollary2(1.0, gamma, 1.0),
        lambda gamma: theorem4(gamma, 0.9),
        lambda gamma: corollary5(gamma, 1.0, alpha=1.0, B=1.0, C=1.0),
    ],
)
def test_bounds_need_a_positive_margin(bound, gamma):
    with pytest.raises(ValueError, match="positive margin"):
        bound(gamma)
