"""What a search problem is (section 3.1 of the paper), and the nodes a search makes of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from laso.errors import BadFeature, Unreachable

Vector = dict[Hashable, float]
Features = Mapping[Any, float] | Iterable[Hashable]


class Problem:
    """A search problem: states, operators, goal test and the features of a step.

    Override what your problem needs: ``initial``, ``operators``, ``apply``, ``is_goal`` and
    ``features`` to search, ``is_good`` to learn; ``h``, ``loss`` and ``output`` have defaults. A
    state may be any object; it is never changed, only replaced. ``x`` is the input, ``y`` the gold
    output; only learning calls the methods that take ``y``.

    Examples
    --------
    >>> from laso import Problem, fit
    >>> class Vowels(Problem):
    ...     def initial(self, x):
    ...         return ""
    ...     def operators(self, x, state):
    ...         return "-V"
    ...     def apply(self, x, state, operator):
    ...         return state + operator
    ...     def is_goal(self, x, state):
    ...         return len(state) == len(x)
    ...     def features(self, x, state, operator):
    ...         return [x[len(state)] + operator]
    ...     def is_good(self, x, y, node):
    ...         return y.startswith(node.state)
    >>> fit(Vowels(), [("able", "V--V"), ("bail", "-VV-")]).predict("alibi")
    'V-V-V'
    """

    def initial(self, x: Any) -> Any:
        """The state in which a search over ``x`` begins."""
        raise NotImplementedError(f"{type(self).__name__} needs a method initial(x)")

    def operators(self, x: Any, state: Any) -> Iterable[Any]:
        """The operators that apply to ``state``; ties between their results go to the earlier."""
        raise NotImplementedError(f"{type(self).__name__} needs a method operators(x, state)")

    def apply(self, x: Any, state: Any, operator: Any) -> Any:
        """The state to which ``operator`` leads."""
        raise NotImplementedError(f"{type(self).__name__} needs a method apply(x, state, operator)")

    def is_goal(self, x: Any, state: Any) -> bool:
        """Is ``state`` a complete output?"""
        raise NotImplementedError(f"{type(self).__name__} needs a method is_goal(x, state)")

    def features(self, x: Any, state: Any, operator: Any) -> Features:
        """The features of one step: a mapping from names to values, or names that count 1 each.

        Phi(x, n) is their sum along the path to n, so that g = w . Phi adds up step by step.
        """
        raise NotImplementedError(
            f"{type(self).__name__} needs a method features(x, state, operator)"
        )

    def h(self, x: Any, state: Any) -> float:
        """The heuristic component: an estimate of what the rest of the path will add to g."""
        return 0.0

    def is_good(self, x: Any, y: Any, node: Node) -> bool:
        """Is ``node`` y-good: can it still lead to ``y``? Asked only if its parent is y-good."""
        raise NotImplementedError(f"{type(self).__name__} needs a method is_good(x, y, node)")

    def loss(self, x: Any, y: Any, node: Node) -> float:
        """The loss of the step into ``node``; by default 1 for a step that leaves the good path."""
        return float(bool(node.parent and node.parent.good and not node.good))

    def output(self, x: Any, state: Any) -> Any:
        """What a goal state means to the user; by default the state itself."""
        return state


class Weights(Protocol):
    """What a search asks of a weight vector, whatever its representation."""

    margin: float

    def g(self, node: Node) -> float:
        """The path component g = w . Phi(x, node)."""
        ...


@dataclass(slots=True, eq=False)
class Node:
    """A point of the search: a state with the path to it. Users read nodes, never make them.

    Parameters
    ----------
    state : object
        The state.
    parent : Node or None
        The node before; None for the first.
    operator : object
        The operator that led from the parent to this node.
    features : dict
        The features of this last step.
    depth : int
        The number of steps to the node.
    is_goal : bool
        Whether the state is a goal.
    good : bool or None
        Whether the node can still lead to the gold output; None if no output was given.
    loss : float
        The loss of the path.
    g, h : float
        The path component w . Phi and the heuristic component.
    down : float
        The margin by which learning down-weights the node.
    score : float
        g + h - down.
    """

    state: Any
    parent: Node | None = None
    operator: Any = None
    features: Vector = field(default_factory=dict)
    depth: int = 0
    is_goal: bool = False
    good: bool | None = None
    loss: float = 0.0
    g: float = 0.0
    h: float = 0.0
    down: float = 0.0
    score: float = 0.0

    @property
    def path(self) -> list[Node]:
        """The nodes from the first to this one."""
        nodes: list[Node] = []
        node: Node | None = self
        while node is not None:
            nodes.append(node)
            node = node.parent
        return nodes[::-1]

    @property
    def operators(self) -> list[Any]:
        """The operators of the path, in order."""
        return [node.operator for node in self.path[1:]]

    def phi(self) -> Vector:
        """Phi(x, n): the features summed along the path."""
        total: Vector = {}
        for node in self.path:
            for name, value in node.features.items():
                total[name] = total.get(name, 0.0) + value
        return total


class CompiledState:
    """Marks the states of compiled problems, which have a key and a signature of their own."""

    key: int
    signature: int


class _Unknown:
    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Any = _Unknown()
"""Stands for a gold output that is not given; ``None`` may be somebody's output."""


def make_node(problem: Problem, x: Any, w: Weights, y: Any = UNKNOWN) -> Node:
    """MakeNode of the paper's figures: the node of the initial state."""
    node = Node(problem.initial(x))
    if y is not UNKNOWN:
        node.good = bool(problem.is_good(x, y, node))
        if not node.good:
            raise Unreachable(
                f"the output {shortened(y)} cannot be reached: is_good says so of the initial "
                f"state {shortened(node.state)}"
            )
    return _valued(problem, x, w, node)


def operators(problem: Problem, x: Any, node: Node, w: Weights, y: Any = UNKNOWN) -> list[Node]:
    """Operators of the paper's figures: the nodes that one step from ``node`` leads to."""
    following = []
    for operator in problem.operators(x, node.state):
        child = Node(
            problem.apply(x, node.state, operator),
            parent=node,
            operator=operator,
            features=_vector(problem.features(x, node.state, operator), operator),
            depth=node.depth + 1,
        )
        if y is not UNKNOWN:
            child.good = bool(node.good and problem.is_good(x, y, child))
            child.loss = node.loss + problem.loss(x, y, child)
        following.append(_valued(problem, x, w, child))
    return following


def rescored(nodes: Iterable[Node], w: Weights) -> list[Node]:
    """The same nodes, valued again along their paths after ``w`` has changed."""
    nodes = list(nodes)
    for node in nodes:
        for step in node.path:
            _score(w, step)
    return nodes


def _valued(problem: Problem, x: Any, w: Weights, node: Node) -> Node:
    node.is_goal = bool(problem.is_goal(x, node.state))
    node.h = float(problem.h(x, node.state))
    _score(w, node)
    if not math.isfinite(node.score):
        raise BadFeature(
            f"a score must be a finite number, found g = {node.g}, h = {node.h} for operator "
            f"{node.operator!r} into state {shortened(node.state)}"
        )
    return node


def _score(w: Weights, node: Node) -> None:
    node.g = w.g(node)
    # Section 3.4.2: while learning, y-good nodes are down-weighted by the margin asked for.
    node.down = w.margin if node.good else 0.0
    node.score = node.g + node.h - node.down


def _vector(features: Features, operator: Any) -> Vector:
    if isinstance(features, Mapping):
        try:
            vector = {name: float(value) for name, value in features.items()}
        except (OverflowError, TypeError, ValueError) as error:
            raise BadFeature(
                f"a feature must be a finite number, found for operator {operator!r}: {error}"
            ) from error
        for name, value in vector.items():
            if not math.isfinite(value):
                raise BadFeature(
                    f"a feature must be a finite number, found {name!r} = {value} for operator "
                    f"{operator!r}"
                )
        return vector
    if isinstance(features, str | bytes):
        raise BadFeature(
            f"features must be a mapping or a list of names, found the text {features!r} for "
            f"operator {operator!r}"
        )
    counts: Vector = {}
    for name in features:
        counts[name] = counts.get(name, 0.0) + 1.0
    return counts


def shortened(thing: Any, limit: int = 80) -> str:
    """``repr`` for error messages, cut where it is long."""
    text = repr(thing)
    return text if len(text) <= limit else text[: limit - 3] + "..."
