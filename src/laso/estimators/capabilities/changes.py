"""Which weights learning has changed, by the names of their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.row_layouts import dense_rows
from laso.estimators.capabilities.inspection import names_in

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

LEAST = 1e-6  # smaller differences are those of rounding
UNNAMED = "(a feature of another hypothesis)"


def changed(
    before: Predictor, after: Predictor, *, data: Any = None, features: int = 20
) -> dict[str, Any]:
    """How many weights differ between two models of one task, and those that differ most."""
    tables = [keys_and_rows(model.weights_) for model in (before, after)]
    keys = np.union1d(tables[0][0], tables[1][0])
    labels = list(after.classes_)
    places = [labels.index(label) for label in before.classes_]
    old, new = np.zeros((2, len(keys), len(labels)))
    _fill(old, keys, before, places)
    _fill(new, keys, after, range(len(labels)))
    difference = np.abs(new - old)
    rows, columns = np.nonzero(difference > LEAST)
    order = np.argsort(-difference[rows, columns], kind="stable")[:features]
    names = {} if after.weights_.ints[at.BITS] else after.task_.feature_names(keys[rows[order]])
    if data is not None:
        names |= names_in(before, data) | names_in(after, data)
    return {
        "changed": len(rows),
        "weights": [
            {
                "name": names.get(int(keys[row]), UNNAMED),
                "label": str(labels[column]),
                "before": float(old[row, column]),
                "after": float(new[row, column]),
            }
            for row, column in zip(rows[order].tolist(), columns[order].tolist(), strict=True)
        ],
    }


def _fill(among: Array, keys: Array, model: Predictor, places: Any) -> None:
    """Put the weights of a model among those of all keys."""
    known, rows = keys_and_rows(model.weights_)
    at_rows = np.searchsorted(keys, known)
    among[np.ix_(at_rows, np.array(places, int))] = dense_rows(model.weights_, rows)
