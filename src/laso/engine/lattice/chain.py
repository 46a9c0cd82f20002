"""Forward-backward on chains, scaled: no exponential for an edge (Rabiner 1989, section V.A).

The exponentials are those of the labels of a position and of the transition matrices. Each row of
alphas is scaled to the sum 1. Where a scale is too small for that, ``log p`` is NaN, and the caller
takes the general recursion, in log space.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.kernels.weight_table import fill
from laso.engine.lattice.chain_layout import (
    BEFORE,
    BETA,
    LANES,
    MATRICES,
    PROBABILITY,
    WEIGHTED_BETA,
)

LEAST_SCALE = 1e-200  # what is lost to underflow is less than 1e-100 of a larger one


def chain_likelihoods(order, chain, work):
    """Write log p(y | x) of the given examples, and add their gradients.

    The gradient is without the ``gold_features``.
    """
    weigh_transitions(chain, work)
    states, masked = work.states, work.masked
    for n in range(order.shape[0]):
        first, end = chain.starts[order[n]], chain.starts[order[n] + 1]
        log_good, shift, is_single = score_positions(chain, work, first, end)
        log_all = shift + chain_forward(chain, work, states, first, end)
        if not is_single:
            mask_bad(chain, states, masked, first, end)
            log_good = shift + chain_forward(chain, work, masked, first, end)
            if not math.isnan(log_all + log_good):
                chain_backward(chain, work, masked, first, end, 1.0)
                chain_forward(chain, work, states, first, end)
        work.logs[n] = log_good - log_all
        if not math.isnan(work.logs[n]):
            chain_backward(chain, work, states, first, end, -1.0)
        elif is_single:
            add_gold_path(chain, work, first, end, -1.0)
    add_transitions(chain, work)
    return 0, 0


def gold_features(order, chain, work):
    """Add the features of the only good paths of the given examples to the gradient.

    They do not depend on the weights. Examples with several good paths are left out.
    """
    for n in range(order.shape[0]):
        first, end = chain.starts[order[n]], chain.starts[order[n] + 1]
        is_single = True
        for position in range(first, end):
            is_single &= chain.golds[position] >= 0
        if is_single:
            add_gold_path(chain, work, first, end, 1.0)
    return 0, 0


def add_gold_path(chain, work, first, end, sign):
    """Add sign * the features of a gold path to the gradient."""
    n_labels, before, ends, contexts = chain.slots.shape[0], 0, chain.ends, chain.context_ends
    spans, others = work.spans, work.context_spans
    for position in range(first, end):
        gold, matrix = chain.golds[position], chain.matrices[position]
        context = matrix * n_labels + before
        for f in range(ends[position - 1] if position > 0 else 0, ends[position]):
            add_value(work, spans[f, 0], spans[f, 1], gold, sign * chain.values[f])
        for f in range(contexts[context - 1] if context > 0 else 0, contexts[context]):
            add_value(work, others[f, 0], others[f, 1], gold, sign * chain.context_values[f])
        before = gold


def add_value(work, begin, end, label, value):
    """Add a value to the gradient of the variable of a label, if begin : end has one."""
    for k in range(begin, end):
        if work.labels[k] == label:
            work.gradient[k] += value


# --------------------------------------------------------------------------- scores


def add_span(weights, labels, begin, end, value, sums, n_labels):
    """Add the weights of a feature, its variables begin : end, to the sums of their labels."""
    if end - begin == n_labels:
        for label in range(n_labels):
            sums[label] += weights[begin + label] * value
    else:
        for k in range(begin, end):
            sums[labels[k]] += weights[k] * value


def take_span(gradient, labels, begin, end, value, sums, n_labels):
    """Add the sums of labels, times the value of a feature, to the gradient of its variables."""
    if end - begin == n_labels:
        for label in range(n_labels):
            gradient[begin + label] += sums[label] * value
    else:
        for k in range(begin, end):
            gradient[k] += sums[labels[k]] * value


def weigh_transitions(chain, work):
    """Compute the transition matrices and their exponentials; clear the expectations."""
    n_labels, spans, ends = chain.slots.shape[0], work.context_spans, chain.context_ends
    for matrix in range(chain.used[MATRICES]):
        allowed, scores, top = chain.allowed[matrix], work.scores[matrix], -math.inf
        factors, transposed = work.factors[matrix], work.transposed[matrix]
        for slot in range(n_labels):
            fill(scores[slot], 0.0)
            fill(work.expected[matrix, slot], 0.0)
            context = matrix * n_labels + slot
            for f in range(ends[context - 1] if context > 0 else 0, ends[context]):
                value = chain.context_values[f]
                begin, end = spans[f, 0], spans[f, 1]
                add_span(work.weights, work.labels, begin, end, value, scores[slot], n_labels)
            for label in range(n_labels):
                if allowed[slot, label]:
                    top = max(top, scores[slot, label])
        work.tops[matrix] = top
        for slot in range(n_labels):
            for label in range(n_labels):
                is_allowed = allowed[slot, label] > 0
                factor = math.exp(scores[slot, label] - top) if is_allowed else 0.0
                factors[slot, label] = transposed[label, slot] = factor


def add_transitions(chain, work):
    """Add the expectations of the transitions to the gradient."""
    n_labels, spans, ends = chain.slots.shape[0], work.context_spans, chain.context_ends
    for matrix in range(chain.used[MATRICES]):
        for slot in range(n_labels):
            sums, factors = work.expected[matrix, slot], work.factors[matrix, slot]
            for label in range(n_labels):
                sums[label] *= factors[label]
            context = matrix * n_labels + slot
            for f in range(ends[context - 1] if context > 0 else 0, ends[context]):
                value = chain.context_values[f]
                begin, end = spans[f, 0], spans[f, 1]
                take_span(work.gradient, work.labels, begin, end, value, sums, n_labels)


def score_positions(chain, work, first, end):
    """Write the exponentials of the labels' scores; return log gold, the shift, and is_single.

    The shift is the log of what the exponentials were divided by, those of transitions included.
    log gold is the score of the gold path, if every position has a single good label.
    """
    n_labels, spans, ends = chain.slots.shape[0], work.spans, chain.ends
    weights, labels, values = work.weights, work.labels, chain.values
    gold_score, shift, before, is_single = 0.0, 0.0, 0, True
    begin = ends[first - 1] if first > 0 else 0
    for position in range(first, end):
        sums, top = work.states[position - first], -math.inf
        fill(sums, 0.0)
        for f in range(begin, ends[position]):
            add_span(weights, labels, spans[f, 0], spans[f, 1], values[f], sums, n_labels)
        begin = ends[position]
        gold, matrix = chain.golds[position], chain.matrices[position]
        if gold >= 0:
            gold_score += sums[gold] + work.scores[matrix, before, gold]
        is_single &= gold >= 0
        before = gold
        for label in range(n_labels):
            top = max(top, sums[label])
        for label in range(n_labels):
            sums[label] = math.exp(sums[label] - top)
        fill(sums[n_labels:], 0.0)
        shift += top + work.tops[matrix]
    return gold_score, shift, is_single


def mask_bad(chain, states, masked, first, end):
    """Copy the exponentials of the labels' scores, with zeros for labels that are not good."""
    for position in range(first, end):
        for label in range(chain.slots.shape[0]):
            masked[position - first, label] = (
                states[position - first, label] * chain.good[position, label]
            )


# --------------------------------------------------------------------------- forward-backward


def multiply(matrix, vector, out):
    """Write vector . matrix; four rows at a time, so that sums are written less often."""
    fill(out, 0.0)
    for i in range(0, vector.shape[0], LANES):
        a, b, c, d = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        row_a, row_b, row_c, row_d = matrix[i], matrix[i + 1], matrix[i + 2], matrix[i + 3]
        for j in range(out.shape[0]):
            out[j] += (a * row_a[j] + b * row_b[j]) + (c * row_c[j] + d * row_d[j])


def forward_step(factors, before, state, alpha):
    """Write (before . factors) * state, scaled to the sum 1; return the scale, NaN if too small."""
    multiply(factors, before, alpha)
    scale = 0.0
    for label in range(alpha.shape[0]):
        alpha[label] *= state[label]
        scale += alpha[label]
    if not scale > LEAST_SCALE:
        return math.nan
    for label in range(alpha.shape[0]):
        alpha[label] *= 1.0 / scale
    return scale


def backward_step(alpha, state, rows, scale, sign):
    """Write sign * the probabilities of labels, and the row from which the next beta comes."""
    beta, row, sums, factor = rows[BETA], rows[WEIGHTED_BETA], rows[PROBABILITY], sign / scale
    for label in range(alpha.shape[0]):
        sums[label] = sign * alpha[label] * beta[label]
        row[label] = factor * state[label] * beta[label]


def begin_chain(rows):
    """Begin with the label 0 before the first step, and a beta of 1 after the last."""
    fill(rows[BEFORE], 0.0)
    rows[BEFORE, 0] = 1.0
    fill(rows[BETA], 1.0)


def chain_forward(chain, work, states, first, end):
    """Sum-product over the positions, scaled; return the log of the sum, NaN if it underflows."""
    alphas, log_sum = work.alphas, 0.0
    begin_chain(work.rows)
    for position in range(first, end):
        t, factors = position - first, work.factors[chain.matrices[position]]
        before = alphas[t - 1] if t > 0 else work.rows[BEFORE]
        work.scales[t] = forward_step(factors, before, states[t], alphas[t])
        if math.isnan(work.scales[t]):
            return math.nan
        log_sum += math.log(work.scales[t])
    return log_sum


def chain_backward(chain, work, states, first, end, sign):
    """The backward pass: add sign * the expectations of features in blocks to the gradient.

    Those of transitions are summed up, still without the factors that all of them have.
    """
    n_labels, spans, ends, width = chain.slots.shape[0], work.spans, chain.ends, states.shape[1]
    beta, row, sums = work.rows[BETA], work.rows[WEIGHTED_BETA], work.rows[PROBABILITY]
    labels, values, gradient = work.labels, chain.values, work.gradient
    begin_chain(work.rows)
    for position in range(end - 1, first - 1, -1):
        t, matrix = position - first, chain.matrices[position]
        expected = work.expected[matrix]
        backward_step(work.alphas[t], states[t], work.rows, work.scales[t], sign)
        for f in range(ends[position - 1] if position > 0 else 0, ends[position]):
            take_span(gradient, labels, spans[f, 0], spans[f, 1], values[f], sums, n_labels)
        if t == 0:
            for label in range(width):
                expected[0, label] += row[label]
            return
        before = work.alphas[t - 1]
        for slot in range(n_labels):
            probability, to = before[slot], expected[slot]
            for label in range(width):
                to[label] += probability * row[label]
        multiply(work.transposed[matrix], row, beta)
        for label in range(width):
            beta[label] *= sign
