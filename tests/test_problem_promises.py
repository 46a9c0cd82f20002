"""Guarded arrays, and promises that a problem makes about its blocks and segments."""

from __future__ import annotations

import re
import time

import numpy as np
import pytest

from laso import BadProblem, beam, exact, own_key
from laso.engine.checking.dry_run import Trial
from laso.engine.checking.guarded_arrays import ReadOnly, guarded
from laso.engine.choose import engine_for
from laso.engine.dataset import make_dataset
from laso.engine.decoder import Decoder
from laso.engine.hashing import mix
from laso.engine.layout import (
    BLOCKS,
    CHAIN,
    FEATURES_OF_STATE,
    FORM,
    KEY_OF_GROUP,
    SAME_LABEL,
    SEGMENTS,
    STEPS,
)
from laso.engine.machine import new_table
from tests.careless_problem import Careful, Factored, Weighted, dataset_of, write_careful_limits
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


# Promises that are broken late: the checks of the first inputs see nothing.


@pytest.fixture
def little_known(monkeypatch):
    monkeypatch.setenv("LASO_CHECK", "0")


class FewBlocks(Careful):
    """Promises chains, and for a late input too few blocks."""

    @staticmethod
    def limits(x, out):
        write_careful_limits(x, out)
        n = x.items.shape[0]
        out[FORM] = CHAIN
        out[BLOCKS] = 1 if n == 3 and x.items[0, 0] == 7 else n

    @staticmethod
    def sub_block(x, block, i):
        return -1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(2, state[1])
        return 1


class WritesBeyond(Careful):
    """Writes far beyond the end of its buffer for a late input."""

    @staticmethod
    def features(x, state, group, out):
        out.keys[(1 << 40) * (x.items[0, 0] == 7)] = 3
        return 1


class LimitsBeyond(Careful):
    """Writes one limit too many for a late input."""

    @staticmethod
    def limits(x, out):
        write_careful_limits(x, out)
        out[10 + (x.items[0, 0] == 7)] = 0


class EndlessSubBlocks(Careful):
    """Always has one more sub-block for a late input."""

    @staticmethod
    def sub_block(x, block, i):
        if x.items[0, 0] == 7 and block > 0:
            return 0
        return block - 1 if i == 0 else -1


class EndlessFactors(Factored):
    """Always has one more factor for a late input."""

    @staticmethod
    def factors(x, state, group, i):
        return (0 if i == 0 or x.items[0, 0] == 7 else -1), SAME_LABEL


class Infinite(Weighted):
    """Divides by zero for a late input."""

    @staticmethod
    def features(x, state, group, out):
        out.keys[0], out.values[0] = 1, 5.0 / (x.items[0, 0] - 7)
        return 1


LATE = [[7, 1, 2]]


@pytest.mark.parametrize(
    ("problem", "queue", "match"),
    [
        (FewBlocks, exact(), "CHAIN: BLOCKS must be the number of items.*limits: found 1, .* 3"),
        (WritesBeyond, beam(2, key=own_key), "features leaves the bounds of an array at input 0"),
        (LimitsBeyond, beam(2, key=own_key), "limits leaves the bounds of an array at input 0"),
        (EndlessSubBlocks, beam(2, key=own_key), "EndlessSubBlocks.sub_block: found 0"),
        (EndlessFactors, beam(2, key=own_key), "EndlessFactors.factors: found 0"),
        (Infinite, beam(2, key=own_key), "values of features must be finite.*Infinite.features"),
    ],
)
def test_a_promise_that_is_broken_late(little_known, problem, queue, match):
    machine, table = engine_for(problem, queue), new_table(2)
    decoder = Decoder(machine, table)
    for X in ([[0, 1, 2]] * 2, [[0, 1, 2]]):
        decoder.decode(make_dataset(X, spec=[0]))
    for X in ([[0, 1, 2], *LATE], LATE):
        with pytest.raises(BadProblem, match=match.replace("input 0", r"input \d")):
            decoder.decode(make_dataset(X, spec=[0]))
