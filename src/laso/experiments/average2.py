"""Averages of the joint taggers of Table 2."""

from __future__ import annotations

from laso.experiments import table2
from laso.experiments.averages import average_experiment
from laso.experiments.joint import SCORES

EXPERIMENT = average_experiment(
    "average2",
    table2.EXPERIMENT,
    {"LaSOa_10": table2.ROWS["LaSOa_10"]},
    {**dict.fromkeys(SCORES, 2), "test_s": 2},
    "rich",
)
