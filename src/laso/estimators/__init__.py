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

from laso.estimators import serialization
from laso.estimators.averaging import average_models
from laso.estimators.chunker import Chunker
from laso.estimators.crf import CRF
from laso.estimators.joint import JointTagger
from laso.estimators.learning import Checkpoint, Size
from laso.estimators.search import SearchEstimator
from laso.estimators.tagger import Tagger
from laso.tasks.base import Task

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


def load_model(path: str | os.PathLike[str], *, task: Task | None = None) -> SearchEstimator:
    """Return the model of a file, whatever its task; any other file raises ``BadModel``.

    Parameters
    ----------
    path : path
        A file that ``save`` has written.
    task : Task, default=None
        The task, for a model of a task of your own: a file never names code to import.
    """
    return serialization.load(path, task)
