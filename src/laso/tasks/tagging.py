"""Sequence labelling as search: word by word, the next label.

State: the number of words labelled and the last labels. Operator: the label of the next word.
    Validity   the label may follow the last one, and the words left can still be labelled
    Goodness   it is the gold label; where that is unknown, the known labels stay reachable
    Action     the label joins the history

Features are templates: lists of atoms (column, offset) over the input columns of the words around,
and of atoms on the labels before. They are data, interpreted here, so that new templates need no
new compilation. Templates without label atoms depend on the position alone and are summed once.
Words may also have lists of features of their own, whose keys are in the pool.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from laso.engine.hashing import mix
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS, Array
from laso.engine.problem import CompiledProblem

# The constants at the head of spec; programs and tables follow them.
(
    N_LABELS,
    ORDER,
    STATIC,
    N_STATIC,
    DYNAMIC,
    N_DYNAMIC,
    ALLOWED,  # 0, or where the table of labels that may follow each other is
    HORIZON,  # the last row of the table of labels from which the end can be reached
    SETS,  # where the sets of good labels for words without a label are
    LISTS,  # -1, or the column with the first of a word's own features; the next has the end
    MOST,  # the longest of these lists
    COSTS,  # 0, or where the losses of labels that are missed are
    HEAD,
) = range(13)
UNIT = 1 << 20  # losses are in spec as multiples of 1 / UNIT
LABEL_ATOM = -1  # stands for a column: the label predicted at that offset
BEFORE, AFTER = -2, -1000  # values of words outside the sentence, by distance
UNKNOWN = -1  # of a column: a value that learning never saw, so that no weight has its key


def cost_of(spec, costs, label):
    """The loss of missing a label, 1 if nothing else is said or the label is not known."""
    return spec[costs + label] / UNIT if costs > 0 and label >= 0 else 1.0


def value_at(items, column, position):
    """The value of a column at a position; beyond the ends it tells how far beyond."""
    if position < 0:
        return BEFORE + position
    if position >= items.shape[0]:
        return AFTER - (position - items.shape[0])
    return items[position, column]


def template_keys(x, position, state, at, n, out):
    """Write the keys of n templates whose program begins at spec[at]: id, atoms, atom pairs."""
    spec, items, keys = x.spec, x.items, out.keys
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


def static_keys(x, position, out):
    """Write the keys of the templates without labels."""
    no_state = x.items[position]  # any row will do
    return template_keys(x, position, no_state, x.spec[STATIC], x.spec[N_STATIC], out)


def dynamic_keys(x, state, out):
    """Write the keys of the templates with labels."""
    return template_keys(x, state[0], state, x.spec[DYNAMIC], x.spec[N_DYNAMIC], out)


class Tagging(CompiledProblem):
    """Label the words of a sentence from left to right."""

    costs = COSTS

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE] = 1 + x.spec[ORDER]
        out[MAX_GROUPS] = 1
        out[MAX_FEATURES] = max(x.spec[N_STATIC] + x.spec[MOST], x.spec[N_DYNAMIC])
        out[BLOCKS] = x.items.shape[0]
        out[STEPS] = x.items.shape[0]

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
        return cost_of(x.spec, x.spec[COSTS], y[state[0]]) if was_good and not good else 0.0

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
    """The same where the words' own features have values; those of templates are 1."""

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


# --------------------------------------------------------------------------- making spec

Program = Sequence[tuple[int, Sequence[tuple[int, int]]]]
"""Templates as (id, atoms), an atom being (column, offset)."""


@dataclass(frozen=True)
class Constraints:
    """Which labels may begin a sentence, follow each label, and end it, as flags."""

    follow: Array  # (labels + 1, labels): row 0 for the beginning, then one for each label
    end: Array  # (labels,)

    def reaching(self, longest: int) -> Array:
        """Row k: the labels from which k more words can be labelled to an end.

        It stops where the rows repeat themselves, or at the longest sentence.
        """
        rows = [self.end.astype(bool)]
        after = self.follow[1:].astype(bool)
        while len(rows) < max(longest, 1):
            row = (after & rows[-1]).any(axis=1)
            if (row == rows[-1]).all():
                break
            rows.append(row)
        return np.array(rows)

    def possible(self, length: int) -> bool:
        """Can a sentence of so many words be labelled at all?"""
        rows = self.reaching(length)
        return not length or bool((self.follow[0] & rows[min(length, len(rows)) - 1]).any())

    def good_sets(self, gold: Array) -> Array | None:
        """Return for each word the labels (flags) from which the later gold labels are reachable.

        ``gold`` is -1 where the label is unknown. None if the known labels are not reachable.
        """
        n = len(self.end)
        sets = np.ones((len(gold), n), bool)
        sets[gold >= 0] = np.arange(n) == gold[gold >= 0, None]
        after = self.follow[1:].astype(bool)
        sets[-1:] &= self.end.astype(bool)
        for i in range(len(gold) - 2, -1, -1):
            sets[i] &= (after & sets[i + 1]).any(axis=1)
        return sets if not len(sets) or (self.follow[0].astype(bool) & sets[0]).any() else None


def bio(labels: Sequence[str]) -> Constraints:
    """I-x only after B-x or I-x."""
    return _scheme("BIO", labels, begins="OB", inside={"I": "BI"}, ends="OBI")


def iobes(labels: Sequence[str]) -> Constraints:
    """Chunks are S-x, or B-x, any number of I-x, and E-x."""
    return _scheme("IOBES", labels, begins="OBS", inside={"I": "BI", "E": "BI"}, ends="OES")


def _scheme(
    name: str, labels: Sequence[str], *, begins: str, inside: Mapping[str, str], ends: str
) -> Constraints:
    parts = [label.partition("-") for label in labels]
    for label, (mark, hyphen, kind) in zip(labels, parts, strict=True):
        if mark not in set(name) or (mark == "O" and hyphen) or (hyphen and not kind):
            raise ValueError(f"constraints={name!r}: found the label {label!r}, expected {name}")
    n = len(labels)
    follow = np.zeros((n + 1, n), np.int64)
    for b, (mark, _, kind) in enumerate(parts):
        follow[0, b] = mark in begins
        for a, (before, _, kind_before) in enumerate(parts):
            if mark in inside:
                follow[a + 1, b] = before in inside[mark] and kind_before == kind
            else:
                follow[a + 1, b] = before in ends
    return Constraints(follow, np.array([mark in ends for mark, _, _ in parts], np.int64))


def table(labels: Sequence[str], given: Mapping[str | None, Sequence[str | None]]) -> Constraints:
    """From a table: for each label those that may follow it, None standing for both ends.

    A label without an entry may be followed by any; without one for None, any may begin; and
    without a None among those that follow, any may end. Labels that do not occur are passed over.
    """
    n = len(labels)
    number = {label: i for i, label in enumerate(labels)}
    follow = np.ones((n + 1, n), np.int64)
    for label, after in given.items():
        if label is None or label in number:
            row = 0 if label is None else number[label] + 1
            follow[row] = 0
            follow[row, [number[b] for b in after if b is not None and b in number]] = 1
    end = np.ones(n, np.int64)
    if any(None in after for after in given.values()):
        end[:] = [label not in given or None in given[label] for label in labels]
    return Constraints(follow, end)


def constraints(
    labels: Sequence[str], given: str | Mapping[str | None, Sequence[str | None]]
) -> Constraints:
    """Constraints as users give them: "BIO", "IOBES" or a table."""
    if isinstance(given, str):
        return (bio if given == "BIO" else iobes)(labels)
    return table(labels, given)


def make_spec(
    n_labels: int,
    templates: Program,
    *,
    constraints: Constraints | None = None,
    longest: int = 1,
    sets: Array | None = None,
    lists: tuple[int, int] = (-1, 0),
) -> Array:
    """The constants of a tagging problem.

    ``longest`` is the number of words of the longest sentence, ``sets`` are rows of flags that
    outputs below -1 refer to (-2 is the first), ``lists`` are LISTS and MOST.
    """
    offsets = [o for _, atoms in templates for column, o in atoms if column == LABEL_ATOM]
    order = max([0, *(-o for o in offsets)])
    spec = [0] * HEAD
    spec[N_LABELS] = n_labels
    spec[LISTS], spec[MOST] = lists
    static = [t for t in templates if all(column != LABEL_ATOM for column, _ in t[1])]
    dynamic = [t for t in templates if any(column == LABEL_ATOM for column, _ in t[1])]
    spec[N_STATIC], spec[N_DYNAMIC] = len(static), len(dynamic)
    for at, program in ((STATIC, static), (DYNAMIC, dynamic)):
        spec[at] = len(spec)
        for key, atoms in program:
            spec += [key, len(atoms), *(number for atom in atoms for number in atom)]
    if constraints is not None:
        order = max(order, 1)
        reaching = constraints.reaching(longest)
        spec[ALLOWED] = len(spec)
        spec[HORIZON] = len(reaching) - 1
        spec += constraints.follow.ravel().tolist() + reaching.ravel().astype(int).tolist()
    spec[ORDER] = order
    spec[SETS] = len(spec)
    if sets is not None:
        spec += sets.ravel().astype(int).tolist()
    return np.array(spec, np.int64)
