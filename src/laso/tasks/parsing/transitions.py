"""What all transition systems share: their configurations, features and goal.

A system adds ``allowed``, ``apply`` and ``is_good`` of its operators.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.engine.layout import (
    BLOCKS,
    FACTORS,
    MAX_FEATURES,
    PARTIAL_STATES,
    SAME_LABEL,
    STATE_SIZE,
    STEPS,
    VECTORS,
)
from laso.engine.problem import CompiledProblem
from laso.tasks.parsing.configuration import (
    DEEPEST,
    DENSE,
    FRONT,
    MOST,
    SINGLE_ROOT,
    SIZE,
    dense_element,
    dense_word,
    n_factors,
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
        out[BLOCKS] = x.spec[DENSE] * n
        out[VECTORS] = 1
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
        return (i if i < n_factors(x) else -1), SAME_LABEL

    @staticmethod
    def features(x, state, group, out):
        return write_features(x, state, group, out.keys)

    @staticmethod
    def name(x, state, group, block):
        return part_name(x, state, group)

    @staticmethod
    def is_goal(x, state):
        return state[FRONT] == x.items.shape[0] and state[SIZE] == 0


class DenseTransitions(Transitions):
    """Adds the dense vectors of the words on top of the stack and at the front of the buffer.

    Each of these words is a factor of its own, whose sums are known for all states that have it.
    """

    @staticmethod
    def block(x, state, group):
        element = dense_element(x, group)
        word = dense_word(x, state, element) if element >= 0 else -1
        return element * x.items.shape[0] + word if word >= 0 else -1

    @staticmethod
    def vectors(x, block, i):
        n = max(x.items.shape[0], 1)
        return block % n, (block // n if i == 0 else -1)

    @staticmethod
    def features(x, state, group, out):
        return 0 if dense_element(x, group) >= 0 else write_features(x, state, group, out.keys)

    @staticmethod
    def name(x, state, group, block):
        return 0 if dense_element(x, group) >= 0 else part_name(x, state, group)
