"""Build the lattice of an input: all paths, round by round."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.bundles import forget_sums, score_labels
from laso.engine.kernels.placeholders import (
    allowed,
    apply,
    groups,
    initial,
    is_goal,
    is_good,
    key,
    signature,
)
from laso.engine.kernels.promises import begin_input, checked_count, note_fault
from laso.engine.lattice.layout import (
    EDGE_GOOD,
    EDGE_GROUP,
    EDGE_LABEL,
    END_OUT,
    FIRST_IN,
    FIRST_OUT,
    IS_GOAL,
    LAST_IN,
    MADE_BY,
    N_EDGES,
    N_NODES,
    N_ROUNDS,
    NEXT_IN_ROUND,
    ON_GOOD_PATH,
    ORDER_BEGIN,
    ORDER_END,
    ROUND,
    SIGNATURE,
    SLOT,
    SOURCE,
    TARGET,
)
from laso.engine.layout import (
    BAD_KEY,
    DONE,
    FAULT,
    IN_GROUPS,
    IN_KEY,
    IN_LIMITS,
    MAX_GROUPS,
    MORE_EDGES,
    MORE_NODES,
    NO_GOLD,
    ONLY_GOOD,
    ORACLE,
    SCALE,
    STOP,
    STOPPED,
)


def clear(lat):
    """Remove the nodes and edges of the lattice before."""
    nodes, slots, rounds = lat.nodes, lat.slots, lat.rounds
    for node in range(lat.meta[N_NODES]):
        slots[nodes[node, SLOT]] = 0
    for at in range(rounds.shape[0]):
        rounds[at, FIRST_IN] = rounds[at, ORDER_BEGIN] = rounds[at, ORDER_END] = -1
    lat.meta[N_NODES] = lat.meta[N_EDGES] = lat.meta[N_ROUNDS] = 0


def home(at, joined):
    """Return the hash of a node; neighbouring signatures stay neighbours."""
    h = int(joined) + 0x9E3779B1 * int(at)
    return h ^ (h >> 17) ^ (h >> 37)


def enter(nodes, rounds, node, at, edge):
    """Begin a node, to which an edge leads, as the last of its round."""
    nodes[node, ROUND] = at
    nodes[node, MADE_BY] = edge
    nodes[node, ON_GOOD_PATH] = 0
    nodes[node, NEXT_IN_ROUND] = -1
    if rounds[at, FIRST_IN] < 0:
        rounds[at, FIRST_IN] = node
    else:
        nodes[rounds[at, LAST_IN], NEXT_IN_ROUND] = node
    rounds[at, LAST_IN] = node


def open_node(x, run, lat, node):
    """Write the state of a node, and its groups unless it is a goal; return their number."""
    state, edges, by = lat.states[node], lat.edges, lat.nodes[node, MADE_BY]
    if by < 0:
        initial(x, state)
    else:
        source = lat.states[edges[by, SOURCE]]
        apply(x, source, edges[by, EDGE_GROUP], edges[by, EDGE_LABEL], state)
    lat.nodes[node, IS_GOAL] = is_goal(x, state)
    if run.meta[STOP]:
        run.meta[FAULT] = STOPPED
    if lat.nodes[node, IS_GOAL]:
        return 0
    n = groups(x, state, run.groups)
    return checked_count(run.meta, n, run.limits[MAX_GROUPS], IN_GROUPS)


def target_of(lat, at, joined, guess, edge):
    """Return the node of a key and signature, a new one made by ``edge`` if there is none yet.

    ``guess`` is the node to try first.
    """
    nodes, slots = lat.nodes, lat.slots
    target, slot, mask = guess, -1, slots.shape[0] - 1
    while target >= 0 and (nodes[target, SIGNATURE] != joined or nodes[target, ROUND] != at):
        slot = (slot + 1 if slot >= 0 else home(at, joined)) & mask
        target = slots[slot] - 1
    if target < 0:
        target = lat.meta[N_NODES]
        lat.meta[N_NODES] = slots[slot] = target + 1
        nodes[target, SLOT] = slot
        nodes[target, SIGNATURE] = joined
        enter(nodes, lat.rounds, target, at, edge)
    return target


def build(x, y, table, run, options, lat):
    """Explore all paths, round by round in rising key; run.meta[ORACLE] tells if y is known.

    With ONLY_GOOD the lattice has the good paths only. The first state of a node stands for all of
    them. A lack of room ends the call before a node is expanded.
    """
    nodes, edges, rounds, meta = lat.nodes, lat.edges, lat.rounds, lat.meta
    n_labels, scale, last = begin_input(x, run), table.reals[SCALE], rounds.shape[0] - 1
    only_good = run.meta[ORACLE] == ONLY_GOOD
    clear(lat)
    forget_sums(run)
    meta[N_NODES], e, opened, first = 1, 0, 0, 0
    enter(nodes, rounds, 0, 0, -1)
    nodes[0, SLOT] = nodes[0, SIGNATURE] = 0
    nodes[0, ON_GOOD_PATH] = run.meta[ORACLE] != NO_GOLD
    for at in range(rounds.shape[0]):
        rounds[at, ORDER_BEGIN] = opened
        node = rounds[at, FIRST_IN]
        while node >= 0:
            n_groups = open_node(x, run, lat, node)
            state, was_good = lat.states[node], nodes[node, ON_GOOD_PATH] > 0
            lat.order[opened] = node
            opened += 1
            if meta[N_NODES] + n_groups * n_labels > nodes.shape[0]:
                return MORE_NODES
            if e + n_groups * n_labels > edges.shape[0]:
                return MORE_EDGES
            like = first
            nodes[node, FIRST_OUT] = first = e
            for i in range(n_groups):
                group = run.groups[i]
                score_labels(x, state, group, table, run, -math.inf)
                for label in range(n_labels):
                    if not allowed(x, state, group, label):
                        continue
                    good = was_good and is_good(x, y, state, group, label)
                    if only_good and not good:
                        continue
                    to = key(x, state, group, label) if options.keyed else at + 1
                    if to <= at or to > last:
                        method = IN_KEY if options.keyed else IN_LIMITS
                        note_fault(run.meta, BAD_KEY, method, to, at + 1, last)
                        return BAD_KEY
                    # Often it is where the like step from the node before led.
                    guess = edges[like, TARGET] if like < e else 0
                    like += 1
                    target = target_of(lat, to, signature(x, state, group, label), guess, e)
                    if good:
                        nodes[target, ON_GOOD_PATH] = 1
                    edges[e, SOURCE] = node
                    edges[e, EDGE_GROUP] = group
                    edges[e, EDGE_LABEL] = label
                    edges[e, EDGE_GOOD] = good
                    edges[e, TARGET] = target
                    lat.scores[e] = scale * run.sums[label]
                    e += 1
            if run.meta[FAULT] != DONE:
                return run.meta[FAULT]
            nodes[node, END_OUT] = e
            node = nodes[node, NEXT_IN_ROUND]
        rounds[at, ORDER_END] = opened
        meta[N_ROUNDS] = at + 1
        if opened == meta[N_NODES]:
            break
    meta[N_EDGES] = e
    return DONE
