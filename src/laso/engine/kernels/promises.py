"""Checks of what the methods of a problem return.

A broken promise of a problem (a count, block or label beyond its bound) is recorded in the run, and
a value that harms nothing takes its place. The caller ends with the status of the fault.
"""

# mypy: ignore-errors

from __future__ import annotations

import math

from laso.engine.hashing import mix
from laso.engine.kernels.placeholders import (
    DENSE,
    NARROWED,
    WEIGHTED,
    block,
    block_features,
    choices,
    factors,
    features,
    limits,
    sub_block,
    vectors,
)
from laso.engine.kernels.weight_table import drop_features, write_vector
from laso.engine.layout import (
    BAD_BLOCK,
    BAD_COUNT,
    BAD_VALUE,
    BLOCKS,
    DONE,
    DROPOUT,
    FAULT,
    FAULT_HIGH,
    FAULT_LOW,
    FAULT_METHOD,
    FAULT_VALUE,
    FORM,
    IN_BLOCK,
    IN_BLOCK_FEATURES,
    IN_CHOICES,
    IN_FACTORS,
    IN_FEATURES,
    IN_LIMITS,
    IN_SUB_BLOCK,
    IN_VECTORS,
    MAX_FEATURES,
    MAX_GROUPS,
    MAX_LABELS,
    MOST_FACTORS,
    MOST_FEATURES,
    SAME_LABEL,
    SEGMENTS,
    SLACK,
    STEPS,
    VECTORS,
    VISIT,
    Array,
    Input,
)


def note_fault(meta, status, method, value, low, high):
    """Record the first broken promise: ``method`` returned a value outside low to high."""
    if meta[FAULT] == DONE:
        meta[FAULT] = status
        meta[FAULT_METHOD] = method
        meta[FAULT_VALUE] = value
        meta[FAULT_LOW] = low
        meta[FAULT_HIGH] = high


def checked_count(meta, n, most, method):
    """Return the count n that ``method`` returned, or 0 and a fault if it is out of bounds."""
    if n < 0 or n > most:
        note_fault(meta, BAD_COUNT, method, n, 0, most)
        return 0
    return n


def write_defaults(x: Input, width: int, out: Array) -> None:
    """Write the default limits of an input; rows of weights have this width."""
    for i in range(out.shape[0]):
        out[i] = 0
    out[MAX_GROUPS], out[STEPS], out[MAX_LABELS] = 1, x.items.shape[0], width


def write_limits(x, width, out):
    """Write the limits of an input over their defaults."""
    write_defaults(x, width, out)
    limits(x, out)
    if DENSE():  # the vectors of a block follow its features in their buffer
        out[MAX_FEATURES] += out[VECTORS] * x.vectors.shape[1]


def begin_input(x, run):
    """Write the limits of an input that is searched from now on; return its number of labels."""
    width = run.sums.shape[0]
    write_limits(x, width, run.limits)
    run.limits[MAX_LABELS] = checked_count(run.meta, run.limits[MAX_LABELS], width, IN_LIMITS)
    keep_within(run.limits, BLOCKS, run.block_owners.shape[0])
    keep_within(run.limits, MAX_GROUPS, run.groups.shape[0] - SLACK)
    keep_within(run.limits, MAX_FEATURES, run.meta[MOST_FEATURES])
    return run.limits[MAX_LABELS]


def keep_within(limits, i, most):
    """Let a limit be at least 1, which there is always room for, and at most what there is."""
    limits[i] = min(max(limits[i], 1), most)


def max_labels(run):
    """Return the number of labels of operators."""
    return run.limits[MAX_LABELS]


def write_choices(x, state, group, run):
    """Write the labels of a group that may be allowed, and return their number; -1: all.

    A fault and label 0 stand for a label that does not exist.
    """
    if not NARROWED():
        return -1
    n, n_labels = choices(x, state, group, run.choices), max_labels(run)
    if n < 0:
        return -1
    n = checked_count(run.meta, n, n_labels, IN_CHOICES)
    for i in range(n):
        label = run.choices[i]
        if label < 0 or label >= n_labels:
            note_fault(run.meta, BAD_COUNT, IN_CHOICES, label, 0, n_labels - 1)
            run.choices[i] = 0
    return n


def n_chosen(run, n_listed):
    """Return the number of labels that may be allowed; of all, if n_listed is -1."""
    return n_listed if NARROWED() and n_listed >= 0 else max_labels(run)


def chosen_label(run, i, n_listed):
    """Return the i-th listed label; the i-th of all labels, if n_listed is -1."""
    return int(run.choices[i]) if NARROWED() and n_listed >= 0 else i


def most_features(run):
    """Return the largest number of features that one call may write for the present input."""
    return run.limits[MAX_FEATURES]


def checked_features(x, state, group, run):
    """Write the features of a step that are in no block, and return their number."""
    return features_in(x, state, group, run.out, run)


def features_in(x, state, group, out, run):
    """Do what ``checked_features`` does, with a buffer of its own."""
    n = features(x, state, group, out)
    return checked_values(run, out, n, IN_FEATURES)


def checked_values(run, out, n, method):
    """Return the number n of features that ``method`` wrote, 0 if one has no finite value."""
    n = checked_count(run.meta, n, most_features(run), method)
    if WEIGHTED():
        bad = 0
        for f in range(n):
            bad += not abs(out.values[f]) < math.inf
        if bad:
            note_fault(run.meta, BAD_VALUE, method, bad, 0, 0)
            return 0
    elif DENSE():
        for f in range(n):
            out.values[f] = 1.0
    return n


def checked_block_features(x, number, run):
    """Write the features of a block, and return their number; learning may leave out some."""
    return block_features_in(x, number, run, run.out)


def block_features_in(x, number, run, out):
    """Do what ``checked_block_features`` does, in another buffer."""
    n = block_features(x, number, out)
    n = checked_values(run, out, n, IN_BLOCK_FEATURES)
    if run.meta[DROPOUT] > 0:
        n = drop_features(out, n, mix(run.meta[VISIT], number), run.meta[DROPOUT])
    return append_vectors(x, number, run, out, n) if DENSE() else n


def append_vectors(x, number, run, out, n):
    """Write the dense vectors of a block behind its n features; return the number of all."""
    i, size, most = 0, x.vectors.shape[1], most_features(run)
    row, weights = vectors(x, number, i)
    while weights >= 0:
        if i == run.limits[VECTORS] or n + size > most:
            note_fault(run.meta, BAD_COUNT, IN_VECTORS, i + 1, 0, run.limits[VECTORS])
            return n
        if 0 <= row < x.vectors.shape[0]:
            n = write_vector(x.vectors[row], weights, out, n)
        i += 1
        row, weights = vectors(x, number, i)
    return n


def has_vectors(x, number):
    """Return whether a block has dense vectors, with which no other input shares its features."""
    return DENSE() and vectors(x, number, 0)[1] >= 0


def checked_block(x, state, group, run):
    """Return the block of a step, -1 if it has none; a segment must have one."""
    number, blocks = block(x, state, group), run.limits[BLOCKS]
    needed = run.limits[FORM] == SEGMENTS
    if number >= blocks or (needed and number < 0):
        note_fault(run.meta, BAD_BLOCK, IN_BLOCK, number, 0 if needed else -1, blocks - 1)
        return -1
    return number


def checked_sub_block(x, number, i, meta):
    """Return the i-th sub-block of a block, -1 if there are no more, or a promise is broken.

    A block has at most as many as there are blocks below it.
    """
    below = sub_block(x, number, i)
    if below < 0:
        return -1
    if below >= number or i >= number or meta[FAULT] != DONE:
        high = number - 1 if below >= number else -1
        note_fault(meta, BAD_BLOCK, IN_SUB_BLOCK, below, -1, high)
        return -1
    return below


def checked_factor(x, state, group, i, run):
    """Return group and label of the i-th further factor of a step; group -1: no more.

    That is also what stands for a factor that breaks a promise.
    """
    other, label = factors(x, state, group, i)
    last_factor, n = run.factor_rows.shape[0] - 2, run.sums.shape[0]
    if other < 0:
        return -1, SAME_LABEL
    if other > last_factor or i >= MOST_FACTORS:
        high = last_factor if other > last_factor else -1
        note_fault(run.meta, BAD_COUNT, IN_FACTORS, other, -1, high)
        return -1, SAME_LABEL
    if not SAME_LABEL <= label < n:
        note_fault(run.meta, BAD_COUNT, IN_FACTORS, label, SAME_LABEL, n - 1)
        return -1, SAME_LABEL
    return other, label
