"""What a person asks of a search: its width, a bias, and parts that are known or banned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from laso.errors import BadData, quoted
from laso.params import is_whole
from laso.queues import Beam, beam

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task

WIDEST = 1000
LARGEST_BIAS = 1e6
SPANS, ARCS, CLUSTERS = "spans", "arcs", "clusters"  # what is known or banned, by kinds of tasks
NEW = "new"
MARKS = {"B": "I", "S": "E"}


@dataclass(frozen=True)
class Steering:
    """What a person asks of a search; by default nothing.

    Parameters
    ----------
    width : int, default=None
        The width of the beam; None: the queue of the model.
    bias : mapping, default={}
        What is added to the scores of labels: precision against recall.
    known, banned : sequence of mapping, default=()
        Parts of the output: of spans ``start``, ``end`` and ``label``; of trees ``start`` (the
        word), ``head`` (from 1, 0 is the root, or null) and ``label`` (or null); of clusters
        ``start`` (the item) and ``other`` (an item before it, or "new").
    """

    width: int | None = None
    bias: Mapping[str, float] = field(default_factory=dict)
    known: Sequence[Mapping[str, Any]] = ()
    banned: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def of(cls, given: Any) -> Steering:
        """Return the steering that a request describes; anything else raises BadData."""
        if given is None:
            return cls()
        if not isinstance(given, dict) or set(given) - set(cls.__dataclass_fields__):
            raise BadData(f"found {quoted(given)}, expected width, bias, known or banned")
        width, bias = given.get("width"), given.get("bias") or {}
        if width is not None and not is_whole(width, 1, WIDEST):
            raise BadData(f"found the width {quoted(width)}, expected from 1 to {WIDEST}")
        if not isinstance(bias, dict) or not all(
            isinstance(b, (int, float)) and abs(b) <= LARGEST_BIAS for b in bias.values()
        ):
            raise BadData(f"found the bias {quoted(bias)}, expected a number for each label")
        parts = [given.get(name) or [] for name in ("known", "banned")]
        for part in parts:
            if not isinstance(part, list) or not all(isinstance(each, dict) for each in part):
                raise BadData(f"found {quoted(part)}, expected a list of parts of the output")
        return cls(width, {k: float(b) for k, b in bias.items() if b}, *parts)

    @property
    def forces(self) -> bool:
        """Whether parts of the output are known or banned."""
        return bool(self.known or self.banned)

    def model(self, model: SearchEstimator) -> SearchEstimator:
        """Return a model with this width and bias, which shares what searches have in common."""
        chosen = model.biased(self.bias) if self.bias else model.snapshot()
        if self.width is not None:
            usual: Any = chosen.search_queue(chosen.task_)
            is_beam = isinstance(usual, Beam)
            chosen.queue = replace(usual, width=self.width) if is_beam else beam(self.width)
        return chosen

    def parts(self, kind: str, n: int, task: Task) -> dict[str, Any]:
        """Return what is known and banned as ``predict_forced`` takes it for one input."""
        if not self.forces:
            return {}
        for part in (*self.known, *self.banned):
            if not is_whole(part.get("start"), 0, n - 1):
                raise BadData(f"found {quoted(dict(part))}, expected a start from 0 to {n - 1}")
        return {SPANS: self._spans, ARCS: self._arcs, CLUSTERS: self._clusters}[kind](n, task)

    def _spans(self, n: int, task: Task) -> dict[str, Any]:
        labels = [str(label) for label in task.classes]
        known: list[tuple[str, int, int]] = []
        banned: list[list[str]] = [[] for _ in range(n)]
        for part in self.known:
            span = _span(part, n)
            known += tagged(*span, labels, by_item=task.longest_step(span[0]) == 1)
            label, _, end = span
            if f"B-{label}" in labels and end < n:  # where the chunk has ended
                banned[end] += [f"I-{label}", f"E-{label}"]
        for part in self.banned:
            label, start, end = _span(part, n)
            names = [each for each in labels if each.partition("-")[2] == label]
            for i in range(start, end):
                banned[i] += [label] if label in labels or not names else names
        return {"known": known or None, "banned": banned if any(banned) else None}

    def _arcs(self, n: int, task: Task) -> dict[str, Any]:
        known: list[Any] = [None] * n
        banned: list[list[Any]] = [[] for _ in range(n)]
        for part in self.known:
            head = part.get("head")
            if head is None:
                raise BadData(f"found {quoted(dict(part))} as known, expected a head")
            known[part["start"]] = _head(head, n), part.get("label") or None
        for part in self.banned:
            head, label = part.get("head"), part.get("label") or None
            arc = label if head is None else _head(head, n)
            banned[part["start"]].append(arc if head is None or label is None else (arc, label))
        return {
            "known": known if self.known else None,
            "banned": banned if self.banned else None,
        }

    def _clusters(self, n: int, task: Task) -> dict[str, Any]:
        links: list[tuple[int, int, bool]] = []
        banned: list[list[str]] = [[] for _ in range(n)]
        for parts, together in ((self.known, True), (self.banned, False)):
            for part in parts:
                item, other = int(part["start"]), part.get("other")
                if other == NEW:
                    links += [(item, j, False) for j in range(item)] if together else []
                    banned[item] += [] if together else [NEW]
                elif is_whole(other, 0, n - 1) and other != item:
                    links.append((item, int(str(other)), together))
                else:
                    raise BadData(
                        f"found {quoted(dict(part))}, expected another item from 0 to {n - 1} or "
                        f'"{NEW}" as other'
                    )
        return {"known": links or None, "banned": banned if any(banned) else None}


def _span(part: Mapping[str, Any], n: int) -> tuple[str, int, int]:
    label, start, end = part.get("label"), part["start"], part.get("end")
    if not isinstance(label, str) or not label or not is_whole(end, start + 1, n):
        raise BadData(
            f"found {quoted(dict(part))}, expected a label, and an end from {start + 1} to {n}"
        )
    return label, int(start), int(end or 0)


def _head(head: Any, n: int) -> int:
    if not is_whole(head, 0, n):
        raise BadData(f"found the head {quoted(head)}, expected from 0 to {n}")
    return int(head)


def tagged(
    label: str, start: int, end: int, labels: Sequence[str], *, by_item: bool = False
) -> list[tuple[str, int, int]]:
    """Return a span as steps: itself, or the tags of a chunk where labels are such tags.

    Examples
    --------
    >>> tagged("NP", 0, 2, ["B-NP", "I-NP", "O"])
    [('B-NP', 0, 1), ('I-NP', 1, 2)]
    >>> tagged("NP", 0, 2, ["NP", "VP"]), tagged("DET", 1, 3, ["DET"], by_item=True)
    ([('NP', 0, 2)], [('DET', 1, 2), ('DET', 2, 3)])
    """
    if by_item:
        return [(label, i, i + 1) for i in range(start, end)]
    if f"B-{label}" in labels:
        schemed = f"S-{label}" in labels or f"E-{label}" in labels
        marks = ["B", *["I"] * (end - start - 1)]
        if schemed:
            marks = ["S"] if end - start == 1 else [*marks[:-1], "E"]
        return [(f"{mark}-{label}", i, i + 1) for i, mark in enumerate(marks, start=start)]
    return [(label, start, end)]
