"""``laso warmup``: compile ahead, so that the first real call need not."""

from __future__ import annotations

import importlib
import time
from typing import Annotated, Any

import typer

from laso.errors import LasoError

BUILT_IN = ("laso.tasks.tagging:Tagging", "laso.tasks.chunking:Chunking")


def run(
    problems: Annotated[
        list[str] | None,
        typer.Argument(help="Problems as module:Class; by default the tagger and the chunker."),
    ] = None,
) -> None:
    """Compile the engine for some problems into the cache."""
    from laso import beam, perceptron, standard
    from laso.engine.machine import warm
    from laso.engine.native import cache_root
    from laso.engine.options import options_for
    from laso.learn import restart

    for name in problems or BUILT_IN:
        problem = _problem(name)
        for strategy in (restart, standard):
            began = time.perf_counter()
            warm(problem, options_for(problem, beam(1), perceptron(), strategy))
            took = time.perf_counter() - began
            typer.echo(f"{name} for {strategy.__name__} updates: ready after {took:.1f} s")
    typer.echo(f"cache: {cache_root()}")


def _problem(name: str) -> Any:
    module, colon, cls = name.partition(":")
    if not colon:
        raise LasoError(f"expected module:Class, found {name!r}")
    try:
        return getattr(importlib.import_module(module), cls)
    except (ImportError, AttributeError) as error:
        raise LasoError(f"cannot find {name!r}: {error}") from error
