"""A problem that breaks one promise of its limits, which the constants choose.

python -m tests.faulty_problem CALL FAULT prints the error as one line of text. It runs in a process
of its own, so that a crash would be seen.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from laso import adagrad, beam, bounded_best_first, depth, exact, fit, perceptron, standard
from laso.engine.choose import engine_for
from laso.engine.dataset import make_dataset
from laso.engine.epochs import Plan
from laso.engine.layout import (
    BLOCKS,
    FACTORS,
    MAX_FEATURES,
    MAX_GROUPS,
    MAX_LABELS,
    SAME_LABEL,
    STATE_SIZE,
    STEPS,
)
from laso.engine.machine import all_of, new_table
from laso.engine.options import own_key
from laso.engine.problem import CompiledProblem
from laso.errors import LasoError

FAULTS = (
    "none",
    "groups",
    "no groups",
    "labels",
    "block",
    "sub_block",
    "block_features",
    "features",
    "key",
    "same key",
    "steps",
    "factor",
    "factor label",
    "choice",
    "choices",
)
(
    NONE,
    GROUPS,
    NO_GROUPS,
    LABELS,
    BLOCK,
    SUB_BLOCK,
    BLOCK_FEATURES,
    FEATURES,
    KEY,
    SAME_KEY,
    TOO_FEW_STEPS,
    FACTOR,
    FACTOR_LABEL,
    CHOICE,
    CHOICES,
) = range(15)
FAULT, PLACE = 0, 1  # in spec: which promise is broken, and at which item


def breaks(x, at, fault):
    return x.spec[FAULT] == fault and at == x.spec[PLACE] and x.items.shape[0] > 3


class Faulty(CompiledProblem):
    """Cut a sequence into labelled segments of one or two items.

    Segments beyond the end are not allowed; their keys are beyond all bounds.
    """

    @staticmethod
    def limits(x, out):
        n = x.items.shape[0]
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 2, 2
        out[BLOCKS] = 2 * n
        out[STEPS] = n - 1 if x.spec[FAULT] == TOO_FEW_STEPS else n
        out[FACTORS] = 1
        out[MAX_LABELS] += breaks(x, x.spec[PLACE], LABELS)

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -1

    @staticmethod
    def groups(x, state, out):
        out[0], out[1] = 2, 1
        if breaks(x, state[0], GROUPS):
            out[2] = 1
            return 3
        return -1 if breaks(x, state[0], NO_GROUPS) else 2

    @staticmethod
    def choices(x, state, group, out):
        for label in range(2):
            out[label] = label
        if breaks(x, state[0], CHOICE):
            out[1] = 2
        return 3 if breaks(x, state[0], CHOICES) else 2

    @staticmethod
    def block(x, state, group):
        n = x.items.shape[0]
        return 2 * n if breaks(x, state[0], BLOCK) else min(2 * state[0] + group - 1, 2 * n - 1)

    @staticmethod
    def sub_block(x, block, i):
        if breaks(x, block // 2, SUB_BLOCK):
            return block
        return block - 1 if i == 0 and block % 2 else -1

    @staticmethod
    def block_features(x, block, out):
        out.keys[0] = x.items[block // 2, 0] + 1
        if breaks(x, block // 2, BLOCK_FEATURES):
            out.keys[1] = out.keys[2] = 7
            return 3
        return 1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = 100 + group
        if breaks(x, state[0], FEATURES):
            out.keys[1] = out.keys[2] = 7
            return 3
        return 1

    @staticmethod
    def allowed(x, state, group, label):
        longest = 1 if x.spec[FAULT] == TOO_FEW_STEPS else 2
        return group <= longest and state[0] + group <= x.items.shape[0]

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + group, label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return group == 1 and y[state[0]] == label

    @staticmethod
    def key(x, state, group, label):
        if state[0] + group > x.items.shape[0]:
            return 1_000_000_000
        if breaks(x, state[0], KEY):
            return 1_000_000
        return state[0] if breaks(x, state[0], SAME_KEY) else state[0] + group

    @staticmethod
    def signature(x, state, group, label):
        return 2 * (state[0] + group) + label


class Unkeyed(Faulty):
    """The same where rounds are depths."""

    key = staticmethod(CompiledProblem.key)


class Factored(Faulty):
    """The same with factors."""

    @staticmethod
    def groups(x, state, out):
        out[0], out[1] = 2, 1
        return 2

    @staticmethod
    def factors(x, state, group, i):
        if i > 0:
            return -1, SAME_LABEL
        label = 2 if breaks(x, state[0], FACTOR_LABEL) else SAME_LABEL
        return 1 if breaks(x, state[0], FACTOR) else 0, label


X = [[1, 2], [1, 2, 3, 4, 1, 2]]
Y = [[1, 0], [1, 1, 0, 1, 0, 1]]


def call(problem: type[CompiledProblem], fault: int, *, place: int = 2, **settings: Any) -> None:
    """Train for an epoch."""
    data = list(zip(X, Y, strict=True))
    plan = Plan(epochs=1, seed=None)
    fit(problem, data, n_labels=2, spec=[fault, place], epochs=plan.epochs, **settings)


def decode(problem: type[CompiledProblem], fault: int, **settings: Any) -> Any:
    """Decode with weights of zero."""
    machine = engine_for(problem, **{"queue": beam(5), **settings})
    dataset = make_dataset(X, spec=[fault, 2])
    return machine.decode(dataset, np.asarray(all_of(dataset)), new_table(2))


by_key = beam(8, key=own_key)
CALLS: dict[str, Any] = {
    "decode": lambda fault: decode(Faulty, fault, queue=by_key),
    "decode by depth": lambda fault: decode(Faulty, fault, queue=beam(40, key=depth)),
    "decode ranked": lambda fault: decode(Faulty, fault, queue=bounded_best_first(99)),
    "learn": lambda fault: call(Faulty, fault, queue=by_key),
    # The bad path leaps over the item; only the good siblings of its end come there.
    "learn siblings": lambda fault: call(Faulty, fault, place=1, queue=beam(1, key=own_key)),
    "learn in full": lambda fault: call(Faulty, fault, queue=by_key, strategy=standard),
    "exact": lambda fault: decode(Faulty, fault, queue=exact()),
    "exact by depth": lambda fault: decode(Unkeyed, fault, queue=exact()),
    "learn exactly": lambda fault: call(Faulty, fault, queue=exact(), update=perceptron()),
    "likelihood": lambda fault: call(Faulty, fault, queue=exact(), update=adagrad()),
    "factors": lambda fault: decode(Factored, fault, queue=by_key),
    "learn factors": lambda fault: call(Factored, fault, place=1, queue=beam(1, key=own_key)),
}


if __name__ == "__main__":
    for name in sys.argv[2].split(","):
        try:
            CALLS[sys.argv[1]](FAULTS.index(name))
        except LasoError as error:
            sys.stdout.write(f"{name}: {type(error).__name__}: {error}\n")
        else:
            sys.stdout.write(f"{name}: no error\n")
