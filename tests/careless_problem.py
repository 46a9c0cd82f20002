"""Problems with a mistake each, most of which compiled code would only notice by a crash.

python -m tests.careless_problem NAME,... trains and decodes with each problem and prints the errors
as JSON: {name: {call: [type, message]}}. It runs in a process of its own, so that a crash would be
seen.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from laso import beam, exact, fit, own_key, perceptron
from laso.engine.choose import engine_for
from laso.engine.dataset import make_dataset
from laso.engine.hashing import mix
from laso.engine.layout import (
    BLOCKS,
    FACTORS,
    MAX_FEATURES,
    MAX_GROUPS,
    MAX_LABELS,
    SAME_LABEL,
    STATE_SIZE,
    STEPS,
    Dataset,
)
from laso.engine.machine import all_of, new_table
from laso.engine.problem import CompiledProblem
from laso.errors import LasoError

FAR = 1 << 40  # far enough to be outside the memory of the process


def write_careful_limits(x, out):
    out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 1, 2
    out[BLOCKS] = out[STEPS] = x.items.shape[0]


class Careful(CompiledProblem):
    """Label items from left to right; no mistake."""

    @staticmethod
    def limits(x, out):
        write_careful_limits(x, out)

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -1

    @staticmethod
    def groups(x, state, out):
        out[0] = 0
        return 1

    @staticmethod
    def block(x, state, group):
        return state[0]

    @staticmethod
    def sub_block(x, block, i):
        return block - 1 if i == 0 else -1

    @staticmethod
    def block_features(x, block, out):
        out.keys[0] = mix(1, x.items[block, 0])
        return 1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(2, state[1])
        out.keys[1] = mix(3, x.items[state[0], 0])
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

    @staticmethod
    def key(x, state, group, label):
        return state[0] + 1

    @staticmethod
    def signature(x, state, group, label):
        return label


# Indices out of range.


class OneKeyTooMany(Careful):
    @staticmethod
    def features(x, state, group, out):
        for i in range(3):
            out.keys[i] = i  # one key
        return 3


class ManyKeysTooMany(Careful):
    @staticmethod
    def features(x, state, group, out):
        for i in range(100_002):
            out.keys[i] = i  # many keys
        return 2


class BlockKeys(Careful):
    @staticmethod
    def block_features(x, block, out):
        out.keys[FAR] = 1  # block keys
        return 1


class Weighted(Careful):
    """The same with values of features."""

    weighted = True

    @staticmethod
    def block_features(x, block, out):
        out.keys[0], out.values[0] = x.items[block, 0], 0.5
        return 1


class WeightedValues(Weighted):
    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = 1
        out.values[FAR] = 1.0  # values
        return 1


class NewState(Careful):
    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + 1, label
        new[FAR] = label  # new


class InitialState(Careful):
    @staticmethod
    def initial(x, state):
        state[0], state[1], state[2] = 0, 0, 0  # initial


class Groups(Careful):
    @staticmethod
    def groups(x, state, out):
        for i in range(100_000):
            out[i] = i  # groups
        return 1


class Limits(Careful):
    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES], out[STEPS] = 2, 1, 2, 9
        out[FAR] = 1  # limits


class Items(Careful):
    @staticmethod
    def is_goal(x, state):
        return word_at(x, state[0]) < 0 or state[0] == x.items.shape[0]


def word_at(x, i):
    return x.items[i, 0] - x.items[i + FAR, 0]  # items


class Columns(Careful):
    @staticmethod
    def block_features(x, block, out):
        out.keys[0] = x.items[block, FAR]  # columns
        return 1


class Pool(Careful):
    @staticmethod
    def allowed(x, state, group, label):
        return x.pool[x.items[state[0], 0] + FAR] == 0  # pool


class Choices(Careful):
    @staticmethod
    def choices(x, state, group, out):
        out[2] = 1  # far choices
        return 0


class Spec(Careful):
    @staticmethod
    def is_goal(x, state):
        return x.spec[FAR]  # spec


class State(Careful):
    @staticmethod
    def signature(x, state, group, label):
        return state[2]  # state


class Gold(Careful):
    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0] + FAR] == label  # gold


class GoldLoss(Careful):
    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return float(y[state[0] + FAR])  # gold loss


# Writing to what belongs to others.


class ChangesState(Careful):
    @staticmethod
    def apply(x, state, group, label, new):
        state[0] += 1  # changes state
        new[0], new[1] = state[0], label


class ChangesInput(Careful):
    @staticmethod
    def features(x, state, group, out):
        x.items[0, 0] = 7  # changes input
        return 0


# Broken promises.


class BlockTooHigh(Careful):
    @staticmethod
    def block(x, state, group):  # block
        return 1_000_000 + state[0]


class SubBlockTooHigh(Careful):
    @staticmethod
    def sub_block(x, block, i):  # sub-block
        return block


class EndlessSubBlocks(Careful):
    @staticmethod
    def sub_block(x, block, i):  # endless
        return block - 1


class KeyTooHigh(Careful):
    @staticmethod
    def key(x, state, group, label):  # key
        return 1_000_000 * (state[0] + 1)


class KeyStays(Careful):
    @staticmethod
    def key(x, state, group, label):  # key stays
        return 1


class TooManyLabels(Careful):
    @staticmethod
    def limits(x, out):  # labels
        write_careful_limits(x, out)
        out[MAX_LABELS] = 1_000_000


class TooManyGroups(Careful):
    @staticmethod
    def groups(x, state, out):  # too many groups
        out[0] = 0
        return 1_000_000


class TooManySteps(Careful):
    key = staticmethod(CompiledProblem.key)

    @staticmethod
    def limits(x, out):  # too many steps
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 1, 2
        out[BLOCKS], out[STEPS] = x.items.shape[0], x.items.shape[0] - 1


class FeaturesNotSet(Careful):
    @staticmethod
    def limits(x, out):  # features not set
        out[STATE_SIZE], out[BLOCKS] = 2, x.items.shape[0]


class BlocksNotSet(Careful):
    @staticmethod
    def limits(x, out):  # blocks not set
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 1, 2
        out[STEPS] = x.items.shape[0]


class NegativeLimit(Careful):
    @staticmethod
    def limits(x, out):  # negative
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 1, 2
        out[BLOCKS] = out[STEPS] = -5


class NewNotWritten(Careful):
    @staticmethod
    def apply(x, state, group, label, new):  # new not written
        new[0] = state[0] + 1


class StateNotWritten(Careful):
    @staticmethod
    def initial(x, state):  # state not written
        state[1] = -1


class StaleKeys(Careful):
    @staticmethod
    def features(x, state, group, out):  # stale keys
        out.keys[1] = 1
        return 2


class StaleGroups(Careful):
    @staticmethod
    def groups(x, state, out):  # stale groups
        return 1


# For calls of the check itself: no mistake, or one that only a part of the engine can have.


class StaleValues(Weighted):
    @staticmethod
    def features(x, state, group, out):  # stale values
        out.keys[0] = 1
        return 1


class BadValues(Weighted):
    @staticmethod
    def features(x, state, group, out):  # bad values
        out.keys[0], out.values[0] = 1, np.nan
        return 1


class BadLoss(Careful):
    @staticmethod
    def loss(x, y, state, group, label, was_good, good):  # bad loss
        return np.inf


class Factored(Careful):
    """Every step has the factor 0 too, with its own label; the group is 1."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES], out[FACTORS] = 2, 1, 2, 1
        out[BLOCKS] = out[STEPS] = x.items.shape[0]

    @staticmethod
    def groups(x, state, out):
        out[0] = 1
        return 1

    @staticmethod
    def factors(x, state, group, i):
        return (0, SAME_LABEL) if i == 0 else (-1, SAME_LABEL)


class FactorTooHigh(Factored):
    @staticmethod
    def factors(x, state, group, i):  # factor
        return (1_000_000, SAME_LABEL) if i == 0 else (-1, SAME_LABEL)


class FactorLabelTooHigh(Factored):
    @staticmethod
    def factors(x, state, group, i):  # factor label
        return (0, 2) if i == 0 else (-1, SAME_LABEL)


class EndlessFactors(Factored):
    @staticmethod
    def factors(x, state, group, i):  # endless factors
        return 0, SAME_LABEL


class GroupTooLow(Factored):
    @staticmethod
    def groups(x, state, out):  # group too low
        out[0] = 0
        return 1


class Long(Careful):
    """Breaks its promise for inputs of more than three items."""

    @staticmethod
    def features(x, state, group, out):
        out.keys[FAR * (x.items.shape[0] > 3)] = 1  # long
        return 1


class Constants(Careful):
    """Breaks its promise where the constants say so."""

    @staticmethod
    def features(x, state, group, out):
        out.keys[FAR * x.spec[0]] = 1  # constants
        return 1


X = [[0, 1, 2], [2], [1, 0, 1]]
Y = [[0, 1, 1], [1], [1, 0, 1]]
LONG = [0, 1, 2, 1, 0]


def dataset_of(inputs: Any = X, outputs: Any = Y, spec: Any = (0,)) -> Dataset:
    return make_dataset(inputs, outputs, spec=spec)


def learn(problem: type[CompiledProblem], queue: Any, X: Any = X, Y: Any = Y) -> None:
    data = list(zip(X, Y, strict=True))
    fit(problem, data, n_labels=2, spec=[0], epochs=1, queue=queue, update=perceptron())


def decode(problem: type[CompiledProblem], queue: Any, X: Any = X) -> None:
    dataset = make_dataset(X, spec=[0])
    engine_for(problem, queue).decode(dataset, np.asarray(all_of(dataset)), new_table(2))


def queue_for(problem: type[CompiledProblem]) -> Any:
    return beam(2) if problem.key is CompiledProblem.key else beam(2, key=own_key)


CALLS: dict[str, Callable[[type[CompiledProblem]], None]] = {
    "learn": lambda problem: learn(problem, queue_for(problem)),
    "decode": lambda problem: decode(problem, queue_for(problem)),
    "learn exactly": lambda problem: learn(problem, exact()),
    "decode exactly": lambda problem: decode(problem, exact()),
}


def decode_short_then_long(problem: type[CompiledProblem]) -> None:
    decode(problem, queue_for(problem))
    decode(problem, queue_for(problem), [*X, LONG])


def error_of(call: Callable[[Any], None], problem: Any) -> list[str]:
    try:
        call(problem)
    except LasoError as error:
        return [type(error).__name__, str(error)]
    return ["no error", ""]


if __name__ == "__main__":
    errors = {}
    for name in sys.argv[1].split(","):
        calls = {"short, long": decode_short_then_long} if name == "Long" else CALLS
        errors[name] = {what: error_of(call, globals()[name]) for what, call in calls.items()}
    sys.stdout.write(json.dumps(errors))
