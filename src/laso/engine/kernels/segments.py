"""Expansion where each step is a segment of the items: rounds are filled when they open.

``expand`` offers the steps of a node to all later rounds at once, most of them in vain. Here the
round that opens next takes the steps that lead to it, the shortest first. Their scores set a
threshold, below which most longer segments are: an upper bound on the weights of their features
shows that before they are looked up. The nodes of each round, and their order, are the same.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import mix
from laso.engine.kernels.agenda import (
    child_of,
    count_good,
    entry_threshold,
    insert,
    n_rounds,
    step_to,
    write_groups,
)
from laso.engine.kernels.expansion import expand
from laso.engine.kernels.placeholders import (
    SEGMENTS,
    allowed,
    content,
    features_of_state,
    is_good,
    loss,
)
from laso.engine.kernels.promises import (
    block_features_in,
    checked_block,
    checked_block_features,
    checked_choices,
    checked_features,
    checked_labels,
    listed_label,
    note_fault,
)
from laso.engine.kernels.scoring import add_sub_blocks, cap_of, highest, next_block
from laso.engine.kernels.weights import (
    add_known_rows,
    add_rows,
    fill,
    find_rows,
    keep_known,
    request_entries,
    request_rows,
    shorten_keys,
)
from laso.engine.layout import (
    AHEAD,
    BAD_KEY,
    BITS,
    DONE,
    EXPANDED,
    FAULT,
    FIRST,
    FIRST_EXPANDED,
    GOOD,
    HELD,
    IN_KEY,
    KEY,
    LENGTHS,
    LISTED,
    LISTED_BLOCK,
    LISTED_FIRST,
    LISTED_PLACE,
    LISTED_ROWS,
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
    SLACK,
    STACK_BLOCK,
    WEIGHTS,
    G,
    Out,
)


def expand_node(x, y, table, run, options, node):
    """Operators and enqueue of the figures, now or when the rounds open; the status."""
    if SEGMENTS() and run.expanded.shape[0] > 0:
        return expand_later(x, y, table, run, options, node)
    return expand(x, y, table, run, options, node)


def max_successors(x, run, options, node):
    """Return an upper bound on the number of nodes that the expansion of a node makes."""
    if SEGMENTS() and run.expanded.shape[0] > 0:
        return 2 * options.width  # those of a round, where each may take the place of a sibling
    most = (run.groups.shape[0] - SLACK) * checked_labels(x, run)
    if run.meta[NODES] + most <= run.ints.shape[0]:
        return most
    return write_groups(x, run, node) * checked_labels(x, run)


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
    if i == 0:
        run.reaches[at] = -math.inf
    if features_of_state(x):
        add_reach(x, table, run, node, run.groups[0], at * options.width + i)
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
        n_listed = checked_choices(x, state, group, run)
        for c in range(n_listed if n_listed >= 0 else checked_labels(x, run)):
            label = listed_label(x, state, group, c, run, n_listed)
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
    run.meta[LISTED] = run.meta[AHEAD] = 0
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
    meta, kept, name = run.meta, run.contents, content(x, number)
    place, first, n = name & (kept.shape[0] - 1), -1, 0
    if name == 0 or kept[place] != name or kept.shape[0] == 1:
        kept[place], first = name, meta[AHEAD]
        out = Out(run.ahead.keys[first:], run.ahead.values[first:])
        n = request_rows(table, out, block_features_in(x, number, run, out))
    listed = run.listed[meta[LISTED]]
    listed[LISTED_BLOCK], listed[LISTED_PLACE] = number, place
    listed[LISTED_FIRST], listed[LISTED_ROWS] = first, n
    meta[LISTED] += 1
    meta[AHEAD] += n
    most = run.ahead_rows.shape[0] - run.rows.shape[0]
    if meta[LISTED] == run.listed.shape[0] or meta[AHEAD] > most:
        sum_listed(x, table, run)


def sum_listed(x, table, run):
    """Sum the listed blocks, and empty the list."""
    listed, cached, n_labels = run.listed, run.block_sums, run.sums.shape[0]
    for j in range(run.meta[LISTED]):
        first, n = listed[j, LISTED_FIRST], listed[j, LISTED_ROWS]
        if n > 0:
            out = Out(run.ahead.keys[first:], run.ahead.values[first:])
            listed[j, LISTED_ROWS] = find_rows(table, out, n, run.ahead_rows[first:])
    for j in range(run.meta[LISTED]):
        number, first = listed[j, LISTED_BLOCK], listed[j, LISTED_FIRST]
        sums, own = cached[number], run.content_sums[listed[j, LISTED_PLACE]]
        if first >= 0:
            rows, n = run.ahead_rows[first:], listed[j, LISTED_ROWS]
            fill(own, 0.0)
            request_entries(table, rows, n)
            add_known_rows(table, run.ahead.values[first:], rows, n, own)
        add_sub_blocks(x, run, number)
        for label in range(n_labels):
            sums[label] += own[label]
    run.meta[LISTED] = run.meta[AHEAD] = 0


# --------------------------------------------------------------------------- segments


def offer_segments(x, y, table, run, options, before, at):
    """Enqueue the segments from the nodes of round ``before`` to round ``at``; the status."""
    width, scale, group = options.width, table.reals[SCALE], at - before
    nodes, n_nodes = run.expanded[before], run.expanded[before, EXPANDED]
    if not features_of_state(x):
        run.reaches[before] = -math.inf
        for i in range(n_nodes):
            add_reach(x, table, run, nodes[FIRST_EXPANDED + i], group, before * width + i)
    threshold = entry_threshold(run.agenda, run.reals, width, at)
    state = run.states[nodes[FIRST_EXPANDED]]
    number = checked_block(x, state, group, run)
    n_listed = write_choices(x, state, group, run)
    least = least_sum(threshold, run.reaches[before], scale)
    if number < 0 or not sum_segment(x, table, run, number, n_listed, least):
        return run.meta[FAULT]
    most = run.block_maxima[number]
    most += 1e-6 * abs(most)
    for i in range(n_nodes):
        spare, threshold = before * width + i, entry_threshold(run.agenda, run.reals, width, at)
        reach = reach_of(table, run, nodes[FIRST_EXPANDED + i], spare)
        if most >= least_sum(threshold, reach, scale):
            chosen = (spare, number, n_listed)
            status = offer_labels(x, y, table, run, options, chosen, at)
            if status != DONE:
                return status
    return run.meta[FAULT]


def reach_of(table, run, node, spare):
    """Return the score of the best step from a node, but for its block; rounding has room."""
    g, top = run.reals[node, G], run.step_maxima[spare]
    return g + 1e-9 * abs(g) + table.reals[SCALE] * (top + 1e-6 * abs(top))


def add_reach(x, table, run, node, group, spare):
    """Sum the features of a step that are in no block; the reach of its round includes it."""
    sum_step(x, table, run, node, group, spare)
    at = run.ints[node, KEY]
    run.reaches[at] = max(run.reaches[at], reach_of(table, run, node, spare))


def least_sum(threshold, reach, scale):
    """Return the least sum of a block with which a step may reach the threshold.

    ``reach`` is the score of the step without its block.
    """
    return (threshold - 1e-9 * abs(threshold) - reach) / scale


def sum_step(x, table, run, node, group, spare):
    """Sum the features of a step that are in no block, or take sums that are kept."""
    n = checked_features(x, run.states[node], group, run)
    name = mix(run.meta[WEIGHTS], n)
    for f in range(n):
        name = mix(name, run.out.keys[f])
    if run.step_names[spare] == name:
        return
    run.step_names[spare] = name
    place, sums = name & (run.kept_names.shape[0] - 1), run.step_sums[spare]
    kept = run.kept_steps[place]
    if run.kept_names[place] != name:
        run.kept_names[place] = name
        fill(kept, 0.0)
        add_rows(table, run, n, kept)
    for label in range(sums.shape[0]):
        sums[label] = kept[label]
    run.step_maxima[spare] = highest(sums, checked_labels(x, run))


def write_choices(x, state, group, run):
    """Write the listed labels of a group, which may be all, to run.choices; return their number."""
    n_listed = checked_choices(x, state, group, run)
    n = n_listed if n_listed >= 0 else checked_labels(x, run)
    for c in range(n):
        run.choices[c] = listed_label(x, state, group, c, run, n_listed)
    return n


def sum_segment(x, table, run, number, n_listed, least):
    """Sum the block of a segment, if the sum of a listed label may reach ``least``; else False."""
    sums, own = run.block_sums[number], run.sums
    add_sub_blocks(x, run, number)
    n = shorten_keys(run.out.keys, checked_block_features(x, number, run), table.ints[BITS])
    if run.caps.shape[0] > 1:
        most = highest_listed(run, number, n_listed)
        most += 1e-6 * abs(most)
        if most + cap_of(run, n) < least:
            return False
        n = keep_known(table, run.out, n)
        if most + cap_of(run, n) < least:
            return False
    fill(own, 0.0)
    add_rows(table, run, n, own)
    for label in range(own.shape[0]):
        sums[label] += own[label]
    run.block_maxima[number] = highest_listed(run, number, n_listed)
    return True


def highest_listed(run, number, n_listed):
    """Return the highest sum of a block for the listed labels."""
    most, sums, choices = -math.inf, run.block_sums[number], run.choices
    for c in range(n_listed):
        most = max(most, sums[choices[c]])
    return most


def offer_labels(x, y, table, run, options, chosen, at):
    """Enqueue the listed labels of a segment from a node, as ``expand`` would; the status."""
    spare, number, n_listed = chosen
    ints, reals, meta, before = run.ints, run.reals, run.meta, spare // options.width
    node = run.expanded[before, FIRST_EXPANDED + spare % options.width]
    state, group, g, was_good = run.states[node], at - before, reals[node, G], ints[node, GOOD] > 0
    scale, margin = table.reals[SCALE], table.reals[MARGIN]
    for c in range(n_listed):
        label = run.choices[c]
        new_g = g + scale * (run.block_sums[number, label] + run.step_sums[spare, label])
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
