"""The transition systems by name: their problems, their operators, and trees from their steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from laso.engine.problem import CompiledProblem
from laso.tasks.parsing import configuration as c
from laso.tasks.parsing.arc_eager import ArcEager
from laso.tasks.parsing.arc_hybrid import ArcHybrid
from laso.tasks.parsing.arc_standard import ArcStandard

Operator = tuple[str, str]  # kind and label of an arc, which may be empty


@dataclass(frozen=True)
class System:
    """A transition system."""

    problem: type[CompiledProblem]
    always: tuple[str, ...]  # names of the operators without a label
    dynamic: bool = True  # whether several paths to a tree may be good

    def arcs(self, steps: Iterable[Operator], n: int) -> Iterator[tuple[int, int, str] | None]:
        """Yield for each step the arc that it adds: word, head (n: the root), label; or None."""
        raise NotImplementedError

    def new_arc(self, state: Sequence[int], kind: str) -> tuple[int, int] | None:
        """Return word and head of the arc that a step of a kind adds to a configuration."""
        raise NotImplementedError


class Hybrid(System):
    """Arc-hybrid."""

    def arcs(self, steps: Iterable[Operator], n: int) -> Iterator[tuple[int, int, str] | None]:
        """Yield for each step the arc that it adds."""
        front, stack = 0, [n]
        for kind, label in steps:
            if kind == "shift":
                stack.append(front)
                front += 1
                yield None
            else:
                word = stack.pop()
                yield word, stack[-1] if kind == "right" else front, label

    def new_arc(self, state: Sequence[int], kind: str) -> tuple[int, int] | None:
        """Return word and head of the arc that a step of a kind adds to a configuration."""
        if kind == "shift":
            return None
        at = c.STACK + (state[c.SIZE] - 1) * c.WIDTH
        return state[at], state[at - c.WIDTH] if kind == "right" else state[c.FRONT]


class Standard(System):
    """Arc-standard."""

    def arcs(self, steps: Iterable[Operator], n: int) -> Iterator[tuple[int, int, str] | None]:
        """Yield for each step the arc that it adds."""
        front, stack = 0, [n]
        for kind, label in steps:
            if kind == "shift":
                stack.append(front)
                front += 1
                yield None
            elif kind == "left":
                yield stack.pop(-2), stack[-1], label
            else:
                word = stack.pop()
                yield word, stack[-1] if kind == "right" else n, label

    def new_arc(self, state: Sequence[int], kind: str) -> tuple[int, int] | None:
        """Return word and head of the arc that a step of a kind adds to a configuration."""
        if kind == "shift":
            return None
        at = c.STACK + (state[c.SIZE] - 1) * c.WIDTH
        if kind == "left":
            return state[at - c.WIDTH], state[at]
        return state[at], state[at - c.WIDTH] if kind == "right" else state[c.FRONT]


class Eager(System):
    """Arc-eager."""

    def arcs(self, steps: Iterable[Operator], n: int) -> Iterator[tuple[int, int, str] | None]:
        """Yield for each step the arc that it adds."""
        front, stack = 0, [n]
        for kind, label in steps:
            arc = None
            if kind in ("left", "root"):
                arc = (stack.pop(), front, label)
            elif kind == "right" and front < n:
                arc = (front, stack[-1], label)
            elif kind in ("right", "reduce"):
                word = stack.pop()
                arc = (word, stack[-1], label) if kind == "right" else None
                yield arc
                continue
            if kind in ("shift", "right"):
                stack.append(front)
                front += 1
            yield arc

    def new_arc(self, state: Sequence[int], kind: str) -> tuple[int, int] | None:
        """Return word and head of the arc that a step of a kind adds to a configuration."""
        if kind in ("shift", "reduce"):
            return None
        at = c.STACK + (state[c.SIZE] - 1) * c.WIDTH
        front, n = state[c.FRONT], state[c.LENGTH]
        if kind == "right":
            return (front, state[at]) if front < n else (state[at], state[at - c.WIDTH])
        return state[at], front


SYSTEMS: dict[str, System] = {
    "arc-hybrid": Hybrid(ArcHybrid, ("shift",)),
    "arc-eager": Eager(ArcEager, ("reduce", "shift")),
    "arc-standard": Standard(ArcStandard, ("shift",), dynamic=False),
}
