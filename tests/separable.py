"""Explicit trees whose separability is known, for the tests of the learning side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from random import Random
from typing import Any

from laso.problem import Node, Problem, Vector, make_node, operators
from laso.vectors import Linear

Path = tuple[Any, ...]
Weighted = Mapping[Any, float]
Space = dict[Path, dict[Any, float]]
Example = tuple[Space, set[Path]]


class Tree(Problem):
    """``x`` maps each path to the features of its last step; leaves are goals, ``y`` the wanted."""

    def initial(self, x: Space) -> Path:
        return ()

    def operators(self, x: Space, state: Path) -> list[Any]:
        return [path[-1] for path in x if path[:-1] == state]

    def apply(self, x: Space, state: Path, operator: Any) -> Path:
        return (*state, operator)

    def is_goal(self, x: Space, state: Path) -> bool:
        return not self.operators(x, state)

    def features(self, x: Space, state: Path, operator: Any) -> Vector:
        return dict(x[*state, operator])

    def is_good(self, x: Space, y: set[Path], node: Node) -> bool:
        return any(goal[: node.depth] == node.state for goal in y)


TREE = Tree()


def choice(good: dict[Any, float], *bad: dict[Any, float]) -> Example:
    """One decision; the bad successors come first, so that they win ties."""
    space: Space = {(i,): features for i, features in enumerate(bad)}
    space["good",] = good
    return space, {("good",)}


def successors(example: Example, w: Any = None) -> list[Node]:
    """The nodes one step from the root, scored by ``w``."""
    x, y = example
    w = Linear() if w is None else w
    return operators(TREE, x, make_node(TREE, x, w, y), w, y)


def levels(example: Example, w: Any = None) -> list[list[Node]]:
    """All nodes of the tree by depth, the root left out."""
    x, y = example
    w = Linear() if w is None else w
    front, found = [make_node(TREE, x, w, y)], []
    while front := [child for node in front for child in operators(TREE, x, node, w, y)]:
        found.append(front)
    return found


def same_depth_pairs(data: Iterable[Example]) -> list[Vector]:
    """Phi(x, good) - Phi(x, bad) for all good and bad nodes of equal depth, by enumeration."""
    return [
        minus(good.phi(), bad.phi())
        for example in data
        for level in levels(example)
        for good in level
        if good.good
        for bad in level
        if not bad.good
    ]


def random_data(
    rng: Random, *, examples: int, depth: int, branching: int, names: int = 3, whole: bool = False
) -> list[Example]:
    """Complete trees with random features, shared by all examples, and one good path each."""

    def value() -> float:
        return float(rng.choice((-1, 0, 1))) if whole else rng.uniform(-1.0, 1.0)

    def one() -> Example:
        paths = [p for d in range(1, depth + 1) for p in product(range(branching), repeat=d)]
        space: Space = {path: {f"f{i}": value() for i in range(names)} for path in paths}
        return space, {tuple(rng.randrange(branching) for _ in range(depth))}

    return [one() for _ in range(examples)]


def random_weights(rng: Random, *, names: int = 3) -> Vector:
    """A direction of length one."""
    raw: Vector = {f"f{i}": rng.uniform(-1.0, 1.0) for i in range(names)}
    size = norm(raw) or 1.0
    return {name: value / size for name, value in raw.items()}


def separated(data: Sequence[Example], weights: Vector, gamma: float) -> list[Example]:
    """The data, its good steps moved along ``weights`` until all same-depth pairs are gamma apart.

    Two nodes of equal depth, one good and one bad, differ in at least one good step.
    """
    short = gamma - min(dot(weights, delta) for delta in same_depth_pairs(data))
    shift = max(0.0, short) / dot(weights, weights)

    def moved(example: Example) -> Example:
        space, wanted = example
        good = {goal[:d] for goal in wanted for d in range(1, len(goal) + 1)}
        return {
            path: plus(features, weights, shift) if path in good else dict(features)
            for path, features in space.items()
        }, wanted

    return [moved(example) for example in data]


def rescaled(data: Sequence[Example], factor: float) -> list[Example]:
    """The data with all features multiplied."""
    return [
        ({p: {n: factor * v for n, v in f.items()} for p, f in space.items()}, wanted)
        for space, wanted in data
    ]


def plus(a: Weighted, b: Weighted, factor: float = 1.0) -> Vector:
    return {name: a.get(name, 0.0) + factor * b.get(name, 0.0) for name in {**a, **b}}


def minus(a: Weighted, b: Weighted) -> Vector:
    return plus(a, b, -1.0)


def dot(a: Weighted, b: Weighted) -> float:
    return math.fsum(value * b.get(name, 0.0) for name, value in a.items())


def norm(a: Weighted, p: float = 2.0) -> float:
    return float(math.fsum(abs(value) ** p for value in a.values()) ** (1.0 / p))


def close(a: Weighted, b: Weighted, tolerance: float = 1e-9) -> bool:
    """Equal up to rounding, names that are missing counting as zero."""
    return all(
        math.isclose(a.get(n, 0.0), b.get(n, 0.0), rel_tol=tolerance, abs_tol=tolerance)
        for n in {**a, **b}
    )
