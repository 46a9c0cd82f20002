"""``laso eval``: how good a model is on labelled files, or how good labels in a file are."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.cli import options
from laso.errors import BadData

if TYPE_CHECKING:
    from laso.calibration import Reliability
    from laso.cli.settings import Settings
    from laso.estimators import SearchEstimator


def run(
    paths: Annotated[
        list[str], typer.Argument(metavar="MODEL FILES...", help="A model, then labelled files.")
    ],
    compare: Annotated[
        bool,
        typer.Option(
            "--compare",
            help="No model: the last two columns are the gold and the predicted labels.",
        ),
    ] = False,
    form: options.Format = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Also tell how true the model's probabilities are.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the scores as JSON.")] = False,
) -> None:
    """Score labels: chunks as conlleval does, tokens, sentences, and the most frequent errors."""
    from laso.cli.settings import Settings, checked
    from laso.evaluation import evaluated

    said = checked(Settings(format=form, separator=separator, comment=comment))
    if len(paths) < (1 if compare else 2):
        raise typer.BadParameter("expected a model and files, or --compare and files")
    if compare and confidence:
        raise typer.BadParameter("--confidence is about a model, and --compare has none")
    try:
        if compare:
            gold, predicted, table = *_compared(paths, said), None
        else:
            gold, predicted, table = _labelled(paths, said, confidence)
        result = evaluated(gold, predicted)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if as_json:
        more = {} if table is None else {"calibration": table.as_json()}
        typer.echo(json.dumps({**result.as_json(), **more}, indent=1, ensure_ascii=False))
    else:
        typer.echo(str(result) if table is None else f"{result}\n{table}")


def _compared(files: list[str], settings: Settings) -> tuple[list[Any], list[Any]]:
    from laso.cli.sentences import read

    sentences = read(files, settings)
    names = sentences.blocks[0].names
    gold, predicted = (replace(sentences.roles, labels=(name,)) for name in names[-2:])
    return (
        [gold.answers(block) for block in sentences.blocks],
        [predicted.answers(block) for block in sentences.blocks],
    )


def _labelled(
    paths: list[str], settings: Settings, confidence: bool
) -> tuple[list[Any], list[Any], Reliability | None]:
    from laso.cli.sentences import read, remembered, roles_for
    from laso.estimators import load_model

    model = load_model(paths[0])
    sentences = read(paths[1:], settings)
    roles = roles_for(sentences.blocks[0], remembered(model), sentences.form)
    if not roles.labels:
        raise BadData(
            "found no column of labels, expected one to compare with",
            file=sentences.files[0][0],
            line=1,
        )
    sentences = replace(sentences, roles=roles)
    with sentences.located():
        tokens, answers = sentences.tokens, sentences.answers
        table = model.reliability(tokens, answers) if confidence else None
        return _in_one_scheme(model, answers), model.predict(tokens), table


def _in_one_scheme(model: SearchEstimator, gold: list[Any]) -> list[Any]:
    """Chunks may be tagged in another scheme than the model's."""
    scheme = model.task_.state().get("scheme")
    if scheme is None:
        return gold
    from laso.features.schemes import convert_tags

    return convert_tags(gold, scheme)
