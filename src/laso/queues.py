"""Queue disciplines: the paper's *enqueue*.

A discipline is a value (see ``laso.values``). Calling it with the first nodes of a search makes a
queue of them; Figures 1 and 2 use nothing else of it. ``laso.queue_kinds`` has the queues.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from laso.problem import CompiledState, Node, shortened
from laso.queue_kinds import (
    ClosedSetQueue,
    Line,
    MakeQueue,
    ObservedQueue,
    OnlyGoodQueue,
    Queue,
    Ranking,
    Rounds,
    Wrapper,
)
from laso.values import Value, named

__all__ = [
    "Discipline",
    "MakeQueue",
    "Queue",
    "Wrapper",
    "a_star",
    "beam",
    "best_first",
    "bounded_best_first",
    "breadth_first",
    "closed_set",
    "depth",
    "depth_first",
    "exact",
    "greedy",
    "hill_climbing",
    "observed",
    "only_good",
    "own_key",
    "own_signature",
]

Key = Callable[[Node], Any]
Signature = Callable[[Any], Hashable]

# --------------------------------------------------------------------------- keys and signatures


@named
def depth(node: Node) -> int:
    """The number of steps to the node.

    Examples
    --------
    >>> from laso import Node, beam, depth
    >>> depth(Node("state", depth=3))
    3
    >>> beam(5, key=depth)
    beam(5, key=depth)
    """
    return node.depth


@named
def own_key(node: Node) -> int:
    """The key that a compiled problem defines itself, as in ``beam(5, key=own_key)``.

    Examples
    --------
    >>> from laso import beam, own_key
    >>> beam(5, key=own_key)
    beam(5, key=own_key)
    """
    key = int(_own(node.state, "key"))
    return key if key >= 0 else node.depth  # a negative key means that the problem has none


@named
def own_signature(state: Any) -> int:
    """The signature that a compiled problem defines itself; ``exact()`` uses it.

    Examples
    --------
    >>> from laso import exact, own_signature
    >>> exact(own_signature)
    exact(own_signature)
    """
    return int(_own(state, "signature"))


def _own_key_or_depth(node: Node) -> int:
    return own_key(node) if isinstance(node.state, CompiledState) else node.depth


def _own(state: Any, name: str) -> Any:
    if not isinstance(state, CompiledState):
        raise ValueError(
            f"found a state without a {name} of its own, which only compiled problems have: "
            "expected exact(signature) or beam(width, key=key)"
        )
    return getattr(state, name)


class Discipline(Value):
    """Base class of the queue disciplines; calling one with the first nodes makes a queue."""

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        """Make a queue of these nodes."""
        raise NotImplementedError(f"{type(self).__name__} needs a method __call__(nodes)")


# --------------------------------------------------------------------------- one line or ranking


@dataclass(frozen=True, repr=False)
class DepthFirst(Discipline, name="depth_first"):
    """Depth-first search: the newest nodes first, siblings in the order of their operators.

    Examples
    --------
    >>> depth_first()
    depth_first()
    """

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Line(nodes, newest_first=True)


@dataclass(frozen=True, repr=False)
class BreadthFirst(Discipline, name="breadth_first"):
    """Breadth-first search: the oldest nodes first.

    Examples
    --------
    >>> breadth_first()
    breadth_first()
    """

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Line(nodes, newest_first=False)


@dataclass(frozen=True, repr=False)
class BestFirst(Discipline, name="best_first"):
    """Best-first search: the highest path component g first, without a heuristic.

    Examples
    --------
    >>> best_first()
    best_first()
    """

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Ranking(nodes, by=_path_component, limit=None)


@dataclass(frozen=True, repr=False)
class AStar(Discipline, name="a_star"):
    """A* search: the highest g + h first.

    It is optimal if h never underestimates what the rest of a path can add.

    Examples
    --------
    >>> a_star()
    a_star()
    """

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Ranking(nodes, by=_total_score, limit=None)


@dataclass(frozen=True, repr=False)
class BoundedBestFirst(Discipline, name="bounded_best_first"):
    """Beam search as Figure 1 reads: expand the best node, then keep the best ``width`` of all.

    Parameters
    ----------
    width : int
        The number of nodes to keep, at least 1.

    Examples
    --------
    >>> bounded_best_first(10)
    bounded_best_first(10)
    """

    width: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", _checked_width(self.width))

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Ranking(nodes, by=_total_score, limit=self.width)


def _total_score(node: Node) -> float:
    """g + h, less the margin for y-good nodes in learning."""
    return node.score


def _path_component(node: Node) -> float:
    """g alone, less the margin for y-good nodes in learning."""
    return node.g - node.down


# --------------------------------------------------------------------------- beams


@dataclass(frozen=True, repr=False)
class Beam(Discipline, name="beam"):
    """Beam search in rounds: expand the whole beam, then keep the best ``width`` nodes.

    Parameters
    ----------
    width : int
        The number of nodes to keep, at least 1.
    key : callable, default=None
        A function of a node. Nodes of equal key form a round and compete; rounds are opened in
        rising order of the key. With the number of words covered, for example, hypotheses compete
        that explain the same words. None: the key that a compiled problem defines (``own_key``),
        else the ``depth`` of the node.

    Examples
    --------
    >>> beam(5)
    beam(5)
    >>> beam(5, key=depth)
    beam(5, key=depth)
    """

    width: int
    key: Key | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", _checked_width(self.width))
        if self.key is not None:
            _check_callable("key", self.key)

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Rounds(nodes, width=self.width, key=self.key or _own_key_or_depth)


def greedy() -> Beam:
    """Greedy search: only the best successor is kept. It is ``beam(1)``.

    Returns
    -------
    Beam
        A beam of width 1.

    Examples
    --------
    >>> greedy()
    beam(1)
    """
    return Beam(1)


@dataclass(frozen=True, repr=False)
class HillClimbing(Discipline, name="hill_climbing"):
    """Hill-climbing: greedy search in which every step must raise the score.

    The search ends where no step does.

    Examples
    --------
    >>> hill_climbing()
    hill_climbing()
    """

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return Rounds(nodes, width=1, key=depth, uphill=True)


@dataclass(frozen=True, repr=False)
class Exact(Discipline, name="exact"):
    """Exact search (Viterbi): an unlimited beam that recombines states of equal signature.

    It is exact if states of equal signature and key have the same future. Goals wait until all
    paths have ended, so the space must be finite.

    Parameters
    ----------
    signature : callable, optional
        A function of a state. By default, the signature and the key that a compiled problem
        defines.
    key : callable, optional
        A function of a node, as in :class:`Beam`; it needs a signature. By default, the depth of
        the node.

    Examples
    --------
    >>> exact()
    exact()
    >>> exact(len) == exact(len)
    True
    """

    signature: Signature | None = None
    key: Key | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.signature is None and self.key is not None:
            raise ValueError("a key of your own needs a signature too: exact(signature, key=key)")
        for name in ("signature", "key"):
            if getattr(self, name) is not None:
                _check_callable(name, getattr(self, name))

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        if self.signature is None:
            return Rounds(nodes, width=None, key=own_key, signature=own_signature)
        return Rounds(nodes, width=None, key=self.key or depth, signature=self.signature)


# --------------------------------------------------------------------------- around any queue


@dataclass(frozen=True, repr=False)
class ClosedSet(Discipline, name="closed_set"):
    """Any queue with a closed set, for spaces with cycles: a dequeued state never returns.

    Parameters
    ----------
    queue : callable
        The queue discipline.
    key : callable
        A function of a state with a hashable value. States of equal key count as the same.

    Examples
    --------
    >>> closed_set(best_first(), key=own_signature)
    closed_set(best_first(), key=own_signature)
    """

    queue: MakeQueue
    key: Signature = field(kw_only=True)

    def __post_init__(self) -> None:
        _check_callable("queue", self.queue)
        _check_callable("key", self.key)

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return ClosedSetQueue(nodes, queue=self.queue, key=self.key)


@dataclass(frozen=True, repr=False)
class OnlyGood(Discipline, name="only_good"):
    """Any queue that takes in y-good nodes only: searching with it is forced decoding.

    Parameters
    ----------
    queue : callable
        The queue discipline.

    Examples
    --------
    >>> only_good(beam(5))
    only_good(beam(5))
    """

    queue: MakeQueue

    def __post_init__(self) -> None:
        _check_callable("queue", self.queue)

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return OnlyGoodQueue(nodes, queue=self.queue)


@dataclass(frozen=True, repr=False)
class Observed(Discipline, name="observed"):
    """Any queue that shows each dequeued node, and the queue that is left, to a function.

    Parameters
    ----------
    queue : callable
        The queue discipline.
    seen : callable
        A function of a node and a queue; its result is ignored.

    Examples
    --------
    >>> observed(beam(5), print)
    observed(beam(5), <built-in function print>)
    """

    queue: MakeQueue
    seen: Callable[[Node, Queue], None]

    def __post_init__(self) -> None:
        _check_callable("queue", self.queue)
        _check_callable("seen", self.seen)

    def __call__(self, nodes: Sequence[Node]) -> Queue:
        return ObservedQueue(nodes, queue=self.queue, seen=self.seen)


depth_first = DepthFirst
breadth_first = BreadthFirst
best_first = BestFirst
a_star = AStar
bounded_best_first = BoundedBestFirst
beam = Beam
hill_climbing = HillClimbing
exact = Exact
closed_set = ClosedSet
only_good = OnlyGood
observed = Observed


def _checked_width(width: Any) -> int:
    try:
        number = 0 if isinstance(width, bool) else operator.index(width)
    except TypeError:
        number = 0
    if number < 1:
        raise ValueError(
            f"the width of a beam must be a whole number from 1 up, found {shortened(width)}"
        )
    return number


def _check_callable(name: str, value: Any) -> None:
    if not callable(value):
        raise ValueError(f"{name} must be callable, found {value!r}")
