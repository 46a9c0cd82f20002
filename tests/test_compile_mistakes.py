"""Mistakes in a problem of one's own are explained when it is compiled."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from laso import beam, perceptron
from laso.engine.checking.own_problems import locate
from laso.engine.machine import Machine, new_table
from laso.engine.native import CompileError, compiled
from laso.engine.options import options_for
from laso.engine.problem import REQUIRED, CompiledProblem
from laso.errors import LasoError
from tests.engine_inputs import Segmenting, corpus_of

# Errors.


class Broken(Segmenting):
    @staticmethod
    def is_goal(x, state):
        return len(open("goal").read()) == state[0]  # line


class BrokenHelper(Segmenting):
    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = outside(state)


def outside(state):
    return {0: state[0]}[0]  # line of helper


class Allocates(Segmenting):
    @staticmethod
    def allowed(x, state, group, label):
        return np.zeros(3)[label] == 0.0


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"  # {text}")]
    return number


def decode_with(problem: type[CompiledProblem]) -> None:
    machine = Machine(problem, options_for(problem, beam(2), perceptron()))
    machine.decode(corpus_of([[[0]]], [[]], [0]), np.array([0]), new_table(2))


@pytest.mark.parametrize(
    ("problem", "function", "line"),
    [(Broken, "is_goal", "line"), (BrokenHelper, "apply", "line of helper")],
)
def test_an_error_names_the_place_in_the_users_code(problem, function, line):
    with pytest.raises(CompileError) as caught:
        decode_with(problem)
    message = str(caught.value)
    assert message.startswith(f"{problem.__name__}.{function} cannot be compiled: ")
    assert f"{Path(__file__).name}:{line_of(line)}" in message
    assert "site-packages" not in message
    assert "kernels.py" not in message
    assert "nopython" not in message


def test_allocation_is_refused_with_a_reason():
    with pytest.raises(CompileError, match=r"Allocates\.allowed .* cannot make arrays"):
        decode_with(Allocates)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_function_is_named(name):
    without = type("Without", (Segmenting,), {name: staticmethod(getattr(CompiledProblem, name))})
    with pytest.raises(CompileError, match=f"Without needs a static method {name}$"):
        compiled(without)


class NoReturn(Segmenting):
    @staticmethod
    def features(x, state, group, out):  # no return
        out.keys[0] = 1


class SomeReturn(Segmenting):
    @staticmethod
    def features(x, state, group, out):  # some return
        if group > 0:
            return 1
        return None


class NoTruth(Segmenting):
    @staticmethod
    def is_goal(x, state):  # no truth
        state[0] == x.items.shape[0]  # noqa: B015


class FloatGroups(Segmenting):
    @staticmethod
    def groups(x, state, out):  # float
        out[0] = 1
        return 1.0


class TextFeatures(Segmenting):
    @staticmethod
    def features(x, state, group, out):  # returns text
        return "one"


class ComparesText(Segmenting):
    @staticmethod
    def is_goal(x, state):
        return state[0] == "end"  # compares


class ComparesTextBelow(Segmenting):
    @staticmethod
    def is_goal(x, state):
        return is_end(state)


def is_end(state):
    return state[0] != "end"  # compares below


class FormatsText(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        name = f"{group}"  # f-string
        return len(name)


class MakesList(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        found = [1, 2]  # list
        found.append(group)
        return len(found)


class Comprehends(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        return sum([i for i in range(group)])  # noqa: C416  # comprehension


class MakesDict(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        found = {1: group}  # dictionary
        return found[1]


class Tries(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        try:
            out.keys[0] = 1
        except IndexError:  # try
            return 0
        return 1


class With(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        with open("features") as lines:  # with
            return len(lines.read())


class FloatIndex(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        out.keys[group / 2] = 1  # float index
        return 1


class UnknownAttribute(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        return x.words[0]  # attribute


class UnknownName(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        return undefined(x)  # type: ignore[name-defined]  # noqa: F821  # name


class WithSelf(Segmenting):
    def is_goal(self, x, state):  # type: ignore[override]  # with self
        return True


class NotStatic(Segmenting):
    def is_goal(x, state):  # type: ignore[override]  # noqa: N805  # not static
        return True


class OneTooFew(Segmenting):
    @staticmethod
    def apply(x, state, group, label):  # type: ignore[override]  # too few
        pass


class OneTooMany(Segmenting):
    @staticmethod
    def initial(x, state, more):  # type: ignore[override]  # too many
        pass


MISTAKES = [
    (NoReturn, "features", "it returns None, not an integer", "End every path", "no return"),
    (SomeReturn, "features", "returns None on some paths", "End every path", "some return"),
    (NoTruth, "is_goal", "it returns None, not True or False", "End every path", "no truth"),
    (FloatGroups, "groups", "it returns a float, not an integer", "Return an integer", "float"),
    (TextFeatures, "features", "it returns text", "Return an integer", "returns text"),
    (ComparesText, "is_goal", "it compares with the text 'end'", "compare numbers", "compares"),
    (ComparesTextBelow, "is_goal", "the text 'end'", "compare numbers", "compares below"),
    (FormatsText, "features", "it formats text", "work on numbers", "f-string"),
    (MakesList, "features", "it makes a list", "work on numbers", "list"),
    (Comprehends, "features", "it makes a list", "work on numbers", "comprehension"),
    (MakesDict, "features", "it makes a dictionary", "work on numbers", "dictionary"),
    (Tries, "features", "it catches exceptions", "work on numbers", "try"),
    (With, "features", "it has a with statement", "work on numbers", "with"),
    (FloatIndex, "features", "wrong types: setitem(array", "integers", "float index"),
    (UnknownAttribute, "features", "'words' of Input", "items, pool, values", "attribute"),
    (UnknownName, "features", "name 'undefined' is not defined", "import the name", "name"),
    (WithSelf, "is_goal", "is not a static method", "@staticmethod above", "with self"),
    (NotStatic, "is_goal", "is not a static method", "@staticmethod above", "not static"),
    (OneTooFew, "apply", "called with (x, state, group, label, new)", "def apply(", "too few"),
    (OneTooMany, "initial", "parameters (x, state, more)", "def initial(x, state)", "too many"),
]


@pytest.mark.parametrize(
    ("problem", "method", "reason", "remedy", "line"),
    MISTAKES,
    ids=[mistake[0].__name__ for mistake in MISTAKES],
)
def test_typical_mistakes_are_explained(problem, method, reason, remedy, line):
    with pytest.raises(CompileError) as caught:
        decode_with(problem)
    first, place, advice = str(caught.value).split("\n")
    assert first.startswith(f"{problem.__name__}.{method} ")
    assert reason in first
    assert place == f"  {Path(__file__)}:{line_of(line)}"
    assert remedy in advice
    assert "nopython" not in str(caught.value)


@pytest.mark.parametrize("problem", [SomeReturn, NoReturn, FloatGroups])
def test_mistakes_are_explained_again(problem):
    for _ in range(2):  # the second time nothing comes from a cache
        with pytest.raises(CompileError, match=f"{problem.__name__}.* returns"):
            decode_with(type(problem.__name__, (problem,), {}))


# Arrays.


class WritesTooFar(Segmenting):
    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + group
        new[1 + label] = label  # too far


class ReadsTooFar(Segmenting):
    @staticmethod
    def is_goal(x, state):
        return beyond(x, state[0])


def beyond(x, i):
    return x.items[i + 1, 0] < 0  # beyond


class LimitsTooFar(Segmenting):
    @staticmethod
    def limits(x, out):
        out[100] = 1  # limits


class GoodTooFar(Segmenting):
    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0] + 100] == label  # gold


SMALL = corpus_of([[[0]], [[1], [2], [1]]], [[0], [0, 1, 0]], [0])


@pytest.mark.parametrize(
    ("problem", "method", "line"),
    [
        (WritesTooFar, "apply", "too far"),
        (ReadsTooFar, "is_goal", "beyond"),
        (LimitsTooFar, "limits", "limits"),
        (GoodTooFar, "is_good", "gold"),
    ],
)
def test_an_index_out_of_bounds_is_located(problem, method, line):
    arguments = SMALL, np.array([1]), new_table(2)
    with pytest.raises(LasoError) as caught:
        locate(problem, IndexError("somewhere"), "learn_many", arguments)
    first, place, advice = str(caught.value).split("\n")
    assert first.startswith(f"{problem.__name__}.{method} leaves the bounds of an array at input 2")
    assert "out of bounds" in first
    assert place == f"  {Path(__file__)}:{line_of(line)}"
    assert "limits" in advice


def test_only_learning_looks_at_the_outputs():
    arguments = SMALL, np.array([1]), new_table(2)
    expected = r"GoodTooFar leaves the bounds of an array \(somewhere\), but none"
    with pytest.raises(LasoError, match=expected):
        locate(GoodTooFar, IndexError("somewhere"), "decode_many", arguments)
