"""Files and standard input as examples, for all commands that read them."""

from __future__ import annotations

import io
import os
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import typer

from laso.cli.own import reads_files
from laso.cli.settings import Settings
from laso.data.columns import Block
from laso.data.formats import (
    CONLLU,
    EMPTY,
    FEATS,
    OF_TREES,
    TREE,
    ColumnRoles,
    Format,
    default_roles,
    guessed,
)
from laso.data.reading import read as read_sentences
from laso.data.reading import whole
from laso.data.table import Columns, concatenated, locating, split_sentences, value_list
from laso.errors import BadData, InputError, LasoError, counted, listed
from laso.features.reading import ALL, read_tables
from laso.files.opening import open_input
from laso.metrics.evaluation import is_known

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task

STDIN = "-"
OF_TASK, NO_COLUMNS = Format("task"), ColumnRoles((), (), 0)  # what the user's task has read
HEAD = 1 << 16  # bytes of a file by which its format is detected


@dataclass(frozen=True)
class Examples:
    """The examples of files: sentences of columns, or what a task of the user's own has read."""

    # A table or blocks; pairs of an input and its output if ``task`` has read them.
    items: Columns | Sequence[Any]
    files: list[tuple[str, int]]  # the name of each file and its number of examples
    form: Format = OF_TASK
    roles: ColumnRoles = NO_COLUMNS
    example: Block = field(default_factory=Block)  # the first sentence
    task: Task | None = None
    crc: int = 0  # of the files

    def __len__(self) -> int:
        return len(self.items)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self.example.names

    def _input(self, item: Any) -> Any:
        return self.roles.tokens(item) if self.task is None else item[0]

    def _output(self, item: Any) -> Any:
        return self.roles.answers(item) if self.task is None else item[1]

    def _some(self, table: Columns, chosen: Sequence[str]) -> Columns:
        return table.with_columns([self.names.index(name) for name in chosen])

    @property
    def inputs(self) -> Any:
        """The examples as an estimator takes them for X."""
        if isinstance(self.items, Columns):
            return self._some(self.items, self.roles.inputs)
        return list(map(self._input, self.items))

    @property
    def outputs(self) -> list[Any]:
        """The gold outputs as an estimator takes them for y."""
        if not isinstance(self.items, Columns):
            return list(map(self._output, self.items))
        columns = self._some(self.items, self.roles.labels).columns
        labels = (
            columns[0] if len(columns) == 1 else list(zip(*map(value_list, columns), strict=True))
        )
        return split_sentences(labels, self.items.lengths)

    @property
    def labelled(self) -> tuple[Any, Any]:
        """What an estimator learns from: X and y, or a table with its labels and None."""
        if isinstance(self.items, Columns):
            return self._some(self.items, (*self.roles.inputs, *self.roles.labels)), None
        return self.inputs, self.outputs

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Yield input and gold output of one example at a time, unless they are in a table."""
        assert not isinstance(self.items, Columns)
        return ((self._input(item), self._output(item)) for item in self.items)

    def label_sequences(self) -> Iterable[Any]:
        """Return the gold outputs, one at a time if they are on disk."""
        if isinstance(self.items, Columns):
            return self.outputs
        return map(self._output, self.items)

    def counts(self) -> dict[str, int]:
        """Return the number of examples, or of sentences and tokens, for reports."""
        if self.task is not None:
            return {"examples": len(self)}
        if isinstance(self.items, Columns):
            return {"sentences": len(self), "tokens": int(self.items.lengths.sum())}
        return {"sentences": len(self), "tokens": sum(len(block.tokens) for block in self.items)}

    def metadata(self) -> dict[str, Any]:
        """Return what a model file must know of the files: format, and columns by number from 1."""
        if self.task is not None:
            return {}
        form, roles, numbers = self.form, self.roles, {}
        if form.kind == "columns":
            numbers = {name: str(i) for i, name in enumerate(self.names, start=1)}
        inputs, labels = (
            [numbers.get(name, name) for name in names] for names in (roles.inputs, roles.labels)
        )
        return {
            "column_roles": {"inputs": inputs, "labels": labels, "width": roles.width},
            "format": {"kind": form.kind, "separator": form.separator, "comment": form.comment},
        }

    def fits(self, roles: ColumnRoles) -> bool:
        """Tell whether all sentences have the columns of these roles."""
        if isinstance(self.items, Columns):
            return roles.fits(self.names)
        return all(roles.fits(block.names) for block in self.items)

    def is_fully_labelled(self) -> bool:
        """Tell whether the labels of all tokens are known, as far as they can be looked at."""
        if self.task is not None:
            return True
        return all(is_known(label) for outputs in self.label_sequences() for label in outputs)

    def evaluation(self, model: SearchEstimator) -> Any:
        """Return the evaluation of a model on these examples."""
        return model.task_.evaluation(self.outputs, model.predict(self.inputs))

    def first(self, n: int) -> Examples:
        """Return the first examples."""
        return self.parted(range(n))[1]

    def parted(self, chosen: Sequence[int]) -> tuple[Examples, Examples]:
        """Return all examples but the chosen ones, and the chosen ones."""
        out = frozenset(chosen)
        if isinstance(self.items, Columns):
            every = range(len(self))
            pair = [[i for i in every if i not in out], [i for i in every if i in out]]
            left, held = (self.items.take(numbers) for numbers in pair)
            return replace(self, items=left), replace(self, items=held)
        held_out = [item for i, item in enumerate(self.items) if i in out]
        rest: Sequence[Any]
        if isinstance(self.items, OnDisk):
            rest = replace(self.items, left_out=out)
        else:
            rest = [item for i, item in enumerate(self.items) if i not in out]
        return replace(self, items=rest), replace(self, items=held_out)

    def located(self, *, name: str | None = None) -> AbstractContextManager[None]:
        """Errors raised inside about one of these sentences name its file and line.

        ``name`` is what the errors call these sentences: None for X, "dev" for development data.
        """
        return locating(self.items, name=name) if self.task is None else nullcontext()


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
        yield cast("IO[bytes]", Named(sys.stdin.buffer, "<stdin>"))
        return
    with open_input(name, buffering=HEAD) as file:
        yield file


class Named:
    """A stream under another name, with ``peek``."""

    def __init__(self, stream: Any, name: str) -> None:
        seen = hasattr(stream, "peek")
        self._stream = stream if seen else io.BufferedReader(io.BytesIO(stream.read()))
        self.name = name

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def head_of(file: IO[bytes]) -> str:
    """Return the first whole lines of a file that was just opened."""
    peek: Any = file
    data: bytes = peek.peek(HEAD)[:HEAD]
    whole = data[: data.rfind(b"\n") + 1] or data
    return whole.decode("utf-8", "replace")


def read(
    files: Sequence[str], settings: Settings, *, task: Task | None = None, on_disk: bool = False
) -> Examples:
    """Read all labelled sentences of files that have the same columns.

    With ``on_disk`` the sentences are checked now and read again in every iteration. A ``task``
    that is given reads the files itself.
    """
    if task is not None:
        return read_by_task(task, files)
    first: Block | None = None
    roles: ColumnRoles | None = None
    kept: list[Block] = []
    tables: list[Columns] = []
    seen: list[tuple[str, Format, int]] = []
    crc = 0
    has_features = False
    for name in files:
        with opened(name) as source:
            form = settings.form(guessed(head_of(source), name))
            file = source if on_disk else whole(source)
            crc = crc_of(file, crc)
            block = next(labelled(form, file), None)
            if block is None:
                message = "found no token, expected labelled sentences"
                raise BadData(message, file=shown(name), line=1)
            first = first or block
            if block.names != first.names:
                raise BadData(
                    f"found the columns {listed(block.names)}, expected "
                    f"{listed(first.names)} as in {first.source}",
                    **place_of(block),
                )
            roles = roles_of(form, block, settings)
            file.seek(0)
            if not on_disk and (seen[0][1] if seen else form).kind == "columns":
                tables += read_tables(file, form, ALL)
                n = len(tables[-1])
            else:
                n = 0
                for block in labelled(form, file):
                    check_columns(block, roles)
                    has_features = has_features or _has_features(block)
                    kept += [] if on_disk else [block]
                    n += 1
        seen.append((name, form, n))
    assert first is not None
    assert roles is not None
    if settings.inputs is None and roles.inputs == OF_TREES and not has_features:
        roles = replace(roles, inputs=OF_TREES[:-1])
    blocks = OnDisk(tuple(seen)) if on_disk else kept
    numbers = [(shown(name), n) for name, _, n in seen]
    items = concatenated(tables) if tables else blocks
    return Examples(items, numbers, seen[0][1], roles, first, crc=crc)


def _has_features(block: Block) -> bool:
    """Tell whether a sentence has a column of morphological features with values."""
    if FEATS not in block.names:
        return False
    place = block.names.index(FEATS)
    return any(token[place] != EMPTY for token in block.tokens)


def crc_of(file: IO[bytes], crc: int) -> int:
    """Return the checksum of a file and of what is before it; the file begins anew."""
    while part := file.read(HEAD):
        crc = zlib.crc32(part, crc)
    file.seek(0)
    return crc


def read_for(model: SearchEstimator, files: Sequence[str], settings: Settings) -> Examples:
    """Read labelled files with the columns that a model was trained on, or by its own task."""
    if reads_files(model, settings.task):
        return read_by_task(model.task_, files)
    examples = read(files, settings)
    return replace(examples, roles=roles_for(examples.example, remembered(model), examples.form))


def read_by_task(task: Task, files: Sequence[str], *, labelled: bool = True) -> Examples:
    """Read files by ``Task.read_file``; files that are not ``labelled`` have no outputs."""
    items: list[tuple[Any, Any]] = []
    seen, crc = [], 0
    for name in files:
        with _on_disk(name) as path:
            inputs, outputs = _read_one(task, path, name, labelled)
            crc = zlib.crc32(Path(path).read_bytes(), crc) if Path(path).is_file() else crc
        if labelled and (outputs is None or len(outputs) != len(inputs)):
            given = "no outputs" if outputs is None else f"{len(outputs)} outputs"
            raise BadData(f"found {given} for {counted(len(inputs), 'input')}", file=shown(name))
        items += zip(inputs, (labelled and outputs) or [None] * len(inputs), strict=True)
        seen.append((shown(name), len(inputs)))
    if labelled and not items:
        raise BadData("found no example, expected at least one", file=shown(files[0]))
    return Examples(items, seen, task=task, crc=crc)


def _read_one(
    task: Task, path: str, name: str, labelled: bool
) -> tuple[list[Any], list[Any] | None]:
    """Read one file; an error of the task's reader about the file's content names the file."""
    try:
        inputs, outputs = task.read_file(path, labelled=labelled)
    except InputError as error:
        raise error.at(file=shown(name)) if error.file in (None, path) else error from None
    except LasoError:
        raise
    except ValueError as error:  # also text that is not UTF-8
        raise BadData(f"{type(task).__name__}.read_file: {error}", file=shown(name)) from error
    return list(inputs), None if outputs is None else list(outputs)


@contextmanager
def _on_disk(name: str) -> Iterator[str]:
    """Return the path of a file; standard input is copied into one."""
    if name != STDIN:
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="laso-") as folder:
        path = Path(folder) / "stdin"
        path.write_bytes(sys.stdin.buffer.read())
        yield str(path)


def shown(name: str) -> str:
    """Return the name of a file as messages show it."""
    return "<stdin>" if name == STDIN else name


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
    return tuple(roles["inputs"][1 : n + 1]) if isinstance(roles, dict) else OF_TREES[1 : n + 1]


def roles_for(block: Block, trained: ColumnRoles, form: Format) -> ColumnRoles:
    """Find the columns of a file to label, given the roles that the model was trained with."""
    names = block.names
    roles = trained.for_names(names)
    if form.kind == "conllu" and roles is None and trained.labels[1:]:
        roles = ColumnRoles(OF_TREES[: len(trained.inputs)], TREE, len(CONLLU))
    if form.kind == "conllu" and roles is None and len(trained.inputs) == 1:
        roles = ColumnRoles(("form",), ("upos",), len(CONLLU))
    if form.kind == "jsonl" and roles is None and len(trained.inputs) == 1:
        roles = ColumnRoles((names[0],), (), len(names))
    if roles is None and form.kind == "text":
        raise BadData(
            f"found plain text, expected {listed(trained.inputs)}: this model needs tags: train "
            "with --pipeline, or give it a file that has them",
            **place_of(block),
        )
    if roles is None:
        raise BadData(
            f"found {counted(len(names), 'column')} ({listed(names)}), expected the "
            f"{len(trained.inputs)} inputs of the model ({listed(trained.inputs)})"
            + (f", or {trained.width} columns as it was trained with" if trained.labels else ""),
            **place_of(block),
        )
    return roles


def name_for(path: str) -> str:
    """Return the default path of a model: beside the first file."""
    return "model.laso" if path == STDIN else os.path.splitext(path)[0] + ".laso"
