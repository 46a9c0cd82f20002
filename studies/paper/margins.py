"""ALMA against the perceptron: LaSO_5 of Table 1 with one setting changed at a time.

The experiment does not use the test data: variants are compared on the held-out tenth.
"""

from __future__ import annotations

from typing import Any

from studies.paper.table1 import ALMA, PERCEPTRON, chunker, evaluate
from studies.report import Plan
from studies.runner import Config, Experiment

WORST, UNIFORM = {"weighting": "worst"}, {"weighting": "uniform"}
ALPHA = 0.9
B, C = 8**0.5 / ALPHA, 2**0.5  # the paper's values, from Gentile (2001)
QUEUE = {"queue": 5}
VARIANTS: dict[str, dict[str, Any]] = {
    "perceptron": {**PERCEPTRON, **WORST},
    "perceptron: all nodes": {**PERCEPTRON, **UNIFORM},
    **{f"perceptron: margin {m}": {**PERCEPTRON, **WORST, "margin": m} for m in (1.0, 3.0)},
    "ALMA": {**ALMA, **WORST},
    "ALMA: all nodes": {**ALMA, **UNIFORM},
    "ALMA: always normalised": {**ALMA, **WORST, "normalize_always": True},
    **{f"ALMA: B times {n}": {**ALMA, **WORST, "B": n * B} for n in (3, 10, 30)},
    **{f"ALMA: C times {n}": {**ALMA, **WORST, "C": n * C} for n in (0.25, 0.5, 2)},
    **{
        f"ALMA: alpha {alpha}": {**ALMA, **WORST, "alpha": alpha, "B": 8**0.5 / alpha}
        for alpha in (0.5, 1.0)
    },
}
ROWS = {name: Config({**QUEUE, **settings}) for name, settings in VARIANTS.items()}
NOTES = """\
F on the held-out tenth of the training data after each epoch, averaged weights, one seed. "All
nodes" is Equation 2: the update compares the mean of the good nodes with the mean of the queue; all
other rows compare the best good node with the best wrong one. B scales the margin of ALMA, C its
step size; ALMA approximates (1 - alpha) times the largest margin (alpha 1: no margin)."""


PLAN = Plan("margins", "What makes ALMA and the perceptron differ", ROWS, NOTES)
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=chunker,
    evaluate=evaluate,
    shown={},
    epochs=12,
    patience=12,
    seeds=1,
    tests=False,
)
