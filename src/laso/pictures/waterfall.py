"""What features add to the score of a step, as a waterfall."""

from __future__ import annotations

from typing import Any

from laso.pictures.marks import cut, frame, svg, text

NAMES, BARS, ROW = 250, 190, 22  # widths of names and bars, and the height of a row


def waterfall(decision: dict[str, Any], title: str, *, alone: bool = True) -> str:
    """Return the features of a decision as SVG: each bar begins where the one above ends.

    Parameters
    ----------
    decision : dict
        A decision of ``explain``, or its runner-up; with ``features`` and ``score``.
    title : str
        What is above the bars.
    alone : bool, default=True
        Whether the picture has its style inside.
    """
    rows = [(each["name"], each["weight"] * each["value"]) for each in decision["features"]]
    rest = decision["score"] - sum(amount for _, amount in rows)
    if decision["more_features"]:
        rows.append((f"{decision['more_features']} more features", rest))
    sums = [0.0]
    for _, amount in rows:
        sums.append(sums[-1] + amount)
    low, high = min(sums), max(sums)
    scale = BARS / ((high - low) or 1.0)
    parts = [text(8, 20, cut(title, NAMES + BARS + 50), "strong")]
    for i, (name, amount) in enumerate(rows):
        y = 32 + i * ROW
        left = min(sums[i], sums[i + 1])
        x = NAMES + (left - low) * scale
        kind = "bar-for" if amount >= 0 else "bar-against"
        parts.append(text(8, y + 14, cut(name, NAMES - 16)))
        parts.append(frame(x, y + 2, max(1.0, abs(amount) * scale), ROW - 6, kind))
        parts.append(text(NAMES + BARS + 66, y + 14, f"{amount:+.2f}", "quiet", end="end"))
    y = 32 + len(rows) * ROW
    parts.append(text(8, y + 16, "score of the step", "strong"))
    parts.append(text(NAMES + BARS + 66, y + 16, f"{decision['score']:+.2f}", "strong", end="end"))
    return svg(NAMES + BARS + 74, y + 28, title, parts, alone=alone)


def waterfalls(decision: dict[str, Any], *, alone: bool = True) -> list[str]:
    """Return the waterfall of a decision, and that of its runner-up if its features are known."""
    pictures = [waterfall(decision, _title(decision, "chosen"), alone=alone)]
    other = decision["runner_up"]
    if other is not None and "features" in other:
        pictures.append(waterfall(other, _title(other, "runner-up"), alone=alone))
    return pictures


def _title(step: dict[str, Any], role: str) -> str:
    return f"{role}: {step.get('text') or step['label']}"
