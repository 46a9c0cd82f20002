"""The checks of what pages say, by the names of the statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CHECKS: dict[str, Callable[[Any], bool]] = {}


def holds(name):
    """Make a function the check of the statement of this name."""

    def kept(function):
        CHECKS[name] = function
        return function

    return kept
