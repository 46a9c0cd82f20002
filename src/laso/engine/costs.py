"""Class costs: what it costs to miss a label; a problem's ``loss`` reads them by ``cost_of``."""

# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from laso.engine.layout import Dataset

UNIT = 1 << 20  # costs are multiples of 1 / UNIT, so that their sums are exact


def cost_of(x, label):
    """The cost of missing a label; 1 if none was given or the label is not known."""
    return x.costs[label] if x.costs.shape[0] > 0 and label >= 0 else 1.0


def with_costs(dataset: Dataset, labels: Sequence[str], weights: Mapping[str, float]) -> Dataset:
    """The dataset that says what it costs to miss each label."""
    costs = [max(1, round(UNIT * weights.get(str(label), 1.0))) / UNIT for label in labels]
    return dataset._replace(costs=np.array(costs))
