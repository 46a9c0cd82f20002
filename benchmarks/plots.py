"""Plots of the results, as SVG files that depend on the results alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.growth import MEASURES
from benchmarks.report import total
from laso.experiments.labels import Point, label_points
from laso.experiments.measure import Row
from laso.experiments.plots import COLOURS, MARKERS, WIDTH, log_ticks, pyplot, save_figure

SYSTEMS = ("laso", "python-crfsuite", "vowpalwabbit")
COLOUR = dict(zip(SYSTEMS, COLOURS, strict=False))
MARKER = dict(zip(SYSTEMS, MARKERS, strict=False))
SHORT = {"python-crfsuite": "crfsuite", "vowpalwabbit": "vw"}
NAMES = {"train_s": "training time (s)", "decode_s": "decoding time (s)", "peak_mb": "memory (MB)"}
OVER = {
    "sentences": "training sentences",
    "beam": "beam width",
    "labels": "number of labels",
    "length": "tokens per sentence",
    "templates": "templates",
    "words": "different words",
}
BEAM_ONLY = "laso, beam as on the axis"


def peers(rows: list[Row], path: Path) -> Path:
    """Plot F over training time, and the decoding speeds."""
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(WIDTH, 4.4), layout="constrained", width_ratios=(3, 2)
    )
    _speeds(right, rows)
    for system in dict.fromkeys(row["system"] for row in rows):
        those = [row for row in rows if row["system"] == system]
        left.scatter(
            [total(row) for row in those],
            [row["f"] for row in those],
            color=COLOUR[system],
            marker=MARKER[system],
            label=system,
            zorder=3,
        )
    left.set(xscale="log", xlabel="seconds from file to trained model (log scale)", ylabel="F")
    left.set_title("Accuracy and training time (best: top left)")
    left.margins(x=0.2, y=0.1)
    left.grid(alpha=0.25)
    log_ticks(left.xaxis)
    figure.legend(loc="outside lower center", ncols=len(SYSTEMS))
    points = [Point(total(row), row["f"], _name(row), COLOUR[row["system"]]) for row in rows]
    label_points(left, points)
    return save_figure(figure, path)


def _name(row: Row) -> str:
    """Return the name of a configuration, with a short name of its system."""
    return f"{SHORT.get(row['system'], row['system'])} {row['config']}"


def _speeds(axis: Any, rows: list[Row]) -> None:
    """Draw the decoding speeds as bars, the fastest on top."""
    ordered = sorted(rows, key=lambda row: float(row["tokens_per_s"]))
    speeds = [row["tokens_per_s"] / 1000 for row in ordered]
    places = range(len(ordered))
    bars = axis.barh(places, speeds, color=[COLOUR[row["system"]] for row in ordered])
    axis.bar_label(bars, [f"{speed:,.0f}" for speed in speeds], padding=3, fontsize=8.5)
    axis.set_yticks(places, [_name(row) for row in ordered], fontsize=8.5)
    axis.set_title("Decoding speed")
    axis.set(xlabel="thousand tokens per second, one thread")
    axis.margins(x=0.16)


def growth(rows: list[Row], path: Path) -> Path:
    """Plot growth: a row for each measure, a column for each curve, on logarithmic axes."""
    curves = list(dict.fromkeys(row["curve"] for row in rows))
    figure, axes = pyplot.subplots(
        *(len(MEASURES), len(curves)),
        figsize=(WIDTH, 2.3 * len(MEASURES) + 0.6),
        squeeze=False,
        sharex="col",
        sharey="row",
        layout="constrained",
    )
    lines: dict[str, Any] = {}
    for i, measure in enumerate(MEASURES):
        for j, curve in enumerate(curves):
            lines |= _curve(axes[i][j], [row for row in rows if row["curve"] == curve], measure)
        axes[i][0].set(ylabel=NAMES[measure])
    for j, curve in enumerate(curves):
        axes[-1][j].set(xlabel=OVER[curve])
    for axis, ticks in [*((row[0], "yaxis") for row in axes), *((a, "xaxis") for a in axes[-1])]:
        log_ticks(getattr(axis, ticks), most=5, short=True)
    for axis in axes.flat:
        lines["proportional growth"] = _proportional(axis)
    figure.suptitle("Growth on logarithmic axes: parallel to the dotted line means proportional")
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=len(lines))
    return save_figure(figure, path)


def _curve(axis: Any, rows: list[Row], measure: str) -> dict[str, Any]:
    """Draw the lines of one panel and return them by name."""
    lines = {}
    for system, config in dict.fromkeys((row["system"], row["config"]) for row in rows):
        curve = sorted(
            (row["x"], row[measure])
            for row in rows
            if (row["system"], row["config"]) == (system, config)
        )
        name = BEAM_ONLY if config == "beam" else f"{system}, {config}"
        look = LOOKS.get((system, config), {"color": COLOUR.get(system, "black")})
        (lines[name],) = axis.plot(*zip(*curve, strict=True), markersize=4, **look)
    axis.set(xscale="log", yscale="log")
    axis.grid(alpha=0.25)
    return lines


LOOKS = {
    ("laso", "beam 1"): {"color": COLOURS[0], "marker": "o"},
    ("laso", "beam 5"): {"color": COLOURS[5], "marker": "D", "linestyle": "--"},
    ("laso", "beam"): {"color": "black", "marker": "v", "linestyle": "-."},
    ("python-crfsuite", "ap"): {"color": COLOURS[1], "marker": "s"},
}


def _proportional(axis: Any) -> Any:
    """Draw a line of slope 1 through the middle of the panel, within its limits."""
    (low, high), (bottom, top) = axis.get_xlim(), axis.get_ylim()
    middle = ((low * high) ** 0.5, (bottom * top) ** 0.5)
    return axis.axline(
        middle, (middle[0] * 2, middle[1] * 2), color="0.6", linestyle=":", linewidth=1, zorder=0
    )
