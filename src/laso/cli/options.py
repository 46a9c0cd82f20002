"""Options that several commands have: how the files that they read are written."""

from __future__ import annotations

from typing import Annotated

import typer

Format = Annotated[
    str | None, typer.Option("--format", help="columns, conllu or jsonl; guessed by default.")
]
FormatOrText = Annotated[
    str | None,
    typer.Option("--format", help="columns, conllu, jsonl or text; guessed by default."),
]
Separator = Annotated[
    str | None,
    typer.Option(help="What is between columns: tab, space, comma, semicolon, bar, or a text."),
]
Comment = Annotated[
    str | None, typer.Option(help="How lines begin that are comments; guessed by default.")
]
