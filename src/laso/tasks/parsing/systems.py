"""The transition systems by name: their problems, their operators, and trees from their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from laso.engine.problem import CompiledProblem
from laso.tasks.parsing import configuration as c
from laso.tasks.parsing.arc_eager import ArcEager, DenseArcEager
from laso.tasks.parsing.arc_hybrid import ArcHybrid, DenseArcHybrid
from laso.tasks.parsing.arc_standard import ArcStandard, DenseArcStandard

Operator = tuple[str, str]  # kind and label of an arc, which may be empty
Arc = tuple[int, int]  # word and head; the number of words is the artificial root
NewArc = Callable[[str, Sequence[int], int, int], Arc | None]
"""A function of the kind of a step that is no SHIFT, the stack, the next word, and the number of
words.

It returns the arc that the step adds. The artificial root is at the bottom of the stack.
"""


@dataclass(frozen=True)
class System:
    """A transition system."""

    problem: type[CompiledProblem]
    dense: type[CompiledProblem]  # for words with dense vectors
    always: tuple[str, ...]  # names of the operators without a label
    arc_of: NewArc
    dynamic: bool = True  # whether several paths to a tree may be good

    def arcs(self, steps: Iterable[Operator], n: int) -> Iterator[tuple[int, int, str] | None]:
        """Yield for each step the arc that it adds: word, head (n: the root), label; or None."""
        front, stack, arc_of = 0, [n], self.arc_of
        for kind, label in steps:
            arc = None if kind == "shift" else arc_of(kind, stack, front, n)
            if arc is None:
                yield None
                word = front if kind == "shift" else stack[-1]
            else:
                word, head = arc
                yield word, head, label
            if word == front:
                stack.append(front)
                front += 1
            else:
                stack.remove(word)

    def new_arc(self, state: Sequence[int], kind: str) -> Arc | None:
        """Return word and head of the arc that a step of a kind adds to a configuration."""
        n, end = state[c.LENGTH], c.STACK + state[c.SIZE] * c.WIDTH
        stack = [n, *(state[at] for at in range(c.STACK, end, c.WIDTH))]
        return None if kind == "shift" else self.arc_of(kind, stack, state[c.FRONT], n)


def hybrid_arc(kind: str, stack: Sequence[int], front: int, n: int) -> Arc:
    """Return the arc of a step of arc-hybrid that is no SHIFT."""
    return stack[-1], stack[-2] if kind == "right" else front


def standard_arc(kind: str, stack: Sequence[int], front: int, n: int) -> Arc:
    """Return the arc of a step of arc-standard that is no SHIFT."""
    if kind == "left":
        return stack[-2], stack[-1]
    return stack[-1], stack[-2] if kind == "right" else n


def eager_arc(kind: str, stack: Sequence[int], front: int, n: int) -> Arc | None:
    """Return the arc of a step of arc-eager that is no SHIFT; REDUCE adds none."""
    if kind == "right":
        return (front, stack[-1]) if front < n else (stack[-1], stack[-2])
    return None if kind == "reduce" else (stack[-1], front)


SYSTEMS: dict[str, System] = {
    "arc-hybrid": System(ArcHybrid, DenseArcHybrid, ("shift",), hybrid_arc),
    "arc-eager": System(ArcEager, DenseArcEager, ("reduce", "shift"), eager_arc),
    "arc-standard": System(ArcStandard, DenseArcStandard, ("shift",), standard_arc, dynamic=False),
}
