"""Scores of steps with factors: the sum of several blocks and features, each with a label."""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import mix, prefetch
from laso.engine.kernels.bundles import (
    copy_bundle,
    is_known,
    look_up,
    n_blocks,
    place_of,
    request_waiting,
    set_maximum,
    sum_block,
    sum_waiting,
)
from laso.engine.kernels.placeholders import NAMED, NARROWED, factors, is_good, name
from laso.engine.kernels.promises import (
    checked_block,
    checked_factor,
    checked_features,
    chosen_label,
    features_in,
    max_labels,
    n_chosen,
    write_choices,
)
from laso.engine.kernels.upper_bounds import bound_block, is_summed
from laso.engine.kernels.weight_table import add_rows, fill
from laso.engine.layout import (
    DONE,
    EXPANSION,
    FAULT,
    MOST_FACTORS,
    SAME_LABEL,
    SUMMED_IN,
    SUMS_ROW,
    VERSION,
    WAITING_FOR,
    WAITING_NAME,
    WAITING_ROW,
    Out,
)


def sum_named(x, state, group, table, run):
    """Sum those factors of a step that have a name, all at once, unless they are known already."""
    waiting, n, first = run.waiting, request_named(x, state, group, run), 0
    n_unknown = 0
    for i in range(n):
        row, its_group = waiting[i, WAITING_ROW], waiting[i, WAITING_FOR]
        if is_known(run, row, waiting[i, WAITING_NAME]):
            prefetch(run.bundle_sums, row)
            continue
        out = Out(run.out.keys[first:], run.out.values[first:])
        n_written = features_in(x, state, its_group, out, run)
        waiting[n_unknown, WAITING_ROW] = row
        request_waiting(table, run, n_unknown, first, n_written)
        n_unknown += 1
        first += n_written
    look_up(table, run, n_unknown)
    for i in range(n_unknown):
        sum_waiting(table, run, i)
        set_maximum(run, waiting[i, WAITING_ROW])


def request_named(x, state, group, run):
    """List the factors of a step that have a name and are not summed in this expansion.

    Their rows are prefetched; returns the number of these factors.
    """
    waiting, n = run.waiting, 0
    i, other, at = 0, int(group), run.factor_rows.shape[0] - 1
    while other >= 0:
        if run.factor_rows[at, SUMMED_IN] != run.meta[EXPANSION]:
            mark = name(x, state, other, -1)
            if mark != 0 and checked_block(x, state, other, run) < 0:
                row = place_of(run, mark, at)
                prefetch(run.bundle_names, row)
                waiting[n, WAITING_FOR], waiting[n, WAITING_NAME] = other, mix(mark, at)
                waiting[n, WAITING_ROW] = row
                run.factor_rows[at, SUMMED_IN] = run.meta[EXPANSION]
                run.factor_rows[at, SUMS_ROW] = row
                n += 1
        other = checked_factor(x, state, group, i, run)[0]
        i, at = i + 1, other
    return n


def factor_sums(x, state, group, table, run, at):
    """Return the row with a factor's sums; -1 if the factor has no features.

    The row is that of its block if the factor has no other features; else a spare one. The sums of
    a block need not be known yet.
    """
    number, n = checked_block(x, state, group, run), checked_features(x, state, group, run)
    if n == 0:
        if number >= 0:
            bound_block(x, table, run, number)
        return number
    spare = n_blocks(run) + at
    sum_factor(x, state, group, table, run, spare)
    return spare


def sum_factor(x, state, group, table, run, spare):
    """Compute the sums of a factor with features that are in no block."""
    number, sums = checked_block(x, state, group, run), run.bundle_sums[spare]
    if number >= 0:
        if run.bundle_names[number] != run.meta[VERSION]:
            sum_block(x, table, run, number)
        copy_bundle(run, number, sums)
    else:
        fill(sums, 0.0)
    add_rows(table, run, checked_features(x, state, group, run), sums)
    set_maximum(run, spare)


def factor_row(x, state, group, table, run, at):
    """Return what ``factor_sums`` returns for the factor ``at``, computed once an expansion."""
    rows, now = run.factor_rows, run.meta[EXPANSION]
    if rows[at, SUMMED_IN] != now:
        rows[at, SUMMED_IN] = now
        rows[at, SUMS_ROW] = factor_sums(x, state, group, table, run, at)
    return rows[at, SUMS_ROW]


def begin_group(x, state, group, table, run):
    """Begin to score the factors of a group."""
    run.factor_rows[-1, SUMMED_IN] = -1
    if NAMED():
        sum_named(x, state, group, table, run)


def upper_bound(x, state, group, table, run):
    """Return an upper bound on the sum of a group's factors, and a block that is not summed or -1.

    There is room for rounding.
    """
    cached, maxima, own_row = run.bundle_sums, run.bundle_maxima, run.factor_rows.shape[0] - 1
    top = size = 0.0
    i, other, its_label, unsummed = 0, int(group), SAME_LABEL, -1
    while other >= 0:
        row = factor_row(x, state, other, table, run, own_row if i == 0 else other)
        if row >= 0:
            highest = maxima[row]
            if not is_summed(run, row):
                unsummed = row
            elif its_label != SAME_LABEL:
                highest = float(cached[row, its_label])
            top += highest
            size += abs(highest)
        other, its_label = checked_factor(x, state, group, i, run)
        i += 1
    if run.meta[FAULT] != DONE:
        return -math.inf, -1
    return top + 1e-6 * size, unsummed


def bound_of_listed(x, state, group, run, n):
    """Return an upper bound on the sum of a group's factors for the n labels that are listed.

    As where sums are added up, ``upper_bound`` has checked the factors.
    """
    cached, maxima, rows, highest = run.bundle_sums, run.bundle_maxima, run.factor_rows, -math.inf
    for c in range(n):
        label, top, size = chosen_label(run, c, n), 0.0, 0.0
        i, other, its_label = 0, rows.shape[0] - 1, SAME_LABEL
        while other >= 0 and i <= MOST_FACTORS:
            row = rows[other, SUMS_ROW]
            if row >= 0:
                one = maxima[row]
                if is_summed(run, row):
                    one = float(cached[row, label if its_label == SAME_LABEL else its_label])
                top += one
                size += abs(one)
            other, its_label = factors(x, state, group, i)
            i += 1
        highest = max(highest, top + 1e-6 * size)
    return highest


def bound_groups(x, state, table, run, first, end):
    """Write upper bounds on the sums of the factors of groups, from ``first`` to ``end``.

    An end of -1: only of the first, for the labels that are listed.
    """
    for i in range(first, end if end >= 0 else first + 1):
        group = int(run.groups[i])
        begin_group(x, state, group, table, run)
        bound, _ = upper_bound(x, state, group, table, run)
        if NARROWED() and end < 0:
            n_listed = write_choices(x, state, group, run)
            if n_listed >= 0 and bound > -math.inf:
                bound = min(bound, bound_of_listed(x, state, group, run, n_listed))
        run.group_bounds[i] = bound


def score_factors(x, state, group, table, run, least, n_listed):
    """Do what ``score_labels`` does for a group with factors, if a label may exceed ``least``.

    Else return False and write nothing. Only listed labels are scored, if there are any. Blocks are
    summed one by one while the upper bound is high enough.
    """
    begin_group(x, state, group, table, run)
    while True:
        bound, unsummed = upper_bound(x, state, group, table, run)
        if bound < least or run.meta[FAULT] != DONE:
            return False
        if unsummed < 0:
            break
        listed = NARROWED() and n_listed >= 0
        if listed and bound_of_listed(x, state, group, run, n_listed) < least:
            return False
        sum_block(x, table, run, unsummed)
    if NARROWED() and n_listed >= 0:
        add_factors_of_listed(x, state, group, run, n_listed)
    else:
        add_factors(x, state, group, run)
    return True


def add_factors(x, state, group, run):
    """Write the sums of a group's factors for all labels."""
    cached, sums, rows, n = run.bundle_sums, run.sums, run.factor_rows, max_labels(run)
    fill(sums, 0.0)
    i, other, its_label = 0, rows.shape[0] - 1, SAME_LABEL
    while other >= 0 and i <= MOST_FACTORS:
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
    """Write the sums of a group's factors for the n labels that are listed."""
    cached, sums, rows = run.bundle_sums, run.sums, run.factor_rows
    for c in range(n):  # one label after the other, so that its sum stays in a register
        label, total = chosen_label(run, c, n), sums.dtype.type(0)
        i, other, its_label = 0, rows.shape[0] - 1, SAME_LABEL
        while other >= 0 and i <= MOST_FACTORS:
            row = rows[other, SUMS_ROW]
            if row >= 0:
                total += cached[row, label if its_label == SAME_LABEL else its_label]
            other, its_label = factors(x, state, group, i)
            i += 1
        sums[label] = total


def has_good(x, y, state, group, run, n_listed):
    """Return whether one of the listed labels is good; of all labels, if n_listed is -1."""
    good = False
    for c in range(n_chosen(run, n_listed)):
        good |= is_good(x, y, state, group, chosen_label(run, c, n_listed))
    return good


def factor_group(x, state, group, i, run):
    """Return the group of the i-th factor of a step, whose own group is the first; -1: no more."""
    if i == 0:
        return group
    return checked_factor(x, state, group, i - 1, run)[0]


def factor_label(x, state, group, label, i, run):
    """Return the label of the i-th factor of a step."""
    its_label = SAME_LABEL if i == 0 else checked_factor(x, state, group, i - 1, run)[1]
    return label if its_label == SAME_LABEL else its_label
