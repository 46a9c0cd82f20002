"""L-BFGS (Nocedal 1980) and OWL-QN (Andrew & Gao 2007): minimise f(x) + l1 * |x|.

for point in descend(function, start, l1=0.1):
    if np.abs(point.slope).max() < 1e-5:
        break
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from laso.engine.layout import Array

Function = Callable[[Array], tuple[float, Array]]

SUFFICIENT = 1e-4  # the part of the decrease promised by the slope that a step must keep (Armijo)
TRIALS = 30  # of a line search; the step is then too small to change anything
ROUNDING = 1e-14  # relative to the value
SHRINKING = 0.9  # of the square of the slope, where values tell nothing
FLAT = 1e-16  # a curvature below it, relative to the gradients, is rounding


class Point(NamedTuple):
    """A point on the way down."""

    x: Array
    value: float  # f(x) + l1 * |x|
    gradient: Array  # of f
    slope: Array  # of f + l1 * |x|: in each direction the steepest that leads down, or 0


def dot(a: Array, b: Array) -> float:
    """Return a . b in one thread: for a sum over memory more of them cost time and gain none."""
    return float(np.einsum("i,i->", a, b))


def descend(
    function: Function, start: Array, *, l1: float = 0.0, memory: int = 6
) -> Iterator[Point]:
    """Yield the start, and the point after each iteration, until no step leads down any more.

    ``function`` returns the value and the gradient of f, which is convex. Without ``l1`` this is
    L-BFGS; with it, Algorithm 1 of Andrew & Gao: no step crosses zero in any coordinate.
    """
    past: deque[tuple[Array, Array, float]] = deque(maxlen=memory)
    point = _evaluate(function, start, l1)
    yield point
    while True:
        direction = _direction(point.slope, past)
        if l1:
            direction[direction * point.slope >= 0.0] = 0.0
        promised = dot(direction, point.slope)
        length = 1.0 if past else 1.0 / max(math.sqrt(dot(point.slope, point.slope)), 1e-300)
        better = None
        if promised < 0.0:
            better = _search(function, point, direction, length=length, l1=l1)
        if better is None:
            return
        step, change = better.x - point.x, better.gradient - point.gradient
        curvature = dot(step, change)
        if curvature > FLAT * dot(change, change):
            past.append((step, change, curvature))
        point = better
        yield point


def _evaluate(function: Function, x: Array, l1: float) -> Point:
    value, gradient = function(x)
    if not l1:
        return Point(x, value, gradient, gradient)
    # At zero, |x| has slopes from -1 to 1: the weight stays there unless f is steeper than that.
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    slope = np.where(x != 0.0, gradient + l1 * np.sign(x), at_zero)
    return Point(x, value + l1 * float(np.abs(x).sum()), gradient, slope)


def _direction(slope: Array, past: deque[tuple[Array, Array, float]]) -> Array:
    """Return -H slope, where the past steps approximate H, the inverse of the Hessian."""
    direction: Array = -slope
    alphas, scaled = [], np.empty_like(slope)
    for step, change, curvature in reversed(past):
        alphas.append(dot(step, direction) / curvature)
        direction -= np.multiply(change, alphas[-1], out=scaled)
    if past:
        _, change, curvature = past[-1]
        direction *= curvature / dot(change, change)
    for step, change, curvature in past:
        beta = dot(change, direction) / curvature
        direction += np.multiply(step, alphas.pop() - beta, out=scaled)
    return direction


def _search(
    function: Function, point: Point, direction: Array, *, length: float, l1: float
) -> Point | None:
    """Return a point in a direction with a sufficient decrease, by backtracking; None if none."""
    orthant = np.where(point.x != 0.0, np.sign(point.x), -np.sign(point.slope)) if l1 else None
    for _ in range(TRIALS):
        x = point.x + length * direction
        if orthant is not None:
            x[x * orthant < 0.0] = 0.0
        promised = dot(x - point.x, point.slope)
        if not promised < ROUNDING * SUFFICIENT * -abs(point.value):
            return None
        tried = _evaluate(function, x, l1)
        change = tried.value - point.value
        if change <= SUFFICIENT * promised or _is_lower(point, tried, change):
            return tried
        # The minimum of the parabola through both values with the slope at the start.
        excess = change - promised
        factor = -promised / (2.0 * excess) if math.isfinite(excess) and excess > 0.0 else 0.5
        length *= min(0.5, max(0.1, factor))
    return None


def _is_lower(point: Point, found: Point, change: float) -> bool:
    """Return whether the slope is less at a new point, where the values differ by rounding only."""
    if not abs(change) <= ROUNDING * abs(point.value):
        return False
    return dot(found.slope, found.slope) < SHRINKING * dot(point.slope, point.slope)
