"""Options that several commands have: the task, and the format of the files that they read."""

from __future__ import annotations

from typing import Annotated

import typer

Format = Annotated[
    str | None,
    typer.Option("--format", help="columns, conllu or jsonl; detected by default."),
]
FormatOrText = Annotated[
    str | None,
    typer.Option("--format", help="columns, conllu, jsonl or text; detected by default."),
]
Separator = Annotated[
    str | None,
    typer.Option(
        help="The separator of columns: tab, space, comma, semicolon, bar, or any text; detected "
        "by default."
    ),
]
Comment = Annotated[
    str | None,
    typer.Option(help="The prefix of comment lines; detected by default."),
]
Browser = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in a browser.")]
OwnTask = Annotated[
    str | None,
    typer.Option(
        "--task",
        metavar="MODULE:CLASS",
        help="The task of the model, if it is a task of your own.",
    ),
]
Encoder = Annotated[
    str | None,
    typer.Option(
        help="The folder of the encoder that the model was trained with, unless it is built in."
    ),
]
