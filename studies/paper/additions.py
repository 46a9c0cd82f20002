"""Ablation of the chunker's features: ``rich`` without one kind at a time, on held-out data.

The experiment does not use the test data. To see the effect of resources, run it with and without
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laso.tasks.chunking.feature_sets import additions, paper_features, rich_features
from studies.paper import table1
from studies.report import Plan
from studies.runner import Config, Experiment

NAMES = ("w", "pos")
LASO = table1.ROWS["LaSOp_5"].settings
PAPER, RICH, WITHOUT = "paper", "rich", "rich without "
ROWS = {
    how: Config({**LASO, "how": how})
    for how in (PAPER, RICH, *(WITHOUT + kind for kind in additions(NAMES)))
}
NOTES = """\
F on the held-out tenth of the training data after each epoch, LaSOp_5, averaged weights, one seed.
The standard deviations of Table 1 show the effect of the seed."""


def templates(how: str, resources: Sequence[str]) -> list[str]:
    """Return the feature templates of a variant."""
    if how == PAPER:
        return paper_features(NAMES, resources)
    left_out = additions(NAMES).get(how.removeprefix(WITHOUT), [])
    return [one for one in rich_features(NAMES, resources) if one not in left_out]


def make_estimator(*, how: str, features: str, resources: Sequence[str], **given: Any) -> Any:
    """Return the estimator of a row."""
    return table1.chunker()(features=templates(how, resources), **given)


PLAN = Plan("additions", "What each kind of features brings", ROWS, NOTES)
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=lambda: make_estimator,
    evaluate=table1.evaluate,
    shown={},
    features=("rich",),
    epochs=10,
    patience=10,
    seeds=1,
    tests=False,
)
