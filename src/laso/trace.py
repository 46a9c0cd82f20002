"""What happened in a search or a learning pass, as plain data; seen by wrapping, not by editing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from laso.learn import restart
from laso.problem import UNKNOWN, Node, Problem, Weights
from laso.queues import MakeQueue, Queue, observed
from laso.search import search
from laso.training import Rule, Strategy
from laso.vectors import WeightVector, combined

Event = dict[str, Any]


class _Notebook:
    """Numbers nodes in the order in which they are met and writes events down."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._numbers: dict[Node, int] = {}

    def _number(self, node: Node) -> int:
        return self._numbers.setdefault(node, len(self._numbers))

    def _all(self, nodes: Iterable[Node]) -> list[Event]:
        return [self.describe(node) for node in nodes]

    def describe(self, node: Node) -> Event:
        return {
            "node": self._number(node),
            "parent": None if node.parent is None else self._number(node.parent),
            "operator": node.operator,
            "state": node.state,
            "depth": node.depth,
            "g": node.g,
            "h": node.h,
            "score": node.score,
            "good": node.good,
            "goal": node.is_goal,
        }

    def dequeued(self, node: Node, rest: Queue) -> None:
        self.events.append({"event": "dequeue", **self.describe(node), "queue": self._all(rest)})

    def updated(self, sibs: Sequence[Node], nodes: Sequence[Node], rule: Rule, k: int) -> None:
        weighting = getattr(rule, "weighting", None)
        delta = combined(weighting(sibs, nodes)) if weighting else None
        self.events.append(
            {
                "event": "update",
                "k": k,
                "sibs": self._all(sibs),
                "nodes": self._all(nodes),
                "delta": delta,
            }
        )


def trace_search(
    problem: Problem, x: Any, w: Weights, queue: MakeQueue, *, y: Any = UNKNOWN
) -> list[Event]:
    """The events of Figure 1: each dequeued node, with what was left in the queue.

    Parameters
    ----------
    problem, x, w, queue
        Those of ``search``.
    y : object, optional
        The gold output. With it, each node says whether it is y-good.

    Returns
    -------
    list of dict
        One event for each dequeued node.

    Examples
    --------
    >>> from laso import Linear, greedy
    >>> from laso.examples.tagging import Tagging
    >>> events = trace_search(Tagging("ab"), ("x", "y"), Linear({"b x": 1.0}), greedy())
    >>> [event["state"] for event in events]
    [(), ('b',), ('b', 'a')]
    """
    notes = _Notebook()
    search(problem, x, w, observed(queue, notes.dequeued), y=y)
    return notes.events


def trace_learn(
    problem: Problem,
    x: Any,
    y: Any,
    w: WeightVector,
    queue: MakeQueue,
    update: Rule,
    *,
    strategy: Strategy = restart,
) -> tuple[WeightVector, list[Event]]:
    """The weights after Figure 2 (or another strategy) and its events: dequeues and updates.

    Parameters
    ----------
    problem, x, y, w, queue, update
        Those of ``learn``.
    strategy : callable, default=restart
        What happens after an error.

    Returns
    -------
    tuple of weight vector and list of dict
        The weights after the example, and one event for each dequeued node and each update.

    Examples
    --------
    >>> from laso import greedy, perceptron
    >>> from laso.examples.tagging import Tagging
    >>> rule = perceptron()
    >>> w, events = trace_learn(Tagging("ab"), ("x",), ("b",), rule.start(), greedy(), rule)
    >>> [event["event"] for event in events]
    ['dequeue', 'dequeue', 'update', 'dequeue']
    """
    notes = _Notebook()

    def noted(w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]) -> WeightVector:
        notes.updated(sibs, nodes, update, w.k)
        return update(w, x, sibs, nodes)

    w = strategy(problem, x, y, w, observed(queue, notes.dequeued), noted)
    return w, notes.events
