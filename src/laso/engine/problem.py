"""A search problem for the compiled engine: small static methods over integers, written once.

The same class runs compiled, and uncompiled in the reference engine (``reference.py``).
"""

from __future__ import annotations

from typing import Any

from laso.engine.layout import SAME_LABEL

NAMES = (
    "limits",
    "initial",
    "groups",
    "factors",
    "choices",
    "block",
    "sub_block",
    "block_features",
    "vectors",
    "features",
    "name",
    "allowed",
    "apply",
    "is_goal",
    "is_good",
    "loss",
    "key",
    "signature",
)
FLAGS = ("WEIGHTED", "FULL", "FACTORED", "NARROWED", "NAMED", "DENSE")
REPLACED = {
    "labels": "out[MAX_LABELS] in limits",
    "n_choices": "choices",
    "choice": "choices",
    "features_of_state": "out[FEATURES_OF_STATE] in limits",
    "partial_states": "out[PARTIAL_STATES] in limits",
    "key_of_group": "out[FORM] = KEY_OF_GROUP in limits",
    "segments": "out[FORM] = SEGMENTS in limits",
    "chain": "out[FORM] = CHAIN in limits",
    "costs": "a loss that calls cost_of",
}
"""What problems had in earlier versions, and what has taken its place."""
REQUIRED = ("limits", "initial", "features", "apply", "is_goal", "is_good")


class CompiledProblem:
    """Base class of compiled problems: override these static methods in the Numba subset of Python.

    A state is a row of int32. An operator is a pair (group, label). A group is a choice whose
    labels share their features: every feature key owns a row of weights, one for each label, so
    that one look-up scores all labels of a group. ``x`` is an ``Input``, ``y`` a row of int32.

    Features come in bundles: those of a block, which many steps of an input share, and those of a
    group in a state. The engine sums a block, with its sub-blocks, once for an input while the
    weights stay the same, and a bundle that has a ``name`` once for all inputs.

    A block may have dense vectors beside its features: rows of ``x.vectors``. Each adds the product
    of the vector and a matrix of weights, which has a row for each dimension and a column for each
    label. These rows are rows of weights like those of features, and a dimension is the value.

    Where a step makes several decisions at once, its score is a sum of factors. ``factors`` names
    further groups whose features the step has too, each with a label of its own. The engine
    computes the sum of a factor once per state, and skips a group if its factors show that none of
    its steps can enter the queue. So a product of many labels costs little more than its factors.
    Factors also divide the features of a step into bundles that other states share.

    The engine calls ``is_good`` and ``key`` before ``allowed``, so they must accept steps that are
    not allowed. A ``loss`` that calls ``cost_of`` supports class weights.

    Attributes
    ----------
    weighted : bool, default=False
        Whether ``features`` and ``block_features`` write values beside their keys.
    """

    weighted = False

    @staticmethod
    def limits(x: Any, out: Any) -> None:
        """Write how large the arrays for x must be, and what the engine may rely on.

        What is not written keeps its default. The first seven are upper bounds.

        STATE_SIZE
            The width of a state.
        MAX_GROUPS, default=1
            The number of groups that ``groups`` writes.
        MAX_FEATURES
            The number of features that one call of ``features`` or ``block_features`` writes.
        BLOCKS, default=0
            The number of blocks.
        STEPS, default=the number of items
            The length of a path, and the key.
        FACTORS, default=0
            The number of groups that only serve as factors. They have the numbers below it, and
            the groups that ``groups`` writes have the numbers from there on.
        MAX_LABELS, default=the width of a row of weights
            The number of labels of operators.
        PARTIAL_STATES, default=0
            1: states may be written in part, because no method reads what was not written. By
            default the nodes of a beam that have equal states are scored once.
        FEATURES_OF_STATE, default=0
            1: ``features`` writes the same for all groups of a state; used by SEGMENTS, which then
            sums them once for a state.
        FORM, default=ANY_FORM
            KEY_OF_GROUP: the key of a step is the same for all labels of its group. Then groups
            whose factors show that none of their steps can enter the queue are skipped in a beam by
            key too. Each of the next two is faster still, and promises this too.

            SEGMENTS, for problems with names of blocks: the key of a state is the number of items
            that it covers, and the groups of a step are the numbers of items that it adds, from 1
            on. All items are covered at a goal, and only there. Every step has a block. Block,
            choices and number of groups are the same for all states of a key.

            CHAIN, for exact search: step t labels item t, in group 0, with any label. Its block is
            t. Its signature and its only other feature depend on the previous label alone.
        VECTORS, default=0
            The number of vectors of a block.
        """
        raise NotImplementedError

    @staticmethod
    def initial(x: Any, state: Any) -> None:
        """Write the initial state, all of it: the engine reuses rows (but see PARTIAL_STATES)."""
        raise NotImplementedError

    @staticmethod
    def groups(x: Any, state: Any, out: Any) -> int:
        """Write the groups of the state's operators, and return their number; by default 0 only."""
        out[0] = 0
        return 1

    @staticmethod
    def factors(x: Any, state: Any, group: int, i: int) -> tuple[int, int]:
        """Return group (below FACTORS) and label of a step's i-th factor; group -1: no more.

        A factor with SAME_LABEL takes the step's own label.
        """
        return -1, SAME_LABEL

    @staticmethod
    def choices(x: Any, state: Any, group: int, out: Any) -> int:
        """Write the labels of a group that may be allowed, in ascending order; their number.

        -1, by default: all labels may be.
        """
        return -1

    @staticmethod
    def block(x: Any, state: Any, group: int) -> int:
        """Return the step's block, a number below BLOCKS; -1: none."""
        return -1

    @staticmethod
    def sub_block(x: Any, block: int, i: int) -> int:
        """Return the i-th sub-block of a block, which has a smaller number; -1: no more."""
        return -1

    @staticmethod
    def block_features(x: Any, block: int, out: Any) -> int:
        """Write the block's own features, and return their number; they depend on x and block."""
        return 0

    @staticmethod
    def vectors(x: Any, block: int, i: int) -> tuple[int, int]:
        """Return the i-th dense vector of a block: its row in x.vectors, and its weights' number.

        Vectors with the same number share their weights; the number -1 means: no more. A row that
        does not exist adds nothing.
        """
        return -1, -1

    @staticmethod
    def features(x: Any, state: Any, group: int, out: Any) -> int:
        """Write the other features (out.keys; out.values if weighted), and return their number."""
        raise NotImplementedError

    @staticmethod
    def name(x: Any, state: Any, group: int, block: int) -> int:
        """Return a name for a bundle of features; 0, by default: it has none.

        The bundle is that of a block's own features; state and group say nothing then. If the block
        is -1, it is what ``features`` writes for a group, asked for of factors without a block.
        Bundles of equal names must have equal features, also in other inputs; the engine then sums
        them once while the weights stay the same. Names of blocks change rounding: the sum of a
        block's own features, and that of the features in no block, are each added as one number.
        """
        return 0

    @staticmethod
    def allowed(x: Any, state: Any, group: int, label: int) -> bool:
        """Return whether the operator applies to the state."""
        return True

    @staticmethod
    def apply(x: Any, state: Any, group: int, label: int, new: Any) -> None:
        """Write the successor of the state, all of it (but see PARTIAL_STATES)."""
        raise NotImplementedError

    @staticmethod
    def is_goal(x: Any, state: Any) -> bool:
        """Return whether the state is a complete output."""
        raise NotImplementedError

    @staticmethod
    def is_good(x: Any, y: Any, state: Any, group: int, label: int) -> bool:
        """Return whether y is still reachable after this step from a y-good state."""
        raise NotImplementedError

    @staticmethod
    def loss(
        x: Any, y: Any, state: Any, group: int, label: int, was_good: bool, good: bool
    ) -> float:
        """Return the loss of the step; by default 1 for a step that leaves the good path."""
        return 1.0 if was_good and not good else 0.0

    @staticmethod
    def key(x: Any, state: Any, group: int, label: int) -> int:
        """Return the round in which the successor competes; it rises along a path from 0."""
        return -1

    @staticmethod
    def signature(x: Any, state: Any, group: int, label: int) -> int:
        """Return a number for the successor; exact search joins states of equal key and signature.

        They must have the same future.
        """
        return -1


def is_foreign(problem: type[CompiledProblem]) -> bool:
    """Return whether a problem is a user's own; the examples count as such."""
    is_ours = problem.__module__.startswith("laso.")
    return not is_ours or problem.__module__.startswith("laso.examples.")


def is_narrowed(problem: type[CompiledProblem]) -> bool:
    """Return whether a problem lists the labels of groups."""
    return problem.choices is not CompiledProblem.choices


def is_named(problem: type[CompiledProblem]) -> bool:
    """Return whether bundles of a problem may have names."""
    return problem.name is not CompiledProblem.name


def is_shared(problem: type[CompiledProblem]) -> bool:
    """Return whether blocks of a problem may have the same features in many inputs."""
    return is_named(problem) and not is_factored(problem) and not problem.weighted


def is_factored(problem: type[CompiledProblem]) -> bool:
    """Return whether the steps of a problem have further factors."""
    return problem.factors is not CompiledProblem.factors


def has_named_factors(problem: type[CompiledProblem]) -> bool:
    """Return whether factors of a problem may have the same features in many states."""
    return is_named(problem) and is_factored(problem)


def is_dense(problem: type[CompiledProblem]) -> bool:
    """Return whether blocks of a problem have dense vectors."""
    return problem.vectors is not CompiledProblem.vectors


def is_capped(problem: type[CompiledProblem]) -> bool:
    """Return whether bounds on weights can prune steps of a problem."""
    return is_named(problem) != is_factored(problem) and not problem.weighted


def flags_of(problem: type[CompiledProblem], *, full: bool) -> dict[str, bool]:
    """Return the constants by which kernels leave out what a problem does not need.

    ``full`` includes the strategies that decode in full before they update.
    """
    return {
        "WEIGHTED": bool(problem.weighted),
        "FULL": full,
        "FACTORED": is_factored(problem),
        "NARROWED": is_narrowed(problem),
        "NAMED": is_named(problem),
        "DENSE": is_dense(problem),
    }
