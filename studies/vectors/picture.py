"""The picture of F on CoNLL-2000 against words per second, with what is read of others."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

from studies.labels import Point, label_points
from studies.measure import Row

TASK = "chunks"
READ = {
    "Flair (as read)": (320.0, 96.5),
}
"""Words per second and F of systems that were not run: from their papers and benchmarks."""


def write(rows: Sequence[Row], path: Path) -> list[Path]:
    """Draw the systems of one task; nothing if it was not measured, or without matplotlib."""
    same = [row for row in rows if row["task"] == TASK]
    try:
        from matplotlib import pyplot

        from studies import plots
    except ModuleNotFoundError:
        return []
    if not same:
        return []
    figure, axis = pyplot.subplots(figsize=(plots.WIDTH * 0.75, 4.2), layout="constrained")
    points = []
    for n, name in enumerate(dict.fromkeys(row["row"] for row in same)):
        of_name = [row for row in same if row["row"] == name]
        speed = max(row["test_words"] / row["test_s"] for row in of_name)
        scores = [row["score"] for row in of_name]
        spread = statistics.stdev(scores) if len(scores) > 1 else 0.0
        point = Point(speed, statistics.mean(scores), name, plots.COLOURS[n % 7], spread)
        axis.plot(point.x, point.y, plots.MARKERS[n % 7], color=point.colour)
        axis.errorbar(point.x, point.y, yerr=spread, color=point.colour, capsize=3)
        points.append(point)
    for name, (speed, score) in READ.items():
        axis.plot(speed, score, "*", color="#777777")
        points.append(Point(speed, score, name, "#777777"))
    axis.set_title("CoNLL-2000 chunks: F and words per second (best: top right)")
    axis.set(xscale="log", xlabel="words per second, from words to chunks (log scale)", ylabel="F")
    axis.margins(x=0.12, y=0.12)
    axis.grid(alpha=0.25)
    plots.log_ticks(axis.xaxis, short=True)
    label_points(axis, points)
    return [plots.save_figure(figure, path)]
