"""Expectations over the lattice, and gradient ascent on the likelihood."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.placeholders import loss
from laso.engine.lattice.algebra import add_path, backward, best_goal, forward, log_total
from laso.engine.lattice.layout import (
    ALL_ROWS,
    BAD_SIDE,
    EDGE_GOOD,
    EDGE_GROUP,
    EDGE_LABEL,
    EXAMPLES,
    FIXED_ROWS,
    GOOD_ROWS,
    GOOD_SIDE,
    MAX_GOOD,
    N_EDGES,
    ON_GOOD_PATH,
    SOURCE,
    SUM_ALL,
    SUM_GOOD,
    USED_SLOTS,
    VALUE_ONLY,
)
from laso.engine.layout import DONE, GENERATION, SCALE, SCALES, UNREACHABLE

SMALL = 1e-7  # the features of a step of less probability are not worth a look

# --------------------------------------------------------------------------- masses


def expect(lat, mode):
    """Return the log of the sum over good paths, and over all; the masses depend on the mode.

    The difference of the two is log p(y | x). Its gradient is the expectation of phi over the good
    paths less that over all paths.
    """
    forward(lat, SUM_ALL, 1, 0.0)
    log_all = log_total(lat)
    if log_all == -math.inf:
        return log_all, log_all
    if mode == GOOD_ROWS:
        clear_masses(lat)
    elif mode != VALUE_ONLY:
        backward(lat, log_all, -1.0)
    forward(lat, SUM_GOOD, 1, 0.0)
    log_good = log_total(lat)
    if mode != VALUE_ONLY and mode != ALL_ROWS and log_good > -math.inf:
        backward(lat, log_good, 1.0)
    return log_good, log_all


def expect_at(lat, temperature):
    """Masses: the expectations over good paths less those over all, by exp(score / temperature).

    The temperature is 1 where weights may have any norm. ALMA's have at most norm 1, so that all
    paths would weigh about the same; there it is the present margin, the unit in which its scores
    differ. At 0 only the best path would be left.
    """
    scores = lat.scores
    for e in range(lat.meta[N_EDGES]):
        scores[e] /= temperature
    log_good, _ = expect(lat, FIXED_ROWS)
    drop_small(lat)
    return DONE if log_good > -math.inf else UNREACHABLE


def compare_paths(lat, bad):
    """Masses: 1 for the steps of the best good path, -1 for those of a bad one, 0 for both."""
    clear_masses(lat)
    add_path(lat, bad, -1.0)
    forward(lat, MAX_GOOD, 1, 0.0)
    good = best_goal(lat)
    if good < 0:
        return UNREACHABLE
    add_path(lat, good, 1.0)
    return DONE


def clear_masses(lat):
    """Set all masses to 0."""
    for e in range(lat.meta[N_EDGES]):
        lat.masses[e] = 0.0


def drop_small(lat):
    """Set negligible masses to 0; after some training these are most (see SMALL)."""
    masses = lat.masses
    for e in range(lat.meta[N_EDGES]):
        if abs(masses[e]) < SMALL:
            masses[e] = 0.0


# --------------------------------------------------------------------------- costs


def bad_path_loss(x, y, lat, node):
    """Return the loss of the best bad path to a node, after max-plus on both sides."""
    edges, backs = lat.edges, lat.backs
    total, back = 0.0, backs[node, BAD_SIDE]
    while back >= 0:
        e, was_good = back // 2, back % 2 == GOOD_SIDE
        good = was_good and edges[e, EDGE_GOOD] > 0
        state = lat.states[edges[e, SOURCE]]
        total += loss(x, y, state, edges[e, EDGE_GROUP], edges[e, EDGE_LABEL], was_good, good)
        back = backs[edges[e, SOURCE], back % 2]
    return total


def add_costs(x, y, lat):
    """Softmax-margin: add log cost to edges that leave the gold path."""
    edges, states = lat.edges, lat.states
    for e in range(lat.meta[N_EDGES]):
        node = edges[e, SOURCE]
        if lat.nodes[node, ON_GOOD_PATH] and edges[e, EDGE_GOOD] == 0:
            group, label = edges[e, EDGE_GROUP], edges[e, EDGE_LABEL]
            lat.scores[e] += math.log(loss(x, y, states[node], group, label, True, False))


# --------------------------------------------------------------------------- ascent


def ascend(table, ascent):
    """One step of gradient ascent; only the rows of the gradient are touched.

    The prior shrinks every weight at every step. A row makes up for the steps it has missed when it
    is touched, by one implicit step: w / (1 + rate * prior * missed steps). GENERATION counts the
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
    for slot in range(ints[USED_SLOTS]):
        row = rows[slot]
        missed = (clock[0] - clocks[row]) * ascent.prior
        clocks[row] = clock[0]
        mark[row] = -1
        for label in range(n_labels):
            slope = sums[slot, label] / examples
            sums[slot, label] = 0.0
            norm = 1.0
            if ascent.adaptive:
                squares[row, label] += slope * slope
                norm = math.sqrt(ascent.first + squares[row, label])
            before = v[row, label]
            v[row, label] = before / (1.0 + missed / norm) + rate * slope / norm / scale
            u[row, label] += scales * (v[row, label] - before)
    ints[USED_SLOTS] = ints[EXAMPLES] = 0
    table.ints[GENERATION] += 1
