"""Averages of the chunkers of Table 1: what the mean of the weights of several seeds gains.

Rows and settings are those of Table 1. Each result has one part for each average: all single
models, then all averages of two, four ... of which no two have a model in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from studies.measure import Row, load, table
from studies.paper import table1
from studies.report import FEWEST, Plan, Sample, count_text

ROWS = {"LaSOp_5": table1.ROWS["LaSOp_5"]}
MEASURES = {"precision": 2, "recall": 2, "f": 2, "test_s": 2}  # digits
SIZES = (1, 2, 4)
MODELS = FEWEST * max(SIZES)  # enough for as many averages of the largest size as a mean needs
NOTES = """\
Scores are in per cent. The models of a row share the settings chosen on held-out data and differ in
their seeds. Their average is one model with the mean of their weights, so its test time is that of
a single model. Its training time, in seconds of CPU, is that of all its models, one after the
other. Scores are the mean over the averages of that size, of which no two have a model in common, ±
the standard deviation; single models include those of the table itself."""


class ModelGroup:
    """The models of all averages, trained as if they were one estimator."""

    def __init__(self, make: Callable[..., Any], *, seed: int, **given: Any):
        self.models = [make(seed=MODELS * seed + i, **given) for i in range(MODELS)]

    def fit(self, train: Path, dev: Path | None = None) -> ModelGroup:
        """Train every model; with held-out data only the first, since settings are chosen by it."""
        if dev is not None:
            del self.models[1:]
        for model in self.models:
            model.fit(train, dev=dev)
        return self

    def average(self, n: int, first: int = 0) -> Any:
        """Return the average of n models."""
        from laso.estimators import average_models

        return average_models(self.models[first : first + n])

    def save(self, path: Path) -> int:
        """Save the average of all models and return the size in bytes."""
        return int(self.average(len(self.models)).save(path))

    @property
    def interrupted_(self) -> bool:
        """Whether the training of any model was interrupted."""
        return any(model.interrupted_ for model in self.models)

    @property
    def n_iter_(self) -> int:
        """The number of epochs of one model."""
        return int(self.models[0].n_iter_)

    @property
    def scores_(self) -> list[float]:
        """The scores of the first model on held-out data."""
        return list(self.models[0].scores_)


def evaluate_by_size(evaluate: Callable[[Any, Path], Row], model: ModelGroup, path: Path) -> Row:
    """Return the scores of the averages of each size, as parts of one result."""
    n_models = len(model.models)
    return {
        "parts": [
            evaluate(model.average(n, first), path) | {"models": n, "first": first}
            for n in SIZES
            for first in range(0, n_models - n + 1, n)
        ]
    }


def section(results: list[Row], singles: Sequence[Row] = ()) -> str:
    """Return a table with a line for each row and number of models.

    ``singles`` are further results of single models.
    """
    lines = []
    for row in dict.fromkeys(result["row"] for result in results):
        for n in SIZES:
            of = [r for r in results if (r["row"], r["models"]) == (row, n)]
            if not of:
                continue
            shares = [r["cpu_s"] * n / MODELS for r in of]
            scored = of + (_others(of[0], singles) if n == 1 else [])
            scores = [Sample(tuple(r[m] for r in scored)).text(d) for m, d in MEASURES.items()]
            counted = count_text(len(scored))
            lines.append([row, str(n), counted, *scores, Sample(tuple(shares[:1])).text(0)])
    head = ["row", "models", "averages", *MEASURES, "training, CPU s"]
    return table(head, lines, left=1) + f"\n\n{FEW}"


FEW = f"Scores of fewer than {FEWEST} averages, in **bold**, are preliminary."


def _others(one: Row, singles: Sequence[Row]) -> list[Row]:
    """Return the results of single models with other seeds, but the settings of this one."""
    same = ("row", "features", "resources", "corpus", "settings")
    known = range(MODELS) if "first" in one else (MODELS * one["seed"],)
    return [
        each
        for each in singles
        if all(each[name] == one[name] for name in same) and each["seed"] not in known
    ]


def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
    """Write average1.md and return its path; the results of Table 1 count as single models."""
    singles = load(folder / "table1.json") or []
    lines = partial(section, singles=singles)
    return replace(PLAN, section=lines).write(results, chosen, folder)


PLAN = Plan("average1", "Averages of models of Table 1", ROWS, NOTES, by_seed=False)
EXPERIMENT = replace(
    table1.EXPERIMENT,
    plan=PLAN,
    rows=ROWS,
    estimator=lambda: partial(ModelGroup, table1.chunker()),
    evaluate=partial(evaluate_by_size, table1.evaluate),
    write=write,
    shown={**MEASURES, "cpu_s": 0},
    features=("rich",),
    chosen_by="table1",
    seeds=1,
)
