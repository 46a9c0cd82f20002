"""Clustering: which items of a document belong together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np

from laso.engine.options import is_exact
from laso.errors import BadData, BadModel, quoted
from laso.estimators.capabilities.confidence import softmax, temperature_of
from laso.estimators.capabilities.nbest import ALL, nbest_paths, path_outputs
from laso.estimators.publishing import consistent
from laso.estimators.search import CommonParameters, SearchEstimator
from laso.features.templates import Template
from laso.learn import delayed
from laso.params import check_parameters
from laso.tasks.base import Task
from laso.tasks.clustering import ClusteringTask, CoreferenceTask
from laso.tasks.clustering.candidates import Block, Choose
from laso.tasks.clustering.encoder import Comparer
from laso.training import Strategy

PRESETS: dict[str | None, type[ClusteringTask]] = {
    None: ClusteringTask,
    "coreference": CoreferenceTask,
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
    preset : {"coreference"}, default=None
        "coreference": inputs are texts with mentions (see ``laso.data.coreference.Text``), or the
        path of a CoNLL file. None: inputs are lists of items: tables, tuples, objects with
        attributes, text or numbers; a DataFrame is a document with an item in each row.
    fields : mapping or sequence of str, default=None
        The fields of items to use, or for each its kind: "text", "category", "number", "set" or
        "span". None: all fields, with kinds that their values tell.
    features : str, sequence of str or Template, default=None
        Feature templates (see laso.tasks.clustering.templates); None: a general set for the kinds
        of the fields.
    comparisons : mapping, default=None
        Functions of two items by their names, whose outcomes are features: each returns text, a
        truth value, a whole number, or None. It needs ``task=`` to load a model of them.
    window : int, default=500
        The number of earlier items with which an item is compared.
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
        window: int = 500,
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
        check_parameters(self, [("preset", self.preset in PRESETS, f"one of {known}")])
        if is_exact(self.search_queue(self.make_task())):
            raise ValueError(
                "a Clusterer cannot search exactly, since its features look at whole clusters: "
                "expected a beam, such as queue=10"
            )
        super().validate()

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

    @consistent
    def predict_links(self, X: Any) -> list[list[Link]]:
        """Return for each item that joins a cluster its link to the nearest member before it.

        A link is as probable as those outputs of the beam in which both are in one cluster;
        ``calibrate`` calibrates the probabilities.
        """
        inputs, dataset = self.encoded(X)
        nbest = nbest_paths(self, dataset, ALL)
        outputs = path_outputs(self, inputs, dataset, nbest)
        bounds = pairwise([0, *np.cumsum(nbest.counts).tolist()])
        return [
            links_of(outputs[a:b], softmax(nbest.scores[a:b] / temperature_of(self)))
            for a, b in bounds
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
        for i, (x, links) in enumerate(zip(inputs, knowns, strict=True)):
            if links is not None and any(isinstance(each, tuple) for each in links):
                n = len(self.task_.words(x))
                together, apart = linked(links, n)
                knowns[i] = together or None
                before = bans[i] or [()] * n
                bans[i] = [[*map(str, b), *a] for b, a in zip(before, apart, strict=True)]
        return super().predict_forced(inputs, known=knowns, banned=bans)


def links_of(outputs: Sequence[Sequence[int]], shares: Any) -> list[Link]:
    """Return the links of the first of some outputs, which have these probabilities."""
    last: dict[int, int] = {}
    links = []
    for item, cluster in enumerate(outputs[0]):
        other = last.get(cluster)
        if other is not None:
            same = [share for y, share in zip(outputs, shares, strict=True) if y[item] == y[other]]
            links.append(Link(item, other, min(1.0, float(sum(same)))))
        last[cluster] = item
    return links


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
