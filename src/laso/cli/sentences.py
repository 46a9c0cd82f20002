"""Files and standard input as sentences, for all commands that read them."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from laso.cli.settings import Settings
from laso.data.columns import Block
from laso.data.formats import CONLLU, Format, Layout, guessed, usual_layout
from laso.errors import BadData, LasoError

if TYPE_CHECKING:
    from laso.estimators import SequenceEstimator

HEAD = 1 << 16  # bytes of a file to guess its format by
STDIN = "-"
_PLACE = re.compile(r"sentence (\d+)(?:, token (\d+))?: ")


@dataclass
class Sentences:
    """The sentences of files: what an estimator takes, and where each stands."""

    form: Format
    layout: Layout
    blocks: list[Block]
    files: list[tuple[str, int]]  # the name of each file and how many blocks it has

    @property
    def tokens(self) -> list[Any]:
        """What the estimator takes for X."""
        return [self.layout.tokens(block) for block in self.blocks]

    @property
    def answers(self) -> list[Any]:
        """What the estimator takes for y."""
        return [self.layout.answers(block) for block in self.blocks]

    def numbered(self) -> dict[str, Any]:
        """The layout as a model remembers it: columns of column files by number from 1."""
        places: dict[str, str] = {}
        if self.form.kind == "columns":
            places = {name: str(i) for i, name in enumerate(self.blocks[0].names, start=1)}
        inputs, labels = (
            [places.get(name, name) for name in names]
            for names in (self.layout.inputs, self.layout.labels)
        )
        return {"inputs": inputs, "labels": labels, "width": self.layout.width}

    def some(self, chosen: Sequence[int]) -> Sentences:
        """Some of them; their places are told by the files of all."""
        return replace(self, blocks=[self.blocks[i] for i in chosen], files=[])

    def place(self, sentence: int, token: int | None) -> str:
        """File and line of a sentence and token, counted from 1."""
        block = self.blocks[sentence - 1]
        line = block.places[token - 1] if token is not None else min(block.lines)
        for name, n in self.files:
            if sentence <= n:
                return f"{name}:{line}"
            sentence -= n
        return f"line {line}"

    @contextmanager
    def located(self) -> Iterator[None]:
        """Errors about a sentence inside name its file and line."""
        try:
            yield
        except LasoError as error:
            found = _PLACE.match(str(error))
            if found is None:
                raise
            place = self.place(int(found[1]), None if found[2] is None else int(found[2]))
            raise type(error)(f"{place}: {str(error)[found.end() :]}") from error


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """A file, or standard input for -; its beginning can be looked at."""
    if name == STDIN:
        yield cast("IO[bytes]", _Named(sys.stdin.buffer, "<stdin>"))
        return
    with open(name, "rb", buffering=HEAD) as file:
        yield file


class _Named:
    """A stream under another name, whose beginning can be looked at."""

    def __init__(self, stream: Any, name: str) -> None:
        seen = hasattr(stream, "peek")
        self._stream = stream if seen else io.BufferedReader(io.BytesIO(stream.read()))
        self.name = name

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def peek(self, n: int) -> bytes:
        """What comes next."""
        return bytes(self._stream.peek(n))


def head_of(file: IO[bytes]) -> str:
    """The first whole lines of a file that was just opened."""
    peek: Any = file
    data: bytes = peek.peek(HEAD)[:HEAD]
    whole = data[: data.rfind(b"\n") + 1] or data
    return whole.decode("utf-8", "replace")


def read(files: Sequence[str], settings: Settings) -> Sentences:
    """All sentences of files that have labels; all files have the same columns."""
    found: Sentences | None = None
    for name in files:
        where = name if name != STDIN else "<stdin>"
        with opened(name) as file:
            form = settings.form(guessed(head_of(file), name))
            blocks = [block for block in form.blocks(file) if block.tokens]
        if not blocks:
            raise BadData(f"{where}:1: found no token, expected labelled sentences")
        layout = layout_of(form, blocks, settings)
        check_columns(blocks, layout, where)
        if found is None:
            found = Sentences(form, layout, blocks, [(where, len(blocks))])
            continue
        if blocks[0].names != found.blocks[0].names:
            raise BadData(
                f"{where}:{blocks[0].places[0]}: found the columns {', '.join(blocks[0].names)}, "
                f"expected {', '.join(found.blocks[0].names)} as in {found.files[0][0]}"
            )
        found.blocks += blocks
        found.files.append((where, len(blocks)))
    assert found is not None
    return found


def layout_of(form: Format, blocks: list[Block], settings: Settings) -> Layout:
    """Which columns are inputs and labels: as said, or the usual ones."""
    if form.kind == "text":
        raise BadData("found plain text, expected labels to learn from or to compare with")
    names = blocks[0].names
    usual = usual_layout(form, names)
    for name in (*(settings.inputs or ()), *(settings.label or ())):
        if name not in names:
            raise typer.BadParameter(f"there is no column {name!r}: there is {', '.join(names)}")
    labels = settings.label or usual.labels
    if settings.inputs is not None:
        inputs = settings.inputs
    elif form.kind == "conllu":
        inputs = usual.inputs
    else:
        inputs = tuple(name for name in names if name not in labels)
    if not inputs or set(inputs) & set(labels):
        raise BadData(
            f"found the columns {', '.join(names)} with the label {', '.join(labels)}, "
            "expected inputs beside it"
        )
    return Layout(inputs, labels, len(names))


def check_columns(blocks: list[Block], layout: Layout, name: str) -> None:
    """JSON objects may lack what others have."""
    for block in blocks:
        if not layout.fits(block.names):
            expected = ", ".join((*layout.inputs, *layout.labels))
            raise BadData(
                f"{name}:{min(block.lines)}: found the columns {', '.join(block.names)}, "
                f"expected {expected}, each a list as long as that of the tokens"
            )


def remembered(model: SequenceEstimator) -> Layout:
    """The layout that a model was trained with; of one trained in Python, the columns in order."""
    said = model.notes_.get("layout")
    if isinstance(said, dict):
        return Layout(tuple(said["inputs"]), tuple(said["labels"]), int(said["width"]))
    n, layers = max(1, len(model.encoder_.names)), len(getattr(model, "layers", "1"))
    numbers = tuple(str(i) for i in range(1, n + layers + 1))
    return Layout(numbers[:n], numbers[n:], n + layers)


def is_column_file(head: str, layout: Layout, labels: Sequence[str]) -> bool:
    """Does a text look like columns that a model knows, rather than like plain text?"""
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
    if width == len(layout.inputs):
        return True
    last = {row[-1] for row in rows}
    known = bool(last & set(labels)) or len(layout.labels) > 1
    return width == layout.width and known


def layout_for(names: Sequence[str], trained: Layout, form: Format, place: str) -> Layout:
    """The columns of a file to label, for a model that was trained with others."""
    found = trained.for_names(names)
    if form.kind == "conllu" and found is None and len(trained.inputs) == 1:
        found = Layout(("form",), ("upos",), len(CONLLU))
    if form.kind == "jsonl" and found is None and len(trained.inputs) == 1:
        found = Layout((names[0],), (), len(names))
    if found is None:
        inputs = ", ".join(trained.inputs)
        raise BadData(
            f"{place}: found {len(names)} columns ({', '.join(names)}), expected the "
            f"{len(trained.inputs)} inputs of the model ({inputs})"
            + (f", or {trained.width} columns as it was trained with" if trained.labels else "")
        )
    return found


def name_for(path: str) -> str:
    """Where a model goes if nothing is said: beside the first file."""
    return "model.laso" if path == STDIN else os.path.splitext(path)[0] + ".laso"
