"""Draw a real search for docs/explanation/the-paper.md: the one that ``laso demo`` looks into."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from rich.console import Console

from laso.cli import demo

TARGET = Path(__file__).parents[1] / "docs" / "explanation" / "search.svg"
HEAD, WIDTH, HEIGHT, LEFT, TOP, GAP = 150, 140, 42, 12, 62, 6
LETTER = 7.2  # no letter of the font is wider on average, at this size
GOOD, OTHER = "#0072B2", "#8a8a8a"  # a strong and a thin frame: colours are not needed


def drawn(search: dict[str, Any]) -> str:
    """One row for each word read, with the beam as boxes from the best to the worst."""
    words, rounds = search["words"], search["rounds"]
    widest = max(len(row["beam"]) for row in rounds)
    width = HEAD + widest * WIDTH + LEFT
    parts = [_text(LEFT, 20, _cut(f"Sentence: {' '.join(words)}", width - 2 * LEFT))]
    parts.append(_text(LEFT, 50, "words read", "bold"))
    for rank in range(widest):
        parts.append(_text(HEAD + rank * WIDTH, 50, _ordinal(rank + 1), "bold"))
    for i, row in enumerate(rounds):
        y = TOP + i * HEIGHT
        parts += _head(row, words, y)
        for rank, node in enumerate(row["beam"]):
            parts += _box(node, words, HEAD + rank * WIDTH, y)
    bottom = TOP + len(rounds) * HEIGHT
    parts += _legend(bottom + 8)
    height = bottom + 40
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="13">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _head(row: dict[str, Any], words: list[str], y: int) -> list[str]:
    """How many words are read, the last of them, and where the right path is if in no box."""
    covered = row["covered"]
    word = _cut(f"{covered}: … {words[covered - 1]}" if covered > 1 else f"1: {words[0]}", HEAD)
    parts = [_text(LEFT, y + 16, word, "bold")]
    if not row["right"]:
        parts.append(_text(LEFT, y + 31, "(within a chunk)"))
    elif row["rank"] is None:
        parts.append(_text(LEFT, y + 31, "(right path lost)"))
    return parts


def _box(node: dict[str, Any], words: list[str], x: int, y: int) -> list[str]:
    label, start, end = node["chunks"][-1]
    text = " ".join(words[start:end])
    text = _cut(text if label == "O" else f"[{label} {text}]", WIDTH - 2 * GAP)
    weight = "bold" if node["good"] else "normal"
    return [
        _frame(x, y, WIDTH - GAP, HEIGHT - GAP, good=node["good"]),
        _text(x + 6, y + 15, text, weight),
        _text(x + 6, y + 31, f"{node['score']:z.1f}", weight),
    ]


def _legend(y: int) -> list[str]:
    parts = [_frame(LEFT, y, 28, 18, good=True)]
    parts.append(_text(LEFT + 36, y + 14, "on the right path"))
    parts.append(_frame(LEFT + 180, y, 28, 18, good=False))
    parts.append(_text(LEFT + 216, y + 14, "another hypothesis"))
    note = "(within a chunk): the right path's chunk is not complete yet"
    return [*parts, _text(LEFT + 370, y + 14, note)]


def _frame(x: int, y: int, width: int, height: int, *, good: bool) -> str:
    fill, stroke, thick = ("#cfe8f7", GOOD, 2.5) if good else ("#f4f4f4", OTHER, 1)
    return (
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="4" '
        f'fill="{fill}" stroke="{stroke}" stroke-width="{thick}"/>'
    )


def _cut(text: str, width: int) -> str:
    """The text, shortened to fit."""
    most = int((width - 6) / LETTER)
    return text if len(text) <= most else text[: most - 1] + "…"


def _ordinal(n: int) -> str:
    return {1: "best", 2: "2nd", 3: "3rd"}.get(n, f"{n}th")


def _text(x: int, y: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{html.escape(text)}</text>'


def main() -> None:
    """Train as the demo does and draw."""
    train, test = demo.parts()
    training = demo.learn_to_chunk(Console(stderr=True), demo.Settings(), train)
    TARGET.write_text(drawn(demo.looked_into(training.model, test)), encoding="utf-8")


if __name__ == "__main__":
    main()
