"""What all transition systems share: their configurations, features and goal.

A system adds ``allowed``, ``apply`` and ``is_good`` of its operators.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.engine.layout import (
    FACTORS,
    MAX_FEATURES,
    PARTIAL_STATES,
    SAME_LABEL,
    STATE_SIZE,
    STEPS,
)
from laso.engine.problem import CompiledProblem
from laso.tasks.parsing.configuration import (
    DEEPEST,
    FRONT,
    MOST,
    N_PARTS,
    SINGLE_ROOT,
    SIZE,
    own_group,
    part_name,
    state_size,
    write_features,
    write_initial,
)


def can_shift(x, state):
    """Return whether the buffer has a word, and the stack has room."""
    return state[FRONT] < x.items.shape[0] and state[SIZE] < DEEPEST


def can_root(x, state):
    """Return whether the artificial root may become the head of the stack's top."""
    size = state[SIZE]
    single = size == 1 or (size > 1 and x.spec[SINGLE_ROOT] == 0)
    return state[FRONT] == x.items.shape[0] and single


class Transitions(CompiledProblem):
    """Find the head of every word of a sentence, and the label of the arc."""

    @staticmethod
    def limits(x, out):
        n = x.items.shape[0]
        out[STATE_SIZE] = state_size(n)
        out[MAX_FEATURES] = x.spec[MOST]
        out[FACTORS] = own_group(x)
        out[STEPS] = 2 * n
        out[PARTIAL_STATES] = 1  # what is beyond the stack is never read

    @staticmethod
    def initial(x, state):
        write_initial(state, x.items.shape[0])

    @staticmethod
    def groups(x, state, out):
        out[0] = own_group(x)
        return 1

    @staticmethod
    def factors(x, state, group, i):
        return (i if i < x.spec[N_PARTS] - 1 else -1), SAME_LABEL

    @staticmethod
    def features(x, state, group, out):
        return write_features(x, state, group, out.keys)

    @staticmethod
    def name(x, state, group, block):
        return part_name(x, state, group)

    @staticmethod
    def is_goal(x, state):
        return state[FRONT] == x.items.shape[0] and state[SIZE] == 0
