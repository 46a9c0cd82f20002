"""The names that kernels use for the methods and the flags of a problem.

Compilation puts the problem's own in their place (see ``laso.engine.problem``). A flag is a
function without arguments: ``bool()`` is False.
"""

# mypy: ignore-errors

from __future__ import annotations

WEIGHTED = FULL = FACTORED = NARROWED = NAMED = SHARED = SEGMENTS = bool
KEY_OF_GROUP = WHOLE = CAPPED = bool
limits = initial = groups = labels = factors = n_choices = choice = None
block = sub_block = block_features = features = features_of_state = name = None
allowed = apply = is_goal = is_good = loss = key = signature = None
