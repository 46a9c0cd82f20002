"""Calibration of probabilities: reliability tables and the expected calibration error.

table = reliability(probabilities, correct)
print(table, table.error)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
BINS = 10


@dataclass(frozen=True)
class Bin:
    """A bin of a reliability table: the decisions with a probability above ``low``, up to ``high``.

    Attributes
    ----------
    low, high : float
        The bounds of the bin.
    n : int
        The number of decisions.
    probability : float
        Their mean probability.
    right : float
        The fraction of correct decisions.
    """

    low: float
    high: float
    n: int
    probability: float
    right: float


@dataclass(frozen=True)
class Reliability:
    """A reliability table: predicted probabilities and observed accuracy; ``str`` formats it.

    Attributes
    ----------
    bins : list of Bin
        The bins that are not empty, by rising probability.
    """

    bins: list[Bin]

    @property
    def error(self) -> float:
        """The expected calibration error: the mean distance of probability and accuracy."""
        n = sum(each.n for each in self.bins)
        return sum(each.n * abs(each.probability - each.right) for each in self.bins) / max(1, n)

    def as_json(self) -> dict[str, Any]:
        """Return the table and the error as JSON."""
        return {"error": self.error, "bins": [vars(each) for each in self.bins]}

    def __str__(self) -> str:
        lines = ["probability    decisions   mean  right"]
        for each in self.bins:
            span = f"{each.low:.1f} to {each.high:.1f}"
            lines.append(f"{span:11}  {each.n:11}  {each.probability:.3f}  {each.right:.3f}")
        return "\n".join([*lines, f"expected calibration error {self.error:.4f}"])

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Save the reliability diagram.

        Parameters
        ----------
        path : path
            The image file. Plotting needs matplotlib (``laso[plots]``).
        """
        from laso.files.atomic import pyplot, save_figure

        pictures = pyplot()
        figure, axes = pictures.subplots(figsize=(4, 4))
        axes.plot([0, 1], [0, 1], color="grey", linewidth=1)
        axes.plot([b.probability for b in self.bins], [b.right for b in self.bins], marker="o")
        axes.set_xlabel("probability")
        axes.set_ylabel("right")
        axes.set_title(f"expected calibration error {self.error:.4f}")
        figure.tight_layout()
        save_figure(figure, path)
        pictures.close(figure)


def reliability(
    probabilities: Sequence[float] | Array, right: Sequence[bool] | Array, *, bins: int = BINS
) -> Reliability:
    """Return the reliability table of decisions.

    Parameters
    ----------
    probabilities : sequence of float
        The predicted probability of each decision.
    right : sequence of bool
        Whether each decision is correct.
    bins : int, default=10
        The number of bins of equal width; empty bins are left out.

    Returns
    -------
    Reliability
        The table.

    Examples
    --------
    >>> round(reliability([0.9, 0.9, 0.3], [True, True, False]).error, 3)
    0.167
    """
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
