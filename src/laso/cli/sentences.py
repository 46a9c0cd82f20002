"""Files and standard input as sentences, for all commands that read them."""

from __future__ import annotations

import io
import os
import sys
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from laso.cli.own import STDIN, shown
from laso.cli.settings import Settings
from laso.data.columns import Block, counted
from laso.data.formats import CONLLU, TREE, ColumnRoles, Format, default_roles, guessed
from laso.data.reading import read as read_sentences
from laso.errors import BadData, listed
from laso.files.opening import open_input
from laso.metrics.evaluation import Evaluation, is_known

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator

HEAD = 1 << 16  # bytes of a file by which its format is detected


@dataclass
class Sentences:
    """The sentences of files, with their positions and the roles of their columns."""

    form: Format
    roles: ColumnRoles
    blocks: Sequence[Block]
    files: list[tuple[str, int]]  # the name of each file and its number of sentences

    def __len__(self) -> int:
        return len(self.blocks)

    @property
    def inputs(self) -> list[Any]:
        """The sentences as an estimator takes them for X."""
        return [self.roles.tokens(block) for block in self.blocks]

    @property
    def outputs(self) -> list[Any]:
        """The gold labels as an estimator takes them for y."""
        return [self.roles.answers(block) for block in self.blocks]

    def numbered(self) -> dict[str, Any]:
        """Return the roles as a model file has them: columns of column files by number from 1."""
        numbers: dict[str, str] = {}
        if self.form.kind == "columns":
            numbers = {name: str(i) for i, name in enumerate(self.blocks[0].names, start=1)}
        inputs, labels = (
            [numbers.get(name, name) for name in names]
            for names in (self.roles.inputs, self.roles.labels)
        )
        return {"inputs": inputs, "labels": labels, "width": self.roles.width}

    def counts(self) -> dict[str, int]:
        """Return the number of sentences and tokens, for reports."""
        tokens = sum(len(block.tokens) for block in self.blocks)
        return {"sentences": len(self.blocks), "tokens": tokens}

    def checksum(self, crc: int = 0) -> int:
        """Return a checksum of the lines of all sentences."""
        for block in self.blocks:
            crc = zlib.crc32("\n".join(block.lines.values()).encode(), crc)
        return crc

    def metadata(self) -> dict[str, Any]:
        """Return what a model file must know of the files: columns and format."""
        form = self.form
        kind = {"kind": form.kind, "separator": form.separator, "comment": form.comment}
        return {"column_roles": self.numbered(), "format": kind}

    def is_fully_labelled(self) -> bool:
        """Tell whether the labels of all tokens are known."""
        return all(is_known(label) for _, outputs in self.pairs() for label in outputs)

    def evaluation(self, model: SearchEstimator) -> Evaluation:
        """Return the evaluation of a model on these sentences."""
        found: Evaluation = model.task_.evaluation(self.outputs, model.predict(self.inputs))
        return found

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Yield tokens and gold labels of one sentence at a time."""
        return ((self.roles.tokens(block), self.roles.answers(block)) for block in self.blocks)

    def parted(self, chosen: Sequence[int]) -> tuple[Sentences, Sentences]:
        """Return all sentences but the chosen ones, and the chosen ones."""
        out = frozenset(chosen)
        some = [block for i, block in enumerate(self.blocks) if i in out]
        rest: Sequence[Block]
        if isinstance(self.blocks, OnDisk):
            rest = replace(self.blocks, left_out=out)
        else:
            rest = [block for i, block in enumerate(self.blocks) if i not in out]
        return replace(self, blocks=rest), replace(self, blocks=some)

    def located(self, *, name: str | None = None) -> AbstractContextManager[None]:
        """Errors raised inside about one of these sentences name its file and line.

        ``name`` is what the errors call these sentences: None for X, "dev" for development data.
        """
        from laso.data.table import locating

        return locating(self.blocks, name=name)


@dataclass(frozen=True)
class OnDisk(Sequence[Block]):
    """The sentences of files, read again in every iteration, one at a time."""

    files: tuple[tuple[str, Format, int], ...]  # name, format, and number of sentences
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
    """Yield the blocks of a file that have tokens."""
    return (block for block in read_sentences(file, format=form) if block.tokens)


@contextmanager
def opened(name: str) -> Iterator[IO[bytes]]:
    """Open a file, or standard input for -, so that its beginning can be peeked at."""
    if name == STDIN:
        yield cast("IO[bytes]", _Named(sys.stdin.buffer, "<stdin>"))
        return
    with open_input(name, buffering=HEAD) as file:
        yield file


class _Named:
    """A stream under another name, with ``peek``."""

    def __init__(self, stream: Any, name: str) -> None:
        seen = hasattr(stream, "peek")
        self._stream = stream if seen else io.BufferedReader(io.BytesIO(stream.read()))
        self.name = name

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def read(self, n: int) -> bytes:
        """Return so many bytes, fewer at the end."""
        return bytes(self._stream.read(n))

    def readline(self) -> bytes:
        """Return the next line."""
        return bytes(self._stream.readline())

    def peek(self, n: int) -> bytes:
        """Return the next bytes without consuming them."""
        return bytes(self._stream.peek(n))


def head_of(file: IO[bytes]) -> str:
    """Return the first whole lines of a file that was just opened."""
    peek: Any = file
    data: bytes = peek.peek(HEAD)[:HEAD]
    whole = data[: data.rfind(b"\n") + 1] or data
    return whole.decode("utf-8", "replace")


def read(files: Sequence[str], settings: Settings, *, on_disk: bool = False) -> Sentences:
    """Read all labelled sentences of files that have the same columns.

    With ``on_disk`` the sentences are checked now and read again in every iteration.
    """
    first: Block | None = None
    roles: ColumnRoles | None = None
    kept: list[Block] = []
    seen: list[tuple[str, Format, int]] = []
    for name in files:
        n = 0
        with opened(name) as file:
            form = settings.form(guessed(head_of(file), name))
            for block in labelled(form, file):
                if not n:
                    first = first or block
                    if block.names != first.names:
                        raise BadData(
                            f"found the columns {listed(block.names)}, expected "
                            f"{listed(first.names)} as in {first.source}",
                            **place_of(block),
                        )
                    roles = roles_of(form, block, settings)
                assert roles is not None
                check_columns(block, roles)
                if not on_disk:
                    kept.append(block)
                n += 1
        if not n:
            raise BadData("found no token, expected labelled sentences", file=shown(name), line=1)
        seen.append((name, form, n))
    assert roles is not None
    blocks = OnDisk(tuple(seen)) if on_disk else kept
    return Sentences(seen[0][1], roles, blocks, [(shown(name), n) for name, _, n in seen])


def place_of(block: Block) -> dict[str, Any]:
    """Return the position fields of an error about a block."""
    return {"file": block.source, "line": min(block.lines)}


def roles_of(form: Format, block: Block, settings: Settings) -> ColumnRoles:
    """Choose the columns that are inputs and labels: as the settings say, or by default."""
    names = block.names
    if form.kind == "text":
        raise BadData(
            "found plain text, expected labels to learn from or to compare with", **place_of(block)
        )
    if len(names) < 2:
        raise BadData(
            "found one column, expected inputs and a label behind them", **place_of(block)
        )
    trees = settings.task == "parse" or settings.label == TREE
    default = default_roles(form, names, trees=trees)
    for name in (*(settings.inputs or ()), *(settings.label or ())):
        if name not in names:
            raise typer.BadParameter(
                f"there is no column {name!r} in {block.source}:{min(block.lines)}: there is "
                f"{listed(names)}"
            )
    labels = settings.label or default.labels
    if settings.inputs is not None:
        inputs = settings.inputs
    elif form.kind == "conllu":
        inputs = default.inputs
    else:
        inputs = tuple(name for name in names if name not in labels)
    if not inputs or set(inputs) & set(labels):
        raise BadData(
            f"found the columns {listed(names)} with the label {listed(labels)} and the inputs "
            f"{listed(inputs) or 'none'}, expected inputs that are no labels",
            **place_of(block),
        )
    return ColumnRoles(inputs, labels, len(names))


def check_columns(block: Block, roles: ColumnRoles) -> None:
    """Check that a sentence has all inputs and labels: JSON objects may lack what others have."""
    if not roles.fits(block.names):
        raise BadData(
            f"found the columns {listed(block.names)}, expected "
            f"{listed((*roles.inputs, *roles.labels))}, each a list as long as that of the tokens",
            **place_of(block),
        )


def remembered(model: SearchEstimator) -> ColumnRoles:
    """Return the roles in the model file; a model trained in Python has its columns in order.

    A model that predicts the tags that it needs has words as its only input.
    """
    roles = model.metadata_.get("column_roles")
    task: Any = model.task_
    n_tags = getattr(task, "n_tags", 0)
    if isinstance(roles, dict):
        inputs, labels = tuple(roles["inputs"]), tuple(roles["labels"])
        return ColumnRoles(inputs[:1] if n_tags else inputs, labels, int(roles["width"]))
    n, layers = 1 + n_tags if n_tags else max(1, len(task.encoder_.names)), task.n_layers
    numbers = tuple(str(i) for i in range(1, n + layers + 1))
    return ColumnRoles(numbers[: 1 if n_tags else n], numbers[n:], n + layers)


def tag_columns(model: SearchEstimator) -> tuple[str, ...]:
    """Return the columns of the tags that a model predicts beside its labels; mostly none."""
    roles, n = model.metadata_.get("column_roles"), getattr(model.task_, "n_tags", 0)
    return tuple(roles["inputs"][1 : n + 1]) if isinstance(roles, dict) else ("upos", "xpos")[:n]


def is_column_file(head: str, roles: ColumnRoles, labels: Sequence[str]) -> bool:
    """Tell whether a text has the columns that a model expects, rather than being plain text."""
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
        return True
    last = {row[-1] for row in rows}
    known = bool(last & set(labels)) or len(roles.labels) > 1
    return width == roles.width and known


def roles_for(block: Block, trained: ColumnRoles, form: Format) -> ColumnRoles:
    """Find the columns of a file to label, given the roles that the model was trained with."""
    names = block.names
    roles = trained.for_names(names)
    if form.kind == "conllu" and roles is None and trained.labels[1:]:
        roles = ColumnRoles(("form", "upos", "xpos")[: len(trained.inputs)], TREE, len(CONLLU))
    if form.kind == "conllu" and roles is None and len(trained.inputs) == 1:
        roles = ColumnRoles(("form",), ("upos",), len(CONLLU))
    if form.kind == "jsonl" and roles is None and len(trained.inputs) == 1:
        roles = ColumnRoles((names[0],), (), len(names))
    if roles is None:
        raise BadData(
            f"found {counted(len(names))} ({listed(names)}), expected the {len(trained.inputs)} "
            f"inputs of the model ({listed(trained.inputs)})"
            + (f", or {trained.width} columns as it was trained with" if trained.labels else ""),
            **place_of(block),
        )
    return roles


def name_for(path: str) -> str:
    """Return the default path of a model: beside the first file."""
    return "model.laso" if path == STDIN else os.path.splitext(path)[0] + ".laso"
