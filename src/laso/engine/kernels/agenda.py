"""Nodes and the agenda: rounds of a beam, or one ranked list."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.placeholders import apply, groups, initial, is_goal
from laso.engine.kernels.promises import checked_count
from laso.engine.layout import (
    DEPTH,
    DEQUEUED,
    EXPANDED,
    EXTRA_LISTS,
    FIRST,
    GOAL,
    GOOD,
    GOODS,
    GROUP,
    HELD,
    IN_GROUPS,
    KEY,
    LABEL,
    LOSS,
    LOW,
    MARGIN,
    MAX_GROUPS,
    NO_GOLD,
    NODES,
    OFFERED,
    OPEN_ROUND,
    ORACLE,
    ORDER,
    PARENT,
    QUEUED,
    ROUND_AT,
    ROUND_END,
    SCORE,
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
    return checked_count(run.meta, n, run.limits[MAX_GROUPS], IN_GROUPS)


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
