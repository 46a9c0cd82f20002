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
    "labels",
    "factors",
    "n_choices",
    "choice",
    "block",
    "sub_block",
    "block_features",
    "features",
    "features_of_state",
    "name",
    "allowed",
    "apply",
    "is_goal",
    "is_good",
    "loss",
    "key",
    "signature",
)
FLAGS = (
    "WEIGHTED",
    "FULL",
    "FACTORED",
    "NARROWED",
    "NAMED",
    "SHARED",
    "SEGMENTS",
    "KEY_OF_GROUP",
    "WHOLE",
    "CAPPED",
)
REQUIRED = ("limits", "initial", "features", "apply", "is_goal", "is_good")


class CompiledProblem:
    """Base class of compiled problems: override these static methods in the Numba subset of Python.

    A state is a row of int32. An operator is a pair (group, label). A group is a choice whose
    labels share their features: every feature key owns a row of weights, one for each label, so
    that one look-up scores all labels of a group. ``x`` is an ``Input``, ``y`` a row of int32.

    Features come in bundles: those of a block, which many steps of an input share, and those of a
    group in a state. The engine sums a block, with its sub-blocks, once for an input while the
    weights stay the same, and a bundle that has a ``name`` once for all inputs.

    Where a step makes several decisions at once, its score is a sum of factors. ``factors`` names
    further groups whose features the step has too, each with a label of its own. The engine
    computes the sum of a factor once per state, and skips a group if its factors show that none of
    its steps can enter the queue. So a product of many labels costs little more than its factors.
    Factors also divide the features of a step into bundles that other states share.

    The engine calls ``is_good`` and ``key`` before ``allowed``, so they must accept steps that are
    not allowed.

    Attributes
    ----------
    weighted : bool, default=False
        Whether ``features`` and ``block_features`` write values beside their keys.
    costs : int, default=-1
        Index in ``spec`` of the class costs' offset; -1 if costs are not supported.
    chain : int, default=-1
        Index in ``spec`` of a flag that makes exact search faster; -1: there is none. Where it is
        not 0, the problem is a linear chain: step t labels item t, in group 0, with any label. Its
        block is t. Its signature and its only other feature depend on the previous label alone.
    partial_states : bool, default=False
        Whether states may be written in part, because no method reads what was not written. By
        default ``initial`` and ``apply`` must write all of a state, and the nodes of a beam that
        have equal states are scored once.
    key_of_group : bool, default=False
        Whether the key of a step is the same for all labels of its group. Then groups whose factors
        show that none of their steps can enter the queue are skipped in a beam by key too.
    segments : bool, default=False
        Whether a problem with names of blocks promises this, so that search in a beam by key is
        faster: the key of a state is the number of items that it covers, and the groups of a step
        are the numbers of items that it adds, from 1 on. All items are covered at a goal, and only
        there. Every step has a block. Block, choices and number of groups are the same for all
        states of a key.
    """

    weighted = False
    costs = -1
    chain = -1
    partial_states = False
    key_of_group = False
    segments = False

    @staticmethod
    def limits(x: Any, out: Any) -> None:
        """Write upper bounds for x: STATE_SIZE, MAX_GROUPS, MAX_FEATURES, BLOCKS, STEPS, FACTORS.

        MAX_FEATURES bounds the features that one call of ``features`` or ``block_features`` writes.
        STEPS bounds the length of a path and the key. FACTORS, 0 by default, is the number of
        groups that only serve as factors: they have the numbers below it, and the groups that
        ``groups`` writes have the numbers from there on.
        """
        raise NotImplementedError

    @staticmethod
    def initial(x: Any, state: Any) -> None:
        """Write the initial state, all of it: the engine reuses rows (but see partial_states)."""
        raise NotImplementedError

    @staticmethod
    def groups(x: Any, state: Any, out: Any) -> int:
        """Write the groups of the state's operators, and return their number; by default 0 only."""
        out[0] = 0
        return 1

    @staticmethod
    def labels(x: Any, width: int) -> int:
        """Return the number of labels of operators; by default the width of a row of weights."""
        return width

    @staticmethod
    def factors(x: Any, state: Any, group: int, i: int) -> tuple[int, int]:
        """Return group (below FACTORS) and label of a step's i-th factor; group -1: no more.

        A factor with SAME_LABEL takes the step's own label.
        """
        return -1, SAME_LABEL

    @staticmethod
    def n_choices(x: Any, state: Any, group: int) -> int:
        """Return the number of labels of a group that ``choice`` lists; -1, by default: all."""
        return -1

    @staticmethod
    def choice(x: Any, state: Any, group: int, i: int) -> int:
        """Return the i-th label of a group that may be allowed, in ascending order."""
        return i

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
    def features(x: Any, state: Any, group: int, out: Any) -> int:
        """Write the other features (out.keys; out.values if weighted), and return their number."""
        raise NotImplementedError

    @staticmethod
    def features_of_state(x: Any) -> bool:
        """Return whether ``features`` writes the same for all groups of a state; used by segments.

        Their weights are summed once for a state then. By default they may differ.
        """
        return False

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
        """Write the successor of the state, all of it (but see partial_states)."""
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
    own = problem.__module__.startswith("laso.")
    return not own or problem.__module__.startswith("laso.examples.")


def is_narrowed(problem: type[CompiledProblem]) -> bool:
    """Return whether a problem lists the labels of groups."""
    return problem.n_choices is not CompiledProblem.n_choices


def is_named(problem: type[CompiledProblem]) -> bool:
    """Return whether bundles of a problem may have names."""
    return problem.name is not CompiledProblem.name


def is_shared(problem: type[CompiledProblem]) -> bool:
    """Return whether blocks of a problem may have the same features in many inputs."""
    return is_named(problem) and not is_factored(problem)


def has_segments(problem: type[CompiledProblem]) -> bool:
    """Return whether the rounds of a beam by key may be filled when they open."""
    return problem.segments and is_shared(problem) and not problem.weighted


def is_factored(problem: type[CompiledProblem]) -> bool:
    """Return whether the steps of a problem have further factors."""
    return problem.factors is not CompiledProblem.factors


def has_named_factors(problem: type[CompiledProblem]) -> bool:
    """Return whether factors of a problem may have the same features in many states."""
    return is_named(problem) and is_factored(problem)


def is_capped(problem: type[CompiledProblem]) -> bool:
    """Return whether bounds on weights can prune steps of a problem."""
    blocks = is_factored(problem) and not has_named_factors(problem) and not problem.weighted
    return blocks or has_segments(problem)


def flags_of(problem: type[CompiledProblem], *, full: bool) -> dict[str, bool]:
    """Return the constants by which kernels leave out what a problem does not need.

    ``full`` includes the strategies that decode in full before they update.
    """
    weighted, segments = bool(problem.weighted), has_segments(problem)
    return {
        "WEIGHTED": weighted,
        "FULL": full,
        "FACTORED": is_factored(problem),
        "NARROWED": is_narrowed(problem),
        "NAMED": has_named_factors(problem),
        "SHARED": is_shared(problem) and not weighted,
        "SEGMENTS": segments,
        "KEY_OF_GROUP": bool(problem.key_of_group),
        "WHOLE": not problem.partial_states and not segments,
        "CAPPED": is_capped(problem),
    }
