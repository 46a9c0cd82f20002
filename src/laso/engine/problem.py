"""A search problem for the compiled engine: small functions over integers, written once.

The same class runs compiled, and uncompiled in the reference engine (``reference.py``).
"""

from __future__ import annotations

from typing import Any

from laso.engine.layout import SAME

NAMES = (
    "limits",
    "initial",
    "groups",
    "labels",
    "rests",
    "cell",
    "part",
    "shared",
    "features",
    "allowed",
    "apply",
    "is_goal",
    "is_good",
    "loss",
    "key",
    "signature",
)
REQUIRED = ("limits", "initial", "features", "apply", "is_goal", "is_good")


class CompiledProblem:
    """Override these static methods, each in the Numba subset of Python.

    A state is a row of int32. An operator is a pair (group, label): the groups of a state are the
    choices that share features, and every feature key owns a row of weights, one for each label,
    so that one look-up scores all labels of a group. ``x`` is an ``Input``, ``y`` a row of int32.

    What many steps have in common goes into cells: the sum over a cell is that of its own features
    and of its parts, computed once for an input while the weights stay as they are.

    Where a step makes several decisions at once, groups rest on others: ``rests`` names groups
    whose features its steps have too, each with a label of its own. Their sums are computed once a
    state, and a group is passed over if they tell that none of its steps is good enough for the
    queue, so that a product of many labels costs little more than its factors.

    ``is_good`` and ``key`` are asked before ``allowed``, so they must bear steps that are not.

    ``weighted`` says that ``features`` and ``shared`` write values beside their keys. ``costs`` is
    where in spec a problem is told the place of the losses of labels, if it can be told.
    """

    weighted = False
    costs = -1

    @staticmethod
    def limits(x: Any, out: Any) -> None:
        """Write STATE_SIZE, MAX_GROUPS, MAX_FEATURES, CELLS, STEPS: what may be needed for x.

        MAX_FEATURES bounds what one call of ``shared`` or ``features`` writes, STEPS the length of
        a path, and the key if there is one. OTHERS may follow: how many groups there are to rest
        on. They have the numbers below it, and those that ``groups`` writes begin there.
        """
        raise NotImplementedError

    @staticmethod
    def initial(x: Any, state: Any) -> None:
        """Write the start state (all of it: the row is used again)."""
        raise NotImplementedError

    @staticmethod
    def groups(x: Any, state: Any, out: Any) -> int:
        """Write the groups that apply; how many. By default there is one, 0."""
        out[0] = 0
        return 1

    @staticmethod
    def labels(x: Any, width: int) -> int:
        """How many labels operators have; by default as many as a row of weights is wide."""
        return width

    @staticmethod
    def rests(x: Any, state: Any, group: int, i: int) -> tuple[int, int]:
        """The i-th group (below OTHERS) whose features a step has too, and with which label.

        SAME stands for the label of the step; a group of -1: no more.
        """
        return -1, SAME

    @staticmethod
    def cell(x: Any, state: Any, group: int) -> int:
        """The step's cell, a number below CELLS: steps of equal cell share its sum; -1: none."""
        return -1

    @staticmethod
    def part(x: Any, cell: int, i: int) -> int:
        """The i-th cell (of smaller number) whose sum is part of this cell's; -1: no more."""
        return -1

    @staticmethod
    def shared(x: Any, cell: int, out: Any) -> int:
        """Write the cell's own features, which depend on nothing else; how many."""
        return 0

    @staticmethod
    def features(x: Any, state: Any, group: int, out: Any) -> int:
        """Write the other features (out.keys, and out.values if weighted); how many."""
        raise NotImplementedError

    @staticmethod
    def allowed(x: Any, state: Any, group: int, label: int) -> bool:
        """May this step be taken?"""
        return True

    @staticmethod
    def apply(x: Any, state: Any, group: int, label: int, new: Any) -> None:
        """Write the state that the step leads to (all of it)."""
        raise NotImplementedError

    @staticmethod
    def is_goal(x: Any, state: Any) -> bool:
        """Is the state a complete output?"""
        raise NotImplementedError

    @staticmethod
    def is_good(x: Any, y: Any, state: Any, group: int, label: int) -> bool:
        """Does this step from a y-good state keep y within reach?"""
        raise NotImplementedError

    @staticmethod
    def loss(
        x: Any, y: Any, state: Any, group: int, label: int, was_good: bool, good: bool
    ) -> float:
        """The loss of the step; by default 1 for one that leaves the good path."""
        return 1.0 if was_good and not good else 0.0

    @staticmethod
    def key(x: Any, state: Any, group: int, label: int) -> int:
        """The round in which the step's result competes (rising on a path, 0 at the start)."""
        return -1

    @staticmethod
    def signature(x: Any, state: Any, group: int, label: int) -> int:
        """States of equal key and signature have the same future: exact search may join them."""
        return -1


def is_factored(problem: type[CompiledProblem]) -> bool:
    """Do its groups rest on others?"""
    return problem.rests is not CompiledProblem.rests
