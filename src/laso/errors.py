"""The errors that users meet, all of them ``LasoError``."""

from __future__ import annotations


class LasoError(Exception):
    """The parent of all errors of this library."""


class SearchFailed(LasoError):
    """A search emptied its queue before it dequeued a goal."""


class Unreachable(LasoError):
    """The output wanted for learning cannot be reached by the problem's operators."""


class BadFeature(LasoError):
    """A feature value, heuristic or score is not a finite number."""


class BadData(LasoError):
    """A data file is not what it should be; the message names file and line."""


class MissingData(LasoError):
    """A corpus was not found; the message says where it was looked for and how to get it."""


class BadTemplate(LasoError):
    """A feature template cannot be read; the message names it, the position and what is wrong."""


class BadModel(LasoError):
    """A model file is damaged, cut short, or none of this library's."""


class BadProblem(LasoError):
    """A method of a compiled problem breaks the promise of its ``limits``; the message names it."""
