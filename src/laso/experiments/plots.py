"""Plots of results, as SVG that is the same for the same figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot

from laso.experiments.measure import Row
from laso.experiments.report import groups, sample, title

matplotlib.rcParams["svg.hashsalt"] = "laso"
matplotlib.rcParams["svg.fonttype"] = "none"  # text as text: a change of a name is a small change

__all__ = ["curves", "heat", "pyplot", "saved", "times"]


def times(results: list[Row], path: Path) -> Path:
    """F over training time: the means of each row, with the spread of F."""
    figure, panels = _panels(results)
    for axis, rows in panels:
        for name in dict.fromkeys(row["row"] for row in rows):
            seconds, f = sample(rows, name, "train_s"), sample(rows, name, "f")
            assert seconds is not None
            assert f is not None
            axis.errorbar(seconds.mean, f.mean, yerr=f.spread or 0.0, marker="o", capsize=3)
            axis.annotate(
                name, (seconds.mean, f.mean), xytext=(4, 4), textcoords="offset points", fontsize=8
            )
        axis.set(xscale="log", xlabel="seconds from file to model", ylabel="F on test")
        axis.margins(x=0.3)  # room for the names
    return saved(figure, path)


def curves(results: list[Row], path: Path, scored: str = "F") -> Path:
    """The score on held-out data after each epoch, of each row with the settings chosen."""
    figure, panels = _panels(results)
    for axis, rows in panels:
        for name, curve in {row["row"]: row["held_out"] for row in rows}.items():
            axis.plot(range(1, len(curve) + 1), curve, label=name)
        axis.set(xlabel="epoch", ylabel=f"{scored} on held-out data")
        axis.legend(fontsize=7)
    return saved(figure, path)


def heat(
    tables: Mapping[str, Mapping[tuple[int, int], float]], beams: Sequence[int], path: Path
) -> Path:
    """F for each beam of training and of decoding, as colours with their numbers."""
    figure, axes = pyplot.subplots(1, len(tables), figsize=(5 * len(tables), 5), squeeze=False)
    low = min(min(cells.values()) for cells in tables.values())
    high = max(max(cells.values()) for cells in tables.values())
    for axis, (says, cells) in zip(axes[0], tables.items(), strict=True):
        rows = [[cells.get((b, c), float("nan")) for c in beams] for b in beams]
        axis.imshow(rows, vmin=low, vmax=high, cmap="viridis")
        for i, row in enumerate(rows):
            for j, f in enumerate(row):
                dark = f < (low + high) / 2
                text = f"{f:.1f}" if f == f else ""
                axis.text(j, i, text, ha="center", va="center", color="w" if dark else "k")
        axis.set_title(says, fontsize=9)
        axis.set(xlabel="beam of decoding", ylabel="beam of training")
        axis.set_xticks(range(len(beams)), beams)
        axis.set_yticks(range(len(beams)), beams)
    return saved(figure, path)


def _panels(results: list[Row]) -> tuple[Any, list[tuple[Any, list[Row]]]]:
    """A panel for each group of results, with its rows."""
    found = groups(results)
    figure, axes = pyplot.subplots(1, len(found), figsize=(7 * len(found), 5), squeeze=False)
    for axis, group in zip(axes[0], found, strict=True):
        axis.set_title(title(group), fontsize=10)
    return figure, list(zip(axes[0], found.values(), strict=True))


def saved(figure: Any, path: Path) -> Path:
    """Write a figure without the date."""
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
    return path
