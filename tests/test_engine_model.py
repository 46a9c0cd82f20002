"""``laso.engine.model.fit``: a user's own compiled problem with every queue."""

from __future__ import annotations

import numpy as np
import pytest

from laso import adagrad, beam, early, exact, perceptron, standard
from laso.engine.exact import ExactMachine
from laso.engine.machine import Machine, all_of
from laso.engine.model import CompiledModel, fit, machine_for, make_dataset
from laso.engine.options import own_key
from laso.engine.passes import Plan
from laso.engine.problem import CompiledProblem
from laso.tasks.joint import Joint
from tests.faulty_problem import NONE, Faulty

DATA = [([1, 2, 3, 4, 1, 2], [1, 0, 0, 1, 1, 0]), ([4, 4, 2], [1, 1, 0]), ([], [])]
BEAM = beam(8, key=own_key)


class Unsigned(Faulty):
    """The problem without a signature."""

    signature = CompiledProblem.signature


def trained(problem=Faulty, epochs=30, **settings) -> CompiledModel:
    return fit(problem, DATA, n_labels=2, spec=[NONE, 0], plan=Plan(epochs=epochs), **settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"queue": BEAM},
        {"queue": exact()},
        {"queue": exact(), "strategy": standard},
        {"queue": exact(), "update": perceptron(margin=0.5)},
        {"queue": exact(), "update": adagrad()},
    ],
    ids=["beam", "exact", "best paths", "margin", "likelihood"],
)
def test_a_problem_learns_with_every_queue(settings):
    predicted = trained(**settings).predict([x for x, _ in DATA])
    assert [steps[:, 0].tolist() for steps in predicted] == [[1] * len(y) for _, y in DATA]
    assert [steps[:, 1].tolist() for steps in predicted] == [y for _, y in DATA]


def test_exact_search_finds_what_a_wide_beam_finds():
    model = trained(queue=exact(), epochs=1)
    wide = machine_for(Faulty, queue=beam(64, key=own_key))
    assert isinstance(model.machine, ExactMachine)
    assert isinstance(wide, Machine)
    dataset = make_dataset([x for x, _ in DATA], spec=model.spec)
    found = model.machine.decode(dataset, all_of(dataset), model.table)
    by_beam = wide.decode(dataset, all_of(dataset), model.table)
    assert np.array_equal(found[0], by_beam[0])
    assert found[2] == pytest.approx(by_beam[2])
    assert any(found[2] > 0.0)


def test_exact_search_needs_a_signature():
    with pytest.raises(ValueError, match=r"Unsigned has no signature.*static method signature"):
        trained(Unsigned, queue=exact())


def test_exact_search_of_a_task_without_signature_is_refused():
    with pytest.raises(ValueError, match=r"Joint has no signature"):
        machine_for(Joint, queue=exact())


def test_strategies_of_beams_mean_best_paths():
    assert machine_for(Faulty, queue=exact(), strategy=early) == ExactMachine(Faulty)
    assert machine_for(Faulty, queue=exact()) == ExactMachine(Faulty, expected=True)


def test_a_signature_of_another_engine_is_refused():
    with pytest.raises(ValueError, match=r"exact\(\) without a signature"):
        machine_for(Faulty, queue=exact(lambda state: 0))
