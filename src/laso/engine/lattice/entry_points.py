"""The entry points of exact search: many inputs in one call, until something must grow."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.entry import input_of
from laso.engine.kernels.weight_updates import apply_update
from laso.engine.lattice.algebra import backward, best_goal, forward, log_total
from laso.engine.lattice.build import build
from laso.engine.lattice.gradient import delta_of, gather
from laso.engine.lattice.layout import (
    ALL_FEATURES,
    ALL_ROWS,
    BAD_SIDE,
    COUNTING,
    EDGE_GROUP,
    EDGE_LABEL,
    EXAMPLES,
    GOOD_ROWS,
    GRADIENT_STEP,
    HEAD_INDEX,
    HEAD_NODE,
    INPUTS_USED,
    IS_GOAL,
    KEY_AFTER,
    KEY_BEFORE,
    MAX_ALL,
    MAX_BOTH,
    N_EDGES,
    N_NODES,
    NODE_AFTER,
    NODE_BEFORE,
    ON_ALL_PATHS,
    ON_GOOD_PATHS,
    PART,
    PATHS_USED,
    POSTERIOR_GROUP,
    POSTERIOR_LABEL,
    ROUND,
    SIDE,
    SOURCE,
    STEPS_USED,
    SUM_ALL,
    SUPPORT,
    TARGET,
    VALUE_ONLY,
)
from laso.engine.lattice.likelihood import (
    add_costs,
    ascend,
    bad_path_loss,
    compare_paths,
    drop_small,
    expect,
    expect_at,
)
from laso.engine.layout import (
    DONE,
    FAILED,
    FAULT,
    GENERATION,
    MARGIN,
    MORE_ENTRIES,
    NO_GOLD,
    ONLY_GOOD,
    ORACLE,
    SCALE,
    SCALES,
    STEP_GROUP,
    STEP_LABEL,
    TICKS,
    UNREACHABLE,
    WITH_GOLD,
)
from laso.engine.option_kinds import ALMA, EXPECTED, EXPECTED_GOLD

# --------------------------------------------------------------------------- decoding


def best_many(dataset, order, table, run, options, lat, paths):
    """Find the best paths of the given inputs; return how many are done, and the status."""
    run.meta[ORACLE], run.meta[FAULT] = NO_GOLD, DONE
    for n in range(order.shape[0]):
        x = input_of(dataset, order[n])
        status = build(x, dataset.outputs[:0], table, run, options, lat)
        if status == DONE:
            forward(lat, MAX_ALL, paths.heads.shape[0], 0.0)
            status = write_paths(lat, paths)
        if status != DONE:
            return n, status
    return order.shape[0], DONE


def write_paths(lat, paths):
    """Append the best paths of a lattice; or what must grow, before anything is appended."""
    edges, backs, heads, used = lat.edges, lat.backs, paths.heads, paths.used
    lists, first, n = heads.shape[0], used[PATHS_USED], write_heads(lat, paths)
    if n == 0:
        return FAILED
    end = used[STEPS_USED]
    for k in range(n):
        back = backs[heads[k, HEAD_NODE], heads[k, HEAD_INDEX]]
        while back >= 0:
            end += 1
            back = backs[edges[back // lists, SOURCE], back % lists]
        if end > paths.steps.shape[0]:
            return MORE_ENTRIES
        paths.ends[first + k] = end
    for k in range(n):
        at = paths.ends[first + k]
        back = backs[heads[k, HEAD_NODE], heads[k, HEAD_INDEX]]
        while back >= 0:
            e = back // lists
            at -= 1
            paths.steps[at, STEP_GROUP] = edges[e, EDGE_GROUP]
            paths.steps[at, STEP_LABEL] = edges[e, EDGE_LABEL]
            back = backs[edges[e, SOURCE], back % lists]
    paths.counts[used[INPUTS_USED]] = n
    used[STEPS_USED] = end
    used[PATHS_USED] += n
    used[INPUTS_USED] += 1
    return DONE


def write_heads(lat, paths):
    """Write the ends of the best paths, best first, and their scores; return their number."""
    values, heads, scores = lat.values, paths.heads, paths.scores
    lists, first, n = heads.shape[0], paths.used[PATHS_USED], 0
    for i in range(lat.meta[N_NODES]):
        node = lat.order[i]
        if lat.nodes[node, IS_GOAL] == 0:
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
                heads[k, HEAD_NODE] = heads[k - 1, HEAD_NODE]
                heads[k, HEAD_INDEX] = heads[k - 1, HEAD_INDEX]
                scores[first + k] = scores[first + k - 1]
            heads[place, HEAD_NODE], heads[place, HEAD_INDEX] = node, j
            scores[first + place] = values[node, j]
    return n


def marginals_many(dataset, order, table, run, options, lat, posteriors):
    """Compute the probability of every edge of the given inputs; how many are done, the status."""
    run.meta[ORACLE], run.meta[FAULT] = NO_GOLD, DONE
    used, written = posteriors.used, posteriors.edges
    for n in range(order.shape[0]):
        x = input_of(dataset, order[n])
        status = build(x, dataset.outputs[:0], table, run, options, lat)
        if status != DONE:
            return n, status
        first = used[STEPS_USED]
        if first + lat.meta[N_EDGES] > posteriors.probabilities.shape[0]:
            return n, MORE_ENTRIES
        forward(lat, SUM_ALL, 1, 0.0)
        log_z = log_total(lat)
        if log_z == -math.inf:
            return n, FAILED
        backward(lat, log_z, 1.0)
        nodes, edges = lat.nodes, lat.edges
        for e in range(lat.meta[N_EDGES]):
            written[first + e, KEY_BEFORE] = nodes[edges[e, SOURCE], ROUND]
            written[first + e, KEY_AFTER] = nodes[edges[e, TARGET], ROUND]
            written[first + e, POSTERIOR_GROUP] = edges[e, EDGE_GROUP]
            written[first + e, POSTERIOR_LABEL] = edges[e, EDGE_LABEL]
            written[first + e, NODE_BEFORE] = edges[e, SOURCE]
            written[first + e, NODE_AFTER] = edges[e, TARGET]
            posteriors.probabilities[first + e] = lat.masses[e]
        used[STEPS_USED] = first + lat.meta[N_EDGES]
        posteriors.ends[used[INPUTS_USED]] = used[STEPS_USED]
        posteriors.logs[used[INPUTS_USED]] = log_z
        used[INPUTS_USED] += 1
    return order.shape[0], DONE


# --------------------------------------------------------------------------- learning


def learn_exact_many(dataset, order, table, run, options, lat, gradient):
    """Standard updates (Collins 2002) on exact best paths, or LaSO with an infinite beam.

    An error is a bad path that scores above the best good one less the margin. The update compares
    the best good path with the best bad one. With EXPECTED it compares the expectation over good
    paths with that over the whole lattice, with EXPECTED_GOLD for features of good paths only.
    Returns how many examples are done, the number of errors, and the status.
    """
    wrong = 0
    run.meta[ORACLE], run.meta[FAULT] = WITH_GOLD, DONE
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(dataset, i)
        y = dataset.outputs[dataset.output_starts[i] : dataset.output_starts[i + 1]]
        generation = table.ints[GENERATION]
        status = build(x, y, table, run, options, lat)
        if status != DONE:
            return n, wrong, status
        forward(lat, MAX_BOTH, 2, table.reals[MARGIN])
        goal = best_goal(lat)
        if goal < 0:
            return n, wrong, FAILED
        if lat.nodes[goal, SIDE] == BAD_SIDE:
            status = correct(x, y, table, run, options, lat, gradient)
            if status != DONE:
                return n, wrong, status
        table.reals[SCALES] += table.reals[SCALE]
        table.ints[TICKS] += 1
        wrong += table.ints[GENERATION] != generation
    return order.shape[0], wrong, DONE


def correct(x, y, table, run, options, lat, gradient):
    """Update the weights after an error; the status."""
    goal = best_goal(lat)
    rate = bad_path_loss(x, y, lat, goal) if options.by_loss else 1.0
    temperature = table.reals[MARGIN] if options.update == ALMA else 1.0
    lat.meta[SUPPORT], lat.meta[PART], lat.meta[COUNTING] = ON_ALL_PATHS, ALL_FEATURES, 0
    if options.strategy >= EXPECTED and temperature > 0.0:
        if options.strategy == EXPECTED_GOLD:
            lat.meta[SUPPORT] = ON_GOOD_PATHS
        status = expect_at(lat, temperature)
    else:
        status = compare_paths(lat, goal)
    if status == DONE:
        status = gather(x, table, lat, run, gradient)
    if status == DONE:
        status = delta_of(table, run, gradient)
    if status == DONE:
        apply_update(table, run, options, rate, 1)
    return status


def likelihood_many(dataset, order, table, run, options, lat, ascent):
    """Compute log p(y | x) of the given examples, and of their gradients what ascent.mode says.

    Returns how many are done, and the status. A batch ends with the call.
    """
    mode, gradient = ascent.mode, ascent.gradient
    lat.meta[SUPPORT], lat.meta[PART] = ascent.support, ascent.part
    lat.meta[COUNTING] = mode in (GOOD_ROWS, ALL_ROWS)
    run.meta[ORACLE] = ONLY_GOOD if mode == GOOD_ROWS else WITH_GOLD
    run.meta[FAULT] = DONE
    for n in range(order.shape[0]):
        i = order[n]
        x = input_of(dataset, i)
        y = dataset.outputs[dataset.output_starts[i] : dataset.output_starts[i + 1]]
        status = build(x, y, table, run, options, lat)
        if status != DONE:
            return n, status
        if options.by_loss and mode != VALUE_ONLY:
            add_costs(x, y, lat)
        log_good, log_all = expect(lat, mode)
        if log_good == -math.inf:
            failed = log_all == -math.inf and mode != GOOD_ROWS
            return n, FAILED if failed else UNREACHABLE
        if mode == GRADIENT_STEP:
            drop_small(lat)
        if mode != VALUE_ONLY:
            status = gather(x, table, lat, run, gradient)
            if status != DONE:
                return n, status
        ascent.logs[n] = log_good - log_all
        if mode == GRADIENT_STEP:
            gradient.ints[EXAMPLES] += 1
            if gradient.ints[EXAMPLES] == ascent.batch or n + 1 == order.shape[0]:
                ascend(table, ascent)
                table.reals[SCALES] += ascent.average * table.reals[SCALE]
                table.ints[TICKS] += ascent.average
    return order.shape[0], DONE
