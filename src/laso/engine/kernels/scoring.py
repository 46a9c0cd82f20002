"""Scores: cached blocks, and the factors of a step."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import prefetch
from laso.engine.kernels.placeholders import (
    FACTORED,
    GROUPED,
    KEPT,
    NARROWED,
    SHARED,
    WEIGHTED,
    content,
    factors,
    fingerprint,
    is_good,
    sub_block,
)
from laso.engine.kernels.promises import (
    checked_block,
    checked_block_features,
    checked_choice,
    checked_features,
    checked_labels,
    checked_sub_block,
    features_in,
    listed_label,
    note_fault,
)
from laso.engine.kernels.weights import (
    add_known_rows,
    add_rows,
    fill,
    find,
    find_rows,
    is_sparse,
    request_entries,
    request_rows,
    shorten_keys,
    start_of,
    weight_at,
)
from laso.engine.layout import (
    BAD_COUNT,
    BITS,
    EXPANSION,
    FINGERPRINT,
    IN_FACTORS,
    KEPT_KEYS,
    KEPT_ROWS,
    KEPT_SUMS,
    KEPT_VERSION,
    LAST_FEATURES,
    NEXT_SUB_BLOCK,
    NO_FEATURES,
    SAME_LABEL,
    SCALE,
    STACK_BLOCK,
    STACK_TOP,
    SUMMED_IN,
    SUMS_ROW,
    VERSION,
    WAITING_AT,
    WAITING_COUNT,
    WAITING_FIRST,
    WAITING_GROUP,
    WAITING_MARK,
    WAITING_PLACE,
    WAITING_ROW,
    WEIGHTS,
    WEIGHTS_OF,
    Out,
)

# --------------------------------------------------------------------------- cached blocks


def sum_block(x, table, run, root):
    """Compute the sums of a block: the weights of its own features and of all its sub-blocks."""
    stack, versions, cached = run.block_stack, run.block_versions, run.block_sums
    version, n_labels, top = run.meta[VERSION], run.sums.shape[0], 0
    stack[0, STACK_BLOCK], stack[0, NEXT_SUB_BLOCK] = root, 0
    while top >= 0:
        number = stack[top, STACK_BLOCK]
        below = checked_sub_block(x, number, stack[top, NEXT_SUB_BLOCK], run.meta)
        if below >= 0:
            stack[top, NEXT_SUB_BLOCK] += 1
            if versions[below] != version:
                top += 1
                stack[top, STACK_BLOCK], stack[top, NEXT_SUB_BLOCK] = below, 0
            continue
        sums = cached[number]
        fill(sums, 0.0)
        for i in range(stack[top, NEXT_SUB_BLOCK]):
            below = sub_block(x, number, i)
            for label in range(n_labels):
                sums[label] += cached[below, label]
        if SHARED:
            add_own(x, table, run, number, sums)
        else:
            add_rows(table, run, checked_block_features(x, number, run), sums)
        if FACTORED:
            run.block_maxima[number] = highest(sums, checked_labels(x, run))
        versions[number] = version
        top -= 1


def add_own(x, table, run, number, sums):
    """Add the weights of a block's own features as one number, which blocks may share."""
    kept, name = run.contents, content(x, number)
    at = name & (kept.shape[0] - 1)
    own = run.content_sums[at]
    if name == 0 or kept[at] != name or kept.shape[0] == 1:
        kept[at] = name
        fill(own, 0.0)
        add_rows(table, run, checked_block_features(x, number, run), own)
    for label in range(sums.shape[0]):
        sums[label] += own[label]


def score_shared(x, state, group, table, run, least, n_listed):
    """Do what ``score_labels`` does, if a listed label may exceed ``least``; else return False."""
    sums, cached, kept = run.sums, run.block_sums, run.kept_sums
    number, maxima = checked_block(x, state, group, run), run.block_maxima
    n = checked_features(x, state, group, run)
    top = keep_sums(table, run, n, checked_labels(x, run))
    if number < 0:
        for label in range(sums.shape[0]):
            sums[label] = kept[label]
        return True
    if run.block_versions[number] != run.meta[VERSION]:
        sum_block(x, table, run, number)
        n_labels = n_listed if NARROWED and n_listed >= 0 else checked_labels(x, run)
        most = -math.inf
        for c in range(n_labels):
            most = max(most, cached[number, listed_label(x, state, group, c, run, n_listed)])
        maxima[number] = most
    most = maxima[number]
    if top + most + 1e-6 * (abs(top) + abs(most)) < least:  # with room for rounding
        return False
    for label in range(sums.shape[0]):
        sums[label] = cached[number, label] + kept[label]
    return True


def keep_sums(table, run, n, n_labels):
    """Sum the n features in the buffer, unless the last step had the same; the highest sum."""
    keys, kept, meta = run.out.keys, run.kept_keys, run.meta
    same = meta[KEPT_VERSION] == meta[VERSION] and meta[KEPT_KEYS] == n
    for f in range(n):
        same &= kept[f] == keys[f]
        kept[f] = keys[f]
    if not same:
        fill(run.kept_sums, 0.0)
        add_rows(table, run, n, run.kept_sums)
        meta[KEPT_KEYS], meta[KEPT_VERSION] = n, meta[VERSION]
        run.block_maxima[-1] = highest(run.kept_sums, n_labels)
    return run.block_maxima[-1]


def score_labels(x, state, group, table, run):
    """Write w . phi of every label of a group to run.sums; blocks are summed once a version."""
    if SHARED and not FACTORED:
        score_shared(x, state, group, table, run, -math.inf, -1)
        return
    sums, cached = run.sums, run.block_sums
    number = checked_block(x, state, group, run)
    if number >= 0:
        if run.block_versions[number] != run.meta[VERSION]:
            sum_block(x, table, run, number)
        for label in range(sums.shape[0]):
            sums[label] = cached[number, label]
    else:
        fill(sums, 0.0)
    n = checked_features(x, state, group, run)
    if GROUPED:
        keep_rows(table, run, n)
        request_entries(table, run.kept_rows, run.meta[KEPT_ROWS])
        add_known_rows(table, run.out.values, run.kept_rows, run.meta[KEPT_ROWS], sums)
    else:
        add_rows(table, run, n, sums)


def keep_rows(table, run, n):
    """Find the rows of the n features in the buffer, unless the last step had the same features.

    The groups of a state often share the features that are in no block.
    """
    keys, kept, meta = run.out.keys, run.kept_keys, run.meta
    same = meta[KEPT_VERSION] == meta[VERSION] and meta[KEPT_KEYS] == n
    for f in range(n):
        same &= kept[f] == keys[f]
        kept[f] = keys[f]
    if not same:
        n_requested = request_rows(table, run.out, n)
        meta[KEPT_ROWS] = find_rows(table, run.out, n_requested, run.kept_rows)
        meta[KEPT_KEYS], meta[KEPT_VERSION] = n, meta[VERSION]


# --------------------------------------------------------------------------- factors


def sum_kept(x, state, group, table, run):
    """Sum those factors of a step whose sums are kept, all at once, unless they are known already.

    The features of all of them are looked up together, so that each loop finds the memory that the
    one before has prefetched. Of two factors with one place, the later one takes it.
    """
    waiting, kept, n = run.waiting, run.kept_marks, request_kept(x, state, group, run)
    first, n_unknown = 0, 0
    for i in range(n):
        at, place = waiting[i, WAITING_AT], waiting[i, WAITING_PLACE]
        mark, weights = waiting[i, WAITING_MARK], run.meta[WEIGHTS]
        row = run.block_versions.shape[0] + run.factor_rows.shape[0] + place
        run.factor_rows[at, SUMMED_IN], run.factor_rows[at, SUMS_ROW] = run.meta[EXPANSION], row
        if kept[place, FINGERPRINT] == mark and kept[place, WEIGHTS_OF] == weights:
            prefetch(run.block_sums, row)
            continue
        kept[place, FINGERPRINT], kept[place, WEIGHTS_OF] = mark, weights
        out = Out(run.out.keys[first:], run.out.values[first:])
        written = features_in(x, state, waiting[i, WAITING_GROUP], out, run)
        waiting[n_unknown, WAITING_ROW], waiting[n_unknown, WAITING_FIRST] = row, first
        waiting[n_unknown, WAITING_COUNT] = request_rows(table, out, written)
        first += written
        n_unknown += 1
    for i in range(n_unknown):
        first = waiting[i, WAITING_FIRST]
        out = Out(run.out.keys[first:], run.out.values[first:])
        found = find_rows(table, out, waiting[i, WAITING_COUNT], run.rows[first:])
        waiting[i, WAITING_COUNT] = found
    for i in range(n_unknown):
        request_entries(table, run.rows[waiting[i, WAITING_FIRST] :], waiting[i, WAITING_COUNT])
    for i in range(n_unknown):
        first, row = waiting[i, WAITING_FIRST], waiting[i, WAITING_ROW]
        values, rows, sums = run.out.values[first:], run.rows[first:], run.block_sums[row]
        fill(sums, 0.0)
        add_known_rows(table, values, rows, waiting[i, WAITING_COUNT], sums)
        run.block_maxima[row] = highest(sums, checked_labels(x, run))


def request_kept(x, state, group, run):
    """List the factors of a step whose sums are kept and not computed in this expansion.

    Where their sums are kept is prefetched; returns the number of these factors.
    """
    waiting, n = run.waiting, 0
    i, other, at = 0, int(group), run.factor_rows.shape[0] - 1
    while other >= 0:
        if run.factor_rows[at, SUMMED_IN] != run.meta[EXPANSION]:
            mark = fingerprint(x, state, other)
            if mark != -1 and checked_block(x, state, other, run) < 0:
                place = at * KEPT_SUMS + (mark & (KEPT_SUMS - 1))
                prefetch(run.kept_marks, place)
                waiting[n, WAITING_AT], waiting[n, WAITING_GROUP] = at, other
                waiting[n, WAITING_MARK], waiting[n, WAITING_PLACE] = mark, place
                n += 1
        other, its_label = factors(x, state, group, i)
        if is_bad_factor(run, other, its_label):
            return n
        i, at = i + 1, other
    return n


def factor_sums(x, state, group, table, run, at):
    """Return the row of run.block_sums with a factor's sums; -1 if the factor has no features.

    The row is that of its block if the factor has no other features; else a spare one.
    """
    cached, spare = run.block_sums, run.block_versions.shape[0] + at
    number = checked_block(x, state, group, run)
    if number >= 0 and run.block_versions[number] != run.meta[VERSION]:
        sum_block(x, table, run, number)
    n = checked_features(x, state, group, run)
    if n == 0:
        return number
    sums = cached[spare]
    if number >= 0:
        for label in range(sums.shape[0]):
            sums[label] = cached[number, label]
    else:
        fill(sums, 0.0)
    add_rows(table, run, n, sums)
    run.block_maxima[spare] = highest(sums, checked_labels(x, run))
    return spare


def highest(sums, n):
    """Return the highest of the first n; four at a time, since each comparison waits for one."""
    a = b = c = d = sums[0]
    for i in range(0, n - 3, 4):
        a, b = max(a, sums[i]), max(b, sums[i + 1])
        c, d = max(c, sums[i + 2]), max(d, sums[i + 3])
    for i in range(n - n % 4, n):
        a = max(a, sums[i])
    return max(max(a, b), max(c, d))


def is_bad_factor(run, group, label):
    """Return whether a factor has no such group or label, and record that as a fault."""
    if group < 0:
        return False
    most, n = run.factor_rows.shape[0] - 2, run.sums.shape[0]
    if group > most:
        note_fault(run.meta, BAD_COUNT, IN_FACTORS, group, -1, most)
        return True
    if not SAME_LABEL <= label < n:
        note_fault(run.meta, BAD_COUNT, IN_FACTORS, label, SAME_LABEL, n - 1)
        return True
    return False


def factor_row(x, state, group, table, run, at):
    """Return what ``factor_sums`` returns for the factor ``at``, computed once an expansion."""
    rows, now = run.factor_rows, run.meta[EXPANSION]
    if rows[at, SUMMED_IN] != now:
        rows[at, SUMMED_IN] = now
        rows[at, SUMS_ROW] = factor_sums(x, state, group, table, run, at)
    return rows[at, SUMS_ROW]


def score_factors(x, state, group, table, run, least, n_listed):
    """Do what ``score_labels`` does for a group with factors, if a label may exceed ``least``.

    Else return False and write nothing. Only listed labels are scored, if there are any.
    """
    cached, maxima, own = run.block_sums, run.block_maxima, run.factor_rows.shape[0] - 1
    top = size = 0.0
    run.factor_rows[own, SUMMED_IN] = -1
    if KEPT:
        sum_kept(x, state, group, table, run)
    i, other, its_label = 0, int(group), SAME_LABEL
    while other >= 0:
        row = factor_row(x, state, other, table, run, own if i == 0 else other)
        if row >= 0:
            most = maxima[row] if its_label == SAME_LABEL else float(cached[row, its_label])
            top += most
            size += abs(most)
        other, its_label = factors(x, state, group, i)
        if is_bad_factor(run, other, its_label):
            return False
        i += 1
    if top + 1e-6 * size < least:  # with room for rounding
        return False
    if NARROWED and n_listed >= 0:
        add_factors_of_listed(x, state, group, run, n_listed)
    else:
        add_factors(x, state, group, run)
    return True


def add_factors(x, state, group, run):
    """Write the sums of a group's factors for all labels."""
    cached, sums, rows, n = run.block_sums, run.sums, run.factor_rows, checked_labels(x, run)
    fill(sums, 0.0)
    i, other, its_label = 0, rows.shape[0] - 1, SAME_LABEL
    while other >= 0:
        row = rows[other, SUMS_ROW]
        if row >= 0 and its_label == SAME_LABEL:
            for label in range(n):
                sums[label] += cached[row, label]
        elif row >= 0:
            for label in range(n):
                sums[label] += cached[row, its_label]
        other, its_label = factors(x, state, group, i)
        i += 1


def add_factors_of_listed(x, state, group, run, n):
    """Write the sums of a group's factors for the n labels that ``choice`` lists."""
    cached, sums, rows = run.block_sums, run.sums, run.factor_rows
    for c in range(n):  # one label after the other, so that its sum stays in a register
        label, total = checked_choice(x, state, group, c, run), sums.dtype.type(0)
        i, other, its_label = 0, rows.shape[0] - 1, SAME_LABEL
        while other >= 0:
            row = rows[other, SUMS_ROW]
            if row >= 0:
                total += cached[row, label if its_label == SAME_LABEL else its_label]
            other, its_label = factors(x, state, group, i)
            i += 1
        sums[label] = total


def has_good(x, y, state, group, run, n_listed):
    """Return whether one of the listed labels is good; of all labels, if n_listed is -1."""
    good = False
    if NARROWED and n_listed >= 0:
        for c in range(n_listed):
            good |= is_good(x, y, state, group, checked_choice(x, state, group, c, run))
        return good
    for label in range(checked_labels(x, run)):
        good |= is_good(x, y, state, group, label)
    return good


def factor_group(x, state, group, i, run):
    """Return the group of the i-th factor of a step, whose own group is the first; -1: no more."""
    if i == 0:
        return group
    other, its_label = factors(x, state, group, i - 1)
    return -1 if is_bad_factor(run, other, its_label) else other


def factor_label(x, state, group, label, i):
    """Return the label of the i-th factor of a step."""
    its_label = SAME_LABEL if i == 0 else factors(x, state, group, i - 1)[1]
    return label if its_label == SAME_LABEL else its_label


# --------------------------------------------------------------------------- one step


def begin_features(run, number):
    """Go to the features of a step: those of its block and of all sub-blocks, then its own."""
    run.block_stack[0, STACK_BLOCK], run.block_stack[0, NEXT_SUB_BLOCK] = number, 0
    run.meta[STACK_TOP] = 0 if number >= 0 else LAST_FEATURES


def next_features(x, state, group, table, run):
    """Write the next features of the step, and return their number, or -1 after the last."""
    stack, top = run.block_stack, run.meta[STACK_TOP]
    if top == NO_FEATURES:
        return -1
    if top == LAST_FEATURES:
        n = checked_features(x, state, group, run)
    else:
        number = stack[top, STACK_BLOCK]
        below = checked_sub_block(x, number, stack[top, NEXT_SUB_BLOCK], run.meta)
        while below >= 0:
            stack[top, NEXT_SUB_BLOCK] += 1
            top += 1
            stack[top, STACK_BLOCK], stack[top, NEXT_SUB_BLOCK] = below, 0
            below = checked_sub_block(x, below, 0, run.meta)
        n = checked_block_features(x, stack[top, STACK_BLOCK], run)
    run.meta[STACK_TOP] = top - 1
    return shorten_keys(run.out.keys, n, table.ints[BITS])


def step_score(x, state, group, label, table, run):
    """Return w . phi of one step; memory is prefetched as in ``add_rows``."""
    slots, v, keys, values, rows = table.slots, table.v, run.out.keys, run.out.values, run.rows
    mask, total, sparse = slots.shape[0] - 1, 0.0, is_sparse(table)
    i, its_group = 0, factor_group(x, state, group, 0, run)
    while its_group >= 0:
        at, one = factor_label(x, state, group, label, i), 0.0
        begin_features(run, checked_block(x, state, its_group, run))
        n = next_features(x, state, its_group, table, run)
        while n >= 0:
            for f in range(n):
                prefetch(slots, keys[f] & mask)
            for f in range(n):
                rows[f] = find(slots, keys[f])
                if sparse:
                    prefetch(v, start_of(table, max(rows[f], 0)))
                else:
                    prefetch(v[:, at], max(rows[f], 0))
            for f in range(n):
                if rows[f] >= 0:
                    if WEIGHTED:
                        one += weight_at(table, rows[f], at) * values[f]
                    else:
                        one += weight_at(table, rows[f], at)
            n = next_features(x, state, its_group, table, run)
        total += one
        i += 1
        its_group = factor_group(x, state, group, i, run)
    return table.reals[SCALE] * total
