"""Class costs: what it costs to miss a label, written into a problem's constants.

A problem that supports them has an attribute ``costs``, an index in ``spec`` that holds 0, or the
place from which the costs of the labels are written; its ``loss`` reads them by ``cost_of``.
"""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from laso.engine.layout import Dataset

UNIT = 1 << 20  # costs are in spec as multiples of 1 / UNIT


def cost_of(spec, costs, label):
    """The cost of missing a label; 1 if none was given or the label is not known."""
    return spec[costs + label] / UNIT if costs > 0 and label >= 0 else 1.0


def with_costs(
    dataset: Dataset, place: int, labels: Sequence[str], weights: Mapping[str, float]
) -> Dataset:
    """The dataset whose constants say what it costs to miss each label.

    ``place`` is the problem's ``costs``.
    """
    spec = dataset.spec.copy()
    spec[place] = len(spec)
    costs = [max(1, round(UNIT * weights.get(label, 1.0))) for label in labels]
    return dataset._replace(spec=np.concatenate([spec, np.array(costs, np.int64)]))
