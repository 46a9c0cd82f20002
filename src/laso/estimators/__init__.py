"""Estimators with scikit-learn's conventions, on the compiled engine.

``__init__`` only stores, ``fit`` checks and returns the estimator, and what was learned ends in _.
"""

from laso.estimators.base import SequenceEstimator, Size
from laso.estimators.chunker import Chunker
from laso.estimators.joint import JointTagger
from laso.estimators.tagger import Tagger, quality

__all__ = ["Chunker", "JointTagger", "SequenceEstimator", "Size", "Tagger", "quality"]
