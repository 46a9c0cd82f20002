"""``laso freeze``: make a smaller model for labelling only."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laso.cli import options


def run(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    files: Annotated[
        list[str], typer.Argument(help="Files like those to label, such as development data.")
    ],
    output: Annotated[Path, typer.Option(help="The file of the smaller model.")],
    task: options.OwnTask = None,
    encoder: options.Encoder = None,
    changed: Annotated[
        float,
        typer.Option(min=0.0, max=0.99, help="The fraction of sentences whose labels may change."),
    ] = 0.0,
    compress: Annotated[
        bool,
        typer.Option(
            "--compress/--no-compress",
            help="Compress the file; without, it is several times as large and loads at once.",
        ),
    ] = True,
    form: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
) -> None:
    """Make a smaller model that labels files as the model does.

    It leaves out small weights and rounds the others to 16 bits, as far as the labels of the files
    stay the same. The smaller model loads faster, and cannot be trained further.
    """
    from laso.cli import own
    from laso.cli.examples import read_for
    from laso.cli.settings import Settings, checked

    given = checked(Settings(task=task, format=form, separator=separator, comment=comment))
    known = own.load(model, task, encoder)
    try:
        frozen = known.freeze(read_for(known, files, given).inputs, changed=changed)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    size = frozen.save(output, compress=compress)
    counts = frozen.metadata_["frozen"]
    typer.echo(
        f"{output}: {counts['weights']:,} of {counts['of']:,} weights, {size:,} bytes "
        f"(before: {model.stat().st_size:,})"
    )
