"""Draw a real search for docs/explanation/the-paper.md: the one that ``laso demo`` looks into."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

from rich.console import Console

from laso.cli import demo

TARGET = Path(__file__).parents[1] / "docs" / "explanation" / "search.svg"
WIDTH, HEIGHT, LEFT, TOP = 118, 40, 10, 46


def drawn(search: dict[str, Any]) -> str:
    """The beam of each round as a column of boxes, the right path in green."""
    words, rounds = search["words"], search["rounds"]
    parts = []
    for column, row in enumerate(rounds):
        x = LEFT + column * WIDTH
        parts.append(_text(x, 18, f"{row['covered']} words", "bold"))
        rank = str(row["rank"] or "lost") if row["right"] else "inside a chunk"
        parts.append(_text(x, 34, f"right path: {rank}"))
        for place, node in enumerate(row["beam"]):
            y = TOP + place * HEIGHT
            label, start, end = node["chunks"][-1]
            text = " ".join(words[start:end])
            text = text if label == "O" else f"[{label} {text}]"
            colour = "#c8e6c9" if node["good"] else "#eeeeee"
            parts.append(
                f'<rect x="{x}" y="{y}" width="{WIDTH - 8}" height="{HEIGHT - 6}" rx="4" '
                f'fill="{colour}" stroke="#888888"/>'
            )
            parts.append(_text(x + 5, y + 14, text if len(text) < 20 else text[:17] + "..."))
            parts.append(_text(x + 5, y + 28, f"{node['score']:z.1f}"))
    width = 2 * LEFT + len(rounds) * WIDTH
    height = TOP + max(len(row["beam"]) for row in rounds) * HEIGHT + 8
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="11">\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _text(x: int, y: int, text: str, weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" font-weight="{weight}">{html.escape(text)}</text>'


def main() -> None:
    """Train as the demo does and draw."""
    train, test = demo.parts()
    training = demo.learn_to_chunk(Console(stderr=True), demo.Settings(), train)
    TARGET.write_text(drawn(demo.looked_into(training.model, test)), encoding="utf-8")


if __name__ == "__main__":
    main()
