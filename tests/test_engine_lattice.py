"""The lattice against the enumeration of all paths, and against the reference engine's queue."""

import itertools
import math
import os
import subprocess
import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso.arow import arow
from laso.engine import kernels, lattice
from laso.engine import layout as at
from laso.engine.costs import with_costs
from laso.engine.exact import ExactMachine
from laso.engine.hashing import mix
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS, Dataset
from laso.engine.machine import all_of, as_names, averaged, grown_table, new_table
from laso.engine.native import compiled
from laso.engine.objective import in_threads
from laso.engine.passes import Plan, Training
from laso.engine.problem import CompiledProblem
from laso.engine.reference import Reference, exact_queue, input_of, output_of
from laso.engine.slots import placed
from laso.errors import LasoError, SearchFailed, Unreachable
from laso.features.windows import LABEL_ATOM
from laso.learn import standard
from laso.search import search
from laso.tasks.constraints import Constraints
from laso.tasks.tagging.problem import Tagging, make_spec
from laso.updates import adagrad, alma, lbfgs, passive_aggressive, perceptron, sgd
from laso.vectors import Linear

N_LABELS = 3
LONGEST, STOP = 3, 2
quick = settings(deadline=None, derandomize=True, max_examples=30)


class Segments(CompiledProblem):
    """Cut a sequence into labelled segments of at most three items.

    Validity   a segment ends within the sequence, the longest has not label 1; if spec[0] says so,
               label 2 is a dead end unless it comes in the first group: then it ends the output
    Goodness   it begins where one is wanted and has the label wanted (-1: any), and likewise ends
    Action     go on behind the segment
    """

    weighted = True

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE] = 3
        out[MAX_GROUPS] = LONGEST
        out[MAX_FEATURES] = 4
        out[BLOCKS] = LONGEST * x.items.shape[0]
        out[STEPS] = x.items.shape[0]

    @staticmethod
    def initial(x, state):
        state[0] = 0
        state[1] = -1
        state[2] = 0

    @staticmethod
    def groups(x, state, out):
        if state[2] == 2:
            return 0
        n = min(LONGEST, x.items.shape[0] - state[0])
        for i in range(n):
            out[i] = n - i
        return n

    @staticmethod
    def block(x, state, group):
        return LONGEST * state[0] + group - 1 if group != 2 else -1

    @staticmethod
    def sub_block(x, block, i):
        return block - 1 - i if i < block % LONGEST else -1  # all shorter segments

    @staticmethod
    def block_features(x, block, out):
        first, more = block // LONGEST, block % LONGEST
        out.keys[0] = mix(1, x.items[first, 0])
        out.values[0] = 1.0
        out.keys[1] = mix(mix(2, more), x.items[first + more, 0])
        out.values[1] = 0.5 * more
        return 2

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(3, state[1])
        out.values[0] = 1.0
        if state[1] < 0:
            return 1
        out.keys[1] = mix(4, group)
        out.values[1] = -1.0
        return 2

    @staticmethod
    def allowed(x, state, group, label):
        return (group < LONGEST or label != 1) and (x.spec[0] != 0 or label != STOP)

    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + group
        new[1] = label
        new[2] = 0
        if label == STOP:
            new[2] = 1 if group == 1 else 2

    @staticmethod
    def is_goal(x, state):
        return state[2] == 1 or (state[2] == 0 and state[0] == x.items.shape[0])

    @staticmethod
    def is_good(x, y, state, group, label):
        end = state[0] + group
        for i in range(state[0] + 1, end):
            if y[i] >= 0:
                return False
        if end < x.items.shape[0] and y[end] == -2:
            return False
        return label != STOP and y[state[0]] in (-1, label)

    @staticmethod
    def key(x, state, group, label):
        return state[0] + group if x.spec[0] < 2 else 1  # 2: a key that does not rise

    @staticmethod
    def signature(x, state, group, label):
        return 2 * label + (group == 1 or label != STOP)


@dataclass
class OnePath:
    operators: list[tuple[int, int]]
    phi: dict[Any, float]
    good: bool
    keys: list[int]

    def score(self, w):
        return sum(w.get(name, 0.0) * value for name, value in self.phi.items())


def enumerate_paths(problem, corpus, i, hash_bits=0):
    """All paths of an input, by the reference engine's view of the problem."""
    reference, x, y = Reference(problem, N_LABELS, hash_bits=hash_bits), None, None
    x, y = input_of(corpus, i), output_of(corpus, i)
    paths = []

    def go(state, path):
        if reference.is_goal(x, state):
            paths.append(path)
            return
        row = np.array(state.row, np.int32)
        for operator in reference.operators(x, state):
            new = reference.apply(x, state, operator)
            phi = dict(path.phi)
            for name, value in reference.features(x, state, operator).items():
                phi[name] = phi.get(name, 0.0) + value
            good = path.good and bool(problem.is_good(x, y, row, *operator))
            go(new, OnePath([*path.operators, operator], phi, good, [*path.keys, new.key]))

    go(reference.initial(x), OnePath([], {}, True, [0]))
    return paths


def log_sum(scores):
    top = max(scores)
    return top + math.log(sum(math.exp(s - top) for s in scores))


def expectation(paths, w):
    total = log_sum([path.score(w) for path in paths])
    mean: dict[Any, float] = {}
    for path in paths:
        p = math.exp(path.score(w) - total)
        for name, value in path.phi.items():
            mean[name] = mean.get(name, 0.0) + p * value
    return mean


def difference(a, b):
    return {name: a.get(name, 0.0) - b.get(name, 0.0) for name in {*a, *b}}


def same(a, b, tolerance=1e-9):
    return all(abs(a.get(name, 0.0) - b.get(name, 0.0)) < tolerance for name in {*a, *b})


def table_of(w, *, margin=0.0, dtype=np.float64):
    """A table with the weights given by (key, label)."""
    table = new_table(N_LABELS, margin=margin, dtype=dtype)
    keys = sorted({key for key, _ in w})
    assert len(keys) <= len(table.v)
    entries = np.array([[key, row + 1] for row, key in enumerate(keys)], np.int64).reshape(-1, 2)
    table.slots[:] = placed(entries, len(table.slots))
    table.ints[at.ROWS] = len(keys)
    for (key, label), value in w.items():
        table.v[keys.index(key), label] = value
    return table


def empty(machine):
    return machine.new_table(N_LABELS, dtype=np.float64)


def corpus_of(rows, outputs, spec):
    starts = np.cumsum([0, *map(len, rows)])
    items = np.array([row for one in rows for row in one], np.int32).reshape(-1, 1)
    flat = np.array([y for one in outputs for y in one], np.int32)
    empty = np.zeros(0, np.int64), np.zeros(0, np.float32)
    return Dataset(items, starts, *empty, np.array(spec, np.int64), flat, starts)


def tagging_spec(order, constraints=None, n_labels=N_LABELS, longest=5):
    word, before = [(0, 0)], [(LABEL_ATOM, -1)]
    further = [(LABEL_ATOM, -order), (0, 0)]
    templates = [(1, word), (2, [(0, -1), (0, 1)]), (3, before), (4, further)]
    return make_spec(n_labels, templates, constraints=constraints, longest=longest)


def words(draw, most=5):
    sizes = draw(st.lists(st.integers(0, most), min_size=1, max_size=3))
    return [[draw(st.integers(0, 2)) for _ in range(size)] for size in sizes]


@st.composite
def tagging_corpora(draw):
    rows = words(draw, 4)
    order = draw(st.integers(1, 2))
    constraints = None
    if draw(st.booleans()):
        flags = st.lists(st.booleans(), min_size=N_LABELS - 1, max_size=N_LABELS - 1)
        follow = [[True, *draw(flags)] for _ in range(N_LABELS + 1)]  # label 0 is always allowed
        end = [True, *draw(flags)]
        constraints = Constraints(np.array(follow), np.array(end))
    outputs = []
    for row in rows:
        tags: list[int] = []
        for i in range(len(row)):
            choices = list(range(N_LABELS))
            if constraints is not None:
                before = tags[-1] + 1 if tags else 0
                choices = [
                    label
                    for label in choices
                    if constraints.follow[before, label]
                    and (i + 1 < len(row) or constraints.end[label])
                ]
            tags.append(draw(st.sampled_from(choices)))
        # Label 0 is allowed after and before every other, so that any label may be unknown.
        outputs.append(
            [-1 if tag == 0 and draw(st.booleans()) else tag for tag in tags]
            if constraints is not None
            else [draw(st.sampled_from([tag, tag, -1])) for tag in tags]
        )
    return Tagging, corpus_of(rows, outputs, tagging_spec(order, constraints))


@st.composite
def segment_corpora(draw, stops=None):
    rows = words(draw)
    outputs = []
    for row in rows:
        y: list[int] = []
        while len(y) < len(row):
            length = draw(st.integers(1, min(LONGEST, len(row) - len(y))))
            label = draw(st.integers(0, 1)) if length < LONGEST else 0
            y += [label, *[-2] * (length - 1)]
        outputs.append([draw(st.sampled_from([tag, tag, -1])) for tag in y])
    stop = draw(st.integers(0, 1)) if stops is None else stops
    return Segments, corpus_of(rows, outputs, [stop])


any_corpus = tagging_corpora() | segment_corpora()


def features_of(problem, corpus):
    """All names of features that the paths of a corpus have, and those of whole rows."""
    found = [enumerate_paths(problem, corpus, int(i)) for i in all_of(corpus)]
    keys = sorted({key for paths in found for path in paths for key, _ in path.phi})
    return found, keys


def weights(draw, keys, value):
    return {(key, label): draw(value) for key in keys for label in range(N_LABELS)}


whole = st.integers(-2, 2).map(float)
few = st.integers(0, 1).map(float)  # many ties
real = st.floats(-2, 2).map(lambda value: value + math.pi / 1e4)


def examples_of(order=1, seed=0, n=8, length=4):
    """A small corpus to learn from, the same every time."""
    rng = np.random.default_rng(seed)
    rows = [rng.integers(0, 3, length).tolist() for _ in range(n)]
    outputs = [[int(w) if rng.random() < 0.8 else -1 for w in row] for row in rows]
    return corpus_of(rows, outputs, tagging_spec(order))


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


def costly(corpus):
    """Labels cost differently much to miss."""
    return with_costs(corpus, Tagging.costs, "abc", {"a": 0.5, "c": 4.0})


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


# --------------------------------------------------------------------------- likelihood


@settings(quick, max_examples=15)
@given(st.data(), any_corpus)
def test_the_gradient_is_that_of_the_likelihood(data, drawn):
    problem, corpus = drawn
    found, keys = features_of(problem, corpus)
    w = weights(data.draw, keys, real)
    machine, order, table = ExactMachine(problem), all_of(corpus), table_of(w)
    logs, slopes = machine.slope(corpus, order, table)
    assert logs == pytest.approx(machine.log_likelihood(corpus, order, table))
    assert slopes.shape == (table.ints[at.ROWS], N_LABELS)
    step = 1e-5
    for row, label in np.ndindex(slopes.shape):
        values = []
        for sign in (1.0, -1.0):
            table.v[row, label] += sign * step
            values.append(machine.log_likelihood(corpus, order, table).sum())
            table.v[row, label] -= sign * step
        numeric = (values[0] - values[1]) / (2 * step)
        assert slopes[row, label] == pytest.approx(numeric, abs=1e-6)
    # The same from all paths: expectation over the good ones less that over all.
    total: dict[Any, float] = {}
    for paths in found:
        change = difference(expectation([p for p in paths if p.good], w), expectation(paths, w))
        for name, value in change.items():
            total[name] = total.get(name, 0.0) + value
    assert same(as_names(table._replace(v=_rows_like(table, slopes))), total)


@settings(quick, max_examples=10)
@given(st.data(), st.lists(st.integers(0, N_LABELS - 1), min_size=1, max_size=4))
def test_the_likelihood_by_loss_makes_paths_heavier_that_leave_the_good_one(data, y):
    corpus = costly(corpus_of([[i % 2 for i in range(len(y))]], [y], tagging_spec(1)))
    found, keys = features_of(Tagging, corpus)
    w = weights(data.draw, keys, real)
    machine, order, table = ExactMachine(Tagging, adagrad(by_loss=True)), np.array([0]), table_of(w)
    logs, slopes = machine.slope(corpus, order, table)
    costs, totals, phis = [0.5, 1.0, 4.0], [], []
    for path in found[0]:
        labels = [label for _, label in path.operators]
        left = [
            math.log(costs[y[i]])
            for i in range(len(y))
            if labels[i] != y[i] and (i == 0 or labels[i - 1] == y[i - 1])
        ]
        totals.append(path.score(w) + sum(left))
        phis.append(path.phi)
    (good,) = [path for path in found[0] if path.good]
    assert logs == pytest.approx([good.score(w) - log_sum(totals)])
    expected = dict(good.phi)
    for total, phi in zip(totals, phis, strict=True):
        for name, value in phi.items():
            p = math.exp(total - log_sum(totals))
            expected[name] = expected.get(name, 0.0) - p * value
    assert same(as_names(table._replace(v=_rows_like(table, slopes))), expected)
    # The probability that users see is that of the model, whatever it was learned by.
    assert machine.log_likelihood(corpus, order, table) == pytest.approx(
        ExactMachine(Tagging).log_likelihood(corpus, order, table)
    )


def _rows_like(table, values):
    full = np.zeros_like(table.v)
    full[: len(values)] = values
    return full


def test_rows_that_a_table_lacks_are_left_out_of_the_gradient():
    corpus = examples_of()
    machine, order = ExactMachine(Tagging), all_of(corpus)
    _, keys = features_of(Tagging, corpus)
    w = {(key, label): 0.1 * label for key in keys for label in range(N_LABELS)}
    few = {name: value for name, value in w.items() if name[0] in keys[::2]}
    _, slopes = machine.slope(corpus, order, table_of(few))
    full = {name: value for name, value in w.items() if name in few} | {
        name: 0.0 for name in w if name not in few
    }
    _, all_slopes = machine.slope(corpus, order, table_of(full))
    assert slopes == pytest.approx(all_slopes[::2])


@pytest.mark.parametrize("support", ["rows", "pairs", "lattice"])
def test_lbfgs_reaches_a_stationary_point(support):
    corpus = examples_of()
    rule = lbfgs(variance=2.0, support=support, tolerance=1e-7)
    machine, order = ExactMachine(Tagging, rule), all_of(corpus)
    reports: list[Any] = []
    fitted = machine.fit(
        corpus, Training(empty(machine)), Plan(epochs=200), progress=reports.append
    )
    assert fitted.converged
    assert not fitted.interrupted
    logs, slopes = machine.slope(corpus, order, fitted.table)
    w = fitted.table.v[: len(slopes)]
    rest = slopes - w / 2.0
    seen = seen_on_good_paths(corpus)
    names = rows_by_key(fitted.table)
    if support == "pairs":
        chosen = np.zeros(w.shape, bool)
        for key, label in seen:
            chosen[names[key], label] = True
        assert not w[~chosen].any()
        rest = rest[chosen]
    elif support == "rows":
        assert set(names) == {key for key, _ in seen}
    else:
        assert set(names) == set(features_of(Tagging, corpus)[1])
    assert np.abs(rest).max() < 1e-5
    objective = (logs.sum() - (w**2).sum() / 4.0) / len(order)
    reached = [report.objective for report in reports]
    assert reached[-1] == pytest.approx(objective)
    assert len(reports) == fitted.epoch
    assert reached == sorted(reached)


def seen_on_good_paths(corpus):
    return {
        name
        for i in all_of(corpus)
        for path in enumerate_paths(Tagging, corpus, int(i))
        if path.good
        for name in path.phi
    }


def rows_by_key(table):
    return {int(key): int(row) - 1 for key, row in table.slots[table.slots[:, 1] != 0]}


def test_weights_from_before_stay_variable_with_pairs():
    corpus = examples_of()
    machine, order = ExactMachine(Tagging), all_of(corpus)
    seen = seen_on_good_paths(corpus)
    unseen = [(key, label) for key, _ in seen for label in range(N_LABELS)]
    name = min(name for name in unseen if name not in seen)
    table = table_of({name: 3.0})
    rule = lbfgs(support="pairs")
    fitted = ExactMachine(Tagging, rule).fit(corpus, Training(table), Plan(epochs=200))
    _, slopes = machine.slope(corpus, order, fitted.table)
    row = rows_by_key(fitted.table)[name[0]]
    weight = fitted.table.v[row, name[1]]
    assert weight != 3.0
    assert slopes[row, name[1]] == pytest.approx(weight / 10.0, abs=1e-4)


def test_lbfgs_is_the_same_in_threads_and_from_any_start():
    corpus = examples_of()
    machine = ExactMachine(Tagging, lbfgs(variance=2.0, tolerance=1e-8))
    plan = Plan(epochs=200)
    one = machine.fit(corpus, Training(machine.new_table(N_LABELS)), plan)
    assert one.table.v.dtype == np.float32
    two = machine.fit(corpus, Training(machine.new_table(N_LABELS)), plan, evaluator=in_threads(2))
    start = ExactMachine(Tagging).fit(corpus, Training(empty(machine)), Plan(epochs=1)).table
    three = machine.fit(corpus, Training(start), plan)
    for other in (two, three):
        assert same(as_names(one.table), as_names(other.table), 1e-4)


@dataclass
class Twin:
    """The stochastic steps in plain Python, on all weights by name."""

    climb: Any
    examples: int
    w: dict[Any, float]
    squares: dict[Any, float]
    clocks: dict[int, float]
    clock: float = 0.0
    steps: int = 0
    seen: set[int] = field(default_factory=set)

    @property
    def adaptive(self):
        return isinstance(self.climb, adagrad)

    def step(self, batch):
        c = self.climb
        slope: dict[Any, float] = {}
        for paths in batch:
            change = difference(
                expectation([p for p in paths if p.good], self.w), expectation(paths, self.w)
            )
            self.seen |= {key for p in paths if p.good for key, _ in p.phi}
            for name, value in change.items():
                if c.support == "lattice" or name[0] in self.seen:
                    slope[name] = slope.get(name, 0.0) + value / len(batch)
        prior = 1.0 / (c.variance * self.examples)
        rate = c.rate if self.adaptive else c.rate / (1.0 + c.rate * prior * self.steps)
        self.clock += rate
        self.steps += 1
        for key in {key for key, _ in slope}:
            missed = (self.clock - self.clocks.get(key, 0.0)) * prior
            self.clocks[key] = self.clock
            for label in range(N_LABELS):
                name = key, label
                size = 1.0
                if self.adaptive:
                    self.squares[name] = self.squares.get(name, 0.0) + slope.get(name, 0.0) ** 2
                    size = math.sqrt(c.first + self.squares[name])
                self.w[name] = (
                    self.w.get(name, 0.0) / (1.0 + missed / size)
                    + rate * slope.get(name, 0.0) / size
                )

    def settle(self):
        for name in self.w:
            size = math.sqrt(self.climb.first + self.squares[name]) if self.adaptive else 1.0
            missed = (self.clock - self.clocks[name[0]]) / (self.climb.variance * self.examples)
            self.w[name] /= 1.0 + missed / size
        self.clocks = dict.fromkeys(self.clocks, self.clock)


@pytest.mark.parametrize("make", [sgd, adagrad])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("variance", "support"), [(0.5, "rows"), (math.inf, "lattice")])
def test_stochastic_steps_are_those_of_a_plain_twin(make, batch, variance, support):
    corpus = examples_of(order=2)
    climb = make(rate=0.4, variance=variance, batch=batch, support=support)
    machine, n = ExactMachine(Tagging, climb), len(corpus.starts) - 1
    plan = Plan(epochs=3, average=False)
    training = machine.fit(corpus, Training(empty(machine)), plan)
    found, _ = features_of(Tagging, corpus)
    twin = Twin(climb, n, {}, {}, {})
    for epoch in range(1, 4):
        order = plan.order(epoch, n)
        for first in range(0, n, batch):
            twin.step([found[i] for i in order[first : first + batch]])
        twin.settle()
    assert training.table.ints[at.GENERATION] - 1 == twin.steps
    assert training.best is not None
    assert same(as_names(training.best), twin.w, 1e-8)
    if support == "rows":
        assert {key for key, _ in as_names(training.best)} <= twin.seen


@pytest.mark.parametrize("make", [sgd, adagrad])
def test_averaged_weights_are_the_mean_over_the_steps(make):
    corpus = examples_of()
    climb, n = make(rate=0.3, variance=math.inf), len(corpus.starts) - 1
    machine, plan = ExactMachine(Tagging, climb), Plan(epochs=2)

    def fitted(average):
        plan = Plan(epochs=2, average=average)
        return machine.fit(corpus, Training(empty(machine)), plan)

    found, _ = features_of(Tagging, corpus)
    twin = Twin(climb, n, {}, {}, {})
    total: dict[Any, float] = {}
    for epoch in (1, 2):
        for i in plan.order(epoch, n):
            twin.step([found[i]])
            for name, value in twin.w.items():
                total[name] = total.get(name, 0.0) + value / (2 * n)
    assert same(as_names(fitted(True).best), total, 1e-8)
    assert same(as_names(fitted(False).best), twin.w, 1e-8)


def test_climbing_goes_on_from_the_weights_and_not_from_their_average():
    corpus = examples_of()
    machine = ExactMachine(Tagging, alma())
    table = machine.fit(corpus, Training(empty(machine)), Plan(epochs=2)).table
    assert table.ints[at.TICKS] > 0
    before = as_names(table)
    climber = ExactMachine(Tagging, sgd(rate=1e-9, variance=math.inf))
    training = climber.fit(corpus, Training(table), Plan(epochs=1, average=False))
    assert training.best is not None
    assert same({k: v for k, v in as_names(training.best).items() if k in before}, before, 1e-6)
    length = sum(value * value for value in before.values())
    assert training.table.reals[at.SQUARE] == pytest.approx(length, abs=1e-6)


def test_the_stochastic_maximum_is_that_of_lbfgs():
    corpus = examples_of()
    machine, order = ExactMachine(Tagging), all_of(corpus)
    reports: list[Any] = []
    ExactMachine(Tagging, lbfgs(variance=5.0, support="lattice")).fit(
        corpus, Training(empty(machine)), Plan(epochs=200), progress=reports.append
    )
    best = reports[-1].objective
    rule = adagrad(rate=0.5, variance=5.0, batch=len(order), support="lattice")
    climber = ExactMachine(Tagging, rule)
    plan = Plan(epochs=400, average=False)
    training = climber.fit(corpus, Training(empty(machine)), plan)
    logs = machine.log_likelihood(corpus, order, training.table)
    w = training.table.v
    reached = (logs.sum() - (w**2).sum() / 10.0) / len(order)
    assert best - 1e-3 < reached <= best + 1e-9


def test_unknown_labels_say_nothing_of_the_likelihood():
    machine = ExactMachine(Tagging)
    corpus = corpus_of([[0, 1, 2], [0, 1]], [[-1, -1, -1], [2, -1]], tagging_spec(1))
    _, keys = features_of(Tagging, corpus)
    w = {(key, label): math.sin(key % 7 + label) for key in keys for label in range(N_LABELS)}
    table = table_of(w)
    logs = machine.log_likelihood(corpus, all_of(corpus), table)
    assert logs[0] == pytest.approx(0.0, abs=1e-12)
    labels = machine.label_probabilities(corpus, all_of(corpus), table)
    assert logs[1] == pytest.approx(math.log(labels[3, 2]))
    _, slopes = machine.slope(corpus, np.array([0]), table)
    assert np.abs(slopes).max() < 1e-12


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
        with pytest.raises(Unreachable, match="input 1: no allowed path"):
            learn(unreachable, Training(empty(machine)), Plan(epochs=2, seed=None))
    nowhere = Constraints(np.zeros((N_LABELS + 1, N_LABELS), int), np.zeros(N_LABELS, int))
    closed = corpus_of([[], [0]], [[], [1]], tagging_spec(1, nowhere))
    with pytest.raises(SearchFailed, match="input 1: no path"):
        machine.decode(closed, all_of(closed), empty(machine))
    stuck = corpus_of([[0] * 5], [[0] * 5], [2])
    with pytest.raises(LasoError, match="input 0: the key must rise"):
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
