"""Exact search and likelihood on the lattice of an input: vary the algebra, not the loop.

The lattice holds every path: its nodes are pairs (key, signature), its edges the allowed steps with
their scores. ``sweep`` is the one recursion over it. What it puts into a node is up to the algebra:
the best paths (Viterbi for one, lists for more), the best good and the best bad path, or the sum
over all paths.

Like those of kernels.py, the functions here are given a problem's functions by ``compile.py``, and
run as plain Python with the JIT off.
"""

# mypy: ignore-errors

from __future__ import annotations

import math
from typing import NamedTuple

from laso.engine.kernels import (
    find,
    input_of,
    row_of,
    score_labels,
    shortened,
    update,
)
from laso.engine.layout import (
    ALMA,
    BITS,
    DONE,
    ENTRIES,
    FAILED,
    GENERATION,
    GOAL,
    GOOD,
    GROUP,
    KEY,
    KNOWN_Y,
    KNOWS,
    LABEL,
    MARGIN,
    MORE_ENTRIES,
    MORE_NODES,
    MORE_ROWS,
    NODES,
    PARENT,
    ROWS,
    SCALE,
    SCALES,
    TICKS,
    UNKNOWN_Y,
    UNREACHABLE,
    VERSION,
    WRONG,
    Array,
)

# The problem: replaced by the functions of the problem compiled (see laso.engine.problem).
WEIGHTED = False
initial = groups = cell = part = shared = features = allowed = apply = None
is_goal = is_good = loss = key = signature = None


class Lattice(NamedTuple):
    """All paths of one input. The columns of nodes and edges have the names they have in a Run."""

    states: Array  # int32 (nodes, state size)
    nodes: Array  # int64 (nodes, 12): SIGNATURE ... AFTER
    reals: Array  # float64 (nodes, 4): FRONT ... SHARE
    values: Array  # float64 (nodes, lists): the best scores, or those of the BAD and the FINE path
    backs: Array  # int64 like values: lists * edge + place in the list of the edge's start; -1
    edges: Array  # int32 (edges, 5): PARENT, GROUP, LABEL, GOOD, TARGET; end to end by parent
    scores: Array  # float64 (edges,)
    terms: Array  # float64 (edges,): what an edge adds to the sum at its end
    masses: Array  # float64 (edges,): how much the features of the edge count in an update
    slots: Array  # int64, a power of two: node + 1 by key and signature, open addressing
    order: Array  # int64 (nodes,): nodes by rising key, best first once they are ranked
    rounds: Array  # int64 (keys, 4): FIRST_IN and LAST_IN of its nodes, BEGIN : END in order
    meta: Array  # int64: NODES, EDGES ... SUPPORT


SIGNATURE, FIRST_OUT, END_OUT, _, SLOT, _, _, SIDE = range(8)
ARRIVED, ARRIVED_FINE, MADE_BY, AFTER = range(8, 12)
TARGET = 4
FRONT, LOGSUM, TOTAL, SHARE = range(4)
FIRST_IN, LAST_IN, BEGIN, END = range(4)
_, EDGES, OPENED, ALGEBRA, LISTS, ARRIVALS, BLOCK, BLOCK_END, BLOCK_GOOD, SUPPORT, META = range(11)
BAD, FINE = range(2)
KNOWN, SEEN, ALL = range(3)  # which features get a row: none anew, those on good paths, all


class Gradient(NamedTuple):
    """A sum of c * phi over edges, by rows of the weight table."""

    rows: Array  # int64 (slots,)
    values: Array  # float64 (slots, labels)
    cells: Array  # float64 (cells, labels): what is due to the shared features of a cell
    counts: Array  # int64 (cells,): 1 if anything is due to the cell, 2 if a good step has it
    ints: Array  # int64: SLOTS, EXAMPLES


SLOTS, EXAMPLES = range(2)


class Paths(NamedTuple):
    """The best paths of many inputs, end to end."""

    steps: Array  # int32 (steps, 2): group, label
    ends: Array  # int64 (paths,): where in steps a path ends
    scores: Array  # float64 (paths,)
    counts: Array  # int64 (inputs,): how many paths there are
    heads: Array  # int64 (lists, 2): scratch
    used: Array  # int64: STEPS_USED, PATHS_USED, INPUTS_USED


class Shares(NamedTuple):
    """The probabilities of the edges of many inputs, end to end."""

    edges: Array  # int32 (edges, 4): key before and after the step, group, label
    shares: Array  # float64 (edges,)
    ends: Array  # int64 (inputs,)
    logs: Array  # float64 (inputs,): log Z
    used: Array  # int64: STEPS_USED (edges here), PATHS_USED (none), INPUTS_USED


STEPS_USED, PATHS_USED, INPUTS_USED = range(3)


class Ascent(NamedTuple):
    """How to climb the likelihood; squares and clocks go with the rows of the weight table."""

    mode: int  # VALUE ... STEP
    support: int  # KNOWN, SEEN or ALL
    adaptive: int  # AdaGrad
    average: int
    batch: int
    rate: float
    prior: float  # 1 / (variance * examples)
    first: float  # what AdaGrad's sums of squares begin with
    gradient: Gradient
    squares: Array  # like the weights: AdaGrad's sums of squares
    clocks: Array  # float64 (rows,): the clock at which a row was last brought up to date
    clock: Array  # float64 (1,): the sum of the rates of all steps
    logs: Array  # float64: log p(y | x) of each example


VALUE, FIXED, GOOD_ROWS, ALL_ROWS, STEP = range(5)
BEST_PATHS, GOOD_PATHS, BOTH_SIDES, SUM, GOOD_SUM = range(5)  # the algebras
HIGH = 600.0  # exp of it is far from overflow
SMALL = 1e-7  # a step of less probability is not worth the look at its features
EXPECTED, EXPECTED_SEEN = 4, 5  # strategies beside those of the layout: LaSO, infinite beam
MORE_EDGES, MORE_SLOTS, BAD_KEY = range(7, 10)  # ways for a call to end beside those of the layout

ENTRY_POINTS = ("best_many", "marginals_many", "learn_exact_many", "likelihood_many")
INLINE = {"home", "enter", "ahead", "slot_for", "makes"}

# --------------------------------------------------------------------------- the lattice


def clear(lat):
    """Forget the lattice built before."""
    nodes, slots, rounds = lat.nodes, lat.slots, lat.rounds
    for node in range(lat.meta[NODES]):
        slots[nodes[node, SLOT]] = 0
    for at in range(rounds.shape[0]):
        rounds[at, FIRST_IN] = rounds[at, BEGIN] = rounds[at, END] = -1
    lat.meta[NODES] = lat.meta[EDGES] = lat.meta[OPENED] = 0


def home(at, joined):
    """Where the search for a node begins; neighbouring signatures stay neighbours."""
    h = int(joined) + 0x9E3779B1 * int(at)
    return h ^ (h >> 17) ^ (h >> 37)


def enter(nodes, rounds, node, at, edge):
    """Begin a node, to which an edge leads, as the last of its round."""
    nodes[node, KEY] = at
    nodes[node, MADE_BY] = edge
    nodes[node, GOOD] = 0
    nodes[node, AFTER] = -1
    if rounds[at, FIRST_IN] < 0:
        rounds[at, FIRST_IN] = node
    else:
        nodes[rounds[at, LAST_IN], AFTER] = node
    rounds[at, LAST_IN] = node


def build(x, y, table, run, options, lat):
    """Explore all paths, round by round in rising key; run.meta[KNOWS] says whether y is known.

    One state stands for each node, the first found. What must grow is said before a node is
    expanded.
    """
    nodes, edges, scores, states = lat.nodes, lat.edges, lat.scores, lat.states
    slots, rounds, order, meta = lat.slots, lat.rounds, lat.order, lat.meta
    sums, chosen, scale = run.sums, run.groups, table.reals[SCALE]
    n_labels, mask = sums.shape[0], slots.shape[0] - 1
    clear(lat)
    run.meta[VERSION] += 1
    n, e, opened, first = 1, 0, 0, 0
    enter(nodes, rounds, 0, 0, -1)
    nodes[0, SLOT] = nodes[0, SIGNATURE] = 0
    nodes[0, GOOD] = run.meta[KNOWS] != UNKNOWN_Y
    for at in range(rounds.shape[0]):
        rounds[at, BEGIN] = opened
        node = rounds[at, FIRST_IN]
        while node >= 0:
            state, by, was_good = states[node], nodes[node, MADE_BY], nodes[node, GOOD] > 0
            if by < 0:
                initial(x, state)
            else:
                apply(x, states[edges[by, PARENT]], edges[by, GROUP], edges[by, LABEL], state)
            order[opened] = node
            opened += 1
            nodes[node, GOAL] = is_goal(x, state)
            n_groups = 0 if nodes[node, GOAL] else groups(x, state, chosen)
            if n + n_groups * n_labels > nodes.shape[0]:
                return MORE_NODES
            if e + n_groups * n_labels > edges.shape[0]:
                return MORE_EDGES
            like = first
            nodes[node, FIRST_OUT] = first = e
            for i in range(n_groups):
                group = chosen[i]
                score_labels(x, state, group, table, run)
                for label in range(n_labels):
                    if not allowed(x, state, group, label):
                        continue
                    to = key(x, state, group, label) if options.keyed else at + 1
                    if to <= at or to >= rounds.shape[0]:
                        return BAD_KEY
                    joined = signature(x, state, group, label)
                    # Often where the like step from the node before led.
                    target = edges[like, TARGET] if like < e else 0
                    like += 1
                    slot = -1
                    while target >= 0 and (
                        nodes[target, SIGNATURE] != joined or nodes[target, KEY] != to
                    ):
                        slot = (slot + 1 if slot >= 0 else home(to, joined)) & mask
                        target = slots[slot] - 1
                    if target < 0:
                        target = n
                        n += 1
                        meta[NODES] = slots[slot] = n
                        nodes[target, SLOT] = slot
                        nodes[target, SIGNATURE] = joined
                        enter(nodes, rounds, target, to, e)
                    good = was_good and is_good(x, y, state, group, label)
                    if good:
                        nodes[target, GOOD] = 1
                    edges[e, PARENT] = node
                    edges[e, GROUP] = group
                    edges[e, LABEL] = label
                    edges[e, GOOD] = good
                    edges[e, TARGET] = target
                    scores[e] = scale * sums[label]
                    e += 1
            nodes[node, END_OUT] = e
            node = nodes[node, AFTER]
        rounds[at, END] = opened
        meta[OPENED] = at + 1
        if opened == n:
            break
    meta[NODES] = n
    meta[EDGES] = e
    return DONE


# --------------------------------------------------------------------------- the recursion


def sweep(lat, algebra, lists, margin):
    """One algebra over the lattice; ``lists`` is the length of the lists of best paths.

    Both are handed on in meta: Numba compiles a function anew for each constant in a call of it.
    """
    lat.meta[ALGEBRA] = algebra
    lat.meta[LISTS] = 2 if algebra == BOTH_SIDES else lists
    recur(lat, margin)


def recur(lat, margin):
    """The one recursion: round by round, from every node along its edges.

    When a round is opened all edges into it are done. Algebras of best paths then rank its nodes as
    a search would expand them, so that of two equal paths the one found first stays.
    """
    reals, values, backs, rounds = lat.reals, lat.values, lat.backs, lat.rounds
    algebra = lat.meta[ALGEBRA]
    for node in range(lat.meta[NODES]):
        reals[node, LOGSUM] = -math.inf
        reals[node, TOTAL] = 0.0
        for j in range(lat.meta[LISTS]):
            values[node, j] = -math.inf
    backs[0, BAD] = backs[0, FINE] = -1
    values[0, FINE if algebra == BOTH_SIDES else 0] = 0.0
    reals[0, LOGSUM], reals[0, TOTAL] = 0.0, 1.0
    lat.meta[ARRIVALS] = 0
    for at in range(lat.meta[OPENED]):
        begin, end = rounds[at, BEGIN], rounds[at, END]
        if algebra >= SUM:
            add_up(lat, begin, end)
        else:
            rank(lat, begin, end, margin)
            if algebra == BOTH_SIDES:
                go_both(lat, begin, end)
            else:
                go_best(lat, begin, end)


def go_best(lat, begin, end):
    """Max-plus with back pointers: offer the best paths to each node to the nodes after it."""
    nodes, edges, scores, meta = lat.nodes, lat.edges, lat.scores, lat.meta
    values, backs, order = lat.values, lat.backs, lat.order
    only_good, lists, arrivals = meta[ALGEBRA] == GOOD_PATHS, meta[LISTS], meta[ARRIVALS]
    last = lists - 1
    for i in range(begin, end):
        node = order[i]
        best = values[node, 0]
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            target, score = edges[e, TARGET], scores[e]
            if not best + score > values[target, last] or (only_good and edges[e, GOOD] == 0):
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


def go_both(lat, begin, end):
    """Max-plus twice: the best path of good steps only, and the best one with a bad step in it."""
    nodes, edges, scores, meta = lat.nodes, lat.edges, lat.scores, lat.meta
    values, backs, order, arrivals = lat.values, lat.backs, lat.order, meta[ARRIVALS]
    for i in range(begin, end):
        node = order[i]
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            target = edges[e, TARGET]
            for j in range(2):
                side = nodes[node, SIDE] ^ j  # the one in front first
                to = FINE if side == FINE and edges[e, GOOD] else BAD
                value = values[node, side] + scores[e]
                if value > values[target, to]:
                    values[target, to] = value
                    backs[target, to] = 2 * e + side
                    nodes[target, ARRIVED_FINE if to == FINE else ARRIVED] = arrivals
                    arrivals += 1
    meta[ARRIVALS] = arrivals


def rank(lat, begin, end, margin):
    """Order the nodes of a round as a search would expand them (Shell's sort).

    FRONT is the score of the best path. Of a good and a bad one it is the better when the good one
    is down-weighted by the margin; SIDE tells which.
    """
    nodes, reals, values, order = lat.nodes, lat.reals, lat.values, lat.order
    for i in range(begin, end):
        node = order[i]
        reals[node, FRONT] = values[node, 0]
        if lat.meta[ALGEBRA] == BOTH_SIDES:
            lowered, bad = values[node, FINE] - margin, values[node, BAD]
            nodes[node, SIDE] = BAD
            if lowered > bad or (
                lowered == bad and nodes[node, ARRIVED_FINE] < nodes[node, ARRIVED]
            ):
                nodes[node, SIDE] = FINE
                nodes[node, ARRIVED] = nodes[node, ARRIVED_FINE]
                reals[node, FRONT] = lowered
    gap = 1
    while 3 * gap + 1 < end - begin:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(begin + gap, end):
            node = order[i]
            j = i
            while j >= begin + gap and ahead(nodes, reals, node, order[j - gap]):
                order[j] = order[j - gap]
                j -= gap
            order[j] = node
        gap //= 3


def ahead(nodes, reals, a, b):
    """Does node a come before b in their round?"""
    if reals[a, FRONT] != reals[b, FRONT]:
        return reals[a, FRONT] > reals[b, FRONT]
    return nodes[a, ARRIVED] < nodes[b, ARRIVED]


def add_up(lat, begin, end):
    """Log-sum-exp: add the sums of exp(score) over all paths to each node to those of the next.

    LOGSUM is first a shift, the log of what came first, and TOTAL the sum relative to it; when the
    round is opened it becomes the log of the sum. Numbers beyond the range of floats would need a
    path e^HIGH times as heavy as the first found; then the shift is raised, see ``raised``.
    """
    nodes, edges, scores, reals = lat.nodes, lat.edges, lat.scores, lat.reals
    terms, order, only_good = lat.terms, lat.order, lat.meta[ALGEBRA] == GOOD_SUM
    for i in range(begin, end):
        node = order[i]
        if reals[node, TOTAL] == 0.0:
            continue
        log_sum = reals[node, LOGSUM] + math.log(reals[node, TOTAL])
        reals[node, LOGSUM] = log_sum
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            if only_good and edges[e, GOOD] == 0:
                continue
            target = edges[e, TARGET]
            value = log_sum + scores[e]
            if reals[target, TOTAL] == 0.0:
                reals[target, LOGSUM] = value
            elif value > reals[target, LOGSUM] + HIGH:
                raised(lat, target, value)
            terms[e] = math.exp(value - reals[target, LOGSUM])
            reals[target, TOTAL] += terms[e]


def raised(lat, target, shift):
    """Set the shift of a node higher, and the terms of the edges to it that have come before.

    They may have any number: a sweep for best paths has put the nodes in another order.
    """
    edges, terms, reals = lat.edges, lat.terms, lat.reals
    factor = math.exp(reals[target, LOGSUM] - shift)
    for e in range(lat.meta[EDGES]):
        if edges[e, TARGET] == target:
            terms[e] *= factor
    reals[target, TOTAL] *= factor
    reals[target, LOGSUM] = shift


def log_total(lat):
    """log Z after a sweep that sums: the goals together."""
    nodes, reals = lat.nodes, lat.reals
    top, total = -math.inf, 0.0
    for node in range(lat.meta[NODES]):
        if nodes[node, GOAL]:
            top = max(top, reals[node, LOGSUM])
    if top == -math.inf:
        return top
    for node in range(lat.meta[NODES]):
        if nodes[node, GOAL]:
            total += math.exp(reals[node, LOGSUM] - top)
    return top + math.log(total)


def share_out(lat, log_z, sign):
    """The way back after a sweep that sums: sign * p(edge) into masses, from the goals to the root.

    Of a node's share of all paths an edge into it has the part that it had in the node's sum. The
    sweep over good paths comes second and adds to what the first one wrote.
    """
    nodes, edges, reals, order = lat.nodes, lat.edges, lat.reals, lat.order
    terms, masses, only_good = lat.terms, lat.masses, lat.meta[ALGEBRA] == GOOD_SUM
    for i in range(lat.meta[NODES] - 1, -1, -1):
        node = order[i]
        share = math.exp(reals[node, LOGSUM] - log_z) if nodes[node, GOAL] else 0.0
        reached = reals[node, TOTAL] > 0.0
        for e in range(nodes[node, FIRST_OUT], nodes[node, END_OUT]):
            p = 0.0
            if reached and (not only_good or edges[e, GOOD]):
                p = reals[edges[e, TARGET], SHARE] * terms[e]
                share += p
            masses[e] = masses[e] + sign * p if only_good else sign * p
        reals[node, SHARE] = share / reals[node, TOTAL] if reached else 0.0


def first_goal(lat):
    """The best goal after a sweep of best paths, the first of equals; -1 if there is none."""
    nodes, reals, order = lat.nodes, lat.reals, lat.order
    best = -1
    for i in range(lat.meta[NODES]):
        node = order[i]
        top = reals[best, FRONT] if best >= 0 else -math.inf
        if nodes[node, GOAL] and reals[node, FRONT] > top:
            best = node
    return best


def add_path(lat, node, mass):
    """Add to the masses of the edges on the best path to a node, after a sweep of best paths."""
    edges, backs, masses, lists = lat.edges, lat.backs, lat.masses, lat.meta[LISTS]
    back = backs[node, lat.nodes[node, SIDE] if lat.meta[ALGEBRA] == BOTH_SIDES else 0]
    while back >= 0:
        e = back // lists
        masses[e] += mass
        back = backs[edges[e, PARENT], back % lists]


# --------------------------------------------------------------------------- from edges to weights


def slot_for(table, gradient, feature, make):
    """Where in the gradient the row of a feature is; -1 if it has none and is not to get one."""
    mark, rows, ints = table.mark, gradient.rows, gradient.ints
    row = row_of(table.slots, table.ints, feature) if make else find(table.slots, feature)
    if row < 0:
        return -1
    if mark[row] < 0:
        mark[row] = ints[SLOTS]
        rows[ints[SLOTS]] = row
        ints[SLOTS] += 1
    return mark[row]


def next_block(lat):
    """Go to the next edges that share their features and of which some count; is there one?"""
    edges, masses, meta = lat.edges, lat.masses, lat.meta
    end, n = meta[BLOCK_END], meta[EDGES]
    counts = good = False
    while end < n and not counts:
        meta[BLOCK] = first = end
        good = False
        while (
            end < n
            and edges[end, PARENT] == edges[first, PARENT]
            and edges[end, GROUP] == edges[first, GROUP]
        ):
            counts |= masses[end] != 0.0
            good |= edges[end, GOOD] != 0
            end += 1
    meta[BLOCK_END], meta[BLOCK_GOOD] = end, good
    return counts


def by_cells(x, lat, gradient):
    """Sum the masses of edges by the cells of their steps, and hand them down to the parts.

    How many sets of features count, how many of them may get new rows, and the highest cell.
    """
    edges, masses, states, support = lat.edges, lat.masses, lat.states, lat.meta[SUPPORT]
    cells, counts = gradient.cells, gradient.counts
    n, n_new, high = 0, 0, -1
    lat.meta[BLOCK_END] = 0
    while next_block(lat):
        begin, end = lat.meta[BLOCK], lat.meta[BLOCK_END]
        at = cell(x, states[edges[begin, PARENT]], edges[begin, GROUP])
        n += 1
        n_new += makes(support, lat.meta[BLOCK_GOOD])
        if at >= 0:
            counts[at] = max(counts[at], 1 + lat.meta[BLOCK_GOOD])
            high = max(high, at)
            for e in range(begin, end):
                cells[at, edges[e, LABEL]] += masses[e]
    for at in range(high, -1, -1):
        if counts[at]:
            n += 1
            n_new += makes(support, counts[at] - 1)
            i, below = 1, part(x, at, 0)
            while below >= 0:
                counts[below] = max(counts[below], counts[at])
                for label in range(cells.shape[1]):
                    cells[below, label] += cells[at, label]
                below = part(x, at, i)
                i += 1
    return n, n_new, high


def makes(support, good):
    """Do features of steps, of which one is good or not, get rows?"""
    return support == ALL or (support == SEEN and good != 0)


def see(x, table, lat, run, counts, high):
    """Make rows for the features of good steps, which have room."""
    keys, bits, edges = run.out.keys, table.ints[BITS], lat.edges
    for at in range(high, -1, -1):
        if counts[at] > 1:
            for f in range(shortened(keys, shared(x, at, run.out), bits)):
                row_of(table.slots, table.ints, keys[f])
    lat.meta[BLOCK_END] = 0
    while next_block(lat):
        if lat.meta[BLOCK_GOOD]:
            first = lat.meta[BLOCK]
            state, group = lat.states[edges[first, PARENT]], edges[first, GROUP]
            for f in range(shortened(keys, features(x, state, group, run.out), bits)):
                row_of(table.slots, table.ints, keys[f])


def gather(x, table, lat, run, gradient):
    """Gradient += sum of mass * phi over the edges; or what must grow, before anything is changed.

    Steps that differ in the label only share their features, and so do steps of equal cells: their
    masses are summed first, so that the features of a cell are looked up once.
    """
    edges, masses, states = lat.edges, lat.masses, lat.states
    keys, weights, sums = run.out.keys, run.out.values, gradient.values
    cells, counts, bits = gradient.cells, gradient.counts, table.ints[BITS]
    support = lat.meta[SUPPORT]
    n_sets, n_new, high = by_cells(x, lat, gradient)
    status = DONE
    if support != KNOWN:
        rows = table.ints[ROWS] + n_new * keys.shape[0]
        if gradient.ints[SLOTS] + n_sets * keys.shape[0] > gradient.rows.shape[0]:
            status = MORE_SLOTS
        elif rows > table.v.shape[0] or 2 * rows > table.slots.shape[0]:
            status = MORE_ROWS
    make = support == ALL
    if status == DONE and support == SEEN:
        see(x, table, lat, run, counts, high)
    for at in range(high, -1, -1):
        if counts[at]:
            if status == DONE:
                for f in range(shortened(keys, shared(x, at, run.out), bits)):
                    slot = slot_for(table, gradient, keys[f], make)
                    if slot >= 0:
                        value = weights[f] if WEIGHTED else 1.0
                        for label in range(cells.shape[1]):
                            sums[slot, label] += cells[at, label] * value
            counts[at] = 0
            for label in range(cells.shape[1]):
                cells[at, label] = 0.0
    lat.meta[BLOCK_END] = 0
    while status == DONE and next_block(lat):
        begin, end = lat.meta[BLOCK], lat.meta[BLOCK_END]
        state, group = states[edges[begin, PARENT]], edges[begin, GROUP]
        for f in range(shortened(keys, features(x, state, group, run.out), bits)):
            slot = slot_for(table, gradient, keys[f], make)
            if slot >= 0:
                value = weights[f] if WEIGHTED else 1.0
                for e in range(begin, end):
                    sums[slot, edges[e, LABEL]] += masses[e] * value
    return status


def combine(x, table, run, options, lat, gradient):
    """Delta from a gradient that is gathered; what must grow, and the gradient is empty again.

    It takes the place of the function of this name in kernels.py, so that ``update`` there is the
    update here too; what that one hands on unread are a lattice and a gradient.
    """
    sums, rows, delta, values, mark = (
        gradient.values,
        gradient.rows,
        run.delta,
        run.values,
        table.mark,
    )
    n = 0
    for slot in range(gradient.ints[SLOTS]):
        for label in range(sums.shape[1]):
            n += sums[slot, label] != 0.0
    fits = n <= values.shape[0]
    n = 0
    for slot in range(gradient.ints[SLOTS]):
        mark[rows[slot]] = -1
        for label in range(sums.shape[1]):
            if sums[slot, label] != 0.0 and fits:
                delta[n, 0] = rows[slot]
                delta[n, 1] = label
                values[n] = sums[slot, label]
                n += 1
            sums[slot, label] = 0.0
    gradient.ints[SLOTS] = 0
    run.meta[ENTRIES] = n
    return DONE if fits else MORE_ENTRIES


def severity(run, options, lat, gradient):
    """How long the step is, if by loss: like ``combine``, in place of that in kernels.py."""
    return run.weights[WRONG, 0] if options.by_loss else 1.0


def loss_of(x, y, lat, node):
    """The loss of the best bad path to a node, after a sweep for both sides."""
    edges, backs = lat.edges, lat.backs
    total, back = 0.0, backs[node, BAD]
    while back >= 0:
        e, was_good = back // 2, back % 2 == FINE
        good = was_good and edges[e, GOOD] > 0
        total += loss(
            x, y, lat.states[edges[e, PARENT]], edges[e, GROUP], edges[e, LABEL], was_good, good
        )
        back = backs[edges[e, PARENT], back % 2]
    return total


def load(x, y, lat):
    """Make edges that leave the good paths as many times heavier as they cost."""
    edges, states = lat.edges, lat.states
    for e in range(lat.meta[EDGES]):
        node = edges[e, PARENT]
        if lat.nodes[node, GOOD] and edges[e, GOOD] == 0:
            cost = loss(x, y, states[node], edges[e, GROUP], edges[e, LABEL], True, False)
            lat.scores[e] += math.log(cost)


# --------------------------------------------------------------------------- the likelihood


def expect(lat, mode):
    """log of the sum over good paths, and over all; masses are the expectations that mode asks for.

    Their difference is log p(y | x); its gradient is the expectation of phi over the good paths
    less that over all.
    """
    sweep(lat, SUM, 1, 0.0)
    log_all = log_total(lat)
    if log_all == -math.inf:
        return log_all, log_all
    if mode == GOOD_ROWS:
        for e in range(lat.meta[EDGES]):
            lat.masses[e] = 0.0
    elif mode != VALUE:
        share_out(lat, log_all, -1.0)
    sweep(lat, GOOD_SUM, 1, 0.0)
    log_good = log_total(lat)
    if mode != VALUE and mode != ALL_ROWS and log_good > -math.inf:
        share_out(lat, log_good, 1.0)
    return log_good, log_all


def ascend(table, ascent):
    """One step up the likelihood: only the rows of the gradient are touched.

    The prior pulls every weight at every step. A row makes up for the steps it has missed when it
    is touched, by one implicit step: w / (1 + rate * prior * steps missed). GENERATION counts the
    steps, and plain gradient steps shrink with it (Bottou's schedule).
    """
    v, u, mark, reals = table.v, table.u, table.mark, table.reals
    rows, sums, ints = ascent.gradient.rows, ascent.gradient.values, ascent.gradient.ints
    squares, clocks, clock = ascent.squares, ascent.clocks, ascent.clock
    scale, scales, n_labels = reals[SCALE], reals[SCALES], v.shape[1]
    examples = ints[EXAMPLES]
    rate = ascent.rate
    if not ascent.adaptive:
        rate /= 1.0 + rate * ascent.prior * (table.ints[GENERATION] - 1)
    clock[0] += rate
    for slot in range(ints[SLOTS]):
        row = rows[slot]
        missed = (clock[0] - clocks[row]) * ascent.prior
        clocks[row] = clock[0]
        mark[row] = -1
        for label in range(n_labels):
            slope = sums[slot, label] / examples
            sums[slot, label] = 0.0
            size = 1.0
            if ascent.adaptive:
                squares[row, label] += slope * slope
                size = math.sqrt(ascent.first + squares[row, label])
            before = v[row, label]
            v[row, label] = before / (1.0 + missed / size) + rate * slope / size / scale
            u[row, label] += scales * (v[row, label] - before)
    ints[SLOTS] = ints[EXAMPLES] = 0
    table.ints[GENERATION] += 1


# --------------------------------------------------------------------------- many inputs


def best_many(corpus, order, table, run, options, lat, paths):
    """The best paths of the inputs named, until the end or until something is needed."""
    run.meta[KNOWS] = UNKNOWN_Y
    for n in range(order.shape[0]):
        x = input_of(corpus, order[n])
        status = build(x, corpus.outputs[:0], table, run, options, lat)
        if status == DONE:
            sweep(lat, BEST_PATHS, paths.heads.shape[0], 0.0)
            status = write_paths(lat, paths)
        if status != DONE:
            return n, status
    return order.shape[0], DONE


def write_paths(lat, paths):
    """Append the best paths of a lattice; what must grow, before anything is appended."""
    nodes, edges, values, backs, order = lat.nodes, lat.edges, lat.values, lat.backs, lat.order
    heads, used, scores, steps = paths.heads, paths.used, paths.scores, paths.steps
    lists, first, n = heads.shape[0], used[PATHS_USED], 0
    for i in range(lat.meta[NODES]):
        node = order[i]
        if nodes[node, GOAL] == 0:
            continue
        for j in range(lists):
            place = n
            if values[node, j] == -math.inf:
                break
            while place > 0 and values[node, j] > scores[first + place - 1]:
                place -= 1
            if place == lists:
                break
            n = min(n + 1, lists)
            for k in range(n - 1, place, -1):
                heads[k, 0], heads[k, 1] = heads[k - 1, 0], heads[k - 1, 1]
                scores[first + k] = scores[first + k - 1]
            heads[place, 0], heads[place, 1] = node, j
            scores[first + place] = values[node, j]
    if n == 0:
        return FAILED
    end = used[STEPS_USED]
    for k in range(n):
        back = backs[heads[k, 0], heads[k, 1]]
        while back >= 0:
            end += 1
            back = backs[edges[back // lists, PARENT], back % lists]
        if end > steps.shape[0]:
            return MORE_ENTRIES
        paths.ends[first + k] = end
    for k in range(n):
        at = paths.ends[first + k]
        back = backs[heads[k, 0], heads[k, 1]]
        while back >= 0:
            e = back // lists
            at -= 1
            steps[at, 0] = edges[e, GROUP]
            steps[at, 1] = edges[e, LABEL]
            back = backs[edges[e, PARENT], back % lists]
    paths.counts[used[INPUTS_USED]] = n
    used[STEPS_USED] = end
    used[PATHS_USED] += n
    used[INPUTS_USED] += 1
    return DONE


def marginals_many(corpus, order, table, run, options, lat, shares):
    """The probability of every edge of the inputs named, until the end or something is needed."""
    run.meta[KNOWS] = UNKNOWN_Y
    for n in range(order.shape[0]):
        x = input_of(corpus, order[n])
        status = build(x, corpus.outputs[:0], table, run, options, lat)
        if status != DONE:
            return n, status
        first = shares.used[STEPS_USED]
        if first + lat.meta[EDGES] > shares.shares.shape[0]:
            return n, MORE_ENTRIES
        sweep(lat, SUM, 1, 0.0)
        log_z = log_total(lat)
        if log_z == -math.inf:
            return n, FAILED
        share_out(lat, log_z, 1.0)
        nodes, edges = lat.nodes, lat.edges
        for e in range(lat.meta[EDGES]):
            shares.edges[first + e, 0] = nodes[edges[e, PARENT], KEY]
            shares.edges[first + e, 1] = nodes[edges[e, TARGET], KEY]
            shares.edges[first + e, 2] = edges[e, GROUP]
            shares.edges[first + e, 3] = edges[e, LABEL]
            shares.shares[first + e] = lat.masses[e]
        shares.used[STEPS_USED] = first + lat.meta[EDGES]
        shares.ends[shares.used[INPUTS_USED]] = shares.used[STEPS_USED]
        shares.logs[shares.used[INPUTS_USED]] = log_z
        shares.used[INPUTS_USED] += 1
    return order.shape[0], DONE


def learn_exact_many(corpus, order, table, run, options, lat, gradient):
    """Standard updates (Collins 2002) on exact best paths, or LaSO with an infinite beam.

    An error is a bad path that scores above the best good one less the margin. The update sets the
    best good path against the best bad one; with EXPECTED, it sets the expectation over good paths
    against that over the whole lattice, with EXPECTED_SEEN of features seen on good paths alone.
    Examples in turn until the end or until something is needed: done, wrong, status.
    """
    wrong = 0
    run.meta[KNOWS] = KNOWN_Y
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(corpus, i)
        y = corpus.outputs[corpus.output_starts[i] : corpus.output_starts[i + 1]]
        generation = table.ints[GENERATION]
        status = build(x, y, table, run, options, lat)
        if status != DONE:
            return n, wrong, status
        sweep(lat, BOTH_SIDES, 2, table.reals[MARGIN])
        goal = first_goal(lat)
        if goal < 0:
            return n, wrong, FAILED
        if lat.nodes[goal, SIDE] == BAD:
            run.weights[WRONG, 0] = loss_of(x, y, lat, goal) if options.by_loss else 1.0
            temperature = table.reals[MARGIN] if options.update == ALMA else 1.0
            lat.meta[SUPPORT] = ALL
            if options.strategy >= EXPECTED and temperature > 0.0:
                lat.meta[SUPPORT] = SEEN if options.strategy == EXPECTED_SEEN else ALL
                status = weigh(lat, temperature)
            else:
                status = compare(lat, goal)
            if status == DONE:
                status = gather(x, table, lat, run, gradient)
            if status == DONE:
                status = update(x, table, run, options, lat, gradient)
            if status != DONE:
                return n, wrong, status
        table.reals[SCALES] += table.reals[SCALE]
        table.ints[TICKS] += 1
        wrong += table.ints[GENERATION] != generation
    return order.shape[0], wrong, DONE


def weigh(lat, temperature):
    """Masses: the expectations over good paths less those over all, by exp(score / temperature).

    The temperature is 1 where weights may have any length. Those of ALMA have at most length 1,
    under which all paths would weigh about the same; there it is the margin of the moment, the unit
    in which its scores differ. At 0 nothing is left of the lattice but the best path.
    """
    scores = lat.scores
    for e in range(lat.meta[EDGES]):
        scores[e] /= temperature
    log_good, _ = expect(lat, FIXED)
    forget_small(lat)
    return DONE if log_good > -math.inf else UNREACHABLE


def forget_small(lat):
    """Leave out steps that hardly count, most of them once something is learned: see SMALL."""
    masses = lat.masses
    for e in range(lat.meta[EDGES]):
        if abs(masses[e]) < SMALL:
            masses[e] = 0.0


def compare(lat, bad):
    """Masses: 1 for the steps of the best good path, -1 for those of a bad one, 0 for both."""
    masses = lat.masses
    for e in range(lat.meta[EDGES]):
        masses[e] = 0.0
    add_path(lat, bad, -1.0)
    sweep(lat, GOOD_PATHS, 1, 0.0)
    good = first_goal(lat)
    if good < 0:
        return UNREACHABLE
    add_path(lat, good, 1.0)
    return DONE


def likelihood_many(corpus, order, table, run, options, lat, ascent):
    """log p(y | x) of the examples named, and what ascent.mode says of their gradients.

    Until the end or until something is needed: done, status. A batch ends with the call.
    """
    mode, gradient = ascent.mode, ascent.gradient
    lat.meta[SUPPORT] = ascent.support
    run.meta[KNOWS] = KNOWN_Y
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(corpus, i)
        y = corpus.outputs[corpus.output_starts[i] : corpus.output_starts[i + 1]]
        status = build(x, y, table, run, options, lat)
        if status != DONE:
            return n, status
        if options.by_loss and mode != VALUE:
            load(x, y, lat)
        log_good, log_all = expect(lat, mode)
        if log_good == -math.inf:
            return n, FAILED if log_all == -math.inf else UNREACHABLE
        if mode == STEP:
            forget_small(lat)
        if mode != VALUE:
            status = gather(x, table, lat, run, gradient)
            if status != DONE:
                return n, status
        ascent.logs[n] = log_good - log_all
        if mode == STEP:
            gradient.ints[EXAMPLES] += 1
            if gradient.ints[EXAMPLES] == ascent.batch or n + 1 == order.shape[0]:
                ascend(table, ascent)
                table.reals[SCALES] += ascent.average * table.reals[SCALE]
                table.ints[TICKS] += ascent.average
    return order.shape[0], DONE
