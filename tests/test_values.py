"""Values: equality, hashes, texts that come back, copies, and texts that are refused."""

import copy
import importlib
import math
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import laso
from laso import (
    CRF,
    Chunker,
    Tagger,
    a_star,
    adagrad,
    alma,
    arow,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    closed_set,
    delayed,
    depth,
    depth_first,
    early,
    exact,
    fit,
    greedy,
    hill_climbing,
    lbfgs,
    linear_kernel,
    loss_proportional,
    max_violation,
    only_good,
    own_key,
    own_signature,
    passive_aggressive,
    perceptron,
    polynomial_kernel,
    rbf_kernel,
    restart,
    sgd,
    standard,
    uniform,
    worst,
)
from laso.engine.epochs import Plan
from laso.engine.options import is_exact
from laso.queues import observed
from laso.training import visiting_order
from laso.values import (
    Value,
    named,
    parse,
    unparse,
)
from tests.spaces import Tagging

NAMES = {name: getattr(laso, name) for name in laso.__all__}

STRATEGIES = [restart, early, delayed, standard, max_violation]
WEIGHTINGS = [uniform, loss_proportional, worst]

widths = st.integers(1, 10**30)
positive = st.floats(1e-300, 1e300)
keys = st.sampled_from([depth, own_key])
simple_queues = st.one_of(
    st.sampled_from(
        [
            *(a_star(), best_first(), breadth_first(), depth_first(), greedy(), hill_climbing()),
            exact(),
        ]
    ),
    st.builds(beam, widths, key=keys),
    st.builds(bounded_best_first, widths),
    st.builds(exact, st.just(own_signature), key=st.sampled_from([None, depth, own_key])),
)
queues = st.recursive(
    simple_queues,
    lambda inner: st.one_of(
        st.builds(only_good, inner), st.builds(closed_set, inner, key=st.just(own_signature))
    ),
    max_leaves=4,
)
kernels = st.one_of(
    st.just(linear_kernel()),
    st.builds(polynomial_kernel, st.integers(1, 9), constant=st.floats(0, 1e300)),
    st.builds(rbf_kernel, positive),
)
common: dict[str, Any] = {
    "weighting": st.sampled_from(WEIGHTINGS),
    "kernel": st.none() | kernels,
    "by_loss": st.booleans(),
}
likelihood: dict[str, Any] = {
    "variance": positive | st.just(math.inf),
    "by_loss": st.booleans(),
}
climb: dict[str, Any] = {
    **likelihood,
    "rate": positive,
    "batch": st.integers(1, 1000),
    "support": st.sampled_from(["rows", "lattice"]),
}
updates = st.one_of(
    st.builds(perceptron, margin=st.floats(0, 1e300), **common),
    st.builds(
        alma,
        alpha=st.floats(1e-9, 1),
        B=st.none() | positive,
        C=positive,
        normalize_always=st.booleans(),
        **common,
    ),
    st.builds(alma, p=st.floats(2, 100), weighting=st.sampled_from(WEIGHTINGS)),
    st.builds(passive_aggressive, C=positive | st.just(math.inf), margin=positive, **common),
    st.builds(
        arow,
        variance=positive,
        gamma=positive,
        margin=positive,
        by_loss=st.booleans(),
        weighting=st.sampled_from(WEIGHTINGS),
    ),
    st.builds(sgd, **climb),
    st.builds(adagrad, first=positive, **climb),
    st.builds(
        lbfgs,
        support=st.sampled_from(["rows", "pairs", "lattice"]),
        iterations=st.integers(1, 999),
        tolerance=positive,
        memory=st.integers(1, 99),
        **likelihood,
    ),
)
values = st.one_of(queues, updates, kernels, st.sampled_from([*STRATEGIES, *WEIGHTINGS]), keys)


# Equality and text


@settings(max_examples=300)
@given(values)
@example(beam(5))
@example(lbfgs(variance=math.inf))
def test_the_text_of_a_value_makes_an_equal_one(value):
    for again in (eval(repr(value), dict(NAMES)), parse(repr(value)), parse(unparse(value))):
        assert again == value
        assert hash(again) == hash(value)
        assert repr(again) == repr(value)
        assert type(again) is type(value)


@given(values)
def test_copies_are_equal(value):
    for again in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
        assert again == value
        assert hash(again) == hash(value)


@given(values, values)
def test_equal_values_have_equal_texts(one, other):
    assert (one == other) == (repr(one) == repr(other))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (beam(5), "beam(5)"),
        (beam(5, key=depth), "beam(5, key=depth)"),
        (beam(5, key=own_key), "beam(5, key=own_key)"),
        (greedy(), "beam(1)"),
        (exact(), "exact()"),
        (exact(own_signature), "exact(own_signature)"),
        (bounded_best_first(3), "bounded_best_first(3)"),
        (hill_climbing(), "hill_climbing()"),
        (only_good(beam(2)), "only_good(beam(2))"),
        (
            closed_set(best_first(), key=own_signature),
            "closed_set(best_first(), key=own_signature)",
        ),
        (perceptron(), "perceptron()"),
        (
            perceptron(weighting=worst, margin=1.0),
            "perceptron(weighting=worst, margin=1.0)",
        ),
        (
            alma(alpha=0.5, kernel=polynomial_kernel(2)),
            "alma(alpha=0.5, kernel=polynomial_kernel(2))",
        ),
        (passive_aggressive(C=math.inf), "passive_aggressive(C=float('inf'))"),
        (lbfgs(support="pairs"), "lbfgs(support='pairs')"),
        (adagrad(rate=0.25), "adagrad(rate=0.25)"),
        (sgd(batch=8), "sgd(batch=8)"),
        (linear_kernel(), "linear_kernel()"),
        (rbf_kernel(0.5), "rbf_kernel(0.5)"),
        (restart, "restart"),
        (max_violation, "max_violation"),
        (loss_proportional, "loss_proportional"),
        (own_key, "own_key"),
    ],
)
def test_texts(value, text):
    assert repr(value) == text
    assert unparse(value) == text
    assert parse(text) == value


def test_different_values_differ():
    different = [
        *(beam(5), beam(6), beam(5, key=own_key), bounded_best_first(5), exact(), best_first()),
        *(perceptron(), perceptron(margin=1.0), alma(), sgd(), adagrad(), restart, early, worst),
    ]
    assert len(set(different)) == len(different)
    assert greedy() == beam(1)


def test_functions_of_the_user_are_compared_as_functions_and_print_as_python_prints_them():
    def own(node):
        return 0

    assert beam(5, key=own) == beam(5, key=own) != beam(5, key=lambda node: 0)
    assert repr(beam(5, key=own)) == f"beam(5, key={own!r})"
    assert repr(observed(beam(2), print)) == "observed(beam(2), <built-in function print>)"
    assert hash(exact(own)) == hash(exact(own))


def test_numbers_of_numpy_are_numbers():
    assert beam(np.int64(5)) == beam(5)  # type: ignore[arg-type]
    assert repr(beam(np.int32(5))) == "beam(5)"  # type: ignore[arg-type]
    assert type(bounded_best_first(np.uint8(3)).width) is int  # type: ignore[arg-type]
    assert repr(perceptron(margin=np.float64(0.5))) == "perceptron(margin=0.5)"
    assert repr(sgd(batch=np.int64(8))) == "sgd(batch=8)"  # type: ignore[arg-type]
    assert parse(repr(alma(alpha=np.float32(0.1)))).alpha == np.float32(0.1)  # type: ignore[arg-type]


@pytest.mark.parametrize("width", [0, -1, True, False, 2.0, "3", None, np.True_, np.float64(2)])
@pytest.mark.parametrize("queue", [beam, bounded_best_first])
def test_widths_are_whole_numbers_from_one_up(queue, width):
    with pytest.raises(ValueError, match="the width of a beam must be a whole number from 1 up"):
        queue(width)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: beam(5, key=3),  # type: ignore[arg-type]
        lambda: exact("last"),  # type: ignore[arg-type]
        lambda: exact(len, key=3),  # type: ignore[arg-type]
        lambda: closed_set(5, key=len),  # type: ignore[arg-type]
        lambda: closed_set(beam(5), key="x"),  # type: ignore[arg-type]
        lambda: only_good(None),  # type: ignore[arg-type]
        lambda: observed(beam(5), None),  # type: ignore[arg-type]
    ],
)
def test_functions_are_asked_for_where_they_are_needed(wrong):
    with pytest.raises(ValueError, match="must be callable, found"):
        wrong()


def test_no_key_is_the_depth():
    assert beam(5, key=None) == beam(5)
    with pytest.raises(ValueError, match="a key of your own needs a signature too"):
        exact(key=depth)


def test_values_cannot_be_changed():
    for value in (beam(5), perceptron(), restart, worst, polynomial_kernel(2)):
        assert is_dataclass(value)
        name = fields(value)[0].name
        with pytest.raises(FrozenInstanceError):
            setattr(value, name, 1)


def test_named_functions_keep_what_they_say_of_themselves():
    for function in (*STRATEGIES, *WEIGHTINGS, depth, own_key, own_signature):
        assert function.__name__ == repr(function)
        assert function.__doc__
        assert getattr(importlib.import_module(function.__module__), repr(function)) is function


def test_named_functions_are_called_like_functions():
    @named
    def added(a: int, *, b: int = 1) -> int:
        """A sum."""
        return a + b

    assert (added(1), added(1, b=2), repr(added)) == (2, 3, "added")


def test_values_of_the_user():
    @dataclass(frozen=True, repr=False)
    class Limited(Value):
        steps: int = 3
        queue: Any = None

    assert repr(Limited()) == "Limited()"
    assert repr(Limited(4, beam(5))) == "Limited(4, beam(5))"
    assert repr(Limited(queue=beam(5))) == "Limited(queue=beam(5))"
    with pytest.raises(ValueError, match=r"found Limited\(4\), which cannot be saved"):
        unparse(Limited(4))


def test_only_exact_search_of_a_compiled_problem_is_exact_for_the_engine():
    assert is_exact(exact())
    for queue in (exact(len), beam(5), greedy(), only_good(exact())):
        assert not is_exact(queue)


def test_estimators_print_and_compare_values():
    assert repr(Tagger(queue=beam(3), strategy=early)) == "Tagger(queue=beam(3), strategy=early)"
    assert Chunker(queue=beam(5)).get_params()["queue"] == beam(5)
    assert "update=" not in repr(CRF())


# One order of examples


@given(st.integers(0, 50), st.none() | st.integers(0, 9), st.integers(1, 5))
def test_both_engines_visit_examples_in_the_same_order(n, seed, epoch):
    order = visiting_order(n, seed, epoch)
    assert Plan(seed=seed).order(epoch, n).tolist() == order
    assert sorted(order) == list(range(n))


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_fit_visits_examples_in_this_order(seed):
    visited: list[int] = []

    def strategy(problem, x, y, w, queue, update):
        visited.append(x)
        w.k += 1
        return w

    data = [(n, None) for n in range(9)]
    fit(Tagging(), data, update=perceptron(), seed=seed, epochs=3, strategy=strategy)
    assert visited == [i for epoch in (1, 2, 3) for i in visiting_order(9, seed, epoch)]


def test_the_order_is_the_one_that_saved_trainings_go_on_with():
    assert visiting_order(8, 0, 1) == [6, 1, 0, 2, 3, 4, 5, 7]
