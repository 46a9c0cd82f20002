"""Averages of models that differ only in their seeds: what the mean of their weights gains.

Rows and settings are those of Table 1 or 2. Each result has one part for each number of models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from laso.experiments.measure import Row, table
from laso.experiments.report import Plan, Sample, document, write_report
from laso.experiments.runner import Config, Experiment

SIZES = (1, 2, 4, 8)
NOTES = """\
Scores are in per cent. The models of a row share the settings chosen on held-out data and differ in
their seeds. Their average is one model with the mean of their weights, so its test time is that of
a single model. Its training time is that of all its models, one after the other."""


class ModelGroup:
    """The models of the largest average, trained as if they were one estimator."""

    def __init__(self, make: Callable[..., Any], *, seed: int, **given: Any):
        most = max(SIZES)
        self.models = [make(seed=most * seed + i, **given) for i in range(most)]

    def fit(self, train: Path, dev: Path | None = None) -> ModelGroup:
        """Train every model; with held-out data only the first, since settings are chosen by it."""
        if dev is not None:
            del self.models[1:]
        for model in self.models:
            model.fit(train, dev=dev)
        return self

    def average(self, n: int) -> Any:
        """Return the average of the first n models."""
        from laso.estimators import average_models

        return average_models(self.models[:n])

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
    """Return the scores of the average of each size, as parts of one result."""
    return {"parts": [evaluate(model.average(n), path) | {"models": n} for n in SIZES]}


def section(results: list[Row], measures: Mapping[str, int]) -> str:
    """Return a table with a line for each row and number of models."""
    lines = []
    for row in dict.fromkeys(result["row"] for result in results):
        for n in SIZES:
            of = [r for r in results if (r["row"], r["models"]) == (row, n)]
            if not of:
                continue
            shares = [r["train_s"] * n / max(SIZES) for r in of]
            scores = [Sample(tuple(r[m] for r in of)).text(d) for m, d in measures.items()]
            lines.append([row, str(n), *scores, Sample(tuple(shares)).text(0)])
    return table(["row", "models", *measures, "train s"], lines, left=1)


def average_experiment(
    name: str,
    base: Experiment,
    rows: Mapping[str, Config],
    measures: Mapping[str, int],
    features: str,
) -> Experiment:
    """Return the experiment that averages models of another experiment's rows."""

    def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
        plan = Plan(name, f"Averages of models of {base.name.capitalize()}", rows, NOTES)
        lines = partial(section, measures=measures)
        return write_report(folder / f"{name}.md", document(plan, results, lines))

    return Experiment(
        name=name,
        rows=rows,
        estimator=lambda: partial(ModelGroup, base.estimator()),
        evaluate=partial(evaluate_by_size, base.evaluate),
        report=write,
        shown={**measures, "train_s": 0},
        features=(features,),
        epochs=base.epochs,
        patience=base.patience,
        scored=base.scored,
        chosen_by=base.name,
        seeds=1,
    )
