"""Several models in one: the mean of weights that the order of the examples made differ."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, TypeVar

from laso.engine import layout as at
from laso.errors import BadModel
from laso.estimators.tables import mean

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
    for model in models:
        model._must_have("weights_")
    first, wanted = models[0], _parts(models[0])
    for i, model in enumerate(models[1:], start=1):
        for what, own, other in zip(_PARTS, wanted, _parts(model), strict=True):
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
    facts, words = (model.facts_, encoder.width), encoder.vocabularies
    return type(model), encoder.labels, encoder.names, encoder.templates, facts, bits, words
