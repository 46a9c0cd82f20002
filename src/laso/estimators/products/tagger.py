"""Sequence labelling: one label for each token."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Unpack

import numpy as np

from laso.engine.options import is_exact
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.row_layouts import dense_rows
from laso.estimators.capabilities.chunk_confidence import inside
from laso.estimators.learning.class_weights import for_rare_chunks
from laso.estimators.parameters import CommonParameters
from laso.estimators.publishing import consistent
from laso.estimators.search import SearchEstimator
from laso.features.templates import LABEL, Template
from laso.tasks.base import Task
from laso.tasks.tagging.task import FollowTable, TaggingTask


class Tagger(SearchEstimator):
    """Labels the tokens of sentences; the weights are learned inside the search that labels.

    The score is chunk F if the labels are BIO or IOBES, else token accuracy.

    Parameters
    ----------
    features : str, sequence of str or Template, default=None
        Feature templates; None: a general set for the columns of the data.
    resources : sequence of str, default=()
        Word lists, clusters and other resources for the general set (see laso.features.lists).
    columns : sequence of str, default=None
        Names of the input columns; None: w, pos, then numbers.
    constraints : {"BIO", "IOBES"} or mapping, default=None
        Which labels may follow each other: a scheme, or for each label those that may follow it
        (None stands for both ends).
    start_features : bool, default=True
        Whether templates with label[-1] have a feature at the first token too, where there is no
        label before; CRFsuite has none.
    vector_window : int, default=0
        The number of neighbours on either side whose dense vectors are features of a token, beside
        its own.
    epochs : int, default=30
        The largest number of passes over the data.
    **search
        The other parameters of ``SearchEstimator``: queue, update, strategy, seed, held_out,
        patience, average, class_weight, dropout, hash_bits, threads, dtype, shards, mixing,
        n_jobs, encoder, vector_scale.

    Examples
    --------
    >>> from laso import Tagger
    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "barks"]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"]]
    >>> Tagger(epochs=3).fit(X, y).predict([["the", "dog", "sleeps"]])
    [['DET', 'NOUN', 'VERB']]
    """

    task_: TaggingTask
    drops_features = True

    def __init__(
        self,
        *,
        features: str | Sequence[str | Template] | None = None,
        resources: Sequence[str] = (),
        columns: Sequence[str] | None = None,
        constraints: str | FollowTable | None = None,
        start_features: bool = True,
        vector_window: int = 0,
        epochs: int = 30,
        **search: Unpack[CommonParameters],
    ) -> None:
        super().__init__(epochs=epochs, **search)
        self.features = features
        self.resources = resources
        self.columns = columns
        self.constraints = constraints
        self.start_features = start_features
        self.vector_window = vector_window

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return TaggingTask(
            features=self.features,
            resources=self.resources,
            columns=self.columns,
            constraints=self.constraints,
            start_features=self.start_features,
            vector_window=self.vector_window,
        )

    def default_class_weight(
        self, task: Task, counts: Sequence[Mapping[str, int]]
    ) -> dict[str, float] | None:
        """Return a lower weight of O if chunks are rare, for the default update in a beam."""
        if not self.has_default_update() or is_exact(self.search_queue(task)):
            return None
        return for_rare_chunks(counts)

    def predict_chunks(self, X: Any) -> list[list[tuple[str, int, int]]]:
        """Return the chunks that BIO or IOBES labels mark, as ``Chunker.predict_chunks`` does."""
        return list(map(inside, self.predict(X)))

    @consistent
    def predict_marginals(self, X: Any, *, least: float = 0.0) -> list[list[dict[str, float]]]:
        """Return the probability of each label of each token, with ``queue=exact()``.

        A labelling is as probable as exp(its score), among all that are allowed: what adagrad(),
        sgd() and lbfgs() learn. Other updates learn scores that say little as probabilities. Labels
        less probable than ``least`` are left out.
        """
        _, dataset = self.exactly("predict_marginals", X)
        decoder = self.decoder(dataset)
        probabilities = decoder.label_probabilities(dataset, threads=self.threads_for(dataset))
        labels, rows = self.task_.classes, probabilities.tolist()
        if least > 0:
            pairs = [zip(labels, row, strict=True) for row in rows]
            tokens = [{label: p for label, p in each if p >= least} for each in pairs]
        else:
            tokens = [dict(zip(labels, row, strict=True)) for row in rows]
        return [tokens[a:b] for a, b in pairwise(dataset.starts.tolist())]

    def predict_marginals_single(self, x: Any) -> list[dict[str, float]]:
        """Return the probability of each label of each token of one sentence."""
        return self.predict_marginals([x])[0]

    @property
    def attributes_(self) -> list[str]:
        """The features of tokens that have a weight, as far as they can be named."""
        return list(dict.fromkeys(name for name, _ in self.state_features_))

    @property
    @consistent
    def state_features_(self) -> dict[tuple[str, str], float]:
        """The weights of (feature, label), for features that do not look at labels."""
        attributes = self.task_.encoder_.attributes
        return {
            (name, label): weight
            for key, name, label, weight in self._named_weights()
            if key in attributes or not name.startswith(f"{LABEL}[")
        }

    @property
    @consistent
    def transition_features_(self) -> dict[tuple[str, str], float]:
        """The weights of (label, label after it)."""
        before = self.task_.transition_keys()
        return {
            (before[key], label): weight
            for key, _, label, weight in self._named_weights()
            if key in before
        }

    def _named_weights(self) -> Iterator[tuple[int, str, str, float]]:
        self.require("weights_")
        keys, rows = keys_and_rows(self.weights_)
        names = self.task_.feature_names(keys)
        for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
            if key in names:
                weights = dense_rows(self.weights_, row)
                for label in np.flatnonzero(weights).tolist():
                    yield key, names[key], self.task_.classes[label], float(weights[label])
