"""Nodes and the agenda: rounds of a beam, or one ranked list."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.placeholders import (
    FACTORED,
    KEY_OF_GROUP,
    SHARED,
    allowed,
    apply,
    groups,
    initial,
    is_goal,
    is_good,
    key,
    loss,
)
from laso.engine.kernels.promises import (
    checked_choices,
    checked_count,
    checked_labels,
    listed_label,
    note_fault,
)
from laso.engine.kernels.scoring import has_good, score_factors, score_labels, score_shared
from laso.engine.layout import (
    BAD_KEY,
    DEPTH,
    DEQUEUED,
    EXPANDED,
    EXPANSION,
    EXTRA_LISTS,
    FAULT,
    FIRST,
    GOAL,
    GOOD,
    GOODS,
    GROUP,
    HELD,
    IN_GROUPS,
    IN_KEY,
    IN_LIMITS,
    KEY,
    LABEL,
    LOSS,
    LOW,
    MARGIN,
    MORE_NODES,
    NO_GOLD,
    NODES,
    OFFERED,
    ONLY_GOOD,
    OPEN_ROUND,
    ORACLE,
    ORDER,
    PARENT,
    QUEUED,
    ROUND_AT,
    ROUND_END,
    SCALE,
    SCORE,
    SLACK,
    VERSION,
    WAITING,
    WAITING_GOALS,
    G,
)
from laso.engine.option_kinds import RANKED

# --------------------------------------------------------------------------- nodes


def new_node(run):
    """Return the number of an unused node, -1 if there is no room."""
    node = run.meta[NODES]
    if node == run.ints.shape[0]:
        return -1
    run.meta[NODES] = node + 1
    return node


def step_to(ints, node, parent, group, label):
    """Make a node the result of a step; its scores and its state are still to be written."""
    ints[node, PARENT] = parent
    ints[node, GROUP] = group
    ints[node, LABEL] = label
    ints[node, DEPTH] = ints[parent, DEPTH] + 1 if parent >= 0 else 0
    ints[node, GOAL] = -1
    ints[node, ORDER] = -1


def make_state(x, run, node):
    """Write the state of a node, if it has none yet."""
    ints, states = run.ints, run.states
    if ints[node, GOAL] < 0:
        state = states[node]
        parent = ints[node, PARENT]
        if parent < 0:
            initial(x, state)
        else:
            apply(x, states[parent], ints[node, GROUP], ints[node, LABEL], state)
        ints[node, GOAL] = is_goal(x, state)


def write_groups(x, run, node):
    """Write the groups of a node's state, and return their number."""
    n = groups(x, run.states[node], run.groups)
    return checked_count(run.meta, n, run.groups.shape[0] - SLACK, IN_GROUPS)


# --------------------------------------------------------------------------- the agenda


def n_rounds(agenda):
    """Return the number of rounds, which is that of the first extra list."""
    return agenda.shape[0] - EXTRA_LISTS


def make_queue(run):
    """Empty the agenda."""
    for at in range(run.agenda.shape[0]):
        run.agenda[at, HELD] = run.agenda[at, OFFERED] = 0
    for at in range(run.expanded.shape[0]):
        run.expanded[at, EXPANDED] = 0
    run.meta[ROUND_AT] = run.meta[ROUND_END] = run.meta[WAITING] = 0
    run.meta[QUEUED] = run.meta[GOODS] = 0
    run.meta[LOW] = n_rounds(run.agenda)


def size(run):
    """Return the number of nodes in the agenda."""
    return run.meta[ROUND_END] - run.meta[ROUND_AT] + run.meta[WAITING] + run.meta[QUEUED]


def place_for(agenda, reals, width, at, score):
    """Return the index of a new node of this score in list ``at``, -1 if the list is full."""
    place = agenda[at, HELD]
    if place == width:
        place -= 1
        if not score > reals[agenda[at, FIRST + place], SCORE]:
            return -1
    while place > 0 and score > reals[agenda[at, FIRST + place - 1], SCORE]:
        place -= 1
    return place


def entry_threshold(agenda, reals, width, at):
    """Return the score that a node must exceed to enter list ``at``."""
    if agenda[at, HELD] < width:
        return -math.inf
    return reals[agenda[at, FIRST + width - 1], SCORE]


def insert(agenda, meta, at, place, node):
    """Insert a node into a list, which must have room for it."""
    held = agenda[at, HELD]
    for j in range(FIRST + held, FIRST + place, -1):
        agenda[at, j] = agenda[at, j - 1]
    agenda[at, FIRST + place] = node
    agenda[at, HELD] = held + 1
    meta[QUEUED] += 1
    meta[LOW] = min(meta[LOW], at)


def drop_last(agenda, meta, at, width):
    """Remove and return the worst node of a full list, -1 if the list is not full."""
    held = agenda[at, HELD]
    if held < width:
        return -1
    agenda[at, HELD] = held - 1
    meta[QUEUED] -= 1
    return agenda[at, FIRST + held - 1]


def count_good(agenda, meta, at, ranked, change):
    """Count a good node that was offered to list ``at``.

    A round is cut when it opens. Until then a good node counts as queued even if it has lost its
    place. The single list of a ranking is cut at once.
    """
    meta[GOODS] += change
    if not ranked:
        agenda[at, OFFERED] += change


def enqueue(run, options, node):
    """Enqueue a finished node."""
    ints, reals, agenda, meta = run.ints, run.reals, run.agenda, run.meta
    ranked = options.kind == RANKED
    at = 0 if ranked else ints[node, KEY]
    place = place_for(agenda, reals, options.width, at, reals[node, SCORE])
    if place >= 0:
        lost = drop_last(agenda, meta, at, options.width)
        if ranked and lost >= 0 and ints[lost, GOOD]:
            count_good(agenda, meta, at, ranked, -1)
        insert(agenda, meta, at, place, node)
    if ints[node, GOOD] and (place >= 0 or not ranked):
        count_good(agenda, meta, at, ranked, 1)


def child_of(run, options, at):
    """Return a node for list ``at``, which loses its worst one if it is full; -1: no room."""
    ints, agenda, meta, ranked = run.ints, run.agenda, run.meta, options.kind == RANKED
    lost = drop_last(agenda, meta, at, options.width)
    if ranked and lost >= 0 and ints[lost, GOOD]:
        count_good(agenda, meta, at, ranked, -1)
    # Nothing refers to a lost node that has no state yet.
    return new_node(run) if lost < 0 or ints[lost, GOAL] >= 0 else lost


def open_round(x, run, options):
    """Cut the lowest list (with the goals that waited) to the beam: the nodes to expand next.

    A goal that is not the best of its round waits for the next one.
    """
    ints, reals, agenda, meta = run.ints, run.reals, run.agenda, run.meta
    opened = agenda[n_rounds(agenda) + OPEN_ROUND]
    waiting = agenda[n_rounds(agenda) + WAITING_GOALS]
    at = meta[LOW]
    if meta[QUEUED] > 0:
        while agenda[at, HELD] == 0:
            at += 1
    meta[LOW] = at
    held, n_waiting = agenda[at, HELD], meta[WAITING]
    goods = meta[GOODS] - agenda[at, OFFERED]
    for i in range(n_waiting):
        goods -= ints[waiting[FIRST + i], GOOD]
    n = i = j = 0
    while n < options.width and (i < n_waiting or j < held):
        if i < n_waiting and (
            j == held or not reals[agenda[at, FIRST + j], SCORE] > reals[waiting[FIRST + i], SCORE]
        ):
            node = waiting[FIRST + i]
            i += 1
        else:
            node = agenda[at, FIRST + j]
            make_state(x, run, node)
            j += 1
        goods += ints[node, GOOD]
        opened[FIRST + n] = node
        n += 1
    agenda[at, HELD] = agenda[at, OFFERED] = 0
    meta[QUEUED] -= held
    meta[GOODS] = goods
    meta[WAITING] = meta[ROUND_AT] = 0
    meta[ROUND_END] = n
    if ints[opened[FIRST], GOAL] == 0:
        kept = 0
        for i in range(n):
            node = opened[FIRST + i]
            if ints[node, GOAL]:
                waiting[FIRST + meta[WAITING]] = node
                meta[WAITING] += 1
            else:
                opened[FIRST + kept] = node
                kept += 1
        meta[ROUND_END] = kept


def remove_front(x, run, options):
    """RemoveFront of the figures."""
    ints, agenda, meta = run.ints, run.agenda, run.meta
    if options.kind == RANKED:
        node = agenda[0, FIRST]
        held = agenda[0, HELD] - 1
        agenda[0, HELD] = held
        for j in range(FIRST, FIRST + held):
            agenda[0, j] = agenda[0, j + 1]
        meta[QUEUED] -= 1
        make_state(x, run, node)
    else:
        if meta[ROUND_AT] == meta[ROUND_END]:
            open_round(x, run, options)
        node = agenda[n_rounds(agenda) + OPEN_ROUND, FIRST + meta[ROUND_AT]]
        meta[ROUND_AT] += 1
    meta[GOODS] -= ints[node, GOOD]
    ints[node, ORDER] = meta[DEQUEUED]
    meta[DEQUEUED] += 1
    return node


# --------------------------------------------------------------------------- successors


def score_group(x, y, table, run, options, node, group, n):
    """Write the scores of a group's labels; False if none of them can enter the agenda.

    These are the n labels that ``choice`` lists; all if n is -1.
    """
    state = run.states[node]
    if not (FACTORED or SHARED):
        score_labels(x, state, group, table, run)
        return True
    ranked, g, least = options.kind == RANKED, run.reals[node, G], -math.inf
    if not options.keyed or ranked or KEY_OF_GROUP:  # else labels may have lists of their own
        at = 0 if ranked else run.ints[node, DEPTH] + 1
        if options.keyed and not ranked:
            chosen = key(x, state, group, 0)
            at = checked_round(chosen, run.ints[node, KEY], n_rounds(run.agenda))
        threshold = entry_threshold(run.agenda, run.reals, options.width, at)
        rounding = 1e-9 * (abs(threshold) + abs(g))
        least = (threshold - g - rounding) / table.reals[SCALE]
    if run.ints[node, GOOD] > 0 and has_good(x, y, state, group, run, n):
        least = -math.inf
    if not FACTORED:
        return score_shared(x, state, group, table, run, least, n)
    return score_factors(x, state, group, table, run, least, n)


def checked_round(at, low, rounds):
    """Return the round ``at``, or the first that does not exist if it is not above ``low``."""
    return at if low < at < rounds else rounds


def expand(x, y, table, run, options, node):
    """Operators and enqueue of the figures; the status."""
    ints, reals, agenda, meta, sums = run.ints, run.reals, run.agenda, run.meta, run.sums
    chosen, state = run.groups, run.states[node]
    scale, margin = table.reals[SCALE], table.reals[MARGIN]
    width, ranked, rounds = options.width, options.kind == RANKED, n_rounds(agenda)
    keyed = options.keyed and not ranked
    g = reals[node, G]
    was_good, oracle = ints[node, GOOD] > 0, meta[ORACLE]
    chosen_round = ints[node, DEPTH] + 1
    at = checked_round(chosen_round, ints[node, KEY], rounds)
    if ranked and at < rounds:
        at = 0
    threshold_at, threshold = at, entry_threshold(agenda, reals, width, at)
    n_labels = checked_labels(x, run)
    meta[EXPANSION] += FACTORED
    for i in range(write_groups(x, run, node)):
        group = chosen[i]
        n_listed = checked_choices(x, state, group, run)
        if not score_group(x, y, table, run, options, node, group, n_listed):
            continue
        for c in range(n_listed if n_listed >= 0 else n_labels):
            label = listed_label(x, state, group, c, run, n_listed)
            new_g = g + scale * sums[label]
            good = was_good and is_good(x, y, state, group, label)
            score = new_g - margin if good else new_g
            if keyed:
                chosen_round = key(x, state, group, label)
                at = checked_round(chosen_round, ints[node, KEY], rounds)
            if at != threshold_at:
                threshold_at, threshold = at, entry_threshold(agenda, reals, width, at)
            if not score > threshold and not good:
                continue
            place = place_for(agenda, reals, width, at, score)
            if (oracle == ONLY_GOOD and not good) or not allowed(x, state, group, label):
                continue
            if at == rounds:  # this list is always empty, so that all allowed steps come here
                method = IN_KEY if keyed else IN_LIMITS
                note_fault(meta, BAD_KEY, method, chosen_round, ints[node, KEY] + 1, rounds - 1)
                return BAD_KEY
            if good and (place >= 0 or not ranked):
                count_good(agenda, meta, at, ranked, 1)
            if place < 0:
                continue
            child = child_of(run, options, at)
            if child < 0:
                return MORE_NODES
            step_to(ints, child, node, group, label)
            ints[child, GOOD] = good
            ints[child, KEY] = ints[child, DEPTH] if ranked else at
            reals[child, G] = new_g
            reals[child, SCORE] = score
            reals[child, LOSS] = reals[node, LOSS]
            if oracle != NO_GOLD:
                reals[child, LOSS] += loss(x, y, state, group, label, was_good, good)
            insert(agenda, meta, at, place, child)
            threshold = entry_threshold(agenda, reals, width, at)
    return meta[FAULT]


def start(x, table, run, options):
    """MakeQueue(MakeNode(problem, initial)) of the figures."""
    run.meta[VERSION] += 1
    make_queue(run)
    node = new_node(run)
    step_to(run.ints, node, -1, -1, -1)
    make_state(x, run, node)
    with_gold = run.meta[ORACLE] != NO_GOLD
    run.ints[node, KEY] = 0
    run.ints[node, GOOD] = with_gold
    run.reals[node, G] = run.reals[node, LOSS] = 0.0
    run.reals[node, SCORE] = -table.reals[MARGIN] if with_gold else 0.0
    enqueue(run, options, node)
