"""``laso inspect`` and ``laso explain``: what a model is, and why it answers as it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.cli import options
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
    features: Annotated[int, typer.Option(min=0, help="How many for and against each label.")] = 5,
    as_json: Annotated[bool, typer.Option("--json", help="Write all of it as JSON.")] = False,
    as_html: Annotated[bool, typer.Option("--html", help="Write a page of HTML.")] = False,
) -> None:
    """Tell what a model is: task, labels, settings, scores, and the top features of each label.

    Models keep numbers for features. Those of one word or tag are named by the model's own words;
    pairs and sequences of words only as they occur in the files given.
    """
    from laso.cli.settings import Settings
    from laso.estimators import load_model
    from laso.estimators.render import as_html as html
    from laso.estimators.render import as_text as text

    if as_json and as_html:
        raise typer.BadParameter("--json and --html exclude each other")
    known = load_model(model)
    data = [tokens for name in files or () for tokens, _ in sentences(known, name, Settings())]
    shown = known.inspect(features=features, data=data or None)
    if as_json:
        typer.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        typer.echo((html if as_html else text)(shown))


def explain(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Sentences; standard input if there are no files.")
    ] = None,
    features: Annotated[int, typer.Option(min=0, help="How many for each decision.")] = SHOWN,
    form: options.FormatOrText = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object a line, one for each sentence.")
    ] = False,
) -> None:
    """Tell why: for each decision its features with their weights, the runner-up and its fate.

    The runner-up is the alternative that the search kept longest, and its fate is where the search
    lost it, and how far behind it was then.
    """
    from laso.cli.sentences import STDIN
    from laso.cli.settings import Settings, checked
    from laso.estimators import load_model
    from laso.estimators.explain import explained
    from laso.estimators.render import as_text

    known = load_model(model)
    try:
        for name in files or [STDIN]:
            for tokens, words in sentences(known, name, checked(Settings(format=form))):
                shown = explained(known, tokens, features=features, words=words)
                text = json.dumps(shown, ensure_ascii=False) if as_json else None
                typer.echo(text or as_text(shown) + "\n")
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def sentences(model: Any, name: str, settings: Settings) -> Any:
    """The sentences of a file: tokens as the model takes them, and words to show."""
    from laso.cli.sentences import head_of, opened, remembered, roles_for
    from laso.data.reading import read

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
