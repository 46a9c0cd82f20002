"""Guarded arrays, and promises that a problem makes about its blocks and segments."""

from __future__ import annotations

import time

import numpy as np
import pytest

from laso import BadProblem
from laso.engine.checking.dry_run import Trial
from laso.engine.checking.guarded_arrays import ReadOnly, guarded
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


class KeysByDepth(Segmenting):
    segments = True

    @staticmethod
    def key(x, state, group, label):
        return 1


class OneSum(Segmenting):
    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = group
        return 1

    @staticmethod
    def features_of_state(x):
        return True


class WithoutBlocks(Segmenting):
    segments = True

    @staticmethod
    def block(x, state, group):
        return -1


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (OneName, "for a bundle with other features"),
        (KeysByDepth, "segments: the key of a step"),
        (OneSum, "other features for another group"),
        (WithoutBlocks, "with segments every step must have one"),
    ],
)
def test_promises_about_names_and_segments(problem, reason):
    corpus = corpus_of([[[1], [2], [3]]], [[0, 0, 0]], [0])
    with pytest.raises(BadProblem, match=reason):
        Trial(problem, corpus, 0, 3, learning=False).run(time.thread_time() + 10)
