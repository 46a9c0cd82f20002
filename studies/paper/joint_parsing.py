"""Tags and trees of UD English EWT: in one search, or one after the other. Table 2 for trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from studies.measure import Row
from studies.paper import parsing
from studies.report import Claim, Contrast, Plan, score_table
from studies.runner import Config, Experiment

TAGS = "tag_acc"
MEASURES = (TAGS, "uas", "las", "clas")
BEAMS = (1, 8)
TOGETHER, IN_TURN, GOLD = "together", "one after the other", "gold tags"
UPDATES = {
    "": parsing.PERCEPTRON,
    " with passive-aggressive updates": parsing.UPDATES["passive-aggressive"],
}
ROWS = {
    f"{how}{name} at beam {b}": Config({"queue": b, **update, "how": how})
    for how, names in ((TOGETHER, UPDATES), (IN_TURN, UPDATES), (GOLD, ("",)))
    for name, update in UPDATES.items()
    if name in names
    for b in BEAMS
}
CLAIMS = (
    Claim(
        "tags and trees are better predicted together",
        [
            Contrast(
                f"{measure} at beam {b}",
                {f"{TOGETHER} at beam {b}": 1, f"{IN_TURN} at beam {b}": -1},
                measure,
            )
            for b in BEAMS
            for measure in (TAGS, "las")
        ],
    ),
)


def make_estimator(*, features: str, resources: Any, how: str, **given: Any) -> Any:
    """Return the parser of a row, which has words and UPOS."""
    from laso import Parser, Tagger
    from laso.tasks.parsing.templates import default_templates

    if how == TOGETHER:
        return Parser(tagger="joint", **given)
    templates = default_templates(("w", "pos"))
    tagger = Tagger(seed=given["seed"]) if how == IN_TURN else None
    return Parser(tagger=tagger, features=templates, **given)


def evaluate(model: Any, path: Path) -> Row:
    """Return the attachment scores, and the share of tags that are right."""
    from laso.data import read_columns

    scores = parsing.scores_of(model, path)
    tags = [token[1] for tokens in read_columns(path) for token in tokens]
    found = tags
    if model.tagger is not None:
        found = [tag for words in model.predict_tags(path) for (tag,) in words]
    right = sum(a == b for a, b in zip(tags, found, strict=True))
    return {TAGS: 100 * right / len(tags), **scores}


NOTES = """\
Accuracy of UPOS and attachment scores in per cent, as the CoNLL 2018 evaluation defines them, on
gold words: the mean over seeds, ± the standard deviation. Together: `Parser(tagger="joint")`, which
tags two words ahead of the tree. One after the other: `Parser(tagger=Tagger())`, which learns the
tree from jackknifed tags. All rows have the templates of words and UPOS, and the arc-eager system;
both ways to tag have the default templates of `Tagger`. The number of epochs was chosen on a tenth
of the training data. Training time is in seconds of CPU: other programs may have run meanwhile."""


def section(rows: list[Row]) -> str:
    """Return a table of scores and times."""
    measures = (*MEASURES, "epochs", "cpu_s", "test_s")
    heads = ("UPOS", "UAS", "LAS", "CLAS", "epochs", "training, CPU s", "test s")
    return score_table(rows, ROWS, dict(zip(measures, heads, strict=True)))


PLAN = Plan(
    *("joint_parsing", "Tags and trees of UD English EWT", ROWS, NOTES, section, CLAIMS),
    whose="Together or not",
    scored="LAS",
)
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=lambda: make_estimator,
    evaluate=evaluate,
    shown={**dict.fromkeys(MEASURES, 2), "cpu_s": 1},
    features=("default",),
    epochs=20,
    patience=3,
    scored="LAS",
    seeds=3,
    corpora=("ud_ewt_tenth", "ud_ewt_trees"),
)
