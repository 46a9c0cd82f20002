"""The arrays that the compiled engine works on, and the names of their columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]


class Input(NamedTuple):
    """One input as a problem's functions see it."""

    items: Array  # int32, one row per item (word, mention, ...) of this input
    pool: Array  # int64, shared by all inputs: lists of any length that items point into
    values: Array  # float32, beside pool
    spec: Array  # int64, the problem's constants


class Out(NamedTuple):
    """Where a problem writes the features of a step: a key each, and a value if it is weighted."""

    keys: Array  # int64
    values: Array  # float64


class Corpus(NamedTuple):
    """Many inputs and outputs, end to end."""

    items: Array  # int32 (n, columns)
    starts: Array  # int64: input i has the items starts[i] : starts[i + 1]
    pool: Array
    values: Array
    spec: Array
    outputs: Array  # int32
    output_starts: Array  # int64


class Table(NamedTuple):
    """The weights: keys to rows by open addressing, a row holds one weight for each label."""

    slots: Array  # int64 (capacity, 2): key, row + 1; 0 marks an empty slot
    v: Array  # float32 or float64 (rows, labels); the weights are scale * v
    u: Array  # like v: the running sum of the weights is scales * v - u
    mark: Array  # int64 (rows,): first entry of a row in Delta, -1 for none
    ints: Array  # int64: ROWS, GENERATION, TICKS, BITS
    reals: Array  # float64: SCALE, SCALES, SQUARE, MARGIN


ROWS, GENERATION, TICKS, BITS = range(4)
SCALE, SCALES, SQUARE, MARGIN = range(4)


class Run(NamedTuple):
    """What one search works in: the nodes made, the agenda, and scratch space.

    The agenda is a list of nodes for each round, best first; its rows are HELD, OFFERED, the best
    node dequeued in a search over all and over good nodes, then the nodes. Two more lists are the
    open round and the goals that wait.
    """

    states: Array  # int32 (nodes, state size)
    ints: Array  # int64 (nodes, 9): PARENT ... BELOW
    reals: Array  # float64 (nodes, 4): G ... MASS
    lists: Array  # int64 (rounds + 2, FIRST + width)
    groups: Array  # int32
    out: Out
    rows: Array  # int64, beside out: the rows of the features that have one
    sums: Array  # like the weights (labels,)
    cells: Array  # like the weights (cells + others + 1, labels): also groups that have no cell
    tops: Array  # float64, beside cells: the highest sum of a label that operators have
    stamps: Array  # int64 (cells,): the version at which a cell was summed
    owners: Array  # int64 (cells,): the step of an update that was last seen there
    others: Array  # int64 (others + 1, 2): the expansion in which one was summed, and its row
    stack: Array  # int64 (cells + 1, 2): cells on the way down to their parts, and the next part
    meta: Array  # int64: NODES ... PENDING
    delta: Array  # int64 (entries, 3): row, label, next entry of the row
    values: Array  # float64 (entries,): the entries of Delta
    scratch: Array  # int64 (5, some): lists of nodes SIBS, WRONG, NEXT, PATH, and of CELL
    weights: Array  # float64 (2, some): what the nodes of SIBS and WRONG count in an update


PARENT, GROUP, LABEL, GOOD, DEPTH, KEY, GOAL, ORDER, BELOW = range(9)
G, SCORE, LOSS, MASS = range(4)
SIBS, WRONG, NEXT, PATH, CELL = range(5)
HELD, OFFERED, BEST, BEST_GOOD, FIRST = range(5)
(
    NODES,
    ROUND_AT,
    ROUND_END,
    WAITING,
    QUEUED,
    LOW,
    GOODS,
    VERSION,
    DEQUEUED,
    ENTRIES,
    PENDING,
    GENERATED,
    KNOWS,
    TOP,
    EXPANSION,
    META,
) = range(16)
LAST_FEATURES, NO_FEATURES = -1, -2  # values of TOP when the stack is empty


class Options(NamedTuple):
    """Queue, update and strategy as numbers."""

    kind: int  # ROUNDS or RANKED
    keyed: int  # rounds by the problem's key instead of depth
    width: int
    update: int  # PERCEPTRON, ALMA, PASSIVE_AGGRESSIVE
    weighting: int  # UNIFORM, LOSS_PROPORTIONAL, WORST
    strategy: int  # LASO, EARLY, STANDARD, MAX_VIOLATION
    normalize_always: int
    alpha: float
    b: float
    c: float
    margin: float
    by_loss: int = 0  # steps are as long as the loss of the bad nodes says


ROUNDS, RANKED = range(2)
PERCEPTRON, ALMA, PASSIVE_AGGRESSIVE = range(3)
UNIFORM, LOSS_PROPORTIONAL, WORST = range(3)
LASO, EARLY, STANDARD, MAX_VIOLATION = range(4)
UNKNOWN_Y, KNOWN_Y, ONLY_GOOD = range(3)  # what a search knows of the output wanted

# What limits(x, out) writes, and how many they are.
STATE_SIZE, MAX_GROUPS, MAX_FEATURES, CELLS, STEPS, OTHERS, LIMITS = range(7)
SAME = -1  # of a group that another rests on: the label is that of the step

# How a call ended.
DONE, UNREACHABLE, FAILED, MORE_NODES, MORE_ROWS, MORE_ENTRIES, MORE_SCRATCH = range(7)
