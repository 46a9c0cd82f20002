"""Averages of the chunkers of Table 1."""

from __future__ import annotations

from laso.experiments import table1
from laso.experiments.averages import average_experiment

EXPERIMENT = average_experiment(
    "average1",
    table1.EXPERIMENT,
    {"LaSOp_5": table1.ROWS["LaSOp_5"]},
    {"precision": 2, "recall": 2, "f": 2, "test_s": 2},
    "rich",
)
