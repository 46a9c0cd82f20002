"""Problems of each kind of kernel that keep every promise until one late input.

The constants choose the method that breaks its promise, and how: ``x.spec[0]`` is a code, the odd
values follow it. Only inputs whose first item is marked are late.
"""

from __future__ import annotations

from typing import Any

from laso.engine.hashing import mix
from laso.engine.layout import (
    BLOCKS,
    CHAIN,
    FACTORS,
    FORM,
    MAX_FEATURES,
    MAX_GROUPS,
    SAME_LABEL,
    SEGMENTS,
    STATE_SIZE,
    STEPS,
    Limit,
)
from laso.engine.problem import NAMES, CompiledProblem

ODD = (0, 1, -1, -2, 100_000, 2**31 - 1, -(2**31), 2**62)  # what a method returns
FAR = 1 << 40
BEYOND = (0, 1, 100, FAR, -FAR)  # the promised end, where a method writes
OF_METHOD = 16  # codes
(
    OF_LIMITS,
    OF_INITIAL,
    OF_GROUPS,
    OF_FACTORS,
    OF_CHOICES,
    OF_BLOCK,
    OF_SUB_BLOCK,
    OF_BLOCK_FEATURES,
    OF_FEATURES,
    OF_NAME,
    OF_ALLOWED,
    OF_APPLY,
    OF_IS_GOAL,
    OF_IS_GOOD,
    OF_LOSS,
    OF_KEY,
    OF_SIGNATURE,
) = range(17)
FIRST_LIMIT = OF_METHOD * len(NAMES)  # the codes of odd limits: eight for each
NORMAL = -1


def odd(x, method, result):
    """Return an odd value in the place of a method's result, if this input is to have one."""
    code = x.spec[0] - 16 * method
    if not 0 <= code < 14 or x.items.shape[0] == 0 or x.items[0, 1] == 0:
        return result
    if code < 8:
        return x.spec[1 + code]
    if code == 13:
        return x.items[x.items.shape[0] + x.spec[1 + 11], 0]
    return result


def write_odd(x, method, out):
    """Write beyond the end of an array, if the method is to do so."""
    code = x.spec[0] - 16 * method
    if 8 <= code < 13 and x.items.shape[0] > 0 and x.items[0, 1] != 0:
        out[x.spec[9 + code - 8]] = 77


def write_limits(x, out):
    n = x.items.shape[0]
    out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 3, 2
    out[BLOCKS], out[STEPS] = 2 * n + 2, n


def write_odd_limits(x, out):
    code = x.spec[0] - 16 * 17
    if 0 <= code < 80 and x.items.shape[0] > 0 and x.items[0, 1] != 0:
        out[code // 8] = x.spec[1 + code % 8]
    write_odd(x, 0, out)


class Blocks(CompiledProblem):
    """Label items from left to right, each with a block."""

    @staticmethod
    def limits(x, out):
        write_limits(x, out)
        write_odd_limits(x, out)

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -1
        write_odd(x, 1, state)
        state[0] = odd(x, 1, state[0])

    @staticmethod
    def groups(x, state, out):
        out[0] = 0
        write_odd(x, 2, out)
        return odd(x, 2, 1)

    @staticmethod
    def block(x, state, group):
        return odd(x, 5, state[0])

    @staticmethod
    def block_features(x, block, out):
        out.keys[0] = mix(1, x.items[min(block, x.items.shape[0] - 1), 0])
        write_odd(x, 7, out.keys)
        return odd(x, 7, 1)

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(2, state[1])
        write_odd(x, 8, out.keys)
        return odd(x, 8, 1)

    @staticmethod
    def allowed(x, state, group, label):
        return odd(x, 10, 1) != 0

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + 1, label
        write_odd(x, 11, new)
        new[0] = odd(x, 11, new[0])

    @staticmethod
    def is_goal(x, state):
        return odd(x, 12, state[0] == x.items.shape[0]) != 0

    @staticmethod
    def is_good(x, y, state, group, label):
        return odd(x, 13, y[min(state[0], y.shape[0] - 1)] == label) != 0

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return 1.0 / odd(x, 14, 1)

    @staticmethod
    def key(x, state, group, label):
        return odd(x, 15, state[0] + 1)

    @staticmethod
    def signature(x, state, group, label):
        return odd(x, 16, label)


class SubBlocks(Blocks):
    """The same, where each block has the one before as its sub-block."""

    @staticmethod
    def sub_block(x, block, i):
        return odd(x, 6, block - 1 if i == 0 else -1)


class Chains(Blocks):
    """The same, with the promise of chains."""

    @staticmethod
    def limits(x, out):
        write_limits(x, out)
        out[MAX_GROUPS], out[BLOCKS], out[FORM] = 1, x.items.shape[0], CHAIN
        write_odd_limits(x, out)


class Factors(Blocks):
    """The same, with a second factor of each step."""

    @staticmethod
    def limits(x, out):
        write_limits(x, out)
        out[FACTORS] = 1
        write_odd_limits(x, out)

    @staticmethod
    def groups(x, state, out):
        out[0] = 1
        write_odd(x, 2, out)
        return odd(x, 2, 1)

    @staticmethod
    def factors(x, state, group, i):
        return odd(x, 3, 0 if i == 0 else -1), SAME_LABEL

    @staticmethod
    def name(x, state, group, block):
        return odd(x, 9, 0)


class FactorLabels(Factors):
    """The same, where the label of a factor is odd."""

    @staticmethod
    def factors(x, state, group, i):
        return 0 if i == 0 else -1, odd(x, 3, SAME_LABEL)


class Choices(Blocks):
    """The same, where the labels of each step are listed."""

    @staticmethod
    def choices(x, state, group, out):
        out[0], out[1] = 0, 1
        write_odd(x, 4, out)
        return odd(x, 4, 2)


class Chosen(Blocks):
    """The same, where a listed label is odd."""

    @staticmethod
    def choices(x, state, group, out):
        out[0], out[1] = 0, odd(x, 4, 1)
        return 2


class Weighted(SubBlocks):
    """The same as with sub-blocks, where features have values: odd ones over zero."""

    weighted = True

    @staticmethod
    def block_features(x, block, out):
        out.keys[0] = mix(1, x.items[min(block, x.items.shape[0] - 1), 0])
        out.values[0] = 5.0 / odd(x, 7, 1)
        return 1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0], out.values[0] = mix(2, state[1]), 5.0 / odd(x, 8, 1)
        write_odd(x, 8, out.values)
        return 1


class Segments(CompiledProblem):
    """Cut a sequence into labelled segments of one to three items."""

    @staticmethod
    def limits(x, out):
        n = x.items.shape[0]
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 3, 2
        out[BLOCKS], out[STEPS], out[FORM] = 4 * n + 4, n, SEGMENTS
        write_odd_limits(x, out)

    initial = staticmethod(Blocks.initial)

    @staticmethod
    def groups(x, state, out):
        n = min(3, x.items.shape[0] - state[0])
        for i in range(n):
            out[i] = i + 1
        write_odd(x, 2, out)
        return odd(x, 2, n)

    @staticmethod
    def block(x, state, group):
        return odd(x, 5, 4 * state[0] + group)

    @staticmethod
    def sub_block(x, block, i):
        return odd(x, 6, block - 1 if i == 0 and block % 4 > 1 else -1)

    @staticmethod
    def block_features(x, block, out):
        out.keys[0] = mix(block % 4, x.items[min(block // 4, x.items.shape[0] - 1), 0])
        write_odd(x, 7, out.keys)
        return odd(x, 7, 1)

    features = staticmethod(Blocks.features)

    @staticmethod
    def name(x, state, group, block):
        first = x.items[min(max(block, 0) // 4, x.items.shape[0] - 1), 0]
        return odd(x, 9, mix(block % 4, first))

    allowed = staticmethod(Blocks.allowed)

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + group, label
        write_odd(x, 11, new)
        new[0] = odd(x, 11, new[0])

    is_goal = staticmethod(Blocks.is_goal)

    @staticmethod
    def is_good(x, y, state, group, label):
        good = group == 1 and y[min(max(state[0], 0), y.shape[0] - 1)] == label
        return odd(x, 13, good) != 0

    loss = staticmethod(Blocks.loss)

    @staticmethod
    def key(x, state, group, label):
        return odd(x, 15, state[0] + group)

    @staticmethod
    def signature(x, state, group, label):
        return odd(x, 16, label)


KINDS: dict[str, Any] = {
    "blocks": Blocks,
    "sub-blocks": SubBlocks,
    "chains": Chains,
    "factors": Factors,
    "factor labels": FactorLabels,
    "choices": Choices,
    "chosen labels": Chosen,
    "values": Weighted,
    "segments": Segments,
}
CODES = [*range(FIRST_LIMIT), *range(FIRST_LIMIT, FIRST_LIMIT + 8 * len(Limit))]


def spec_for(code: int, room: int) -> list[int]:
    """Return the constants with which a method breaks its promise in the way of a code."""
    return [code, *ODD, *(room + at if abs(at) < FAR else at for at in BEYOND)]
