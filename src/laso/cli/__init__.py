"""The command line: one module per command.

Commands import what they need when they run, so that ``laso --help`` is quick.
"""

from __future__ import annotations

import io
import sys
import warnings
from typing import Annotated

import typer

from laso import (
    BadData,
    BadFeature,
    BadModel,
    BadTemplate,
    LasoError,
    MissingData,
    Unreachable,
    __version__,
)
from laso.cli import (
    average,
    data,
    demo,
    evaluate,
    freeze,
    inspect,
    interrupts,
    serve,
    tag,
    train,
    warmup,
)

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


app.command("train", epilog="Example: laso train train.txt --model chunks.laso")(train.run)
app.command("tag", epilog="Example: laso tag chunks.laso new.txt --output labelled.txt")(tag.run)
app.command("eval", epilog="Example: laso eval chunks.laso test.txt --json")(evaluate.run)
app.command("inspect", epilog="Example: laso inspect chunks.laso --html")(inspect.inspect)
app.command("explain", epilog="Example: laso explain chunks.laso new.txt --features 5")(
    inspect.explain
)
app.command("serve", epilog="Example: laso serve chunks.laso new.txt")(serve.run)
app.command("trace", epilog="Example: laso trace chunks.laso new.txt --html search.html")(
    serve.trace
)
app.command("average", epilog="Example: laso average seed-*.laso --model chunks.laso")(average.run)
app.command("freeze", epilog="Example: laso freeze chunks.laso dev.txt --output small.laso")(
    freeze.run
)
app.command("data", epilog="Example: laso data get wnut17")(data.run)
app.command("demo", epilog="Example: laso demo --epochs 2 --beam 3 --json")(demo.run)
app.command("warmup", epilog="Example: laso warmup tag my_module:MyTask")(warmup.run)


# The exit codes of errors; 2 is wrong usage, 130 an interruption.
CODES: dict[type[Exception], int] = {BadModel: 4, MissingData: 5, OSError: 5}
DATA: tuple[type[Exception], ...] = (BadData, BadFeature, BadTemplate, Unreachable)


def described(error: Exception) -> str:
    """Return the message of an error; that of an OSError begins with the file's name."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[:1].lower()}{error.strerror[1:]}"
    return str(error)


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    print(f"laso: {message}", file=sys.stderr)


def main() -> None:
    """Run the command line; an error is one line on stderr, and its kind sets the exit code."""
    warnings.showwarning = _show_warning
    for stream in (sys.stdout, sys.stderr):  # words of models may have half a pair of surrogates
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with interrupts.ending():
            app(prog_name="laso")
    except (LasoError, OSError) as error:
        codes = CODES | dict.fromkeys(DATA, 3)
        code = next((code for kind, code in codes.items() if isinstance(error, kind)), 1)
        print(f"laso: {described(error)}", file=sys.stderr)
        sys.exit(code)
