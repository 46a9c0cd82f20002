"""``laso eval``: evaluate a model on labelled files, or predicted labels in a file."""

from __future__ import annotations

import json
from dataclasses import replace
from operator import eq
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.cli import options
from laso.errors import BadData

if TYPE_CHECKING:
    from laso.cli.examples import Examples
    from laso.cli.settings import Settings
    from laso.estimators import SearchEstimator
    from laso.metrics.calibration import Reliability


def run(
    paths: Annotated[
        list[str], typer.Argument(metavar="MODEL FILES...", help="A model, then labelled files.")
    ],
    task: options.OwnTask = None,
    encoder: options.Encoder = None,
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
        bool,
        typer.Option(
            "--confidence", help="Also write the calibration error of the model's probabilities."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write the scores as JSON.")] = False,
) -> None:
    """Evaluate a model, or labels in a file.

    Chunks are scored as by conlleval; tokens, sentences and the most frequent errors follow. A task
    of your own scores its outputs itself.
    """
    from laso.cli.settings import Settings, checked
    from laso.metrics.evaluation import evaluated

    given = checked(Settings(task=task, format=form, separator=separator, comment=comment))
    if len(paths) < (1 if compare else 2):
        raise typer.BadParameter("expected a model and files, or --compare and files")
    if compare and (confidence or task is not None or encoder is not None):
        raise typer.BadParameter(
            "--confidence, --task and --encoder need a model, and --compare has none"
        )
    result: Any
    try:
        if compare:
            result, table = evaluated(*_compared(paths, given)), None
        else:
            result, table = _predicted(paths, given, confidence, encoder)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    if as_json:
        more = {} if table is None else {"calibration": table.as_json()}
        typer.echo(json.dumps({**result.as_json(), **more}, indent=1, ensure_ascii=False))
    else:
        typer.echo(str(result) if table is None else f"{result}\n{table}")


def _compared(files: list[str], settings: Settings) -> tuple[list[Any], list[Any]]:
    from laso.cli.examples import read

    sentences = read(files, settings)
    both = sentences.names[-2:]
    gold, predicted = (replace(sentences.roles, labels=(name,)) for name in both)
    return replace(sentences, roles=gold).outputs, replace(sentences, roles=predicted).outputs


def _predicted(
    paths: list[str], settings: Settings, confidence: bool, encoder: str | None
) -> tuple[Any, Reliability | None]:
    from laso.cli import own
    from laso.cli.examples import read_for

    model = own.load(paths[0], settings.task, encoder)
    examples = read_for(model, paths[1:], settings)
    if examples.task is None and not examples.roles.labels:
        raise BadData(
            "found no column of labels, expected one to compare with",
            file=examples.files[0][0],
            line=1,
        )
    with examples.located():
        X, y = examples.inputs, examples.outputs
        table = model.reliability(X, y) if confidence else None
        gold = _in_one_scheme(model, y) if examples.task is None else y
        result = model.task_.evaluation(gold, model.predict(X))
        return _with_tags(result, model, examples), table


def _with_tags(result: Any, model: SearchEstimator, examples: Examples) -> Any:
    """Return an evaluation, with the accuracy of the tags that the model predicts beside trees."""
    from laso.cli.examples import tag_columns
    from laso.data.formats import cells

    columns = tag_columns(model)
    if not columns or not set(columns) <= set(examples.names):
        return result
    tagger: Any = model
    words = [tags for sentence in tagger.predict_tags(examples.inputs) for tags in sentence]
    tags = replace(examples, roles=replace(examples.roles, labels=columns)).outputs
    gold = [cells(each) for sentence in tags for each in sentence]
    by_column = zip(columns, zip(*gold, strict=True), zip(*words, strict=True), strict=True)
    accuracy = {
        name: 100 * sum(map(eq, right, predicted)) / len(right)
        for name, right, predicted in by_column
    }
    return replace(result, tags=accuracy)


def _in_one_scheme(model: SearchEstimator, gold: list[Any]) -> list[Any]:
    """Return gold labels in the model's scheme: the file may mark chunks by another."""
    scheme = model.task_.state().get("scheme")
    if scheme is None:
        return gold
    from laso.features.schemes import convert_tags

    return convert_tags(gold, scheme)
