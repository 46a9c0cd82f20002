"""Figure 1 of the paper: the generic search algorithm."""

from __future__ import annotations

from typing import Any

from laso.errors import SearchFailed
from laso.problem import UNKNOWN, Node, Problem, Weights, make_node, operators
from laso.queues import MakeQueue


def search(
    problem: Problem, x: Any, w: Weights, queue: MakeQueue, *, y: Any = UNKNOWN
) -> Node | None:
    """Figure 1: cycle through the queue until a goal is dequeued; None is the paper's failure.

    The queue discipline is the paper's *enqueue*: it ranks the nodes by g + h, g = w . Phi.
    With ``y`` given, every node knows whether it is y-good, and the good ones are down-weighted
    by the margin of ``w`` as they are in learning.
    """
    nodes = queue([make_node(problem, x, w, y)])
    while nodes:
        node = nodes.remove_front()
        if node.is_goal:
            return node
        following = operators(problem, x, node, w, y)
        nodes.enqueue(following)
    return None


def predict(problem: Problem, x: Any, w: Weights, queue: MakeQueue) -> Any:
    """The output that the search finds for ``x``; ``SearchFailed`` if it finds none."""
    node = search(problem, x, w, queue)
    if node is None:
        raise SearchFailed(
            f"{type(problem).__name__}: the queue ran empty before a goal was dequeued; either an "
            "operator set was empty before a goal, or the queue discipline gave up every node"
        )
    return problem.output(x, node.state)
