"""Expansion where each step is a segment of the items: rounds are filled when they open.

``expand`` offers the steps of a node to all later rounds at once, most of them in vain. Here the
round that opens next takes the steps that lead to it, the shortest first. Their scores set a
threshold, below which most longer segments are: an upper bound on the weights of their features
shows that before they are looked up. The nodes of each round, and their order, are the same.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.agenda import (
    child_of,
    count_good,
    entry_threshold,
    insert,
    n_rounds,
    step_to,
    write_groups,
)
from laso.engine.kernels.bundles import (
    add_bundle,
    add_sub_blocks,
    copy_bundle,
    is_known,
    look_up,
    n_blocks,
    name_of,
    next_block,
    own_name,
    place_of,
    request_waiting,
    sum_features,
    sum_waiting,
)
from laso.engine.kernels.expansion import expand
from laso.engine.kernels.placeholders import allowed, is_good, loss, shares_blocks
from laso.engine.kernels.promises import (
    block_features_in,
    checked_block,
    checked_block_features,
    checked_features,
    chosen_label,
    has_vectors,
    max_labels,
    most_features,
    n_chosen,
    note_fault,
    write_choices,
)
from laso.engine.kernels.upper_bounds import cap_of
from laso.engine.kernels.weight_table import add_rows, fill, keep_known, shorten_keys
from laso.engine.layout import (
    BAD_KEY,
    BITS,
    DONE,
    EXPANDED,
    FAULT,
    FEATURES_OF_STATE,
    FIRST,
    FIRST_EXPANDED,
    FORM,
    GOOD,
    HELD,
    IN_KEY,
    KEY,
    LENGTHS,
    LISTED,
    LISTED_FEATURES,
    LOSS,
    MARGIN,
    MORE_NODES,
    NEXT_SUB_BLOCK,
    NO_GOLD,
    NODES,
    ONLY_GOOD,
    ORACLE,
    PARENT,
    ROUND_AT,
    ROUND_END,
    SCALE,
    SCORE,
    SEGMENTS,
    SLACK,
    STACK_BLOCK,
    WAITING_COUNT,
    WAITING_FIRST,
    WAITING_FOR,
    WAITING_ROW,
    G,
    Out,
)


def fills_rounds(run):
    """Return whether rounds are filled when they open."""
    return shares_blocks() and run.expanded.shape[0] > 0 and run.limits[FORM] == SEGMENTS


def expand_node(x, y, table, run, options, node):
    """Operators and enqueue of the figures, now or when the rounds open; the status."""
    if fills_rounds(run):
        return expand_later(x, y, table, run, options, node)
    return expand(x, y, table, run, options, node)


def max_successors(x, run, options, node):
    """Return an upper bound on the number of nodes that the expansion of a node makes."""
    if fills_rounds(run):
        return 2 * options.width  # those of a round, where each may take the place of a sibling
    n_steps = (run.groups.shape[0] - SLACK) * max_labels(run)
    if run.meta[NODES] + n_steps <= run.ints.shape[0]:
        return n_steps
    return write_groups(x, run, node) * max_labels(run)


# --------------------------------------------------------------------------- rounds


def expand_later(x, y, table, run, options, node):
    """Note a node for later rounds, of which the next one is filled if no other node is open."""
    at, n, expanded = run.ints[node, KEY], x.items.shape[0], run.expanded
    if n >= n_rounds(run.agenda):
        note_fault(run.meta, BAD_KEY, IN_KEY, n, 0, n_rounds(run.agenda) - 1)
        return BAD_KEY
    i = expanded[at, EXPANDED]
    expanded[at, FIRST_EXPANDED + i] = node
    expanded[at, EXPANDED] = i + 1
    expanded[at, LENGTHS] = write_groups(x, run, node)
    if run.limits[FEATURES_OF_STATE]:
        sum_step(x, table, run, node, run.groups[0], at * options.width + i)
    if run.ints[node, GOOD] > 0:
        count_good_steps(x, y, run, node)
    if run.meta[ROUND_AT] < run.meta[ROUND_END]:
        return run.meta[FAULT]
    while at < n:
        at += 1
        status = fill_round(x, y, table, run, options, at)
        if status != DONE or run.agenda[at, HELD] > 0:
            return status
    return run.meta[FAULT]


def count_good_steps(x, y, run, node):
    """Count the good steps of a node as offered to their rounds."""
    state, at = run.states[node], run.ints[node, KEY]
    for group in range(1, run.expanded[at, LENGTHS] + 1):
        n_listed = write_choices(x, state, group, run)
        for c in range(n_chosen(run, n_listed)):
            label = chosen_label(run, c, n_listed)
            if is_good(x, y, state, group, label) and allowed(x, state, group, label):
                count_good(run.agenda, run.meta, at + group, False, 1)


def fill_round(x, y, table, run, options, at):
    """Enqueue all segments that end at round ``at``, the shortest first; the status."""
    sum_below(x, table, run, at)
    for length in range(1, longest(run, at) + 1):
        if leads_to(run, at - length, at):
            status = offer_segments(x, y, table, run, options, at - length, at)
            if status != DONE:
                return status
    return run.meta[FAULT]


def longest(run, at):
    """Return an upper bound on the length of the segments that end at round ``at``."""
    return min(at, run.groups.shape[0] - SLACK)


def leads_to(run, before, at):
    """Return whether segments lead from nodes of one round to another."""
    return run.expanded[before, EXPANDED] > 0 and at - before <= run.expanded[before, LENGTHS]


# --------------------------------------------------------------------------- sums of many blocks


def sum_below(x, table, run, at):
    """Sum the sub-blocks of all segments that end at round ``at``.

    Their features are looked up together, so that none waits for memory alone.
    """
    run.meta[LISTED] = run.meta[LISTED_FEATURES] = 0
    for length in range(1, longest(run, at) + 1):
        before = at - length
        if leads_to(run, before, at):
            state = run.states[run.expanded[before, FIRST_EXPANDED]]
            number = checked_block(x, state, length, run)
            if number >= 0:
                list_below(x, table, run, number)
    sum_listed(x, table, run)


def list_below(x, table, run, root):
    """List all blocks below a block whose sums are not known, each after its own sub-blocks."""
    stack = run.block_stack
    stack[0, STACK_BLOCK], stack[0, NEXT_SUB_BLOCK] = root, 0
    top = next_block(x, run, 0)
    while top > 0:
        list_block(x, table, run, stack[top, STACK_BLOCK])
        top = next_block(x, run, top - 1)


def list_block(x, table, run, number):
    """List a block, and request the rows of its own features unless their sums are known."""
    meta, waiting, mark = run.meta, run.waiting, own_name(x, run, number)
    i, row, first = meta[LISTED], place_of(run, mark, 0), meta[LISTED_FEATURES]
    waiting[i, WAITING_FOR], waiting[i, WAITING_ROW] = number, row
    waiting[i, WAITING_FIRST], waiting[i, WAITING_COUNT] = -1, 0
    if not is_known(run, row, mark) or mark == 0:
        out = Out(run.out.keys[first:], run.out.values[first:])
        request_waiting(table, run, i, first, block_features_in(x, number, run, out))
    meta[LISTED] += 1
    meta[LISTED_FEATURES] += waiting[i, WAITING_COUNT]
    max_listed = run.rows.shape[0] - most_features(run) - SLACK
    if meta[LISTED] == waiting.shape[0] or meta[LISTED_FEATURES] > max_listed:
        sum_listed(x, table, run)


def sum_listed(x, table, run):
    """Sum the listed blocks, and empty the list."""
    waiting = run.waiting
    look_up(table, run, run.meta[LISTED])
    for i in range(run.meta[LISTED]):
        if waiting[i, WAITING_FIRST] >= 0:
            sum_waiting(table, run, i)
        number = waiting[i, WAITING_FOR]
        add_sub_blocks(x, run, number)
        add_bundle(run, waiting[i, WAITING_ROW], run.bundle_sums[number])
    run.meta[LISTED] = run.meta[LISTED_FEATURES] = 0


# --------------------------------------------------------------------------- segments


def offer_segments(x, y, table, run, options, before, at):
    """Enqueue the segments from the nodes of round ``before`` to round ``at``; the status."""
    width, scale, group = options.width, table.reals[SCALE], at - before
    nodes, n_nodes = run.expanded[before], run.expanded[before, EXPANDED]
    reach = -math.inf  # of the best step, but for its block
    for i in range(n_nodes):
        if not run.limits[FEATURES_OF_STATE]:
            sum_step(x, table, run, nodes[FIRST_EXPANDED + i], group, before * width + i)
        reach = max(reach, reach_of(table, run, nodes[FIRST_EXPANDED + i], before * width + i))
    threshold = entry_threshold(run.agenda, run.reals, width, at)
    state = run.states[nodes[FIRST_EXPANDED]]
    number = checked_block(x, state, group, run)
    n_listed = list_labels(x, state, group, run)
    least = least_sum(threshold, reach, scale)
    if number < 0 or not sum_segment(x, table, run, number, n_listed, least):
        return run.meta[FAULT]
    bound = run.bundle_maxima[number]
    bound += 1e-6 * abs(bound)
    for i in range(n_nodes):
        spare, threshold = before * width + i, entry_threshold(run.agenda, run.reals, width, at)
        reach = reach_of(table, run, nodes[FIRST_EXPANDED + i], spare)
        if bound >= least_sum(threshold, reach, scale):
            chosen = (spare, number, n_listed)
            status = offer_labels(x, y, table, run, options, chosen, at)
            if status != DONE:
                return status
    return run.meta[FAULT]


def reach_of(table, run, node, spare):
    """Return the score of the best step from a node, but for its block; rounding has room."""
    g, top = run.reals[node, G], run.bundle_maxima[n_blocks(run) + spare]
    return g + 1e-9 * abs(g) + table.reals[SCALE] * (top + 1e-6 * abs(top))


def least_sum(threshold, reach, scale):
    """Return the least sum of a block with which a step may reach the threshold.

    ``reach`` is the score of the step without its block.
    """
    return (threshold - 1e-9 * abs(threshold) - reach) / scale


def sum_step(x, table, run, node, group, spare):
    """Sum the features of a step that are in no block, unless they are those of the last one."""
    n = checked_features(x, run.states[node], group, run)
    mark, own_row = name_of(run, n), n_blocks(run) + spare
    if not is_known(run, own_row, mark):
        row = sum_features(table, run, n, mark)
        copy_bundle(run, row, run.bundle_sums[own_row])
        run.bundle_maxima[own_row] = run.bundle_maxima[row]


def list_labels(x, state, group, run):
    """Write the labels of a group that may be allowed, even if these are all; their number."""
    n_listed = write_choices(x, state, group, run)
    if n_listed >= 0:
        return n_listed
    for label in range(max_labels(run)):
        run.choices[label] = label
    return max_labels(run)


def sum_segment(x, table, run, number, n_listed, least):
    """Sum the block of a segment, if the sum of a listed label may reach ``least``; else False."""
    sums, label_sums = run.bundle_sums[number], run.sums
    add_sub_blocks(x, run, number)
    n = shorten_keys(run.out.keys, checked_block_features(x, number, run), table.ints[BITS])
    if run.caps.shape[0] > 1 and not has_vectors(x, number):
        bound = highest_listed(run, number, n_listed)
        bound += 1e-6 * abs(bound)
        if bound + cap_of(run, n) < least:
            return False
        n = keep_known(table, run.out, n)
        if bound + cap_of(run, n) < least:
            return False
    fill(label_sums, 0.0)
    add_rows(table, run, n, label_sums)
    for label in range(label_sums.shape[0]):
        sums[label] += label_sums[label]
    run.bundle_maxima[number] = highest_listed(run, number, n_listed)
    return True


def highest_listed(run, number, n_listed):
    """Return the highest sum of a block for the listed labels."""
    highest, sums, choices = -math.inf, run.bundle_sums[number], run.choices
    for c in range(n_listed):
        highest = max(highest, sums[choices[c]])
    return highest


def offer_labels(x, y, table, run, options, chosen, at):
    """Enqueue the listed labels of a segment from a node, as ``expand`` would; the status."""
    spare, number, n_listed = chosen
    ints, reals, meta, before = run.ints, run.reals, run.meta, spare // options.width
    node = run.expanded[before, FIRST_EXPANDED + spare % options.width]
    state, group, g, was_good = run.states[node], at - before, reals[node, G], ints[node, GOOD] > 0
    scale, margin, own_row = table.reals[SCALE], table.reals[MARGIN], n_blocks(run) + spare
    for c in range(n_listed):
        label = int(run.choices[c])
        new_g = g + scale * (run.bundle_sums[number, label] + run.bundle_sums[own_row, label])
        good = was_good and is_good(x, y, state, group, label)
        score = new_g - margin if good else new_g
        place = place_among(run, at, score, before)
        if place == options.width or not allowed(x, state, group, label):
            continue
        if meta[ORACLE] == ONLY_GOOD and not good:
            continue
        child = child_of(run, options, at)
        if child < 0:
            return MORE_NODES
        step_to(ints, child, node, group, label)
        ints[child, GOOD], ints[child, KEY] = good, at
        reals[child, G], reals[child, SCORE] = new_g, score
        reals[child, LOSS] = reals[node, LOSS]
        if meta[ORACLE] != NO_GOLD:
            reals[child, LOSS] += loss(x, y, state, group, label, was_good, good)
        insert(run.agenda, meta, at, place, child)
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
