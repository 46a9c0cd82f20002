"""The arrays of exact search, and an enumeration for the columns of each of them."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from laso.engine.layout import Array

# --------------------------------------------------------------------------- the lattice


class Lattice(NamedTuple):
    """All paths of one input. Its nodes are pairs (key, signature), its edges are allowed steps."""

    states: Array  # int32 (nodes, state size)
    nodes: Array  # int64 (nodes, LatticeNode)
    reals: Array  # float64 (nodes, LatticeReal)
    values: Array  # float64 (nodes, lists): the best scores, or those of the two sides (PathSide)
    backs: Array  # int64 like values: lists * edge + index in the list of the edge's source; -1
    edges: Array  # int32 (edges, EdgeColumn); the edges of one source follow each other
    scores: Array  # float64 (edges,)
    terms: Array  # float64 (edges,): the summand of an edge at its target
    masses: Array  # float64 (edges,): the coefficient of an edge's features in an update
    slots: Array  # int64, a power of two: node + 1 by key and signature, open addressing
    order: Array  # int64 (nodes,): nodes by rising key, best first once they are ranked
    rounds: Array  # int64 (keys, RoundColumn)
    meta: Array  # int64 (LatticeMeta,)


class LatticeNode(IntEnum):
    """A node of the lattice."""

    SIGNATURE = 0
    FIRST_OUT = 1  # its edges are FIRST_OUT : END_OUT
    END_OUT = 2
    ON_GOOD_PATH = 3
    SLOT = 4
    ROUND = 5
    IS_GOAL = 6
    SIDE = 7  # which side of the node is ahead (PathSide)
    ARRIVED = 8  # when the best path arrived, to break ties
    ARRIVED_GOOD = 9  # the same for the best good path
    MADE_BY = 10  # the edge whose step made the state; -1 at the root
    NEXT_IN_ROUND = 11


class LatticeReal(IntEnum):
    """The real numbers of a node of the lattice."""

    FRONT_SCORE = 0
    LOGSUM = 1
    TOTAL = 2
    POSTERIOR = 3  # the posterior probability of the node, divided by TOTAL


class EdgeColumn(IntEnum):
    """An edge of the lattice."""

    SOURCE = 0
    EDGE_GROUP = 1
    EDGE_LABEL = 2
    EDGE_GOOD = 3
    TARGET = 4


class RoundColumn(IntEnum):
    """The nodes of one key."""

    FIRST_IN = 0  # a linked list of nodes (NEXT_IN_ROUND)
    LAST_IN = 1
    ORDER_BEGIN = 2  # they are order[ORDER_BEGIN:ORDER_END]
    ORDER_END = 3


class LatticeMeta(IntEnum):
    """The state of the lattice and of the algorithms on it."""

    N_NODES = 0
    N_EDGES = 1
    N_ROUNDS = 2
    ALGEBRA = 3
    LISTS = 4
    ARRIVALS = 5
    BUNDLE_BEGIN = 6  # a bundle: the edges of one source and group, which share their features
    BUNDLE_END = 7
    BUNDLE_GOOD = 8
    SUPPORT = 9
    PART = 10  # which features are gathered (FeaturePart)
    COUNTING = 11  # the value of every feature is taken for 1


class PathSide(IntEnum):
    """The two best paths to a node: one with a bad step, and one of good steps only."""

    BAD_SIDE = 0
    GOOD_SIDE = 1


class Algebra(IntEnum):
    """The operations of the recursion over the lattice; those that sum come last."""

    MAX_ALL = 0  # the best paths
    MAX_GOOD = 1  # the best paths of good steps
    MAX_BOTH = 2  # the best path of each side
    SUM_ALL = 3  # log of the sum over all paths
    SUM_GOOD = 4  # log of the sum over paths of good steps


SIGNATURE, FIRST_OUT, END_OUT, ON_GOOD_PATH, SLOT, ROUND, IS_GOAL, SIDE = tuple(LatticeNode)[:8]
ARRIVED, ARRIVED_GOOD, MADE_BY, NEXT_IN_ROUND = tuple(LatticeNode)[8:]
FRONT_SCORE, LOGSUM, TOTAL, POSTERIOR = LatticeReal
SOURCE, EDGE_GROUP, EDGE_LABEL, EDGE_GOOD, TARGET = EdgeColumn
FIRST_IN, LAST_IN, ORDER_BEGIN, ORDER_END = RoundColumn
N_NODES, N_EDGES, N_ROUNDS, ALGEBRA, LISTS, ARRIVALS, BUNDLE_BEGIN = tuple(LatticeMeta)[:7]
BUNDLE_END, BUNDLE_GOOD, SUPPORT, PART, COUNTING = tuple(LatticeMeta)[7:]
BAD_SIDE, GOOD_SIDE = PathSide
MAX_ALL, MAX_GOOD, MAX_BOTH, SUM_ALL, SUM_GOOD = Algebra

# --------------------------------------------------------------------------- results


class Paths(NamedTuple):
    """The best paths of many inputs, end to end."""

    steps: Array  # int32 (steps, StepColumn)
    ends: Array  # int64 (paths,): where in steps a path ends
    scores: Array  # float64 (paths,)
    counts: Array  # int64 (inputs,): the number of paths of each input
    heads: Array  # int64 (lists, HeadColumn): scratch
    used: Array  # int64 (Used,)


class Posteriors(NamedTuple):
    """The posterior probabilities of the edges of many inputs, end to end."""

    edges: Array  # int32 (edges, PosteriorColumn)
    probabilities: Array  # float64 (edges,)
    ends: Array  # int64 (inputs,): where in edges an input ends
    logs: Array  # float64 (inputs,): log Z
    used: Array  # int64 (Used,); there are no paths


class HeadColumn(IntEnum):
    """The end of a path: a goal, and the index in its list."""

    HEAD_NODE = 0
    HEAD_INDEX = 1


class PosteriorColumn(IntEnum):
    """A step, by the keys and the nodes before and after it."""

    KEY_BEFORE = 0
    KEY_AFTER = 1
    POSTERIOR_GROUP = 2
    POSTERIOR_LABEL = 3
    NODE_BEFORE = 4
    NODE_AFTER = 5


class Used(IntEnum):
    """How much of the arrays of results is in use."""

    STEPS_USED = 0
    PATHS_USED = 1
    INPUTS_USED = 2


HEAD_NODE, HEAD_INDEX = HeadColumn
KEY_BEFORE, KEY_AFTER, POSTERIOR_GROUP, POSTERIOR_LABEL, NODE_BEFORE, NODE_AFTER = PosteriorColumn
STEPS_USED, PATHS_USED, INPUTS_USED = Used

# --------------------------------------------------------------------------- gradients


class Gradient(NamedTuple):
    """A weighted sum of the features of edges, by rows of the weight table."""

    rows: Array  # int64 (slots,)
    values: Array  # float64 (slots, labels)
    block_values: Array  # float64 (blocks, labels): the coefficients of the features of a block
    block_marks: Array  # int64 (blocks,): 1 if the block has coefficients, 2 if a good step has it
    ints: Array  # int64 (GradientInt,)


class GradientInt(IntEnum):
    """The counters of a gradient."""

    USED_SLOTS = 0
    EXAMPLES = 1


class Ascent(NamedTuple):
    """The settings of gradient ascent; squares and clocks have the rows of the weight table."""

    mode: int  # LikelihoodMode
    support: int  # Support
    part: int  # FeaturePart
    adaptive: int  # AdaGrad
    average: int
    batch: int
    rate: float
    prior: float  # 1 / (variance * examples)
    first: float  # the initial value of AdaGrad's sums of squares
    gradient: Gradient
    squares: Array  # like the weights: AdaGrad's sums of squares
    clocks: Array  # float64 (rows,): the clock at which a row was last brought up to date
    clock: Array  # float64 (1,): the sum of the rates of all steps
    logs: Array  # float64: log p(y | x) of each example


class LikelihoodMode(IntEnum):
    """What is computed beside the log-likelihood."""

    VALUE_ONLY = 0
    FIXED_ROWS = 1  # the gradient by the rows that exist
    GOOD_ROWS = 2  # the expectations over good paths, with new rows
    ALL_ROWS = 3  # the expectations over all paths, with new rows
    GRADIENT_STEP = 4


class Support(IntEnum):
    """Which features may get new weight rows."""

    NO_NEW = 0
    ON_GOOD_PATHS = 1
    ON_ALL_PATHS = 2


class FeaturePart(IntEnum):
    """Which features enter a gradient."""

    ALL_FEATURES = 0
    IN_BLOCKS = 1
    OUTSIDE_BLOCKS = 2


USED_SLOTS, EXAMPLES = GradientInt
VALUE_ONLY, FIXED_ROWS, GOOD_ROWS, ALL_ROWS, GRADIENT_STEP = LikelihoodMode
NO_NEW, ON_GOOD_PATHS, ON_ALL_PATHS = Support
ALL_FEATURES, IN_BLOCKS, OUTSIDE_BLOCKS = FeaturePart
