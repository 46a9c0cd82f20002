"""Data larger than memory: encoded once, part by part, to files that are mapped into memory.

The examples are read twice, first for their labels. What is learned is the same as in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np

from laso.data.formats import Format, guessed
from laso.data.reading import HEAD, check_format
from laso.data.table import locating
from laso.engine.layout import NO_VECTORS, Array, Dataset
from laso.errors import BadData, InputError
from laso.estimators.learning import fitting
from laso.features.reading import read_tables
from laso.files.atomic import discard, naming, new_file, remove_leftovers
from laso.files.opening import open_regular
from laso.tasks.base import Task

if TYPE_CHECKING:
    from laso.estimators.search import SearchEstimator

EXAMPLES_AT_A_TIME = 2000  # examples in memory at a time
TOKENS = 20  # of an example, or about so many
KINDS = {
    "items": np.int32,
    "outputs": np.int32,
    "pool": np.int64,
    "values": np.float32,
    "vectors": np.float32,
}

Source: TypeAlias = str | os.PathLike[str] | Callable[[], Iterable[Any]]
"""A column file, or a function that returns the examples anew: pairs (x, y), or sentences whose
tokens have their labels last."""


def pieces(source: Source) -> Iterator[tuple[Any, Any]]:
    """Yield X and y of some examples at a time; those of a file are columns with positions."""
    if isinstance(source, (str, os.PathLike)):
        with open_regular(source) as file:  # which is read twice, so that it cannot be a pipe
            check_format(os.fspath(source), guessed(file.read(HEAD).decode("utf-8", "replace")))
            file.seek(0)
            for table in read_tables(file, Format(), TOKENS * EXAMPLES_AT_A_TIME):
                yield table, None
        return
    examples = iter(source())
    while batch := list(islice(examples, EXAMPLES_AT_A_TIME)):
        pairs = all(isinstance(each, tuple) and len(each) == 2 for each in batch)
        yield ([x for x, _ in batch], [y for _, y in batch]) if pairs else (batch, None)


@contextmanager
def stored(model: SearchEstimator, task: Task, source: Source, folder: Path) -> Iterator[Dataset]:
    """Encode examples to files of a folder and yield the dataset, mapped into memory.

    Learning begins anew unless the task is the model's own, which knows the labels. The files are
    of this run alone and are removed when the block ends; what a killed run left is removed by the
    next. Errors of the encoding name the folder.
    """
    with ExitStack() as stack:
        with naming(folder):
            dataset = _stored(model, task, source, _files(folder, stack))
        yield dataset


def _stored(
    model: SearchEstimator, task: Task, source: Source, files: dict[str, tuple[Path, BinaryIO]]
) -> Dataset:
    if task is not getattr(model, "task_", None):
        task.observe(_read(task, source))
        fitting.begin(model, task)
    opened = {name: file for name, (_, file) in files.items()}
    dimensions = 0
    all_lengths, outputs, longest_list, columns, weighted = _write(model, source, opened)
    if task.dense is not None:
        dimensions = task.dense.size or 0
    mapped = {name: _mapped(*files[name], kind) for name, kind in KINDS.items()}
    return Dataset(
        mapped["items"].reshape(-1, columns),
        _starts(all_lengths),
        mapped["pool"],
        mapped["values"] if weighted else np.zeros(0, np.float32),
        task.joint_constants(int(all_lengths.max(initial=1)), longest_list),
        mapped["outputs"],
        _starts(outputs),
        vectors=mapped["vectors"].reshape(-1, dimensions) if dimensions else NO_VECTORS,
    )


def _write(
    model: SearchEstimator, source: Source, files: dict[str, BinaryIO]
) -> tuple[Array, Array, int, int, bool]:
    """Write encoded parts.

    Return the lengths of inputs and outputs, the longest list, the columns, and whether any feature
    has another value than 1.
    """
    task = model.task_
    lengths: list[Array] = [np.zeros(0, np.int64)]
    outputs: list[Array] = [np.zeros(0, np.int64)]
    pool, longest_list, columns, weighted = 0, 0, 1, False
    for inputs, gold in _read(task, source):
        with counted_after(sum(map(len, lengths))), locating(inputs):
            part = model.encode_gold(inputs, gold)
        sizes = np.diff(part.starts)
        longest = _longest_list(inputs)
        plain = task.joint_constants(int(sizes.max(initial=1)), longest)
        if len(part.spec) != len(plain):
            raise BadData("found unknown labels that constraints narrow: expected all known")
        longest_list = max(longest_list, longest)
        values = part.values
        weighted |= bool((values != 1).any())
        if len(part.pool) and not len(values):
            values = np.ones(len(part.pool), np.float32)  # another part may have values
        arrays = (task.shift_pool(part.items, pool), part.outputs, part.pool, values, part.vectors)
        for name, array in zip(KINDS, arrays, strict=True):
            files[name].write(np.ascontiguousarray(array, KINDS[name]).tobytes())
        lengths.append(sizes)
        outputs.append(np.diff(part.output_starts))
        columns = part.items.shape[1]
        pool += len(part.pool)
    return np.concatenate(lengths), np.concatenate(outputs), longest_list, columns, weighted


def _longest_list(inputs: Any) -> int:
    """The largest number of features that a token has of its own."""
    counts = getattr(inputs, "counts", None)
    return 0 if counts is None else int(counts.max(initial=0))


def _starts(lengths: Array) -> Array:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _files(folder: Path, stack: ExitStack) -> dict[str, tuple[Path, BinaryIO]]:
    """Make a file of a folder for each array, which is removed when the stack is left."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_leftovers(folder)
    files = {}
    for name in KINDS:
        path, file = new_file(folder)
        stack.callback(discard, path)
        files[name] = path, stack.enter_context(file)
    return files


def _read(task: Task, source: Source) -> Iterator[tuple[Any, Any]]:
    before = 0
    for X, y in pieces(source):
        with counted_after(before), locating(X):
            batch = task.read(X, y)
        yield batch
        before += len(X)


@contextmanager
def counted_after(before: int) -> Iterator[None]:
    """Errors raised inside count examples from the first of all pieces, not of this one."""
    try:
        yield
    except InputError as error:
        if error.sentence is None:
            raise
        raise error.at(sentence=before + error.sentence) from None


def _mapped(path: Path, file: BinaryIO, kind: Any) -> Array:
    """The array of a file; what is not used need not be in memory."""
    file.flush()
    if not os.fstat(file.fileno()).st_size:
        return np.zeros(0, kind)
    # Not "r": compiled code takes arrays that may be written to; nothing ever is.
    return np.asarray(np.memmap(path, kind, mode="c"))
