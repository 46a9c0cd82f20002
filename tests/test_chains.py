"""Forward-backward on chains against the general recursion; the priors and the end of lbfgs()."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import CRF, Tagger, exact, lbfgs
from laso.engine.epochs import Plan, Training
from laso.engine.lattice.chain_layout import MOST_MATRICES
from laso.engine.lattice.exact import ExactMachine
from laso.engine.lattice.objective import Objective, PartLikelihood, in_threads
from laso.engine.lattice.quasi_newton import descend
from laso.engine.machine import all_of
from laso.tasks.tagging.problem import Tagging
from tests.lattices import (
    N_LABELS,
    Segments,
    any_corpus,
    corpus_of,
    empty,
    enumerate_paths,
    examples_of,
    quick,
    rows_by_key,
    segment_corpora,
    tagging_corpora,
    tagging_spec,
)

LATTICE = lbfgs(support="lattice", variance=2.0)


def objective_of(problem, corpus, rule=LATTICE, threads=1):
    machine = ExactMachine(problem, rule)
    return Objective(machine, corpus, empty(machine), rule, in_threads(threads))


def on_chains(objective, corpus):
    """The likelihood of all examples as chains, if they are."""
    part = PartLikelihood(objective.machine, corpus, all_of(corpus), objective.weights)
    return part.on_chains


def by_lattices(objective, corpus, theta):
    """The value and the gradient of an objective, by the general recursion."""
    machine, table = objective.machine, objective.finished(theta)
    logs, slopes = machine.slope(corpus, all_of(corpus), table)
    n, variance = objective.examples, objective.rule.variance
    value = (theta @ theta / (2.0 * variance) - logs.sum()) / n
    gradient = (theta / variance - slopes.reshape(-1)[objective.weights.chosen]) / n
    return logs, value, gradient


# Chains


@quick
@given(st.data(), any_corpus, st.integers(1, 2))
def test_chains_have_the_likelihood_of_their_lattices(data, found, threads):
    problem, corpus = found
    objective = objective_of(problem, corpus, threads=threads)
    seed = data.draw(st.integers(0, 99))
    theta = np.random.default_rng(seed).normal(size=len(objective.start))
    logs, value, gradient = by_lattices(objective, corpus, theta)
    chains = on_chains(objective, corpus)
    if chains is not None:
        assert chains(theta)[0] == pytest.approx(logs, rel=1e-9, abs=1e-12)
    assert objective(theta)[0] == pytest.approx(value, rel=1e-9)
    assert objective(theta)[1] == pytest.approx(gradient, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("order", "is_chain"), [(1, True), (2, False)])
def test_the_form_of_the_lattice_decides(order, is_chain):
    corpus = examples_of(order)
    assert (on_chains(objective_of(Tagging, corpus), corpus) is not None) == is_chain


def test_what_is_no_chain():
    rows, outputs = [[0, 1, 2, 1]], [[0, -2, 1, 0]]
    segments = corpus_of(rows, outputs, [0])
    assert on_chains(objective_of(Segments, segments), segments) is None
    by_loss, corpus = lbfgs(support="lattice", by_loss=True), examples_of()
    assert on_chains(objective_of(Tagging, corpus, by_loss), corpus) is None
    # label[-1]|w[0] has a transition matrix for each word: too many of them.
    many = list(range(MOST_MATRICES + 20))
    outputs = [[word % N_LABELS for word in many]]
    corpus = corpus_of([many], outputs, tagging_spec(1, longest=len(many)))
    assert on_chains(objective_of(Tagging, corpus), corpus) is None


@pytest.mark.parametrize("scale", [30.0, 1e3, 1e5])
def test_scores_beyond_the_range_of_floats_take_the_general_recursion(scale):
    corpus = examples_of()
    objective = objective_of(Tagging, corpus)
    theta = scale * np.random.default_rng(0).normal(size=len(objective.start))
    chains = on_chains(objective, corpus)
    assert chains is not None
    lost = np.isnan(chains(theta)[0])
    assert lost.any() == (scale > 100.0)
    _, value, gradient = by_lattices(objective, corpus, theta)
    assert objective(theta)[0] == pytest.approx(value, rel=1e-9)
    assert objective(theta)[1] == pytest.approx(gradient, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("found", [tagging_corpora(), segment_corpora()], ids=["tags", "segments"])
@quick
@given(st.data())
def test_the_support_of_transitions_is_their_own(found, data):
    problem, corpus = data.draw(found)
    seen = {
        name
        for i in all_of(corpus)
        for path in enumerate_paths(problem, corpus, int(i))
        for name in path.phi
        if path.good
    }
    both = objective_of(problem, corpus, lbfgs(support="pairs", transitions="lattice"))
    names = {row: key for key, row in rows_by_key(both.weights.table).items()}
    chosen = {(names[k // N_LABELS], k % N_LABELS) for k in both.weights.chosen.tolist()}
    whole = objective_of(problem, corpus)
    names = {row: key for key, row in rows_by_key(whole.weights.table).items()}
    possible = {(names[k // N_LABELS], k % N_LABELS) for k in whole.weights.chosen.tolist()}
    assert seen <= chosen <= possible


# Priors and the end of training


@pytest.mark.parametrize("l1", [0.2, 1.0])
@pytest.mark.parametrize("variance", [2.0, math.inf])
def test_owlqn_reaches_a_stationary_point_of_both_priors(l1, variance):
    corpus = examples_of()
    rule = lbfgs(l1=l1, variance=variance, tolerance=1e-7, iterations=500)
    machine = ExactMachine(Tagging, rule)
    fitted = machine.fit(corpus, Training(empty(machine)), Plan(epochs=500))
    _, slopes = machine.slope(corpus, all_of(corpus), fitted.table)
    w = fitted.table.v[: len(slopes)]
    rest = slopes - w / variance
    assert (w == 0.0).any()
    assert (w != 0.0).any()
    assert rest[w != 0.0] == pytest.approx(l1 * np.sign(w[w != 0.0]), abs=1e-4)
    assert np.abs(rest[w == 0.0]).max() <= l1 + 1e-4


def test_descend_finds_the_minimum_of_a_parabola():
    centre, scale = np.array([3.0, -0.5, 0.2]), np.array([1.0, 10.0, 100.0])

    def parabola(x: Any) -> Any:
        return float((scale * (x - centre) ** 2).sum() / 2.0), scale * (x - centre)

    for l1 in (0.0, 1.0, 30.0):
        *_, last = descend(parabola, np.zeros(3), l1=l1)
        shrunk = np.sign(centre) * np.maximum(np.abs(centre) - l1 / scale, 0.0)
        assert last.x == pytest.approx(shrunk, abs=1e-6)
        assert last.value == pytest.approx(parabola(shrunk)[0] + l1 * np.abs(shrunk).sum())


def test_training_ends_when_the_objective_hardly_improves():
    corpus = examples_of()
    lengths = []
    for delta in (0.0, 1e-6, 1e-2):
        rule = lbfgs(tolerance=0.0, period=3, delta=delta)
        machine = ExactMachine(Tagging, rule)
        reports: list[Any] = []
        fitted = machine.fit(
            corpus, Training(empty(machine)), Plan(epochs=200), progress=reports.append
        )
        assert fitted.converged == (delta > 0.0)
        lengths.append(fitted.epoch)
        values = [report.objective for report in reports]
        if delta:
            assert values[-1] - values[-4] < delta * abs(values[-1])
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[2]


@pytest.mark.parametrize(
    "wrong",
    [{"l1": -1.0}, {"l1": math.inf}, {"transitions": "some"}, {"period": 0}, {"delta": -1.0}],
    ids=repr,
)
def test_parameters_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        lbfgs(**wrong)


def test_start_features_are_optional():
    X, y = [["a", "b"], ["b", "a"]] * 3, [["A", "B"], ["B", "A"]] * 3
    for start in (True, False):
        tagger = Tagger(
            features=["w[0]", "label[-1]"],
            queue=exact(),
            update=lbfgs(variance=1.0),
            start_features=start,
        ).fit(X, y)
        names = tagger.task_.feature_names(np.array(list(rows_by_key(tagger.weights_))))
        assert any("(none)" in name for name in names.values()) == start
    crf = CRF().fit([[{"w": 1.0}, {"v": 1.0}]], [["A", "B"]])
    assert len(crf.weights_.v) == 3
    assert set(crf.transition_features_) == {("A", "B")}
