"""Upper bounds on the sums of bundles, from upper bounds on the weights of feature keys."""

# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from laso.engine.hashing import flat, prefetch
from laso.engine.kernels.bundles import highest, n_blocks, sum_block
from laso.engine.kernels.placeholders import has_bounds, sub_block
from laso.engine.kernels.promises import checked_block_features, has_vectors
from laso.engine.kernels.weight_table import (
    LINE,
    fill,
    is_sparse,
    length_of,
    shorten_keys,
    start_of,
)
from laso.engine.layout import BITS, CAPS_WANTED, RAISED, SLOT_KEY, SLOT_ROW, VERSION

AHEAD_OF = 8  # slots, whose rows come into the cache meanwhile
# What the caps stand for: 0, eight levels for each power of two, infinity; rounding has room.
LEVELS = np.concatenate([[0.0], (1 + 1e-6) * np.exp2((np.arange(254) - 144) / 8), [np.inf]])


def bound_block(x, table, run, number):
    """Find an upper bound on the sums of a block; the sums themselves where caps are not known."""
    versions, version = run.bundle_names, run.meta[VERSION]
    if versions[number] == version or versions[number] == -version:
        return
    bounded = has_bounds() and run.caps.shape[0] > 1 and not has_vectors(x, number)
    if not bounded or sub_block(x, number, 0) >= 0:
        sum_block(x, table, run, number)
        return
    n = shorten_keys(run.out.keys, checked_block_features(x, number, run), table.ints[BITS])
    run.bundle_maxima[number], versions[number] = cap_of(run, n), -version


def is_summed(run, row):
    """Return whether the sums of a bundle are known, not only an upper bound."""
    if not has_bounds():
        return True
    return row >= n_blocks(run) or run.bundle_names[row] == run.meta[VERSION]


def cap_of(run, n):
    """Return an upper bound on the sum of the n features in the buffer, for any label."""
    keys, caps, total = run.out.keys, run.caps, 0.0
    for f in range(n):
        total += LEVELS[caps[keys[f] & (caps.shape[0] - 1)]]
    return total


def raise_cap(run, key, weight):
    """Let the cap of a key be above a weight."""
    caps = run.caps
    i = key & (caps.shape[0] - 1)
    if weight <= LEVELS[caps[i]]:
        return
    low, high = int(caps[i]), LEVELS.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if weight <= LEVELS[middle]:
            high = middle
        else:
            low = middle
    caps[i] = high
    run.meta[RAISED] += 1


def choose_caps(table, run):
    """Let the caps be upper bounds on the weights of all keys of a table."""
    slots, sparse, weights = table.slots, is_sparse(table), flat(table.v)
    n, width, last = slots.shape[0], table.v.shape[1], max(0, weights.shape[0] - 1)
    fill(run.caps, 0)
    for i in range(n):
        row = slots[(i + AHEAD_OF) & (n - 1), SLOT_ROW] - 1
        if sparse and row >= 0:  # the next rows come from memory meanwhile
            prefetch(weights, min(start_of(table, row), last))
        elif row >= 0:
            for label in range(0, width, LINE):
                prefetch(weights, row * width + label)
        row = slots[i, SLOT_ROW] - 1
        if row >= 0:
            first, length = row * width, width
            if sparse:
                first, length = start_of(table, row), length_of(table, row)
            if length > 0:
                raise_cap(run, slots[i, SLOT_KEY], highest(weights[first : first + length], length))
    run.meta[CAPS_WANTED] = run.meta[RAISED] = 0
