"""Dependency trees of UD English EWT: the paper's strategies, updates and beams again.

The columns are words, UPOS, XPOS, heads and labels; tags are gold. By default a tenth of the
training sentences is learned from, since the rows are many.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from studies import report
from studies.measure import Row, timed_predict
from studies.paper import table3
from studies.report import Claim, Contrast, Plan, Sample, sample, score_table
from studies.runner import Config, Experiment

MEASURES = ("uas", "las", "clas", "exact")
BEAMS = (1, 4, 8, 16, 32)
TRAINED, DECODED = (1, 4, 8), (1, 4, 8, 16)  # beams of the grid
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
FIRST = "arc-hybrid"  # the system of all rows that name no other
SYSTEMS: dict[str, dict[str, Any]] = {
    "arc-eager": {"system": "arc-eager"},
    "arc-standard": {"system": "arc-standard"},
    "dynamic oracle": {"oracle": "dynamic"},
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
    **{
        f"{name} at beam {b}": Config({"queue": b, **PERCEPTRON, "how": name})
        for b in (1, 8)
        for name in SYSTEMS
    },
}
GRID = tuple(f"LaSO at beam {b}" for b in TRAINED)
CLAIMS = tuple(
    Claim(
        f"{better} beats {worse}",
        [
            Contrast(
                f"{better} above {worse}",
                {f"{better} at beam 8": 1, f"{worse} at beam 8": -1},
                "las",
            )
        ],
    )
    for better, worse in (("LaSO", "early update"), ("early update", "standard"))
)


def make_estimator(*, features: str, resources: Any, how: str = "", **given: Any) -> Any:
    """Return the parser of a row, which has templates of words and tags; ``how`` is in SYSTEMS."""
    from laso import Parser
    from laso.tasks.parsing.templates import default_templates

    templates = default_templates(("w", "pos", "xpos"), 2)
    return Parser(**{"system": FIRST, **SYSTEMS.get(how, {})}, features=templates, **given)


def evaluate(model: Any, path: Path) -> Row:
    """Return the scores with each beam of decoding, as parts of one result."""
    trained = model.queue
    others = DECODED if trained in TRAINED and is_usual(model) else ()
    parts = []
    for beam in sorted({trained, *others}):
        model.set_params(queue=beam)
        beams = {"train_beam": trained, "decode_beam": beam}
        parts.append(beams | scores_of(model, path))
    model.set_params(queue=trained)
    return {"parts": parts}


def is_usual(model: Any) -> bool:
    """Return whether a parser is that of a row of the grid."""
    import laso

    usual = model.update == laso.perceptron(weighting=laso.worst)
    usual = usual and model.strategy == laso.restart
    return bool(usual and (model.system, model.oracle) == (FIRST, "static"))


def scores_of(model: Any, path: Path) -> Row:
    """Return the scores on a test file, and the time from reading it to the last tree."""
    from laso.data import read_columns
    from laso.metrics.trees import tree_scores

    predicted, seconds = timed_predict(model, path)
    gold = [[(int(token[-2]), token[-1]) for token in tokens] for tokens in read_columns(path)]
    scores = tree_scores(gold, predicted)
    return {"test_s": seconds, **{name: getattr(scores, name) for name in MEASURES}}


NOTES = """\
Attachment scores in per cent, as the CoNLL 2018 evaluation defines them, on gold words and gold
tags: the mean over seeds, ± the standard deviation. All rows have the default templates, and the
arc-hybrid system with the static oracle unless they name others. The number of epochs was chosen on
a tenth of the training data, which is every tenth sentence of the treebank's for the corpus
`ud_ewt_tenth`. Training time is in seconds of CPU: other programs may have run meanwhile."""


def section(rows: list[Row]) -> str:
    """Return a table of scores and times."""
    measures = (*MEASURES, "epochs", "cpu_s", "peak_mb")
    heads = ("UAS", "LAS", "CLAS", "exact", "epochs", "training, CPU s", "peak MB")
    return score_table(rows, ROWS, dict(zip(measures, heads, strict=True)))


def grid(results: list[Row]) -> str:
    """Return LAS for each beam of training and of decoding: Table 3 for trees."""
    las = table3.grid(results, "las")
    if not las:
        return ""
    trained = [b for b in TRAINED if (b, b) in las]
    cells = table3.beam_table(
        lambda b, c: las[b, c].text() if (b, c) in las else "", trained, DECODED
    )
    return (
        "\n## Table 3 for trees: the beam of training against the beam of decoding\n\n"
        f"LAS of LaSO; rows train, columns decode.\n\n{cells}\n\n"
        f"{table3.diagonal(las, DECODED)}\n\n{table3.TIES}\n"
    )


def by_beam(results: list[Row]) -> dict[str, dict[int, Sample]]:
    """Return LAS of each strategy for each beam that was measured."""
    found = {
        name: {b: sample(results, f"{name} at beam {b}", "las") for b in BEAMS}
        for name in STRATEGIES
    }
    return {
        name: measured
        for name, points in found.items()
        if (measured := {b: one for b, one in points.items() if one is not None})
    }


HEADING = "Dependency trees of UD English EWT"
PLAN = Plan("parsing", HEADING, ROWS, NOTES, section, CLAIMS, whose="The paper's questions")


def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
    """Write parsing.md, and its plots if matplotlib is installed; return the paths."""
    matched = [row for row in results if row["train_beam"] == row["decode_beam"]]
    others = [row for row in results if row["row"] in GRID]
    text, plotted = PLAN.text(matched, chosen) + grid(others), []
    if others and find_spec("matplotlib"):
        from studies import plots

        cells = {beams: one.mean for beams, one in table3.grid(others, "las").items()}
        path = folder / "parsing-heat.svg"
        plotted = [plots.heat({"LAS": cells}, TRAINED, path, DECODED)]
        plotted += [plots.over_beams(by_beam(matched), folder / "parsing-beams.svg", "LAS")]
    if results:
        text += f"\n{report.CHOSEN}\n\n{report.choices(chosen, 'LAS')}\n"
    return report.write_report(folder / "parsing.md", text, plotted)


EXPERIMENT = Experiment(
    plan=PLAN,
    rows=ROWS,
    estimator=lambda: make_estimator,
    evaluate=evaluate,
    write=write,
    shown={"decode_beam": 0, **dict.fromkeys(MEASURES, 2), "cpu_s": 1},
    features=("default",),
    epochs=12,
    patience=2,
    scored="LAS",
    seeds=3,
    corpora=("ud_ewt_tenth", "ud_ewt_trees"),
)
