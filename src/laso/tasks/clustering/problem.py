"""Clustering as search: item by item (say, the mentions of a text), the cluster that it joins.

State: the number of items placed, the number of clusters, and the cluster of each item. Operator:
the group is the cluster that the next item joins; the number of clusters so far stands for a new
one. There is one label, so a weight row is a single weight. The groups of a path, in order, are the
clusters of the items.

JOIN
    Validity   the cluster has an item
    Goodness   its items are of this item's gold cluster
    Action     the item becomes the last of the cluster
NEW
    Validity   always
    Goodness   no item before this one is of its gold cluster
    Action     the item becomes the first of a cluster

Column 0 of an item is the offset of its vector in ``values``; the other columns are attributes, any
small numbers. ``spec[DIMENSION]`` is the length of the vectors. An output gives a number for
each item, equal for items of one cluster. Features have real values: similarities are dot products.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.engine.hashing import mix
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE
from laso.engine.problem import CompiledProblem

DIMENSION = 0  # in spec
PLACED, CLUSTERS, MEMBER = 0, 1, 2  # offsets in a state; MEMBER is the first item's cluster
NEW, JOIN, DISTANCE, LIKE_LAST, LIKE_FIRST, LIKE_ALL, LIKE_ANY, SAME, PAIR, FRESH = range(10)


def similarity(x, i, j):
    """Return the dot product of two items' vectors."""
    items, values = x.items, x.values
    total = 0.0
    for k in range(x.spec[DIMENSION]):
        total += float(values[items[i, 0] + k]) * float(values[items[j, 0] + k])
    return total


def last_of(state, group):
    """Return the last item of a cluster; for a new cluster, the next item itself."""
    for i in range(state[PLACED] - 1, -1, -1):
        if state[MEMBER + i] == group:
            return i
    return state[PLACED]


def is_wrong(y, state, group):
    """Return whether a step joins items of different gold clusters, or separates equal ones."""
    item = state[PLACED]
    if group < state[CLUSTERS]:
        return y[last_of(state, group)] != y[item]
    before = 0
    for i in range(item):
        before += y[i] == y[item]
    return before > 0


class Clustering(CompiledProblem):
    """Put each item into the cluster of an earlier one, or into a new cluster."""

    weighted = True

    @staticmethod
    def limits(x, out):
        n = x.items.shape[0]
        out[STATE_SIZE] = MEMBER + n
        out[MAX_GROUPS] = n
        out[MAX_FEATURES] = 5 + 2 * (x.items.shape[1] - 1)
        out[BLOCKS] = n * n

    @staticmethod
    def initial(x, state):
        state[PLACED] = state[CLUSTERS] = 0
        for i in range(x.items.shape[0]):
            state[MEMBER + i] = -1

    @staticmethod
    def groups(x, state, out):
        for group in range(state[CLUSTERS] + 1):
            out[group] = group
        return state[CLUSTERS] + 1

    @staticmethod
    def block(x, state, group):
        return state[PLACED] * x.items.shape[0] + last_of(state, group)

    @staticmethod
    def block_features(x, block, out):
        """Features of the item with the cluster's last item, or of an item that begins one."""
        items, keys, values = x.items, out.keys, out.values
        item, last = block // items.shape[0], block % items.shape[0]
        new = last == item
        n = 0
        for c in range(1, items.shape[1]):
            a, b = items[item, c], items[last, c]
            keys[n] = mix(FRESH, c) if new else mix(mix(SAME, c), a == b)
            keys[n + 1] = mix(mix(mix(FRESH, c), a), 0) if new else mix(mix(mix(PAIR, c), a), b)
            values[n] = values[n + 1] = 1.0
            n += 2
        if not new:
            keys[n] = DISTANCE
            values[n] = 1.0 / (item - last)
            keys[n + 1] = LIKE_LAST
            values[n + 1] = similarity(x, item, last)
            n += 2
        return n

    @staticmethod
    def features(x, state, group, out):
        """Features of the item with the whole cluster."""
        keys, values = out.keys, out.values
        item, new = state[PLACED], group == state[CLUSTERS]
        first, size, total, highest = -1, 0, 0.0, 0.0
        for i in range(item):
            if new or state[MEMBER + i] == group:
                like = similarity(x, item, i)
                highest = like if size == 0 else max(highest, like)
                first = i if size == 0 else first
                total += like
                size += 1
        keys[0] = NEW if new else JOIN
        values[0] = 1.0
        keys[1] = LIKE_ANY if new else LIKE_ALL
        values[1] = highest if new else total / size
        if new:
            return 2
        keys[2] = LIKE_FIRST
        values[2] = similarity(x, item, first)
        return 3

    @staticmethod
    def apply(x, state, group, label, new):
        for i in range(MEMBER + x.items.shape[0]):
            new[i] = state[i]
        new[MEMBER + state[PLACED]] = group
        new[PLACED] = state[PLACED] + 1
        new[CLUSTERS] = max(state[CLUSTERS], group + 1)

    @staticmethod
    def is_goal(x, state):
        return state[PLACED] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return not is_wrong(y, state, group)

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        return 1.0 if is_wrong(y, state, group) else 0.0
