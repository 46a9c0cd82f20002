"""Clustering as search: item by item (say, the mentions of a text), the cluster that it joins.

State: the number of items placed, the number of records, and a record for each item that a later
one may still join: the first item of its cluster, its place in it, and the members before and after
it. Operator: the group
is the last candidate of the cluster that the next item joins, or the item itself, which then begins
a cluster. So every partition has one path.

JOIN
    Validity   the cluster has a candidate of the item, and none of its members may not be with it
    Goodness   the candidate is of the item's gold cluster
    Action     the item becomes the last of the cluster
NEW
    Validity   always
    Goodness   no candidate is of the item's gold cluster
    Action     the item becomes the first of a cluster

Where the gold output is known in part only, it is good to join what nothing known contradicts, but
not if a candidate is known to be of the item's cluster.

A pair of an item and a candidate is a few words of 64 bits, one bit for each value of each
comparison of the two (see laso.tasks.clustering.comparisons). A feature looks at some of these
bits: those of the last member, those that any or all or most members have. Since words are merged
by a few operations on bits, a step costs what its candidates are, however many comparisons there
are. The features of an item with a cluster have a name, so that nodes which share the cluster share
their sum.

The pool has for each item from its AT on: a name (equal for equal items of equal inputs), the bits
that any candidate has, then for each candidate, in ascending order, its number and its bits. An
output has the gold cluster of each item, or -1, and then for each item the number, from 1, of the
last candidate that is known to be of its cluster, or 0.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from laso.engine.costs import cost_of
from laso.engine.hashing import mix
from laso.engine.layout import (
    FACTORS,
    FORM,
    KEY_OF_GROUP,
    MAX_FEATURES,
    MAX_GROUPS,
    MAX_LABELS,
    PARTIAL_STATES,
    SAME_LABEL,
    STATE_SIZE,
)
from laso.engine.problem import CompiledProblem
from laso.features.windows import mix_templates

JOIN, NEW = 0, 1  # labels
# The columns of an item, before its values.
AT, CANDIDATES, SLOT, LAST_USE, VALUES = range(5)
PLACED, USED, RECORDS = range(3)  # offsets in a state
# A record: the item, counted from 1; the first item of its cluster, its place in it, from 0; the
# members before and after it, counted from 0, or -1; and a name of the cluster up to it.
MEMBER, CLUSTER, RANK, PREVIOUS, NEXT, NAME_LOW, NAME_HIGH = range(7)
RECORD = 7
# The constants at the head of spec. DIFFERENT: a column of values, from 0, of which no two members
# may have the same one; 0 if there is none.
WORDS, DIFFERENT, USES_MOST, USES_RANK, MOST_FEATURES, PARTS = range(6)
ATOMS, N_ATOMS, TEMPLATES, N_TEMPLATES = range(4)  # of a part: that of JOIN, then that of NEW
PART = 4
HEAD = PARTS + 2 * PART
ATOM = 3  # integers of an atom: its kind, and two arguments
# Kinds of atoms. Values of an item: a column. Bits: a word and a mask.
ITEM, LAST, SECOND, THIRD, FIRST, LATEST = range(6)
WITH_LAST, WITH_FIRST, ANY, ALL, MOST, EARLIER, SIZE, RANK_OF, RECENT = range(6, 15)
NOTHING = -3  # the value of an atom where there is no such member
PLANES = 6  # bits of a count of members
LARGEST = 9  # of sizes and ranks that are told apart
NEAR = 16  # items before one that are recent


def record_of(x, item):
    """Return the offset of an item's record in a state."""
    return RECORDS + RECORD * x.items[item, SLOT]


def entry_of(x, item, other):
    """Return the offset of a candidate of an item in the pool, -1 if the other is none."""
    n, size = x.items[item, CANDIDATES], 1 + x.spec[WORDS]
    begin = x.items[item, AT] + size
    if n == 0:
        return -1
    guess = other - x.pool[begin]  # right if no item between is left out
    if guess < 0:
        return -1
    if guess < n and x.pool[begin + guess * size] == other:
        return begin + guess * size
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if x.pool[begin + middle * size] < other:
            low = middle + 1
        else:
            high = middle
    at = begin + low * size
    return at if low < n and x.pool[at] == other else -1


def is_within_reach(x, item, other):
    """Return whether the state still has the record of an earlier item when ``item`` is placed."""
    return other >= 0 and x.items[other, LAST_USE] >= item


def last_member(x, state, group):
    """Return the last member of a candidate's cluster that is within reach."""
    item, last = state[PLACED], group
    after = state[record_of(x, last) + NEXT]
    while is_within_reach(x, item, after):
        last = after
        after = state[record_of(x, last) + NEXT]
    return last


def is_listed(x, state, groups, n, other):
    """Return whether a later candidate of the same cluster is among the n groups."""
    at = record_of(x, other)
    after = state[at + NEXT]
    if after < 0:
        return False
    if entry_of(x, state[PLACED], after) >= 0:  # it was asked about before
        return True
    for i in range(n):  # noqa: SIM110  # Numba has no any()
        if state[record_of(x, groups[i]) + CLUSTER] == state[at + CLUSTER]:
            return True
    return False


# --------------------------------------------------------------------------- features


def add_to_counts(keys, at, bits):
    """Add one to the count of each bit; the counts are PLANES words, lowest first."""
    for k in range(PLANES):
        both = keys[at + k] & bits
        keys[at + k] ^= bits
        bits = both


def common_bits(keys, at, n):
    """Return the bits whose count is at least half of n."""
    least, higher, equal = (n + 1) // 2, 0, -1
    for k in range(PLANES - 1, -1, -1):
        if (least >> k) & 1:
            equal &= keys[at + k]
        else:
            higher |= equal & keys[at + k]
            equal &= ~keys[at + k]
    return higher | equal


def merge_bits(x, state, group, keys, at):
    """Write the bits that any, all and most candidates of a cluster have, for each word.

    Counts end at 2 ** PLANES - 1 members, the last ones.
    """
    words, pool, item = x.spec[WORDS], x.pool, state[PLACED]
    counts, n, most = at + 3 * words, 0, (1 << PLANES) - 1
    for w in range(words):
        keys[at + 3 * w], keys[at + 3 * w + 1] = 0, -1
    if x.spec[USES_MOST]:
        for k in range(PLANES * words):
            keys[counts + k] = 0
    other = group
    while is_within_reach(x, item, other):
        entry = entry_of(x, item, other)
        if entry >= 0:
            counted = x.spec[USES_MOST] and n < most
            n += counted
            for w in range(words):
                bits = pool[entry + 1 + w]
                keys[at + 3 * w] |= bits
                keys[at + 3 * w + 1] &= bits
                if counted:
                    add_to_counts(keys, counts + PLANES * w, bits)
        other = state[record_of(x, other) + PREVIOUS]
    if x.spec[USES_MOST]:
        for w in range(words):
            keys[at + 3 * w + 2] = common_bits(keys, counts + PLANES * w, n)


def member(x, state, group, back):
    """Return the member so many places before the last candidate, -1 if it is out of reach."""
    other = group
    for _ in range(back):
        if not is_within_reach(x, state[PLACED], other):
            return -1
        other = state[record_of(x, other) + PREVIOUS]
    return other


def rank_of(x, state, group):
    """Return how many other clusters have a later candidate, at most LARGEST."""
    item, n, rank, size = state[PLACED], x.items[state[PLACED], CANDIDATES], 0, 1 + x.spec[WORDS]
    begin = x.items[item, AT] + size
    for k in range(n - 1, -1, -1):
        other = x.pool[begin + k * size]
        if other <= group or rank == LARGEST:
            break
        after = state[record_of(x, other) + NEXT]
        while after >= 0 and entry_of(x, item, after) < 0:
            after = state[record_of(x, after) + NEXT]
        rank += after < 0
    return rank


def recent_members(x, state, group):
    """Return how many of the items just before this one are in a cluster, at most LARGEST."""
    item, other, n = state[PLACED], group, 0
    while n < LARGEST and is_within_reach(x, item, other) and item - other <= NEAR:
        n += 1
        other = state[record_of(x, other) + PREVIOUS]
    return n


def atom_value(x, state, group, at, merged):
    """Return the value of the atom whose integers begin at spec[at].

    ``merged`` are the bits that ``merge_bits`` wrote, as a view.
    """
    spec, items, item = x.spec, x.items, state[PLACED]
    kind, first, second = spec[at], spec[at + 1], spec[at + 2]
    if kind == LATEST:
        other = group
        while is_within_reach(x, item, other):
            if items[other, VALUES + first] >= 0:
                return items[other, VALUES + first]
            other = state[record_of(x, other) + PREVIOUS]
        return NOTHING
    if kind <= FIRST:
        other = item
        if kind == FIRST:
            other = state[record_of(x, group) + CLUSTER]
        elif kind != ITEM:
            other = member(x, state, group, kind - LAST)
        return items[other, VALUES + first] if other >= 0 else NOTHING
    if kind == EARLIER:
        return x.pool[items[item, AT] + 1 + first] & second
    if kind == SIZE:
        return min(state[record_of(x, group) + RANK] + 1, LARGEST)
    if kind == RANK_OF:
        return rank_of(x, state, group)
    if kind == RECENT:
        return recent_members(x, state, group)
    if kind >= ANY:
        return merged[3 * first + kind - ANY] & second
    other = group if kind == WITH_LAST else state[record_of(x, group) + CLUSTER]
    entry = entry_of(x, item, other)
    return x.pool[entry + 1 + first] & second if entry >= 0 else NOTHING


def may_join(x, state, group):
    """Return whether no member of a candidate's cluster must be in another one than the item."""
    column, item = x.spec[DIFFERENT], state[PLACED]
    if column == 0 or x.items[item, column] < 0:
        return True
    other = last_member(x, state, group)
    while is_within_reach(x, item, other):
        if x.items[other, column] == x.items[item, column]:
            return False
        other = state[record_of(x, other) + PREVIOUS]
    return True


def is_right(x, y, state, group):
    """Return whether a step puts the next item where its last candidate of its gold cluster is.

    If a member of no known cluster keeps it from there, it is as if that candidate were none.
    """
    item = state[PLACED]
    nearest = y[x.items.shape[0] + item] - 1
    if nearest >= 0 and not may_join(x, state, nearest):
        nearest = -1
    if group == item:
        return nearest < 0
    if nearest >= 0:
        return state[record_of(x, nearest) + CLUSTER] == state[record_of(x, group) + CLUSTER]
    return y[item] < 0 or not joins_other(x, y, state, group)


class Clustering(CompiledProblem):
    """Put each item into the cluster of an earlier one, or into a new cluster."""

    @staticmethod
    def limits(x, out):
        candidates = slots = 0
        for i in range(x.items.shape[0]):
            candidates = max(candidates, x.items[i, CANDIDATES])
            slots = max(slots, x.items[i, SLOT] + 1)
        out[STATE_SIZE] = RECORDS + RECORD * slots
        out[MAX_GROUPS] = candidates + 1
        out[MAX_FEATURES] = x.spec[MOST_FEATURES]
        out[FACTORS] = 0
        out[MAX_LABELS] = 2
        out[PARTIAL_STATES] = 1
        out[FORM] = KEY_OF_GROUP

    @staticmethod
    def initial(x, state):
        state[PLACED] = state[USED] = 0

    @staticmethod
    def groups(x, state, out):
        item, n, size = state[PLACED], 0, 1 + x.spec[WORDS]
        begin = x.items[item, AT] + size
        for k in range(x.items[item, CANDIDATES] - 1, -1, -1):
            other = x.pool[begin + k * size]
            if not is_listed(x, state, out, n, other):
                out[n] = other
                n += 1
        out[n] = item
        return n + 1

    @staticmethod
    def factors(x, state, group, i):
        return -1, SAME_LABEL

    @staticmethod
    def choices(x, state, group, out):
        out[0] = NEW if group == state[PLACED] else JOIN
        return 1

    @staticmethod
    def name(x, state, group, block):
        item = state[PLACED]
        key = x.pool[x.items[item, AT]]
        if group != item:
            at = record_of(x, group)
            key = mix(mix(key, state[at + NAME_LOW]), state[at + NAME_HIGH])
            if x.spec[USES_RANK]:
                key = mix(key, rank_of(x, state, group))
        return key | 1

    @staticmethod
    def features(x, state, group, out):
        spec, keys = x.spec, out.keys
        part = PARTS if group != state[PLACED] else PARTS + PART
        n, atoms, n_atoms = spec[part + N_TEMPLATES], spec[part + ATOMS], spec[part + N_ATOMS]
        merged = keys[n + n_atoms :]
        if group != state[PLACED]:
            merge_bits(x, state, group, merged, 0)
        for i in range(n_atoms):
            keys[n + i] = atom_value(x, state, group, atoms + ATOM * i, merged)
        mix_templates(spec, spec[part + TEMPLATES], n, keys)
        return n

    @staticmethod
    def allowed(x, state, group, label):
        if label != (NEW if group == state[PLACED] else JOIN):
            return False
        return label == NEW or may_join(x, state, group)

    @staticmethod
    def apply(x, state, group, label, new):
        item = state[PLACED]
        for i in range(RECORDS, RECORDS + RECORD * state[USED]):
            new[i] = state[i]
        new[PLACED], new[USED] = item + 1, max(state[USED], x.items[item, SLOT] + 1)
        at, name = record_of(x, item), x.pool[x.items[item, AT]]
        new[at + MEMBER], new[at + CLUSTER], new[at + RANK] = item + 1, item, 0
        new[at + PREVIOUS] = new[at + NEXT] = -1
        if group != item:
            last = last_member(x, state, group)
            before = record_of(x, last)
            new[before + NEXT] = item
            new[at + PREVIOUS] = last
            new[at + CLUSTER] = state[before + CLUSTER]
            new[at + RANK] = state[before + RANK] + 1
            name = mix(mix(name, state[before + NAME_LOW]), state[before + NAME_HIGH])
        new[at + NAME_LOW] = ((name & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000
        new[at + NAME_HIGH] = name >> 32

    @staticmethod
    def is_goal(x, state):
        return state[PLACED] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return is_right(x, y, state, group)

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        if is_right(x, y, state, group):
            return 0.0
        return cost_of(x, NEW if y[x.items.shape[0] + state[PLACED]] == 0 else JOIN)

    @staticmethod
    def key(x, state, group, label):
        return state[PLACED] + 1


def members_of(state, group):
    """Return the members of a candidate's cluster that the state remembers, the last ones first."""
    ends = RECORDS + RECORD * state[USED]
    places = {state[at + MEMBER] - 1: at for at in range(RECORDS, ends, RECORD)}
    while state[places[group] + NEXT] >= 0:
        group = state[places[group] + NEXT]
    members = []
    while group in places:
        members.append(group)
        group = state[places[group] + PREVIOUS]
    return members


def joins_other(x, y, state, group):
    """Return whether a member within reach is known to be of another gold cluster."""
    item, other = state[PLACED], last_member(x, state, group)
    while is_within_reach(x, item, other):
        if y[other] >= 0 and y[other] != y[item]:
            return True
        other = state[record_of(x, other) + PREVIOUS]
    return False
