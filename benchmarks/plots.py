"""Plots of the results, as SVG that is the same for the same figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.growth import MEASURES
from benchmarks.report import total
from laso.experiments.measure import Row
from laso.experiments.plots import pyplot, saved

COLOURS = {"laso": "tab:red", "python-crfsuite": "tab:blue", "vowpalwabbit": "tab:green"}


def peers(rows: list[Row], path: Path) -> Path:
    """F over the time from file to model, and the speed of decoding."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.5))
    for row in rows:
        left.scatter(total(row), row["f"], color=COLOURS[row["system"]])
        name = f"{row['system']} {row['config']}"
        left.annotate(
            name, (total(row), row["f"]), xytext=(4, 4), textcoords="offset points", fontsize=8
        )
    left.set(xscale="log", xlabel="seconds to read, make features and train", ylabel="F on test")
    left.margins(x=0.3)  # room for the names
    left.tick_params(axis="x", which="both", labelsize=7)
    names = [f"{row['system']} {row['config']}" for row in rows]
    speeds = [row["tokens_per_s"] for row in rows]
    right.barh(names, speeds, color=[COLOURS[row["system"]] for row in rows])
    right.set(xlabel="tokens per second, one thread")
    right.tick_params(axis="y", labelsize=8)
    return saved(figure, path)


def growth(rows: list[Row], path: Path) -> Path:
    """One row of plots for each measure, one column for each curve."""
    curves = list(dict.fromkeys(row["curve"] for row in rows))
    figure, axes = pyplot.subplots(
        len(MEASURES), len(curves), figsize=(3.5 * len(curves), 3 * len(MEASURES)), squeeze=False
    )
    for i, measure in enumerate(MEASURES):
        for j, curve in enumerate(curves):
            _curve(axes[i][j], [row for row in rows if row["curve"] == curve], measure)
            axes[i][j].set(xlabel=curve, ylabel=measure)
    return saved(figure, path)


def _curve(axis: Any, rows: list[Row], measure: str) -> None:
    for name in dict.fromkeys((row["system"], row["config"]) for row in rows):
        found = sorted(
            (row["x"], row[measure]) for row in rows if (row["system"], row["config"]) == name
        )
        axis.plot(*zip(*found, strict=True), marker="o", label=" ".join(name))
    axis.set(xscale="log", yscale="log")
    axis.legend(fontsize=7)
