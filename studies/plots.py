"""Plots of results: SVG files that depend on the results alone, readable without colours.

Every figure is at most ``WIDTH`` inches wide, so that its text stays legible in a README.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from laso.files import atomic
from studies.labels import Point, label_points
from studies.measure import Row
from studies.peers.growth import MEASURES
from studies.peers.report import total
from studies.report import Sample, groups, sample, title

matplotlib.rcParams["svg.hashsalt"] = "laso"
matplotlib.rcParams["svg.fonttype"] = "none"  # text as text: a change of a name is a small change
matplotlib.rcParams.update({"font.size": 9, "axes.titlesize": 10, "legend.fontsize": 8.5})
matplotlib.rcParams.update({"axes.spines.top": False, "axes.spines.right": False})

WIDTH = 9.0
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
"""Okabe and Ito's palette, which colour-blind readers can tell apart."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
PANELS = 3  # in a row
MOST_CURVES = 5  # in a panel
LEFT_OUT = 20.0  # points of a score
DASHES = ("-", "--", "-.", ":", (0, (1, 4)))


def times(results: list[Row], path: Path) -> Path:
    """Plot test F over training time: the mean of each row, with the standard deviation of F."""
    figure, axis = pyplot.subplots(figsize=(WIDTH, 5.2), layout="constrained")
    points = []
    for n, (group, rows) in enumerate(groups(results).items()):
        colour, marker = COLOURS[n % len(COLOURS)], MARKERS[n % len(MARKERS)]
        for i, (name, seconds, f) in enumerate(_means(rows)):
            at = (seconds.mean, f.mean)
            label = title(group) if i == 0 else None
            axis.plot(*at, color=colour, marker=marker, linestyle="none", label=label)
            if f.spread is not None:
                axis.errorbar(*at, yerr=f.spread, color=colour, capsize=3)
            points.append(Point(*at, name, colour, f.spread or 0.0))
    axis.set_title("Test F and training time (best: top left; bars: standard deviation over seeds)")
    axis.set(
        xscale="log", xlabel="seconds of CPU from file to trained model (log scale)", ylabel="F"
    )
    axis.margins(x=0.12, y=0.1)
    axis.grid(alpha=0.25)
    log_ticks(axis.xaxis)
    figure.legend(loc="outside lower left")
    label_points(axis, points)
    return save_figure(figure, path)


def _means(rows: list[Row]) -> Iterable[tuple[str, Sample, Sample]]:
    for name in dict.fromkeys(row["row"] for row in rows):
        seconds, f = sample(rows, name, "cpu_s"), sample(rows, name, "f")
        assert seconds is not None
        assert f is not None
        yield name, seconds, f


def curves(results: list[Row], path: Path, scored: str = "F") -> Path:
    """Plot the held-out score after each epoch, for each row with its chosen settings.

    Each kind of learner has a panel of its own where many share their features.
    """
    panels = [
        (textwrap.fill(title(group), 100 // PANELS), panel)
        for group, rows in groups(results).items()
        for panel in _panels({row["row"]: row["held_out"] for row in rows})
    ]
    across = 2 if len(panels) == 4 else min(PANELS, len(panels))
    down = -(-len(panels) // across)
    figure, axes = pyplot.subplots(
        down,
        across,
        figsize=(WIDTH, 1.2 + 3.2 * down),
        squeeze=False,
        sharey=True,
        layout="constrained",
    )
    styles = _styles(dict.fromkeys(row["row"] for row in results))
    lines: dict[str, Any] = {}
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (name_of_group, panel) in zip(axes.flat, panels, strict=False):
        for name, curve in panel.items():
            epochs = range(1, len(curve) + 1)
            (lines[name],) = axis.plot(epochs, curve, markersize=4, **styles[name])
        axis.set_title(name_of_group, fontsize=9)
        axis.set(xlabel="epoch")
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.grid(alpha=0.25)
    for row in axes:
        row[0].set(ylabel=f"{scored} on held-out data")
    figure.legend([lines[name] for name in styles], styles, loc="outside lower center", ncols=5)
    return save_figure(figure, path)


def _panels(curves: dict[str, list[float]]) -> list[dict[str, list[float]]]:
    """Divide many curves by the kind of learner; kinds with one curve are together."""
    if len(curves) <= MOST_CURVES:
        return [curves]
    kinds: dict[str, dict[str, list[float]]] = {}
    for name, curve in curves.items():
        kinds.setdefault(name.rpartition("_")[0], {})[name] = curve
    return [*kinds.values()]


def over_beams(series: Mapping[str, Mapping[int, Sample]], path: Path, scored: str) -> Path:
    """Plot a score over the beam, a line for each series, with the standard deviation over seeds.

    Series far below the others, by more than LEFT_OUT, are named but not drawn.
    """
    figure, axis = pyplot.subplots(figsize=(WIDTH, 4.4), layout="constrained")
    best = max(one.mean for points in series.values() for one in points.values())
    below = []
    for i, (name, points) in enumerate(series.items()):
        if max(one.mean for one in points.values()) < best - LEFT_OUT:
            below.append(name)
            continue
        axis.errorbar(
            [*points],
            [one.mean for one in points.values()],
            yerr=[one.spread or 0.0 for one in points.values()],
            color=COLOURS[i % len(COLOURS)],
            linestyle=DASHES[i % len(DASHES)],
            marker=MARKERS[i % len(MARKERS)],
            capsize=3,
            label=name,
        )
    note = f"; far below: {', '.join(below)}" if below else ""
    axis.set_title(f"{scored} by the beam (bars: standard deviation over seeds{note})")
    axis.set(xscale="log", xlabel="beam of training and decoding", ylabel=scored)
    beams = sorted({beam for points in series.values() for beam in points})
    axis.xaxis.set_major_locator(FixedLocator(beams))
    axis.xaxis.set_major_formatter(FixedFormatter([str(beam) for beam in beams]))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=len(series))
    return save_figure(figure, path)


def _styles(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return a style for each row: the part before ``_`` sets the colour, the beam the line."""
    kinds: dict[str, list[str]] = {}
    for name in names:
        kinds.setdefault(name.rpartition("_")[0] or name, []).append(name)
    return {
        name: {
            "color": COLOURS[n % len(COLOURS)],
            "linestyle": DASHES[i % len(DASHES)],
            "marker": MARKERS[i % len(MARKERS)],
        }
        for n, members in enumerate(kinds.values())
        for i, name in enumerate(members)
    }


def heat(
    tables: Mapping[str, Mapping[tuple[int, int], float]],
    trained: Sequence[int],
    path: Path,
    decoded: Sequence[int] = (),
) -> Path:
    """Plot heat maps of a score for each beam of training and of decoding, by default the same."""
    decoded = decoded or trained
    figure, axes = pyplot.subplots(
        1, len(tables), figsize=(WIDTH, 3.8), squeeze=False, sharey=True, layout="constrained"
    )
    low = min(min(cells.values()) for cells in tables.values())
    high = max(max(cells.values()) for cells in tables.values())
    for axis, (description, cells) in zip(axes[0], tables.items(), strict=True):
        rows = [[cells.get((b, c), float("nan")) for c in decoded] for b in trained]
        axis.imshow(rows, vmin=low, vmax=high, cmap="cividis")
        for i, row in enumerate(rows):
            for j, f in enumerate(row):
                dark = f < (low + high) / 2
                text = f"{f:.1f}" if f == f else ""
                axis.text(j, i, text, ha="center", va="center", color="w" if dark else "k")
        axis.set_title(textwrap.fill(description, 30), fontsize=9)
        axis.set(xlabel="beam of decoding")
        axis.set_xticks(range(len(decoded)), decoded)
        axis.set_yticks(range(len(trained)), trained)
        axis.spines[:].set_visible(False)
    axes[0][0].set(ylabel="beam of training")
    return save_figure(figure, path)


def log_ticks(axis: Any, *, fewest: int = 3, most: int = 7, short: bool = False) -> None:
    """Label a logarithmic axis with plain numbers: 20, 50, 100 rather than powers of ten.

    The numbers are the roundest of which at least ``fewest`` lie within the limits; ``short`` ones
    are 1k and 10k.
    """
    low, high = axis.get_view_interval()
    ticks: list[float] = []
    for digits in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7), (1, 2, 3, 4, 5, 6, 7, 8, 9)):
        exponents = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        ticks = [d * 10.0**e for e in exponents for d in digits if low <= d * 10.0**e <= high]
        if len(ticks) >= fewest:
            break
    else:
        ticks = [tick for tick in MaxNLocator(4).tick_values(low, high) if low <= tick <= high]
    ticks = ticks[:: math.ceil(len(ticks) / most)]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([plain(tick, short=short) for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def plain(number: float, *, short: bool = False) -> str:
    """Return a number as plain text: 0.05, 20, 10,000; or 10k if it should be ``short``."""
    if short and number >= 1000:
        return f"{number / 1000:g}k"
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def save_figure(figure: Any, path: Path) -> Path:
    """Save a figure without the date, close it and return the path."""
    atomic.save_figure(figure, path, metadata={"Date": None})
    pyplot.close(figure)
    return path


# --------------------------------------------------------------------------- peers

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
    config = row["config"].replace("short", "few epochs")
    return f"{SHORT.get(row['system'], row['system'])} {config}"


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
            lines |= _growth_curve(
                axes[i][j], [row for row in rows if row["curve"] == curve], measure
            )
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


def _growth_curve(axis: Any, rows: list[Row], measure: str) -> dict[str, Any]:
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


# --------------------------------------------------------------------------- more workers


def shards(learned: Mapping[str, list[Row]], path: Path) -> Path:
    """Plot the test score over the epochs for each corpus, a line for each number of shards."""
    figure, axes = pyplot.subplots(
        1, len(learned), figsize=(WIDTH, 4.2), layout="constrained", squeeze=False
    )
    lines: dict[str, Any] = {}
    for axis, (name, rows) in zip(axes[0], learned.items(), strict=True):
        for row in sorted(rows, key=lambda row: row["shards"]):
            number = row["shards"].bit_length() - 1
            label = "1 shard" if row["shards"] == 1 else f"{row['shards']} shards"
            (lines[label],) = axis.plot(
                range(1, len(row["scores"]) + 1),
                row["scores"],
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
            )
        scores = [score for row in rows for score in row["scores"]] or [100.0]
        axis.set_ylim(max(min(scores), max(scores) - 4.0) - 0.2, max(scores) + 0.2)
        axis.set(xlabel="epochs", ylabel="test score")
        axis.set_title(name)
        axis.grid(alpha=0.25)
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=len(lines))
    return save_figure(figure, path)
