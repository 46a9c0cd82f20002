"""Figure 1 of the paper: the generic search algorithm."""

from __future__ import annotations

from typing import Any

from laso.errors import SearchFailed
from laso.problem import UNKNOWN, Node, Problem, Weights, make_node, operators
from laso.queues import MakeQueue


def search(
    problem: Problem, x: Any, w: Weights, queue: MakeQueue, *, y: Any = UNKNOWN
) -> Node | None:
    """Figure 1: cycle through the queue until a goal is dequeued.

    Parameters
    ----------
    problem : Problem
        The search problem.
    x : object
        The input.
    w : weight vector
        The weights of the features, for example ``Linear({"bias": 0.5})``.
    queue : queue discipline
        The paper's *enqueue*, for example ``beam(5)``: it ranks the nodes by g + h, g = w . Phi.
    y : object, optional
        The gold output. With it, every node knows whether it is y-good, and good nodes are
        down-weighted by the margin of ``w`` as in learning.

    Returns
    -------
    Node or None
        The first goal that is dequeued; None is the paper's failure.

    Examples
    --------
    >>> from laso import Linear, beam, search
    >>> from laso.examples.tagging import Tagging
    >>> search(Tagging("ab"), ("x", "y"), Linear({"b x": 1.0}), beam(5)).state
    ('b', 'a')
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
    """Search, and return the output of the goal.

    Parameters
    ----------
    problem, x, w, queue
        Those of ``search``.

    Returns
    -------
    object
        The problem's ``output`` of the goal.

    Raises
    ------
    SearchFailed
        The search ends before it dequeues a goal.

    Examples
    --------
    >>> from laso import Linear, beam, predict
    >>> from laso.examples.tagging import Tagging
    >>> predict(Tagging("ab"), ("x", "y"), Linear({"b x": 1.0}), beam(5))
    ('b', 'a')
    """
    node = search(problem, x, w, queue)
    if node is None:
        raise SearchFailed(
            f"{type(problem).__name__}: the queue ran empty before a goal was dequeued; either an "
            "operator set was empty before a goal, or the queue discipline gave up every node"
        )
    return problem.output(x, node.state)
