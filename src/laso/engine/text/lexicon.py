"""The numbers of the values of columns, found by their bytes.

A lexicon is a hash table. The key of a short value is made of its bytes, so that equal keys are
equal values; longer values are compared byte by byte. The first lexicon has the values of training
and is only read; the second has those that it did not see, and grows.
"""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.hashing import mix
from laso.engine.layout import ROWS, SLOT_KEY, SLOT_ROW
from laso.engine.text.layout import PAD, PLACE_COLUMN, PLACE_END, PLACE_START
from laso.engine.text.marshalled import copy_bytes, text_key, word_at

SHORT = 6  # bytes of a value of which the key is made
LENGTH_BITS, COLUMN_BITS = 48, 56
MOST_COLUMNS = 127  # input columns
LONG = -(1 << 63)  # the highest bit, which the keys of short values do not have


def is_same(lexicon, entry, column, source, start, n):
    """Return whether an entry has n bytes, and they are those at a place of the source."""
    begin = lexicon.places[entry, PLACE_START]
    if (
        lexicon.places[entry, PLACE_END] - begin != n
        or lexicon.places[entry, PLACE_COLUMN] != column
    ):
        return False
    text, at = lexicon.text, 0
    while at + 8 <= n:
        if word_at(text, begin + at) != word_at(source, start + at):
            return False
        at += 8
    left = n - at
    if left == 0:
        return True
    differs = word_at(text, begin + at) ^ word_at(source, start + at)
    return differs & ((1 << (8 * left)) - 1) == 0


def value_key(column, source, start, n):
    """Return the key of a value of an input column: negative if bytes must be compared, too."""
    if n <= SHORT:
        word = word_at(source, start) & ((1 << (8 * n)) - 1)
        return word | n << LENGTH_BITS | column << COLUMN_BITS
    return mix(text_key(source, start, n), column) | LONG


def slot_of_value(lexicon, key, column, source, start, n):
    """Return the slot of a value, or the free one where it belongs."""
    slots = lexicon.slots
    mask = slots.shape[0] - 1
    i = mix(key, 0) & mask
    while slots[i, SLOT_ROW] != 0:
        if slots[i, SLOT_KEY] == key and (
            key >= 0 or is_same(lexicon, slots[i, SLOT_ROW] - 1, column, source, start, n)
        ):
            return i
        i = (i + 1) & mask
    return i


def code_of(known, others, column, source, start, n):
    """Return the code of a value of an input column; -1 if there is no room for a new entry.

    A value that training did not see becomes an entry of ``others``, without its numbers.
    """
    key = value_key(column, source, start, n)
    slot = slot_of_value(known, key, column, source, start, n)
    if known.slots[slot, SLOT_ROW] != 0:
        return known.slots[slot, SLOT_ROW] - 1
    n_known = known.places.shape[0]
    slot = slot_of_value(others, key, column, source, start, n)
    if others.slots[slot, SLOT_ROW] != 0:
        return n_known + others.slots[slot, SLOT_ROW] - 1
    entry, places = others.ints[ROWS], others.places
    begin = places[entry - 1, PLACE_END] if entry > 0 else 0
    if (
        entry == places.shape[0]
        or 2 * (entry + 1) > others.slots.shape[0]
        or begin + n + PAD > others.text.shape[0]
    ):
        return -1
    copy_bytes(source, start, others.text, begin, n)
    places[entry, PLACE_START], places[entry, PLACE_END] = begin, begin + n
    places[entry, PLACE_COLUMN] = column
    others.slots[slot, SLOT_KEY], others.slots[slot, SLOT_ROW] = key, entry + 1
    others.ints[ROWS] = entry + 1
    return n_known + entry


def gather_numbers(codes, known, others, targets, items):
    """Write the numbers of all entries to the columns ``targets`` of the items, -1 for none."""
    n_known = known.places.shape[0]
    for i in range(codes.shape[0]):
        for column in range(targets.shape[0]):
            code = codes[i, column]
            for j in range(targets.shape[1]):
                target = targets[column, j]
                if target < 0:
                    break
                if code < n_known:
                    items[i, target] = known.numbers[code, j]
                else:
                    items[i, target] = others.numbers[code - n_known, j]
    return codes.shape[0], 0
