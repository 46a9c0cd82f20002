"""Read feature lists as Python's ``marshal`` writes them, version 4 of its format.

``marshal`` is the fastest way from Python objects to bytes. An object is a letter for its type and
its contents. The highest bit of the letter marks an object to which later ones may refer by its
number. Whatever is not expected here ends reading with OTHER, so that the general code reads it;
so do sets, which ``marshal`` writes in another order than theirs.
"""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from laso.engine.hashing import mix
from laso.engine.kernels.weight_table import slot_of
from laso.engine.layout import ROWS, SLOT_KEY, SLOT_ROW
from laso.engine.text.layout import (
    AS_DICT,
    AS_LIST,
    AS_TUPLE,
    KEEPS_NAMES,
    MORE_TEXT,
    MOST_LISTED,
    N_FEATURES,
    N_REFERENCES,
    N_TOKENS,
    NOT_ONE,
    OTHER,
    PAD,
    READ,
    TOKEN_KINDS,
)

MARK = 128  # later objects may refer to this one
NULL, FALSE, TRUE, INT, FLOAT = ord("0"), ord("F"), ord("T"), ord("i"), ord("g")
REFERENCE, DICT, LIST = ord("r"), ord("{"), ord("[")
TUPLE, SHORT_TUPLE = ord("("), ord(")")
SHORT_ASCII, SHORT_INTERNED = ord("z"), ord("Z")
ASCII, ASCII_INTERNED, UNICODE, INTERNED = ord("a"), ord("A"), ord("u"), ord("t")
COLON = ord(":")
LARGEST = 3.4028234e38  # of float32


def read_marshalled(given, lists, names):
    """Append the features of all tokens of a list of sentences; return the status."""
    given.meta[N_REFERENCES] = 0
    kind, at, _ = begin_object(given, 0, True)
    if kind != LIST:
        return OTHER, 0
    n = int32_at(given.bytes, at)
    at += 4
    for _ in range(n):
        kind, here, after = begin_object(given, at, True)
        if kind != LIST and kind != TUPLE and kind != SHORT_TUPLE:
            return OTHER, 0
        status, end = read_sentence(given, lists, names, kind, here, after < 0)
        if status != READ:
            return status, 0
        at = end if after < 0 else after
    return READ, 0


def read_sentence(given, lists, names, kind, at, fresh):
    """Read the tokens of a sentence whose contents begin at a place; the status, and the end."""
    n = size_of(given.bytes, kind, at)
    at += 1 if kind == SHORT_TUPLE else 4
    for _ in range(n):
        kind, here, after = begin_object(given, at, fresh)
        before, is_new = given.meta[N_FEATURES], fresh and after < 0
        if given.meta[N_TOKENS] == lists.counts.shape[0]:
            return OTHER, at
        if kind == DICT:
            given.meta[TOKEN_KINDS] |= AS_DICT
            status, end = read_dict(given, lists, names, here, is_new)
        elif kind == LIST:
            given.meta[TOKEN_KINDS] |= AS_LIST
            status, end = read_list(given, lists, names, kind, here, is_new)
        elif kind in (TUPLE, SHORT_TUPLE):
            given.meta[TOKEN_KINDS] |= AS_TUPLE
            status, end = read_list(given, lists, names, kind, here, is_new)
        else:
            status, end = OTHER, here
        if status != READ:
            return status, at
        add_token(given.meta, lists, before)
        at = end if after < 0 else after
    return READ, at


def add_token(meta, lists, before):
    """Append a token whose features are those after the first so many."""
    i, end = meta[N_TOKENS], meta[N_FEATURES]
    lists.counts[i] = end - before
    if i < lists.items.shape[0]:
        lists.items[i, 0], lists.items[i, 1] = before, end
        meta[MOST_LISTED] = max(meta[MOST_LISTED], end - before)
    meta[N_TOKENS] = i + 1


def read_dict(given, lists, names, at, fresh):
    """Read the features of a token, a dict; the status, and the end."""
    text = names.text
    while True:
        kind, here, after = begin_object(given, at, fresh)
        if kind == NULL:
            return READ, here
        first, n = string_at(given.bytes, kind, here)
        at = first + n if after < 0 else after
        if n < 0:
            return OTHER, at
        kind, here, after = begin_object(given, at, fresh)
        other, m = string_at(given.bytes, kind, here)
        start = names.ends[names.ints[ROWS]]
        if start + n + max(m, 0) + 1 + PAD > text.shape[0]:
            return MORE_TEXT, at
        copy_bytes(given.bytes, first, text, start, n)
        value, end = 1.0, here
        if m >= 0:
            text[start + n] = COLON
            copy_bytes(given.bytes, other, text, start + n + 1, m)
            n, end = n + 1 + m, other + m
        elif kind in (TRUE, FALSE):
            value = 1.0 if kind == TRUE else 0.0
        elif kind == INT:
            value, end = float(int32_at(given.bytes, here)), here + 4
        elif kind == FLOAT:
            given.bits[0], end = word_at(given.bytes, here), here + 8
            value = given.real[0]
            if not abs(value) <= LARGEST:
                return OTHER, at
        else:
            return OTHER, at
        if not add_feature(given.meta, lists, names, start, n, value):
            return OTHER, at
        at = end if after < 0 else after


def read_list(given, lists, names, kind, at, fresh):
    """Read the features of a token, a list of names; the status, and the end."""
    text = names.text
    size = size_of(given.bytes, kind, at)
    at += 1 if kind == SHORT_TUPLE else 4
    for _ in range(size):
        kind, here, after = begin_object(given, at, fresh)
        first, n = string_at(given.bytes, kind, here)
        if n < 0:
            return OTHER, at
        start = names.ends[names.ints[ROWS]]
        if start + n + PAD > text.shape[0]:
            return MORE_TEXT, at
        copy_bytes(given.bytes, first, text, start, n)
        if not add_feature(given.meta, lists, names, start, n, 1.0):
            return OTHER, at
        at = first + n if after < 0 else after
    return READ, at


def add_feature(meta, lists, names, start, n, value):
    """Append a feature whose name is at the end of the text; False if there is no room."""
    i, key, small = meta[N_FEATURES], text_key(names.text, start, n), np.float32(value)
    if i == lists.keys.shape[0]:
        return False
    if meta[KEEPS_NAMES]:
        slots, number = names.slots, names.ints[ROWS]
        slot = slot_of(slots, key)
        if slots[slot, SLOT_ROW] == 0:
            if number + 2 > names.ends.shape[0] or 2 * (number + 1) > slots.shape[0]:
                return False
            slots[slot, SLOT_KEY], slots[slot, SLOT_ROW] = key, number + 1
            names.ints[ROWS] = number + 1
            names.ends[number + 1] = start + n
    lists.keys[i], lists.values[i] = key, small
    meta[NOT_ONE] += small != 1.0 and small != 0.0
    meta[N_FEATURES] += small != 0.0
    return True


def text_key(text, start, n):
    """Return the feature key of n bytes, as ``laso.features.inputs.string_keys`` defines it."""
    key = mix(0, n)
    for at in range(start, start + n - 7, 8):
        key = mix(key, word_at(text, at))
    left = n & 7
    if left > 0:
        key = mix(key, word_at(text, start + n - left) & ((1 << (8 * left)) - 1))
    return key


# --------------------------------------------------------------------------- the format


def begin_object(given, at, fresh):
    """Return the type of an object, where its contents begin, and where the next object begins.

    The last is known only for a reference, else it is -1. ``fresh`` tells whether the place is
    reached for the first time, so that objects to refer to are noted.
    """
    kind = np.int64(given.bytes[at])
    if kind >= MARK:
        kind -= MARK
        if fresh:
            given.references[given.meta[N_REFERENCES]] = at
            given.meta[N_REFERENCES] += 1
    if kind == REFERENCE:
        to = given.references[int32_at(given.bytes, at + 1)]
        return np.int64(given.bytes[to]) & (MARK - 1), to + 1, at + 5
    return kind, at + 1, np.int64(-1)


def string_at(given, kind, at):
    """Return where the bytes of a string begin, and their number; -1 if it is no string."""
    if kind in (SHORT_ASCII, SHORT_INTERNED):
        return at + 1, np.int64(given[at])
    if kind in (ASCII, ASCII_INTERNED, UNICODE, INTERNED):
        return at + 4, int32_at(given, at)
    return at, np.int64(-1)


def size_of(given, kind, at):
    """Return the number of elements of a list or tuple."""
    return np.int64(given[at]) if kind == SHORT_TUPLE else int32_at(given, at)


def int32_at(given, at):
    """Return the signed integer of four bytes at a place."""
    low = np.int64(given[at]) | np.int64(given[at + 1]) << 8 | np.int64(given[at + 2]) << 16
    high = np.int64(given[at + 3])
    return low | (high - 256 if high >= 128 else high) << 24


def word_at(given, at):
    """Return the integer of eight bytes at a place."""
    low = np.int64(given[at]) | np.int64(given[at + 1]) << 8 | np.int64(given[at + 2]) << 16
    low |= np.int64(given[at + 3]) << 24 | np.int64(given[at + 4]) << 32
    return (
        low
        | np.int64(given[at + 5]) << 40
        | np.int64(given[at + 6]) << 48
        | np.int64(given[at + 7]) << 56
    )


def copy_bytes(source, at, target, to, n):
    """Copy n bytes."""
    for i in range(n):
        target[to + i] = source[at + i]
