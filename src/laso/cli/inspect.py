"""``laso inspect`` and ``laso explain``: what a model is, and why it predicts what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.cli import options
from laso.cli.own import reads_files
from laso.cli.tag import recognised

if TYPE_CHECKING:
    from laso.cli.settings import Settings

SHOWN = 10


def inspect(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    files: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences, to name features that the model alone cannot name."),
    ] = None,
    task: options.OwnTask = None,
    encoder: options.Encoder = None,
    features: Annotated[
        int, typer.Option(min=0, help="The number of features for and against each label.")
    ] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON.")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="Write an HTML page.")] = False,
) -> None:
    """Show what a model is: task, labels, settings, scores, and the top features of each label.

    A model file stores features as numbers. The model names features of one word or tag; it can
    name features of several words only if they occur in FILES.
    """
    from laso.cli import own
    from laso.cli.settings import Settings, checked
    from laso.estimators.capabilities.render import as_html as html
    from laso.estimators.capabilities.render import as_text as text

    if as_json and as_html:
        raise typer.BadParameter("--json and --html exclude each other")
    known = own.load(model, task, encoder)
    given = checked(Settings(task=task))
    data = [x for name in files or () for x, _ in sentences(known, name, given)]
    shown = known.inspect(features=features, data=data or None)
    if as_json:
        typer.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        typer.echo((html if as_html else text)(shown))


def explain(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files of sentences; by default standard input.")
    ] = None,
    task: options.OwnTask = None,
    encoder: options.Encoder = None,
    features: Annotated[
        int, typer.Option(min=0, help="The number of features of each decision.")
    ] = SHOWN,
    form: options.FormatOrText = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object a line, for each sentence.")
    ] = False,
) -> None:
    """Explain predictions: the features of each decision with their weights, and the runner-up.

    The runner-up is the alternative that the search kept longest; the explanation says where the
    search lost it, and how far behind it was then.
    """
    from laso.cli import own
    from laso.cli.examples import STDIN
    from laso.cli.settings import Settings, checked
    from laso.estimators.capabilities.explain import explained
    from laso.estimators.capabilities.render import as_text

    given = checked(Settings(task=task, format=form))
    known = own.load(model, task, encoder)
    try:
        for name in files or [STDIN]:
            for x, words in sentences(known, name, given):
                shown = explained(known, x, features=features, words=words)
                text = json.dumps(shown, ensure_ascii=False) if as_json else None
                typer.echo(text or as_text(shown) + "\n")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def sentences(model: Any, name: str, settings: Settings) -> Any:
    """Yield the inputs of a file as the model takes them, with the words to show."""
    from laso.cli.examples import head_of, opened, read_by_task, remembered, roles_for
    from laso.data.reading import read

    if reads_files(model, settings.task):
        yield from ((x, ()) for x in read_by_task(model.task_, [name], labelled=False).inputs)
        return
    trained = remembered(model)
    with opened(name) as file:
        form = recognised(head_of(file), name, model, trained, settings)
        for block in read(file, format=form):
            if block.tokens:
                roles = roles_for(block, trained, form)
                words = [
                    cell if isinstance(cell, str) else f"[{i}]"
                    for i, cell in enumerate(roles.words(block), start=1)
                ]
                yield roles.tokens(block), words
