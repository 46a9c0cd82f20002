"""The lattice against the enumeration of all paths, and against the reference engine's queue."""

import itertools
import math
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso.arow import arow
from laso.engine import kernels, lattice
from laso.engine import layout as at
from laso.engine.epochs import Plan, Training
from laso.engine.lattice.exact import ExactMachine
from laso.engine.machine import all_of, as_names, averaged, grown_table, new_table
from laso.engine.native import compiled
from laso.engine.problem import CompiledProblem
from laso.engine.reference import Reference, exact_queue, input_of, output_of
from laso.errors import LasoError, SearchFailed, Unreachable
from laso.learn import standard
from laso.search import search
from laso.tasks.constraints import Constraints
from laso.tasks.tagging.problem import Tagging
from laso.updates import adagrad, alma, lbfgs, passive_aggressive, perceptron
from laso.vectors import Linear
from tests.lattices import (
    N_LABELS,
    Segments,
    any_corpus,
    corpus_of,
    costly,
    difference,
    empty,
    enumerate_paths,
    examples_of,
    expectation,
    features_of,
    few,
    log_sum,
    quick,
    real,
    same,
    segment_corpora,
    table_of,
    tagging_corpora,
    tagging_spec,
    weights,
)

whole = st.integers(-2, 2).map(float)


# --------------------------------------------------------------------------- search


@quick
@given(st.data(), any_corpus, st.sampled_from([whole, few, real]))
def test_viterbi_and_n_best_are_those_of_all_paths(data, drawn, value):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, value)
    machine, order = ExactMachine(problem), all_of(corpus)
    steps, ends, scores = machine.decode(corpus, order, table_of(w))
    n = data.draw(st.sampled_from([1, 2, 3, 1000]))
    lists = machine.nbest(corpus, order, table_of(w), n)
    for i, paths in enumerate(found):
        by_operators = {tuple(path.operators): path.score(w) for path in paths}
        best = sorted(by_operators.values(), reverse=True)
        decoded = [tuple(step) for step in steps[ends[i - 1] if i else 0 : ends[i]].tolist()]
        assert scores[i] == pytest.approx(best[0], abs=1e-9)
        assert by_operators[tuple(decoded)] == pytest.approx(best[0], abs=1e-9)
        listed = lists.of(i)
        assert [score for score, _ in listed] == pytest.approx(best[:n], abs=1e-9)
        assert listed[0][1] == decoded
        assert len({tuple(operators) for _, operators in listed}) == len(listed)
        for score, operators in listed:
            assert by_operators[tuple(operators)] == pytest.approx(score, abs=1e-9)


@quick
@given(st.data(), tagging_corpora() | segment_corpora(stops=0))
def test_ties_are_broken_as_in_the_exact_queue(data, drawn):
    problem, corpus = drawn
    _, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, few)
    machine, order = ExactMachine(problem), all_of(corpus)
    steps, ends, scores = machine.decode(corpus, order, table_of(w))
    for i in order:
        node = search(
            Reference(problem, N_LABELS), input_of(corpus, i), Linear(w), exact_queue(True)
        )
        assert node is not None
        found = steps[ends[i - 1] if i else 0 : ends[i]].tolist()
        assert [tuple(step) for step in found] == node.operators
        assert scores[i] == node.g


@quick
@given(st.data(), any_corpus)
def test_sums_and_marginals_are_those_of_all_paths(data, drawn):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, real)
    machine, order = ExactMachine(problem), all_of(corpus)
    table = table_of(w)
    got = machine.marginals(corpus, order, table)
    logs = machine.log_likelihood(corpus, order, table)
    for i, paths in enumerate(found):
        log_z = log_sum([path.score(w) for path in paths])
        assert got.log_z[i] == pytest.approx(log_z, abs=1e-9)
        log_good = log_sum([path.score(w) for path in paths if path.good])
        assert logs[i] == pytest.approx(log_good - log_z, abs=1e-9)
        shares: dict[Any, float] = {}
        for path in paths:
            p = math.exp(path.score(w) - log_z)
            for before, after, operator in zip(
                path.keys, path.keys[1:], path.operators, strict=False
            ):
                step = (before, after, *operator)
                shares[step] = shares.get(step, 0.0) + p
        edges: dict[Any, float] = {}
        for e in range(got.ends[i - 1] if i else 0, got.ends[i]):
            step = tuple(int(c[e]) for c in (got.start, got.key, got.group, got.label))
            edges[step] = edges.get(step, 0.0) + got.probability[e]
        assert same(edges, shares)
    if problem is Tagging:
        table_of_labels = machine.label_probabilities(corpus, order, table)
        assert table_of_labels.shape == (len(corpus.items), N_LABELS)
        assert table_of_labels.sum(axis=1) == pytest.approx(np.ones(len(corpus.items)))
        for i in order:
            for e in range(got.ends[i - 1] if i else 0, got.ends[i]):
                table_of_labels[corpus.starts[i] + got.start[e], got.label[e]] -= got.probability[e]
        assert np.abs(table_of_labels).max(initial=0.0) < 1e-9


@quick
@given(st.data(), any_corpus)
def test_sums_stand_scores_of_any_size(data, drawn):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, st.sampled_from([-3000.0, -900.0, 0.0, 0.5, 900.0, 3000.0]))
    got = ExactMachine(problem).marginals(corpus, all_of(corpus), table_of(w))
    for i, paths in enumerate(found):
        assert got.log_z[i] == pytest.approx(log_sum([path.score(w) for path in paths]), rel=1e-12)
        mean = expectation(paths, w)
        steps = sum(p * len(path.operators) for p, path in shares_of(paths, w))
        total = got.probability[got.ends[i - 1] if i else 0 : got.ends[i]].sum()
        assert total == pytest.approx(steps, abs=1e-9)
        assert all(math.isfinite(value) for value in mean.values())


def shares_of(paths, w):
    log_z = log_sum([path.score(w) for path in paths])
    return [(math.exp(path.score(w) - log_z), path) for path in paths]


def test_arrays_grow_for_long_inputs():
    n, labels = 150, 4
    corpus = corpus_of([[0] * n, [1] * n], [[0] * n] * 2, tagging_spec(2, None, labels))
    machine, order = ExactMachine(Tagging), all_of(corpus)
    table = new_table(labels, dtype=np.float64)
    marginals = machine.marginals(corpus, order, table)
    assert marginals.log_z == pytest.approx([n * math.log(labels)] * 2)
    assert marginals.ends[-1] > 1 << 13
    lists = machine.nbest(corpus, order, table, 50)
    assert lists.counts.tolist() == [50, 50]
    assert len({tuple(operators) for _, operators in lists.of(1)}) == 50
    climber = ExactMachine(Tagging, adagrad(batch=2))
    training = climber.fit(corpus, Training(table), Plan(epochs=2, average=False))
    assert machine.log_likelihood(corpus, order, training.table).min() > n * math.log(1 / labels)


def test_a_table_may_grow_within_a_batch():
    rows = [list(range(10 * i, 10 * i + 10)) for i in range(100)]
    corpus = corpus_of(rows, [[word % 3 for word in row] for row in rows], tagging_spec(1))
    machine, plan = ExactMachine(Tagging, adagrad(batch=100)), Plan(epochs=2, average=False)
    small = machine.fit(corpus, Training(empty(machine)), plan).table
    large = grown_table(empty(machine), 1 << 14)
    assert len(large.v) > len(small.v) > len(empty(machine).v)
    large = machine.fit(corpus, Training(large), plan).table
    assert same(as_names(small), as_names(large))
    assert len(as_names(small)) > 3000


def test_threads_change_nothing():
    corpus = examples_of()
    machine = ExactMachine(Tagging)
    table = machine.fit(corpus, Training(empty(machine)), Plan(epochs=2)).table
    order = np.array([5, 0, 1, 7, 2])
    one, three = (machine.nbest(corpus, order, table, 4, threads=n) for n in (1, 3))
    assert [one.of(i) for i in range(5)] == [three.of(i) for i in range(5)]
    for a, b in zip(
        machine.decode(corpus, order, table),
        machine.decode(corpus, order, table, threads=9),
        strict=True,
    ):
        assert a.tolist() == b.tolist()
    nothing = machine.decode(corpus, order[:0], table)
    assert [len(part) for part in nothing] == [0, 0, 0]


# --------------------------------------------------------------------------- learning


@quick
@given(tagging_corpora() | segment_corpora(stops=0), st.integers(0, 3), st.booleans())
def test_exact_learning_is_the_standard_strategy_with_the_exact_queue(drawn, number, by_loss):
    problem, corpus = drawn
    if problem is Tagging:
        corpus = costly(corpus)
    # Without a margin; with one the queue joins good and bad paths and is not exact.
    rules: list[Any] = [
        perceptron,
        partial(alma, alpha=1.0),
        partial(passive_aggressive, margin=0.0),
        partial(arow, margin=0.0, gamma=0.5),
    ]
    rule = rules[number](by_loss=by_loss)
    machine = ExactMachine(problem, rule)
    order = np.tile(all_of(corpus), 4)
    table = empty(machine)
    table, _, wrong = machine.learn(corpus, order, table, machine.new_run(corpus, order, table))
    w: Any = rule.start()
    reference, errors = Reference(problem, N_LABELS), 0
    for i in order:
        before = w.k
        x, y = input_of(corpus, i), output_of(corpus, i)
        w = standard(reference, x, y, w, exact_queue(True), rule)
        w.tick()
        errors += w.k != before
    assert (table.ints[at.GENERATION], wrong) == (w.k, errors)
    assert same(as_names(table), w.weights)
    assert same(as_names(averaged(table)), w.averaged().weights)


@pytest.mark.parametrize("order", [1, 2])
def test_the_first_update_breaks_all_ties_as_the_exact_queue_does(order):
    outputs = [list(y) for y in itertools.product([-1, 0, 1, 2], repeat=3)]
    corpus = corpus_of([[0, 1, 0]] * len(outputs), outputs, tagging_spec(order))
    machine, reference, rule = ExactMachine(Tagging), Reference(Tagging, N_LABELS), perceptron()
    for i in range(len(outputs)):
        change, _ = learned(machine, corpus, i, empty(machine))
        w: Any = rule.start()
        x, y = input_of(corpus, i), output_of(corpus, i)
        w = standard(reference, x, y, w, exact_queue(True), rule)
        assert same(change, w.weights)


def learned(machine, corpus, i, table):
    """The change of weights by one example, and whether there was an update."""
    before = as_names(table)
    order = np.array([i])
    table, _, wrong = machine.learn(corpus, order, table, machine.new_run(corpus, order, table))
    return difference(as_names(table), before), wrong


@quick
@given(st.data(), any_corpus, st.sampled_from([0.0, 0.7, 5.0]))
def test_an_update_needs_a_bad_path_within_the_margin(data, drawn, margin):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, st.floats(-1, 1))
    # No two paths score the same, lest the answer hang on a tie.
    for n, name in enumerate(sorted(w)):
        w[name] += math.sin(n + 1.0) / 10
    machine = ExactMachine(problem, perceptron(margin=margin))
    whole_lattice = ExactMachine(problem, perceptron(margin=margin), expected=True, unseen=True)
    for i, paths in enumerate(found):
        good = max((p for p in paths if p.good), key=lambda p: p.score(w))
        bad = max((p for p in paths if not p.good), key=lambda p: p.score(w), default=None)
        error = bad is not None and bad.score(w) > good.score(w) - margin
        change, wrong = learned(machine, corpus, i, table_of(w, margin=margin))
        assert wrong == error
        assert same(change, difference(good.phi, bad.phi) if error and bad else {})
        change, wrong = learned(whole_lattice, corpus, i, table_of(w, margin=margin))
        assert wrong == error
        goods = expectation([p for p in paths if p.good], w)
        assert same(change, difference(goods, expectation(paths, w)) if error else {}, 1e-6)


@quick
@given(st.data(), any_corpus)
def test_expectations_where_some_paths_are_beyond_the_range_of_floats(data, drawn):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, st.floats(-1, 1))
    for n, name in enumerate(sorted(w)):
        w[name] = 1000.0 * (w[name] + math.sin(n + 1.0) / 10)
    machine = ExactMachine(problem, perceptron(), expected=True, unseen=True)
    for i, paths in enumerate(found):
        goods = [p for p in paths if p.good]
        change, wrong = learned(machine, corpus, i, table_of(w))
        wanted = difference(expectation(goods, w), expectation(paths, w)) if wrong else {}
        assert same(change, wanted, 1e-6)


@quick
@given(any_corpus)
def test_expectations_of_features_seen_on_good_paths_alone(drawn):
    problem, corpus = drawn
    found, _ = features_of(problem, corpus)
    machine = ExactMachine(problem, perceptron(margin=1.0), expected=True)
    for i, paths in enumerate(found):
        goods = [p for p in paths if p.good]
        change, wrong = learned(machine, corpus, i, table_of({}, margin=1.0))
        wanted = difference(expectation(goods, {}), expectation(paths, {})) if wrong else {}
        seen = {key for p in goods for key, _ in p.phi}
        assert same(change, {name: v for name, v in wanted.items() if name[0] in seen}, 1e-6)


@quick
@given(st.data(), any_corpus, st.sampled_from([0.5, 1.0]))
def test_alma_weighs_the_lattice_in_units_of_its_margin(data, drawn, alpha):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    rule = alma(alpha=alpha)
    w = weights(data.draw, keys, st.floats(-1, 1))
    for n, name in enumerate(sorted(w)):
        w[name] += math.sin(n + 1.0) / 10
    length = math.sqrt(sum(value * value for value in w.values())) or 1.0
    w = {name: value / length for name, value in w.items()}
    margin = rule.margin(1)
    assert (margin > 0.0) == (alpha < 1.0)
    machine = ExactMachine(problem, rule, expected=True, unseen=True)
    for i, paths in enumerate(found):
        goods = [p for p in paths if p.good]
        good = max(goods, key=lambda p: p.score(w))
        bad = max((p for p in paths if not p.good), key=lambda p: p.score(w), default=None)
        table = table_of(w, margin=margin)
        table.reals[at.SQUARE] = 1.0
        change, wrong = learned(machine, corpus, i, table)
        assert wrong == (bad is not None and bad.score(w) > good.score(w) - margin)
        if not wrong:
            continue
        assert bad is not None
        delta = difference(good.phi, bad.phi)
        if margin:
            hot = {name: value / margin for name, value in w.items()}
            delta = difference(expectation(goods, hot), expectation(paths, hot))
        twin = Linear(w)
        twin.add(delta, rule.C / max(1.0, twin.size(delta)))
        twin.project()
        assert same(change, difference(twin.weights, w), 1e-6)


def test_a_margin_is_reached_on_separable_data():
    corpus = examples_of()
    machine = ExactMachine(Tagging, perceptron(margin=3.0))
    training = machine.fit(corpus, Training(empty(machine)), Plan(epochs=50))
    assert training.converged
    w = as_names(training.table)
    for i in all_of(corpus):
        paths = enumerate_paths(Tagging, corpus, int(i))
        good = max(path.score(w) for path in paths if path.good)
        assert all(good - path.score(w) >= 3.0 for path in paths if not path.good)


def test_hashed_features_are_learned_alike():
    corpus, rule = examples_of(order=2), perceptron()
    machine = ExactMachine(Tagging, rule)
    table = machine.new_table(N_LABELS, dtype=np.float64, hash_bits=3)
    order = np.tile(all_of(corpus), 3)
    table, _, _ = machine.learn(corpus, order, table, machine.new_run(corpus, order, table))
    w: Any = rule.start()
    reference = Reference(Tagging, N_LABELS, hash_bits=3)
    for i in order:
        x, y = input_of(corpus, i), output_of(corpus, i)
        w = standard(reference, x, y, w, exact_queue(True), rule)
    assert same(as_names(table), w.weights)
    assert table.ints[at.ROWS] <= 8


# --------------------------------------------------------------------------- edges of use


def test_interruption_leaves_usable_weights():
    corpus = examples_of(n=600)

    def interrupt(report):
        if report.example > 256:
            raise KeyboardInterrupt

    for rule in (perceptron(), adagrad()):
        machine = ExactMachine(Tagging, rule)
        training = machine.fit(corpus, Training(empty(machine)), Plan(epochs=3), progress=interrupt)
        assert training.interrupted
        assert training.epoch == 0
        assert training.best is not None
        assert as_names(training.best)
        machine.decode(corpus, all_of(corpus), training.best)

    def at_once(report):
        raise KeyboardInterrupt

    machine = ExactMachine(Tagging, lbfgs())
    fitted = machine.fit(corpus, Training(empty(machine)), Plan(epochs=9), progress=at_once)
    assert fitted.interrupted
    assert fitted.epoch == fitted.best_epoch == 1
    assert not fitted.converged
    assert fitted.best is not None
    assert as_names(fitted.best) == as_names(fitted.table) != {}


def test_errors_say_what_is_wrong():
    corpus = examples_of()
    order = all_of(corpus)

    class NoSignature(Segments):
        signature = CompiledProblem.signature

    with pytest.raises(ValueError, match="NoSignature has no signature"):
        ExactMachine(NoSignature)
    machine = ExactMachine(Tagging)
    with pytest.raises(ValueError, match="n must be at least 1"):
        machine.nbest(corpus, order, empty(machine), 0)
    for bad in ({"rate": 0.0}, {"batch": 0}, {"variance": -1.0}):
        with pytest.raises(ValueError, match="found"):
            adagrad(**bad)
    with pytest.raises(ValueError, match="'some'"):
        lbfgs(support="some")

    never = Constraints(np.ones((N_LABELS + 1, N_LABELS), int), np.array([0, 1, 1]))
    unreachable = corpus_of([[0], [0, 1]], [[1], [1, 0]], tagging_spec(1, never))
    for learn in (
        machine.fit,
        ExactMachine(Tagging, expected=True).fit,
        ExactMachine(Tagging, adagrad()).fit,
    ):
        with pytest.raises(Unreachable, match=r"example 2: the output .* cannot be reached"):
            learn(unreachable, Training(empty(machine)), Plan(epochs=2, seed=None))
    nowhere = Constraints(np.zeros((N_LABELS + 1, N_LABELS), int), np.zeros(N_LABELS, int))
    closed = corpus_of([[], [0]], [[], [1]], tagging_spec(1, nowhere))
    with pytest.raises(SearchFailed, match="input 2: no path"):
        machine.decode(closed, all_of(closed), empty(machine))
    stuck = corpus_of([[0] * 5], [[0] * 5], [2])
    with pytest.raises(LasoError, match="input 1: the key must rise"):
        ExactMachine(Segments).decode(stuck, all_of(stuck), empty(machine))


def test_names_of_the_lattice_do_not_hide_those_of_the_kernels():
    meanings: dict[str, Any] = {}
    for module in lattice.MODULES:
        for name, meaning in vars(module).items():
            if not name.startswith("__"):
                assert meanings.setdefault(name, meaning) is meaning, name
    for package in (kernels, lattice):
        assert package.INLINED | {*package.ENTRY_POINTS} <= {*meanings}
    assert set(compiled(Tagging, exact=True).variant.entry_points) == set(lattice.ENTRY_POINTS)


WITHOUT_JIT = """
import numpy as np, pytest
from tests.test_engine_lattice import *

class Deep(Tagging):
    key = CompiledProblem.key

corpus = examples_of(n=3, length=3)
found, keys = features_of(Deep, corpus)
w = {(key, label): math.sin(key % 11 + label) for key in keys for label in range(N_LABELS)}
machine, order = ExactMachine(Deep), all_of(corpus)
assert not machine.options.keyed
lists = machine.nbest(corpus, order, table_of(w), 5)
marginals = machine.marginals(corpus, order, table_of(w))
logs, slopes = machine.slope(corpus, order, table_of(w))
for i, paths in enumerate(found):
    scores = [path.score(w) for path in paths]
    assert [s for s, _ in lists.of(i)] == pytest.approx(sorted(scores, reverse=True)[:5])
    assert marginals.log_z[i] == pytest.approx(log_sum(scores))
    good = [path.score(w) for path in paths if path.good]
    assert logs[i] == pytest.approx(log_sum(good) - log_sum(scores))
    change, wrong = learned(machine, corpus, i, table_of(w))
    assert wrong == (max(scores) > max(good))
ExactMachine(Deep, adagrad()).fit(
    corpus, Training(machine.new_table(N_LABELS)), Plan(epochs=1)
)
machine = ExactMachine(Tagging)  # has a key
machine.fit(corpus, Training(empty(machine)), Plan(epochs=1))
"""


def test_a_problem_without_a_key_and_without_the_jit():
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_JIT],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
