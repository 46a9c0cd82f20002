"""Guarded arrays, and promises that a problem makes about its blocks and segments."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from laso import BadProblem
from laso.engine.checking.dry_run import Trial
from laso.engine.checking.guarded_arrays import ReadOnly, guarded
from laso.engine.layout import CHAIN, FEATURES_OF_STATE, FORM, KEY_OF_GROUP, SEGMENTS, STEPS
from tests.careless_problem import Careful, dataset_of, write_careful_limits
from tests.engine_inputs import Segmenting, corpus_of

# The arrays.


def test_guarded_arrays():
    array = np.arange(6, dtype=np.int32).reshape(3, 2)
    rows = guarded(array, "rows", writable=True)
    assert isinstance(rows[1, 1], int)
    assert [*rows[2]] == [4, 5]
    rows[0, 0] = (1 << 40) + 7
    assert array[0, 0] == 7
    rows[-1, 0] = -1
    assert array[2, 0] == -1
    for index in ((3, 0), (0, 2), (-4, 0), (1 << 40, 0)):
        with pytest.raises(IndexError, match=r"out of bounds .* in rows"):
            rows[index]
        with pytest.raises(IndexError, match=r"out of bounds .* in rows"):
            rows[index] = 1
    with pytest.raises(IndexError, match="in rows"):
        rows[0][2]
    with pytest.raises(ReadOnly, match="y"):
        guarded(array, "y")[1:][0, 0] = 1
    array[0, 0] = 9  # the array itself stays as it was
    assert rows[0, 0] == 9


class OneName(Segmenting):
    @staticmethod
    def name(x, state, group, block):
        return 1


class Promising(Segmenting):
    @staticmethod
    def limits(x, out):
        Segmenting.limits(x, out)
        out[FORM] = SEGMENTS


class KeysByDepth(Promising):
    @staticmethod
    def key(x, state, group, label):
        return 1


class OneSum(Segmenting):
    @staticmethod
    def limits(x, out):
        Segmenting.limits(x, out)
        out[FEATURES_OF_STATE] = 1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = group
        return 1


class WithoutBlocks(Promising):
    @staticmethod
    def block(x, state, group):
        return -1


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (OneName, "for a bundle with other features"),
        (KeysByDepth, "SEGMENTS: the key of a step"),
        (OneSum, "FEATURES_OF_STATE: OneSum.features writes other features for another"),
        (WithoutBlocks, "with SEGMENTS every step must have one"),
    ],
)
def test_promises_about_names_and_segments(problem, reason):
    corpus = corpus_of([[[1], [2], [3]]], [[0, 0, 0]], [0])
    with pytest.raises(BadProblem, match=reason):
        Trial(problem, corpus, 0, 3, learning=False).run(time.thread_time() + 10)


# Facts and listed labels.


class UnknownForm(Careful):
    @staticmethod
    def limits(x, out):
        write_careful_limits(x, out)
        out[FORM] = 9


class NoChain(Careful):
    @staticmethod
    def limits(x, out):
        write_careful_limits(x, out)
        out[FORM] = CHAIN

    @staticmethod
    def block(x, state, group):
        return 0


class KeyOfLabel(Careful):
    @staticmethod
    def limits(x, out):
        write_careful_limits(x, out)
        out[STEPS], out[FORM] = 2 * x.items.shape[0], KEY_OF_GROUP

    @staticmethod
    def key(x, state, group, label):
        return 2 * state[0] + 1 + label


class TooManyChoices(Careful):
    @staticmethod
    def choices(x, state, group, out):
        return 3


class ChoiceTooHigh(Careful):
    @staticmethod
    def choices(x, state, group, out):
        out[0] = 2
        return 1


class ChoiceLeftOut(Careful):
    @staticmethod
    def choices(x, state, group, out):
        return 0


class StaleChoices(Careful):
    @staticmethod
    def choices(x, state, group, out):
        return 2


@pytest.mark.parametrize(
    ("problem", "method", "reason"),
    [
        (UnknownForm, "limits", "(FORM here)"),
        (UnknownForm, "limits", ": found 9, expected 0 to 3"),
        (NoChain, "block", ": found 0, expected 1 to 1"),
        (KeyOfLabel, "key", ": found 2, expected 1 to 1"),
        (TooManyChoices, "choices", ": found 3, expected -1 to 2"),
        (ChoiceTooHigh, "choices", ": found 2, expected 0 to 1"),
        (ChoiceLeftOut, "choices", " lists [] for group 0"),
        (StaleChoices, "choices", " returns 2 but leaves out[0] unwritten"),
    ],
)
def test_promises_about_facts_and_listed_labels(problem, method, reason):
    with pytest.raises(BadProblem, match=re.escape(reason)) as caught:
        Trial(problem, dataset_of(), 0, 2, learning=False).run(time.thread_time() + 10)
    assert f"{problem.__name__}.{method}" in str(caught.value)
