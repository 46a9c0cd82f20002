"""The names that kernels use for the methods and the flags of a problem.

Compilation puts the problem's own in their place (see ``laso.engine.problem``). A flag is a
function without arguments: ``bool()`` is False.
"""

# mypy: ignore-errors

from __future__ import annotations

WEIGHTED = FULL = FACTORED = NARROWED = NAMED = DENSE = bool
limits = initial = groups = factors = choices = None
block = sub_block = block_features = vectors = features = name = None
allowed = apply = is_goal = is_good = loss = key = signature = None


def has_values():
    """Return whether features of the problem, or dimensions of vectors, have values."""
    return WEIGHTED() or DENSE()


def shares_blocks():
    """Return whether blocks of the problem may have the same features in many inputs."""
    return NAMED() and not FACTORED() and not WEIGHTED()


def has_bounds():
    """Return whether bounds on weights can prune steps of the problem."""
    return NAMED() != FACTORED() and not WEIGHTED()
