"""A user's own problem is checked before compiled code runs it: every mistake is an error."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import BadProblem, SearchEstimator
from laso.engine.checking import own_problems
from laso.engine.checking.own_problems import check_inputs, check_problem, is_needed
from laso.engine.layout import (
    BLOCKS,
    MAX_FEATURES,
    MAX_GROUPS,
    MAX_LABELS,
    STATE_SIZE,
    STEPS,
    Limit,
)
from laso.engine.machine import all_of
from laso.engine.native import CompileError
from laso.engine.native.bounds_checks import OutOfBounds
from laso.engine.problem import CompiledProblem
from laso.engine.reference import input_of, limits_of
from laso.examples.segmentation import LINES, Segmentation, Words
from laso.tasks.tagging.problem import Tagging
from tests import careless_problem as careless
from tests import faulty_problem
from tests.careless_problem import CALLS, LONG, Careful, X, Y, dataset_of
from tests.engine_inputs import TASKS, Segmenting

ROOT = Path(__file__).resolve().parent.parent
SOURCE = Path(careless.__file__)
OUT = "out of bounds for axis 0 with size"
PROMISE = "let limits promise more"

# Problem, method, what the first line says, what the last one advises, the comment at the place.
OUT_OF_RANGE = [
    ("OneKeyTooMany", "features", f"index 2 is {OUT} 2 in out.keys", "MAX_FEATURES = 2", "one key"),
    ("ManyKeysTooMany", "features", f"{OUT} 2 in out.keys", "MAX_FEATURES = 2", "many keys"),
    ("BlockKeys", "block_features", f"{OUT} 2 in out.keys", "MAX_FEATURES = 2", "block keys"),
    ("WeightedValues", "features", f"{OUT} 2 in out.values", "MAX_FEATURES = 2", "values"),
    ("NewState", "apply", f"{OUT} 2 in new", "STATE_SIZE = 2", "new"),
    ("InitialState", "initial", f"index 2 is {OUT} 2 in state", "STATE_SIZE = 2", "initial"),
    ("Groups", "groups", f"index 1 is {OUT} 1 in the groups", "MAX_GROUPS = 1", "groups"),
    ("Choices", "choices", f"index 2 is {OUT} 2 in the choices", "MAX_LABELS = 2", "far choices"),
    ("Limits", "limits", f"{OUT} {len(Limit)} in out", "Correct the index", "limits"),
    ("Items", "is_goal", f"{OUT} 1 in x.items", "Correct the index", "items"),
    ("Columns", "block_features", "with size 1 in x.items", "Correct the index", "columns"),
    ("Pool", "allowed", f"{OUT} 0 in x.pool", "Correct the index", "pool"),
    ("Spec", "is_goal", f"{OUT} 1 in x.spec", "Correct the index", "spec"),
    ("State", "signature", f"index 2 is {OUT} 2 in state", "STATE_SIZE = 2", "state"),
]
ONLY_LEARNING = [
    ("Gold", "is_good", f"{OUT} 1 in y", "Correct the index", "gold"),
    ("GoldLoss", "loss", f"{OUT} 1 in y", "Correct the index", "gold loss"),
]
FORBIDDEN = [
    ("ChangesState", "apply", "changes state", "new in apply", "changes state"),
    ("ChangesInput", "features", "changes x.items", "Write only to", "changes input"),
]
BROKEN = [
    ("BlockTooHigh", "block", ": found 1000000, expected -1 to 0", PROMISE, "block"),
    ("SubBlockTooHigh", "sub_block", ": found 0, expected -1 to -1", "Correct", "sub-block"),
    ("EndlessSubBlocks", "sub_block", " has not returned -1", "Return -1", "endless"),
    ("KeyTooHigh", "key", ": found 1000000, expected 1 to 1", PROMISE, "key"),
    ("KeyStays", "key", ": found 1, expected 2 to 3", PROMISE, "key stays"),
    ("TooManyLabels", "limits", ": found 1000000, expected 0 to 2", PROMISE, "labels"),
    ("TooManyGroups", "groups", ": found 1000000, expected 0 to 1", PROMISE, "too many groups"),
    (
        "FeaturesNotSet",
        "limits",
        " does not set MAX_FEATURES, which features",
        "Write out[MAX_FEATURES]",
        "features not set",
    ),
    (
        "BlocksNotSet",
        "limits",
        " does not set BLOCKS, which block",
        "out[BLOCKS]",
        "blocks not set",
    ),
    ("NegativeLimit", "limits", ": found -5, expected 0 to", PROMISE, "negative"),
    ("NewNotWritten", "apply", " leaves new[1] unwritten", "Write all of new", "new not written"),
    ("StateNotWritten", "initial", " leaves state[0]", "Write all of", "state not written"),
    ("StaleKeys", "features", " returns 2 but leaves out.keys[0]", "Return the", "stale keys"),
    ("StaleGroups", "groups", " returns 1 but leaves out[0]", "Return the", "stale groups"),
]
ONLY_BEAM = [
    ("TooManySteps", "limits", ": found 2, expected at least 3", "more steps", "too many steps"),
    ("FactorTooHigh", "factors", ": found 1000000, expected -1 to 0", PROMISE, "factor"),
    ("FactorLabelTooHigh", "factors", ": found 2, expected -1 to 1", PROMISE, "factor label"),
    ("EndlessFactors", "factors", " has not returned -1", "Return -1", "endless factors"),
    ("GroupTooLow", "groups", ": found 0, expected 1 to", PROMISE, "group too low"),
]
VALUES = [
    ("StaleValues", "features", " returns 1 but leaves key or value 0", "Return", "stale values"),
    ("BadValues", "features", " writes the value nan of feature 0", "division", "bad values"),
    ("BadLoss", "loss", ": found inf, expected 0 to", "Correct", "bad loss"),
]
ALL = [*OUT_OF_RANGE, *ONLY_LEARNING, *FORBIDDEN, *BROKEN, *ONLY_BEAM, *VALUES]


def line_of(mark: str, source: Path = SOURCE) -> int:
    lines = source.read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"  # {mark}")]
    return number


def assert_message(message: str, case: tuple[str, str, str, str, str]) -> None:
    name, method, reason, remedy, mark = case
    first, place, advice = message.split("\n")
    assert f"{name}.{method}" in first
    assert reason in first
    assert "input " in first
    assert place == f"  {SOURCE}:{line_of(mark)}"
    assert remedy in advice


def named(case: tuple[str, ...]) -> str:
    return case[0]


@pytest.fixture
def fresh(monkeypatch) -> None:
    """Nothing is checked yet; and all methods can be compiled, which takes long to find out."""
    monkeypatch.setattr(own_problems, "_checked", {})
    monkeypatch.setattr(own_problems, "_mistake", lambda problem: None)


def check(problem: type[CompiledProblem], dataset: Any = None, *, learning: bool = True) -> Any:
    dataset = dataset_of() if dataset is None else dataset
    return check_problem(problem, dataset, all_of(dataset), 2, learning=learning)


# What the check finds.


@pytest.mark.parametrize("case", ALL, ids=named)
def test_a_mistake_is_named_with_its_place_and_remedy(case, fresh):
    with pytest.raises(BadProblem) as caught:
        check(getattr(careless, case[0]))
    assert_message(str(caught.value), case)
    assert isinstance(caught.value, IndexError) == (case in OUT_OF_RANGE + ONLY_LEARNING)


@pytest.mark.parametrize("case", ONLY_LEARNING, ids=named)
def test_gold_outputs_matter_for_learning_only(case, fresh):
    check(getattr(careless, case[0]), learning=False)


def processed(names: list[str], **environment: str) -> Any:
    """The errors of problems in a process of their own, which must not crash."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.careless_problem", ",".join(names)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return json.loads(process.stdout)


@pytest.mark.parametrize("cases", [OUT_OF_RANGE, [*FORBIDDEN, *BROKEN]], ids=["indices", "bounds"])
def test_no_mistake_reaches_compiled_code(cases):
    errors = processed([case[0] for case in cases])
    for case in cases:
        for call in CALLS:
            kind, message = errors[case[0]][call]
            assert kind == ("OutOfBounds" if cases is OUT_OF_RANGE else "BadProblem"), call
            assert_message(message, case)


def test_inputs_with_larger_limits_are_checked_before_they_run():
    ((kind, message),) = processed(["Long"])["Long"].values()
    assert kind == "OutOfBounds"
    case = ("Long", "features", "at input 4: index", "MAX_FEATURES = 2", "long")
    assert_message(message, case)


class NoneReturned(Careful):
    @staticmethod
    def features(x, state, group, out):  # none
        out.keys[0] = 1


class NoneForTruth(Careful):
    @staticmethod
    def is_goal(x, state):  # no truth
        pass


class FloatReturned(Careful):
    @staticmethod
    def groups(x, state, out):  # float
        out[0] = 0
        return 1.0


class OneFactor(careless.Factored):
    @staticmethod
    def factors(x, state, group, i):  # one
        return -1


class TextLoss(Careful):
    @staticmethod
    def loss(x, y, state, group, label, was_good, good):  # text
        return "1"


@pytest.mark.parametrize(
    ("problem", "reason", "remedy", "mark"),
    [
        (NoneReturned, "features returns None, expected an integer", "return missing?", "none"),
        (NoneForTruth, "is_goal returns None, expected True", "return missing?", "no truth"),
        (FloatReturned, "groups returns 1.0 (float), expected an integer", "End every", "float"),
        (OneFactor, "factors returns -1 (int), expected two integers", "End every", "one"),
        (TextLoss, "loss returns '1' (str), expected a number", "End every path", "text"),
    ],
)
def test_wrong_types_are_named_without_the_compiler(problem, reason, remedy, mark, fresh):
    with pytest.raises(BadProblem) as caught:
        check(problem)
    first, place, advice = str(caught.value).split("\n")
    assert f"{problem.__name__}.{reason}" in first
    assert place == f"  {__file__}:{line_of(mark, Path(__file__))}"
    assert remedy in advice


def test_what_cannot_be_compiled_is_said_first():
    with pytest.raises(CompileError, match=r"NoneReturned.features .*returns None, not an integer"):
        check(NoneReturned)


def test_a_method_that_is_not_static_is_said_before_anything_runs():
    problem = type("NotStatic", (Careful,), {"is_goal": lambda x, state: True})
    with pytest.raises(CompileError, match=r"NotStatic.is_goal is not a static method"):
        check(problem)


def test_a_name_of_an_earlier_version_is_refused(fresh):
    problem = type("Earlier", (Careful,), {"partial_states": True})
    with pytest.raises(BadProblem, match=r"Earlier has partial_states, .*PARTIAL_STATES"):
        check(problem)


class Raises(Careful):
    @staticmethod
    def allowed(x, state, group, label):
        if state[0] == 2:
            raise ValueError("two is too many")  # raises
        return True


def test_an_exception_of_a_method_passes_with_a_note(fresh):
    with pytest.raises(ValueError, match="two is too many") as caught:
        check(Raises)
    (note,) = caught.value.__notes__
    assert note.startswith("Raises.allowed raised this at input ")
    assert f"{__file__}:{line_of('raises', Path(__file__))}" in note


def test_the_faults_that_kernels_find_are_found_before(fresh):
    for fault in range(len(faulty_problem.FAULTS)):
        problem: Any = faulty_problem.Faulty
        if fault in (faulty_problem.FACTOR, faulty_problem.FACTOR_LABEL):
            problem = faulty_problem.Factored
        elif fault == faulty_problem.TOO_FEW_STEPS:
            problem = faulty_problem.Unkeyed
        dataset = dataset_of(faulty_problem.X, faulty_problem.Y, [fault, 2])
        if fault == faulty_problem.NONE:
            check(problem, dataset)
        else:
            # Compiled code has room for the longest input, so that short ones break no promise.
            first = 1 if fault == faulty_problem.TOO_FEW_STEPS else 2
            with pytest.raises(BadProblem, match=f"input {first}"):
                check(problem, dataset)


# What the check accepts.


@pytest.mark.parametrize("task", TASKS, ids=repr)
@given(data=st.data())
@settings(deadline=None, derandomize=True, max_examples=10)
def test_correct_problems_pass(task, data):
    dataset = data.draw(task.corpora)
    order = all_of(dataset)
    for learning in (False, True):
        most = check_problem(task.problem, dataset, order, task.n_labels, learning=learning)
        expected = limits_of(task.problem, _input(dataset, order), task.n_labels)
        assert (most >= expected)[STEPS]


def _input(dataset: Any, order: Any) -> Any:
    return input_of(dataset, int(np.diff(dataset.starts).argmax()))


class Habits(Careful):
    """What works in compiled code works here: slices, rows, negative indices, wrapped integers."""

    @staticmethod
    def initial(x, state):
        state[:] = 0

    @staticmethod
    def features(x, state, group, out):
        keys, row = out.keys, x.items[state[0]]
        total = 0
        for number in row:
            total += number
        keys[0] = total * 6364136223846793005 + 1442695040888963407
        keys[1] = x.items[-1, 0] + row.shape[0] + len(row)
        return 2

    @staticmethod
    def apply(x, state, group, label, new):
        new[:] = state
        new[0] += 1
        new[-1] = label * 3_000_000_000  # cut to 32 bits

    @staticmethod
    def is_goal(x, state):
        return state[0] >= x.items[:, 0].shape[0]


def test_habits_of_numpy_pass(fresh):
    check(Habits)


class Brief(Careful):
    """Writes no limit that has a default."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_FEATURES], out[BLOCKS] = 2, 2, x.items.shape[0]


def test_limits_have_defaults(fresh):
    most = check(Brief)
    assert most[[STEPS, MAX_GROUPS, MAX_LABELS]].tolist() == [3, 1, 2]


class BackAtTheMark(Careful):
    """Writes a number that looks as if nothing had been written."""

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -2_001_234_567


def test_no_value_is_mistaken_for_a_missing_one(fresh):
    check(BackAtTheMark)


def test_an_output_that_cannot_be_reached_is_left_to_learning(fresh):
    check(Careful, dataset_of(X, [[0, 5, 1], [1], [5, 0, 1]]))


def test_inputs_without_items_and_no_inputs(fresh):
    check(Careful, dataset_of([[]], [[]]))
    empty = dataset_of([], [])
    check_inputs(Careful, no_limits, empty, all_of(empty), 2, learning=False)


# When it runs.


def no_limits(dataset: Any, order: Any) -> Any:
    raise AssertionError("no compiled code may run before the check")


def python_limits(problem: type[CompiledProblem]) -> Any:
    """The largest limits, uncompiled."""

    def largest(dataset: Any, order: Any) -> Any:
        most = np.ones(len(Limit), np.int64)
        for i in order.tolist():
            most = np.maximum(most, limits_of(problem, input_of(dataset, i), 0))
        return most

    return largest


@pytest.fixture
def runs(monkeypatch, fresh) -> list[tuple[list[int], bool]]:
    """The inputs of each check, and whether it is for learning."""
    heard: list[tuple[list[int], bool]] = []
    usual = own_problems.check_problem

    def noted(problem: Any, dataset: Any, order: Any, n_labels: int, *, learning: bool) -> Any:
        heard.append((order.tolist(), learning))
        return usual(problem, dataset, order, n_labels, learning=learning)

    monkeypatch.setattr(own_problems, "check_problem", noted)
    return heard


def test_a_problem_is_checked_once_until_its_limits_grow(runs):
    largest, short = python_limits(Careful), dataset_of()
    for _ in range(3):
        check_inputs(Careful, largest, short, all_of(short), 2, learning=False)
    assert runs == [([0, 1, 2], False)]
    more = dataset_of([*X, LONG, X[0]], [*Y, LONG, Y[0]])
    check_inputs(Careful, largest, more, all_of(more), 2, learning=False)
    check_inputs(Careful, largest, more, all_of(more), 2, learning=False)
    assert runs[1:] == [([3], False)]
    check_inputs(Careful, largest, more, np.array([1]), 2, learning=True)
    assert runs[2:] == [([1], True)]


def test_other_labels_or_constants_are_checked_anew(runs):
    problem: Any = careless.Constants
    largest, dataset = python_limits(problem), dataset_of()
    check_inputs(problem, largest, dataset, all_of(dataset), 2, learning=False)
    check_inputs(problem, largest, dataset, all_of(dataset), 3, learning=False)
    assert len(runs) == 2
    dataset = dataset_of(spec=[1])
    for _ in range(2):  # a problem that has failed is not taken for checked
        with pytest.raises(OutOfBounds, match=r"out\.keys"):
            check_inputs(problem, no_limits, dataset, all_of(dataset), 2, learning=False)


def test_only_the_problems_of_users_are_checked(monkeypatch):
    assert not is_needed(Tagging)
    assert all(map(is_needed, (Words, Careful, Segmenting)))
    monkeypatch.setenv("LASO_CHECK", "1")
    assert is_needed(Words)
    monkeypatch.setenv("LASO_CHECK", "0")
    assert not is_needed(Words)


def test_an_estimator_checks_for_learning_and_for_prediction(runs):
    sentences = [line.split() for line in LINES]
    texts = ["".join(words) for words in sentences]
    model = SearchEstimator(Segmentation(), queue=5, epochs=1).fit(texts, sentences)
    assert [learning for _, learning in runs] == [True, False]
    model.predict(["thecatsatonamat"])
    assert len(runs) == 2
    model.predict(["thecatsatonamatandthedogsatonthemat"])
    assert runs[2:] == [([0], False)]


def test_the_check_ends_in_time(fresh, monkeypatch):
    monkeypatch.setattr(own_problems, "SECONDS", 0.0)
    check(Careful, dataset_of([[0] * 100_000], [[0] * 100_000]))
