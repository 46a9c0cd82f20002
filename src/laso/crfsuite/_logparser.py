"""The parser of training logs, where python-crfsuite has it."""

from laso.estimators.crf_log import LabelScore, TrainLogParser

__all__ = ["LabelScore", "TrainLogParser"]
