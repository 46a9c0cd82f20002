"""Segmentation and labelling: chunks of sentences (section 4.1 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laso.estimators.capabilities.chunk_confidence import inside
from laso.estimators.parameters import SearchParameters
from laso.estimators.search import SearchEstimator
from laso.features.schemes import OUTSIDE
from laso.features.templates import Template
from laso.tasks.base import Task
from laso.tasks.chunking.task import ChunkingTask


class Chunker(SearchEstimator):
    """Cuts sentences into labelled chunks; each step of the search is a whole chunk.

    Tags to learn from may be BIO, IOB1 or IOBES. The score is the chunk F of conlleval, from 0
    to 1.

    Parameters
    ----------
    features : {"rich", "paper"}, str, sequence of str or Template, default="rich"
        A feature set (see laso.tasks.chunking.feature_sets), or feature templates.
    resources : sequence of str, default=()
        Word lists, clusters and other resources for "rich" and "paper" (see laso.features.lists).
    max_chunk_length : int, default=None
        The largest number of words of a chunk; None: the longest training chunk of that label.
    scheme : {"BIO", "IOB1", "IOBES"}, default=None
        The scheme of predicted tags; None: that of the training data.
    columns : sequence of str, default=None
        Names of the input columns; None: w, pos, then numbers.
    **search
        The parameters of ``SearchEstimator``. A beam has one round for each number of words
        covered; ``beam(5, key=depth)`` has one for each number of chunks.

    Examples
    --------
    >>> from laso import Chunker
    >>> X = [[("the", "DT"), ("cat", "NN"), ("sleeps", "VBZ")]]
    >>> y = [["B-NP", "I-NP", "B-VP"]]
    >>> Chunker(epochs=3).fit(X, y).predict([[("the", "DT"), ("dog", "NN"), ("barks", "VBZ")]])
    [['B-NP', 'I-NP', 'B-VP']]
    """

    task_: ChunkingTask

    def __init__(
        self,
        *,
        features: str | Sequence[str | Template] = "rich",
        resources: Sequence[str] = (),
        max_chunk_length: int | None = None,
        scheme: str | None = None,
        columns: Sequence[str] | None = None,
        **search: Unpack[SearchParameters],
    ) -> None:
        super().__init__(**search)
        self.features = features
        self.resources = resources
        self.max_chunk_length = max_chunk_length
        self.scheme = scheme
        self.columns = columns

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return ChunkingTask(
            features=self.features,
            resources=self.resources,
            max_chunk_length=self.max_chunk_length,
            scheme=self.scheme,
            columns=self.columns,
        )

    def predict_chunks(self, X: Any) -> list[list[tuple[str, int, int]]]:
        """Return the chunks of each sentence as (label, start, end): words start up to end - 1."""
        return list(map(inside, self.predict(X)))

    def predict_marginals(self, X: Any, *, least: float = 0.01) -> list[Any]:
        """Return the probability of each chunk (label, start, end), with ``queue=exact()``.

        Chunks less probable than ``least`` are left out. For what probable means see
        ``SearchEstimator.predict_marginals``.
        """
        marginals = super().predict_marginals(X, least=least)
        return [{c: p for c, p in one.items() if c[0] != OUTSIDE} for one in marginals]
