"""Frequencies of attributes with labels, as CRFsuite counts them.

The features are counted in parts, since all at once would take more memory than learning does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from laso.data.table import Array, Column, Features
from laso.features.encoder import distinct_labels, label_numbers

PART = 1 << 16  # features to count at a time


@dataclass(frozen=True)
class Frequencies:
    """The frequency of each attribute with each label; values other than 1 count as what they are.

    Parameters
    ----------
    keys : array of int64
        The keys of the attributes, in rising order.
    n_labels : int
        The number of labels.
    pairs, sums : arrays
        The pairs that occur, as the number of the attribute times labels plus the label, in rising
        order, and the sums of their values.
    transitions : int
        The number of pairs of labels that follow each other.
    """

    keys: Array
    n_labels: int
    pairs: Array
    sums: Array
    transitions: int

    def n_features(self, *, states: bool, transitions: bool) -> int:
        """Return the number of features: those that occur, or all that are possible."""
        of_states = len(self.keys) * self.n_labels if states else len(self.pairs)
        return of_states + (self.n_labels**2 if transitions else self.transitions)

    def frequent(self, data: Features, least: float) -> Features:
        """Return the data without attributes that are rarer than ``least`` with every label."""
        kept_keys = np.zeros(len(self.keys), bool)
        kept_keys[self.pairs[self.sums >= least] // self.n_labels] = True
        kept = kept_keys[np.searchsorted(self.keys, data.keys)]
        before = np.concatenate([[0], np.cumsum(kept)])
        ends = np.cumsum(data.counts)
        return replace(
            data,
            counts=before[ends] - before[ends - data.counts],
            keys=data.keys[kept],
            values=None if data.values is None else data.values[kept],
        )


def frequencies(data: Features, labels: Column) -> Frequencies:
    """Count attributes with labels, and pairs of labels."""
    names = distinct_labels(labels, data.lengths, numbers=True)
    codes = label_numbers(labels, names, data.lengths)
    keys = _distinct(data.keys)
    pairs: Array = np.zeros(0, np.int64)
    sums: Array = np.zeros(0)
    for part, of_feature in _parts(data, codes):
        known = of_feature >= 0
        numbers = np.searchsorted(keys, data.keys[part][known]) * len(names) + of_feature[known]
        ones = data.values is None
        values = np.ones(len(numbers)) if ones else np.abs(data.values[part][known])  # type: ignore[index]
        pairs, numbers = np.unique(np.concatenate([pairs, numbers]), return_inverse=True)
        sums = np.bincount(numbers, np.concatenate([sums, values]), minlength=len(pairs))
    first = np.zeros(len(codes), bool)
    first[(np.cumsum(data.lengths) - data.lengths)[data.lengths > 0]] = True
    following = np.stack([np.roll(codes, 1), codes])[:, ~first]
    following = following[:, (following >= 0).all(axis=0)]
    return Frequencies(keys, len(names), pairs, sums, len(np.unique(following, axis=1).T))


def _distinct(keys: Array) -> Array:
    """Return the distinct keys in rising order."""
    distinct = np.zeros(0, np.int64)
    for first in range(0, len(keys), PART):
        distinct = np.union1d(distinct, keys[first : first + PART])
    return distinct


def _parts(data: Features, codes: Array) -> Iterator[tuple[slice, Array]]:
    """Yield slices of the features, each with the labels of its tokens."""
    ends = np.cumsum(data.counts)
    begin = 0
    while begin < len(codes):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + PART, side="right")))
        yield slice(before, int(ends[end - 1])), np.repeat(codes[begin:end], data.counts[begin:end])
        begin = end
