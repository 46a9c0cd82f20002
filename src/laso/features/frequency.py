"""Frequencies of attributes with labels, as CRFsuite counts them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from laso.data.table import Array, Column, Features
from laso.features.encoder import distinct_labels, label_numbers


@dataclass(frozen=True)
class Frequencies:
    """The frequency of each attribute with each label; values other than 1 count as what they are.

    Parameters
    ----------
    attributes : array of int
        The number of the attribute of each feature of the data.
    state : array of shape (attributes, labels)
        The sums of values.
    transitions : int
        The number of pairs of labels that follow each other.
    """

    attributes: Array
    state: Any
    transitions: int

    def n_features(self, *, states: bool, transitions: bool) -> int:
        """Return the number of features: those that occur, or all that are possible."""
        n, labels = self.state.shape
        of_states = n * labels if states else self.state.count_nonzero()
        return int(of_states + (labels * labels if transitions else self.transitions))

    def frequent(self, data: Features, least: float) -> Features:
        """Return the data without attributes that are rarer than ``least`` with every label."""
        kept = (self.state.max(axis=1).toarray().ravel() >= least)[self.attributes]
        tokens = np.repeat(np.arange(len(data.counts)), data.counts)
        return replace(
            data,
            counts=np.bincount(tokens[kept], minlength=len(data.counts)).astype(np.int64),
            keys=data.keys[kept],
            values=None if data.values is None else data.values[kept],
        )


def frequencies(data: Features, labels: Column) -> Frequencies:
    """Count attributes with labels, and pairs of labels."""
    from scipy.sparse import csr_array

    names = distinct_labels(labels, data.lengths)
    codes = label_numbers(labels, names, data.lengths)
    keys, attributes = np.unique(data.keys, return_inverse=True)
    of_feature = np.repeat(codes, data.counts)
    values = np.ones(len(data.keys)) if data.values is None else np.abs(data.values)
    known = of_feature >= 0
    state = csr_array(
        (values[known], (attributes[known], of_feature[known])), shape=(len(keys), len(names))
    )
    first = np.zeros(len(codes), bool)
    first[(np.cumsum(data.lengths) - data.lengths)[data.lengths > 0]] = True
    pairs = np.stack([np.roll(codes, 1), codes])[:, ~first]
    pairs = pairs[:, (pairs >= 0).all(axis=0)]
    return Frequencies(attributes, state, len(np.unique(pairs, axis=1).T))
