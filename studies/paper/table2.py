"""Table 2 of the paper: joint tagging and chunking (section 4.2)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from studies.measure import Row, table
from studies.paper import joint
from studies.paper.joint import BEAMS, LASO_A, PERCEPTRON, SCORES, SHOWN
from studies.report import Claim, Contrast, Plan, draw_training, mean, sample, seed_count
from studies.runner import Config, Experiment

ROWS = {**{f"LaSOp_{b}": Config({"queue": b, **PERCEPTRON}) for b in BEAMS}, **LASO_A}


class Printed(NamedTuple):
    """A row as the paper prints it: times in hours and minutes."""

    train: str | None
    test: str | None
    tag_acc: float
    chunk_acc: float
    joint_acc: float
    f: float


PAPER = {
    "Sutton": Printed(None, None, 98.9, 97.4, 96.5, 93.9),
    "LaSOp_1": Printed("1:29", "0:01", 98.9, 95.5, 94.7, 93.1),
    "LaSOp_5": Printed("3:24", "0:04", 98.9, 95.8, 95.1, 93.5),
    "LaSOp_10": Printed("4:47", "0:09", 98.9, 95.9, 95.1, 93.5),
    "LaSOp_25": Printed("4:59", "0:16", 98.9, 95.9, 95.1, 93.7),
    "LaSOp_50": Printed("5:53", "0:30", 98.9, 95.8, 94.9, 93.4),
    "LaSOa_1": Printed("0:41", "0:01", 99.0, 96.5, 95.8, 93.9),
    "LaSOa_5": Printed("1:43", "0:03", 99.0, 96.8, 96.1, 94.2),
    "LaSOa_10": Printed("2:21", "0:07", 99.1, 97.3, 96.4, 94.4),
    "LaSOa_25": Printed("3:38", "0:20", 99.1, 97.4, 96.6, 94.3),
    "LaSOa_50": Printed("3:15", "0:23", 99.1, 97.4, 96.6, 94.4),
}
QUOTED = (
    "The paper quotes one more system, Sutton et al. (2004), on noun phrases only: "
    f"tag {PAPER['Sutton'].tag_acc}, chunk {PAPER['Sutton'].chunk_acc}, "
    f"joint {PAPER['Sutton'].joint_acc}, F {PAPER['Sutton'].f}."
)

CLAIMS = (
    Claim(
        "the large margin beats the perceptron at each beam",
        [
            Contrast(f"LaSOa_{b} above LaSOp_{b}", {f"LaSOa_{b}": 1, f"LaSOp_{b}": -1}, "joint_acc")
            for b in BEAMS
        ],
    ),
    Claim(
        "a beam is better than none",
        [
            Contrast(f"{x}_10 above {x}_1", {f"{x}_10": 1, f"{x}_1": -1}, "joint_acc")
            for x in ("LaSOp", "LaSOa")
        ],
    ),
)


def scores(results: list[Row]) -> str:
    """Return tables of our scores beside the paper's, of times, and of scores that reach it."""
    head = ["row", "seeds", "tag", "chunk", "joint", "F", "paper's tag", "chunk", "joint", "F"]
    lines, costs, reached = [], [], []
    for row, paper in PAPER.items():
        samples = [one for name in SCORES if (one := sample(results, row, name)) is not None]
        if not samples:
            continue
        theirs = [getattr(paper, name) for name in SCORES]
        printed = [f"{value:.1f}" for value in theirs]
        ours = [seed_count(results, row), *(one.text() for one in samples)]
        lines.append([row, *ours, *printed])
        costs.append([row, *_costs(results, row), paper.train or "", paper.test or ""])
        pairs = zip(samples, theirs, strict=True)
        reached.append([row, *("yes" if one.mean >= value else "no" for one, value in pairs)])
    times = ["row", "epochs", "training, CPU s", "test s", "peak MB"]
    times += ["paper's train h:m", "test h:m"]
    return "\n\n".join(
        [
            table(head, lines, left=1),
            QUOTED,
            "### Time and memory",
            table(times, costs, left=1),
            "### At least the paper's",
            table(["row", "tag", "chunk", "joint", "F"], reached, left=1),
        ]
    )


def _costs(results: list[Row], row: str) -> list[str]:
    """Return epochs, times and memory of a row."""
    samples = [sample(results, row, name) for name in ("cpu_s", "test_s", "peak_mb")]
    return [f"{mean(results, row, 'epochs'):.0f}", *(one.text(1) for one in samples if one)]


PLAN = Plan(
    "table2",
    "Table 2: joint tagging and chunking",
    ROWS,
    joint.NOTES,
    scores,
    CLAIMS,
    scored="joint accuracy",
    draw=partial(draw_training, name="table2", scored="joint accuracy"),
    above_plots="\n## Plots\n",
)
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=joint.tagger,
    evaluate=joint.evaluate,
    shown=SHOWN,
    features=("rich",),
    epochs=joint.EPOCHS,
    patience=joint.PATIENCE,
    scored="joint accuracy",
    seeds=3,
)
