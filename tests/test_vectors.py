"""Weight vectors: the three representations against naive twins that keep everything."""

import math
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import linear_kernel, polynomial_kernel, rbf_kernel
from laso.problem import Node, Vector
from laso.vectors import Kernelised, Linear, PNorm, combined
from tests.separable import choice, close, dot, norm, plus, successors

QUICK = settings(deadline=None, derandomize=True, max_examples=150)

NAMES = ("a", "b", "c")
vectors = st.fixed_dictionaries(
    {}, optional={name: st.integers(-20, 20).map(lambda v: v / 10) for name in NAMES}
)
steps = st.sampled_from((-1.5, -0.3, 0.2, 1.0, 2.5))
operations = st.lists(
    st.one_of(st.tuples(vectors, steps), st.just("project"), st.just("tick")),
    min_size=3,
    max_size=25,
)


def step_node(features: Vector) -> Node:
    root = Node(None)
    return Node(None, parent=root, features=features, depth=1)


def primal(theta: Vector, p: float) -> Vector:
    """w_i = sign(theta_i) |theta_i|^(p-1) / ||theta||_p^(p-2), Gentile's link."""
    size = norm(theta, p)
    return {
        n: math.copysign(abs(t) ** (p - 1.0) / size ** (p - 2.0), t) if t else 0.0
        for n, t in theta.items()
    }


def naive(script, p: float = 2.0) -> tuple[Vector, Vector]:
    """The last w, and the average of all w at ticks (of the last one if there was no tick)."""
    theta: Vector = {}
    seen = []
    for operation in script:
        if operation == "tick":
            seen.append(primal(theta, p))
        elif operation == "project":
            size = max(1.0, norm(theta, p))
            theta = {n: t / size for n, t in theta.items()}
        else:
            theta = plus(theta, *operation)
    last = primal(theta, p)
    total: Vector = {}
    for w in seen or [last]:
        total = plus(total, w, 1.0 / max(1, len(seen)))
    return last, total


def perform(w, script):
    for operation in script:
        if operation == "tick":
            w.tick()
        elif operation == "project":
            w.project()
        else:
            delta, step = operation
            w.add([(delta, 1.0)] if isinstance(w, Kernelised) else delta, step)


@QUICK
@given(operations)
def test_linear_is_the_naive_vector_and_average(script):
    w = Linear()
    perform(w, script)
    last, average = naive(script)
    assert close(w.weights, last)
    assert w.norm() ** 2 == pytest.approx(norm(last) ** 2, abs=1e-9)
    assert close(w.averaged().weights, average)


@QUICK
@given(operations.map(lambda script: [o for o in script if o != "project"]))
def test_linear_average_without_projections(script):
    w = Linear()
    perform(w, script)
    assert close(w.averaged().weights, naive(script)[1])


@QUICK
@given(operations, st.sampled_from((2.0, 3.0, 7.5)))
def test_pnorm_is_the_naive_vector_and_average(script, p):
    w = PNorm(p)
    perform(w, script)
    last, average = naive(script, p)
    assert close(w.weights, last)
    assert close(w.averaged().weights, average)


@QUICK
@given(operations, vectors)
def test_kernelised_is_the_naive_vector_and_average(script, probe):
    w = Kernelised(linear_kernel())
    perform(w, script)
    last, average = naive(script)
    assert w.g(step_node(probe)) == pytest.approx(dot(last, probe), abs=1e-9)
    assert w.norm() ** 2 == pytest.approx(norm(last) ** 2, abs=1e-9)
    assert w.averaged().g(step_node(probe)) == pytest.approx(dot(average, probe), abs=1e-9)


def many_projections(times: int):
    """Each addition doubles the vector and each projection halves it: w is 1 at every tick."""
    return [({"a": 1.0}, 1.0), "project", "tick"] * times


@pytest.mark.parametrize("times", [10, 100, 2000])
def test_linear_average_survives_many_projections(times):
    w = Linear()
    perform(w, many_projections(times))
    assert w.weights == pytest.approx({"a": 1.0})
    assert w.averaged().weights == pytest.approx({"a": 1.0})


def test_kernelised_average_survives_many_projections():
    w = Kernelised(linear_kernel())
    perform(w, many_projections(100))
    assert w.averaged().g(step_node({"a": 1.0})) == pytest.approx(1.0)


def test_average_without_a_tick_is_the_vector_itself():
    for w in (Linear(), PNorm(3.0)):
        w.add({"a": 0.5, "b": -0.25}, 1.0)
        assert close(w.averaged().weights, w.weights)


def test_linear_starts_from_given_weights():
    w = Linear({"a": 3.0, "b": 4.0}, k=7)
    assert w.norm() == 5.0
    assert w.k == w.averaged().k == 7
    assert w.dot({"a": 1.0, "b": -1.0, "c": 9.0}) == -1.0
    w.project()
    assert w.weights == pytest.approx({"a": 0.6, "b": 0.8})


def test_kernelised_starts_from_given_coefficients():
    w = Kernelised(linear_kernel(), [{"a": 1.0}, {"b": 1.0}], {0: 3.0, 1: 4.0})
    assert w.g(step_node({"a": 1.0, "b": 1.0})) == 7.0
    assert w.norm() == pytest.approx(5.0)


def test_g_adds_up_along_the_path():
    w = Linear({"a": 2.0, "b": -1.0})
    first = step_node({"a": 1.0})
    first.g = w.g(first)
    second = Node(None, parent=first, features={"a": 1.0, "b": 3.0}, depth=2)
    assert w.g(second) == 1.0
    assert w.g(second) == dot(w.weights, second.phi())


def test_combine_sums_paths_and_drops_what_cancels():
    first = step_node({"a": 1.0, "b": 2.0})
    second = Node(None, parent=first, features={"c": 1.0}, depth=2)
    assert combined([(second, 1.0), (first, -1.0)]) == {"c": 1.0}
    other = step_node({"a": 4.0})
    assert combined([(second, 1.0), (first, -0.5), (other, -0.5)]) == {
        "a": -1.5,
        "b": 1.0,
        "c": 1.0,
    }


def test_combine_counts_a_step_that_all_share_unless_the_coefficients_cancel():
    first = step_node({"a": 3.0})
    left, right = (Node(None, parent=first, features={n: 1.0}, depth=2) for n in "lr")
    assert combined([(left, 1.0)]) == {"a": 3.0, "l": 1.0}
    assert combined([(left, 1.0), (right, 1.0)]) == {"a": 6.0, "l": 1.0, "r": 1.0}
    assert combined([(left, 1.0), (right, -0.5)]) == {"a": 1.5, "l": 1.0, "r": -0.5}
    assert combined([(left, 1.0), (right, -1.0)]) == {"l": 1.0, "r": -1.0}


def test_combine_leaves_no_rounding_of_what_cancels():
    first = step_node({"a": 3.0})
    good, *bad = (Node(None, parent=first, features={n: 1.0}, depth=2) for n in range(4))
    assert 1.0 - 1 / 3 - 1 / 3 - 1 / 3 != 0.0
    assert combined([(good, 1.0), *((node, -1 / 3) for node in bad)]) == {
        0: 1.0,
        **dict.fromkeys((1, 2, 3), -1 / 3),
    }


@QUICK
@given(
    st.lists(st.integers(-30, 30).filter(bool), min_size=1, max_size=6),
    st.sampled_from((2.0, 2.5, 4.0, 9.0)),
)
def test_link_inverts_the_gradient_of_half_the_squared_q_norm(values, p):
    theta: Vector = {i: v / 10 for i, v in enumerate(values)}
    w = PNorm(p)
    w.add(theta, 1.0)
    q = p / (p - 1.0)
    weights = w.weights
    size = norm(weights, q)
    gradient = {
        n: math.copysign(abs(v) ** (q - 1.0) / size ** (q - 2.0), v) for n, v in weights.items()
    }
    assert close(gradient, theta, 1e-8)
    assert size == pytest.approx(norm(theta, p))
    assert w.norm() == pytest.approx(size)


def test_link_is_the_gradient_of_half_the_squared_p_norm():
    theta: Vector = {"a": 0.7, "b": -1.3, "c": 0.2}
    w = PNorm(5.0)
    w.add(theta, 1.0)
    h = 1e-5
    for name in theta:
        above = norm(plus(theta, {name: h}), 5.0) ** 2 / 2
        below = norm(plus(theta, {name: -h}), 5.0) ** 2 / 2
        assert w.weights[name] == pytest.approx((above - below) / (2 * h), abs=1e-7)


@pytest.mark.parametrize("p", [2.0, 3.0, 8.0])
def test_pnorm_projection_scales_w_to_the_q_ball(p):
    w = PNorm(p)
    w.add({"a": 3.0, "b": -1.0}, 1.0)
    before, size = w.weights, w.norm()
    assert size > 1.0
    w.project()
    assert close(w.weights, {n: v / size for n, v in before.items()})
    assert norm(w.weights, p / (p - 1.0)) == pytest.approx(1.0)
    inside = PNorm(p)
    inside.add({"a": 0.1}, 1.0)
    inside.project()
    assert inside.weights == pytest.approx({"a": 0.1})


def test_pnorm_measures_instances_with_the_p_norm():
    assert PNorm(3.0).size({"a": 2.0, "b": -1.0}) == pytest.approx(9.0 ** (1 / 3))
    assert PNorm(2.0).size({"a": 3.0, "b": 4.0}) == Linear().size({"a": 3.0, "b": 4.0}) == 5.0


def test_pnorm_of_a_small_vector_does_not_underflow():
    w = PNorm(200.0)
    w.add({"a": 0.001}, 1.0)
    assert w.norm() == pytest.approx(0.001)
    assert w.weights == pytest.approx({"a": 0.001})
    assert w.size({"a": -0.001, "b": 0.001}) == pytest.approx(0.001 * 2.0 ** (1 / 200))
    assert w.size({}) == w.size({"a": 0.0}) == 0.0


A: Vector = {"a": 1.0, "b": 2.0}
B: Vector = {"b": -1.0, "c": 3.0}


def test_kernels_against_their_formulas():
    assert linear_kernel()(A, B) == -2.0
    assert polynomial_kernel(3, constant=0.5)(A, B) == (-2.0 + 0.5) ** 3
    assert polynomial_kernel(2)(A, B) == (-2.0 + 1.0) ** 2
    assert rbf_kernel(0.1)(A, B) == pytest.approx(math.exp(-0.1 * (1.0 + 9.0 + 9.0)))
    for kernel in (linear_kernel(), polynomial_kernel(2), rbf_kernel(0.3)):
        assert kernel(A, B) == kernel(B, A)
    assert rbf_kernel(2.0)(A, A) == 1.0


def test_quadratic_kernel_is_the_linear_one_on_products():
    """(a . b + 1)^2 is a dot product of all products of two features, with a constant among them"""

    def mapped(v: Vector) -> Vector:
        v = {**v, "constant": 1.0}
        return {(m, n): v[m] * v[n] for m in v for n in v}

    rng = Random(0)
    kernelised, explicit = Kernelised(polynomial_kernel(2)), Linear()
    for _ in range(6):
        delta: Vector = {name: rng.uniform(-1, 1) for name in NAMES}
        step = rng.uniform(-1, 1)
        kernelised.add([(delta, 1.0)], step)
        explicit.add(mapped(delta), step)
    probe: Vector = {"a": 0.3, "c": -0.8}
    assert kernelised.g(step_node(probe)) == pytest.approx(explicit.dot(mapped(probe)))
    assert kernelised.norm() == pytest.approx(explicit.norm())
    kernelised.project()
    explicit.project()
    assert kernelised.g(step_node(probe)) == pytest.approx(explicit.dot(mapped(probe)))


@pytest.mark.parametrize("kernel", [linear_kernel(), polynomial_kernel(2), rbf_kernel(0.5)])
def test_kernelised_size_and_dot_are_those_of_kernel_space(kernel):
    good, bad = successors(choice(B, A))[::-1]
    w = Kernelised(kernel)
    delta = w.combine([(good, 1.0), (bad, -1.0)])
    assert w.size(delta) ** 2 == pytest.approx(
        kernel(good.phi(), good.phi())
        - 2.0 * kernel(good.phi(), bad.phi())
        + kernel(bad.phi(), bad.phi())
    )
    w.add(delta, 0.5)
    assert w.dot(delta) == pytest.approx(0.5 * w.size(delta) ** 2)
    assert w.dot(delta) == pytest.approx(w.g(good) - w.g(bad))
    assert w.norm() == pytest.approx(0.5 * w.size(delta))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: polynomial_kernel(0), "degree >= 1 and .*, found 0, 1"),
        *(
            (lambda degree=degree: polynomial_kernel(degree), f"degree >= 1 .* found {degree}, 1")
            for degree in (1.5, math.nan, math.inf)
        ),
        *(
            (lambda c=c: polynomial_kernel(2, constant=c), f"constant >= 0, found 2, {c}")
            for c in (-1.0, math.nan, math.inf)
        ),
        *(
            (lambda gamma=gamma: rbf_kernel(gamma), f"gamma > 0, found {gamma}")
            for gamma in (0.0, -1.0, math.nan, math.inf)
        ),
    ],
)
def test_invalid_kernel_parameters_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
