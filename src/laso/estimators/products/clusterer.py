"""Clustering: which items of a document belong together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice, pairwise
from types import NoneType
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from laso.engine.checking.own_problems import naming_methods
from laso.engine.decoder import Decoder
from laso.engine.layout import Dataset, WeightTable
from laso.engine.options import is_exact
from laso.errors import BadData, BadModel, quoted
from laso.estimators.capabilities.confidence import softmax, temperature_of
from laso.estimators.capabilities.nbest import ALL, nbest_paths, path_outputs
from laso.estimators.parameters import CommonParameters
from laso.estimators.products.forced_clusters import forced_clusters
from laso.estimators.publishing import consistent
from laso.estimators.search import SearchEstimator
from laso.features.templates import Template
from laso.learn import delayed
from laso.metrics.partitions import clusters
from laso.params import check_parameters
from laso.tasks.base import Task
from laso.tasks.clustering import ClusteringTask, CoreferenceTask, RecordsTask
from laso.tasks.clustering.candidates import Block, Choose
from laso.tasks.clustering.components import Components
from laso.tasks.clustering.encoder import Comparer
from laso.training import Strategy

PRESETS: dict[str | None, type[ClusteringTask]] = {
    None: ClusteringTask,
    "coreference": CoreferenceTask,
    "records": RecordsTask,
}


class Link(NamedTuple):
    """Two items of an input, counted from 0, and how probable it is that they belong together."""

    item: int
    other: int
    probability: float


class Clusterer(SearchEstimator):
    """Puts the items of each document into clusters; the weights are learned inside the search.

    Each item joins one of the clusters so far, or begins a new one. The score is the CoNLL average:
    the mean F of MUC, B-cubed and CEAF-e.

    Parameters
    ----------
    preset : {"coreference", "records"}, default=None
        "coreference": inputs are texts with mentions (see ``laso.data.coreference.Text``), or the
        path of a CoNLL file. "records": inputs are tables, each a DataFrame, a dict of columns or a
        list of rows; or pairs (left, right) of tables, where records are linked across the two. y
        has the ids of the records of each input, or is the name of a column. None: inputs are lists
        of items: tables, tuples, objects with attributes, text or numbers; a DataFrame is a
        document with an item in each row.
    fields : mapping or sequence of str, default=None
        The fields of items to use, or for each its kind: "text", "category", "number", "set" or
        "span". None: all fields, with kinds that their values tell.
    features : str, sequence of str or Template, default=None
        Feature templates (see laso.tasks.clustering.templates); None: a general set for the kinds
        of the fields.
    comparisons : mapping, default=None
        Functions of two items by their names, whose outcomes are features: each returns text, a
        truth value, a whole number, or None. It needs ``task=`` to load a model of them.
    window : int, default=None
        The number of earlier items with which an item is compared; of records, the largest number
        that is connected by pairs which are compared. None: 500; of records 50.
    blocking : sequence of str or callable, default=()
        An item is compared with those only that share a key: the value of a field, or of a function
        of the item; of several such keys one is enough.
    candidates : callable, default=None
        A function of the items that returns for each of them the earlier ones to compare it with.
    different : str, default=None
        A field of which no two items of a cluster have the same value, such as the table that a
        record comes from.
    strategy : strategy, default=delayed
        What happens after an error.
    **search
        The other parameters of ``SearchEstimator``: queue, update, epochs, seed, held_out,
        patience, average, class_weight, hash_bits, threads, dtype, shards, mixing, n_jobs. The
        labels of class weights are "join" and "new". The default queue is a beam of 5; exact() is
        refused, since the features look at whole clusters.

    Examples
    --------
    >>> from laso import Clusterer
    >>> X = [["Ann Lee", "Bo Day", "A. Lee"], ["Jo Fox", "J. Fox", "Al Hay"]]
    >>> y = [[0, 1, 0], [0, 0, 1]]
    >>> Clusterer(epochs=3).fit(X, y).predict([["Eva Roe", "E. Roe", "Kim May"]])
    [[0, 0, 1]]
    """

    task_: ClusteringTask
    # Functions, which no file has: a task beside the file does.
    unsaved: ClassVar[dict[str, Any]] = {
        **SearchEstimator.unsaved,
        "comparisons": None,
        "candidates": None,
    }

    def __init__(  # type: ignore[misc]  # strategy has another default
        self,
        *,
        preset: str | None = None,
        fields: Mapping[str, str] | Sequence[str] | None = None,
        features: str | Sequence[str | Template] | None = None,
        comparisons: Mapping[str, Comparer] | None = None,
        window: int | None = None,
        blocking: Sequence[Block] = (),
        candidates: Choose | None = None,
        different: str | None = None,
        strategy: Strategy = delayed,
        epochs: int = 10,
        **search: Unpack[CommonParameters],
    ) -> None:
        super().__init__(strategy=strategy, epochs=epochs, **search)
        self.preset = preset
        self.fields = fields
        self.features = features
        self.comparisons = comparisons
        self.window = window
        self.blocking = blocking
        self.candidates = candidates
        self.different = different

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""
        known = ", ".join(str(name) for name in PRESETS)
        is_known = isinstance(self.preset, (str, NoneType)) and self.preset in PRESETS
        check_parameters(self, [("preset", is_known, f"one of {known}")])
        if is_exact(self.search_queue(self.make_task())):
            raise ValueError(
                "a Clusterer cannot search exactly, since its features look at whole clusters: "
                "expected a beam, such as queue=10"
            )
        super().validate()

    def saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as files have them: without the functions of blocking."""
        fields = [key for key in self.blocking if isinstance(key, str)]
        return {**super().saved_parameters(), "blocking": fields}

    @classmethod
    def parameters_from(cls, task: Task) -> dict[str, Any]:
        """Return the functions of a task, which files do not have."""
        if not isinstance(task, ClusteringTask):
            raise BadModel(f"found a {type(task).__name__} beside the file of a {cls.__name__}")
        names = ("comparisons", "candidates", "blocking")
        return {name: getattr(task, name) for name in names if getattr(task, name)}

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return PRESETS[self.preset](
            fields=self.fields,
            features=self.features,
            comparisons=self.comparisons,
            window=self.window,
            blocking=self.blocking,
            candidates=self.candidates,
            different=self.different,
        )

    # ------------------------------------------------------------------ components of documents

    def apart(self, inputs: Any, outputs: Any, dataset: Dataset) -> tuple[Any, Any, Dataset]:
        """Return the components of documents, whose items are never compared, as examples."""
        parts = self.task_.components(dataset)
        if parts is None:
            return inputs, outputs, dataset
        divided = None if outputs is None else parts.divided(outputs)
        return [None] * (len(parts.dataset.starts) - 1), divided, parts.dataset

    def decode(self, inputs: Any, dataset: Dataset, table: WeightTable | None = None) -> list[Any]:
        """Return the clusters of encoded inputs, with other weights if a table is given."""
        parts = self.task_.components(dataset)
        if parts is None:
            return super().decode(inputs, dataset, table)
        decoder = self.decoder(dataset) if table is None else Decoder(self.engine(dataset), table)
        steps, _, _ = decoder.decode(parts.dataset, threads=self.threads_for(dataset))
        return self.task_.decode_all(inputs, *parts.joined(steps))

    def _ranked(self, X: Any) -> tuple[Any, list[list[Ranked]]]:
        """Return the inputs, and the outputs that the beam holds of each of their components."""
        inputs, dataset = self.encoded(X)
        parts = self.task_.components(dataset) or whole(dataset)
        paths = nbest_paths(self, parts.dataset, ALL)
        outputs = path_outputs(self, [None] * len(paths.counts), parts.dataset, paths)
        bounds = pairwise([0, *np.cumsum(paths.counts).tolist()])
        starts = pairwise(parts.dataset.starts.tolist())
        temperature = temperature_of(self)
        ranked = iter(
            Ranked(
                parts.order[i:j].tolist(), outputs[a:b], softmax(paths.scores[a:b] / temperature)
            )
            for (a, b), (i, j) in zip(bounds, starts, strict=True)
        )
        return inputs, [list(islice(ranked, n)) for n in parts.counts.tolist()]

    # ------------------------------------------------------------------ links

    @consistent
    def predict_links(self, X: Any) -> list[list[Link]]:
        """Return for each item that joins a cluster its link to the nearest member before it.

        A link is as probable as those outputs of the beam in which both are in one cluster;
        ``calibrate`` calibrates the probabilities.
        """
        _, ranked = self._ranked(X)
        return [sorted(link for part in parts for link in links_of(part)) for parts in ranked]

    @consistent
    def predict_pairs(self, X: Any) -> list[list[Link]]:
        """Return all pairs of each input that are in one cluster, with their probabilities.

        Records of a pandas DataFrame are called by the labels of its index. With the preset
        "records" the first record of a pair is the earlier one, or that of the left table.
        """
        inputs, ranked = self._ranked(X)
        named = [*map(self.task_.item_labels, inputs)]
        return [
            [
                Link(labels[first], labels[second], p)
                for first, second, p in sorted(link for part in parts for link in pairs_of(part))
            ]
            for labels, parts in zip(named, ranked, strict=True)
        ]

    @consistent
    def predict_forced(self, X: Any, *, known: Any = None, banned: Any = None) -> list[Any]:
        """Return the clusters of each input if some of them are known.

        Parameters
        ----------
        X : list of inputs
        known : list, default=None
            For each input None; or an id or None for each item, where equal ids belong together and
            different ones do not; or links (item, other, together), such as (7, 3, False).
        banned : list, default=None
            For each input None, or for each item the names of what it must not do: "new", or the
            number of an item that it must not join.
        """
        inputs = list(X)
        knowns = [None] * len(inputs) if known is None else list(known)
        bans = [None] * len(inputs) if banned is None else list(banned)
        if not len(inputs) == len(knowns) == len(bans):
            raise BadData(f"found what is known of {len(knowns)} inputs, expected {len(inputs)}")
        self.require("weights_")
        rows = zip(inputs, knowns, bans, strict=True)
        with naming_methods(self.task_.problem):
            return [forced_clusters(self, row[0], *self._as_spans(*row)) for row in rows]

    def trace(
        self, x: Any, y: Any = None, *, known: Any = None, banned: Any = None, pruned: int = 0
    ) -> list[dict[str, Any]]:
        """Return the events of the search for one document, as ``SearchEstimator.trace`` does."""
        if known is not None:
            self.require("weights_")
            known, banned = self._as_spans(x, known, banned)
        return super().trace(x, y, known=known, banned=banned, pruned=pruned)

    def _as_spans(self, x: Any, known: Any, banned: Any) -> tuple[Any, Any]:
        """Return what is known of a document with its links as spans, and what is banned."""
        if known is None or not any(isinstance(each, tuple) for each in known):
            return known, banned
        n = len(self.task_.words(x))
        together, apart = linked(known, n)
        before = banned or [()] * n
        bans = [[*map(str, b), *a] for b, a in zip(before, apart, strict=True)]
        return together or None, bans


class Ranked(NamedTuple):
    """Some items of a document, and the outputs of a search for them, which have probabilities."""

    items: list[int]
    outputs: list[list[int]]
    shares: Any

    def link(self, i: int, j: int) -> tuple[int, int, float]:
        """Return two items, and the probability of the outputs in which they are together."""
        pairs = zip(self.outputs, self.shares.tolist(), strict=True)
        together = sum(share for y, share in pairs if y[i] == y[j])
        return self.items[i], self.items[j], min(1.0, together)


def whole(dataset: Dataset) -> Components:
    """Return documents as components."""
    lengths = np.diff(dataset.starts)
    order = np.arange(len(dataset.items)) - np.repeat(dataset.starts[:-1], lengths)
    return Components(dataset, order, np.ones(len(lengths), np.int64), lengths)


def links_of(part: Ranked) -> Iterator[Link]:
    """Yield the links of the first output to the nearest members."""
    last: dict[int, int] = {}
    for i, cluster in enumerate(part.outputs[0]):
        if cluster in last:
            yield Link(*part.link(i, last[cluster]))
        last[cluster] = i


def pairs_of(part: Ranked) -> Iterator[Link]:
    """Yield all pairs of the first output, the earlier item first."""
    for members in clusters(part.outputs[0]):
        for i, j in combinations(members, 2):
            yield Link(*part.link(i, j))


def linked(links: Sequence[Any], n: int) -> tuple[list[tuple[str, int, int]], list[list[str]]]:
    """Return which of n items must join which, as spans, and which must not, for each item.

    Examples
    --------
    >>> linked([(2, 0, True), (1, 0, False)], 3)
    ([('0', 2, 3)], [[], ['0'], []])
    """
    groups = {i: {i} for i in range(n)}
    apart: list[list[str]] = [[] for _ in range(n)]
    for link in links:
        whole = isinstance(link, tuple) and len(link) == 3
        if not whole or not all(isinstance(i, int) and 0 <= i < n for i in link[:2]):
            raise BadData(
                f"found the link {quoted(link)}, expected (item, other, together) with numbers "
                f"from 0 to {n - 1}"
            )
        first, second, together = min(link[:2]), max(link[:2]), bool(link[2])
        if together:
            both = groups[first] | groups[second]
            groups |= dict.fromkeys(both, both)
        else:
            apart[second].append(str(first))
    spans = []
    for i in range(n):
        before = [j for j in groups[i] if j < i]
        if before:
            spans.append((str(max(before)), i, i + 1))
    return spans, apart
