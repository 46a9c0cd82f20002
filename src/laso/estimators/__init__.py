"""Estimators with scikit-learn's conventions, on the compiled engine.

``__init__`` only stores, ``fit`` checks and returns the estimator, and what was learned ends in _.
"""

import os

from laso import model_file
from laso.errors import BadModel
from laso.estimators import storage
from laso.estimators.base import SequenceEstimator
from laso.estimators.chunker import Chunker
from laso.estimators.crf import CRF
from laso.estimators.joint import JointTagger
from laso.estimators.mixture import mixed
from laso.estimators.runs import Checkpoint, Size
from laso.estimators.tagger import Tagger, quality

__all__ = [
    "CRF",
    "Checkpoint",
    "Chunker",
    "JointTagger",
    "SequenceEstimator",
    "Size",
    "TASKS",
    "Tagger",
    "load_model",
    "mixed",
    "quality",
]

TASKS: dict[str, type[SequenceEstimator]] = {
    cls.task: cls for cls in (Tagger, Chunker, JointTagger, CRF)
}


def load_model(path: str | os.PathLike[str]) -> SequenceEstimator:
    """The model of a file, whatever its task; what is no model is answered with ``BadModel``."""
    header, tensors = model_file.read_file(path)
    with model_file.reading(path):
        if header["task"] not in TASKS:
            raise BadModel(f"found a model for {header['task']!r}, expected {', '.join(TASKS)}")
        return storage.put_together(TASKS[header["task"]], header, tensors)
