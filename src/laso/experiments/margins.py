"""Why ALMA trails, or does not: one thing at a time is changed in LaSO_5 of Table 1.

Nothing here looks at the test data: variants are held against each other on the held-out tenth.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laso.experiments.measure import Row, table
from laso.experiments.report import saved
from laso.experiments.runner import Config, Experiment, resource_names
from laso.experiments.table1 import ALMA, PERCEPTRON, chunker, tested

WORST, UNIFORM = {"weighting": "worst"}, {"weighting": "uniform"}
ALPHA = 0.9
B, C = 8**0.5 / ALPHA, 2**0.5  # what the paper takes from Gentile (2001)
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
nodes" is Equation 2: the update sets the mean of the good nodes against the mean of the queue; all
other rows set the best good node against the best wrong one. B scales the margin that ALMA asks
for, C its steps; it aims at 1 - alpha of the largest margin (alpha 1: at none)."""
SHOWN = (1, 3, 5, 10)


def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
    """Write margins.md; the file."""
    parts = [
        "# What makes ALMA and the perceptron differ",
        "Made by `laso reproduce margins --report` from chosen.json beside it.",
        NOTES,
    ]
    groups: dict[tuple[str, str], list[Row]] = {}
    for entry in chosen.values():
        if "settings" in entry:
            group = entry["features"], resource_names(entry["resources"])
            groups.setdefault(group, []).append(entry)
    for (features, resources), entries in groups.items():
        found = {entry["row"]: entry for entry in entries}
        lines = [_line(found[row]) for row in ROWS if row in found]
        head = ["variant", *(f"after {n}" for n in SHOWN), "best", "after epoch", "train s"]
        parts += [f"## Features {features}, {resources}", table(head, lines, left=1)]
    if not groups:
        parts.append("Nothing was measured yet.")
    return saved(folder / "margins.md", "\n\n".join(parts) + "\n")


def _line(entry: Row) -> list[str]:
    curve = entry["held_out"]
    seconds = sum(trial["train_s"] for trial in entry["trials"])
    at = [f"{curve[n - 1]:.2f}" if n <= len(curve) else "" for n in SHOWN]
    epochs = entry["settings"]["epochs"]
    return [entry["row"], *at, f"{entry['f']:.2f}", str(epochs), f"{seconds:.0f}"]


EXPERIMENT = Experiment(
    name="margins",
    rows=ROWS,
    estimator=chunker,
    tested=tested,
    report=write,
    shown={},
    epochs=12,
    patience=12,
    seeds=1,
    tests=False,
)
