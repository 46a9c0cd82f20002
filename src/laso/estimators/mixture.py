"""Several models in one: the mean of weights that the order of the examples made differ."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, Table
from laso.errors import BadModel
from laso.model_file import stored_rows, table_of

if TYPE_CHECKING:
    from laso.estimators.base import SequenceEstimator

Made = TypeVar("Made", bound="SequenceEstimator")


def mixed(models: Sequence[Made]) -> Made:
    """One model with the mean of the weights of several that differ in their seeds only.

        mixed([Chunker(seed=seed).fit(train) for seed in range(5)])

    It answers as fast as one of them, and usually a little better: what the order of the examples
    did to their weights is smaller in the mean.
    """
    if not models:
        raise ValueError("found no models, expected at least one")
    first = models[0]
    for i, model in enumerate(models):
        model._must_have("weights_")
        for what, own, other in zip(_PARTS, _parts(first), _parts(model), strict=True):
            if own != other:
                raise BadModel(
                    f"model {i + 1} has other {what} than model 1, expected models that were "
                    "trained on the same sentences in the same way (laso train: with --refit)"
                )
    made = copy(first)
    made.training_ = None
    made.notes_ = {}
    made.encoder_ = copy(first.encoder_)
    made.encoder_.attributes = {k: v for m in models for k, v in m.encoder_.attributes.items()}
    made.weights_ = mean([model.weights_ for model in models])
    return made


_PARTS = ("estimators", "labels", "columns", "templates", "facts", "hash bits", "words")


def _parts(model: SequenceEstimator) -> tuple[object, ...]:
    """What must be equal for equal features to have equal keys."""
    encoder, bits = model.encoder_, int(model.weights_.ints[at.BITS])
    facts = (model.facts_, encoder.width)
    words = [list(values) for values in encoder.vocabularies.values()]
    return type(model), encoder.labels, encoder.names, encoder.templates, facts, bits, words


def mean(tables: Sequence[Table]) -> Table:
    """A table that only scores, with the mean of weights; what a table does not have is zero."""
    stored = [stored_rows(table) for table in tables]
    keys: Array = reduce(np.union1d, [keys.view(np.uint64) for keys, _ in stored])
    v = np.zeros((len(keys), tables[0].v.shape[1]), tables[0].v.dtype)
    for table, (own, rows) in zip(tables, stored, strict=True):
        v[np.searchsorted(keys, own.view(np.uint64))] += table.v[rows] / len(tables)
    return table_of(keys.view(np.int64), v, bits=int(tables[0].ints[at.BITS]))
