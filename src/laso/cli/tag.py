"""``laso tag``: label the sentences of files or of standard input with a model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from laso.cli import options

if TYPE_CHECKING:
    from laso.cli.settings import Settings
    from laso.data.columns import Block
    from laso.data.formats import ColumnRoles, Format
    from laso.estimators import SearchEstimator

BATCH = 20_000  # tokens to label at a time


def run(
    model: Annotated[Path, typer.Argument(help="A model that laso train has saved.")],
    files: Annotated[
        list[str] | None, typer.Argument(help="Files to label; standard input if there are none.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Where the labels go; by default to standard output.")
    ] = None,
    form: options.FormatOrText = None,
    separator: options.Separator = None,
    comment: options.Comment = None,
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Also tell how probable each label is.")
    ] = False,
    nbest: Annotated[
        int, typer.Option(min=0, help="Also the best so many outputs, with --json.")
    ] = 0,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write a JSON object a line, whatever was read.")
    ] = False,
) -> None:
    """Label sentences: a column is added, or the labels of CoNLL-U or JSON lines are filled in."""
    from laso.cli.sentences import STDIN, opened
    from laso.cli.settings import Settings, checked
    from laso.estimators import load_model

    said = checked(Settings(format=form, separator=separator, comment=comment))
    if nbest and not as_json:
        raise typer.BadParameter("--nbest needs --json")
    known = load_model(model)
    more = More(confidence, nbest)
    try:
        with _target(output) as out:
            for name in files or [STDIN]:
                with opened(name) as file:
                    for text in labelled(known, file, name, said, as_json=as_json, more=more):
                        out.write(text.encode())
                        out.flush()
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


@dataclass(frozen=True)
class More:
    """What is told beside labels."""

    confidence: bool = False
    nbest: int = 0

    def found(self, model: SearchEstimator, tokens: list[Any]) -> Iterator[Found]:
        """Labels, and what else is told of each sentence."""
        answers = [Found(labels) for labels in model.predict(tokens)]
        if self.confidence:
            for answer, known in zip(answers, model.predict_confidence(tokens), strict=True):
                answer.more["probability"] = known.probability
                answer.more["probabilities"] = [
                    part.probability for part in known.parts for _ in range(part.start, part.end)
                ]
        if self.nbest:
            for answer, paths in zip(answers, model.predict_nbest(tokens, self.nbest), strict=True):
                answer.more["nbest"] = [{"score": s, "labels": labels} for s, labels in paths]
        return iter(answers)


@dataclass(frozen=True)
class Found:
    """The labels of a sentence, and what else is told of it."""

    labels: list[Any]
    more: dict[str, Any] = field(default_factory=dict)


def labelled(
    model: SearchEstimator,
    file: Any,
    name: str,
    settings: Settings,
    *,
    as_json: bool,
    more: More,
) -> Iterator[str]:
    """The labelled sentences as text, some at a time."""
    from laso.cli.sentences import STDIN, Sentences, head_of, remembered, roles_for
    from laso.data.formats import written
    from laso.data.reading import read

    trained = remembered(model)
    form = recognised(head_of(file), name, model, trained, settings)
    at_once = 1 if name == STDIN and sys.stdin.isatty() else BATCH
    roles: ColumnRoles | None = None
    for blocks in batches(read(file, format=form), at_once):
        full = [block for block in blocks if block.tokens]
        if roles is None and full:
            roles = roles_for(full[0], trained, form)
        if roles is None:
            yield "".join("\n".join([*block.lines.values(), "", ""]) for block in blocks)
            continue
        sentences = Sentences(form, roles, full, [])
        with sentences.located():
            found = more.found(model, sentences.tokens)
        to = "jsonl" if as_json else form.kind
        yield "".join(
            written(block, *_told(next(found) if block.tokens else Found([]), to), form, roles, to)
            for block in blocks
        )


def _told(found: Found, to: str) -> tuple[list[Any], dict[str, Any]]:
    """Labels and other keys of a JSON object; in columns a probability stands after its label."""
    from laso.data.formats import cells

    if to == "jsonl":
        return found.labels, found.more
    if "probabilities" not in found.more:
        return found.labels, {}
    if to == "conllu":
        raise typer.BadParameter("CoNLL-U has no column for probabilities: use --json")
    pairs = zip(found.labels, found.more["probabilities"], strict=True)
    return [(*cells(label), f"{p:.4f}") for label, p in pairs], {}


def recognised(
    head: str, name: str, model: SearchEstimator, trained: ColumnRoles, settings: Settings
) -> Format:
    """The format of a file to label: that of a column file only if it fits the model."""
    from laso.cli.sentences import is_column_file
    from laso.data.formats import Format, guessed

    guess = guessed(head, name)
    labels = [str(label) for label in model.classes_]
    if settings.format is None and settings.separator is None and guess.kind == "columns":
        remembered = model.metadata_.get("format", {})
        separator = remembered.get("separator")
        if separator not in (None, "\t", " "):
            guess = Format("columns", separator, guess.comment)
        elif len(trained.inputs) == 1 and not is_column_file(head, trained, labels):
            guess = Format("text")
    return settings.form(guess)


def batches(blocks: Iterator[Block], size: int) -> Iterator[list[Block]]:
    """Blocks together, of so many tokens or a few more."""
    batch: list[Block] = []
    tokens = 0
    for block in blocks:
        batch.append(block)
        tokens += len(block.tokens)
        if tokens >= size:
            yield batch
            batch, tokens = [], 0
    if batch:
        yield batch


@contextmanager
def _target(path: Path | None) -> Iterator[BinaryIO]:
    """A file to write to, or standard output."""
    if path is None:
        yield sys.stdout.buffer
        return
    with path.open("wb") as file:
        yield file
