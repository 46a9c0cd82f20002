"""Mixtures of the joint taggers of Table 2."""

from __future__ import annotations

from laso.experiments import table2
from laso.experiments.joint import SCORES
from laso.experiments.mixtures import mixture

EXPERIMENT = mixture(
    "mixture2",
    table2.EXPERIMENT,
    {row: table2.ROWS[row] for row in ("LaSOp_5", "LaSOp_10", "LaSOa_5", "LaSOa_10")},
    {**dict.fromkeys(SCORES, 2), "test_s": 2},
    "rich",
)
