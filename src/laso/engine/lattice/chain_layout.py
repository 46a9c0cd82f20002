"""The arrays of chains: lattices with one node for each label in every round.

The score of a step is then that of its position and label, plus that of two labels in turn. The
first is the sum of a block, the second an entry of a transition matrix, of which there are few.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from laso.engine.layout import Array

LANES = 4  # rows of labels are padded to a multiple of it
MOST_MATRICES = 256


class Chain(NamedTuple):
    """The chains of many inputs, end to end: everything that does not depend on the weights.

    A context is the row of a transition matrix: what the features outside blocks and the allowed
    labels depend on. Its number is that of its matrix times labels, plus the label before.
    """

    starts: Array  # int64 (inputs + 1,): input i has the positions starts[i] : starts[i + 1]
    matrices: Array  # int32 (positions,): the transition matrix that leads to a position
    golds: Array  # int32 (positions,): the only good label, -1 if there are more
    good: Array  # int8 (positions, labels)
    ends: Array  # int64 (positions,): where the features of a position end
    rows: Array  # int32 (features,): weight rows
    values: Array  # float64 (features,)
    context_ends: Array  # int64 (contexts,): where the features of a context end
    context_rows: Array  # int32 (context features,)
    context_values: Array  # float64 (context features,)
    allowed: Array  # int8 (matrices, labels, labels)
    hashes: Array  # int64 (matrices,)
    slots: Array  # int64 (labels,): scratch, the node of each label in a round
    used: Array  # int64 (ChainUsed,)


class ChainUsed(IntEnum):
    """How much of the arrays of a chain is in use."""

    CHAIN_INPUTS = 0
    POSITIONS = 1
    POSITION_FEATURES = 2
    MATRICES = 3
    CONTEXT_FEATURES = 4


class ChainWork(NamedTuple):
    """Weights by variables, and the working space of forward-backward on chains.

    A feature has the variables first : end, whose labels rise. Rows of labels are padded by zeros.
    """

    weights: Array  # float64 (variables,)
    labels: Array  # int32 (variables,)
    spans: Array  # int32 (features, 2): the variables of each feature of a chain
    context_spans: Array  # int32 (context features, 2)
    scores: Array  # float64 (matrices, width, width)
    factors: Array  # like scores: their exponentials over that of the highest; 0: not allowed
    transposed: Array  # the factors, transposed
    expected: Array  # like scores: the sums of probabilities, still without the factors
    tops: Array  # float64 (matrices,): the highest score
    states: Array  # float64 (longest, width): the exponentials of the labels' scores
    masked: Array  # like states: without the labels that are not good
    alphas: Array  # float64 (longest, width)
    rows: Array  # float64 (ChainRow, width)
    scales: Array  # float64 (longest,)
    gradient: Array  # float64 (variables,): of the log-likelihood, less the features of gold paths
    logs: Array  # float64 (inputs,): log p(y | x); NaN: the numbers left the range of floats


class ChainSearch(NamedTuple):
    """The working space of search on chains without a lattice; see ``chain_search``."""

    states: Array  # int32 (2, state size)
    transitions: Array  # like the weights (labels + 1, labels): the last row is for the start
    values: Array  # float64 (longest + 1, labels)
    factors: Array  # float64 (2, width, width): exponentials of the start's row, of the transitions
    transposed: Array  # float64 (width, width): those of the transitions, transposed
    raised: Array  # float64 (longest, width): exponentials of the sums of positions
    alphas: Array  # like raised
    scales: Array  # float64 (longest,)
    rows: Array  # float64 (ChainRow, width)


class ChainRow(IntEnum):
    """Scratch rows of labels."""

    BETA = 0
    WEIGHTED_BETA = 1
    PROBABILITY = 2
    BEFORE = 3  # the label before the first step


CHAIN_INPUTS, POSITIONS, POSITION_FEATURES, MATRICES, CONTEXT_FEATURES = ChainUsed
BETA, WEIGHTED_BETA, PROBABILITY, BEFORE = ChainRow
