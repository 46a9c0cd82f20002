"""Learning on from a model that was saved without the state of its training: from its weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from laso.arow import Arow
from laso.engine import layout as at
from laso.engine.epochs import ENDED, Training
from laso.engine.weights.compact import keys_and_rows, make_table
from laso.engine.weights.row_layouts import dense_rows, is_sparse, measure
from laso.updates import Lbfgs

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

TICKS = 1 << 20  # examples in the average; ``partial_fit`` lets them count as few


def training_of_weights(model: Predictor) -> Training:
    """Return a training that ``fit`` has ended, whose average is the model's weights."""
    table, rule = model.weights_, model.update_rule(model.task_)
    if is_sparse(table) or isinstance(rule, Arow | Lbfgs):
        raise ValueError(
            f"the state of the training is not there to go on from, and for {rule} or so many "
            "labels the weights alone do not suffice: expected a model saved by "
            "save(path, training=True)"
        )
    keys, rows = keys_and_rows(table)
    v = dense_rows(table, rows).astype(model.dtype)
    learning = make_table(keys, v, u=np.zeros_like(v), bits=int(table.ints[at.BITS]))
    learning.ints[at.GENERATION] = 2  # so that the steps are not measured again
    learning.ints[at.TICKS] = TICKS
    learning.reals[at.SCALES] = TICKS * learning.reals[at.SCALE]
    learning.reals[at.MARGIN] = model.engine_for(model.task_, model.task_.problem).options.margin
    measure(learning)
    return Training(learning, epoch=model.n_iter_, best=table, stage=ENDED)
