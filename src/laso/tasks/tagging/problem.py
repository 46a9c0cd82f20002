"""Sequence labelling as search: word by word, the next label.

State: the number of words labelled and the last labels. Operator: the label of the next word.
    Validity   the label may follow the last one, and the words left can still be labelled
    Goodness   it is the gold label; where that is unknown, the known labels stay reachable
    Action     the label joins the history

Features are templates: lists of atoms (column, offset) over the input columns of the words around,
and of atoms on the labels before. They are data, interpreted here, so that new templates need no
new compilation. Templates without label atoms depend only on the position and are computed once.
Words may also have feature lists, whose keys are in the pool.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import numpy as np

from laso.engine.costs import cost_of
from laso.engine.layout import (
    BLOCKS,
    CHAIN,
    FORM,
    KEY_OF_GROUP,
    MAX_FEATURES,
    STATE_SIZE,
    VECTORS,
    Array,
)
from laso.engine.problem import CompiledProblem
from laso.features.windows import Program, flatten_program, template_keys
from laso.tasks.constraints import Constraints

# The constants at the head of spec; programs and tables follow them.
(
    N_LABELS,
    ORDER,
    STATIC,
    N_STATIC,
    DYNAMIC,
    N_DYNAMIC,
    ALLOWED,  # the offset of the table of labels that may follow each other; 0: none
    HORIZON,  # the last row of the table of labels from which the end can be reached
    SETS,  # the offset of the sets of good labels for words without a label
    LISTS,  # the column with the start of a word's feature list, the next has its end; -1: none
    MOST,  # the length of the longest feature list
    KNOWN_FORM,  # whether the lattices of exact search are chains: CHAIN or KEY_OF_GROUP
    AROUND,  # how many neighbours on either side have their dense vectors among the features
    HEAD,
) = range(14)


def static_keys(x, position, out):
    """Write the feature keys of the templates without labels."""
    no_state = x.items[position]  # not read: any row serves
    return template_keys(x, position, no_state, x.spec[STATIC], x.spec[N_STATIC], out)


def dynamic_keys(x, state, out):
    """Write the feature keys of the templates with labels."""
    return template_keys(x, state[0], state, x.spec[DYNAMIC], x.spec[N_DYNAMIC], out)


class Tagging(CompiledProblem):
    """Label the words of a sentence from left to right."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE] = 1 + x.spec[ORDER]
        out[MAX_FEATURES] = max(x.spec[N_STATIC] + x.spec[MOST], x.spec[N_DYNAMIC])
        out[BLOCKS] = x.items.shape[0]
        out[VECTORS] = 2 * x.spec[AROUND] + 1
        out[FORM] = x.spec[KNOWN_FORM]

    @staticmethod
    def initial(x, state):
        state[0] = 0
        for i in range(1, state.shape[0]):
            state[i] = -1

    @staticmethod
    def block(x, state, group):
        return state[0]

    @staticmethod
    def block_features(x, block, out):
        n = static_keys(x, block, out)
        column = x.spec[LISTS]
        if column >= 0:
            items, pool, keys = x.items, x.pool, out.keys
            for j in range(items[block, column], items[block, column + 1]):
                keys[n] = pool[j]
                n += 1
        return n

    @staticmethod
    def features(x, state, group, out):
        return dynamic_keys(x, state, out)

    @staticmethod
    def allowed(x, state, group, label):
        spec = x.spec
        table = spec[ALLOWED]
        if table == 0:
            return True
        n = spec[N_LABELS]
        if spec[table + (state[1] + 1) * n + label] == 0:
            return False
        left = min(x.items.shape[0] - state[0] - 1, spec[HORIZON])
        return spec[table + (n + 1 + left) * n + label] != 0

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
        gold = y[state[0]]
        if gold >= -1:
            return gold == -1 or gold == label
        return x.spec[x.spec[SETS] - (gold + 2) * x.spec[N_LABELS] + label] != 0

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return cost_of(x, y[state[0]]) if was_good and not good else 0.0

    @staticmethod
    def key(x, state, group, label):
        return state[0] + 1

    @staticmethod
    def signature(x, state, group, label):
        joined = label
        for i in range(1, state.shape[0] - 1):
            joined = joined * (x.spec[N_LABELS] + 1) + state[i] + 1
        return joined


class WeightedTagging(Tagging):
    """Tagging with feature lists that have values; template features have the value 1."""

    weighted = True

    @staticmethod
    def block_features(x, block, out):
        n = static_keys(x, block, out)
        items, pool, given, keys, values = x.items, x.pool, x.values, out.keys, out.values
        for i in range(n):
            values[i] = 1.0
        column = x.spec[LISTS]
        if column >= 0:
            for j in range(items[block, column], items[block, column + 1]):
                keys[n] = pool[j]
                values[n] = given[j]
                n += 1
        return n

    @staticmethod
    def features(x, state, group, out):
        n = dynamic_keys(x, state, out)
        values = out.values
        for i in range(n):
            values[i] = 1.0
        return n


class DenseTagging(Tagging):
    """Tagging whose words have dense vectors, too: each word has its own and its neighbours'."""

    @staticmethod
    def vectors(x, block, i):
        around = x.spec[AROUND]
        return block + i - around, (i if i <= 2 * around else -1)


class DenseWeightedTagging(WeightedTagging):
    """The same for feature lists that have values."""

    vectors = DenseTagging.vectors


# --------------------------------------------------------------------------- making spec


def make_spec(
    n_labels: int,
    templates: Program,
    *,
    constraints: Constraints | None = None,
    longest: int = 1,
    sets: Array | None = None,
    lists: tuple[int, int] = (-1, 0),
    around: int = 0,
) -> Array:
    """Return the constants of a tagging problem.

    ``longest`` is the length of the longest sentence, ``sets`` are rows of flags to which outputs
    below -1 refer (-2 is the first row), ``lists`` are LISTS and MOST.
    """
    offsets = [o for _, atoms in templates for column, o in atoms if column < 0]
    order = max([0, *(-o for o in offsets)])
    spec = [0] * HEAD
    spec[N_LABELS] = n_labels
    spec[LISTS], spec[MOST] = lists
    spec[AROUND] = around
    static = [t for t in templates if all(column >= 0 for column, _ in t[1])]
    dynamic = [t for t in templates if any(column < 0 for column, _ in t[1])]
    spec[N_STATIC], spec[N_DYNAMIC] = len(static), len(dynamic)
    for at, program in ((STATIC, static), (DYNAMIC, dynamic)):
        spec[at] = len(spec)
        spec += flatten_program(program)
    if constraints is not None:
        order = max(order, 1)
        reaching = constraints.reaching(longest)
        spec[ALLOWED] = len(spec)
        spec[HORIZON] = len(reaching) - 1
        spec += constraints.follow.ravel().tolist() + reaching.ravel().astype(int).tolist()
    spec[ORDER] = order
    offsets_of = [[offset for _, offset in atoms] for _, atoms in dynamic]
    is_chain = constraints is None and offsets_of in ([], [[-1]])
    spec[KNOWN_FORM] = int(CHAIN if is_chain else KEY_OF_GROUP)
    spec[SETS] = len(spec)
    if sets is not None:
        spec += sets.ravel().astype(int).tolist()
    return np.array(spec, np.int64)
