"""Arc-hybrid parsing: its oracle against brute force, and learning of trees."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import beam, perceptron, restart
from laso.engine import layout as at
from laso.engine.layout import Input
from laso.engine.machine import Machine, all_of, averaged, new_table
from laso.engine.options import options_for
from laso.engine.passes import Plan, Training, train
from laso.tasks.parsing.problem import (
    LEFT,
    N_LABELS,
    NO_HEAD,
    RIGHT,
    ROOT,
    SHIFT,
    Parsing,
    heads_after,
    heads_of,
    is_projective,
    spec_for,
    usual_templates,
)
from tests.engine_inputs import corpus_of, projective
from tests.engine_twins import split

State = tuple[int, ...]
Heads = tuple[int, ...]


def sentence(n: int) -> Input:
    none = np.zeros(0, np.int64)
    return Input(np.zeros((n, 1), np.int32), none, np.zeros(0, np.float32), spec_for([]))


def initial(n: int) -> State:
    limits = np.zeros(5, np.int64)
    Parsing.limits(sentence(n), limits)
    row = np.full(limits[at.STATE_SIZE], 99, np.int32)
    Parsing.initial(sentence(n), row)
    return tuple(row.tolist())


def steps(n: int, state: State) -> Iterator[tuple[int, State]]:
    row = np.array(state, np.int32)
    for label in range(N_LABELS):
        if Parsing.allowed(sentence(n), row, 0, label):
            new = np.full_like(row, 99)
            Parsing.apply(sentence(n), row, 0, label, new)
            yield label, tuple(new.tolist())


def is_goal(n: int, state: State) -> bool:
    return bool(Parsing.is_goal(sentence(n), np.array(state, np.int32)))


def loss(n: int, y: Heads, state: State, label: int) -> float:
    row = np.array(state, np.int32)
    return float(Parsing.loss(sentence(n), np.array(y), row, 0, label, True, True))


def is_good(n: int, y: Heads, state: State, label: int) -> bool:
    return bool(Parsing.is_good(sentence(n), np.array(y), np.array(state, np.int32), 0, label))


@cache
def outputs(n: int, state: State) -> frozenset[Heads]:
    """By brute force: all trees that a state may lead to."""
    if is_goal(n, state):
        return frozenset([tuple(heads_of(state, n))])
    return frozenset().union(*(outputs(n, new) for _, new in steps(n, state)))


@cache
def states(n: int) -> frozenset[State]:
    """By brute force: all states."""
    found, front = {initial(n)}, [initial(n)]
    while front:
        new = [s for _, s in steps(n, front.pop()) if s not in found]
        found.update(new)
        front += new
    return frozenset(found)


def trees(n: int) -> list[Heads]:
    """All projective trees over n words and the root."""

    def rooted(heads: Heads, word: int) -> bool:
        for _ in range(n):
            word = heads[word] if word != ROOT else ROOT
        return word == ROOT

    every = product([ROOT, *range(n)], repeat=n)
    return [h for h in every if all(rooted(h, w) for w in range(n)) and is_projective(h)]


@pytest.mark.parametrize("n", range(6))
def test_the_search_reaches_exactly_the_projective_trees(n):
    assert outputs(n, initial(n)) == set(trees(n))


@pytest.mark.parametrize("n", range(1, 6))
def test_a_step_is_good_if_the_tree_stays_within_reach(n):
    for y in trees(n):
        for state in states(n):
            if y in outputs(n, state):
                for label, new in steps(n, state):
                    assert is_good(n, y, state, label) == (y in outputs(n, new))


def test_steps_that_are_not_valid_are_not_good():
    for state in states(2):
        valid = {label for label, _ in steps(2, state)}
        for y in trees(2):
            good = {label for label in range(N_LABELS) if is_good(2, y, state, label)}
            assert good <= valid


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.data(), st.integers(0, 7))
def test_the_loss_of_a_path_is_the_number_of_wrong_heads(data, n):
    wanted = projective(data.draw, range(n), ROOT)
    y = tuple(wanted[i] for i in range(n))
    state, total = initial(n), 0.0
    labels: list[int] = []
    while not is_goal(n, state):
        label, new = data.draw(st.sampled_from(list(steps(n, state))))
        assert Parsing.key(sentence(n), np.array(state), 0, label) == len(labels) + 1
        total += loss(n, y, state, label)
        labels.append(label)
        state = new
    found = heads_of(state, n)
    assert total == sum(a != b for a, b in zip(found, y, strict=True))
    assert heads_after(labels, n) == found
    assert len(labels) == 2 * n


def test_heads_by_hand():
    # "the dog barks": the <- dog <- barks <- root
    labels = [SHIFT, LEFT, SHIFT, LEFT, SHIFT, LEFT]
    assert heads_after(labels, 3) == [1, 2, ROOT]
    assert heads_after([SHIFT, SHIFT, RIGHT, LEFT], 2) == [ROOT, 0]
    assert heads_after([SHIFT], 2) == [NO_HEAD, NO_HEAD]


def test_projective_by_hand():
    assert is_projective([])
    assert is_projective([1, ROOT, 1])
    assert not is_projective([2, 3, ROOT, ROOT])  # 2 -> 0 crosses 3 -> 1
    assert not is_projective([2, ROOT, 1])  # 2 -> 0 crosses the root's arc to 1


def test_learning_reproduces_the_trees():
    sentences: list[Any] = [
        ([(0, 0), (1, 1), (2, 2)], [1, 2, ROOT]),
        ([(3, 1), (2, 2), (0, 0), (1, 1)], [1, ROOT, 3, 1]),
        ([(2, 2), (3, 1), (4, 3), (0, 0), (5, 1)], [ROOT, 0, 1, 4, 2]),
    ]
    rows, heads = zip(*sentences, strict=True)
    corpus = corpus_of(rows, heads, spec_for(usual_templates(2)), columns=2)
    options = options_for(Parsing, beam(4), perceptron(), restart)
    machine = Machine(Parsing, options)
    training = train(
        machine, corpus, Training(new_table(N_LABELS, dtype=np.float64)), Plan(epochs=20)
    )
    assert training.converged
    found, ends, _ = machine.decode(corpus, all_of(corpus), averaged(training.table))
    labels = [[label for _, label in steps] for steps in split(found, ends)]
    assert [heads_after(path, len(y)) for path, y in zip(labels, heads, strict=True)] == list(heads)
