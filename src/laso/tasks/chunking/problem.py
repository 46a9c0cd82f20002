"""Segmentation and labelling as search (section 4.1): each step is a whole labelled chunk.

State: the number of words covered and the label of the last chunk. Operator: the group is the
length of the next chunk, the label is its label; "outside" is a label too, of single words.
    Validity   the chunk ends within the sentence and is not too long for its label; outside, it
               has one word
    Goodness   length and label are those of the gold chunk that begins there; where the gold labels
               are incomplete, no known label or boundary contradicts the chunk
    Action     the words of the chunk are covered, and its label is the last

Features are templates (see laso.features.templates) interpreted here, so that new templates need no
new compilation. The score of a chunk is the sum of cached blocks that many chunks share:

    GRAM(i)      word i alone, then with the pairs, then with the triples that end there
    END(e)       the features of an end at e
    BEGIN(s)     the features of a beginning at s
    INNER(s, l)  INNER(s, l - 1), the grams of the chunk's last word, and this word at its position;
                 with l = 1 it has BEGIN(s) in place of INNER
    WHOLE(s, l)  INNER(s, l), END(s + l), and the features of the whole chunk

An output has ``chunk_code(length, label)`` for each word at which a chunk begins, and -1 for the
others. In partially labelled sentences, each word has a ``partial_code(begins, label)`` below -1.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from laso.engine.costs import cost_of
from laso.engine.hashing import mix
from laso.engine.layout import (
    BLOCKS,
    FEATURES_OF_STATE,
    FORM,
    MAX_FEATURES,
    MAX_GROUPS,
    SEGMENTS,
    STATE_SIZE,
    VECTORS,
    Array,
)
from laso.engine.problem import CompiledProblem
from laso.features.schemes import MAYBE, SURELY
from laso.features.windows import value_at

# The constants at the head of spec; programs follow them.
(
    N_LABELS,
    LIMIT,  # the length of the longest chunk
    LIMITS,  # the offset of the largest chunk lengths of each label
    SHIFT,  # the number of bits that two blocks for each length need
    SUMS,  # the column with the pool row that has the running sums before a word
    WIDTH,  # of such a row: a power, then the sums of the columns, then a hash of the word
    CHOICES,  # the offset of the offsets of the labels of chunks, by length
    BY_STATE,  # whether the templates of kind STEP do not depend on the chunk's end
    HAS_BEGIN,  # whether beginnings have features
    HAS_END,
    TAIL,  # and the two after it: the largest gram in a chunk of 1, 2 and more words
) = range(11)
PROGRAMS = TAIL + 3
# For each kind of template: the offset of its program, and the number of templates. The first three
# kinds are grams of one, two and three words.
ANY, PAIR, TRIPLE, EACH, BEGIN, END, WHOLE, STEP, SEQUENCE = range(9)
KINDS = 9
HEAD = PROGRAMS + 2 * KINDS
# Blocks are numbered by kind: grams of one, two and three words, ends, beginnings, then the rest.
ENDS, BEGINS, CHUNKS = 3, 4, 5

FIRST, LAST, LENGTH, ALL, LABEL = range(5)  # the kinds of atoms


def begins_at(spec, code):
    """Return whether a chunk begins at a word with this partial code: NEVER, MAYBE or SURELY."""
    return (-2 - code) // (spec[N_LABELS] + 1)


def label_at(spec, code):
    """Return the known label of a word, -1 if it is unknown."""
    if code >= 0:
        return code % spec[N_LABELS]
    return (-2 - code) % (spec[N_LABELS] + 1) - 1 if code < -1 else -1


def may_be(spec, y, start, end, label):
    """Return whether a partially labelled sentence allows this chunk.

    In IOB1, I-x after a chunk of type x continues that chunk.
    """
    for i in range(start, end):
        known = label_at(spec, y[i])
        if (known >= 0 and known != label) or (i > start and begins_at(spec, y[i]) == SURELY):
            return False
    if end == y.shape[0]:
        return True
    begins = begins_at(spec, y[end])
    return begins == SURELY or (begins == MAYBE and label_at(spec, y[end]) != label)


def gram_keys(x, kind, i, position, out):
    """Write the feature keys of all grams of a kind that end at word i."""
    spec, items, keys = x.spec, x.items, out.keys
    at, n = spec[PROGRAMS + 2 * kind], spec[PROGRAMS + 2 * kind + 1]
    first = i - kind if kind < EACH else i
    for k in range(n):
        key = mix(spec[at], position)
        columns = spec[at + 1]
        at += 2
        for _ in range(columns):
            column = spec[at]
            at += 1
            for j in range(first, i + 1):
                key = mix(key, items[j, column])
        keys[k] = key
    return n


def sequence_keys(x, start, length, out):
    """Write the feature keys of the sequences of a chunk's values, one column each."""
    spec, pool, keys = x.spec, x.pool, out.keys
    at, n = spec[PROGRAMS + 2 * SEQUENCE], spec[PROGRAMS + 2 * SEQUENCE + 1]
    row = x.items[start, spec[SUMS]] * spec[WIDTH]
    until, power = row + length * spec[WIDTH], int(pool[row])
    for k in range(n):
        column = spec[at + 2 * k + 1]
        # A sequence's hash is a difference of running sums, shifted to a common position.
        value = (int(pool[until + column]) - int(pool[row + column])) * power
        keys[k] = mix(spec[at + 2 * k], value)
    return n


def atom_keys(x, kind, start, length, label, out, written):
    """Append the feature keys of templates whose atoms refer to the whole chunk."""
    spec, items, pool, keys = x.spec, x.items, x.pool, out.keys
    at, n = spec[PROGRAMS + 2 * kind], spec[PROGRAMS + 2 * kind + 1]
    row = items[start, spec[SUMS]] * spec[WIDTH]
    until, power = row + length * spec[WIDTH], int(pool[row])
    for k in range(written, written + n):
        key = spec[at]
        atoms = spec[at + 1]
        at += 2
        for _ in range(atoms):
            what, column, offset = spec[at], spec[at + 1], spec[at + 2]
            at += 3
            if what <= LAST:
                place = start + offset + (length - 1 if what == LAST else 0)
                value = value_at(items, column, place)
            elif what == LENGTH:
                value = length
            elif what == ALL:
                value = (int(pool[until + column]) - int(pool[row + column])) * power
            else:
                value = label
            key = mix(key, value)
        keys[k] = key
    return written + n


class Chunking(CompiledProblem):
    """Cut a sentence into labelled chunks from left to right."""

    @staticmethod
    def limits(x, out):
        n, spec = x.items.shape[0], x.spec
        out[STATE_SIZE] = 2
        out[MAX_GROUPS] = spec[LIMIT]
        max_features = spec[PROGRAMS + 2 * SEQUENCE + 1] + spec[PROGRAMS + 2 * WHOLE + 1]
        for kind in range(KINDS):
            max_features = max(max_features, spec[PROGRAMS + 2 * kind + 1])
        out[MAX_FEATURES] = max_features
        out[BLOCKS] = CHUNKS * n + (n << spec[SHIFT])
        out[FEATURES_OF_STATE] = spec[BY_STATE]
        out[FORM] = SEGMENTS
        out[VECTORS] = 1

    @staticmethod
    def initial(x, state):
        state[0] = 0
        state[1] = -1

    @staticmethod
    def groups(x, state, out):
        n = min(x.spec[LIMIT], x.items.shape[0] - state[0])
        for i in range(n):
            out[i] = i + 1
        return n

    @staticmethod
    def choices(x, state, group, out):
        spec = x.spec
        at = spec[spec[CHOICES] + group]
        for i in range(spec[at]):
            out[i] = spec[at + 1 + i]
        return spec[at]

    @staticmethod
    def block(x, state, group):
        return CHUNKS * x.items.shape[0] + (state[0] << x.spec[SHIFT]) + 2 * group - 1

    @staticmethod
    def sub_block(x, block, i):
        spec, n = x.spec, x.items.shape[0]
        at = block - CHUNKS * n
        if at < 0:  # the block of a triple includes that of its last pair, a pair that of its word
            return block - n if i == 0 and n <= block < ENDS * n else -1
        start = at >> spec[SHIFT]
        length = ((at - (start << spec[SHIFT])) >> 1) + 1
        last = start + length - 1
        if at & 1:
            if i == 0:
                return block - 1
            return ENDS * n + last if i == 1 and spec[HAS_END] else -1
        before = length > 1 or spec[HAS_BEGIN] != 0
        if i == 0 and before:
            return block - 2 if length > 1 else BEGINS * n + start
        grams = spec[TAIL + min(length, 3) - 1]
        return (grams - 1) * n + last if i == int(before) and grams > 0 else -1

    @staticmethod
    def name(x, state, group, block):
        spec, n = x.spec, x.items.shape[0]
        at = block - CHUNKS * n
        if at < 0 or at & 1:
            return 0
        start = at >> spec[SHIFT]
        position = (at - (start << spec[SHIFT])) >> 1
        row = x.items[start + position, spec[SUMS]] * spec[WIDTH]
        # Neighbours in memory: a word that ends segments of many lengths is at as many positions.
        return (mix(x.pool[row + spec[WIDTH] - 1], position >> 4) & -16) | (position & 15)

    @staticmethod
    def block_features(x, block, out):
        # One call of each kind, since every call is inlined by the compiler.
        spec, n = x.spec, x.items.shape[0]
        at = block - CHUNKS * n
        start, length, position = at >> spec[SHIFT], 1, 0
        grams = atoms = -1
        if block < ENDS * n:
            grams = int(block >= n) + int(block >= 2 * n)
            start = block - grams * n
        elif at < 0:
            atoms = END if block < BEGINS * n else BEGIN
            start = block - (ENDS if atoms == END else BEGINS) * n
        else:
            length = ((at - (start << spec[SHIFT])) >> 1) + 1
            if at & 1:
                atoms = WHOLE
            else:
                grams, position = EACH, length - 1
        written = 0
        if grams >= 0:
            written = gram_keys(x, grams, start + position, position, out)
        if atoms == WHOLE:
            written = sequence_keys(x, start, length, out)
        if atoms >= 0:
            written = atom_keys(x, atoms, start, length, 0, out, written)
        return written

    @staticmethod
    def features(x, state, group, out):
        return atom_keys(x, STEP, int(state[0]), int(group), int(state[1]), out, 0)

    @staticmethod
    def allowed(x, state, group, label):
        return group <= x.spec[x.spec[LIMITS] + label]

    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + group
        new[1] = label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        gold = y[state[0]]
        if gold >= -1:
            return gold == group * x.spec[N_LABELS] + label
        return may_be(x.spec, y, state[0], state[0] + group, label)

    @staticmethod
    def loss(x, y, state, group, label, was_good, good):
        if not was_good or good:
            return 0.0
        return cost_of(x, label_at(x.spec, y[state[0]]))

    @staticmethod
    def key(x, state, group, label):
        return state[0] + group

    @staticmethod
    def signature(x, state, group, label):
        return label


class DenseChunking(Chunking):
    """Chunking whose words have dense vectors, too.

    A chunk has those of its first word and of its last, and the sum of those of all its words.
    """

    @staticmethod
    def vectors(x, block, i):
        n = x.items.shape[0]
        kind = block // max(n, 1)
        has_vector = i == 0 and (kind == 0 or ENDS <= kind < CHUNKS)
        return block - kind * n, (kind if has_vector else -1)


# --------------------------------------------------------------------------- making arrays

Atoms = Sequence[tuple[int, int, int]]
Programs = Mapping[int, Sequence[tuple[int, Sequence[int] | Atoms]]]
"""For each kind its templates: (id, columns) for grams, else (id, atoms (what, column, offset))."""


def chunk_code(length: int | Array, label: int | Array, n_labels: int) -> int | Array:
    """Return the number of a chunk in an output."""
    return length * n_labels + label


def partial_code(begins: Array, label: Array, n_labels: int) -> Array:
    """Return the numbers of words in a partially known output; the label -1 is unknown."""
    return -2 - (begins * (n_labels + 1) + label + 1)


def make_spec(
    programs: Programs, *, limits: Sequence[int], sums: tuple[int, int], dense: bool = False
) -> Array:
    """Return the constants of a chunking problem.

    ``limits`` are the largest lengths of chunks of each label, ``sums`` are SUMS and WIDTH (see
    ``sequence_sums``). ``dense``: words have dense vectors.
    """
    limit = max(limits)
    spec = [0] * HEAD
    spec[N_LABELS], spec[LIMIT], spec[LIMITS] = len(limits), limit, len(spec)
    spec += limits
    _append_choices(spec, limits)
    spec[SHIFT] = (2 * limit - 1).bit_length()
    spec[SUMS], spec[WIDTH] = sums
    steps = [np.reshape(atoms, (-1, 3))[:, 0] for _, atoms in programs.get(STEP, ())]
    spec[BY_STATE] = int({FIRST, LABEL}.issuperset(np.concatenate(steps).tolist() if steps else ()))
    for words in (1, 2, 3):
        used = [kind + 1 for kind in (ANY, PAIR, TRIPLE)[:words] if programs.get(kind)]
        spec[TAIL + words - 1] = max(used, default=int(dense))
    spec[HAS_BEGIN] = int(dense or bool(programs.get(BEGIN)))
    spec[HAS_END] = int(dense or bool(programs.get(END)))
    for kind in range(KINDS):
        templates = programs.get(kind, ())
        spec[PROGRAMS + 2 * kind : PROGRAMS + 2 * kind + 2] = [len(spec), len(templates)]
        for key, atoms in templates:
            head = [key] if kind == SEQUENCE else [key, len(atoms)]
            spec += [*head, *np.ravel(atoms).tolist()]
    return np.array(spec, np.int64)


def _append_choices(spec: list[int], limits: Sequence[int]) -> None:
    """Append the labels of chunks of each length; lengths with the same labels share them."""
    limit, ends = max(limits), sorted(set(limits))
    spec[CHOICES] = len(spec)
    lists = len(spec) + limit + 1
    spec += [0] * (limit + 1)
    for first, end in zip([0, *ends[:-1]], ends, strict=True):
        labels = [label for label, longest in enumerate(limits) if longest >= end]
        spec[spec[CHOICES] + first + 1 : spec[CHOICES] + end + 1] = [lists] * (end - first)
        spec += [len(labels), *labels]
        lists = len(spec)


_BASE = 0xD1342543DE82EF95
_INVERSE = pow(_BASE, -1, 1 << 64)
_MULTIPLIERS = np.array([_BASE, _INVERSE], np.uint64)


def sequence_sums(values: Sequence[Array], words: Array, lengths: Array) -> Array:
    """Return the pool: rows from which the hash of any sequence of words takes constant time.

    ``values`` are columns of 64-bit hashes, one for each word. The row of word i of its sentence
    has base^i, then for each column the sum of value * base^-j over all words j before, and at last
    the hash of the whole word from ``words``. The sums run over all sentences, so that there is one
    row more than words.
    """
    n = int(lengths.sum())
    place = np.arange(n) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    steps = np.repeat(_MULTIPLIERS[:, None], int(lengths.max(initial=0)) + 1, axis=1)
    steps[:, 0] = 1
    powers, inverses = np.cumprod(steps, axis=1)
    rows = np.zeros((n + 1, 2 + len(values)), np.uint64)
    rows[:n, 0], rows[:n, -1] = powers[place], words
    for column, hashes in enumerate(values, start=1):
        rows[1:, column] = np.cumsum(hashes * inverses[place])
    return rows.view(np.int64).reshape(-1)
