"""Averages of the chunkers of Table 1."""

from __future__ import annotations

from studies.paper import table1
from studies.paper.averages import average_experiment

EXPERIMENT = average_experiment(
    "average1",
    table1.EXPERIMENT,
    {"LaSOp_5": table1.ROWS["LaSOp_5"]},
    {"precision": 2, "recall": 2, "f": 2, "test_s": 2},
    "rich",
)
