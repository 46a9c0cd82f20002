"""``laso average``: one model from several that differ in their seeds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def run(
    models: Annotated[list[Path], typer.Argument(help="Models that laso train has saved.")],
    model: Annotated[Path, typer.Option(help="Where the averaged model goes.")],
) -> None:
    """Write one model with the mean of the weights of several.

    They must have been trained on the same sentences, so with --refit or --dev, and with the same
    settings but for --set seed=N. The averaged model is as fast as one of them, and usually a
    little better.
    """
    from laso.estimators import average_models, load_model

    made = average_models([load_model(path) for path in models])
    size = made.save(model)
    typer.echo(f"{model}: {len(models)} models averaged, {size:,} bytes")
