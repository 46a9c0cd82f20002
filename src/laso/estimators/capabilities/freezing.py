"""Smaller models for labelling only: without weights that no output needs, and with fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from laso.engine.layout import Array, WeightTable
from laso.engine.weights.compact import compact_table
from laso.engine.weights.row_layouts import all_weights
from laso.estimators.learning.tables import changed_weights

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

Model = TypeVar("Model", bound="Predictor")

FROZEN = "frozen"
"""The key of ``metadata_`` of a frozen model: its precision, and how many weights were kept."""
HALF = "float16"
HIGHEST = float(np.finfo(HALF).max)
TRIALS = 8  # each halves the range in which the largest weight to leave out is looked for


def frozen(model: Model, X: Any, changed: float) -> Model:
    """Return a copy of a model that labels X alike, with as few weights and bits as possible.

    The smallest weights go first. At most the fraction ``changed`` of the outputs of X may differ.
    """
    outputs = model.predict(X)
    if not len(outputs):
        raise ValueError("found no inputs, expected some whose outputs should not change")

    def labels_alike(table: WeightTable) -> bool:
        now = model.with_weights(table).predict(X)
        differ = sum(bool(a != b) for a, b in zip(outputs, now, strict=True))
        return differ <= changed * len(outputs)

    table, precision = model.weights_, None
    half = changed_weights(table, lambda v: np.clip(v, -HIGHEST, HIGHEST).astype(HALF))
    if labels_alike(half):
        table, precision = half, HALF
    table = compact_table(_pruned(table, labels_alike))
    smaller = model.with_weights(table)
    before, after = model.size_.weights, smaller.size_.weights
    smaller.metadata_[FROZEN] = {"precision": precision, "weights": after, "of": before}
    return smaller


def _pruned(table: WeightTable, is_enough: Callable[[WeightTable], bool]) -> WeightTable:
    """Return the table without its smallest weights, as many as possible by bisection."""
    sizes = np.abs(all_weights(table)).ravel()
    sizes = np.sort(sizes[sizes > 0])
    best, low, high = table, 0, len(sizes)
    for _ in range(TRIALS):
        middle = (low + high) // 2
        if low == middle or middle >= len(sizes):
            break
        bound = sizes[middle]

        def without_small(v: Array, bound: Any = bound) -> Array:
            return np.where(np.abs(v) < bound, 0, v)

        trial = changed_weights(table, without_small)
        if is_enough(trial):
            best, low = trial, middle
        else:
            high = middle
    return best
