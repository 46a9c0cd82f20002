"""Dependency trees of UD English EWT: the paper's strategies, updates and beams again.

The columns are words, UPOS, XPOS, heads and labels; tags are gold.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from laso.experiments.measure import Row, table, timed_predict
from laso.experiments.report import (
    Claim,
    Contrast,
    Plan,
    choices,
    document,
    sample_texts,
    write_report,
)
from laso.experiments.runner import Config, Experiment

MEASURES = ("uas", "las", "clas", "exact")
BEAMS = (1, 4, 8, 16, 32)
STRATEGIES = {
    "LaSO": "restart",
    "delayed LaSO": "delayed",
    "early update": "early",
    "max-violation": "max_violation",
    "standard": "standard",
}
PERCEPTRON = {"update": "perceptron", "weighting": "worst"}
UPDATES: dict[str, dict[str, Any]] = {
    "perceptron of all nodes": {"update": "perceptron"},
    "passive-aggressive": {"update": "passive_aggressive", "weighting": "worst"},
    "ALMA": {"update": "alma", "alpha": 0.9, "B": "sqrt(8)/alpha", "weighting": "worst"},
}
ROWS = {
    **{
        f"{name} at beam {b}": Config({"queue": b, **PERCEPTRON, "strategy": strategy})
        for b in BEAMS
        for name, strategy in STRATEGIES.items()
    },
    **{
        f"{name} at beam {b}": Config({"queue": b, **update})
        for b in (1, 8)
        for name, update in UPDATES.items()
    },
}
CLAIMS = (
    Claim(
        "LaSO beats early update, which beats standard updates",
        [
            Contrast(
                f"{better} above {worse}",
                {f"{better} at beam 8": 1, f"{worse} at beam 8": -1},
                "las",
            )
            for better, worse in (("LaSO", "early update"), ("early update", "standard"))
        ],
    ),
)


def make_estimator(*, features: str, resources: Any, **given: Any) -> Any:
    """Return the parser of a row."""
    from laso import Parser

    return Parser(**given)


def evaluate(model: Any, path: Path) -> Row:
    """Return the scores on a test file, and the time from reading it to the last tree."""
    from laso.data import read_columns
    from laso.tree_metrics import tree_scores

    predicted, seconds = timed_predict(model, path)
    gold = [[(int(token[-2]), token[-1]) for token in tokens] for tokens in read_columns(path)]
    scores = tree_scores(gold, predicted)
    return {"test_s": seconds, **{name: getattr(scores, name) for name in MEASURES}}


NOTES = """\
Attachment scores in per cent, as the CoNLL 2018 evaluation defines them, on gold words and gold
tags: the mean over seeds, ± the standard deviation. All rows have the default templates and the
arc-hybrid system with the static oracle. The number of epochs was chosen on a tenth of the
training data."""


def section(rows: list[Row]) -> str:
    """Return a table of scores and times."""
    lines = []
    measures = (*MEASURES, "epochs", "train_s", "test_s", "peak_mb")
    for row in ROWS:
        texts = sample_texts(rows, row, measures)
        if texts:
            lines.append([row, *texts])
    head = ["", "UAS", "LAS", "CLAS", "exact", "epochs", "train s", "test s", "peak MB"]
    return table(head, lines, left=1)


def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
    """Write parsing.md and return its path."""
    plan = Plan("parsing", "Dependency trees of UD English EWT", ROWS, NOTES)
    text = document(plan, results, section, CLAIMS, whose="The paper's questions")
    if results:
        text += f"\n## Settings chosen on held-out data\n\n{choices(chosen, 'LAS')}\n"
    return write_report(folder / "parsing.md", text)


EXPERIMENT = Experiment(
    name="parsing",
    rows=ROWS,
    estimator=lambda: make_estimator,
    evaluate=evaluate,
    report=write,
    shown={**dict.fromkeys(MEASURES, 2), "train_s": 1, "test_s": 2},
    features=("default",),
    epochs=12,
    patience=2,
    scored="LAS",
    seeds=3,
    corpora=("ud_ewt_trees",),
)
