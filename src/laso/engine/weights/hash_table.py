"""Hash tables of feature keys: entries (key, row + 1) in slots with open addressing."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, WeightTable


def unchecked(n: int, moves: int) -> None:
    """Accept any number of collisions: the default of ``placed``."""


def placed(
    entries: Array, capacity: int, *, check: Callable[[int, int], None] = unchecked
) -> Array:
    """Return a hash table of entries (key, row + 1), those with one place in their order.

    Entries sorted by their own place get the first free place from there on, one after another, so
    that all places follow from a running maximum. ``check`` is called with the number of entries,
    and of moves to a next place.
    """
    slots, n = np.zeros((capacity, len(at.SlotColumn)), np.int64), np.arange(len(entries))
    # Sorting numbers is much faster than sorting indices by numbers. All is done in place: to
    # allocate large arrays takes longer than to fill them.
    order = entries[:, at.SLOT_KEY] & (capacity - 1)
    order <<= 32
    order |= n
    order.sort()
    home = order >> 32
    order &= 0xFFFFFFFF
    where = home - n
    np.maximum.accumulate(where, out=where)
    where += n
    check(len(n), int(where.sum()) - int(home.sum()))
    inside = int(np.searchsorted(where, capacity))  # places beyond the end are those at the start
    flat, where = slots.reshape(-1), where[:inside]
    where *= len(at.SlotColumn)
    for column in at.SlotColumn:  # one by one, which takes a third of the time of whole rows
        flat[where] = entries[:, column].take(order[:inside])
        where += 1
    if inside < len(n):
        insert(slots, entries[order[inside:]])
    return slots


def insert(slots: Array, entries: Array) -> None:
    """Insert entries (key, row + 1), whose keys are new, into a hash table that has room."""
    capacity = len(slots)
    where = entries[:, at.SLOT_KEY] & (capacity - 1)
    while len(entries):
        free = slots[where, at.SLOT_ROW] == 0
        slots[where[free]] = entries[free]  # of several with one place, the last one stays
        lost = ~free | (slots[where, at.SLOT_ROW] != entries[:, at.SLOT_ROW])
        entries, where = entries[lost], (where[lost] + 1) & (capacity - 1)


def used_slots(table: WeightTable) -> Array:
    """Return the slots of a table that hold a key."""
    used: Array = table.slots[table.slots[:, at.SLOT_ROW] != 0]
    return used
