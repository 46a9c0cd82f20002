"""Configurations of all transition systems as rows of integers, and the features of them.

A row has the next word of the buffer (FRONT), the size of the stack (SIZE), a record of that next
word, and a record for each word of the stack, the top last. A record has what features need to
know of a word: its outermost children on either side and theirs, with their labels, the numbers of
children, and the sets of their labels. So a feature is read in constant time, and a step copies as
much as the stack is high; what follows in a row is never read. The stack has at most DEEPEST words,
so that time and memory are linear in the number of words. The heads found so far are not kept:
``systems.System.arcs`` finds them.

The artificial root is the word after the last one.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from enum import IntEnum

from laso.engine.hashing import mix
from laso.features.windows import mix_templates

FRONT, SIZE, LENGTH, FRONT_RECORD = 0, 1, 2, 3  # offsets in a row; LENGTH: the number of words
DEEPEST = 64  # words of the stack, many more than gold trees need


class Field(IntEnum):
    """A record: the word, the label of its arc if it has a head, its children."""

    WORD = 0
    LABEL = 1  # NOTHING: the word has no head yet
    L1 = 2  # the leftmost child
    L1_LABEL = 3
    L2 = 4  # the leftmost child but one
    L2_LABEL = 5
    R1 = 6
    R1_LABEL = 7
    R2 = 8
    R2_LABEL = 9
    LL = 10  # the leftmost child of the leftmost child
    LL_LABEL = 11
    RR = 12
    RR_LABEL = 13
    LEFTS = 14  # the number of children on the left
    RIGHTS = 15
    LEFT_SET = 16  # the set of their labels, one bit each
    RIGHT_SET = 17


WORD, LABEL, L1, L1_LABEL, L2, L2_LABEL, R1, R1_LABEL, R2, R2_LABEL = range(10)
LL, LL_LABEL, RR, RR_LABEL, LEFTS, RIGHTS, LEFT_SET, RIGHT_SET = range(10, 18)
WIDTH = len(Field)
STACK = FRONT_RECORD + WIDTH
NOTHING, ROOT = -3, -2  # values of atoms where there is no word, or the root
SET_BITS = 31

# Kinds of atoms; their arguments are explained at ``atom_value``.
COLUMN_OF, COLUMN_AFTER, FIELD_OF, DISTANCE = range(4)
N_STACK = 8  # elements 0 to 7 are those of the stack, from the top; then comes the next word
ATOM = 4  # integers of an atom in spec

# The constants at the head of spec. MOST: the largest number of templates and atoms of a part.
# DENSE: the number of elements whose words have dense vectors: the stack's top and the next word,
# then the word below the top.
SINGLE_ROOT, STATIC, OPERATORS, PARTS, N_PARTS, MOST, DENSE = range(7)
HEAD = 7
# The constants of a part of the templates.
ATOMS, N_ATOMS, TEMPLATES, N_TEMPLATES = range(4)
PART = 4


def state_size(n):
    """Return the largest size of a configuration of n words."""
    return STACK + min(n, DEEPEST) * WIDTH


def top(state):
    """Return the offset of the record of the stack's top."""
    return STACK + (state[SIZE] - 1) * WIDTH


def write_word(state, at, word):
    """Write the record of a word without head and children."""
    state[at] = word
    for i in range(LABEL, LEFTS):
        state[at + i] = NOTHING
    for i in range(LEFTS, WIDTH):
        state[at + i] = 0


def write_initial(state, n):
    """Write the configuration of n words with an empty stack."""
    state[FRONT] = state[SIZE] = 0
    state[LENGTH] = n
    write_word(state, FRONT_RECORD, 0)


def copy_rows(state, new, end):
    """Copy a configuration up to an offset."""
    for i in range(end):
        new[i] = state[i]


def push(state, new):
    """Write the configuration after the next word has gone to the stack."""
    end = STACK + state[SIZE] * WIDTH
    copy_rows(state, new, end)
    for i in range(WIDTH):
        new[end + i] = state[FRONT_RECORD + i]
    new[FRONT] = state[FRONT] + 1
    new[SIZE] = state[SIZE] + 1
    write_word(new, FRONT_RECORD, new[FRONT])


def pop(state, new):
    """Write the configuration without the stack's top."""
    copy_rows(state, new, top(state))
    new[SIZE] = state[SIZE] - 1


def add_left(state, child, new, head, label):
    """Add the word of record ``child`` of a configuration to the left of record ``head``."""
    new[head + L2] = new[head + L1]
    new[head + L2_LABEL] = new[head + L1_LABEL]
    new[head + L1] = state[child]
    new[head + L1_LABEL] = label
    new[head + LL] = state[child + L1]
    new[head + LL_LABEL] = state[child + L1_LABEL]
    new[head + LEFTS] += 1
    new[head + LEFT_SET] |= 1 << (label % SET_BITS)


def add_right(state, child, new, head, label):
    """Add the word of record ``child`` of a configuration to the right of record ``head``."""
    new[head + R2] = new[head + R1]
    new[head + R2_LABEL] = new[head + R1_LABEL]
    new[head + R1] = state[child]
    new[head + R1_LABEL] = label
    new[head + RR] = state[child + R1]
    new[head + RR_LABEL] = state[child + R1_LABEL]
    new[head + RIGHTS] += 1
    new[head + RIGHT_SET] |= 1 << (label % SET_BITS)


# --------------------------------------------------------------------------- features


def record_of(state, element):
    """Return the offset of the record of an element, -1 if there is none."""
    if element == N_STACK:
        return FRONT_RECORD
    if element < state[SIZE]:
        return STACK + (state[SIZE] - 1 - element) * WIDTH
    return -1


def bucket(distance):
    """Return a distance, the same for distances that differ little."""
    if distance <= 4:
        return distance
    if distance <= 6:
        return 5
    if distance <= 10:
        return 7
    return 11


def column_of(x, word, column):
    """Return a column of a word, the root or nothing."""
    n = x.items.shape[0]
    if 0 <= word < n:
        return x.items[word, column]
    return ROOT if word == n else NOTHING


def atom_value(x, state, at):
    """Return the value of the atom whose four integers begin at spec[at].

    COLUMN_OF element field column     a column of the word in a field of an element's record
    COLUMN_AFTER k column              a column of the k-th word after the next one
    FIELD_OF element field             a field of a record that is no word
    DISTANCE element element           the bucket of the distance of two elements
    """
    spec = x.spec
    kind = spec[at]
    if kind == COLUMN_AFTER:
        return column_of(x, state[FRONT] + spec[at + 1], spec[at + 2])
    record = record_of(state, spec[at + 1])
    if record < 0:
        return NOTHING
    if kind == COLUMN_OF:
        return column_of(x, state[record + spec[at + 2]], spec[at + 3])
    if kind == FIELD_OF:
        return state[record + spec[at + 2]]
    other = record_of(state, spec[at + 2])
    return bucket(abs(state[other] - state[record])) if other >= 0 else NOTHING


def own_group(x):
    """Return the group of all operators; the groups below it serve as factors."""
    return max(1, n_factors(x))


def n_factors(x):
    """Return the number of factors: the parts of the templates but the last, then the vectors."""
    return x.spec[N_PARTS] - 1 + x.spec[DENSE]


def dense_element(x, group):
    """Return which of the elements with vectors a factor is about; -1: none."""
    element = group - (x.spec[N_PARTS] - 1)
    return element if 0 <= element < x.spec[DENSE] else -1


def dense_word(x, state, element):
    """Return the word of an element with a vector; -1 if it is the root or nothing."""
    record = record_of(state, N_STACK if element == 1 else element // 2)
    word = state[record] if record >= 0 else -1
    return word if word < x.items.shape[0] else -1


def part_of(x, group):
    """Return the offset of a group's part of the templates: the last part is that of operators."""
    return x.spec[PARTS] + PART * min(group, x.spec[N_PARTS] - 1)


def part_name(x, state, group):
    """Return a number for the values of all atoms of a part, two at a time."""
    part = part_of(x, group)
    at, n, key = x.spec[part + ATOMS], x.spec[part + N_ATOMS], group
    for i in range(0, n - 1, 2):
        first = atom_value(x, state, at + ATOM * i)
        second = atom_value(x, state, at + ATOM * (i + 1))
        key = mix(key, (int(first) << 32) ^ (int(second) & 0xFFFFFFFF))
    if n % 2:
        key = mix(key, atom_value(x, state, at + ATOM * (n - 1)))
    return key


def write_features(x, state, group, keys):
    """Write the keys of a group's templates; their number. The values of atoms follow them."""
    spec, part = x.spec, part_of(x, group)
    n, at = spec[part + N_TEMPLATES], spec[part + ATOMS]
    for i in range(spec[part + N_ATOMS]):
        keys[n + i] = atom_value(x, state, at + ATOM * i)
    mix_templates(spec, spec[part + TEMPLATES], n, keys)
    return n
