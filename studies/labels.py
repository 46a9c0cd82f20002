"""Names beside the points of a plot, placed so that none covers another name or a point."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

DISTANCES = (7, 14, 22, 32, 44, 58, 74)  # from a point to its name, in typographic points
ANGLES = (0, 180, 45, 135, 315, 225, 90, 270, 20, 340, 160, 200, 65, 115, 245, 295)
LEADER = 10  # names farther away than this have a line to their point
GAP = 1.5  # pixels between names
ALIGNED = {"left": 0.0, "center": 0.5, "right": 1.0}


@dataclass(frozen=True)
class Point:
    """A point with a name; ``spread`` is half the length of its vertical error bar."""

    x: float
    y: float
    name: str
    colour: str = "black"
    spread: float = 0.0


class Box(NamedTuple):
    """A rectangle in pixels."""

    left: float
    low: float
    right: float
    high: float

    def overlaps(self, other: Box) -> bool:
        """Return whether the two rectangles overlap."""
        apart_x = self.right <= other.left or other.right <= self.left
        apart_y = self.high <= other.low or other.high <= self.low
        return not (apart_x or apart_y)

    def within(self, other: Box) -> bool:
        """Return whether the other rectangle contains this one."""
        return (
            other.left <= self.left
            and other.low <= self.low
            and self.right <= other.right
            and self.high <= other.high
        )

    def crossed_by(self, line: Line) -> bool:
        """Return whether a line crosses the rectangle, checked at 41 points of the line."""
        (x0, y0), (x1, y1) = line
        for i in range(41):
            x, y = x0 + (x1 - x0) * i / 40, y0 + (y1 - y0) * i / 40
            if self.left < x < self.right and self.low < y < self.high:
                return True
        return False


Line = tuple[tuple[float, float], tuple[float, float]]


class Candidate(NamedTuple):
    """A place for a name: its offset from the point, its rectangle and its leader line."""

    dx: float
    dy: float
    box: Box
    line: Line


def label_points(axis: Any, points: Sequence[Point], *, size: float = 8.5) -> None:
    """Name the points of an axis whose limits are final.

    Names take the nearest free place, those with the most neighbours first. A name that has to stay
    away from its point gets a thin line to it.
    """
    figure = axis.figure
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # from here on, nothing moves
    pixels = figure.dpi / 72
    renderer = figure.canvas.get_renderer()
    frame = Box(*axis.get_window_extent(renderer).extents)
    marks = [_mark(axis, point, pixels) for point in points]
    boxes: list[Box] = []
    lines: list[Line] = []
    for i in sorted(range(len(points)), key=lambda i: -_neighbours(marks, i)):
        point = points[i]
        text = axis.annotate(
            point.name, (point.x, point.y), fontsize=size, color=point.colour, va="center"
        )
        extent = text.get_window_extent(renderer)
        text.remove()
        others = [*boxes, *marks[:i], *marks[i + 1 :]]
        place = _best(axis, point, (extent.width, extent.height), pixels, frame, others, lines)
        boxes.append(place.box)
        lines.append(place.line)
        far = math.hypot(place.dx, place.dy) > LEADER
        end = (ALIGNED[_side(place.dx)], 0.5)
        leader = {"arrowstyle": "-", "color": "0.55", "lw": 0.6, "relpos": end}
        axis.annotate(
            point.name,
            (point.x, point.y),
            xytext=(place.dx, place.dy),
            textcoords="offset points",
            fontsize=size,
            color=point.colour,
            ha=_side(place.dx),
            va="center",
            arrowprops={**leader, "shrinkA": 0, "shrinkB": 3} if far else None,
        )


def _best(
    axis: Any,
    point: Point,
    size: tuple[float, float],
    pixels: float,
    frame: Box,
    others: list[Box],
    lines: list[Line],
) -> Candidate:
    """Return the first place without a collision, or the place with the fewest collisions."""
    fewest, best = math.inf, None
    for place in _candidates(axis, point, size, pixels):
        collisions = sum(
            place.box.overlaps(other) + other.crossed_by(place.line) for other in others
        )
        collisions += sum(place.box.crossed_by(line) for line in lines)
        collisions += 0 if place.box.within(frame) else 3
        if collisions < fewest:
            fewest, best = collisions, place
        if not collisions:
            break
    assert best is not None
    return best


def _candidates(
    axis: Any, point: Point, size: tuple[float, float], pixels: float
) -> Iterator[Candidate]:
    x, y = axis.transData.transform((point.x, point.y))
    width, height = size
    for distance in DISTANCES:
        for angle in ANGLES:
            dx = distance * math.cos(math.radians(angle))
            dy = distance * math.sin(math.radians(angle))
            left = x + dx * pixels - ALIGNED[_side(dx)] * width
            middle = y + dy * pixels
            box = Box(
                left - GAP, middle - height / 2 - GAP, left + width + GAP, middle + height / 2 + GAP
            )
            yield Candidate(dx, dy, box, ((x, y), (x + dx * pixels, middle)))


def _side(dx: float) -> str:
    """Return the alignment of a name at this horizontal offset."""
    return "center" if abs(dx) < 0.5 else "left" if dx > 0 else "right"


def _mark(axis: Any, point: Point, pixels: float) -> Box:
    """Return the rectangle of a point and its error bar."""
    x, low = axis.transData.transform((point.x, point.y - point.spread))
    _, high = axis.transData.transform((point.x, point.y + point.spread))
    half = 4 * pixels
    return Box(x - half, low - half, x + half, high + half)


def _neighbours(marks: list[Box], i: int) -> int:
    """Return the number of other points close by."""
    reach = 60
    wide = Box(*(edge + sign * reach for edge, sign in zip(marks[i], (-1, -1, 1, 1), strict=True)))
    return sum(wide.overlaps(other) for j, other in enumerate(marks) if j != i)
