"""Are probabilities what they say? Reliability and the expected calibration error.

table = reliability(probabilities, right)
print(table, table.error)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine.layout import Array

BINS = 10


@dataclass(frozen=True)
class Bin:
    """The decisions whose probability is above ``low``, up to ``high``."""

    low: float
    high: float
    n: int
    probability: float  # their mean
    right: float  # the part of them that is right


@dataclass(frozen=True)
class Reliability:
    """Probabilities beside how often they come true; ``str`` is a table."""

    bins: list[Bin]

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of the two, over all decisions."""
        n = sum(each.n for each in self.bins)
        return sum(each.n * abs(each.probability - each.right) for each in self.bins) / max(1, n)

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {"error": self.error, "bins": [vars(each) for each in self.bins]}

    def __str__(self) -> str:
        lines = ["probability    decisions   mean  right"]
        for each in self.bins:
            span = f"{each.low:.1f} to {each.high:.1f}"
            lines.append(f"{span:11}  {each.n:11}  {each.probability:.3f}  {each.right:.3f}")
        return "\n".join([*lines, f"expected calibration error {self.error:.4f}"])

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Draw the reliability diagram (with matplotlib, of ``laso[plots]``)."""
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(4, 4))
        axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
        axes.plot([b.probability for b in self.bins], [b.right for b in self.bins], marker="o")
        axes.set_xlabel("probability")
        axes.set_ylabel("right")
        axes.set_title(f"expected calibration error {self.error:.4f}")
        figure.tight_layout()
        figure.savefig(path)
        pyplot.close(figure)


def reliability(
    probabilities: Sequence[float] | Array, right: Sequence[bool] | Array, *, bins: int = BINS
) -> Reliability:
    """Decisions by their probability, in so many bins of equal width; empty ones are left out."""
    p, r = np.asarray(probabilities, float), np.asarray(right, bool)
    if len(p) != len(r):
        raise ValueError(f"found {len(p)} probabilities for {len(r)} decisions")
    number = np.clip(np.ceil(p * bins).astype(int) - 1, 0, bins - 1)
    return Reliability(
        [
            Bin(
                i / bins,
                (i + 1) / bins,
                int((number == i).sum()),
                float(p[number == i].mean()),
                float(r[number == i].mean()),
            )
            for i in range(bins)
            if (number == i).any()
        ]
    )
