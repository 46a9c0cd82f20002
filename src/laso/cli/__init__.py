"""The command line: one module per command.

Commands import what they need when they run, so that ``laso --help`` is quick.
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from laso import LasoError, __version__
from laso.cli import demo, reproduce, warmup

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"laso {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: laso demo --epochs 2")
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Learning as search optimization: weights learned inside the search that uses them."""


app.command("demo", epilog="Example: laso demo --epochs 2 --beam 3 --json")(demo.run)
app.command("reproduce", epilog="Example: laso reproduce table1 --rows LaSOp_1,LaSOa_1 --jobs 2")(
    reproduce.run
)
app.command("warmup", epilog="Example: laso warmup laso.tasks.tagging:Tagging")(warmup.run)


def main() -> None:
    """Run the command line: 0 is success, 1 an error, 2 wrong usage, 130 an interruption."""
    try:
        app(prog_name="laso")
    except LasoError as error:
        sys.exit(f"laso: {error}")
