"""Documents divided into the components of their candidate graphs, which are searched apart.

Items of different components are never compared, so they never share a cluster. The best partition
of a document is that of each of its components.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.features.encoder import sentence_starts
from laso.tasks.clustering import problem as p
from laso.tasks.clustering.candidates import slots_of


class Components(NamedTuple):
    """A dataset with a component in place of each document.

    ``order`` has the items of all documents, counted in each of them, in the order of the
    components. ``counts`` is the number of components of each document, and ``lengths`` that of
    its items.
    """

    dataset: Dataset
    order: Array
    counts: Array
    lengths: Array

    def divided(self, outputs: Sequence[Sequence[Any]]) -> list[list[Any]]:
        """Return the outputs of documents, which have a value for each item, by components."""
        starts = sentence_starts(self.lengths)
        values = [value for output in outputs for value in output]
        places = (self.order + self.offsets(starts)).tolist()
        bounds = pairwise(self.dataset.starts.tolist())
        return [[values[i] for i in places[a:b]] for a, b in bounds]

    def offsets(self, starts: Array) -> Array:
        """Return the first number of the document of each item in ``order``."""
        return np.repeat(starts[:-1], self.lengths)

    def joined(self, steps: Array) -> tuple[Array, Array]:
        """Return the steps of documents, and their ends, given those of all components."""
        component = np.repeat(self.dataset.starts[:-1], np.diff(self.dataset.starts))
        starts = sentence_starts(self.lengths)
        whole = steps.copy()
        places = self.order + self.offsets(starts)
        whole[places] = steps
        whole[places, 0] = self.order[component + steps[:, 0]]
        return whole, starts[1:]


def components_of(dataset: Dataset) -> Components | None:
    """Divide the documents of a clustering problem; None if each is one component already."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    items, lengths = dataset.items, np.diff(dataset.starts)
    n, size = len(items), 1 + int(dataset.spec[p.WORDS])
    counts = items[:, p.CANDIDATES].astype(np.int64)
    first = np.repeat(np.arange(n), counts)
    rank = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    entries = items[first, p.AT] + size * (1 + rank)
    before = np.repeat(dataset.starts[:-1], lengths)
    second = dataset.pool[entries] + before[first]
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(n, n))
    n_parts, part = connected_components(graph, directed=False)
    if n_parts == np.count_nonzero(lengths):
        return None
    heads = np.full(n_parts, n)
    np.minimum.at(heads, part, np.arange(n))
    order = np.argsort(heads[part], kind="stable")
    sizes = np.bincount(part, minlength=n_parts)[np.argsort(heads)]
    starts = sentence_starts(sizes)
    place = np.zeros(n, np.int64)
    place[order] = np.arange(n)
    number = place - np.repeat(starts[:-1], sizes)[place]  # of each item in its component
    last = items[:, p.LAST_USE] + before
    divided, pool = items[order], dataset.pool.copy()
    divided[:, p.LAST_USE] = number[last][order]
    divided[:, p.SLOT] = slots_of(place[last][order])
    pool[entries] = number[second]
    outputs, output_starts = dataset.outputs, dataset.output_starts
    if len(output_starts) > 1:
        outputs, output_starts = _outputs(dataset, order, number, starts)
    return Components(
        dataset._replace(
            items=divided, starts=starts, pool=pool, outputs=outputs, output_starts=output_starts
        ),
        order - before[order],
        np.bincount(
            np.searchsorted(dataset.starts, np.sort(heads), "right") - 1, minlength=len(lengths)
        ),
        lengths,
    )


def _outputs(dataset: Dataset, order: Array, number: Array, starts: Array) -> tuple[Array, Array]:
    """Return the outputs of components: the ids of their items, then their last candidates."""
    lengths, before = np.diff(dataset.starts), dataset.starts[:-1]
    first = np.repeat(2 * before, lengths) + np.arange(len(order)) - np.repeat(before, lengths)
    ids = dataset.outputs[first]
    nearest = dataset.outputs[first + np.repeat(lengths, lengths)]
    candidate = np.maximum(nearest - 1, 0) + np.repeat(before, lengths)
    nearest = np.where(nearest > 0, number[candidate] + 1, 0)
    sizes = np.diff(starts)
    at = np.repeat(starts[:-1], sizes) + np.arange(len(order))
    outputs = np.zeros(2 * len(order), np.int32)
    outputs[at] = ids[order]
    outputs[at + np.repeat(sizes, sizes)] = nearest[order]
    return outputs, 2 * starts
