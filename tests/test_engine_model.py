"""``laso.fit``: a user's own compiled problem with every queue, equal in both engines."""

from __future__ import annotations

import pytest

from laso import (
    Linear,
    adagrad,
    alma,
    beam,
    early,
    exact,
    fit,
    lbfgs,
    max_violation,
    perceptron,
    restart,
    standard,
)
from laso.engine.choose import engine_for
from laso.engine.lattice.exact import ExactMachine
from laso.engine.machine import Machine, as_names
from laso.engine.problem import CompiledProblem
from laso.engine.reference import Reference, input_of, output_of
from laso.examples.segmentation import LINES, Segmentation
from laso.tasks.joint import Joint
from tests.own_problem import Tags


class Unsigned(Tags):
    """The same without a signature."""

    signature = staticmethod(CompiledProblem.signature)


DATA = [([0, 1, 2, 1], [0, 1, 1, 0]), ([2, 2, 0], [1, 1, 0]), ([], [])]


def predicted(model):
    return [[label for _, label in steps] for steps in model.predict([x for x, _ in DATA])]


@pytest.mark.parametrize(
    "settings",
    [
        {"queue": beam(2)},
        {"queue": exact()},
        {"queue": exact(), "strategy": standard},
        {"queue": exact(), "update": perceptron(margin=0.5)},
        {"queue": exact(), "update": adagrad()},
        {"queue": exact(), "update": lbfgs()},
    ],
    ids=str,
)
def test_a_problem_learns_with_every_queue(settings):
    model = fit(Tags, DATA, n_labels=2, epochs=30, **settings)
    assert predicted(model) == [y for _, y in DATA]


def test_exact_search_finds_the_best_labels():
    model = fit(Tags, DATA, n_labels=2, queue=exact(), epochs=1)
    dataset = model.task_.encode([[0]])
    assert isinstance(model.engine(dataset), ExactMachine)
    wide = fit(Tags, DATA, n_labels=2, queue=beam(64), epochs=1)
    assert isinstance(wide.engine(dataset), Machine)
    for x, _ in DATA[:2]:
        (found,) = model.predict([x])
        assert wide.with_weights(model.weights_).predict([x]) == [found]


def test_exact_search_needs_a_signature():
    with pytest.raises(ValueError, match=r"Unsigned has no signature.*static method signature"):
        fit(Unsigned, DATA, n_labels=2, queue=exact())


def test_exact_search_refuses_factors():
    with pytest.raises(ValueError, match=r"Joint has no signature"):
        engine_for(Joint, exact())


def test_strategies_of_beams_mean_best_paths():
    assert engine_for(Tags, exact(), strategy=early) == ExactMachine(Tags)
    assert engine_for(Tags, exact()) == ExactMachine(Tags, expected=True)


def test_an_unknown_queue_is_refused():
    with pytest.raises(ValueError, match=r"exact\(\) without a signature"):
        engine_for(Tags, exact(lambda state: 0))


@pytest.mark.parametrize("strategy", [restart, early, standard, max_violation], ids=repr)
@pytest.mark.parametrize("update", [perceptron(), alma(), perceptron(margin=1.0)], ids=repr)
def test_both_engines_learn_the_same(strategy, update):
    """The same settings and the same seed: the same order of examples, and the same weights."""
    settings = {"queue": beam(2), "update": update, "strategy": strategy, "epochs": 4, "seed": 3}
    compiled = fit(Tags, DATA, n_labels=2, **settings)
    dataset = compiled.task_.encode(*zip(*DATA, strict=True))
    examples = [(input_of(dataset, i), output_of(dataset, i)) for i in range(len(DATA))]
    plain = fit(Reference(Tags, 2), examples, **settings)
    assert isinstance(plain.w, Linear)
    expected = {name: value for name, value in plain.w.weights.items() if value}
    assert as_names(compiled.weights_) == pytest.approx(expected, abs=1e-5)
    assert compiled.n_iter_ <= 4


def test_fit_of_a_task_and_of_nonsense():
    X = [line.replace(" ", "") for line in LINES]
    model = fit(Segmentation(), zip(X, map(str.split, LINES), strict=True))
    assert model.predict(["thedogisonamat"]) == [["the", "dog", "is", "on", "a", "mat"]]
    with pytest.raises(ValueError, match="must be a subclass of CompiledProblem, found 3"):
        fit(3, [([0], [0])])  # type: ignore[call-overload]
