"""The features and the score of one step."""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.hashing import prefetch
from laso.engine.kernels.factors import factor_group, factor_label
from laso.engine.kernels.placeholders import has_values
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_features,
    checked_sub_block,
    note_fault,
)
from laso.engine.kernels.weight_table import (
    find,
    is_packed,
    is_sparse,
    shorten_keys,
    start_of,
    weight_at,
)
from laso.engine.layout import (
    BAD_BLOCK,
    BITS,
    BLOCKS_VISITED,
    DONE,
    FAULT,
    IN_SUB_BLOCK,
    LAST_FEATURES,
    MOST_VISITED,
    NEXT_SUB_BLOCK,
    NO_FEATURES,
    SCALE,
    STACK_BLOCK,
    STACK_TOP,
)


def begin_features(run, number):
    """Go to the features of a step: those of its block and of all sub-blocks, then its own."""
    run.block_stack[0, STACK_BLOCK], run.block_stack[0, NEXT_SUB_BLOCK] = number, 0
    run.meta[STACK_TOP] = 0 if number >= 0 else LAST_FEATURES
    run.meta[BLOCKS_VISITED] = 0


def next_features(x, state, group, table, run):
    """Write the next features of the step, and return their number, or -1 after the last."""
    stack, top = run.block_stack, run.meta[STACK_TOP]
    if top == NO_FEATURES:
        return -1
    if top == LAST_FEATURES:
        n = checked_features(x, state, group, run)
    else:
        number = stack[top, STACK_BLOCK]
        below = checked_sub_block(x, number, stack[top, NEXT_SUB_BLOCK], run.meta)
        while below >= 0:
            stack[top, NEXT_SUB_BLOCK] += 1
            top += 1
            stack[top, STACK_BLOCK], stack[top, NEXT_SUB_BLOCK] = below, 0
            below = checked_sub_block(x, below, 0, run.meta)
        n = checked_block_features(x, stack[top, STACK_BLOCK], run)
        run.meta[BLOCKS_VISITED] += 1
        if run.meta[BLOCKS_VISITED] > MOST_VISITED:
            note_fault(run.meta, BAD_BLOCK, IN_SUB_BLOCK, number, -1, -1)
        if run.meta[FAULT] != DONE:
            top = LAST_FEATURES + 1
    run.meta[STACK_TOP] = top - 1
    return shorten_keys(run.out.keys, n, table.ints[BITS])


def step_score(x, state, group, label, table, run):
    """Return w . phi of one step; memory is prefetched as in ``add_rows``."""
    slots, v, keys, values, rows = table.slots, table.v, run.out.keys, run.out.values, run.rows
    mask, total, sparse, packed = slots.shape[0] - 1, 0.0, is_sparse(table), is_packed(table)
    i, its_group = 0, factor_group(x, state, group, 0, run)
    while its_group >= 0:
        at, one = factor_label(x, state, group, label, i, run), 0.0
        begin_features(run, checked_block(x, state, its_group, run))
        n = next_features(x, state, its_group, table, run)
        while n >= 0:
            for f in range(n):
                prefetch(slots, keys[f] & mask)
            for f in range(n):
                rows[f] = find(slots, keys[f])
                if packed:
                    prefetch(v, start_of(table, max(rows[f], 0)))
                elif sparse:
                    prefetch(table.heads, max(rows[f], 0))
                else:
                    prefetch(v[:, at], max(rows[f], 0))
            for f in range(n):
                if rows[f] >= 0:
                    if has_values():
                        one += weight_at(table, rows[f], at) * values[f]
                    else:
                        one += weight_at(table, rows[f], at)
            n = next_features(x, state, its_group, table, run)
        total += one
        i += 1
        its_group = factor_group(x, state, group, i, run)
    return table.reals[SCALE] * total
