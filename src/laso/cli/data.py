"""``laso data``: list corpora, download them, show where they are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.errors import MissingData

if TYPE_CHECKING:
    from laso.data.registry import Corpus

ACTIONS = ("list", "get", "path")


def run(
    action: Annotated[str, typer.Argument(help="list, get or path.")],
    names: Annotated[
        list[str] | None, typer.Argument(help="The names of corpora, as laso data list shows them.")
    ] = None,
    to: Annotated[
        Path | None, typer.Option(help="The folder to download to; by default the cache.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
) -> None:
    """List the known corpora, download some, or show the path of one.

    Corpora are searched in LASO_DATA first, then in the cache. A download resumes where it broke
    off, and its checksum is verified.
    """
    from laso.data import find_corpus
    from laso.data.registry import CORPORA

    if action not in ACTIONS:
        raise typer.BadParameter(f"{action!r}: expected {', '.join(ACTIONS)}")
    for name in names or ():
        if name not in CORPORA and action != "path":
            raise typer.BadParameter(f"{name!r}: expected {', '.join(CORPORA)}")
    if action != "list" and not names:
        raise typer.BadParameter(f"{action} needs the name of a corpus: {', '.join(CORPORA)}")
    if action == "list":
        rows = [described(CORPORA[name]) for name in names or CORPORA]
        typer.echo(json.dumps(rows, indent=1) if as_json else listed(rows))
        return
    paths = {
        name: str(_got(name, to) if action == "get" else find_corpus(name)) for name in names or ()
    }
    typer.echo(json.dumps(paths, indent=1) if as_json else "\n".join(paths.values()))


def described(corpus: Corpus) -> dict[str, Any]:
    """Return what is known of a corpus, and its path."""
    from laso.data import find_corpus

    try:
        path = str(find_corpus(corpus.name))
    except MissingData:
        path = None
    return {
        "name": corpus.name,
        "what": corpus.what,
        "home": corpus.home,
        "licence": corpus.licence,
        "bytes": corpus.bytes or None,
        "files": [{"name": f.name, "bytes": f.bytes, "sha256": f.sha256} for f in corpus.files],
        "path": path,
        "by hand": not corpus.can_be_got,
    }


def listed(rows: list[dict[str, Any]]) -> str:
    """Return the corpora as text."""
    lines = []
    for row in rows:
        size = f"{row['bytes'] / 1e6:.1f} MB" if row["bytes"] else "size not known"
        how = " (to be downloaded by hand)" if row["by hand"] else ""
        lines += [
            f"{row['name']}: {row['what']}",
            f"  {row['licence']}, {size}, {row['home']}{how}",
            f"  {row['path'] or 'not downloaded'}",
        ]
    return "\n".join(lines)


def _got(name: str, to: Path | None) -> Path:
    from laso.data import cache_folder
    from laso.data.download import get
    from laso.data.registry import CORPORA

    try:
        with _bar() as progress:
            return get(CORPORA[name], to or cache_folder(), progress)
    except KeyboardInterrupt:
        typer.echo("interrupted: the same command resumes the download", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _bar() -> Iterator[Any]:
    """Progress on a terminal; elsewhere nothing."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, TransferSpeedColumn(), console=console, transient=True) as bar:
        tasks: dict[str, Any] = {}

        def show(name: str, there: int, whole: int | None) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(name)
            bar.update(tasks[name], completed=there, total=whole)

        yield show
