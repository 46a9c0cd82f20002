"""Weightings: which nodes enter Delta of an update, and with what weight (section 3.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from laso.problem import Node
from laso.values import named
from laso.vectors import Term

Weighting = Callable[[Sequence[Node], Sequence[Node]], list[Term]]


@named
def uniform(sibs: Sequence[Node], nodes: Sequence[Node]) -> list[Term]:
    """Weighting of Eq. 2: all good siblings equally, all nodes of the queue equally.

    Parameters
    ----------
    sibs : sequence of Node
        The good siblings.
    nodes : sequence of Node
        The nodes of the queue.

    Returns
    -------
    list of (Node, float)
        The nodes that enter Delta, and the weight of each.

    Examples
    --------
    >>> from laso import Node, uniform
    >>> good, queue = [Node("a")], [Node("b"), Node("c")]
    >>> [(node.state, weight) for node, weight in uniform(good, queue)]
    [('a', 1.0), ('b', -0.5), ('c', -0.5)]
    """
    return _equally(sibs, 1.0) + _equally(nodes, -1.0)


@named
def loss_proportional(sibs: Sequence[Node], nodes: Sequence[Node]) -> list[Term]:
    """Weighting of the queue's nodes in proportion to their losses (Crammer & Singer 2003).

    Parameters and result are those of ``uniform``.

    Examples
    --------
    >>> from laso import Node, loss_proportional
    >>> good, queue = [Node("a")], [Node("b", loss=1.0), Node("c", loss=3.0)]
    >>> [(node.state, weight) for node, weight in loss_proportional(good, queue)]
    [('a', 1.0), ('b', -0.25), ('c', -0.75)]
    """
    total = sum(node.loss for node in nodes)
    if total <= 0.0:
        return uniform(sibs, nodes)
    return _equally(sibs, 1.0) + [(node, -node.loss / total) for node in nodes if node.loss]


@named
def worst(sibs: Sequence[Node], nodes: Sequence[Node]) -> list[Term]:
    """Weighting of the best bad node alone against the best good sibling (Crammer & Singer's max).

    One good sibling is enough, since LaSO needs only one good node in the queue. Parameters and
    result are those of ``uniform``.

    Examples
    --------
    >>> from laso import Node, worst
    >>> good, queue = [Node("a")], [Node("b", score=1.0), Node("c", score=2.0)]
    >>> [(node.state, weight) for node, weight in worst(good, queue)]
    [('a', 1.0), ('c', -1.0)]
    """
    bad = [node for node in nodes if not node.good] or list(nodes)
    return [(max(sibs, key=_score), 1.0), (max(bad, key=_score), -1.0)]


def severity(terms: Sequence[Term]) -> float:
    """The weighted mean loss of the bad nodes of an update; 1 without bad nodes."""
    bad = [(node.loss, weight) for node, weight in terms if weight < 0.0 and not node.good]
    mass = sum(weight for _, weight in bad)
    return sum(loss * weight for loss, weight in bad) / mass if mass else 1.0


def _equally(nodes: Sequence[Node], total: float) -> list[Term]:
    return [(node, total / len(nodes)) for node in nodes]


def _score(node: Node) -> float:
    return node.score
