"""How outputs are shown: the parts of a picture, and what each kind of task puts into them.

A task shows its outputs by its method ``display``; the functions here are such methods.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from laso.features.schemes import OUTSIDE, chunks_of, split_tag

if TYPE_CHECKING:
    from laso.tasks.base import Decision

    Spans = Sequence[Decision]


class Display(NamedTuple):
    """What a picture of an output has; most tasks fill one of these.

    Attributes
    ----------
    layers : mapping
        For each layer of labels its spans: (label, first item, end).
    arcs : sequence
        For each word its head, counted from 1 (0 is the root), and the label of the arc.
    clusters : sequence of int
        For each item the number of its cluster.
    text : str
        What else to show.
    """

    layers: Mapping[str, Spans] = {}
    arcs: Sequence[tuple[int, Any]] = ()
    clusters: Sequence[int] = ()
    text: str = ""


def steps(task: Any, x: Any, y: Any, decisions: Spans) -> Display:
    """Show the steps under their names, and the output as text."""
    return Display({"": list(decisions)}, text=json.dumps(y, ensure_ascii=False, default=str))


def labels(task: Any, x: Any, y: Any, decisions: Spans) -> Display:
    """Show labels of tokens; those that mark chunks as chunks."""
    return Display({"": spans_of(y)})


def layers(task: Any, x: Any, y: Any, decisions: Spans) -> Display:
    """Show each layer of labels."""
    columns = zip(*y, strict=True) if len(y) else ()
    return Display(
        {name: spans_of(column) for name, column in zip(task.layers, columns, strict=False)}
    )


def tree(task: Any, x: Any, y: Any, decisions: Spans) -> Display:
    """Show a tree."""
    return Display(arcs=[(int(head or 0), label) for head, label in y])


def clusters(task: Any, x: Any, y: Any, decisions: Spans) -> Display:
    """Show which items belong together."""
    numbers: dict[Any, int] = {}
    return Display(clusters=[numbers.setdefault(each, len(numbers)) for each in y])


def spans_of(tags: Sequence[Any]) -> list[Decision]:
    """Return the chunks that tags mark without the words outside, else a span for each label.

    Examples
    --------
    >>> spans_of(["B-NP", "I-NP", "O"]), spans_of(["DET", "NOUN"])
    ([('NP', 0, 2)], [('DET', 0, 1), ('NOUN', 1, 2)])
    """
    known = ["_" if tag is None else str(tag) for tag in tags]
    if all(split_tag(tag)[1] for tag in known):
        return [chunk for chunk in chunks_of(known) if chunk[0] != OUTSIDE]
    return [(tag, i, i + 1) for i, tag in enumerate(known)]
