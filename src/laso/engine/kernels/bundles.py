"""Bundles of features, and the one memo of their sums.

A bundle is summed once for a version of the weights, for all labels at once. Its sums are a row of
``run.bundle_sums``; ``run.bundle_names`` tells what a row holds:

    blocks    numbered within an input: the version of the weights
    factors   of the present expansion; or steps, of the nodes of each round (see ``segments``)
    named     of any input, at a place that their name gives: name and version as one number
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import mix
from laso.engine.kernels.placeholders import FACTORED, name, shares_blocks
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_features,
    checked_sub_block,
    has_vectors,
    max_labels,
)
from laso.engine.kernels.weight_table import (
    add_known_rows,
    add_rows,
    fill,
    find_rows,
    request_entries,
    request_rows,
)
from laso.engine.layout import (
    DROPOUT,
    FIRST_NAMED,
    NAMED_MASK,
    NEXT_SUB_BLOCK,
    STACK_BLOCK,
    VERSION,
    WAITING_COUNT,
    WAITING_FIRST,
    WAITING_ROW,
    WEIGHTS,
    Out,
)

# --------------------------------------------------------------------------- the memo


def n_blocks(run):
    """Return the number of rows for blocks, which are the first."""
    return run.block_owners.shape[0]


def place_of(run, mark, page):
    """Return the row for a named bundle; bundles of different pages never share a row."""
    mask = run.meta[NAMED_MASK]
    return run.meta[FIRST_NAMED] + page * (mask + 1) + (mark & mask)


def forget_sums(run):
    """Let all bundles be summed anew: the weights may have changed."""
    run.meta[VERSION] += 1
    run.meta[WEIGHTS] += 1


def is_known(run, row, mark):
    """Return whether a row has the sums of a named bundle; from now on it counts as such."""
    marked = mix(run.meta[WEIGHTS], mark)
    known = run.bundle_names[row] == marked
    run.bundle_names[row] = marked
    return known


def set_maximum(run, row):
    """Find the highest sum of a bundle."""
    run.bundle_maxima[row] = highest(run.bundle_sums[row], max_labels(run))


def highest(sums, n):
    """Return the highest of the first n; four at a time, since each comparison waits for one."""
    a = b = c = d = sums[0]
    for i in range(0, n - 3, 4):
        a, b = max(a, sums[i]), max(b, sums[i + 1])
        c, d = max(c, sums[i + 2]), max(d, sums[i + 3])
    for i in range(n - n % 4, n):
        a = max(a, sums[i])
    return max(max(a, b), max(c, d))


def add_bundle(run, row, sums):
    """Add the sums of a bundle to others."""
    bundle = run.bundle_sums[row]
    for label in range(sums.shape[0]):
        sums[label] += bundle[label]


def copy_bundle(run, row, sums):
    """Write the sums of a bundle in the place of others."""
    bundle = run.bundle_sums[row]
    for label in range(sums.shape[0]):
        sums[label] = bundle[label]


# --------------------------------------------------------------------------- blocks


def sum_block(x, table, run, root):
    """Compute the sums of a block: the weights of its own features and of all its sub-blocks."""
    stack, top = run.block_stack, 0
    stack[0, STACK_BLOCK], stack[0, NEXT_SUB_BLOCK] = root, 0
    while top >= 0:
        top = next_block(x, run, top)
        number = stack[top, STACK_BLOCK]
        sums = run.bundle_sums[number]
        add_sub_blocks(x, run, number)
        if shares_blocks():
            add_own(x, table, run, number, sums)
        else:
            add_rows(table, run, checked_block_features(x, number, run), sums)
        if FACTORED() or shares_blocks():
            set_maximum(run, number)
        run.bundle_names[number] = run.meta[VERSION]
        top -= 1


def next_block(x, run, top):
    """Go down from the block on top of the stack to one whose sub-blocks are all known.

    Returns its place on the stack. Blocks below the first count as known from then on.
    """
    stack, versions, version = run.block_stack, run.bundle_names, run.meta[VERSION]
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
    sums = run.bundle_sums[number]
    fill(sums, 0.0)
    i, below = 1, checked_sub_block(x, number, 0, run.meta)
    while below >= 0:
        add_bundle(run, below, sums)
        below = checked_sub_block(x, number, i, run.meta)
        i += 1


def own_name(x, run, number):
    """Return the mark of a block's own features; 0: no other input shares them."""
    if run.meta[DROPOUT] > 0 or has_vectors(x, number):
        return 0
    return name(x, run.states[0], 0, number)


def add_own(x, table, run, number, sums):
    """Add the weights of a block's own features as one number, which blocks may share."""
    mark = own_name(x, run, number)
    row = place_of(run, mark, 0)
    if not is_known(run, row, mark) or mark == 0:
        fill(run.bundle_sums[row], 0.0)
        add_rows(table, run, checked_block_features(x, number, run), run.bundle_sums[row])
    add_bundle(run, row, sums)


# --------------------------------------------------------------------------- steps


def score_labels(x, state, group, table, run, least):
    """Write w . phi of every label of a group to run.sums; False if none can exceed ``least``.

    Where blocks have names, so have the features that are in no block, which the groups of a state
    often share.
    """
    sums, maxima, row = run.sums, run.bundle_maxima, -1
    number = checked_block(x, state, group, run)
    if number >= 0 and run.bundle_names[number] != run.meta[VERSION]:
        sum_block(x, table, run, number)
    n = checked_features(x, state, group, run)
    if shares_blocks():
        row = sum_features(table, run, n, name_of(run, n))
        top, of_block = maxima[row], maxima[number] if number >= 0 else math.inf
        if top + of_block + 1e-6 * (abs(top) + abs(of_block)) < least:  # with room for rounding
            return False
    if number >= 0:
        copy_bundle(run, number, sums)
    else:
        fill(sums, 0.0)
    if shares_blocks():
        add_bundle(run, row, sums)
    else:
        add_rows(table, run, n, sums)
    return True


def name_of(run, n):
    """Return a mark for the n features in the buffer."""
    mark = mix(n, -1)
    for f in range(n):
        mark = mix(mark, run.out.keys[f])
    return mark


def sum_features(table, run, n, mark):
    """Return the row with the sums of the n features in the buffer, which have this mark."""
    row = place_of(run, mark, 0)
    if not is_known(run, row, mark):
        fill(run.bundle_sums[row], 0.0)
        add_rows(table, run, n, run.bundle_sums[row])
        set_maximum(run, row)
    return row


# --------------------------------------------------------------------------- bundles that wait


def look_up(table, run, n):
    """Find the weight rows of the n bundles that wait.

    Each of these loops finds the memory that the one before has prefetched.
    """
    waiting = run.waiting
    for i in range(n):
        if waiting[i, WAITING_COUNT] > 0:
            first = waiting[i, WAITING_FIRST]
            out = Out(run.out.keys[first:], run.out.values[first:])
            count = waiting[i, WAITING_COUNT]
            waiting[i, WAITING_COUNT] = find_rows(table, out, count, run.rows[first:])
    for i in range(n):
        request_entries(table, run.rows[waiting[i, WAITING_FIRST] :], waiting[i, WAITING_COUNT])


def request_waiting(table, run, i, first, n):
    """Let the n features at ``first`` in the buffer be those of the i-th bundle that waits."""
    out = Out(run.out.keys[first:], run.out.values[first:])
    run.waiting[i, WAITING_FIRST] = first
    run.waiting[i, WAITING_COUNT] = request_rows(table, out, n)


def sum_waiting(table, run, i):
    """Compute the sums of the i-th bundle that waits, after ``look_up``."""
    first, sums = run.waiting[i, WAITING_FIRST], run.bundle_sums[run.waiting[i, WAITING_ROW]]
    fill(sums, 0.0)
    rows, count = run.rows[first:], run.waiting[i, WAITING_COUNT]
    add_known_rows(table, run.out.values[first:], rows, count, sums)
