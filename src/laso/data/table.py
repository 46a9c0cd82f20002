"""Sentences as arrays: columns of values, or features of tokens, with their positions in a file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count, pairwise
from operator import itemgetter
from typing import Any, TypeAlias, TypedDict

import numpy as np

from laso.data.columns import Block
from laso.errors import BadData, InputError, listed

Array: TypeAlias = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Factor:
    """A column whose values are coded as integers: ``values[codes[i]]`` is that of token i."""

    codes: Array  # int32
    values: list[str]  # the distinct values, in the order of their first occurrence

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, tokens: Array) -> Factor:
        """Return the column of some tokens; values that no longer occur are removed."""
        codes = self.codes[tokens]
        used, first = np.unique(codes, return_index=True)
        used = used[np.argsort(first)]
        new = np.zeros(len(self.values), np.int32)
        new[used] = np.arange(len(used))
        return Factor(new[codes], [self.values[i] for i in used.tolist()])


Column: TypeAlias = Sequence[Any] | Factor


@dataclass(frozen=True)
class Columns:
    """Sentences whose tokens have columns, such as a word and its tag.

    Parameters
    ----------
    lengths : array of int64
        The number of tokens of each sentence.
    columns : list of columns
        Each has a value for every token, sentence after sentence.
    source : str or list of str, optional
        The name of the file, or that of each sentence.
    lines : array of int32, optional
        The number of each token's line in the file, counted from 1.
    vectors : list of arrays, optional
        For each sentence a matrix with a dense vector for each token.
    """

    lengths: Array
    columns: list[Column]
    source: str | list[str] | None = None
    lines: Array | None = None
    vectors: list[Array] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def split(self) -> tuple[Columns, Column]:
        """Return the sentences without their last column, and that column."""
        return replace(self, columns=self.columns[:-1]), self.columns[-1]

    def with_columns(self, chosen: Sequence[int]) -> Columns:
        """Return the sentences with some of their columns, given by their indices."""
        return replace(self, columns=[self.columns[i] for i in chosen])

    def take(self, order: Sequence[int] | Array) -> Columns:
        """Return some of the sentences, given by their indices, in that order."""
        chosen = np.asarray(order, np.int64)
        tokens = tokens_of(self.lengths, chosen)
        source = self.source
        return Columns(
            self.lengths[chosen],
            [_taken(column, tokens) for column in self.columns],
            [source[i] for i in chosen.tolist()] if isinstance(source, list) else source,
            None if self.lines is None else self.lines[tokens],
            taken_vectors(self.vectors, chosen),
        )


@dataclass(frozen=True)
class ItemColumns(Columns):
    """Sentences whose columns are numbered already, so that their values are not kept.

    Parameters
    ----------
    items : array of int32 (tokens, views)
        The numbers, as ``laso.features.encoder.ColumnEncoder`` encodes columns.
    """

    items: Array = field(default_factory=lambda: np.zeros((0, 1), np.int32))

    def take(self, order: Sequence[int] | Array) -> ItemColumns:
        """Return some of the sentences, given by their indices, in that order."""
        rest = super().take(order)
        tokens = tokens_of(self.lengths, np.asarray(order, np.int64))
        return ItemColumns(
            rest.lengths, [], rest.source, rest.lines, rest.vectors, self.items[tokens]
        )


@dataclass(frozen=True)
class Features:
    """Sentences whose tokens have feature lists, as python-crfsuite takes them, or matrix rows.

    Parameters
    ----------
    lengths : array of int64
        The number of tokens of each sentence.
    counts : array of int64
        The number of features of each token.
    keys : array of int64
        The hashed features, token after token.
    values : array of float32, optional
        The value of each feature; None if all values are 1.
    width : int, default=-1
        The number of columns of the matrices; -1 for feature names.
    names : sequence of str, optional
        The distinct feature names.
    vectors : list of arrays, optional
        For each sentence a matrix with a dense vector for each token.
    """

    lengths: Array
    counts: Array
    keys: Array
    values: Array | None
    width: int = -1
    names: Sequence[str] = ()
    vectors: list[Array] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def take(self, order: Sequence[int] | Array) -> Features:
        """Return some of the sentences, given by their indices, in that order; all names stay."""
        chosen = np.asarray(order, np.int64)
        tokens = tokens_of(self.lengths, chosen)
        features = tokens_of(self.counts, tokens)
        return replace(
            self,
            lengths=self.lengths[chosen],
            counts=self.counts[tokens],
            keys=self.keys[features],
            values=None if self.values is None else self.values[features],
            vectors=taken_vectors(self.vectors, chosen),
        )


Data: TypeAlias = Columns | Features


def tokens_of(lengths: Array, chosen: Array) -> Array:
    """Return the indices of all tokens of the chosen sentences, given the sentences' lengths."""
    sizes = lengths[chosen]
    before = np.cumsum(sizes) - sizes
    starts = (np.cumsum(lengths) - lengths)[chosen]
    return np.asarray(np.repeat(starts - before, sizes) + np.arange(int(sizes.sum())))


def taken_vectors(vectors: list[Array] | None, chosen: Array) -> list[Array] | None:
    """Return the vectors of the chosen sentences, if there are any."""
    return None if vectors is None else [vectors[i] for i in chosen.tolist()]


def _taken(column: Column, tokens: Array) -> Column:
    if isinstance(column, Factor):
        return column.take(tokens)
    return [column[i] for i in tokens.tolist()]


def value_list(column: Column) -> list[Any]:
    """Return the values of all tokens as one list."""
    if isinstance(column, Factor):
        return list(np.array(column.values, dtype=object)[column.codes].tolist())
    return list(column)


def split_sentences(column: Column, lengths: Array) -> list[list[Any]]:
    """Split the values of all tokens into a list for each sentence."""
    flat = value_list(column)
    return [flat[a:b] for a, b in pairwise([0, *np.cumsum(lengths).tolist()])]


# --------------------------------------------------------------------------- from tokens to columns


def numbered(values: Sequence[Any]) -> tuple[Array, list[Any]]:
    """Return integer codes for values, and the distinct values in the order of their codes."""
    number: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(number.__getitem__, values), np.int32, len(values))
    return codes, list(number)


def columns_of(tokens: Sequence[tuple[Any, ...]], width: int) -> list[Column]:
    """Return the columns of tokens of ``width`` columns each; columns of strings are factors."""
    try:
        codes, distinct = numbered(tokens)
    except TypeError:  # values that cannot be hashed, so not only strings
        codes, distinct = np.arange(len(tokens), dtype=np.int32), list(tokens)
    columns: list[Column] = []
    for j in range(width):
        values = list(map(itemgetter(j), distinct))
        if set(map(type, values)) <= {str}:
            numbers, names = numbered(values)
            columns.append(Factor(numbers[codes], names))
        else:
            columns.append(list(map(itemgetter(j), tokens)))
    return columns


def table_of(blocks: Sequence[Block]) -> Columns:
    """Return the sentences of one file as columns with their positions."""
    full = [block for block in blocks if block.tokens]
    for block in full:
        if block.names != full[0].names:
            raise BadData(
                f"found the columns {listed(block.names)}, expected {listed(full[0].names)} as in "
                f"line {full[0].line_numbers[0]}",
                file=block.source,
                line=block.line_numbers[0],
            )
    lengths = np.fromiter((len(block.tokens) for block in full), np.int64, len(full))
    n = int(lengths.sum())
    lines = np.fromiter(chain.from_iterable(b.line_numbers for b in full), np.int32, n)
    tokens = list(chain.from_iterable(block.tokens for block in full))
    columns = columns_of(tokens, len(tokens[0]) if tokens else 0)
    return Columns(lengths, columns, full[0].source if full else None, lines)


def concatenated(tables: Sequence[Columns]) -> Columns:
    """Return the sentences of several files, with their positions."""
    if len(tables) == 1:
        return tables[0]
    names = [str(table.source) for table in tables for _ in range(len(table))]
    columns = [_joined(parts) for parts in zip(*(t.columns for t in tables), strict=True)]
    lengths, lines = (
        np.concatenate([getattr(t, name) for t in tables]) for name in ("lengths", "lines")
    )
    return Columns(lengths, columns, names, lines)


def _joined(parts: Sequence[Any]) -> Column:
    if not all(isinstance(part, Factor) for part in parts):
        return list(chain.from_iterable(map(value_list, parts)))
    number: defaultdict[str, int] = defaultdict(count().__next__)
    codes = [np.array([number[value] for value in p.values], np.int32)[p.codes] for p in parts]
    return Factor(np.concatenate(codes), list(number))


# --------------------------------------------------------------------------- positions


class Position(TypedDict):
    """The position fields of an error about a token, counted from 1."""

    sentence: int
    token: int


def position(lengths: Array, token: int) -> Position:
    """Return the position fields of an error about a token, given its index among all tokens.

    >>> position(np.array([2, 3]), 3)
    {'sentence': 2, 'token': 2}
    """
    ends = np.cumsum(lengths)
    sentence = int(np.searchsorted(ends, token, side="right"))
    first = int(ends[sentence] - lengths[sentence])
    return {"sentence": sentence + 1, "token": int(token) - first + 1}


def located(
    error: InputError, data: Data | Sequence[Any], *, name: str | None = None
) -> InputError:
    """Return an error about a sentence of the data with the file and the line of that sentence.

    ``data`` are columns or blocks. An error that already has a line, that is not about a sentence,
    or whose ``file`` is not ``name`` stays as it is; so do errors about data from no file.
    """
    if error.line is not None or error.sentence is None or error.file != name:
        return error
    i, j = error.sentence - 1, (error.token or 1) - 1
    if isinstance(data, Columns):
        if data.lines is None:
            return error
        file = data.source[i] if isinstance(data.source, list) else data.source
        return error.at(file=file, line=int(data.lines[int(data.lengths[:i].sum()) + j]))
    block = None if isinstance(data, Features) else data[i]
    if not isinstance(block, Block):
        return error
    return error.at(file=block.source, line=block.line_numbers[j])


class locating:  # noqa: N801 - used like a function
    """Errors raised inside about a sentence of the data name its file and line.

    A class, since a generator would take a tenth of the time that a short sentence takes.
    """

    def __init__(self, data: Data | Sequence[Any], *, name: str | None = None) -> None:
        self.data, self.name = data, name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, InputError):
            placed = located(error, self.data, name=self.name)
            if placed is not error:
                raise placed from None
