"""The recursion over the lattice, forward and backward: vary the algebra, not the loop."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.lattice.layout import (
    ALGEBRA,
    ARRIVALS,
    ARRIVED,
    ARRIVED_GOOD,
    BAD_SIDE,
    EDGE_GOOD,
    END_OUT,
    FIRST_OUT,
    FRONT_SCORE,
    GOOD_SIDE,
    IS_GOAL,
    LISTS,
    LOGSUM,
    MAX_BOTH,
    MAX_GOOD,
    N_EDGES,
    N_NODES,
    N_ROUNDS,
    ORDER_BEGIN,
    ORDER_END,
    POSTERIOR,
    SIDE,
    SOURCE,
    SUM_ALL,
    SUM_GOOD,
    TARGET,
    TOTAL,
)

HIGH = 600.0  # its exponential is far from overflow


def forward(lat, algebra, lists, margin):
    """Run the recursion with one algebra; ``lists`` is the length of the lists of best paths.

    Both travel in meta, since Numba compiles a function anew for each constant argument.
    """
    lat.meta[ALGEBRA] = algebra
    lat.meta[LISTS] = 2 if algebra == MAX_BOTH else lists
    recur(lat, margin)


def recur(lat, margin):
    """The one recursion: round by round, from every node along its edges.

    When a round is opened, all edges into it are done. Algebras of best paths then rank its nodes
    in the order in which a search would expand them, so that the first of equal paths wins.
    """
    reals, values, backs, rounds = lat.reals, lat.values, lat.backs, lat.rounds
    algebra = lat.meta[ALGEBRA]
    for node in range(lat.meta[N_NODES]):
        reals[node, LOGSUM] = -math.inf
        reals[node, TOTAL] = 0.0
        for j in range(lat.meta[LISTS]):
            values[node, j] = -math.inf
    backs[0, BAD_SIDE] = backs[0, GOOD_SIDE] = -1
    values[0, GOOD_SIDE if algebra == MAX_BOTH else 0] = 0.0
    reals[0, LOGSUM], reals[0, TOTAL] = 0.0, 1.0
    lat.meta[ARRIVALS] = 0
    for at in range(lat.meta[N_ROUNDS]):
        begin, end = rounds[at, ORDER_BEGIN], rounds[at, ORDER_END]
        if algebra >= SUM_ALL:
            forward_logsum(lat, begin, end)
        else:
            rank(lat, begin, end, margin)
            if algebra == MAX_BOTH:
                forward_max_both(lat, begin, end)
            else:
                forward_max(lat, begin, end)


# --------------------------------------------------------------------------- max-plus


def forward_max(lat, begin, end):
    """Max-plus with back pointers: extend the best paths to each node by one edge."""
    nodes, edges, scores, meta = lat.nodes, lat.edges, lat.scores, lat.meta
    values, backs, order = lat.values, lat.backs, lat.order
    only_good, lists, arrivals = meta[ALGEBRA] == MAX_GOOD, meta[LISTS], meta[ARRIVALS]
    last = lists - 1
    for i in range(begin, end):
        node = order[i]
        best = values[node, 0]
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            target, score = edges[e, TARGET], scores[e]
            if not best + score > values[target, last] or (only_good and edges[e, EDGE_GOOD] == 0):
                continue
            j = 0
            while j < lists and values[node, j] + score > values[target, last]:
                value = values[node, j] + score
                place = last
                while place > 0 and value > values[target, place - 1]:
                    values[target, place] = values[target, place - 1]
                    backs[target, place] = backs[target, place - 1]
                    place -= 1
                values[target, place] = value
                backs[target, place] = lists * e + j
                if place == 0:
                    nodes[target, ARRIVED] = arrivals
                    arrivals += 1
                j += 1
    meta[ARRIVALS] = arrivals


def forward_max_both(lat, begin, end):
    """Max-plus on both sides: the best path of good steps only, and the best with a bad step."""
    nodes, edges, scores, meta = lat.nodes, lat.edges, lat.scores, lat.meta
    values, backs, order, arrivals = lat.values, lat.backs, lat.order, meta[ARRIVALS]
    for i in range(begin, end):
        node = order[i]
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            target = edges[e, TARGET]
            for j in range(2):
                side = nodes[node, SIDE] ^ j  # the one that is ahead comes first
                to = GOOD_SIDE if side == GOOD_SIDE and edges[e, EDGE_GOOD] else BAD_SIDE
                value = values[node, side] + scores[e]
                if value > values[target, to]:
                    values[target, to] = value
                    backs[target, to] = 2 * e + side
                    nodes[target, ARRIVED_GOOD if to == GOOD_SIDE else ARRIVED] = arrivals
                    arrivals += 1
    meta[ARRIVALS] = arrivals


def rank(lat, begin, end, margin):
    """Order the nodes of a round in the order in which a search would expand them (Shell's sort).

    FRONT_SCORE is the score of the best path. Where both sides have one, it is the better of them
    once the good one is lowered by the margin; SIDE tells which.
    """
    nodes, reals, values, order = lat.nodes, lat.reals, lat.values, lat.order
    for i in range(begin, end):
        node = order[i]
        reals[node, FRONT_SCORE] = values[node, 0]
        if lat.meta[ALGEBRA] == MAX_BOTH:
            lowered, bad = values[node, GOOD_SIDE] - margin, values[node, BAD_SIDE]
            nodes[node, SIDE] = BAD_SIDE
            if lowered > bad or (
                lowered == bad and nodes[node, ARRIVED_GOOD] < nodes[node, ARRIVED]
            ):
                nodes[node, SIDE] = GOOD_SIDE
                nodes[node, ARRIVED] = nodes[node, ARRIVED_GOOD]
                reals[node, FRONT_SCORE] = lowered
    gap = 1
    while 3 * gap + 1 < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            node = order[i]
            j = i
            while j >= begin + gap and is_ahead(nodes, reals, node, order[j - gap]):
                order[j] = order[j - gap]
                j -= gap
            order[j] = node
        gap //= 3


def is_ahead(nodes, reals, a, b):
    """Return whether node a comes before b in their round."""
    if reals[a, FRONT_SCORE] != reals[b, FRONT_SCORE]:
        return reals[a, FRONT_SCORE] > reals[b, FRONT_SCORE]
    return nodes[a, ARRIVED] < nodes[b, ARRIVED]


def best_goal(lat):
    """Return the best goal after max-plus, the first of equals; -1 if there is none."""
    nodes, reals, order = lat.nodes, lat.reals, lat.order
    best = -1
    for i in range(lat.meta[N_NODES]):
        node = order[i]
        top = reals[best, FRONT_SCORE] if best >= 0 else -math.inf
        if nodes[node, IS_GOAL] and reals[node, FRONT_SCORE] > top:
            best = node
    return best


def add_path(lat, node, mass):
    """Add to the masses of the edges on the best path to a node, after max-plus."""
    edges, backs, masses, lists = lat.edges, lat.backs, lat.masses, lat.meta[LISTS]
    back = backs[node, lat.nodes[node, SIDE] if lat.meta[ALGEBRA] == MAX_BOTH else 0]
    while back >= 0:
        e = back // lists
        masses[e] += mass
        back = backs[edges[e, SOURCE], back % lists]


# --------------------------------------------------------------------------- log-sum-exp


def forward_logsum(lat, begin, end):
    """Log-sum-exp: add the sum of exp(score) over all paths to a node to those of its successors.

    LOGSUM is at first a shift, the log of the first summand, and TOTAL is the sum relative to it;
    when the round is opened, LOGSUM becomes the log of the sum. A path e^HIGH times as heavy as the
    first would exceed the range of floats; ``raise_shift`` prevents it.
    """
    nodes, edges, scores, reals = lat.nodes, lat.edges, lat.scores, lat.reals
    terms, order, only_good = lat.terms, lat.order, lat.meta[ALGEBRA] == SUM_GOOD
    for i in range(begin, end):
        node = order[i]
        if reals[node, TOTAL] == 0.0:
            continue
        log_sum = reals[node, LOGSUM] + math.log(reals[node, TOTAL])
        reals[node, LOGSUM] = log_sum
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            if only_good and edges[e, EDGE_GOOD] == 0:
                continue
            target = edges[e, TARGET]
            value = log_sum + scores[e]
            if reals[target, TOTAL] == 0.0:
                reals[target, LOGSUM] = value
            elif value > reals[target, LOGSUM] + HIGH:
                raise_shift(lat, target, value)
            terms[e] = math.exp(value - reals[target, LOGSUM])
            reals[target, TOTAL] += terms[e]


def raise_shift(lat, target, shift):
    """Raise the shift of a node, and rescale the terms of the edges that lead to it so far.

    These may have any number, since max-plus may have put the nodes in another order.
    """
    edges, terms, reals = lat.edges, lat.terms, lat.reals
    factor = math.exp(reals[target, LOGSUM] - shift)
    for e in range(lat.meta[N_EDGES]):
        if edges[e, TARGET] == target:
            terms[e] *= factor
    reals[target, TOTAL] *= factor
    reals[target, LOGSUM] = shift


def log_total(lat):
    """Return log Z after log-sum-exp: the sum over all goals."""
    nodes, reals = lat.nodes, lat.reals
    top, total = -math.inf, 0.0
    for node in range(lat.meta[N_NODES]):
        if nodes[node, IS_GOAL]:
            top = max(top, reals[node, LOGSUM])
    if top == -math.inf:
        return top
    for node in range(lat.meta[N_NODES]):
        if nodes[node, IS_GOAL]:
            total += math.exp(reals[node, LOGSUM] - top)
    return top + math.log(total)


def backward(lat, log_z, sign):
    """The backward pass after log-sum-exp: write sign * p(edge) to the masses.

    An edge has the part of its target's posterior that it had in the target's sum. The pass over
    good paths comes second and adds to what the first one wrote.
    """
    nodes, edges, reals, order = lat.nodes, lat.edges, lat.reals, lat.order
    terms, masses, only_good = lat.terms, lat.masses, lat.meta[ALGEBRA] == SUM_GOOD
    for i in range(lat.meta[N_NODES] - 1, -1, -1):
        node = order[i]
        posterior = math.exp(reals[node, LOGSUM] - log_z) if nodes[node, IS_GOAL] else 0.0
        reached = reals[node, TOTAL] > 0.0
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            p = 0.0
            if reached and (not only_good or edges[e, EDGE_GOOD]):
                p = reals[edges[e, TARGET], POSTERIOR] * terms[e]
                posterior += p
            masses[e] = masses[e] + sign * p if only_good else sign * p
        reals[node, POSTERIOR] = posterior / reals[node, TOTAL] if reached else 0.0
