"""Files and standard input as sentences, for all commands that read them."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from laso.cli.settings import Settings
from laso.data.columns import Block, counted
from laso.data.formats import CONLLU, Format, Layout, guessed, usual_layout
from laso.errors import BadData, LasoError

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

HEAD = 1 << 16  # bytes of a file to guess its format by
STDIN = "-"
_PLACE = re.compile(r"sentence (\d+)(?:, token (\d+))?: ")


@dataclass
class Sentences:
    """The sentences of files: what an estimator takes, and where each stands."""

    form: Format
    layout: Layout
    blocks: Sequence[Block]
    files: list[tuple[str, int]]  # the name of each file and how many blocks it has
    numbers: Sequence[int] | None = None  # of the blocks among those of the files, if not all

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

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Tokens and answers of a sentence at a time."""
        return ((self.layout.tokens(block), self.layout.answers(block)) for block in self.blocks)

    def parted(self, chosen: Sequence[int]) -> tuple[Sentences, Sentences]:
        """All but some of them, and those."""
        out = frozenset(chosen)
        kept = [i for i in range(len(self.blocks)) if i not in out]
        some = [block for i, block in enumerate(self.blocks) if i in out]
        rest: Sequence[Block]
        if isinstance(self.blocks, OnDisk):
            rest = replace(self.blocks, left_out=out)
        else:
            rest = [block for i, block in enumerate(self.blocks) if i not in out]
        return replace(self, blocks=rest, numbers=kept), replace(
            self, blocks=some, numbers=sorted(out)
        )

    def place(self, sentence: int, token: int | None) -> str:
        """File and line of a sentence and token, counted from 1."""
        block = self.blocks[sentence - 1]
        line = block.places[token - 1] if token is not None else min(block.lines)
        if self.numbers is not None:
            sentence = self.numbers[sentence - 1] + 1
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


@dataclass(frozen=True)
class OnDisk(Sequence[Block]):
    """The blocks of files, read anew whenever they are asked for, one at a time."""

    files: tuple[tuple[str, Format, int], ...]  # name, format, and how many blocks
    left_out: frozenset[int] = frozenset()

    def __len__(self) -> int:
        return sum(n for _, _, n in self.files) - len(self.left_out)

    def __iter__(self) -> Iterator[Block]:
        numbers = count()
        for name, form, _ in self.files:
            with opened(name) as file:
                for block in labelled(form, file):
                    if next(numbers) not in self.left_out:
                        yield block

    def __getitem__(self, i: Any) -> Any:
        return next(islice(self, i, None))  # for the place of an error: seldom


def labelled(form: Format, file: IO[bytes]) -> Iterator[Block]:
    """The blocks of a file that have tokens."""
    return (block for block in form.blocks(file) if block.tokens)


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


def read(files: Sequence[str], settings: Settings, *, on_disk: bool = False) -> Sentences:
    """All sentences of files that have labels; all files have the same columns.

    If they are to stay ``on_disk``, they are looked through, and read again when they are needed.
    """
    first: Block | None = None
    layout: Layout | None = None
    kept: list[Block] = []
    found: list[tuple[str, Format, int]] = []
    for name in files:
        where = name if name != STDIN else "<stdin>"
        n = 0
        with opened(name) as file:
            form = settings.form(guessed(head_of(file), name))
            for block in labelled(form, file):
                if not n:
                    if first is not None and block.names != first.names:
                        raise BadData(
                            f"{where}:{block.places[0]}: found the columns "
                            f"{', '.join(block.names)}, expected {', '.join(first.names)} as in "
                            f"{found[0][0]}"
                        )
                    place = f"{where}:{block.places[0]}"
                    layout = layout_of(form, block.names, settings, place)
                    first = first or block
                assert layout is not None
                check_columns(block, layout, where)
                if not on_disk:
                    kept.append(block)
                n += 1
        if not n:
            raise BadData(f"{where}:1: found no token, expected labelled sentences")
        found.append((where, form, n))
    assert layout is not None
    blocks = OnDisk(tuple(found)) if on_disk else kept
    return Sentences(found[0][1], layout, blocks, [(where, n) for where, _, n in found])


def layout_of(form: Format, names: tuple[str, ...], settings: Settings, place: str) -> Layout:
    """Which columns are inputs and labels: as said, or the usual ones."""
    if form.kind == "text":
        raise BadData(
            f"{place}: found plain text, expected labels to learn from or to compare with"
        )
    if len(names) < 2:
        raise BadData(f"{place}: found one column, expected inputs and a label behind them")
    usual = usual_layout(form, names)
    for name in (*(settings.inputs or ()), *(settings.label or ())):
        if name not in names:
            raise typer.BadParameter(
                f"there is no column {name!r} in {place}: there is {', '.join(names)}"
            )
    labels = settings.label or usual.labels
    if settings.inputs is not None:
        inputs = settings.inputs
    elif form.kind == "conllu":
        inputs = usual.inputs
    else:
        inputs = tuple(name for name in names if name not in labels)
    if not inputs or set(inputs) & set(labels):
        raise BadData(
            f"{place}: found the columns {', '.join(names)} with the label {', '.join(labels)} and "
            f"the inputs {', '.join(inputs) or 'none'}, expected inputs that are no labels"
        )
    return Layout(inputs, labels, len(names))


def check_columns(block: Block, layout: Layout, name: str) -> None:
    """JSON objects may lack what others have."""
    if not layout.fits(block.names):
        expected = ", ".join((*layout.inputs, *layout.labels))
        raise BadData(
            f"{name}:{min(block.lines)}: found the columns {', '.join(block.names)}, "
            f"expected {expected}, each a list as long as that of the tokens"
        )


def remembered(model: SearchEstimator) -> Layout:
    """The layout that a model was trained with; of one trained in Python, the columns in order."""
    said = model.metadata_.get("layout")
    if isinstance(said, dict):
        return Layout(tuple(said["inputs"]), tuple(said["labels"]), int(said["width"]))
    task: Any = model.task_
    encoder = task.encoder_
    n, layers = max(1, len(encoder.names)), task.n_layers
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
            f"{place}: found {counted(len(names))} ({', '.join(names)}), expected the "
            f"{len(trained.inputs)} inputs of the model ({inputs})"
            + (f", or {trained.width} columns as it was trained with" if trained.labels else "")
        )
    return found


def name_for(path: str) -> str:
    """Where a model goes if nothing is said: beside the first file."""
    return "model.laso" if path == STDIN else os.path.splitext(path)[0] + ".laso"
