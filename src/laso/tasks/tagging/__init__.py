"""Sequence labelling: one label for each token."""

from laso.tasks.tagging.problem import Tagging, WeightedTagging
from laso.tasks.tagging.task import TaggingTask

__all__ = ["Tagging", "TaggingTask", "WeightedTagging"]
