"""Small search spaces, their enumeration by brute force, and strategies that draw them.

Weights are whole numbers or multiples of a power of two, so that sums are exact in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from laso import Linear, Node, Problem, search
from laso.problem import UNKNOWN, Weights
from laso.queues import MakeQueue, observed

quick = settings(
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)

Path = tuple[Any, ...]


# Graphs: each edge has its own feature, so its own weight.


@dataclass(frozen=True)
class Graph:
    """States with weighted edges in the order in which operators are offered."""

    edges: Mapping[Any, Mapping[Any, float]]
    goals: frozenset[Any]
    start: Any = 0
    h: Mapping[Any, float] = field(default_factory=dict)

    def weights(self) -> dict[Hashable, float]:
        return {(a, b): w for a, following in self.edges.items() for b, w in following.items()}

    def vector(self) -> Linear:
        return Linear(self.weights())


class GraphProblem(Problem):
    """x is a graph, y the set of goals that are good; an operator is the state it leads to."""

    def initial(self, x: Graph) -> Any:
        return x.start

    def operators(self, x: Graph, state: Any) -> Iterable[Any]:
        return x.edges.get(state, {})

    def apply(self, x: Graph, state: Any, operator: Any) -> Any:
        return operator

    def is_goal(self, x: Graph, state: Any) -> bool:
        return state in x.goals

    def features(self, x: Graph, state: Any, operator: Any) -> list[Hashable]:
        return [(state, operator)]

    def h(self, x: Graph, state: Any) -> float:
        return x.h.get(state, 0.0)

    def is_good(self, x: Graph, y: frozenset[Any], node: Node) -> bool:
        return leads_to(x, y, node.state)


def reachable_goals(graph: Graph, state: Any) -> set[Any]:
    """The goals that a search from ``state`` can come to; it goes no further than a goal."""
    seen, waiting = {state}, [state]
    while waiting:
        here = waiting.pop()
        if here not in graph.goals:
            new = set(graph.edges.get(here, {})) - seen
            seen |= new
            waiting += new
    return seen & graph.goals


def leads_to(graph: Graph, y: Iterable[Any], state: Any) -> bool:
    return not reachable_goals(graph, state).isdisjoint(y)


def successors(graph: Graph, path: Path) -> list[Path]:
    return [(*path, state) for state in graph.edges.get(path[-1], {})]


def all_paths(graph: Graph) -> Iterator[Path]:
    """Every path of an acyclic graph that a search can make, each before its continuations."""

    def onwards(path: Path) -> Iterator[Path]:
        yield path
        if path[-1] not in graph.goals:
            for longer in successors(graph, path):
                yield from onwards(longer)

    return onwards((graph.start,))


def goal_paths(graph: Graph) -> list[Path]:
    return [path for path in all_paths(graph) if path[-1] in graph.goals]


def path_weight(graph: Graph, path: Path) -> float:
    return sum(graph.edges[a][b] for a, b in pairwise(path))


def value(graph: Graph, path: Path) -> float:
    return path_weight(graph, path) + graph.h.get(path[-1], 0.0)


def best_rest(graph: Graph, *, raised: Mapping[tuple[Any, Any], float] = {}) -> dict[Any, float]:
    """What the best way to a goal adds, from each state; weights ``raised`` as given.

    Bellman's equation, iterated as often as there are states: right for acyclic graphs and for
    weights that are not positive. A state from which no goal is reached has a very low number.
    """
    states = {graph.start, *graph.edges, *(b for e in graph.edges.values() for b in e)}
    best = {state: 0.0 if state in graph.goals else -1000.0 for state in states}
    for _ in states:
        for a in states - graph.goals:
            for b, weight in graph.edges.get(a, {}).items():
                best[a] = max(best[a], weight + raised.get((a, b), 0.0) + best[b])
    return best


def paths_of(nodes: Iterable[Node]) -> list[Path]:
    return [path_of(node) for node in nodes]


def path_of(node: Node) -> Path:
    return tuple(step.state for step in node.path)


def states_of(nodes: Iterable[Node]) -> list[Any]:
    return [node.state for node in nodes]


def run(
    problem: Problem, x: Any, w: Weights, queue: MakeQueue, y: Any = UNKNOWN
) -> tuple[list[Node], Node | None]:
    """All nodes that a search dequeues, in order, and what it returns."""
    seen: list[Node] = []
    goal = search(problem, x, w, observed(queue, lambda node, rest: seen.append(node)), y=y)
    return seen, goal


def dequeued(graph: Graph, queue: MakeQueue) -> list[Path]:
    """The paths dequeued in a search over ``graph``, the goal last if one is found."""
    seen, goal = run(GraphProblem(), graph, graph.vector(), queue)
    assert goal is None or goal is seen[-1]
    return paths_of(seen)


small = st.integers(-3, 3).map(float)
costs = st.integers(-3, 0).map(float)


@st.composite
def graphs(
    draw: st.DrawFn,
    *,
    weights: st.SearchStrategy[float] = small,
    max_states: int = 10,
    shape: str = "tree",
) -> Graph:
    """A random "tree", "dag" or "cyclic" graph; goals are any states but the first."""
    size = draw(st.integers(2, max_states))
    edges: dict[Any, dict[Any, float]] = {n: {} for n in range(size)}
    for n in range(1, size):
        edges[draw(st.integers(0, n - 1))][n] = draw(weights)
    if shape != "tree":
        ends = st.tuples(st.integers(0, size - 1), st.integers(0, size - 1))
        for a, b in draw(st.lists(ends, max_size=size)):
            if shape == "cyclic" or a < b:
                edges[a][b] = draw(weights)
    goals = draw(st.sets(st.integers(1, size - 1), min_size=1, max_size=4))
    return Graph(edges, frozenset(goals))


@st.composite
def guided(draw: st.DrawFn, bases: st.SearchStrategy[Graph]) -> Graph:
    """A graph with any heuristic at all."""
    graph = draw(bases)
    h = {state: draw(small) for state in graph.edges}
    return Graph(graph.edges, graph.goals, graph.start, h)


@st.composite
def learnable(draw: st.DrawFn, *, shape: str = "dag") -> tuple[Graph, frozenset[Any]]:
    """A graph with a heuristic, and some of its goals as the output wanted."""
    graph = draw(guided(graphs(shape=shape, max_states=8)))
    goals = sorted(reachable_goals(graph, graph.start))
    return graph, frozenset(draw(st.sets(st.sampled_from(goals), min_size=1)))


# Sequence labelling: one good path, all goals equally deep.


class Tagging(Problem):
    """x is a tuple of words, y a tuple of labels, a state the labels so far."""

    def __init__(self, labels: str = "AB"):
        self.labels = labels

    def initial(self, x: Sequence[str]) -> Path:
        return ()

    def operators(self, x: Sequence[str], state: Path) -> str:
        return self.labels

    def apply(self, x: Sequence[str], state: Path, operator: str) -> Path:
        return (*state, operator)

    def is_goal(self, x: Sequence[str], state: Path) -> bool:
        return len(state) == len(x)

    def features(self, x: Sequence[str], state: Path, operator: str) -> list[Hashable]:
        return tagging_step(x, state, operator)

    def is_good(self, x: Sequence[str], y: Path, node: Node) -> bool:
        return bool(node.state == y[: len(node.state)])


def tagging_step(x: Sequence[str], labels: Path, label: str) -> list[Hashable]:
    before = labels[-1] if labels else "^"
    return [("word", x[len(labels)], label), ("pair", before, label)]


def tagging_phi(x: Sequence[str], labels: Path) -> list[Hashable]:
    """The features of all labels of a sentence or of its beginning."""
    return [f for i, label in enumerate(labels) for f in tagging_step(x, labels[:i], label)]


def labellings(labels: str, length: int) -> list[Path]:
    return list(product(labels, repeat=length))


@st.composite
def tagging(draw: st.DrawFn, *, labels: str = "ABC") -> tuple[tuple[str, ...], Linear]:
    """A sentence of up to four words, and weights for it."""
    x = tuple(draw(st.lists(st.sampled_from("wxyz"), min_size=1, max_size=4)))
    names: list[Hashable] = [("word", word, label) for word in sorted(set(x)) for label in labels]
    names += [("pair", before, label) for before in "^" + labels for label in labels]
    values = draw(st.lists(small, min_size=len(names), max_size=len(names)))
    return x, Linear(dict(zip(names, values, strict=True)))


def dot(weights: Mapping[Any, float], names: Iterable[Hashable]) -> float:
    return sum(weights.get(name, 0.0) for name in names)


# Segmentation: one good path, goals of different depth.


class Segmentation(Problem):
    """x is a string, y a tuple of segments (text, label), a state the segments so far."""

    longest = 3

    def initial(self, x: str) -> Path:
        return ()

    def operators(self, x: str, state: Path) -> list[tuple[str, str]]:
        rest = x[covered(state) :]
        return [
            (rest[:n], label) for n in range(1, min(self.longest, len(rest)) + 1) for label in "AB"
        ]

    def apply(self, x: str, state: Path, operator: tuple[str, str]) -> Path:
        return (*state, operator)

    def is_goal(self, x: str, state: Path) -> bool:
        return covered(state) == len(x)

    def features(self, x: str, state: Path, operator: tuple[str, str]) -> list[Hashable]:
        return segmentation_step(state, operator)

    def is_good(self, x: str, y: Path, node: Node) -> bool:
        return bool(node.state == y[: len(node.state)])


def covered(segments: Path) -> int:
    return sum(len(text) for text, _ in segments)


def segmentation_step(segments: Path, new: tuple[str, str]) -> list[Hashable]:
    return [("text", *new), ("pair", segments[-1][1] if segments else "^", new[1])]


def segmentation_phi(segments: Path) -> list[Hashable]:
    return [f for i, new in enumerate(segments) for f in segmentation_step(segments[:i], new)]


def segmentations(x: str, longest: int = Segmentation.longest) -> list[Path]:
    if not x:
        return [()]
    return [
        ((x[:n], label), *rest)
        for n in range(1, min(longest, len(x)) + 1)
        for label in "AB"
        for rest in segmentations(x[n:], longest)
    ]


@st.composite
def segmentation(draw: st.DrawFn) -> tuple[str, Linear]:
    """A string of up to five letters, and weights for it."""
    x = draw(st.text("uv", min_size=1, max_size=5))
    names = sorted({f for y in segmentations(x) for f in segmentation_phi(y)}, key=repr)
    values = draw(st.lists(small, min_size=len(names), max_size=len(names)))
    return x, Linear(dict(zip(names, values, strict=True)))


# Orderings: every order of the same decisions is good.


class Orderings(Problem):
    """x is a string of items, y labels each; a state is the decisions made so far, in any order."""

    def initial(self, x: str) -> Path:
        return ()

    def operators(self, x: str, state: Path) -> list[tuple[str, str]]:
        done = {item for item, _ in state}
        return [(item, label) for item in x if item not in done for label in "AB"]

    def apply(self, x: str, state: Path, operator: tuple[str, str]) -> Path:
        return (*state, operator)

    def is_goal(self, x: str, state: Path) -> bool:
        return len(state) == len(x)

    def features(self, x: str, state: Path, operator: tuple[str, str]) -> list[Hashable]:
        item, label = operator
        return [("item", item, label), ("time", item, len(state))]

    def is_good(self, x: str, y: Mapping[str, str], node: Node) -> bool:
        return all(y[item] == label for item, label in node.state)

    def output(self, x: str, state: Path) -> dict[str, str]:
        return dict(state)


def last(state: Path) -> Any:
    """The last thing a state did: what its future depends on in tagging and segmentation."""
    return state[-1] if state else None


Discipline = Callable[[], MakeQueue]
