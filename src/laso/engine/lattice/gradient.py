"""From edges to weights: the weighted sum of the features of all edges."""

# mypy: ignore-errors

from __future__ import annotations

from laso.engine.kernels.placeholders import has_values
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_features,
    checked_sub_block,
)
from laso.engine.kernels.weight_table import fill, find, row_of, shorten_keys
from laso.engine.lattice.layout import (
    BUNDLE_BEGIN,
    BUNDLE_END,
    BUNDLE_GOOD,
    COUNTING,
    EDGE_GOOD,
    EDGE_GROUP,
    EDGE_LABEL,
    IN_BLOCKS,
    N_EDGES,
    NO_NEW,
    ON_ALL_PATHS,
    ON_GOOD_PATHS,
    OUTSIDE_BLOCKS,
    PART,
    SOURCE,
    SUPPORT,
    USED_SLOTS,
)
from laso.engine.layout import (
    BITS,
    DELTA_LABEL,
    DELTA_ROW,
    DONE,
    ENTRIES,
    FAULT,
    MORE_ENTRIES,
    MORE_ROWS,
    MORE_SLOTS,
    ROWS,
    SLACK,
)


def slot_for(table, gradient, feature, make):
    """Return the gradient's slot of a feature; -1 if it has no row and may get none."""
    mark, rows, ints = table.mark, gradient.rows, gradient.ints
    row = row_of(table, feature) if make else find(table.slots, feature)
    if row < 0:
        return -1
    if mark[row] < 0:
        mark[row] = ints[USED_SLOTS]
        rows[ints[USED_SLOTS]] = row
        ints[USED_SLOTS] += 1
    return mark[row]


def may_add_row(support, good):
    """May these features get new weight rows? ``good``: one of their steps is good."""
    return support == ON_ALL_PATHS or (support == ON_GOOD_PATHS and good != 0)


def next_bundle(lat):
    """Go to the next edges that share their features and have some mass; False after the last."""
    edges, masses, meta = lat.edges, lat.masses, lat.meta
    end, n = meta[BUNDLE_END], meta[N_EDGES]
    counts = good = False
    while end < n and not counts:
        meta[BUNDLE_BEGIN] = first = end
        good = False
        while (
            end < n
            and edges[end, SOURCE] == edges[first, SOURCE]
            and edges[end, EDGE_GROUP] == edges[first, EDGE_GROUP]
        ):
            counts |= masses[end] != 0.0
            good |= edges[end, EDGE_GOOD] != 0
            end += 1
    meta[BUNDLE_END], meta[BUNDLE_GOOD] = end, good
    return counts


def sum_by_blocks(x, lat, run, gradient):
    """Sum the masses of edges by the blocks of their steps, and pass them on to the sub-blocks.

    Returns the number of sets of features with some mass, how many of them may get new rows, and
    the highest block.
    """
    edges, masses, states, support = lat.edges, lat.masses, lat.states, lat.meta[SUPPORT]
    sums, marks = gradient.block_values, gradient.block_marks
    n, n_new, high = 0, 0, -1
    lat.meta[BUNDLE_END] = 0
    while next_bundle(lat):
        begin, end, good = lat.meta[BUNDLE_BEGIN], lat.meta[BUNDLE_END], lat.meta[BUNDLE_GOOD]
        number = checked_block(x, states[edges[begin, SOURCE]], edges[begin, EDGE_GROUP], run)
        n += 1
        n_new += may_add_row(support, good)
        if number >= 0:
            marks[number] = max(marks[number], 1 + good)
            high = max(high, number)
            for e in range(begin, end):
                sums[number, edges[e, EDGE_LABEL]] += masses[e]
    for number in range(high, -1, -1):
        if marks[number]:
            n += 1
            n_new += may_add_row(support, marks[number] - 1)
            i, below = 1, checked_sub_block(x, number, 0, run.meta)
            while below >= 0:
                marks[below] = max(marks[below], marks[number])
                for label in range(sums.shape[1]):
                    sums[below, label] += sums[number, label]
                below = checked_sub_block(x, number, i, run.meta)
                i += 1
    return n, n_new, high


def room_for_gradient(table, run, gradient, n_sets, n_new):
    """Return DONE if table and gradient have room, or the status that names what must grow."""
    max_features = run.rows.shape[0] - SLACK
    rows = table.ints[ROWS] + n_new * max_features
    if gradient.ints[USED_SLOTS] + n_sets * max_features > gradient.rows.shape[0]:
        return MORE_SLOTS
    if rows > table.v.shape[0] or 2 * rows > table.slots.shape[0]:
        return MORE_ROWS
    return DONE


def add_rows_for_gold(x, table, lat, run, marks, high):
    """Add weight rows for the features of good steps; the table has room for them."""
    keys, bits, edges = run.out.keys, table.ints[BITS], lat.edges
    for number in range(high, -1, -1):
        if marks[number] > 1:
            for f in range(shorten_keys(keys, checked_block_features(x, number, run), bits)):
                row_of(table, keys[f])
    lat.meta[BUNDLE_END] = 0
    while next_bundle(lat):
        if lat.meta[BUNDLE_GOOD]:
            first = lat.meta[BUNDLE_BEGIN]
            state, group = lat.states[edges[first, SOURCE]], edges[first, EDGE_GROUP]
            for f in range(shorten_keys(keys, checked_features(x, state, group, run), bits)):
                row_of(table, keys[f])


def gather(x, table, lat, run, gradient):
    """Gradient += sum of mass * phi over the edges; or what must grow, before anything changes.

    Steps that differ in the label only share their features, and so do steps of equal blocks. Their
    masses are summed first, so that the features of a block are looked up once.
    """
    edges, masses, states = lat.edges, lat.masses, lat.states
    keys, weights, sums = run.out.keys, run.out.values, gradient.values
    block_sums, marks, bits = gradient.block_values, gradient.block_marks, table.ints[BITS]
    support, part, valued = lat.meta[SUPPORT], lat.meta[PART], lat.meta[COUNTING] == 0
    n_sets, n_new, high = sum_by_blocks(x, lat, run, gradient)
    status = run.meta[FAULT]
    if status == DONE and support != NO_NEW:
        status = room_for_gradient(table, run, gradient, n_sets, n_new)
    make = support == ON_ALL_PATHS
    if status == DONE and support == ON_GOOD_PATHS:
        add_rows_for_gold(x, table, lat, run, marks, high)
    for number in range(high, -1, -1):
        if marks[number]:
            if status == DONE and part != OUTSIDE_BLOCKS:
                for f in range(shorten_keys(keys, checked_block_features(x, number, run), bits)):
                    slot = slot_for(table, gradient, keys[f], make)
                    if slot >= 0:
                        value = weights[f] if has_values() and valued else 1.0
                        for label in range(block_sums.shape[1]):
                            sums[slot, label] += block_sums[number, label] * value
            marks[number] = 0
            fill(block_sums[number], 0.0)
    lat.meta[BUNDLE_END] = 0
    while status == DONE and part != IN_BLOCKS and next_bundle(lat):
        begin, end = lat.meta[BUNDLE_BEGIN], lat.meta[BUNDLE_END]
        state, group = states[edges[begin, SOURCE]], edges[begin, EDGE_GROUP]
        for f in range(shorten_keys(keys, checked_features(x, state, group, run), bits)):
            slot = slot_for(table, gradient, keys[f], make)
            if slot >= 0:
                value = weights[f] if has_values() and valued else 1.0
                for e in range(begin, end):
                    sums[slot, edges[e, EDGE_LABEL]] += masses[e] * value
    return status if status != DONE else run.meta[FAULT]


def delta_of(table, run, gradient):
    """Move a gradient to Delta; what must grow. The gradient is empty afterwards."""
    sums, rows, delta, values = gradient.values, gradient.rows, run.delta, run.values
    n = 0
    for slot in range(gradient.ints[USED_SLOTS]):
        for label in range(sums.shape[1]):
            n += sums[slot, label] != 0.0
    fits = n <= values.shape[0]
    n = 0
    for slot in range(gradient.ints[USED_SLOTS]):
        table.mark[rows[slot]] = -1
        for label in range(sums.shape[1]):
            if sums[slot, label] != 0.0 and fits:
                delta[n, DELTA_ROW] = rows[slot]
                delta[n, DELTA_LABEL] = label
                values[n] = sums[slot, label]
                n += 1
            sums[slot, label] = 0.0
    gradient.ints[USED_SLOTS] = 0
    run.meta[ENTRIES] = n
    return DONE if fits else MORE_ENTRIES
