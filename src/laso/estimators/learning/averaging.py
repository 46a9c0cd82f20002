"""One model from several: the mean of weights that the order of the examples made differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from laso.engine import layout as at
from laso.errors import BadModel
from laso.estimators.learning.tables import mean

if TYPE_CHECKING:
    from laso.estimators.search import SearchEstimator

Model = TypeVar("Model", bound="SearchEstimator")


def average_models(models: Sequence[Model]) -> Model:
    """Return one model with the mean of the weights of several that differ in their seeds only.

    It predicts as fast as one of them, and usually a little better: what the order of the examples
    did to their weights is smaller in the mean.

    Parameters
    ----------
    models : sequence of fitted estimators
        They must be of one kind and trained on the same data.

    Examples
    --------
    >>> from laso import Tagger, average_models
    >>> X, y = [["a", "dog"]], [["DET", "NOUN"]]
    >>> average_models([Tagger(seed=seed).fit(X, y) for seed in range(3)]).predict(X)
    [['DET', 'NOUN']]
    """
    if not models:
        raise ValueError("found no models, expected at least one")
    for model in models:
        model.require("weights_")
    models = [model.snapshot() for model in models]
    first, expected = models[0], _parts(models[0])
    for i, model in enumerate(models[1:], start=1):
        parts = _parts(model)
        for what, value in expected.items():
            if parts.get(what) != value:
                raise BadModel(
                    f"model {i + 1} has other {what} than model 1, expected models that were "
                    "trained on the same data in the same way (laso train: with --refit)"
                )
    averaged = first.with_weights(mean([model.weights_ for model in models]))
    averaged.metadata_ = {}
    for model in models[1:]:
        averaged.task_.add_names(model.task_)
    return averaged


def _parts(model: SearchEstimator) -> dict[str, object]:
    """What must be equal for equal features to have equal keys."""
    header, tensors = model.task_.pack(None)
    return {
        "estimators": type(model),
        **{name: value for name, value in header.items() if name != "base features"},
        "hash bits": int(model.weights_.ints[at.BITS]),
        "words": {name: tensor.tobytes() for name, tensor in tensors.items()},
    }
