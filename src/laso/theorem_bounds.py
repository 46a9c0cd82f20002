"""The quantities of Theorems 1 and 4 and their corollaries, on given data.

The theorems are about decisions: at a y-good node, the search takes one successor. ``pairs`` lists
the decisions; R, the margin and D are functions of them. The definitions differ from the paper's
text in three places, which docs/explanation/theory.md explains: R compares good with bad successors
(the literal definition is too small by a factor of up to two), Corollary 5 uses
rho = 1 / (C gamma), and its D sums hinges, not their squares.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from laso.problem import Node, Problem, Vector, make_node, operators
from laso.vectors import Linear, combined

Data = Iterable[tuple[Any, Any]]


def pairs(problem: Problem, data: Data) -> Iterator[list[Vector]]:
    """Yield Phi(x, good) - Phi(x, bad) of all successors of each y-good node that is no goal.

    Parameters
    ----------
    problem : Problem
        The search problem. All its y-good paths are followed, so it should be small.
    data : iterable of (x, y)
        The examples.

    Yields
    ------
    list of dict
        The differences of feature vectors at one node.
    """
    w = Linear()
    for x, y in data:
        front = [make_node(problem, x, w, y)]
        while front:
            node = front.pop()
            if node.is_goal:
                continue
            following = operators(problem, x, node, w, y)
            good = [child for child in following if child.good]
            bad = [child for child in following if not child.good]
            front += good
            yield [_difference(g, b) for g in good for b in bad]


def radius(problem: Problem, data: Data) -> float:
    """Return R of Theorem 1: the largest ||Phi(x, good) - Phi(x, bad)|| at any y-good node."""
    return max((_norm(d) for decision in pairs(problem, data) for d in decision), default=0.0)


def margins(
    problem: Problem, data: Data, weights: Mapping[Any, float], *, projected: bool = False
) -> list[float]:
    """Return the margin p_s of each decision, for weights scaled to ||w|| = 1.

    Parameters
    ----------
    problem : Problem
        The search problem.
    data : iterable of (x, y)
        The examples.
    weights : mapping
        The weights by feature name.
    projected : bool, default=False
        Whether to replace Delta by Delta / max(1, ||Delta||), as the large margin update does.

    Returns
    -------
    list of float
        The smallest difference of scores between a good and a bad successor, for each decision.
    """
    size = _norm(weights)
    if not size:
        raise ValueError("the margin of a zero weight vector is not defined")

    def one(delta: Vector) -> float:
        along = sum(weights.get(name, 0.0) * value for name, value in delta.items()) / size
        return along / max(1.0, _norm(delta)) if projected else along

    return [min(map(one, decision)) for decision in pairs(problem, data) if decision]


def margin(
    problem: Problem, data: Data, weights: Mapping[Any, float], *, projected: bool = False
) -> float:
    """Return gamma, the smallest of ``margins``; it is negative for inseparable data."""
    return min(margins(problem, data, weights, projected=projected), default=math.inf)


def deviation(margins: Iterable[float], gamma: float, *, order: int = 2) -> float:
    """Return D_{w,gamma}, the total shortfall of margins below gamma, in the norm of ``order``."""
    short = [max(0.0, gamma - p) for p in margins]
    return math.fsum(short) if order == 1 else math.sqrt(math.fsum(s * s for s in short))


def theorem1(R: float, gamma: float) -> float:
    """Theorem 1: return R^2 / gamma^2, the bound on perceptron errors on separable data."""
    return R**2 / _positive(gamma) ** 2


def corollary2(R: float, gamma: float, D: float) -> float:
    """Corollary 2: return (R + D)^2 / gamma^2, the bound on perceptron errors on any data."""
    return (R + D) ** 2 / _positive(gamma) ** 2


def theorem4(gamma: float, alpha: float) -> float:
    """Theorem 4: return 2/gamma^2 (2/alpha - 1)^2 + 8/alpha - 4, the bound on corrections."""
    return 2.0 / _positive(gamma) ** 2 * (2.0 / alpha - 1.0) ** 2 + 8.0 / alpha - 4.0


def corollary5(gamma: float, D: float, *, alpha: float, B: float, C: float) -> float:
    """Corollary 5: return the bound on corrections on any data, with rho = 1 / (C gamma)."""
    condition = C**2 + 2.0 * (1.0 - alpha) * B * C
    if not math.isclose(condition, 1.0, rel_tol=1e-6):
        raise ValueError(
            f"Corollary 5 needs C^2 + 2 (1 - alpha) B C = 1, found {condition:.6g} for "
            f"alpha={alpha}, B={B}, C={C}"
        )
    rho = 1.0 / (C * _positive(gamma))
    short = D / gamma
    return short + rho**2 / 2.0 + rho * math.sqrt(rho**2 / 4.0 + short + 1.0)


def _positive(gamma: float) -> float:
    if not gamma > 0.0:
        raise ValueError(f"a bound needs a positive margin, found {gamma}")
    return gamma


def _difference(good: Node, bad: Node) -> Vector:
    return combined([(good, 1.0), (bad, -1.0)])


def _norm(vector: Mapping[Any, float]) -> float:
    return math.sqrt(math.fsum(value * value for value in vector.values()))
