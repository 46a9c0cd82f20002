"""The updates of Figure 2: gather Delta from the compared nodes, then apply it.

``apply_update`` is common to beams and to the lattice, which gathers Delta in another way.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import prefetch
from laso.engine.kernels.bundles import forget_sums
from laso.engine.kernels.factors import factor_group, factor_label
from laso.engine.kernels.moves import add_moves
from laso.engine.kernels.placeholders import DENSE, has_bounds, has_values
from laso.engine.kernels.promises import checked_block
from laso.engine.kernels.steps import begin_features, next_features
from laso.engine.kernels.upper_bounds import raise_cap
from laso.engine.kernels.weight_table import (
    add_entry_to_row,
    entry_of,
    fill,
    is_sparse,
    row_of,
    weight_at,
)
from laso.engine.layout import (
    BLOCK_CODES,
    CONTENDERS,
    DELTA_ENTRY,
    DELTA_KEY,
    DELTA_LABEL,
    DELTA_NEXT,
    DELTA_ROW,
    DONE,
    ENTRIES,
    ERRORS,
    FAULT,
    GENERATION,
    GOOD,
    GROUP,
    HEAD_START,
    LABEL,
    LABELS,
    LOSS,
    MARGIN,
    MASS,
    MORE_ENTRIES,
    MORE_ROWS,
    MORE_SCRATCH,
    PARENT,
    PATH,
    PATHS,
    ROWS,
    SCALE,
    SCALES,
    SCORE,
    SIBLINGS,
    SQUARE,
    TOTAL_LOSS,
    TOTAL_MASS,
    USED,
)
from laso.engine.option_kinds import (
    ALMA,
    AROW,
    DELAYED,
    LOSS_PROPORTIONAL,
    PASSIVE_AGGRESSIVE,
    WORST,
)

TINY = 1e-12  # a hinge below it is rounding, as in laso.updates

# --------------------------------------------------------------------------- which steps count


def best_of(run, nodes, n, bad_only):
    """Return the index of the highest of n nodes (the first of equals), -1 if there is none."""
    ints, reals = run.ints, run.reals
    best = -1
    for i in range(n):
        if (not bad_only or not ints[nodes[i], GOOD]) and (
            best < 0 or reals[nodes[i], SCORE] > reals[nodes[best], SCORE]
        ):
            best = i
    return best


def weigh_nodes(run, options, n_siblings, n_contenders):
    """Write the coefficient of each node: Eq. 2, or Crammer & Singer's other weightings."""
    good_nodes, bad_nodes = run.compared[SIBLINGS], run.compared[CONTENDERS]
    good, bad = run.coefficients[SIBLINGS], run.coefficients[CONTENDERS]
    for i in range(n_siblings):
        good[i] = 1.0 / n_siblings
    for i in range(n_contenders):
        bad[i] = -1.0 / n_contenders
    if options.weighting == WORST:
        fill(good[:n_siblings], 0.0)
        fill(bad[:n_contenders], 0.0)
        good[best_of(run, good_nodes, n_siblings, False)] = 1.0
        worst = best_of(run, bad_nodes, n_contenders, True)
        bad[worst if worst >= 0 else best_of(run, bad_nodes, n_contenders, False)] = -1.0
    elif options.weighting == LOSS_PROPORTIONAL:
        total = 0.0
        for i in range(n_contenders):
            total += run.reals[bad_nodes[i], LOSS]
        if total > 0.0:
            for i in range(n_contenders):
                bad[i] = -run.reals[bad_nodes[i], LOSS] / total


def spread(run, side, n, add):
    """Add the coefficients of n nodes to all steps of their paths (or clear these).

    Returns the number of nodes with a coefficient.
    """
    ints, reals = run.ints, run.reals
    nodes, coefficients = run.compared[side], run.coefficients[side]
    terms = 0
    for i in range(n):
        if coefficients[i] != 0.0:
            terms += 1
            node = nodes[i]
            while node >= 0:
                ints[node, PATHS] = ints[node, PATHS] + 1 if add else 0
                reals[node, MASS] = reals[node, MASS] + coefficients[i] if add else 0.0
                node = ints[node, PARENT]
    return terms


def unshared_steps(run, side, n, terms, n_steps):
    """Append the steps that not all terms share to scratch[PATH], each once.

    Returns the number of steps, -1 if there is no room.
    """
    ints, steps = run.ints, run.scratch[PATH]
    nodes, coefficients = run.compared[side], run.coefficients[side]
    for i in range(n):
        node = nodes[i]
        first = n_steps
        # Each of two searches has a root of its own, to which no step leads.
        while coefficients[i] != 0.0 and ints[node, PARENT] >= 0 and ints[node, PATHS] < terms:
            if n_steps == steps.shape[0]:
                return -1
            steps[n_steps] = node
            n_steps += 1
            ints[node, PATHS] = terms  # not twice
            node = ints[node, PARENT]
        last = n_steps - 1
        while first < last:  # from the root on, in which order the reference engine adds
            steps[first], steps[last] = steps[last], steps[first]
            first += 1
            last -= 1
    return n_steps


def find_blocks(x, run, n_steps, two):
    """Write the blocks of all factors of the steps to scratch; False if there is no room.

    Where ``two`` paths are compared, two factors of equal block and label cancel if one is on
    either path. That is true of most factors after the paths have parted; they are left out.
    """
    ints, steps, codes, owners = (
        run.ints,
        run.scratch[PATH],
        run.scratch[BLOCK_CODES],
        run.block_owners,
    )
    k = 0
    for i in range(n_steps):
        node = steps[i]
        state, group, label = run.states[ints[node, PARENT]], ints[node, GROUP], ints[node, LABEL]
        j, its_group = 0, factor_group(x, state, group, 0, run)
        while its_group >= 0:
            if k == codes.shape[0]:
                return False
            number, code = checked_block(x, state, its_group, run), -1
            if number >= 0:
                its_label = factor_label(x, state, group, label, j, run)
                code = number * run.sums.shape[0] + its_label
                code = 2 * code + (run.reals[node, MASS] > 0.0)
                before = owners[number]
                owners[number] = k
                if two and 0 <= before < k and codes[before] == code ^ 1:
                    codes[before] = code = -1
            codes[k] = code
            j, k = j + 1, k + 1
            its_group = factor_group(x, state, group, j, run)
    return True


def found_block(run, k):
    """Return the k-th block that ``find_blocks`` wrote; -1: there is none, or it cancels."""
    code = run.scratch[BLOCK_CODES, k]
    return code // (2 * run.sums.shape[0]) if code >= 0 else -1


# --------------------------------------------------------------------------- Delta


def add_entry(mark, run, row, label, value):
    """Delta[row, label] += value; there must be room for one more entry."""
    delta, values = run.delta, run.values
    e = mark[row]
    while e >= 0:
        if delta[e, DELTA_LABEL] == label:
            values[e] += value
            return
        e = delta[e, DELTA_NEXT]
    e = run.meta[ENTRIES]
    run.meta[ENTRIES] = e + 1
    delta[e, DELTA_ROW] = row
    delta[e, DELTA_LABEL] = label
    delta[e, DELTA_NEXT] = mark[row]
    values[e] = value
    mark[row] = e


def room_for(table, run, n):
    """Return DONE if Delta and the table have room for n more features, else what is missing."""
    if run.meta[ENTRIES] + n > run.values.shape[0]:
        return MORE_ENTRIES
    rows = table.ints[ROWS] + n
    if rows > table.mark.shape[0] or 2 * rows > table.slots.shape[0]:
        return MORE_ROWS
    # A full row of fewer entries than labels moves to a place of twice the size.
    if is_sparse(table) and table.ints[USED] + 2 * n * table.ints[LABELS] + 2 > table.v.shape[0]:
        return MORE_ROWS
    return run.meta[FAULT]


def clear_marks(mark, run):
    """Remove the marks of the rows of Delta."""
    for e in range(run.meta[ENTRIES]):
        mark[run.delta[e, DELTA_ROW]] = -1


def add_features(table, run, n, label, mass):
    """Add mass times the n features in the buffer to Delta."""
    slots, mark, keys, sparse = table.slots, table.mark, run.out.keys, is_sparse(table)
    for f in range(n):
        prefetch(slots, keys[f] & (slots.shape[0] - 1))
    for f in range(n):
        run.rows[f] = row_of(table, keys[f])
        prefetch(mark, run.rows[f])
        if sparse:
            prefetch(table.heads, run.rows[f])
        else:
            prefetch(table.v[:, label], run.rows[f])
            prefetch(table.u[:, label], run.rows[f])
    if sparse:
        for f in range(n):
            prefetch(table.entry_labels, table.heads[run.rows[f], HEAD_START])
    for f in range(n):
        if sparse:
            add_entry_to_row(table, run.rows[f], label)
        value = run.out.values[f] if has_values() else 1.0
        add_entry(mark, run, run.rows[f], label, mass * value)
        if has_bounds():
            run.delta[mark[run.rows[f]], DELTA_KEY] = keys[f]


def begin_delta(run):
    """Empty Delta."""
    run.meta[ENTRIES] = run.meta[ERRORS] = 0
    run.losses[TOTAL_LOSS] = run.losses[TOTAL_MASS] = 0.0


def gather_steps(x, table, run, n_steps, moving):
    """Add the features of the steps in scratch[PATH] to Delta, or to the moves of vectors.

    Return DONE, or what there is no room for.
    """
    k = 0
    for i in range(n_steps):
        node = run.scratch[PATH, i]
        label, mass = run.ints[node, LABEL], run.reals[node, MASS]
        state, group = run.states[run.ints[node, PARENT]], run.ints[node, GROUP]
        j, its_group = 0, factor_group(x, state, group, 0, run)
        while its_group >= 0:
            its_label = factor_label(x, state, group, label, j, run)
            begin_features(run, found_block(run, k))
            n = next_features(x, state, its_group, table, run)
            while n >= 0:
                if DENSE() and moving:
                    add_moves(x, table, run, its_label, mass)
                else:
                    status = room_for(table, run, n)
                    if status != DONE:
                        clear_marks(table.mark, run)
                        return status
                    add_features(table, run, n, its_label, mass)
                n = next_features(x, state, its_group, table, run)
            j, k = j + 1, k + 1
            its_group = factor_group(x, state, group, j, run)
    return DONE


def gather_delta(x, table, run, options, n_siblings, n_contenders):
    """Delta += the weighted sum of Phi over the nodes; steps that all of them share cancel."""
    weigh_nodes(run, options, n_siblings, n_contenders)
    spread(run, SIBLINGS, n_siblings, False)
    spread(run, CONTENDERS, n_contenders, False)
    terms = spread(run, SIBLINGS, n_siblings, True) + spread(run, CONTENDERS, n_contenders, True)
    n_steps = unshared_steps(run, SIBLINGS, n_siblings, terms, 0)
    if n_steps >= 0:
        n_steps = unshared_steps(run, CONTENDERS, n_contenders, terms, n_steps)
    if n_steps < 0:
        return MORE_SCRATCH
    if not find_blocks(x, run, n_steps, terms == 2):
        return MORE_SCRATCH
    if run.meta[FAULT] != DONE:
        return run.meta[FAULT]
    status = gather_steps(x, table, run, n_steps, False)
    if DENSE() and x.moves.shape[0] and status == DONE:
        status = gather_steps(x, table, run, n_steps, True)
    if status != DONE:
        return status
    run.meta[ERRORS] += 1
    if options.by_loss:
        add_losses(run, n_contenders)
    return DONE


def add_losses(run, n_contenders):
    """Add the losses of the bad nodes to the totals."""
    nodes, coefficients = run.compared[CONTENDERS], run.coefficients[CONTENDERS]
    for i in range(n_contenders):
        if not run.ints[nodes[i], GOOD]:
            run.losses[TOTAL_LOSS] += run.reals[nodes[i], LOSS] * coefficients[i]
            run.losses[TOTAL_MASS] += coefficients[i]


# --------------------------------------------------------------------------- the weights


def find_entries(table, run):
    """Write where the weights of Delta are in sparse rows, which will not move any more."""
    delta = run.delta
    for e in range(run.meta[ENTRIES]):
        at = entry_of(table, delta[e, DELTA_ROW], delta[e, DELTA_LABEL])
        delta[e, DELTA_ENTRY] = at
        prefetch(table.v, at)
        prefetch(table.u, at)


def add_delta(table, run, step, dot, square):
    """w <- w + step * Delta, and the running sum for the average."""
    v, u, delta, values = table.v, table.u, run.delta, run.values
    scale, scales, sparse = table.reals[SCALE], table.reals[SCALES], is_sparse(table)
    table.reals[SQUARE] += step * (2.0 * dot + step * square)
    for e in range(run.meta[ENTRIES]):
        dv = step * values[e] / scale
        if sparse:
            v[delta[e, DELTA_ENTRY], 0] += dv
            u[delta[e, DELTA_ENTRY], 0] += scales * dv
        else:
            v[delta[e, DELTA_ROW], delta[e, DELTA_LABEL]] += dv
            u[delta[e, DELTA_ROW], delta[e, DELTA_LABEL]] += scales * dv


def add_confident(table, run, options, hinge, rate):
    """AROW: w <- w + hinge / (gamma + Delta Sigma Delta) * Sigma Delta, and a smaller Sigma."""
    past, delta, values, sparse = table.precisions, run.delta, run.values, is_sparse(table)
    variance, spread, dot, square = options.alpha, options.c, 0.0, 0.0
    for e in range(run.meta[ENTRIES]):
        row, label, value = delta[e, DELTA_ROW], delta[e, DELTA_LABEL], values[e]
        weight = weight_at(table, row, label)
        if sparse:
            row, label = delta[e, DELTA_ENTRY], 0
        scaled = value / (1.0 / variance + past[row, label] / options.c)
        spread += value * scaled
        past[row, label] += value * value
        values[e] = scaled
        dot += table.reals[SCALE] * weight * scaled
        square += scaled * scaled
    add_delta(table, run, rate * hinge / spread, dot, square)


def rescale(table):
    """Fold the scale into the weights and the sum so far, before the scale loses its digits."""
    v, u, reals = table.v, table.u, table.reals
    if is_sparse(table):
        for e in range(table.ints[USED]):
            u[e, 0] = -(reals[SCALES] * v[e, 0] - u[e, 0])
            v[e, 0] *= reals[SCALE]
        reals[SCALE] = 1.0
        reals[SCALES] = 0.0
        return
    for row in range(table.ints[ROWS]):
        for label in range(v.shape[1]):
            u[row, label] = -(reals[SCALES] * v[row, label] - u[row, label])
            v[row, label] *= reals[SCALE]
    reals[SCALE] = 1.0
    reals[SCALES] = 0.0


def keep_caps(table, run):
    """Let the upper bounds on weights be true of the changed weights, too."""
    v, delta, sparse = table.v, run.delta, is_sparse(table)
    for e in range(run.meta[ENTRIES]):
        if sparse:
            weight = v[delta[e, DELTA_ENTRY], 0]
        else:
            weight = v[delta[e, DELTA_ROW], delta[e, DELTA_LABEL]]
        raise_cap(run, delta[e, DELTA_KEY], weight)


def apply_update(table, run, options, rate, errors):
    """Update the weights by the Delta of so many errors, and clear the marks."""
    delta, values, reals = run.delta, run.values, table.reals
    k = table.ints[GENERATION]
    dot = square = 0.0
    if is_sparse(table):
        find_entries(table, run)
    for e in range(run.meta[ENTRIES]):
        if is_sparse(table):
            weight = table.v[delta[e, DELTA_ENTRY], 0]
        else:
            weight = table.v[delta[e, DELTA_ROW], delta[e, DELTA_LABEL]]
        dot += reals[SCALE] * weight * values[e]
        square += values[e] * values[e]
    clear_marks(table.mark, run)
    if options.update == ALMA:
        norm = math.sqrt(square)
        if not options.normalize_always:
            norm = max(1.0, norm)
        if norm > 0.0:
            add_delta(table, run, options.c * rate / math.sqrt(k) / norm, dot, square)
            if reals[SQUARE] > 1.0:
                reals[SCALE] *= 1.0 / math.sqrt(reals[SQUARE])
                reals[SQUARE] = 1.0
                if reals[SCALE] < 1e-3:
                    rescale(table)
        reals[MARGIN] = (1.0 - options.alpha) * options.b * math.sqrt(1.0 / (k + 1))
    elif options.update == PASSIVE_AGGRESSIVE or options.update == AROW:
        hinge = errors * options.margin - dot
        if not (square > 0.0 and hinge > TINY):
            return
        if options.update == AROW:
            add_confident(table, run, options, hinge, rate)
        else:
            add_delta(table, run, min(options.c * rate, hinge / square), dot, square)
    else:
        add_delta(table, run, rate, dot, square)
    if has_bounds() and run.caps.shape[0] > 1:
        keep_caps(table, run)
    table.ints[GENERATION] = k + 1
    forget_sums(run)


def mean_loss(run):
    """Return the mean loss of the bad nodes in Delta, as in laso.updates; 1 if there are none."""
    mass = run.losses[TOTAL_MASS]
    return run.losses[TOTAL_LOSS] / mass if mass < 0.0 else 1.0


def take_step(table, run, options):
    """Update the weights by the Delta that was gathered."""
    rate = mean_loss(run) if options.by_loss else 1.0
    apply_update(table, run, options, rate, run.meta[ERRORS])


def update(x, table, run, options, n_siblings, n_contenders):
    """*update* of Figure 2 on the compared nodes; the status.

    If it is delayed, Delta only grows until the end of the example.
    """
    if options.strategy != DELAYED:
        begin_delta(run)
    status = gather_delta(x, table, run, options, n_siblings, n_contenders)
    if status == DONE and options.strategy != DELAYED:
        take_step(table, run, options)
    return status
