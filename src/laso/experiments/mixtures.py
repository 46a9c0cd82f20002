"""What a mixture gains: the mean of the weights of models that differ in their seeds only.

Rows and settings are those of Table 1 or 2. Each result has one part for each number of models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from laso.experiments.measure import Row, table
from laso.experiments.report import Plan, Sample, document, saved
from laso.experiments.runner import Config, Experiment

SIZES = (1, 2, 4, 8)
NOTES = """\
Scores are in per cent. Models of a row have the settings that held-out data chose for it alone, and
differ in their seeds; a mixture has the mean of their weights, and is one model to use: the time to
test is that of one. Training time is that of all its models, one after the other."""


class Several:
    """As many models as the largest mixture has, to be trained like one."""

    def __init__(self, make: Callable[..., Any], *, seed: int, **given: Any):
        most = max(SIZES)
        self.models = [make(seed=most * seed + i, **given) for i in range(most)]

    def fit(self, train: Path, dev: Path | None = None) -> Several:
        """Train each; with data held out the first only, for which the settings are chosen."""
        if dev is not None:
            del self.models[1:]
        for model in self.models:
            model.fit(train, dev=dev)
        return self

    def of(self, n: int) -> Any:
        """The mixture of the first n."""
        from laso.estimators import average_models

        return average_models(self.models[:n])

    def save(self, path: Path) -> int:
        """Write the mixture of all; its size."""
        return int(self.of(len(self.models)).save(path))

    @property
    def interrupted_(self) -> bool:
        """Was one of them?"""
        return any(model.interrupted_ for model in self.models)

    @property
    def n_iter_(self) -> int:
        """The epochs of one."""
        return int(self.models[0].n_iter_)

    @property
    def scores_(self) -> list[float]:
        """The scores of the first on data held out."""
        return list(self.models[0].scores_)


def of_each_size(tested: Callable[[Any, Path], Row], model: Several, path: Path) -> Row:
    """The scores of each mixture, as parts of one result."""
    return {"parts": [tested(model.of(n), path) | {"models": n} for n in SIZES]}


def section(results: list[Row], measures: Mapping[str, int]) -> str:
    """A line for each row and number of models."""
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


def mixture(
    name: str,
    base: Experiment,
    rows: Mapping[str, Config],
    measures: Mapping[str, int],
    features: str,
) -> Experiment:
    """The experiment with mixtures of models of another experiment's rows."""

    def write(results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
        plan = Plan(name, f"Mixtures of models of {base.name.capitalize()}", rows, NOTES)
        lines = partial(section, measures=measures)
        return saved(folder / f"{name}.md", document(plan, results, lines))

    return Experiment(
        name=name,
        rows=rows,
        estimator=lambda: partial(Several, base.estimator()),
        tested=partial(of_each_size, base.tested),
        report=write,
        shown={**measures, "train_s": 0},
        features=(features,),
        epochs=base.epochs,
        patience=base.patience,
        scored=base.scored,
        chosen_by=base.name,
        seeds=1,
    )
