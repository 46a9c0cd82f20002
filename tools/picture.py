"""Draw the search of ``laso demo`` for docs/explanation/the-paper.md."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from laso.cli import demo
from laso.pictures.search import drawn

TARGET = Path(__file__).parents[1] / "docs" / "explanation" / "search.svg"


def main() -> None:
    """Train as the demo does and draw."""
    train, test = demo.parts()
    model = demo.learn_to_chunk(Console(stderr=True), demo.Settings(), train).model
    search = demo.search_of(model, demo.interesting(model, test))
    TARGET.write_text(drawn(search), encoding="utf-8")


if __name__ == "__main__":
    main()
