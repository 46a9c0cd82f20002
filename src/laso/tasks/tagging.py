"""Sequence labelling as search: word by word, the next label.

State: the number of words labelled and the last labels. Operator: the label of the next word.
    Validity   the label may follow the last one (and may end the sentence if it is the last word)
    Goodness   it is the label wanted, or no label is known for this word
    Action     the label joins the history

Features are templates: lists of atoms (column, offset) over the input columns of the words around,
and of atoms on the labels before. They are data, interpreted here, so that new templates need no
new compilation. Templates without label atoms depend on the position alone and are summed once.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.engine.hashing import mix
from laso.engine.layout import CELLS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS
from laso.engine.problem import CompiledProblem

# The constants at the head of spec; programs and tables follow them.
N_LABELS, ORDER, STATIC, N_STATIC, DYNAMIC, N_DYNAMIC, ALLOWED, LISTS, MOST, HEAD = range(10)
LABEL_ATOM = -1  # stands for a column: the label predicted at that offset
BEFORE, AFTER = -2, -1000  # values of words outside the sentence, by distance


def value_at(items, column, position):
    """The value of a column at a position; beyond the ends it tells how far beyond."""
    if position < 0:
        return BEFORE + position
    if position >= items.shape[0]:
        return AFTER - (position - items.shape[0])
    return items[position, column]


def template_keys(x, state, at, n, out):
    """Write the keys of n templates whose program begins at spec[at]: id, atoms, atom pairs."""
    spec, items, keys = x.spec, x.items, out.keys
    position = state[0]
    for i in range(n):
        key = spec[at]
        atoms = spec[at + 1]
        at += 2
        for _ in range(atoms):
            column, offset = spec[at], spec[at + 1]
            at += 2
            if column == LABEL_ATOM:
                value = state[-offset]
            else:
                value = value_at(items, column, position + offset)
            key = mix(key, value)
        keys[i] = key
    return n


class Tagging(CompiledProblem):
    """Label the words of a sentence from left to right."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE] = 1 + x.spec[ORDER]
        out[MAX_GROUPS] = 1
        out[MAX_FEATURES] = x.spec[N_STATIC] + x.spec[N_DYNAMIC] + x.spec[MOST]
        out[CELLS] = x.items.shape[0]
        out[STEPS] = x.items.shape[0]

    @staticmethod
    def initial(x, state):
        state[0] = 0
        for i in range(1, state.shape[0]):
            state[i] = -1

    @staticmethod
    def cell(x, state, group):
        return state[0]

    @staticmethod
    def shared(x, state, group, out):
        n = template_keys(x, state, x.spec[STATIC], x.spec[N_STATIC], out)
        column = x.spec[LISTS]
        if column >= 0:
            for j in range(x.items[state[0], column], x.items[state[0], column + 1]):
                out.keys[n] = x.pool[j]
                n += 1
        return n

    @staticmethod
    def features(x, state, group, out):
        return template_keys(x, state, x.spec[DYNAMIC], x.spec[N_DYNAMIC], out)

    @staticmethod
    def allowed(x, state, group, label):
        table = x.spec[ALLOWED]
        if table == 0:
            return True
        n = x.spec[N_LABELS]
        last = state[0] + 1 == x.items.shape[0]
        if last and x.spec[table + (n + 1) * n + label] == 0:
            return False
        previous = state[1] if state.shape[0] > 1 else 0
        return x.spec[table + (previous + 1) * n + label] != 0

    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + 1
        for i in range(state.shape[0] - 1, 1, -1):
            new[i] = state[i - 1]
        if state.shape[0] > 1:
            new[1] = label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0]] < 0 or y[state[0]] == label

    @staticmethod
    def key(x, state, group, label):
        return state[0] + 1

    @staticmethod
    def signature(x, state, group, label):
        joined = label
        for i in range(1, state.shape[0] - 1):
            joined = joined * (x.spec[N_LABELS] + 1) + state[i] + 1
        return joined
