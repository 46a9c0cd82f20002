"""Precision against recall: a bias for or against a label, and the curve that it makes.

points = curve(model, X, y)                 # on held-out sentences
model.biased({"O": points[3].bias})         # a copy with the bias chosen
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from laso.evaluation import evaluated
from laso.tasks.joint.encoder import BETWEEN

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

BIASES = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0)


class Point(NamedTuple):
    """Ratios in per cent, with a bias; of chunks if the labels mark them, else of the label."""

    bias: float
    precision: float
    recall: float
    f: float


def curve(
    model: SearchEstimator,
    X: Any,
    y: Any,
    *,
    label: str = "O",
    biases: Sequence[float] = BIASES,
) -> list[Point]:
    """Return precision and recall with each bias for a label; of several layers, in its own."""
    points = []
    for bias in biases:
        result, own = evaluated(y, model.biased({label: bias}).predict(X)), label
        if result.layers:
            layer, _, own = label.partition(BETWEEN)
            result = result.layers[list(model.get_params()["layers"]).index(layer)]
        counts = result.labels[own] if result.chunks is None else result.chunks
        points.append(Point(bias, counts.precision, counts.recall, counts.f))
    return points


def plot(points: Sequence[Point], path: str | os.PathLike[str]) -> None:
    """Draw the curve (with matplotlib, of ``laso[plots]``)."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 4))
    axes.plot([p.recall for p in points], [p.precision for p in points], marker="o")
    for point in points:
        axes.annotate(f"{point.bias:+g}", (point.recall, point.precision))
    axes.set_xlabel("recall, %")
    axes.set_ylabel("precision, %")
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
