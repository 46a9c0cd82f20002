"""``laso tag``: label the sentences of files or of standard input with a model."""

from __future__ import annotations

import json
import sys
from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from laso.cli import options, own

if TYPE_CHECKING:
    from laso.cli.settings import Settings
    from laso.data.formats import ColumnRoles, Format
    from laso.estimators import SearchEstimator

BATCH = 20_000  # tokens to label at a time


def run(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files to label; by default standard input.")
    ] = None,
    task: options.OwnTask = None,
    encoder: options.Encoder = None,
    output: Annotated[
        Path | None, typer.Option(help="The output file; by default standard output.")
    ] = None,
    form: options.FormatOrText = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Also write the probability of each label.")
    ] = False,
    nbest: Annotated[
        int, typer.Option(min=0, help="Also write this number of best outputs; needs --json.")
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object a line, for any input format.")
    ] = False,
    output_format: Annotated[
        str | None,
        typer.Option(help="columns, conllu or jsonl; by default as the input, columns for text."),
    ] = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="The number of threads; by default that of the cores."),
    ] = None,
) -> None:
    """Label sentences.

    The labels become a new column of column files, and fill in those of CoNLL-U or JSON lines.
    """
    from laso.cli.examples import STDIN
    from laso.cli.settings import Settings, checked
    from laso.data.formats import KINDS

    given = checked(Settings(task=task, format=form, separator=separator, comment=comment))
    if output_format not in (None, *KINDS[:3]):
        raise typer.BadParameter(
            f"--output-format is {output_format!r}: there is {', '.join(KINDS[:3])}"
        )
    to = "jsonl" if as_json else output_format
    if nbest and to != "jsonl":
        raise typer.BadParameter("--nbest needs --json")
    known = own.load(model, task, encoder)
    if own.reads_files(known, task) and to != "jsonl":
        if to is not None:
            raise typer.BadParameter("--output-format is for files of columns, but for jsonl")
        if confidence:
            raise typer.BadParameter(
                f"--confidence needs --json, since {type(known.task_).__name__} has no columns"
            )
    if jobs is not None:
        known.threads = jobs
    extras = Extras(confidence, nbest)
    try:
        with _target(output) as out:
            tag(known, files or [STDIN], out, given, to=to, extras=extras)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def tag(
    model: SearchEstimator,
    files: list[str],
    out: BinaryIO,
    settings: Settings,
    *,
    to: str | None,
    extras: Extras,
) -> None:
    """Write the labelled sentences of files, some at a time, or the outputs of the user's task."""
    from laso.cli.examples import opened

    by_task = own.reads_files(model, settings.task)
    for name in files:
        if by_task:
            out.write(task_outputs(model, name, as_json=to is not None, extras=extras))
            out.flush()
            continue
        with opened(name) as file:
            for text in labelled(model, file, name, settings, to=to, extras=extras):
                out.write(text)
                out.flush()


def task_outputs(model: SearchEstimator, name: str, *, as_json: bool, extras: Extras) -> bytes:
    """Return the outputs for a file as the task of the user's own writes them, or as JSON."""
    from laso.cli.examples import read_by_task

    X = read_by_task(model.task_, [name], labelled=False).inputs
    texts = []
    for x, predicted in zip(X, extras.predictions(model, X, own=True), strict=True):
        if as_json:
            record = {"input": x, "output": predicted.labels, **predicted.extras}
            texts.append(json.dumps(record, ensure_ascii=False, default=_plain))
        else:
            texts.append(model.task_.write_output(x, predicted.labels))
    return "".join(f"{text}\n" for text in texts).encode()


def _plain(value: Any) -> Any:
    """Return what JSON has no form for as something it has: arrays, sets, texts."""
    if hasattr(value, "as_json"):
        return value.as_json()
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise typer.BadParameter(f"--json: found {type(value).__name__} in an output, which JSON lacks")


@dataclass(frozen=True)
class Extras:
    """What is written beside the labels."""

    confidence: bool = False
    nbest: int = 0

    def predictions(
        self, model: SearchEstimator, tokens: list[Any], *, own: bool = False
    ) -> Iterator[Prediction]:
        """Return the output of each input, and what is written beside it.

        Outputs of the user's ``own`` task have parts, where sentences have labels of tokens.
        """
        predictions = [Prediction(labels) for labels in model.predict(tokens)]
        if getattr(model.task_, "n_tags", 0):
            tagger: Any = model
            for each, tags in zip(predictions, tagger.predict_tags(tokens), strict=True):
                each.extras["tags"] = tags
        if self.confidence:
            for each, known in zip(predictions, model.predict_confidence(tokens), strict=True):
                each.extras["probability"] = known.probability
                if own:
                    each.extras["parts"] = [part._asdict() for part in known.parts]
                    continue
                each.extras["probabilities"] = [
                    part.probability for part in known.parts for _ in range(part.start, part.end)
                ]
        if self.nbest:
            outputs, key = model.predict_nbest(tokens, self.nbest), "output" if own else "labels"
            for each, paths in zip(predictions, outputs, strict=True):
                each.extras["nbest"] = [{"score": s, key: output} for s, output in paths]
        return iter(predictions)


@dataclass(frozen=True)
class Prediction:
    """The predicted labels of a sentence or other output, and what is written beside it."""

    labels: Any
    extras: dict[str, Any] = field(default_factory=dict)


def labelled(
    model: SearchEstimator,
    file: Any,
    name: str,
    settings: Settings,
    *,
    to: str | None,
    extras: Extras,
) -> Iterator[bytes | memoryview]:
    """Yield the labelled sentences as UTF-8 text, some at a time."""
    from laso.cli.column_files import ColumnFile, is_possible
    from laso.cli.examples import STDIN, Examples, head_of, remembered, roles_for, tag_columns
    from laso.data.columns import batches
    from laso.data.formats import written
    from laso.data.reading import read

    trained = remembered(model)
    form = recognised(head_of(file), name, model, trained, settings)
    to = to or form.kind
    at_once = 1 if name == STDIN and sys.stdin.isatty() else BATCH
    roles: ColumnRoles | None = None
    if at_once > 1 and to == form.kind and extras == Extras() and is_possible(model, form):
        plain = ColumnFile(model, file, form, trained, at_once)
        yield from plain.texts()
        if plain.rest is None:
            return
        file, roles = plain.rest, plain.roles
    for blocks in batches(read(file, format=form), at_once):
        full = [block for block in blocks if block.tokens]
        if roles is None and full:
            roles = roles_for(full[0], trained, form)
            if to == "conllu":
                labels = roles.labels if form.kind == to else _conllu_columns(model, trained)
                roles = replace(roles, labels=(*tag_columns(model), *labels))
        if roles is None:
            lines = ("\n".join([*block.lines.values(), "", ""]) for block in blocks)
            yield "".join(lines).encode()
            continue
        sentences = Examples(full, [], form, roles)
        with sentences.located():
            predictions = extras.predictions(model, sentences.inputs)
        texts = []
        for block in blocks:
            predicted = next(predictions) if block.tokens else Prediction([])
            texts.append(written(block, *_cells(predicted, to), form, roles, to))
        yield "".join(texts).encode()


def _conllu_columns(model: SearchEstimator, trained: ColumnRoles) -> tuple[str, ...]:
    """Return the columns of CoNLL-U for the labels of a model: those that it was trained with."""
    from laso.data.formats import CONLLU, TREE
    from laso.errors import listed
    from laso.estimators import Parser

    labels = TREE if isinstance(model, Parser) else trained.labels
    if not set(labels) <= set(CONLLU):
        raise typer.BadParameter(
            f"--output-format conllu: CoNLL-U has no column for the labels {listed(labels)}; a "
            "model that is trained from CoNLL-U has one"
        )
    return labels


def _cells(predicted: Prediction, to: str) -> tuple[list[Any], dict[str, Any]]:
    """Return labels, and further keys of JSON objects; in columns probabilities follow labels."""
    from laso.data.formats import cells

    if to == "jsonl":
        return predicted.labels, predicted.extras
    if "tags" in predicted.extras:
        tags = predicted.extras.pop("tags")
        pairs = zip(tags, predicted.labels, strict=True)
        predicted = replace(predicted, labels=[(*tag, *cells(label)) for tag, label in pairs])
    if "probabilities" not in predicted.extras:
        return predicted.labels, {}
    if to == "conllu":
        raise typer.BadParameter("CoNLL-U has no column for probabilities: use --json")
    pairs = zip(predicted.labels, predicted.extras["probabilities"], strict=True)
    return [(*cells(label), f"{p:.4f}") for label, p in pairs], {}


def recognised(
    head: str, name: str, model: SearchEstimator, trained: ColumnRoles, settings: Settings
) -> Format:
    """Return the format of a file to label: columns only if they fit the model."""
    from laso.data.formats import Format, guessed

    guess = guessed(head, name)
    labels = [str(label) for label in model.classes_]
    if settings.format is None and settings.separator is None and guess.kind == "columns":
        remembered = model.metadata_.get("format", {})
        separator = remembered.get("separator")
        if separator not in (None, "\t", " "):
            guess = Format("columns", separator, guess.comment)
        elif not is_column_file(head, trained, labels, second_column(model)):
            widths = {len(line.split()) for line in head.splitlines() if line.strip()}
            as_words = len(widths) > 1 or widths == {len(trained.inputs)}
            if len(trained.inputs) == 1 or (guess.separator is None and as_words):
                guess = Format("text")
    return settings.form(guess)


def second_column(model: SearchEstimator) -> Container[str]:
    """Return the values that a model knows of its second input column; none if it has no such."""
    encoder = getattr(model.task_, "encoder_", None)
    values = getattr(encoder, "vocabularies", {}).get(1)
    return () if values is None else values.by_string


def is_column_file(
    head: str, roles: ColumnRoles, labels: Sequence[str], second: Container[str] = ()
) -> bool:
    """Tell whether a text has the columns that a model expects, rather than being plain text.

    As many words in each line as the model has inputs are columns if the ``second`` one is known.
    """
    from laso.data.formats import guessed

    form = guessed(head)
    if form.kind != "columns":
        return False
    lines = [line for line in head.splitlines() if line.strip(" \t")][:200]
    if form.comment is not None:
        lines = [line for line in lines if not line.startswith(form.comment)]
    rows = [line.split(form.separator) for line in lines]
    widths = {len(row) for row in rows}
    if len(widths) != 1:
        return False
    width = widths.pop()
    if width == len(roles.inputs):
        return width == 1 or second == () or any(row[1] in second for row in rows)
    last = {row[-1] for row in rows}
    known = bool(last & set(labels)) or len(roles.labels) > 1
    return width == roles.width and known


@contextmanager
def _target(path: Path | None) -> Iterator[BinaryIO]:
    """Open standard output, or a file that is complete when the block ends, or left as it was."""
    if path is None:
        yield sys.stdout.buffer
        return
    from laso.files.atomic import replacing

    with replacing(path) as file:
        yield file
