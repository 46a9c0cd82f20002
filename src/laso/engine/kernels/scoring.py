"""Sums of cached blocks, and upper bounds on them."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import flat, prefetch
from laso.engine.kernels.placeholders import (
    CAPPED,
    FACTORED,
    GROUPED,
    NARROWED,
    SHARED,
    content,
    sub_block,
)
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_features,
    checked_labels,
    checked_sub_block,
    listed_label,
)
from laso.engine.kernels.weights import (
    LINE,
    add_known_rows,
    add_rows,
    fill,
    find_rows,
    is_sparse,
    length_of,
    request_entries,
    request_rows,
    shorten_keys,
    start_of,
)
from laso.engine.layout import (
    BITS,
    CAPS_WANTED,
    KEPT_KEYS,
    KEPT_ROWS,
    KEPT_VERSION,
    NEXT_SUB_BLOCK,
    RAISED,
    SLOT_KEY,
    SLOT_ROW,
    STACK_BLOCK,
    VERSION,
)

AHEAD_OF = 8  # slots, whose rows come into the cache meanwhile

# --------------------------------------------------------------------------- cached blocks


def sum_block(x, table, run, root):
    """Compute the sums of a block: the weights of its own features and of all its sub-blocks."""
    stack, top = run.block_stack, 0
    stack[0, STACK_BLOCK], stack[0, NEXT_SUB_BLOCK] = root, 0
    while top >= 0:
        top = next_block(x, run, top)
        number = stack[top, STACK_BLOCK]
        sums = run.block_sums[number]
        add_sub_blocks(x, run, number)
        if SHARED():
            add_own(x, table, run, number, sums)
        else:
            add_rows(table, run, checked_block_features(x, number, run), sums)
        if FACTORED():
            run.block_maxima[number] = highest(sums, checked_labels(x, run))
        run.block_versions[number] = run.meta[VERSION]
        top -= 1


def next_block(x, run, top):
    """Go down from the block on top of the stack to one whose sub-blocks are all known.

    Returns its place on the stack. Blocks below the first count as known from then on.
    """
    stack, versions, version = run.block_stack, run.block_versions, run.meta[VERSION]
    below = checked_sub_block(x, stack[top, STACK_BLOCK], stack[top, NEXT_SUB_BLOCK], run.meta)
    while below >= 0:
        stack[top, NEXT_SUB_BLOCK] += 1
        if versions[below] != version:
            versions[below] = version
            top += 1
            stack[top, STACK_BLOCK], stack[top, NEXT_SUB_BLOCK] = below, 0
        below = checked_sub_block(x, stack[top, STACK_BLOCK], stack[top, NEXT_SUB_BLOCK], run.meta)
    return top


def add_sub_blocks(x, run, number):
    """Write the sums of a block's sub-blocks."""
    sums, cached = run.block_sums[number], run.block_sums
    fill(sums, 0.0)
    i, below = 1, checked_sub_block(x, number, 0, run.meta)
    while below >= 0:
        for label in range(sums.shape[0]):
            sums[label] += cached[below, label]
        below = checked_sub_block(x, number, i, run.meta)
        i += 1


def add_own(x, table, run, number, sums):
    """Add the weights of a block's own features as one number, which blocks may share."""
    kept, name = run.contents, content(x, number)
    at = name & (kept.shape[0] - 1)
    own = run.content_sums[at]
    if name == 0 or kept[at] != name or kept.shape[0] == 1:
        kept[at] = name
        fill(own, 0.0)
        add_rows(table, run, checked_block_features(x, number, run), own)
    for label in range(sums.shape[0]):
        sums[label] += own[label]


def score_shared(x, state, group, table, run, least, n_listed):
    """Do what ``score_labels`` does, if a listed label may exceed ``least``; else return False."""
    sums, cached, kept = run.sums, run.block_sums, run.kept_sums
    number, maxima = checked_block(x, state, group, run), run.block_maxima
    n = checked_features(x, state, group, run)
    top = keep_sums(table, run, n, checked_labels(x, run))
    if number < 0:
        for label in range(sums.shape[0]):
            sums[label] = kept[label]
        return True
    if run.block_versions[number] != run.meta[VERSION]:
        sum_block(x, table, run, number)
        n_labels = n_listed if NARROWED() and n_listed >= 0 else checked_labels(x, run)
        most = -math.inf
        for c in range(n_labels):
            most = max(most, cached[number, listed_label(x, state, group, c, run, n_listed)])
        maxima[number] = most
    most = maxima[number]
    if top + most + 1e-6 * (abs(top) + abs(most)) < least:  # with room for rounding
        return False
    for label in range(sums.shape[0]):
        sums[label] = cached[number, label] + kept[label]
    return True


def keep_sums(table, run, n, n_labels):
    """Sum the n features in the buffer, unless the last step had the same; the highest sum."""
    keys, kept, meta = run.out.keys, run.kept_keys, run.meta
    same = meta[KEPT_VERSION] == meta[VERSION] and meta[KEPT_KEYS] == n
    for f in range(n):
        same &= kept[f] == keys[f]
        kept[f] = keys[f]
    if not same:
        fill(run.kept_sums, 0.0)
        add_rows(table, run, n, run.kept_sums)
        meta[KEPT_KEYS], meta[KEPT_VERSION] = n, meta[VERSION]
        run.block_maxima[-1] = highest(run.kept_sums, n_labels)
    return run.block_maxima[-1]


def score_labels(x, state, group, table, run):
    """Write w . phi of every label of a group to run.sums; blocks are summed once a version."""
    if SHARED() and not FACTORED():
        score_shared(x, state, group, table, run, -math.inf, -1)
        return
    sums, cached = run.sums, run.block_sums
    number = checked_block(x, state, group, run)
    if number >= 0:
        if run.block_versions[number] != run.meta[VERSION]:
            sum_block(x, table, run, number)
        for label in range(sums.shape[0]):
            sums[label] = cached[number, label]
    else:
        fill(sums, 0.0)
    n = checked_features(x, state, group, run)
    if GROUPED():
        keep_rows(table, run, n)
        request_entries(table, run.kept_rows, run.meta[KEPT_ROWS])
        add_known_rows(table, run.out.values, run.kept_rows, run.meta[KEPT_ROWS], sums)
    else:
        add_rows(table, run, n, sums)


def keep_rows(table, run, n):
    """Find the rows of the n features in the buffer, unless the last step had the same features.

    The groups of a state often share the features that are in no block.
    """
    keys, kept, meta = run.out.keys, run.kept_keys, run.meta
    same = meta[KEPT_VERSION] == meta[VERSION] and meta[KEPT_KEYS] == n
    for f in range(n):
        same &= kept[f] == keys[f]
        kept[f] = keys[f]
    if not same:
        n_requested = request_rows(table, run.out, n)
        meta[KEPT_ROWS] = find_rows(table, run.out, n_requested, run.kept_rows)
        meta[KEPT_KEYS], meta[KEPT_VERSION] = n, meta[VERSION]


def highest(sums, n):
    """Return the highest of the first n; four at a time, since each comparison waits for one."""
    a = b = c = d = sums[0]
    for i in range(0, n - 3, 4):
        a, b = max(a, sums[i]), max(b, sums[i + 1])
        c, d = max(c, sums[i + 2]), max(d, sums[i + 3])
    for i in range(n - n % 4, n):
        a = max(a, sums[i])
    return max(max(a, b), max(c, d))


# --------------------------------------------------------------------------- upper bounds


def bound_block(x, table, run, number):
    """Find an upper bound on the sums of a block; the sums themselves where caps are not known."""
    versions, version = run.block_versions, run.meta[VERSION]
    if versions[number] == version or versions[number] == -version:
        return
    if not CAPPED() or run.caps.shape[0] == 1 or sub_block(x, number, 0) >= 0:
        sum_block(x, table, run, number)
        return
    n = shorten_keys(run.out.keys, checked_block_features(x, number, run), table.ints[BITS])
    run.block_maxima[number], versions[number] = cap_of(run, n), -version


def is_summed(run, row):
    """Return whether the sums of a row of run.block_sums are known."""
    if not CAPPED():
        return True
    return row >= run.block_versions.shape[0] or run.block_versions[row] == run.meta[VERSION]


def cap_of(run, n):
    """Return an upper bound on the sum of the n features in the buffer, for any label."""
    keys, caps, levels, total = run.out.keys, run.caps, run.levels, 0.0
    for f in range(n):
        total += levels[caps[keys[f] & (caps.shape[0] - 1)]]
    return total


def raise_cap(run, key, weight):
    """Let the cap of a key be above a weight."""
    caps, levels = run.caps, run.levels
    i = key & (caps.shape[0] - 1)
    if weight <= levels[caps[i]]:
        return
    low, high = int(caps[i]), levels.shape[0] - 1
    while high - low > 1:
        middle = (low + high) // 2
        if weight <= levels[middle]:
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
