"""The parameter ``dropout``: what it may be, and where it is possible."""

from __future__ import annotations

from typing import Any

from laso.engine.options import is_exact
from laso.engine.problem import CompiledProblem
from laso.queues import MakeQueue


def is_rate(value: Any) -> bool:
    """Return whether a value can be the parameter ``dropout``."""
    return value is None or (isinstance(value, (int, float)) and 0 <= value < 1)


def why_no_dropout(problem: type[CompiledProblem], queue: MakeQueue) -> str | None:
    """Return what makes dropout impossible; None: nothing does."""
    if problem.block is CompiledProblem.block:
        return f"{problem.__name__} without blocks"
    return repr(queue) if is_exact(queue) else None
