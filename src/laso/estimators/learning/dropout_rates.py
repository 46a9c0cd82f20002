"""The parameter ``dropout``: what it may be, and where it is possible."""

from __future__ import annotations

from typing import Any

from laso.engine.options import is_exact
from laso.engine.problem import CompiledProblem
from laso.queues import MakeQueue

RATE = 0.2  # where steps have many features
FEW, MANY = 16.0, 24.0  # features of a step: from the first on some are left out


def is_rate(value: Any) -> bool:
    """Return whether a value can be the parameter ``dropout``."""
    return value is None or (isinstance(value, (int, float)) and 0 <= value < 1)


def default_rate(features: float) -> float:
    """Return the rate for steps of so many features: what is left has to tell enough.

    Of few features none can be left out.
    """
    share = (features - FEW) / (MANY - FEW)
    return RATE * min(1.0, max(0.0, share))


def why_no_dropout(problem: type[CompiledProblem], queue: MakeQueue) -> str | None:
    """Return what makes dropout impossible; None: nothing does."""
    if problem.block is CompiledProblem.block:
        return f"{problem.__name__} without blocks"
    return repr(queue) if is_exact(queue) else None
