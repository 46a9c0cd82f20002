"""``laso.engine.model.fit``: a user's own compiled problem with every queue."""

from __future__ import annotations

import numpy as np
import pytest

from laso import adagrad, beam, early, exact, lbfgs, perceptron, standard
from laso.engine.exact import ExactMachine
from laso.engine.hashing import mix
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS
from laso.engine.machine import Machine
from laso.engine.model import fit, machine_for
from laso.engine.passes import Plan
from laso.engine.problem import CompiledProblem
from laso.tasks.joint import Joint


class Labelling(CompiledProblem):
    """Label items from left to right, with the item and the last label as features."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 1, 2
        out[BLOCKS], out[STEPS] = 1, x.items.shape[0]

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(1, x.items[state[0], 0])
        out.keys[1] = mix(2, state[1])
        return 2

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + 1, label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0]] == label


class Exactly(Labelling):
    """The same for exact search."""

    @staticmethod
    def signature(x, state, group, label):
        return label


DATA = [([0, 1, 2, 1], [0, 1, 1, 0]), ([2, 2, 0], [1, 1, 0]), ([], [])]


def predicted(model):
    return [steps[:, 1].tolist() for steps in model.predict([x for x, _ in DATA])]


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
    model = fit(Exactly, DATA, n_labels=2, plan=Plan(epochs=30), **settings)
    assert predicted(model) == [y for _, y in DATA]


def test_exact_search_finds_the_best_labels():
    model = fit(Exactly, DATA, n_labels=2, queue=exact(), plan=Plan(epochs=1))
    assert isinstance(model.machine, ExactMachine)
    wide = fit(Exactly, DATA, n_labels=2, queue=beam(64), plan=Plan(epochs=1))
    assert isinstance(wide.machine, Machine)
    for x, _ in DATA[:2]:
        (found,) = model.predict([x])
        by_beam = type(wide)(wide.machine, model.training, model.spec)
        assert np.array_equal(found, by_beam.predict([x])[0])


def test_exact_search_needs_a_signature():
    with pytest.raises(ValueError, match=r"Labelling has no signature.*static method signature"):
        fit(Labelling, DATA, n_labels=2, queue=exact())


def test_exact_search_refuses_factors():
    with pytest.raises(ValueError, match=r"Joint has no signature"):
        machine_for(Joint, queue=exact())


def test_strategies_of_beams_mean_best_paths():
    assert machine_for(Exactly, queue=exact(), strategy=early) == ExactMachine(Exactly)
    assert machine_for(Exactly, queue=exact()) == ExactMachine(Exactly, expected=True)


def test_an_unknown_queue_is_refused():
    with pytest.raises(ValueError, match=r"exact\(\) without a signature"):
        machine_for(Exactly, queue=exact(lambda state: 0))
