"""The names that kernels use for the methods and the constants of a problem.

Nothing here is ever called: compilation puts the problem's own in their place (see
``laso.engine.problem``).
"""

# mypy: ignore-errors

from __future__ import annotations

WEIGHTED = FULL = FACTORED = GROUPED = NARROWED = KEPT = SHARED = SEGMENTS = False
KEY_OF_GROUP = WHOLE = CAPPED = False
limits = initial = groups = labels = factors = n_choices = choice = None
block = sub_block = content = block_features = features = features_of_state = fingerprint = None
allowed = apply = is_goal = is_good = loss = key = signature = None
