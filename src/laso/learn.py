"""Figure 2 of the paper: search that learns, and the other strategies after an error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeVar

from laso.errors import SearchFailed, Unreachable, out_of_reach
from laso.params import is_whole
from laso.problem import Node, Problem, Weights, make_node, operators, rescored, shortened
from laso.queues import MakeQueue, Queue, depth, observed, only_good
from laso.search import search
from laso.values import Value, named

W = TypeVar("W", bound=Weights)


class Update(Protocol[W]):
    """*update* of Figure 2: new weights from the good siblings and the nodes of the queue."""

    def __call__(self, w: W, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]) -> W:
        """Return the new weights."""
        ...


class TwoPartUpdate(Update[W], Protocol[W]):
    """An update whose two parts can be called apart, as the updates of this library can."""

    @property
    def weighting(self) -> Callable[[Sequence[Node], Sequence[Node]], list[tuple[Node, float]]]:
        """Which nodes enter Delta, and with what weight."""
        ...

    def step(self, w: W, terms: Sequence[tuple[Node, float]], errors: int = 1) -> W:
        """Return the new weights from the terms of Delta of one or more errors."""
        ...


MOST_SIBLINGS = 64


@dataclass(frozen=True)
class AfterError:
    """What follows an error: from which nodes the search goes on.

    Parameters
    ----------
    keep : int, default=64
        The largest number of good siblings: the best ones of each step of the walk to them. The
        paper has all of them, of which there may be exponentially many.
    restarts : bool, default=True
        Whether the search goes on from the good siblings, or the rest of the example is skipped.
    """

    keep: int = MOST_SIBLINGS
    restarts: bool = True

    def nodes(self, sibs: Sequence[Node]) -> Sequence[Node]:
        """Return the nodes from which the search goes on."""
        return sibs if self.restarts else ()


continue_from_siblings = AfterError()
"""After an error, continue from the good siblings (the paper)."""
skip_example = AfterError(restarts=False)
"""After an error, skip the rest of the example (early update, Collins & Roark 2004)."""


def learn(
    problem: Problem,
    x: Any,
    y: Any,
    w: W,
    queue: MakeQueue,
    update: Update[W],
    *,
    after_error: AfterError = continue_from_siblings,
) -> W:
    """Figure 2: search, and update whenever no node is y-good or a wrong goal is dequeued.

    There is one case more than in the paper: a discipline such as hill-climbing may refuse every
    successor of a good node. That is the same error, seen one step earlier.

    Parameters
    ----------
    problem : Problem
        The search problem.
    x, y : object
        The input and its gold output.
    w : weight vector
        The weights so far, as an update's ``start()`` makes them.
    queue : queue discipline
        The paper's *enqueue*, for example ``beam(5)``.
    update : update rule
        For example ``perceptron()``.
    after_error : AfterError, default=continue_from_siblings
        From which nodes the search continues after an error.

    Returns
    -------
    weight vector
        The weights after the example.

    Examples
    --------
    >>> from laso import beam, learn, perceptron
    >>> from laso.examples.tagging import Tagging
    >>> rule = perceptron()
    >>> w = learn(Tagging("ab"), ("x",), ("b",), rule.start(), beam(1), rule)
    >>> w.weights["b x"]
    1.0
    """

    def corrected(sibs: Sequence[Node], wrong: Sequence[Node]) -> tuple[W, Any]:
        better = update(w, x, sibs, wrong)
        return better, queue(rescored(after_error.nodes(sibs), better))

    nodes = queue([make_node(problem, x, w, y)])
    while nodes:
        node = nodes.remove_front()
        if not (node.good or nodes.any_good()) or (node.is_goal and not node.good):
            walk = partial(siblings, measure=nodes.measure, keep=after_error.keep)
            sibs = walk(problem, x, y, w, node)
            w, nodes = corrected(sibs, [node, *nodes])
        else:
            if node.is_goal:
                return w
            following = operators(problem, x, node, w, y)
            nodes.enqueue(following)
            if not nodes:
                w, nodes = corrected(_good(following, node, y), [node])
    return w


def siblings(
    problem: Problem,
    x: Any,
    y: Any,
    w: Weights,
    node: Node,
    *,
    measure: Callable[[Node], Any] = depth,
    keep: int = MOST_SIBLINGS,
) -> list[Node]:
    """*siblings* of Figure 2: the y-good nodes beside ``node``.

    The walk goes back to the first y-good ancestor, then forward through y-good nodes only, until
    they have come as far as ``node``: to its depth in the paper, to its round in a beam that has
    another key. A good goal that comes earlier is a sibling too. Where more than ``keep`` nodes are
    y-good after a step of the walk, it goes on from those of the highest scores; the paper's walk
    goes on from all.

    Parameters
    ----------
    problem, x, y, w
        Those of ``learn``.
    node : Node
        The node that was dequeued.
    measure : callable, default=depth
        How far a node has come; a queue has it as its method ``measure``.
    keep : int, default=64
        The largest number of siblings.

    Returns
    -------
    list of Node
        The good siblings.
    """
    ancestor = node
    while not ancestor.good:
        assert ancestor.parent is not None, "the first node of a path is y-good"
        ancestor = ancestor.parent
    sibs: list[Node] = []
    # One step on whatever the measure says, or learning would restart where it went wrong.
    front = [node] if node.good else _good(operators(problem, x, ancestor, w, y), ancestor, y)
    while front:
        following: list[Node] = []
        for good in _best(front, keep):
            if good.is_goal or measure(good) >= measure(node):
                sibs.append(good)
            else:
                following += _good(operators(problem, x, good, w, y), good, y)
        front = following
    return _best(sibs, keep)


def _best(nodes: list[Node], n: int) -> list[Node]:
    """The n nodes of the highest scores, of equals the first, in their order."""
    ranked = sorted(range(len(nodes)), key=lambda i: -nodes[i].score)
    return [nodes[i] for i in sorted(ranked[:n])]


# --------------------------------------------------------------------------- strategies


@named
def restart(problem: Problem, x: Any, y: Any, w: W, queue: MakeQueue, update: Update[W]) -> W:
    """LaSO, the paper's strategy: after an error, update and restart from all good siblings.

    Parameters
    ----------
    problem : Problem
        The search problem.
    x, y : object
        The input and its gold output.
    w : weight vector
        The weights so far, as an update's ``start()`` makes them.
    queue : queue discipline
        How the queue is kept, for example ``beam(5)``.
    update : update rule
        For example ``perceptron()``.

    Returns
    -------
    weight vector
        The weights after the example.

    Examples
    --------
    >>> from laso import restart
    >>> restart
    restart
    """
    return learn(problem, x, y, w, queue, update)


@named
def early(problem: Problem, x: Any, y: Any, w: W, queue: MakeQueue, update: Update[W]) -> W:
    """Early update (Collins & Roark 2004): after the first error, update and skip the example.

    Parameters and result are those of ``restart``.

    Examples
    --------
    >>> from laso import Tagger, early
    >>> Tagger(strategy=early).strategy
    early
    """
    return learn(problem, x, y, w, queue, update, after_error=skip_example)


@named
def delayed(
    problem: Problem, x: Any, y: Any, w: W, queue: MakeQueue, update: TwoPartUpdate[W]
) -> W:
    """Delayed LaSO (Björkelund & Kuhn 2014): restart after errors, but update once, at the end.

    The search goes on from the good siblings with the same weights, and the differences of all
    errors are summed. Parameters and result are those of ``restart``.

    Examples
    --------
    >>> from laso import Tagger, delayed
    >>> Tagger(strategy=delayed).strategy
    delayed
    """
    return _delayed(problem, x, y, w, queue, update, continue_from_siblings)


def _delayed(
    problem: Problem,
    x: Any,
    y: Any,
    w: W,
    queue: MakeQueue,
    update: TwoPartUpdate[W],
    after_error: AfterError,
) -> W:
    if not hasattr(update, "step"):
        raise ValueError(
            f"delayed updates need the methods weighting and step: found {update!r}, which has none"
        )
    terms: list[tuple[Node, float]] = []
    errors = 0

    def collect(w: W, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]) -> W:
        nonlocal errors
        terms.extend(update.weighting(sibs, nodes))
        errors += 1
        return w

    learn(problem, x, y, w, queue, collect, after_error=after_error)
    return update.step(w, terms, errors) if errors else w


@dataclass(frozen=True, repr=False)
class BestSiblings(Value, name="best_siblings"):
    """A strategy with another bound on the number of good siblings than 64.

    After an error, learning walks from the last good node along y-good nodes only. It keeps the
    best of them at each step: the siblings. Where only one path is good, there is only one sibling
    in any case.

    Parameters
    ----------
    keep : int
        The largest number of siblings.
    strategy : {restart, early, delayed}, default=restart
        What happens after an error.

    Examples
    --------
    >>> from laso import best_siblings, delayed
    >>> best_siblings(8, delayed)
    best_siblings(8, delayed)
    """

    keep: int
    strategy: Any = restart

    def __post_init__(self) -> None:
        if not is_whole(self.keep, 1):
            raise ValueError(f"keep must be a whole number from 1 up, found {self.keep!r}")
        if self.strategy not in (restart, early, delayed):
            raise ValueError(
                f"strategy must be restart, early or delayed, found {self.strategy!r}: the others "
                "have no siblings"
            )

    def __call__(
        self, problem: Problem, x: Any, y: Any, w: W, queue: MakeQueue, update: TwoPartUpdate[W]
    ) -> W:
        """Learn from one example."""
        after = AfterError(self.keep, restarts=self.strategy != early)
        if self.strategy == delayed:
            return _delayed(problem, x, y, w, queue, update, after)
        return learn(problem, x, y, w, queue, update, after_error=after)


best_siblings = BestSiblings


@named
def standard(problem: Problem, x: Any, y: Any, w: W, queue: MakeQueue, update: Update[W]) -> W:
    """Standard update (Collins 2002): search to the end, then compare the outputs if they differ.

    If several paths lead to ``y``, the gold path is the one that the same search finds among good
    nodes. Parameters and result are those of ``restart``.

    Examples
    --------
    >>> from laso import Tagger, standard
    >>> Tagger(strategy=standard).strategy
    standard
    """
    predicted = search(problem, x, w, queue, y=y)
    if predicted is not None and predicted.good:
        return w
    gold = search(problem, x, w, only_good(queue), y=y)
    return update(w, x, [_reached(gold, y)], [_reached(predicted, y)])


@named
def max_violation(problem: Problem, x: Any, y: Any, w: W, queue: MakeQueue, update: Update[W]) -> W:
    """Max-violation update (Huang et al. 2012): compare where the search was most wrong.

    At each step, as the queue measures steps, the best dequeued node meets the best node that the
    same search dequeues among good nodes only. The pair with the largest difference of scores
    makes the update. Parameters and result are those of ``restart``.

    Examples
    --------
    >>> from laso import Tagger, max_violation
    >>> Tagger(strategy=max_violation).strategy
    max_violation
    """
    best, predicted = _search_steps(problem, x, y, w, queue)
    if predicted is not None and predicted.good:
        return w
    best_good, gold = _search_steps(problem, x, y, w, only_good(queue))
    pairs = [(bad, best_good[at]) for at, bad in best.items() if at in best_good and not bad.good]
    pairs.append((_reached(predicted, y), _reached(gold, y)))
    bad, good = max(pairs, key=lambda pair: pair[0].score - pair[1].score)
    return update(w, x, [good], [bad])


def _search_steps(
    problem: Problem, x: Any, y: Any, w: Weights, queue: MakeQueue
) -> tuple[dict[Any, Node], Node | None]:
    """A search that knows ``y``: the best node dequeued at each step, and the goal."""
    best: dict[Any, Node] = {}

    def keep(node: Node, rest: Queue) -> None:
        at = rest.measure(node)
        if at not in best or node.score > best[at].score:
            best[at] = node

    return best, search(problem, x, w, observed(queue, keep), y=y)


def _reached(goal: Node | None, y: Any) -> Node:
    if goal is None:
        raise SearchFailed(
            f"no goal was dequeued on the way to {shortened(y)}: this strategy compares complete "
            "outputs and needs a queue discipline that always reaches one"
        )
    return goal


def _good(following: Sequence[Node], node: Node, y: Any) -> list[Node]:
    good = [child for child in following if child.good]
    if not good:
        raise Unreachable(out_of_reach(y, node.state, len(following)))
    return good
