"""Which weights learning has changed, by the names of their features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.row_layouts import batches_of, dense_rows
from laso.estimators.capabilities.inspection import names_in

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

LEAST = 1e-6  # smaller differences are those of rounding
UNNAMED = "(a feature of another hypothesis)"


def changed(
    before: Predictor, after: Predictor, *, data: Any = None, features: int = 20
) -> dict[str, Any]:
    """How many weights differ between two models of one task, and those that differ most."""
    tables = [_sorted(model) for model in (before, after)]
    keys = np.union1d(tables[0][0], tables[1][0])
    labels = list(after.classes_)
    places = [labels.index(label) for label in before.classes_]
    found = [np.zeros((0, 4))]
    for batch in batches_of(len(keys)):
        old, new = np.zeros((2, batch.stop - batch.start, len(labels)))
        _fill(old, keys[batch], before, tables[0], places)
        _fill(new, keys[batch], after, tables[1], range(len(labels)))
        rows, columns = np.nonzero(np.abs(new - old) > LEAST)
        values = old[rows, columns], new[rows, columns]
        found.append(np.stack([rows + batch.start, columns, *values], axis=1))
    every = np.concatenate(found)
    order = np.argsort(-np.abs(every[:, 3] - every[:, 2]), kind="stable")[:features]
    chosen = [(int(row), int(column), *values) for row, column, *values in every[order].tolist()]
    rows = np.array([row for row, *_ in chosen], int)
    names = {} if after.weights_.ints[at.BITS] else after.task_.feature_names(keys[rows])
    if data is not None:
        names |= names_in(before, data) | names_in(after, data)
    return {
        "changed": len(every),
        "weights": [
            {
                "name": names.get(int(keys[row]), UNNAMED),
                "label": str(labels[column]),
                "before": old,
                "after": new,
            }
            for row, column, old, new in chosen
        ],
    }


def _sorted(model: Predictor) -> tuple[Array, Array]:
    """Return the keys of a model's features in rising order, and their rows."""
    keys, rows = keys_and_rows(model.weights_)
    order = np.argsort(keys)
    return keys[order], rows[order]


def _fill(
    among: Array, keys: Array, model: Predictor, table: tuple[Array, Array], places: Any
) -> None:
    """Put the weights of a model among those of some keys, which are in rising order."""
    known, rows = table
    inside = slice(np.searchsorted(known, keys[0]), np.searchsorted(known, keys[-1], "right"))
    at_rows = np.searchsorted(keys, known[inside])
    among[np.ix_(at_rows, np.array(places, int))] = dense_rows(model.weights_, rows[inside])
