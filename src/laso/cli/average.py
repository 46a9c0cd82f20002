"""``laso average``: average models that differ in their seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from laso.cli import options


def run(
    models: Annotated[list[Path], typer.Argument(help="Models that laso train has saved.")],
    model: Annotated[Path, typer.Option(help="The file of the averaged model.")],
    task: options.OwnTask = None,
) -> None:
    """Average the weights of several models into one.

    The models must be trained on the same sentences, so with --refit or --dev, and with the same
    settings except --set seed=N. The average is as fast as one of them, and usually a little more
    accurate.
    """
    from laso.cli import own
    from laso.estimators import average_models

    mean = average_models([own.load(path, task) for path in models])
    size = mean.save(model)
    typer.echo(f"{model}: {len(models)} models averaged, {size:,} bytes")
