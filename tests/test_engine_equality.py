"""The compiled engine equals the reference engine: nodes, updates, weights, averages, outputs."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from laso import (
    Unreachable,
    beam,
    best_siblings,
    delayed,
    early,
    perceptron,
    restart,
    search,
    standard,
    training,
)
from laso.engine import step_length
from laso.engine.costs import with_costs
from laso.engine.layout import TICKS
from laso.engine.machine import averaged
from laso.engine.reference import Reference, input_of, output_of
from laso.estimators.learning.class_weights import reads_costs
from tests.engine_inputs import INSIDE, TASKS, Segmenting, Task, corpus_of, tagging_corpora
from tests.engine_twins import (
    QUEUES,
    STRATEGIES,
    UPDATES,
    WEIGHTINGS,
    Twins,
    queues_of,
    some_of_each,
    split,
    tolerance_of,
)

TAGGING, PARSING, CLUSTERING, SEGMENTING, _, JOINT = TASKS[:6]
DENSE = TASKS[6:]
EXACT = [task for task in TASKS if not task.tolerance and task is not CLUSTERING]


def few(examples: int) -> settings:
    return settings(
        deadline=None,
        derandomize=True,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.__name__)
@pytest.mark.parametrize(
    ("task", "queue"), [(task, queue) for task in EXACT for queue in queues_of(task)], ids=str
)
def test_every_queue_and_strategy(task: Task, queue: str, strategy):
    # The first example is the smallest there is; the second has a corpus of its own per update.
    @few(2)
    @given(corpora=st.lists(task.corpora, min_size=len(UPDATES), max_size=len(UPDATES)))
    def same(corpora):
        for update, corpus in zip(UPDATES, corpora, strict=True):
            for weighting in WEIGHTINGS:
                rule = update(weighting=weighting)
                tolerance = tolerance_of(task, rule, strategy)
                twins = Twins(task, corpus, QUEUES[queue], rule, strategy, tolerance=tolerance)
                # What is too close to compare is passed over, not all that was drawn.
                with contextlib.suppress(UnsatisfiedAssumption):
                    twins.compare()

    same()


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_the_default_margin_is_the_same(task: Task):
    @given(task.corpora)
    @few(10)
    def check(corpus):
        reference = Reference(task.problem, task.n_labels)
        pairs = [(input_of(corpus, i), output_of(corpus, i)) for i in range(len(corpus.starts) - 1)]
        plain = training.mean_step_length(reference, pairs)
        assert plain == step_length.mean_step_length(task.problem, corpus, task.n_labels)

    check()


@pytest.mark.parametrize("task", [TAGGING, SEGMENTING, JOINT], ids=str)
def test_dropout(task: Task):
    @few(20)
    @given(task.corpora, st.sampled_from(some_of_each(task)))
    def same(corpus, choice):
        tolerance = max(task.tolerance, tolerance_of(task, *choice[1:]))
        twins = Twins(task, corpus, *choice, tolerance=tolerance, dropout=0.4)
        twins.compare()

    same()


@pytest.mark.parametrize("task", [JOINT, CLUSTERING, *DENSE], ids=str)
def test_factors_and_vectors(task: Task):
    @few(60)
    @given(task.corpora, st.sampled_from(some_of_each(task)))
    def same(corpus, choice):
        tolerance = max(task.tolerance, tolerance_of(task, *choice[1:]))
        Twins(task, corpus, *choice, tolerance=tolerance).compare()

    same()


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_steps_as_long_as_the_loss(task: Task):
    @few(60)
    @given(
        task.corpora,
        st.sampled_from(some_of_each(task)),
        st.lists(st.sampled_from([0.25, 1.0, 3.0]), min_size=9, max_size=9),
    )
    def same(corpus, choice, weights):
        queue, rule, strategy = choice
        if reads_costs(task.problem):
            labels = list("abcdefghi")[: task.n_labels]
            costs = dict(zip(labels, weights, strict=False))
            corpus = with_costs(corpus, labels, costs)
        by_loss = replace(rule, by_loss=True)
        Twins(task, corpus, queue, by_loss, strategy, tolerance=1e-9).compare()

    same()


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_hashed_features(task: Task):
    @few(40)
    @given(task.corpora, st.sampled_from(some_of_each(task)), st.integers(1, 4))
    def same(corpus, choice, bits):
        table = Twins(task, corpus, *choice, tolerance=1e-9).compare(hash_bits=bits)
        assert np.count_nonzero(table.slots[:, 1]) <= 2**bits

    same()


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_sparse_rows(task: Task):
    @few(40)
    @given(task.corpora, st.sampled_from(some_of_each(task)), st.booleans())
    def same(corpus, choice, small):
        Twins(task, corpus, *choice, tolerance=1e-9, sparse=True).compare(small=small)

    same()


@pytest.mark.parametrize("task", [PARSING, SEGMENTING], ids=str)
def test_few_siblings(task: Task):
    @few(60)
    @given(
        task.corpora,
        st.sampled_from([QUEUES[queue] for queue in queues_of(task)]),
        st.sampled_from(WEIGHTINGS),
        st.sampled_from([restart, early, delayed]),
        st.integers(1, 3),
    )
    def same(corpus, queue, weighting, strategy, keep):
        rule = perceptron(weighting=weighting)
        Twins(task, corpus, queue, rule, best_siblings(keep, strategy), tolerance=1e-9).compare()

    same()


@few(40)
@given(tagging_corpora(unique=False), st.sampled_from(some_of_each(TAGGING)))
def test_a_feature_twice_in_one_step(corpus, choice):
    Twins(TAGGING, corpus, *choice, tolerance=1e-9).compare()


@few(40)
@given(TAGGING.corpora, st.sampled_from(some_of_each(TAGGING, STRATEGIES[:2])))
def test_single_precision_is_close(corpus, choice):
    Twins(TAGGING, corpus, *choice, tolerance=1e-4, dtype=np.float32).compare()


@few(20)
@given(TAGGING.corpora)
def test_single_precision_is_exact_where_weights_are_whole_numbers(corpus):
    tables = []
    for dtype in (np.float32, np.float64):
        rule = perceptron(weighting=WEIGHTINGS[2])
        twins = Twins(TAGGING, corpus, beam(2), rule, STRATEGIES[0], dtype=dtype)
        table, run = twins.begin()
        table, run, _ = twins.machine.learn(corpus, np.arange(len(corpus.starts) - 1), table, run)
        tables.append(table)
    single, double = tables
    assert np.array_equal(single.v, double.v)
    assert np.allclose(averaged(single).v, averaged(double).v, rtol=1e-6)


@pytest.mark.parametrize("queue", queues_of(SEGMENTING))
def test_ties_go_to_the_earlier_node(queue: str):
    # Without an update all scores are zero, so the order of dequeuing is that of insertion.
    corpus = corpus_of([[[0]] * 5], [[0, 0, 0, 0, 0]], [0])
    twins = Twins(SEGMENTING, corpus, QUEUES[queue], perceptron(), standard)
    table, _ = twins.begin()
    steps, ends, _ = twins.machine.decode(corpus, np.array([0]), table)
    x, w = input_of(corpus, 0), perceptron().start()
    goal = search(Reference(Segmenting, 2), x, w, QUEUES[queue])
    assert goal is not None
    assert split(steps, ends) == [goal.operators]


@pytest.mark.parametrize("strategy", STRATEGIES[:2])
def test_both_refuse_an_output_out_of_reach(strategy):
    # No segment may end before INSIDE, and the only one long enough may not have label 1.
    corpus = corpus_of([[[0]], [[0]] * 3], [[1], [1, INSIDE, INSIDE]], [0])
    twins = Twins(SEGMENTING, corpus, beam(2), perceptron(), strategy)
    table, run = twins.begin()
    with pytest.raises(Unreachable, match=r"example 2: the output .* cannot be reached"):
        twins.machine.learn(corpus, np.array([0, 1]), table, run)
    table, run, wrong = twins.machine.learn(corpus, np.array([0]), table, run)  # as if nothing were
    assert (wrong, table.ints[TICKS]) == (0, 2)
    with pytest.raises(Unreachable):
        strategy(
            Reference(Segmenting, 2),
            input_of(corpus, 1),
            output_of(corpus, 1),
            perceptron().start(),
            beam(2),
            perceptron(),
        )
