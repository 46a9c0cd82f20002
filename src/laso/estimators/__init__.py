"""Estimators with scikit-learn's conventions, on the compiled engine.

search.py      SearchEstimator: fit, predict, save and all else, for any task
learning.py    examples, epochs, checkpoints, going on later
tagger.py chunker.py joint.py crf.py
               short parameter lists over it
nbest.py confidence.py forced.py explain.py inspection.py averaging.py streaming.py serialization.py
               one capability a file, for every task

``__init__`` only stores, ``fit`` validates and returns the estimator, and what was learned ends
in _.
"""

import os
from typing import overload

from laso.estimators import serialization
from laso.estimators.averaging import average_models
from laso.estimators.chunker import Chunker
from laso.estimators.crf import CRF
from laso.estimators.joint import JointTagger
from laso.estimators.learning import Checkpoint, Size
from laso.estimators.search import SearchEstimator
from laso.estimators.tagger import Tagger
from laso.problem import Problem
from laso.tasks.base import Task
from laso.training import Model

__all__ = [
    "CRF",
    "Checkpoint",
    "Chunker",
    "JointTagger",
    "SearchEstimator",
    "Size",
    "Tagger",
    "average_models",
    "load_model",
]


@overload
def load_model(path: str | os.PathLike[str], *, problem: Problem) -> Model: ...
@overload
def load_model(path: str | os.PathLike[str], *, task: Task | None = None) -> SearchEstimator: ...
def load_model(
    path: str | os.PathLike[str], *, task: Task | None = None, problem: Problem | None = None
) -> SearchEstimator | Model:
    """Return the model of a file, whatever its task; any other file raises ``BadModel``.

    Parameters
    ----------
    path : path
        A file that ``save`` has written.
    task : Task, default=None
        The task, for a model of a task of your own: a file never names code to import.
    problem : Problem, default=None
        The problem, for a ``Model`` that ``laso.fit`` has learned in the reference engine.
    """
    if problem is not None:
        return Model.load(path, problem=problem)
    return serialization.load(path, task)
