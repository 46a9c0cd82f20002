"""What searches of one input have found out about it, kept for the next search of that input."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine.layout import Array, Dataset, WeightTable

if TYPE_CHECKING:
    from laso.engine.reference import Operator, State
    from laso.estimators.prediction import Predictor

KNOWN = "known"  # among what a model has prepared


@dataclass
class Known:
    """States by place and what is possible in them, whatever the weights; and scores."""

    states: dict[Any, State] = field(default_factory=dict)
    operators: dict[Any, list[Operator]] = field(default_factory=dict)
    goals: dict[Any, bool] = field(default_factory=dict)
    steps: dict[Any, float] = field(default_factory=dict)
    scores: dict[Any, Array] = field(default_factory=dict)
    blocks: dict[int, Array] = field(default_factory=dict)


def known_of(model: Predictor, dataset: Dataset) -> Known:
    """Return what is known of an input; that of the last one is kept until the model changes."""
    if len(dataset.starts) != 2:
        return Known()
    arrays = (dataset.items, dataset.pool, dataset.values, dataset.spec, dataset.vectors)
    of = [np.asarray(array).tobytes() for array in arrays]
    before: tuple[WeightTable, list[bytes], Known] | None = model.prepared.get(KNOWN)
    if before is not None and before[1] == of:
        if before[0] is model.weights_:
            return before[2]
        known = Known(before[2].states, before[2].operators, before[2].goals)
    else:
        known = Known()
    model.prepared[KNOWN] = (model.weights_, of, known)
    return known


def share_states(model: Predictor, other: Predictor) -> None:
    """Let a model of the same task with other weights use what is known of the last input."""
    if KNOWN in model.prepared:
        other.prepared[KNOWN] = model.prepared[KNOWN]
