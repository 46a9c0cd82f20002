"""Likelihood over all paths of a lattice: gradients, L-BFGS, stochastic steps."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso.engine import layout as at
from laso.engine.epochs import Plan, Training
from laso.engine.lattice.exact import ExactMachine
from laso.engine.lattice.objective import in_threads
from laso.engine.machine import all_of, as_names
from laso.tasks.tagging.problem import Tagging
from laso.updates import adagrad, alma, lbfgs, sgd
from tests.lattices import (
    N_LABELS,
    any_corpus,
    corpus_of,
    costly,
    difference,
    empty,
    enumerate_paths,
    examples_of,
    expectation,
    features_of,
    log_sum,
    quick,
    real,
    rows_by_key,
    same,
    table_of,
    tagging_spec,
    weights,
)

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
