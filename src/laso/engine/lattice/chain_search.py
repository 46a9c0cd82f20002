"""Viterbi and forward-backward for problems that promise chains (FORM is CHAIN).

No lattice is built: the score of a step is the sum of its block plus an entry of one transition
matrix. The best path has the same score, to the last bit, as in the lattice. Where several paths
have it, the caller takes the lattice, which knows which of them a search would find first.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.bundles import sum_block
from laso.engine.kernels.entry import input_of
from laso.engine.kernels.placeholders import apply, initial
from laso.engine.kernels.promises import begin_input, checked_features, note_fault
from laso.engine.kernels.weight_table import add_rows, fill
from laso.engine.lattice.chain import backward_step, begin_chain, forward_step, multiply
from laso.engine.lattice.chain_layout import BEFORE, BETA, PROBABILITY, WEIGHTED_BETA
from laso.engine.lattice.layout import INPUTS_USED, PATHS_USED, STEPS_USED
from laso.engine.layout import (
    BAD_BLOCK,
    BLOCKS,
    CHAIN,
    DONE,
    FAULT,
    FORM,
    IN_LIMITS,
    MORE_ENTRIES,
    NO_CHAIN,
    SCALE,
    STEP_GROUP,
    STEP_LABEL,
    STOP,
    STOPPED,
    VERSION,
)


def best_chains(dataset, order, table, run, work, paths):
    """Find the best paths of the given inputs; return how many are done, and the status."""
    run.meta[FAULT], used = DONE, paths.used
    for n in range(order.shape[0]):
        x = input_of(dataset, order[n])
        steps, first = x.items.shape[0], used[STEPS_USED]
        if first + steps > paths.steps.shape[0]:
            return n, MORE_ENTRIES
        status = sum_input(x, table, run, work, n == 0)
        if status != DONE:
            return n, status
        chain_max(run.bundle_sums, table.reals[SCALE], work, steps)
        if not write_best(run.bundle_sums, table.reals[SCALE], work, paths, steps):
            return n, NO_CHAIN
        used[STEPS_USED] = paths.ends[used[PATHS_USED]] = first + steps
        paths.counts[used[INPUTS_USED]] = 1
        used[PATHS_USED] += 1
        used[INPUTS_USED] += 1
    return order.shape[0], DONE


def sum_input(x, table, run, work, is_first):
    """Sum the blocks of all steps of an input, and for the first input transitions; the status."""
    begin_input(x, run)
    if run.meta[STOP]:
        return STOPPED
    if run.limits[FORM] != CHAIN or (is_first and not sum_transitions(x, table, run, work)):
        return NO_CHAIN
    steps = x.items.shape[0]
    if steps > work.values.shape[0] - 1:
        return MORE_ENTRIES
    if steps > run.limits[BLOCKS]:
        note_fault(run.meta, BAD_BLOCK, IN_LIMITS, run.limits[BLOCKS], steps, steps)
        return BAD_BLOCK
    run.meta[VERSION] += 1
    for position in range(steps):
        sum_block(x, table, run, position)
    return run.meta[FAULT]


def sum_transitions(x, table, run, work):
    """Write the rows of the transition matrix, the last one for the start.

    Returns False if a step has more than one feature beside its block, since the order in which
    they are added up would differ from that of the lattice.
    """
    transitions, states, single = work.transitions, work.states, True
    n_labels = transitions.shape[1]
    initial(x, states[0])
    for before in range(n_labels + 1):
        fill(transitions[before], 0.0)
        state = states[0]
        if before < n_labels:
            state = states[1]
            apply(x, states[0], 0, before, state)
        n = checked_features(x, state, 0, run)
        single &= n <= 1
        add_rows(table, run, n, transitions[before])
    return single


def chain_max(sums, scale, work, steps):
    """Max-plus: write the score of the best path to each label after each step."""
    values, transitions = work.values, work.transitions
    n_labels = transitions.shape[1]
    for t in range(steps):
        to, labels = values[t + 1], sums[t]
        fill(to, -math.inf)
        for before in range(n_labels if t > 0 else 1):
            row = transitions[before if t > 0 else n_labels]
            best = values[t, before] if t > 0 else 0.0
            for label in range(n_labels):
                value = best + scale * (labels[label] + row[label])
                to[label] = value if value > to[label] else to[label]


def write_best(sums, scale, work, paths, steps):
    """Append the best path; False if there are several."""
    values, transitions, at = work.values, work.transitions, paths.used[STEPS_USED] + steps
    n_labels, label, top, several = transitions.shape[1], -1, 0.0, False
    if steps > 0:
        top = -math.inf
        for other in range(n_labels):
            several |= values[steps, other] == top
            if values[steps, other] > top:
                top, label, several = values[steps, other], other, False
        if label < 0:
            return False
    paths.scores[paths.used[PATHS_USED]] = top
    for t in range(steps - 1, -1, -1):
        at -= 1
        paths.steps[at, STEP_GROUP], paths.steps[at, STEP_LABEL] = 0, label
        if t == 0:
            break
        n, came = 0, -1
        for before in range(n_labels):
            value = values[t, before] + scale * (sums[t, label] + transitions[before, label])
            if value == values[t + 1, label]:
                n += 1
                came = before
        several |= n != 1
        label = came
        if several:
            return False
    return not several


# --------------------------------------------------------------------------- probabilities


def chain_probabilities(dataset, order, table, run, work, found):
    """Write the probability of each label at each item; how many are done, and the status.

    The status is NO_CHAIN where the numbers leave the range of floats.
    """
    run.meta[FAULT] = DONE
    scale, at = table.reals[SCALE], 0
    for n in range(order.shape[0]):
        x = input_of(dataset, order[n])
        steps, status = x.items.shape[0], sum_input(x, table, run, work, n == 0)
        if status != DONE:
            return n, status
        if n == 0:
            raise_transitions(work, scale)
        raise_positions(run.bundle_sums, scale, work, steps)
        if not share(work, found[at : at + steps], steps):
            return n, NO_CHAIN
        at += steps
    return order.shape[0], DONE


def raise_transitions(work, scale):
    """Write the exponentials of the transition matrix, over that of its highest entry."""
    transitions, factors, top = work.transitions, work.factors, -math.inf
    for before in range(transitions.shape[0]):
        for label in range(transitions.shape[1]):
            top = max(top, scale * transitions[before, label])
    n_labels = transitions.shape[1]
    for before in range(n_labels + 1):
        for label in range(n_labels):
            factor = math.exp(scale * transitions[before, label] - top)
            if before == n_labels:
                factors[0, 0, label] = factor
            else:
                factors[1, before, label] = work.transposed[label, before] = factor


def raise_positions(sums, scale, work, steps):
    """Write the exponentials of the sums of positions, over those of the highest."""
    for t in range(steps):
        top = -math.inf
        for label in range(sums.shape[1]):
            top = max(top, scale * sums[t, label])
        for label in range(sums.shape[1]):
            work.raised[t, label] = math.exp(scale * sums[t, label] - top)


def share(work, found, steps):
    """Forward-backward: write the probabilities of labels; False if a scale is too small."""
    alphas, rows, scales = work.alphas, work.rows, work.scales
    begin_chain(rows)
    for t in range(steps):
        before = alphas[t - 1] if t > 0 else rows[BEFORE]
        scales[t] = forward_step(work.factors[min(t, 1)], before, work.raised[t], alphas[t])
        if math.isnan(scales[t]):
            return False
    for t in range(steps - 1, -1, -1):
        backward_step(alphas[t], work.raised[t], rows, scales[t], 1.0)
        for label in range(found.shape[1]):
            found[t, label] = rows[PROBABILITY, label]
        multiply(work.transposed, rows[WEIGHTED_BETA], rows[BETA])
    return True
