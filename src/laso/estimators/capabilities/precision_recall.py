"""Precision-recall curves of a bias for or against a label.

points = curve(model, X, y)                 # on held-out sentences
model.biased({"O": points[3].bias})         # a copy with the chosen bias
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from laso.metrics.evaluation import evaluated
from laso.tasks.joint.encoder import BETWEEN

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

BIASES = (-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0)


class Point(NamedTuple):
    """A point of the curve: the scores of a model with a bias, in per cent.

    Attributes
    ----------
    bias : float
        The bias that is added to the score of the label.
    precision, recall, f : float
        The scores of chunks if the labels mark chunks, else those of the label.
    """

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
    """Return precision and recall of a model with each bias for a label.

    Parameters
    ----------
    model : SearchEstimator
        The fitted model.
    X, y : lists
        Held-out inputs and their gold outputs.
    label : str, default="O"
        The label; of a ``JointTagger`` with its layer, as in "chunk=O".
    biases : sequence of float, default=(-8, -4, -2, -1, 0, 1, 2, 4, 8)
        The values of the bias.

    Returns
    -------
    list of Point
        One point for each bias.
    """
    points = []
    for bias in biases:
        result, label_name = evaluated(y, model.biased({label: bias}).predict(X)), label
        if result.layers:
            layer, _, label_name = label.partition(BETWEEN)
            result = result.layers[list(model.get_params()["layers"]).index(layer)]
        counts = result.labels[label_name] if result.chunks is None else result.chunks
        points.append(Point(bias, counts.precision, counts.recall, counts.f))
    return points


def plot(points: Sequence[Point], path: str | os.PathLike[str]) -> None:
    """Save a plot of the curve.

    Parameters
    ----------
    points : sequence of Point
        The points that ``curve`` returned.
    path : path
        The image file. Plotting needs matplotlib (``laso[plots]``).
    """
    from laso.files.atomic import pyplot, save_figure

    pictures = pyplot()
    figure, axes = pictures.subplots(figsize=(5, 4))
    axes.plot([p.recall for p in points], [p.precision for p in points], marker="o")
    for point in points:
        axes.annotate(f"{point.bias:+g}", (point.recall, point.precision))
    axes.set_xlabel("recall, %")
    axes.set_ylabel("precision, %")
    figure.tight_layout()
    save_figure(figure, path)
    pictures.close(figure)
