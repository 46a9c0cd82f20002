"""Bloom filters of feature keys, with one hash. A clear bit means: the key has no row.

Most feature keys that a search looks up have no row. Their slots are scattered over a large hash
table, while a filter of 8 bits or more for each row stays in the processor's cache.
"""

from __future__ import annotations

import math

import numpy as np

from laso.engine import layout as at
from laso.engine import thresholds
from laso.engine.layout import NO_FILTER, WeightTable
from laso.engine.problem import CompiledProblem, has_named_factors

BITS_PER_SLOT = 4


def with_filter(table: WeightTable) -> WeightTable:
    """Return the table with a filter of its keys."""
    if _fits(table):
        return table
    slots = table.slots
    bits = BITS_PER_SLOT * max(len(slots), 2)
    flags = np.zeros(bits, bool)
    # Empty slots have the key 0, which does no harm.
    flags[slots[:, at.SLOT_KEY] & (bits - 1)] = True
    return table._replace(bloom=np.packbits(flags, bitorder="little"))


def filtered(
    problem: type[CompiledProblem], table: WeightTable, items: float = math.inf
) -> WeightTable:
    """Return the table with a filter of the right size, if so many items pay for making it.

    A problem whose factors have names has none: most features that it looks up have a
    row, so that a filter would cost more than it saves.
    """
    if has_named_factors(problem) or thresholds.FILTER_SLOTS_PER_ITEM * items < len(table.slots):
        return table
    return with_filter(table)


def _fits(table: WeightTable) -> bool:
    """Return whether the table has a filter of the right size."""
    return 8 * len(table.bloom) >= BITS_PER_SLOT * len(table.slots)


def without_filter(table: WeightTable) -> WeightTable:
    """Return the table without a filter, as is needed where Python fills slots."""
    return table._replace(bloom=NO_FILTER)
