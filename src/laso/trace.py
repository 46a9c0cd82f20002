"""What happened in a search or a learning pass, as plain data; seen by wrapping, not by editing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from laso.learn import restart
from laso.problem import UNKNOWN, Node, Problem, Weights
from laso.queues import MakeQueue, Queue, Wrapper, observed
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


class _Rounds(_Notebook):
    """Also notes what was enqueued, by rounds, to tell what a queue dropped."""

    def __init__(self) -> None:
        super().__init__()
        self._enqueued: dict[Any, list[Node]] = {}
        self._kept: set[Node] = set()

    def dequeued(self, node: Node, rest: Queue) -> None:
        super().dequeued(node, rest)
        event = self.events[-1]
        event["round"] = rest.measure(node)
        self._kept.add(node)
        for other, told in zip(rest, event["queue"], strict=True):
            told["round"] = rest.measure(other)
            self._kept.add(other)

    def enqueued(self, nodes: Sequence[Node], queue: Queue) -> None:
        for node in nodes:
            self._enqueued.setdefault(queue.measure(node), []).append(node)

    def tell_pruned(self, most: int) -> None:
        """Add an event for each round: its best nodes that were dropped, and the best good one."""
        for measured, nodes in self._enqueued.items():
            ranked = sorted(nodes, key=lambda node: -node.score)
            ranks = [rank for rank, node in enumerate(ranked) if node not in self._kept]
            good = next((rank for rank in ranks if ranked[rank].good), None)
            chosen = ranks[:most] + ([] if good is None or good in ranks[:most] else [good])
            told = [{**self.describe(ranked[i]), "round": measured, "rank": i + 1} for i in chosen]
            self.events.append(
                {"event": "prune", "round": measured, "made": len(nodes), "nodes": told}
            )


class _Recorded(Wrapper):
    """Any queue, with notes of what is enqueued and dequeued."""

    def __init__(self, nodes: Sequence[Node], *, queue: MakeQueue, notes: _Rounds) -> None:
        super().__init__(nodes, queue=queue)
        self._notes = notes

    def remove_front(self) -> Node:
        node = super().remove_front()
        self._notes.dequeued(node, self._inner)
        return node

    def enqueue(self, nodes: Sequence[Node]) -> None:
        self._notes.enqueued(nodes, self._inner)
        super().enqueue(nodes)


def trace_search(
    problem: Problem,
    x: Any,
    w: Weights,
    queue: MakeQueue,
    *,
    y: Any = UNKNOWN,
    pruned: int = 0,
) -> list[Event]:
    """The events of Figure 1: each dequeued node, with what was left in the queue.

    Parameters
    ----------
    problem, x, w, queue
        Those of ``search``.
    y : object, optional
        The gold output. With it, each node says whether it is y-good.
    pruned : int, default=0
        The number of dropped nodes to tell of each round. With it, each node has its round, and an
        event "prune" for each round follows, with the number of nodes ``made`` in it and the best
        that were dropped, each with its rank; the best y-good one is among them.

    Returns
    -------
    list of dict
        One event for each dequeued node, and with ``pruned`` one for each round.

    Examples
    --------
    >>> from laso import Linear, greedy
    >>> from laso.examples.tagging import Tagging
    >>> events = trace_search(Tagging("ab"), ("x", "y"), Linear({"b x": 1.0}), greedy())
    >>> [event["state"] for event in events]
    [(), ('b',), ('b', 'a')]
    >>> events = trace_search(Tagging("ab"), ("x",), Linear({"b x": 1.0}), greedy(), pruned=1)
    >>> [(node["state"], node["rank"]) for node in events[-1]["nodes"]]
    [(('a',), 2)]
    """
    if not pruned:
        notes = _Notebook()
        search(problem, x, w, observed(queue, notes.dequeued), y=y)
        return notes.events
    rounds = _Rounds()
    search(problem, x, w, partial(_Recorded, queue=queue, notes=rounds), y=y)
    rounds.tell_pruned(pruned)
    return rounds.events


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
