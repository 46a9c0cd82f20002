"""Dependency parsing by transitions."""

from laso.tasks.parsing.problem import Parsing

__all__ = ["Parsing"]
