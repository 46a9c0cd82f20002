"""Dependency parsing: the head of each word and the label of the arc, by transitions."""

from laso.tasks.parsing.arc_hybrid import ArcHybrid
from laso.tasks.parsing.task import ParsingTask

__all__ = ["ArcHybrid", "ParsingTask"]
