"""Clustering one by one: its goodness against brute force, and learning of clusters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from laso import alma, beam, restart
from laso.engine.epochs import InTurn, Plan, Training, train
from laso.engine.machine import Machine, all_of, averaged, new_table
from laso.engine.options import options_for
from laso.engine.reference import Reference, State, input_of
from laso.tasks.clustering.problem import Clustering
from tests.engine_inputs import corpus_of
from tests.engine_twins import split


def paths(n: int) -> Iterator[tuple[list[int], list[State]]]:
    """All ways to place n items: the groups chosen, and the states before each choice."""
    problem = Reference(Clustering, 1)
    x = input_of(corpus_of([[[0]] * n], [[]], [0]), 0)
    front: list[tuple[list[int], list[State]]] = [([], [problem.initial(x)])]
    while front:
        groups, states = front.pop()
        if problem.is_goal(x, states[-1]):
            yield groups, states[:-1]
            continue
        for operator in problem.operators(x, states[-1]):
            new = problem.apply(x, states[-1], operator)
            front.append(([*groups, operator[0]], [*states, new]))


@pytest.mark.parametrize("n", range(5))
def test_the_good_path_is_the_one_to_the_clusters_wanted(n):
    x = input_of(corpus_of([[[0]] * n], [[]], [0]), 0)
    every = list(paths(n))
    assert len(every) == len({tuple(groups) for groups, _ in every}) == [1, 1, 2, 5, 15][n]
    for y in product(range(3), repeat=n):
        wanted = [list(dict.fromkeys(y)).index(cluster) for cluster in y]  # by first appearance
        for groups, states in every:
            rows = [np.array(state.row, np.int32) for state in states]
            steps = list(zip(rows, groups, strict=True))
            good = all(Clustering.is_good(x, y, row, group, 0) for row, group in steps)
            loss = sum(Clustering.loss(x, y, row, g, 0, True, False) for row, g in steps)
            assert good == (groups == wanted) == (loss == 0)


def test_learning_reproduces_the_clusters():
    # Items of one cluster have alike vectors; the attribute says nothing.
    vectors = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [1.0, 0.1], [0.1, 0.9], [-1.0, -1.0]]
    order = [[0, 1, 2, 3, 4], [2, 0, 5, 4, 1], [5, 4, 3, 2], [0], []]
    clusters = [0, 0, 1, 0, 1, 2]
    rows = [[(2 * i, k % 2) for k, i in enumerate(items)] for items in order]
    outputs = [[clusters[i] for i in items] for items in order]
    values = [value for vector in vectors for value in vector]
    corpus = corpus_of(rows, outputs, [2], columns=2, values=values)
    machine = Machine(Clustering, options_for(Clustering, beam(2), alma(), restart))
    table = new_table(1, margin=machine.options.margin, dtype=np.float64)
    training = train(InTurn(machine), corpus, Training(table), Plan(epochs=60))
    found, ends, _ = machine.decode(corpus, all_of(corpus), averaged(training.table))
    groups = [[group for group, _ in steps] for steps in split(found, ends)]
    assert groups == [[list(dict.fromkeys(y)).index(c) for c in y] for y in outputs]
