"""One call of a strategy, with all that happened in it."""

from collections.abc import Hashable
from typing import Any

from laso import (
    Node,
    perceptron,
    restart,
)
from laso.queues import observed
from tests.spaces import (
    Graph,
    GraphProblem,
)

Weighted = dict[Hashable, float]


class Lesson:
    """One call of a strategy with all that happened: dequeued nodes, and updates with weights."""

    def __init__(self, problem, x, y, w, queue, *, rule=None, strategy=restart):
        self.rule: Any = rule or perceptron()
        self.nodes: list[Node] = []
        self.updates: list[Any] = []
        queue = observed(queue, lambda node, rest: self.nodes.append(node))
        self.w = strategy(problem, x, y, w, queue, self.update)

    def update(self, w, x, sibs, nodes):
        before = dict(w.weights)
        margin = w.margin
        better = self.rule(w, x, sibs, nodes)
        self.updates.append((list(sibs), list(nodes), before, dict(better.weights), margin))
        assert len(self.updates) < 1000, "learning does not end"
        return better

    @property
    def dequeued(self):
        return "".join(node.state for node in self.nodes)

    @property
    def errors(self):
        """The states of the siblings and of the queue at each update."""
        return [
            ("".join(node.state for node in sibs), "".join(node.state for node in nodes))
            for sibs, nodes, *_ in self.updates
        ]


def taught(edges, goals, y, queue, **options) -> Lesson:
    graph = Graph(edges, frozenset(goals), "s", options.pop("h", {}))
    return Lesson(GraphProblem(), graph, frozenset(y), graph.vector(), queue, **options)


def changed(lesson: Lesson, edges) -> dict[Hashable, float]:
    """What learning added to each edge, unchanged ones left out."""
    first = Graph(edges, frozenset(), "s").weights()
    weights = lesson.w.weights
    return {e: v - first.get(e, 0.0) for e, v in weights.items() if v != first.get(e, 0.0)}
