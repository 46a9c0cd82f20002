"""What a model is: labels, settings, scores, and the top features of each label."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.machine import all_of
from laso.engine.reference import input_of
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.row_layouts import dense_rows
from laso.estimators.capabilities.scored_reference import Walk
from laso.estimators.learning.fitting import size_of
from laso.files.dense import packed_dense
from laso.files.estimator import described_parameters

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor


def inspected(model: Predictor, *, features: int = 10, data: Any = None) -> dict[str, Any]:
    """What a model is, and for each label the features with the largest and smallest weights.

    With ``data``, features that only inputs can name, such as pairs of words, are named too.
    """
    model.require("weights_")
    table = model.weights_
    keys, rows = keys_and_rows(table)
    names = model.task_.feature_names(keys) if not table.ints[at.BITS] else {}
    if data is not None:
        names |= names_in(model, data)
    named = np.array([key in names for key in keys.tolist()], bool)
    texts = [names[key] for key in keys[named].tolist()]
    v = dense_rows(table, rows[named])
    labels = {}
    for column, label in enumerate(model.task_.classes):
        order = np.argsort(-v[:, column], kind="stable")
        top = [i for i in order[:features].tolist() if v[i, column] > 0]
        low = [i for i in order[::-1][:features].tolist() if v[i, column] < 0]
        labels[label] = {
            "for": [[texts[i], float(v[i, column])] for i in top],
            "against": [[texts[i], float(v[i, column])] for i in low],
        }
    size, (learned, _) = size_of(table), model.task_.pack(None)
    state = learned.get("state")
    fields = list(state.get("fields", ())) if isinstance(state, dict) else []
    columns = learned.get("columns", fields)
    return {
        "task": model.task_.name,
        "estimator": type(model).__name__,
        "labels": list(model.task_.classes),
        "columns": columns if isinstance(columns, list) else [],  # an own task's have no names
        "templates": learned.get("templates", []),
        "parameters": described_parameters(model),
        "state": model.task_.state(),
        "vectors": packed_dense(model.task_.dense)[0],
        "epochs": model.n_iter_,
        "best_epoch": model.best_epoch_,
        "scores": model.scores_,
        "interrupted": model.interrupted_,
        "metadata": model.metadata_,
        "size": {"features": size.features, "weights": size.weights, "bytes": size.bytes},
        "named": int(named.sum()),
        "top": labels,
    }


def names_in(model: Predictor, data: Any) -> dict[int, str]:
    """The names of the features on the paths that the model takes through some inputs."""
    inputs = model.task_.read_inputs(data)
    dataset = model.task_.arrays(inputs)
    steps, ends, _ = model.engine(dataset).decode(dataset, all_of(dataset), model.weights_)
    walk = Walk(model, dataset)
    names: dict[int, str] = {}
    first = 0
    for i, end in enumerate(ends.tolist()):
        x = input_of(dataset, i)
        state = walk.initial(x)
        for step in map(tuple, steps[first:end].tolist()):
            after = walk.apply(x, state, step)
            items = x.items[state.position : after.position]
            for key, _ in walk.reference.features(x, state, step):
                if key in walk.reference.vector_weights:  # a dimension has no name
                    continue
                names[key & walk.mask] = walk.feature_name(key, items)
            state = after
        first = end
        walk.origins.clear()
    return names
