"""The names that kernels use for the methods and the constants of a problem.

Nothing here is ever called: compilation puts the problem's own in their place (see
``laso.engine.problem``).
"""

# mypy: ignore-errors

from __future__ import annotations

WEIGHTED = FULL = FACTORED = False
limits = initial = groups = labels = factors = block = sub_block = block_features = features = None
allowed = apply = is_goal = is_good = loss = key = signature = None
