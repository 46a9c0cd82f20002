"""Clusters of a document of which some links are known: only their components are searched anew."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine.reference import output_of
from laso.errors import BadData
from laso.estimators.capabilities.forced import forced, forced_path
from laso.features.encoder import take_inputs

if TYPE_CHECKING:
    from laso.estimators.products.clusterer import Clusterer

Spans = Sequence[tuple[str, int, int]]


def forced_clusters(model: Clusterer, x: Any, known: Any, banned: Any) -> list[int]:
    """Return the clusters of a document that fit what is known.

    ``known`` has ids of items, or spans (number of another item, item, item + 1); ``banned`` has
    for each item the names of what it must not do.
    """
    task = model.task_
    inputs = task.read_inputs([x])
    partial = None if known is None else task.known_gold(inputs, known)
    parts = task.components(task.arrays(inputs) if partial is None else partial)
    if parts is None:
        output: list[int] = forced(model, x, known, banned)[0]
        return output
    spans = [] if known is None or partial is not None else known
    steps, _, _ = model.decoder(parts.dataset).decode(parts.dataset)
    for number, (begin, end) in enumerate(pairwise(parts.dataset.starts.tolist())):
        items = parts.order[begin:end].tolist()
        one = take_inputs(parts.dataset, np.array([number]))
        links, bans = _numbered(spans, items), _banned(banned, items)
        gold = None if partial is None else output_of(one, 0)
        if links or any(bans) or (gold is not None and (gold[: len(items)] >= 0).any()):
            steps[begin:end], _ = forced_path(model, one, links or None, bans, gold)
    return list(task.decode_all(inputs, *parts.joined(steps))[0])


def _numbered(spans: Spans, items: Sequence[int]) -> list[tuple[str, int, int]]:
    """Return the spans of a component's items, by their numbers in it."""
    numbers = {item: number for number, item in enumerate(items)}
    result = []
    for other, item, _ in spans:
        if item in numbers:
            if int(other) not in numbers:
                raise BadData(
                    f"found the link ({item}, {other}), expected items that are compared, at least "
                    "by way of others: choose other blocking"
                )
            result.append((str(numbers[int(other)]), numbers[item], numbers[item] + 1))
    return result


def _banned(banned: Any, items: Sequence[int]) -> list[list[str]]:
    """Return what the items of a component must not do, by their numbers in it."""
    if banned is None:
        return [[] for _ in items]
    every: Collection[str] = banned if all(isinstance(each, str) for each in banned) else ()
    names = {str(item): str(number) for number, item in enumerate(items)} | {"new": "new"}
    return [[names[name] for name in (every or banned[item]) if name in names] for item in items]
