"""Encoders that learn inside the search: vectors move as the updates of the weights ask for.

A batch of sentences is encoded, the search learns from one sentence after the other, and the
encoder gets for each vector the direction in which the steps of these updates would move it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.data.table import tokens_of
from laso.engine.epochs import Learner
from laso.engine.lattice.exact import ExactMachine
from laso.engine.layout import Array, Dataset, WeightTable
from laso.features.dense import Dense

if TYPE_CHECKING:
    from laso.estimators.learning.fitting import Examples
    from laso.estimators.search import SearchEstimator

BATCH = 16  # sentences that an encoder learns from at a time, unless it has another ``batch``
Words = Sequence[Sequence[str]]


@dataclass(frozen=True)
class WithEncoder:
    """A learner of the weights together with the encoder of the vectors."""

    learner: Learner
    dense: Dense
    words: Words
    batch: int

    def new_run(self, dataset: Dataset, order: Array, table: WeightTable) -> Any:
        """Return working space for the largest of the given inputs."""
        return self.learner.new_run(dataset, order, table)

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, run: Any
    ) -> tuple[WeightTable, Any, int]:
        """Learn from the given examples in turn; return table and run as grown, and the errors."""
        lengths, wrong = np.diff(dataset.starts), 0
        for first in range(0, len(order), self.batch):
            part = order[first : first + self.batch]
            sentences = [self.words[i] for i in part.tolist()]
            items = tokens_of(lengths, part)
            dataset.vectors[items] = self.dense.of_words(sentences, lengths[part])
            table, run, errors = self.learner.learn(dataset, part, table, run)
            self.dense.learn(sentences, dataset.moves[items])
            wrong += errors
        return table, run, wrong


class KeptEncoder:
    """The encoder as it was after the best epoch, if it learns and can be restored."""

    def __init__(self, dense: Dense | None) -> None:
        self.encoder: Any = None if dense is None else dense.encoder
        self.state: Any = None

    def judge(self, score: float, best: float) -> None:
        """Keep the encoder's state if no epoch before was better."""
        if score >= best and hasattr(self.encoder, "state"):
            self.state = self.encoder.state()

    def restore(self) -> None:
        """Return to the best state."""
        if self.state is not None:
            self.encoder.restore(self.state)


def words_to_learn(model: SearchEstimator, inputs: Any) -> Words | None:
    """Return the sentences of inputs if the encoder of the model learns from them."""
    if not _learns(model) or model.task_.given_vectors(inputs) is not None:
        return None
    check_learning(model)
    return model.task_.sentences(inputs)


def check_learning(model: SearchEstimator, *, at_once: bool = True) -> None:
    """Raise ValueError if the encoder learns, and a parameter keeps it from that."""
    task, reason = model.task_, ""
    if isinstance(model.engine_for(task, task.problem), ExactMachine):
        reason = "queue=exact(), expected a beam"
    elif (model.shards or model.n_jobs or 1) != 1:
        reason = "shards, expected one example after the other"
    elif not at_once:
        reason = "a stream, expected fit, which has all examples in memory"
    if reason and _learns(model):
        raise ValueError(
            f"found an encoder that learns, and {reason}; or laso.encoders.frozen(encoder)"
        )


def _learns(model: SearchEstimator) -> bool:
    return model.task_.dense is not None and model.task_.dense.learns


def reencoded(model: SearchEstimator, dataset: Dataset, words: Words) -> Dataset:
    """Return data with the vectors that the encoder has for its words now."""
    dense = model.task_.dense
    assert dense is not None
    return dataset._replace(vectors=dense.of_words(words, np.diff(dataset.starts)))


def with_encoder(
    model: SearchEstimator, examples: Examples, dataset: Dataset, learner: Learner
) -> tuple[Dataset, Learner]:
    """Return data and learner; the encoder learns with the weights if examples have words."""
    dense = model.task_.dense
    if examples.words is None or dense is None:
        return dataset, learner
    batch = int(getattr(dense.encoder, "batch", BATCH))
    dataset = dataset._replace(moves=np.zeros_like(dataset.vectors))
    return dataset, WithEncoder(learner, dense, examples.words, batch)
