"""The arrays of the compiled engine, and an enumeration for the columns of each of them.

An enumeration is the only place that orders the columns of an array, and its length is the width of
that array. Kernels use the members as module-level names; ``plain`` turns these into integers for
the compiler.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
NO_COSTS: Array = np.zeros(0)
NO_VECTORS: Array = np.zeros((0, 0), np.float32)
SLACK = 64  # entries beyond the promised size, so that a small overflow does no harm


def plain(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the namespace with integers for members of integer enumerations, as Numba wants it."""
    return {name: int(v) if isinstance(v, IntEnum) else v for name, v in namespace.items()}


# --------------------------------------------------------------------------- inputs and outputs


class Input(NamedTuple):
    """One input, as the methods of a problem receive it."""

    items: Array  # int32, one row per item (word, mention, ...) of this input
    pool: Array  # int64, common to all inputs: lists of any length that items point into
    values: Array  # float32, beside pool
    spec: Array  # int64, the constants of the problem
    costs: Array = NO_COSTS  # float64 (labels,): of missing each label; no entries: 1 for each
    vectors: Array = NO_VECTORS  # float32 (items, dimensions): dense vectors; no rows: none
    moves: Array = NO_VECTORS  # beside vectors that learn: where updates would move them


class Out(NamedTuple):
    """The buffer for the features of a step: one key each, and one value if they are weighted."""

    keys: Array  # int64
    values: Array  # float64


class Dataset(NamedTuple):
    """Many inputs and outputs, end to end."""

    items: Array  # int32 (n, columns)
    starts: Array  # int64: input i has the items starts[i] : starts[i + 1]
    pool: Array
    values: Array
    spec: Array
    outputs: Array  # int32
    output_starts: Array  # int64
    costs: Array = NO_COSTS
    vectors: Array = NO_VECTORS  # beside items
    moves: Array = NO_VECTORS


class Limit(IntEnum):
    """What ``limits(x, out)`` writes: the sizes of an input's arrays, then facts about its steps.

    The docstring of ``CompiledProblem.limits`` explains them.
    """

    STATE_SIZE = 0
    MAX_GROUPS = 1
    MAX_FEATURES = 2
    BLOCKS = 3
    STEPS = 4
    FACTORS = 5
    MAX_LABELS = 6
    PARTIAL_STATES = 7
    FEATURES_OF_STATE = 8
    FORM = 9
    VECTORS = 10


class Form(IntEnum):
    """What is known of all steps of an input; the last three all have keys by group."""

    ANY_FORM = 0
    KEY_OF_GROUP = 1
    SEGMENTS = 2
    CHAIN = 3


STATE_SIZE, MAX_GROUPS, MAX_FEATURES, BLOCKS, STEPS, FACTORS = tuple(Limit)[:6]
MAX_LABELS, PARTIAL_STATES, FEATURES_OF_STATE, FORM, VECTORS = tuple(Limit)[6:]
ANY_FORM, KEY_OF_GROUP, SEGMENTS, CHAIN = Form
SAME_LABEL = -1  # of a factor: it takes the step's own label


class Method(IntEnum):
    """The methods of a problem whose results the kernels check, by their names in lower case."""

    LIMITS = 0
    GROUPS = 1
    FACTORS = 2
    BLOCK = 3
    SUB_BLOCK = 4
    BLOCK_FEATURES = 5
    FEATURES = 6
    KEY = 7
    CHOICES = 8
    VECTORS = 9


IN_LIMITS, IN_GROUPS, IN_FACTORS, IN_BLOCK, IN_SUB_BLOCK, IN_BLOCK_FEATURES = tuple(Method)[:6]
IN_FEATURES, IN_KEY, IN_CHOICES, IN_VECTORS = tuple(Method)[6:]


class Status(IntEnum):
    """How a call of a kernel ended: done, failed, more room needed, or a promise broken."""

    DONE = 0
    UNREACHABLE = 1
    FAILED = 2
    MORE_NODES = 3
    MORE_ROWS = 4
    MORE_ENTRIES = 5
    MORE_SCRATCH = 6
    MORE_EDGES = 7
    MORE_SLOTS = 8
    BAD_COUNT = 9  # a method returned more (or fewer) than limits promised
    BAD_BLOCK = 10  # a block that does not exist, or a sub-block that is not below its block
    BAD_KEY = 11  # a round that does not exist, or that is not after the present one
    NO_CHAIN = 12  # the lattice has another form
    BAD_VALUE = 13  # the value of a feature is no finite number
    STOPPED = 14  # Ctrl-C ended the call, after the present node or input


DONE, UNREACHABLE, FAILED, MORE_NODES, MORE_ROWS, MORE_ENTRIES, MORE_SCRATCH = tuple(Status)[:7]
MORE_EDGES, MORE_SLOTS, BAD_COUNT, BAD_BLOCK, BAD_KEY, NO_CHAIN = tuple(Status)[7:13]
BAD_VALUE, STOPPED = tuple(Status)[13:]
FAULTS = (BAD_COUNT, BAD_BLOCK, BAD_KEY, BAD_VALUE)
MOST_FACTORS = 10_000  # of a step; more have no end


class StepColumn(IntEnum):
    """A row of a decoded path: the operator."""

    STEP_GROUP = 0
    STEP_LABEL = 1


STEP_GROUP, STEP_LABEL = StepColumn

# --------------------------------------------------------------------------- the weights


NO_FILTER: Array = np.zeros(0, np.uint8)
NO_LABELS: Array = np.zeros(0, np.int32)


class WeightTable(NamedTuple):
    """The weights. A hash table maps feature keys to rows.

    A dense row holds one weight per label. Where labels are many, rows are sparse: a row is a list
    of entries, which moves to a place of twice the size when there is no more room. A row with
    weights for many labels is full: it has an entry for each label, in their order.
    """

    slots: Array  # int64 (capacity, SlotColumn), open addressing
    v: Array  # float32 or float64 (rows, labels), or (entries, 1); weights are scale * v
    u: Array  # like v: the running sum of the weights is scales * v - u
    mark: Array  # int64 (rows,): first entry of a row in Delta, -1 for none
    ints: Array  # int64 (TableInt,)
    reals: Array  # float64 (TableReal,)
    precisions: Array  # like u: the sums of squared entries of Delta, for arow(); else no rows
    heads: Array  # int32 (rows, HeadColumn) if rows are sparse, (1, 0) if packed; else no rows
    bloom: Array = NO_FILTER  # uint8: a bit for each key, or for several; no entries: no filter
    entry_labels: Array = NO_LABELS  # int32 (entries,): their labels, which full rows do not need


class SlotColumn(IntEnum):
    """A slot of the hash table."""

    SLOT_KEY = 0
    SLOT_ROW = 1  # row + 1; 0 marks an empty slot


class HeadColumn(IntEnum):
    """Where the entries of a sparse row are."""

    HEAD_START = 0
    HEAD_LENGTH = 1


class TableInt(IntEnum):
    """The counters of a weight table."""

    ROWS = 0
    GENERATION = 1  # number of updates, plus 1
    TICKS = 2  # number of examples in the running sum
    BITS = 3  # of the keys, for the hashing trick; 0: all
    LABELS = 4  # number of labels
    USED = 5  # number of entries of sparse rows, those left behind by rows that moved included


class TableReal(IntEnum):
    """The real numbers of a weight table."""

    SCALE = 0
    SCALES = 1  # the running sum of the scale
    SQUARE = 2  # the squared norm of the weights
    MARGIN = 3


SLOT_KEY, SLOT_ROW = SlotColumn
HEAD_START, HEAD_LENGTH = HeadColumn
ROWS, GENERATION, TICKS, BITS, LABELS, USED = TableInt
SAVED_INTS = 4  # counters that model files have
SCALE, SCALES, SQUARE, MARGIN = TableReal

# --------------------------------------------------------------------------- beam search


class Run(NamedTuple):
    """The working space of one search: its nodes, its agenda and its buffers.

    The agenda has one list of nodes per round, best first. Two more lists follow (see ExtraList).
    """

    limits: Array  # int64 (Limit,): those of the present input
    states: Array  # int32 (nodes, state size)
    ints: Array  # int64 (nodes, NodeColumn)
    reals: Array  # float64 (nodes, NodeReal)
    agenda: Array  # int64 (rounds + len(ExtraList), FIRST + width): AgendaColumn, then nodes
    groups: Array  # int32 (MAX_GROUPS + SLACK,)
    choices: Array  # int32 (labels + SLACK,): the labels of a group that may be allowed
    noted: Array  # int64 (width, FIRST_NOTED + 2 * MOST_NOTED): the steps of a round's nodes
    noted_sums: Array  # like the weights (width, MOST_NOTED): the sums of these steps
    group_bounds: Array  # float64, beside groups: upper bounds on their sums
    best_scores: Array  # float64 (width,): the best scores of a node's steps
    out: Out  # (MAX_FEATURES + SLACK,), or with room for the features of several bundles
    rows: Array  # int64, beside out: the weight rows of the features
    caps: Array  # uint8 (a power of two,): levels above the weights of keys; a single one: unknown
    expanded: Array  # int64 (rounds, FIRST_EXPANDED + width): ExpandedColumn, then nodes
    sums: Array  # like the weights (labels,): the scores of a group
    bundle_names: Array  # int64: what the rows of bundle_sums hold (see kernels/bundles.py)
    bundle_sums: Array  # like the weights (blocks + factors or steps + named bundles, labels)
    bundle_maxima: Array  # float64, beside bundle_sums: the highest sum of a label
    block_owners: Array  # int64 (blocks,): the factor of an update that used the block last
    factor_rows: Array  # int64 (factors + 1, FactorColumn); the last row is the group's own
    waiting: Array  # int64 (some, WaitingColumn): bundles whose features are looked up together
    block_stack: Array  # int64 (blocks + 1, StackColumn): from a block down to its sub-blocks
    meta: Array  # int64 (RunMeta,)
    delta: Array  # int64 (entries, DeltaColumn): the entries of Delta
    values: Array  # float64 (entries,): their values
    compared: Array  # int64 (Side, some): the nodes that an update compares
    coefficients: Array  # float64, beside compared: the weight of each of these nodes in Delta
    scratch: Array  # int64 (ScratchRow, some)
    losses: Array  # float64 (LossColumn,): the loss of the bad nodes in Delta


class NodeColumn(IntEnum):
    """A node of the search."""

    PARENT = 0
    GROUP = 1
    LABEL = 2
    GOOD = 3
    DEPTH = 4
    KEY = 5  # the round in which the node competes
    GOAL = 6  # -1: the state is not written yet
    ORDER = 7  # when the node was dequeued; -1: not yet
    PATHS = 8  # the number of compared paths through the node


class NodeReal(IntEnum):
    """The real numbers of a node."""

    G = 0
    SCORE = 1
    LOSS = 2
    MASS = 3  # the coefficient of the features of the step to the node in Delta


class AgendaColumn(IntEnum):
    """The head of a list of the agenda; its nodes follow."""

    HELD = 0
    OFFERED = 1  # good nodes that were offered, whether or not they are held
    BEST = 2  # the best node dequeued in the round
    BEST_GOOD = 3  # the same, in a search over good nodes


class ExpandedColumn(IntEnum):
    """The head of a list of expanded nodes of a round, whose steps later rounds take."""

    EXPANDED = 0  # the number of nodes
    LENGTHS = 1  # the number of groups of each of them


class NotedColumn(IntEnum):
    """The head of a list of noted steps; their groups and labels follow."""

    NOTED = 0  # the number of steps; -1: they are too many


class ExtraList(IntEnum):
    """The lists of the agenda after the rounds, counted from the first of them."""

    OPEN_ROUND = 0
    WAITING_GOALS = 1


class FactorColumn(IntEnum):
    """The sums of a factor."""

    SUMMED_IN = 0  # the expansion in which they were computed
    SUMS_ROW = 1  # their row in bundle_sums; -1: the factor has no features


class WaitingColumn(IntEnum):
    """A bundle whose features are looked up together with those of others."""

    WAITING_FOR = 0  # its group or block
    WAITING_NAME = 1
    WAITING_ROW = 2  # the row of bundle_sums for the sums of these features
    WAITING_FIRST = 3  # where its features begin in out; -1: their sums are known
    WAITING_COUNT = 4  # the number of its features that may have weights


class StackColumn(IntEnum):
    """A block on the way down to its sub-blocks."""

    STACK_BLOCK = 0
    NEXT_SUB_BLOCK = 1


class DeltaColumn(IntEnum):
    """An entry of Delta."""

    DELTA_ROW = 0
    DELTA_LABEL = 1
    DELTA_NEXT = 2  # the next entry of the same row, -1: none
    DELTA_KEY = 3  # the feature key of the row
    DELTA_ENTRY = 4  # the place of its weight, if rows are sparse


class Side(IntEnum):
    """The two sides of an update."""

    SIBLINGS = 0
    CONTENDERS = 1


class ScratchRow(IntEnum):
    """Lists for one computation."""

    FRONTIER = 0
    PATH = 1
    BLOCK_CODES = 2


class LossColumn(IntEnum):
    """The loss of the bad nodes in Delta, to be divided by their coefficients."""

    TOTAL_LOSS = 0
    TOTAL_MASS = 1


class RunMeta(IntEnum):
    """The state of a search."""

    NODES = 0
    ROUND_AT = 1
    ROUND_END = 2
    WAITING = 3
    QUEUED = 4
    LOW = 5
    GOODS = 6
    VERSION = 7  # of the weights; block sums of other versions are stale
    DEQUEUED = 8
    ENTRIES = 9
    PENDING = 10
    GENERATED = 11
    ORACLE = 12
    STACK_TOP = 13
    EXPANSION = 14
    FAULT = 15  # DONE, or the status of the first broken promise
    FAULT_METHOD = 16
    FAULT_VALUE = 17
    FAULT_LOW = 18  # the value should be at least this one
    FAULT_HIGH = 19  # and at most this one
    ERRORS = 20  # the number of errors whose differences are in Delta
    MOST_FEATURES = 21  # the largest number of features that one call writes
    FIRST_NAMED = 22  # the first row of named bundles
    NAMED_MASK = 23  # the number of their rows less 1; of a page, where factors have names
    WEIGHTS = 24  # like VERSION, but the same for the next input; named bundles of others are stale
    DROPOUT = 25  # the share of the features of blocks to leave out, of DROPOUT_SCALE; 0: none
    DROPOUT_SEED = 26
    VISIT = 27  # a number drawn for the present visit of an example
    LISTED = 28  # the number of blocks that wait
    LISTED_FEATURES = 29  # the number of their features
    RAISED = 30  # how many caps were raised since they were chosen
    CAPPED_UPDATES = 31  # GENERATION and TICKS of the table for which the caps are valid
    CAPPED_TICKS = 32
    CAPPED_AT = 33  # where its weights are in memory
    CAPS_WANTED = 34  # whether the caps are to be chosen
    NOTES = 35  # the place in its round of the node whose steps are noted; -1: none
    STOP = 36  # another thread asks the call to end (see native/waiting.py)
    BLOCKS_VISITED = 37  # of one step, those of all ways from its block down counted apart


PARENT, GROUP, LABEL, GOOD, DEPTH, KEY, GOAL, ORDER, PATHS = NodeColumn
G, SCORE, LOSS, MASS = NodeReal
HELD, OFFERED, BEST, BEST_GOOD = AgendaColumn
FIRST = len(AgendaColumn)
EXPANDED, LENGTHS = ExpandedColumn
FIRST_EXPANDED = len(ExpandedColumn)
(NOTED,) = NotedColumn
FIRST_NOTED = len(NotedColumn)
OPEN_ROUND, WAITING_GOALS = ExtraList
EXTRA_LISTS = len(ExtraList)
SUMMED_IN, SUMS_ROW = FactorColumn
WAITING_FOR, WAITING_NAME, WAITING_ROW, WAITING_FIRST, WAITING_COUNT = WaitingColumn
STACK_BLOCK, NEXT_SUB_BLOCK = StackColumn
DELTA_ROW, DELTA_LABEL, DELTA_NEXT, DELTA_KEY, DELTA_ENTRY = DeltaColumn
SIBLINGS, CONTENDERS = Side
FRONTIER, PATH, BLOCK_CODES = ScratchRow
TOTAL_LOSS, TOTAL_MASS = LossColumn
META = tuple(RunMeta)
NODES, ROUND_AT, ROUND_END, WAITING, QUEUED, LOW, GOODS, VERSION, DEQUEUED, ENTRIES = META[:10]
PENDING, GENERATED, ORACLE, STACK_TOP, EXPANSION, FAULT, FAULT_METHOD, FAULT_VALUE = META[10:18]
FAULT_LOW, FAULT_HIGH, ERRORS, MOST_FEATURES, FIRST_NAMED, NAMED_MASK, WEIGHTS, DROPOUT = META[
    18:26
]
DROPOUT_SEED, VISIT, LISTED, LISTED_FEATURES, RAISED = META[26:31]
CAPPED_UPDATES, CAPPED_TICKS, CAPPED_AT, CAPS_WANTED, NOTES, STOP, BLOCKS_VISITED = META[31:]
MOST_NOTED = 128  # steps of a node
DROPOUT_SCALE = 1 << 31
MOST_VISITED = 1 << 20  # blocks below one step
LAST_FEATURES, NO_FEATURES = -1, -2  # values of STACK_TOP when the stack is empty


class Oracle(IntEnum):
    """What a search knows of the gold output, and what it does with it."""

    NO_GOLD = 0
    WITH_GOLD = 1
    ONLY_GOOD = 2


NO_GOLD, WITH_GOLD, ONLY_GOOD = Oracle
