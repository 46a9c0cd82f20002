"""Figure 1 where each step is a segment of the items: rounds are filled when they open.

``search_one`` offers the steps of a node to all later rounds at once, most of them in vain. Here a
round that opens takes the steps that lead to it, the shortest first. Their scores set a threshold,
below which most longer segments are: an upper bound on the weights of their features shows that
before they are looked up. The nodes of each round, and their order, are those of ``search_one``.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import mix
from laso.engine.kernels.agenda import (
    drop_last,
    entry_threshold,
    insert,
    make_state,
    n_rounds,
    new_node,
    start,
    step_to,
    write_groups,
)
from laso.engine.kernels.placeholders import allowed
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_choices,
    checked_features,
    checked_labels,
    checked_sub_block,
    listed_label,
    note_fault,
)
from laso.engine.kernels.scoring import add_own, highest, sum_block
from laso.engine.kernels.weights import add_rows, fill, keep_known, shorten_keys
from laso.engine.layout import (
    BAD_KEY,
    BITS,
    DONE,
    FAILED,
    FAULT,
    FIRST,
    GOOD,
    HELD,
    IN_KEY,
    KEY,
    LOSS,
    MORE_NODES,
    OFFERED,
    PARENT,
    SCALE,
    SCORE,
    VERSION,
    G,
)


def search_segments(x, table, run, options):
    """Return the goal that ``search_one`` dequeues without a gold output, or minus the status."""
    agenda, n = run.agenda, x.items.shape[0]
    start(x, table, run, options)
    if n >= n_rounds(agenda):
        note_fault(run.meta, BAD_KEY, IN_KEY, n, 0, n_rounds(agenda) - 1)
        return -BAD_KEY
    for at in range(n + 1):
        for length in range(1, at + 1):
            before = at - length
            # A round that is open has the number of its groups in place of its good nodes.
            if agenda[before, HELD] > 0 and length <= agenda[before, OFFERED]:
                status = offer_segments(x, table, run, options, before, at)
                if status != DONE:
                    return -status
        agenda[at, OFFERED] = 0
        for i in range(agenda[at, HELD]):
            make_state(x, run, agenda[at, FIRST + i])
            run.step_names[at * options.width + i] = 0
        if agenda[at, HELD] > 0 and at < n:
            agenda[at, OFFERED] = write_groups(x, run, agenda[at, FIRST])
    if run.meta[FAULT] != DONE:
        return -run.meta[FAULT]
    return agenda[n, FIRST] if agenda[n, HELD] > 0 else -FAILED


def offer_segments(x, table, run, options, before, at):
    """Enqueue the segments from the nodes of round ``before`` to round ``at``; the status."""
    agenda, reals, width, scale = run.agenda, run.reals, options.width, table.reals[SCALE]
    group, state = at - before, run.states[agenda[before, FIRST]]
    threshold = entry_threshold(agenda, reals, width, at)
    least = math.inf  # that the sum of the block must exceed
    for i in range(agenda[before, HELD]):
        node = agenda[before, FIRST + i]
        top = sum_step(x, table, run, node, group, before * width + i)
        least = min(least, least_sum(threshold, reals[node, G], top, scale))
    number = checked_block(x, state, group, run)
    n_listed = checked_choices(x, state, group, run)
    if number < 0 or not sum_segment(x, table, run, number, group, state, n_listed, least):
        return run.meta[FAULT]
    most = run.block_maxima[number]
    for i in range(agenda[before, HELD]):
        node, spare = agenda[before, FIRST + i], before * width + i
        threshold = entry_threshold(agenda, reals, width, at)
        if most + 1e-6 * abs(most) >= least_sum(
            threshold, reals[node, G], run.step_maxima[spare], scale
        ):
            status = offer_labels(x, table, run, options, node, at, number, spare, n_listed)
            if status != DONE:
                return status
    return run.meta[FAULT]


def least_sum(threshold, g, top, scale):
    """Return the least sum of a block with which a step may reach the threshold.

    ``top`` is the highest sum of its other features. There is room for rounding.
    """
    return (threshold - g - 1e-9 * (abs(threshold) + abs(g))) / scale - top - 1e-6 * abs(top)


def sum_step(x, table, run, node, group, spare):
    """Sum the features of a step that are in no block, if they are new; return the highest sum."""
    n = checked_features(x, run.states[node], group, run)
    name = n + 1
    for f in range(n):
        name = mix(name, run.out.keys[f])
    if run.step_names[spare] != name:
        run.step_names[spare] = name
        sums = run.step_sums[spare]
        fill(sums, 0.0)
        add_rows(table, run, n, sums)
        run.step_maxima[spare] = highest(sums, checked_labels(x, run))
    return run.step_maxima[spare]


def sum_segment(x, table, run, number, group, state, n_listed, least):
    """Sum the block of a segment, if the sum of a listed label may reach ``least``; else False."""
    sums, version = run.block_sums[number], run.meta[VERSION]
    fill(sums, 0.0)
    i, below = 1, checked_sub_block(x, number, 0, run.meta)
    while below >= 0:
        if run.block_versions[below] != version:
            sum_block(x, table, run, below)
        for label in range(sums.shape[0]):
            sums[label] += run.block_sums[below, label]
        below = checked_sub_block(x, number, i, run.meta)
        i += 1
    if run.caps[1] >= 0.0:
        most = highest_listed(x, run, number, group, state, n_listed)
        most += 1e-6 * abs(most)
        n = checked_block_features(x, number, run)
        n = shorten_keys(run.out.keys, n, table.ints[BITS])
        if most + cap_of(run, n) < least:
            return False
        if most + cap_of(run, keep_known(table, run.out, n)) < least:
            return False
    add_own(x, table, run, number, sums)
    run.block_maxima[number] = highest_listed(x, run, number, group, state, n_listed)
    return True


def highest_listed(x, run, number, group, state, n_listed):
    """Return the highest sum of a block for the listed labels."""
    most = -math.inf
    for c in range(n_listed if n_listed >= 0 else checked_labels(x, run)):
        label = listed_label(x, state, group, c, run, n_listed)
        most = max(most, run.block_sums[number, label])
    return most


def cap_of(run, n):
    """Return an upper bound on the sum of the n features in the buffer, for any label."""
    keys, heavy, caps, total = run.out.keys, run.heavy, run.caps, 0.0
    mask = 8 * heavy.shape[0] - 1
    for f in range(n):
        bit = (keys[f] >> 20) & mask
        total += caps[(heavy[bit >> 3] >> (bit & 7)) & 1]
    return total


def offer_labels(x, table, run, options, node, at, number, spare, n_listed):
    """Enqueue the listed labels of a segment from a node, as ``expand`` would; the status."""
    ints, reals, agenda, width = run.ints, run.reals, run.agenda, options.width
    state, group, g = run.states[node], at - ints[node, KEY], reals[node, G]
    for c in range(n_listed if n_listed >= 0 else checked_labels(x, run)):
        label = listed_label(x, state, group, c, run, n_listed)
        total = run.block_sums[number, label] + run.step_sums[spare, label]
        score = g + table.reals[SCALE] * total
        place = place_among(run, at, score, ints[node, KEY])
        if place == width or not allowed(x, state, group, label):
            continue
        child = drop_last(agenda, run.meta, at, width)
        if child < 0:
            child = new_node(run)
            if child < 0:
                return MORE_NODES
        step_to(ints, child, node, group, label)
        ints[child, GOOD], ints[child, KEY] = 0, at
        reals[child, G] = reals[child, SCORE] = score
        reals[child, LOSS] = reals[node, LOSS]
        insert(agenda, run.meta, at, place, child)
    return DONE


def place_among(run, at, score, before):
    """Return the index of a new node in a list; of equals, those of the earliest round are first.

    Nodes of the same round were enqueued in the order in which ``expand`` enqueues them.
    """
    ints, agenda, place = run.ints, run.agenda, run.agenda[at, HELD]
    while place > 0:
        other = agenda[at, FIRST + place - 1]
        its_score, its_round = run.reals[other, SCORE], ints[ints[other, PARENT], KEY]
        if score > its_score or (score == its_score and before < its_round):
            place -= 1
        else:
            break
    return place
