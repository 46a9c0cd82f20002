"""The update strategies compared at beam 10 (end of section 4.2)."""

from __future__ import annotations

from studies.measure import Row, table
from studies.paper import joint
from studies.paper.joint import ALMA, SCORES, SHOWN
from studies.report import Claim, Contrast, Plan, sample_texts, seed_count
from studies.runner import Config, Experiment

STRATEGIES = {
    "LaSO": "restart",
    "early update": "early",
    "delayed update": "delayed",
    "max-violation": "max_violation",
    "standard": "standard",
}
ROWS = {row: Config({"queue": 10, **ALMA, "strategy": s}) for row, s in STRATEGIES.items()}
PAPER = {"LaSO": 94.4, "early update": 93.1, "standard": 92.5}
CLAIMS = (
    Claim(
        "LaSO beats early update, which beats standard updates",
        [
            Contrast("LaSO above early update", {"LaSO": 1, "early update": -1}),
            Contrast("early update above standard", {"early update": 1, "standard": -1}),
        ],
    ),
)


def section(results: list[Row]) -> str:
    """Return a table of our scores beside the paper's F."""
    lines = [
        [row, seed_count(results, row), *texts, f"{PAPER[row]:.1f}" if row in PAPER else "-"]
        for row in ROWS
        if (texts := sample_texts(results, row, (*SCORES, "epochs", "cpu_s")))
    ]
    head = ["strategy", "seeds", "tag", "chunk", "joint", "F", "epochs", "training, CPU s"]
    head.append("paper's F")
    return table(head, lines, left=1)


HEADING = "Update strategies at beam 10"
PLAN = Plan("updates", HEADING, ROWS, joint.NOTES, section, CLAIMS, scored="joint accuracy")
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=joint.tagger,
    evaluate=joint.evaluate,
    shown=SHOWN,
    features=("rich",),
    epochs=20,
    patience=3,
    scored="joint accuracy",
    seeds=5,
)
