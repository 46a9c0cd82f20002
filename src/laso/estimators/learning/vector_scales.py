"""The scale of dense vectors beside sparse features, chosen by short trials on held-out data."""

from __future__ import annotations

import random
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from laso.engine.layout import Dataset
from laso.estimators.learning import fitting
from laso.estimators.learning.fitting import Examples
from laso.features.dense import SCALES
from laso.features.encoder import take_inputs
from laso.updates import Lbfgs

if TYPE_CHECKING:
    from laso.estimators.search import SearchEstimator

EXAMPLES = 1000  # at most, of a trial
EPOCHS = 3
ITERATIONS = 20  # of lbfgs(), which has no epochs


def with_best_scale(model: SearchEstimator, examples: Examples) -> Examples:
    """Return the examples with the vectors at the scale that does best in trials, and keep it."""
    dense, scores = model.task_.dense, {}
    assert dense is not None
    few = _sampled(examples.train, model.seed)
    for scale in SCALES:
        trial = copy(model)
        trial.shards = trial.n_jobs = trial.patience = None
        factor = scale / dense.scale
        tried = replace(
            examples,
            train=_scaled(few, factor),
            held_out=_scaled(examples.held_out, factor),
            words=None,
        )
        fitting.begin(trial, model.task_)
        is_lbfgs = isinstance(model.update_rule(model.task_), Lbfgs)
        fitting.train(trial, tried, ITERATIONS if is_lbfgs else EPOCHS, None)
        if trial.interrupted_:
            raise KeyboardInterrupt
        scores[scale] = max(trial.scores_)
    best = max(scores, key=scores.__getitem__)
    model.metadata_ = {**model.metadata_, "vector_scales": [[*each] for each in scores.items()]}
    factor = best / dense.scale
    dense.scale = best
    return replace(
        examples,
        train=_scaled(examples.train, factor),
        held_out=_scaled(examples.held_out, factor),
    )


def _sampled(dataset: Dataset, seed: int | None) -> Dataset:
    """Return so many examples, drawn by the seed, in their order."""
    n = len(dataset.starts) - 1
    if n <= EXAMPLES:
        return dataset
    chosen = random.Random(f"{seed}/vector scale").sample(range(n), EXAMPLES)
    return take_inputs(dataset, np.array(sorted(chosen)))


def _scaled(dataset: Dataset | None, factor: float) -> Dataset:
    assert dataset is not None
    return dataset._replace(vectors=dataset.vectors * np.float32(factor))
