"""A search problem for the compiled engine: small functions over integers, written once.

The same class runs compiled, and uncompiled in the reference engine (``reference.py``).
"""

from __future__ import annotations

from typing import Any

NAMES = (
    "limits",
    "initial",
    "groups",
    "cell",
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

    ``weighted`` says that ``features`` and ``shared`` write values beside their keys.
    """

    weighted = False

    @staticmethod
    def limits(x: Any, out: Any) -> None:
        """Write STATE_SIZE, MAX_GROUPS, MAX_FEATURES, CELLS, STEPS: what may be needed for x.

        STEPS bounds the length of a path, and the key if there is one.
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
    def cell(x: Any, state: Any, group: int) -> int:
        """A number below CELLS: equal cells have equal ``shared`` features; -1: none."""
        return -1

    @staticmethod
    def shared(x: Any, state: Any, group: int, out: Any) -> int:
        """Write the features that depend on the cell alone; how many."""
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
