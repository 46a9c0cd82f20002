"""Queue disciplines: the paper's *enqueue*, each a small object that makes a queue of nodes.

A discipline is called with the first nodes and answers with a queue; Figures 1 and 2 use nothing
else of it. There are three kinds of queue (a line, a ranking, a beam); every discipline of the
paper is one of them with its parameters. Ties are broken by insertion order throughout.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from laso.problem import Node


class Queue(Protocol):
    """What Figures 1 and 2 ask of *nodes*.

    Iterating shows the nodes that compete with the one dequeued last, which is what an update is
    made from: all of them, except that a beam leaves out the rounds it has not opened.
    ``measure`` tells how far a node has come: nodes that measure the same may be compared.
    """

    def remove_front(self) -> Node: ...
    def enqueue(self, nodes: Sequence[Node]) -> None: ...
    def measure(self, node: Node) -> Any: ...
    def any_good(self) -> bool: ...
    def discard(self, unwanted: Callable[[Node], bool]) -> None: ...
    def __iter__(self) -> Iterator[Node]: ...
    def __len__(self) -> int: ...


MakeQueue = Callable[[Sequence[Node]], Queue]


def depth_first() -> MakeQueue:
    """The newest nodes first, siblings in the order of their operators."""
    return partial(Line, newest_first=True)


def breadth_first() -> MakeQueue:
    """The oldest nodes first."""
    return partial(Line, newest_first=False)


def best_first() -> MakeQueue:
    """The highest path component g first: the heuristic is taken to be zero."""
    return partial(Ranking, by=path_component, limit=None)


def a_star() -> MakeQueue:
    """The highest g + h first: optimal if h never underestimates what the rest can add (A*)."""
    return partial(Ranking, by=total_score, limit=None)


def bounded_best_first(width: int) -> MakeQueue:
    """Beam search as Figure 1 reads: expand the best node, then keep the ``width`` best of all."""
    return partial(Ranking, by=total_score, limit=_width(width))


def beam(width: int, *, key: Callable[[Node], Any] | None = None) -> MakeQueue:
    """Beam search by rounds: the whole beam is expanded, then the ``width`` best are kept.

    A round holds the nodes of equal ``key``, rounds in rising order of it. The default is the depth
    of a node; with the number of words covered, say, hypotheses compete that explain equally much.
    """
    return partial(Beam, width=_width(width), key=key or depth)


def greedy() -> MakeQueue:
    """Only the best successor is kept: a beam of one."""
    return beam(1)


def hill_climbing() -> MakeQueue:
    """Greedy, but a step must raise the score; where none does, the search ends."""
    return partial(Beam, width=1, key=depth, uphill=True)


def exact(
    signature: Callable[[Any], Hashable] | None = None,
    *,
    key: Callable[[Node], Any] | None = None,
) -> MakeQueue:
    """An unlimited beam in which states of equal signature are recombined: Viterbi search.

    It is exact if states of equal signature and key have the same future, and all goals the same
    key (or no step raises the score). A compiled problem has a signature and a key of its own,
    which ``exact()`` uses.
    """
    if signature is None:
        if key is not None:
            raise ValueError("a key of your own needs a signature too: exact(signature, key=key)")
        return partial(Beam, width=None, key=own_key, signature=own_signature)
    return partial(Beam, width=None, key=key or depth, signature=signature)


def memory(queue: MakeQueue, *, key: Callable[[Any], Hashable]) -> MakeQueue:
    """``queue`` with a closed set for cyclic spaces: a key once dequeued never returns."""
    return partial(Remembering, queue=queue, key=key)


def only_good(queue: MakeQueue) -> MakeQueue:
    """``queue``, which takes in y-good nodes only: a search in it is forced decoding."""
    return partial(Filtered, queue=queue)


def observed(queue: MakeQueue, seen: Callable[[Node, Queue], None]) -> MakeQueue:
    """``queue``, which shows every node dequeued, with what is left, to ``seen``."""
    return partial(Observed, queue=queue, seen=seen)


def total_score(node: Node) -> float:
    """g + h, less the margin for y-good nodes in learning."""
    return node.score


def path_component(node: Node) -> float:
    """g alone, less the margin for y-good nodes in learning."""
    return node.g - node.down


def depth(node: Node) -> int:
    """The number of steps to the node."""
    return node.depth


def own_key(node: Node) -> int:
    """For ``beam(n, key=own_key)``: the round that a compiled problem's own key gives a node."""
    key = int(_own(node.state, "key"))
    return key if key >= 0 else node.depth  # below zero, the problem has none


def own_signature(state: Any) -> int:
    """What a compiled problem says of a state: those of equal signature have the same future."""
    return int(_own(state, "signature"))


def _own(state: Any, name: str) -> Any:
    if not hasattr(state, name):
        raise ValueError(
            f"found a state without a {name} of its own, which only compiled problems have: "
            "expected exact(signature) or beam(width, key=key)"
        )
    return getattr(state, name)


class Line:
    """First in, first out, or last in, first out."""

    def __init__(self, nodes: Sequence[Node], *, newest_first: bool):
        self._nodes = deque(nodes)
        self._newest_first = newest_first

    def remove_front(self) -> Node:
        return self._nodes.popleft()

    def enqueue(self, nodes: Sequence[Node]) -> None:
        if self._newest_first:
            self._nodes.extendleft(reversed(nodes))
        else:
            self._nodes.extend(nodes)

    def measure(self, node: Node) -> int:
        return node.depth

    def any_good(self) -> bool:
        return any(node.good for node in self._nodes)

    def discard(self, unwanted: Callable[[Node], bool]) -> None:
        self._nodes = deque(node for node in self._nodes if not unwanted(node))

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class Ranking:
    """All nodes in one ranking, the worst beyond the limit dropped."""

    def __init__(
        self, nodes: Sequence[Node], *, by: Callable[[Node], float], limit: int | None
    ) -> None:
        self._nodes: list[Node] = []
        self._by = by
        self._limit = limit
        self.enqueue(nodes)

    def remove_front(self) -> Node:
        return self._nodes.pop(0)

    def enqueue(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            insort(self._nodes, node, key=lambda n: -self._by(n))
        if self._limit is not None:
            del self._nodes[self._limit :]

    def measure(self, node: Node) -> int:
        return node.depth

    def any_good(self) -> bool:
        return any(node.good for node in self._nodes)

    def discard(self, unwanted: Callable[[Node], bool]) -> None:
        self._nodes = [node for node in self._nodes if not unwanted(node)]

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


class Beam:
    """One beam for each value of the key, opened in rising order and cut when opened.

    A goal that is not the best of its round waits and competes again in the next one, so that a
    short hypothesis does not win by being complete first.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        *,
        width: int | None,
        key: Callable[[Node], Any],
        signature: Callable[[Any], Hashable] | None = None,
        uphill: bool = False,
    ) -> None:
        self._width, self._key, self._signature, self._uphill = width, key, signature, uphill
        self._round: deque[Node] = deque()
        self._waiting: list[Node] = []
        self._later: dict[Any, list[Node]] = {}
        for node in nodes:
            self._later.setdefault(key(node), []).append(node)

    def remove_front(self) -> Node:
        if not self._round:
            self._open()
        return self._round.popleft()

    def enqueue(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if not self._uphill or node.parent is None or node.score > node.parent.score:
                self._later.setdefault(self._key(node), []).append(node)

    def _open(self) -> None:
        opened = self._later.pop(min(self._later)) if self._later else []
        candidates = [*self._waiting, *self._recombined(opened)]
        best = sorted(candidates, key=lambda node: -node.score)[: self._width]
        if best[0].is_goal:
            self._waiting, self._round = [], deque(best)
        else:
            self._waiting = [node for node in best if node.is_goal]
            self._round = deque(node for node in best if not node.is_goal)

    def _recombined(self, nodes: list[Node]) -> Iterable[Node]:
        if self._signature is None:
            return nodes
        best: dict[Hashable, Node] = {}
        for node in nodes:
            same = self._signature(node.state)
            if same not in best or node.score > best[same].score:
                best.pop(same, None)  # the better node takes its own place in the order
                best[same] = node
        return best.values()

    def measure(self, node: Node) -> Any:
        return self._key(node)

    def any_good(self) -> bool:
        groups = (self._round, self._waiting, *self._later.values())
        return any(node.good for nodes in groups for node in nodes)

    def discard(self, unwanted: Callable[[Node], bool]) -> None:
        self._round = deque(node for node in self._round if not unwanted(node))
        self._waiting = [node for node in self._waiting if not unwanted(node)]
        for key, nodes in list(self._later.items()):
            self._later[key] = [node for node in nodes if not unwanted(node)]
            if not self._later[key]:
                del self._later[key]

    def __iter__(self) -> Iterator[Node]:
        yield from self._round
        yield from self._waiting

    def __len__(self) -> int:
        return len(self._round) + len(self._waiting) + sum(map(len, self._later.values()))


class Wrapper:
    """Any queue, to be observed or restricted without touching the loops that use it."""

    def __init__(self, nodes: Sequence[Node], *, queue: MakeQueue):
        self._inner = queue(nodes)

    def remove_front(self) -> Node:
        return self._inner.remove_front()

    def enqueue(self, nodes: Sequence[Node]) -> None:
        self._inner.enqueue(nodes)

    def measure(self, node: Node) -> Any:
        return self._inner.measure(node)

    def any_good(self) -> bool:
        return self._inner.any_good()

    def discard(self, unwanted: Callable[[Node], bool]) -> None:
        self._inner.discard(unwanted)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._inner)

    def __len__(self) -> int:
        return len(self._inner)


class Filtered(Wrapper):
    """Any queue of y-good nodes only."""

    def enqueue(self, nodes: Sequence[Node]) -> None:
        super().enqueue([node for node in nodes if node.good])


class Observed(Wrapper):
    """Any queue that shows what is dequeued."""

    def __init__(
        self, nodes: Sequence[Node], *, queue: MakeQueue, seen: Callable[[Node, Queue], None]
    ) -> None:
        super().__init__(nodes, queue=queue)
        self._seen = seen

    def remove_front(self) -> Node:
        node = super().remove_front()
        self._seen(node, self._inner)
        return node


class Remembering(Wrapper):
    """Any queue, less the nodes whose key was dequeued before."""

    def __init__(
        self, nodes: Sequence[Node], *, queue: MakeQueue, key: Callable[[Any], Hashable]
    ) -> None:
        super().__init__(nodes, queue=queue)
        self._key = key
        self._closed: set[Hashable] = set()
        self._queued = Counter(key(node.state) for node in nodes)  # at least as many as there are

    def remove_front(self) -> Node:
        node = super().remove_front()
        key = self._key(node.state)
        self._closed.add(key)
        if self._queued.pop(key, 0) > 1:
            self.discard(lambda other: self._key(other.state) == key)
        return node

    def enqueue(self, nodes: Sequence[Node]) -> None:
        fresh = [node for node in nodes if self._key(node.state) not in self._closed]
        self._queued.update(self._key(node.state) for node in fresh)
        super().enqueue(fresh)


def _width(width: int) -> int:
    if not isinstance(width, int) or isinstance(width, bool) or width < 1:
        raise ValueError(f"the width of a beam must be a whole number from 1 up, found {width!r}")
    return width
