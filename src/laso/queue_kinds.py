"""The data structures of the queue disciplines: what holds the nodes of a search.

There are three kinds of queue (a line, a ranking, a beam that is opened round by round) and
wrappers around any of them. ``laso.queues`` has the disciplines that users choose from. Ties are
broken by insertion order throughout.
"""

from __future__ import annotations

from bisect import insort
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
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


class Rounds:
    """One beam for each value of the key, opened in rising order and cut when opened.

    A goal that is not the best of its round waits and competes again in the next one, so that a
    short hypothesis does not win by being complete first. In exact search all goals wait until
    every other path has ended.
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
        self._exact = width is None and signature is not None
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
        unfinished = self._later or not all(node.is_goal for node in best)
        if best[0].is_goal and not (self._exact and unfinished):
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


class OnlyGoodQueue(Wrapper):
    """Any queue of y-good nodes only."""

    def enqueue(self, nodes: Sequence[Node]) -> None:
        super().enqueue([node for node in nodes if node.good])


class ObservedQueue(Wrapper):
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


class ClosedSetQueue(Wrapper):
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
