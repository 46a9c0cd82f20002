"""People with names and years, to put into clusters."""

from __future__ import annotations

from typing import Any

import numpy as np

from laso.engine.machine import as_names

FAMILIES = ("Ann Lee", "Bo Day", "Jo Fox", "Al Hay", "Eva Roe", "Kim May", "Ida Poe", "Ned Orr")


def people(seed: int, n: int = 9) -> tuple[list[dict[str, Any]], list[int]]:
    """Names of some people, in full or by an initial, with a year that is theirs or missing."""
    random = np.random.default_rng(seed)
    who = random.integers(0, len(FAMILIES), n).tolist()
    items = []
    for k in who:
        first, last = FAMILIES[k].split()
        short = random.random() < 0.4
        year = None if random.random() < 0.3 else 1900 + 10 * k
        items.append({"name": f"{first[0]}. {last}" if short else f"{first} {last}", "year": year})
    return items, who


X, Y = map(list, zip(*(people(seed) for seed in range(12)), strict=True))
TEST, GOLD = map(list, zip(*(people(seed) for seed in range(100, 106)), strict=True))


def weights(model: Any) -> dict[Any, float]:
    return as_names(model.weights_)
