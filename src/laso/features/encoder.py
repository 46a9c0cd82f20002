"""Columns and feature lists of tokens as arrays of integers.

Each column has a vocabulary, which numbers its values; base features are computed once for each
distinct value. A value that did not occur in training gets the number ``UNKNOWN``, whose features
have no weights.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, Self, cast

import numpy as np

from laso.data.table import Column, Columns, Data, Factor, Features, ItemColumns, position
from laso.engine.layout import Array, Dataset
from laso.errors import BadData, BadModel, BadTemplate, listed, quoted
from laso.features.base import WordLists, apply_bases, list_path
from laso.features.keys import string_keys
from laso.features.templates import LABEL, Atom, Template, shown
from laso.features.vocabulary import UNKNOWN, Vocabulary

MOST_FEATURES = 2**31 - 1  # items are 32 bits wide


@dataclass
class View:
    """The numbers of one chain of base features of an input column: a column of the items."""

    column: int
    bases: tuple[str, ...]
    words: WordLists
    ids: Vocabulary = field(default_factory=Vocabulary)  # that of the column without bases
    of_value: Array = field(default_factory=lambda: np.zeros(0, np.int32))  # number of each value

    def grow(self, values: Sequence[str]) -> None:
        """Number the base features of new values of the column."""
        based = apply_bases(self.bases, values, self.words)
        self.of_value = np.concatenate([self.of_value, self.ids.add(based)])

    def encode(self, codes: Array, unknown: Sequence[str]) -> Array:
        """Return the numbers for value codes; codes beyond the known values index ``unknown``."""
        numbers = self.of_value
        if unknown:
            numbers = np.concatenate([numbers, self.numbers(unknown)])
        return np.asarray(numbers[codes])

    def numbers(self, values: Sequence[str]) -> Array:
        """Return the numbers of values that the column did not have in training."""
        if not self.bases:
            return np.full(len(values), UNKNOWN, np.int32)
        return self.ids.numbers(apply_bases(self.bases, values, self.words))

    def checksum(self) -> int:
        """Return a checksum of the base features of all known values."""
        crc = zlib.crc32(self.of_value.astype("<i4").tobytes())
        for tensor in self.ids.pack().values():
            crc = zlib.crc32(tensor.tobytes(), crc)
        return crc


@dataclass
class ColumnEncoder:
    """Encodes the columns of sentences by dictionaries that training fills.

    The encoder of a task is a subclass, which adds the problem's constants and the gold outputs.
    """

    templates: tuple[Template, ...]
    names: tuple[str, ...]  # of the columns; empty if tokens have feature lists
    labels: tuple[str, ...]
    width: int = -1  # of matrices
    has_vectors: bool = field(default=False, kw_only=True)  # whether tokens have dense vectors
    vocabularies: dict[int, Vocabulary] = field(default_factory=dict)
    views: dict[tuple[int, tuple[str, ...]], View] = field(default_factory=dict)
    words: dict[str, frozenset[str]] = field(default_factory=dict)  # of lists, by path
    _specs: dict[Any, Array] = field(default_factory=dict, repr=False)
    _attributes: dict[int, str] | Array = field(default_factory=dict, repr=False)
    lexicon: Any = field(default=None, repr=False)  # see laso.features.value_tables.known_values

    def __post_init__(self) -> None:
        for template in self.templates:
            self._check_template(template)
            for atom in template.atoms:
                if self._is_input(atom):
                    column = self._column(template, atom.column)
                    values = self.vocabularies.setdefault(column, Vocabulary())
                    ids = Vocabulary() if atom.bases else values
                    view = View(column, atom.bases, self.words, ids)
                    self.views.setdefault((column, atom.bases), view)

    def __getstate__(self) -> dict[str, Any]:
        """Return what a copy or another process gets: nothing that is quickly made again."""
        return {**self.__dict__, "lexicon": None}

    @property
    def attributes(self) -> dict[int, str]:
        """The names of listed features, by key; those of a file are unpacked when one is needed."""
        if isinstance(self._attributes, np.ndarray):
            try:
                self.attributes = named_keys(unpack_strings(self._attributes))
            except ValueError as error:
                raise BadModel(f"found no names of features: {error}") from error
        return cast("dict[int, str]", self._attributes)

    @attributes.setter
    def attributes(self, names: dict[int, str] | Array) -> None:
        self._attributes = names

    def _is_input(self, atom: Atom) -> bool:
        """Return whether the atom refers to an input column."""
        return atom.is_column

    def _check_template(self, template: Template) -> None:
        for atom in template.atoms:
            if atom.place:
                raise BadTemplate(
                    f"template {shown(template)}: found {quoted(str(atom))}, a place in a chunk, "
                    "expected an offset from a word"
                )

    def _column(self, template: Template, column: str) -> int:
        if column in self.names:
            return self.names.index(column)
        if column.isdigit() and int(column) < len(self.names):
            return int(column)
        if not self.names:
            raise BadTemplate(
                f"template {shown(template)}: found the column {quoted(column)}, but the "
                "tokens have features of their own: expected labels and bias only (columns are "
                "given as tuples)"
            )
        raise BadTemplate(
            f"template {shown(template)}: found the column {quoted(column)}, expected one of "
            f"{listed(self.names)} or a number below {len(self.names)}"
        )

    @property
    def list_paths(self) -> list[str]:
        """The paths of the word lists that base features look up."""
        paths = (list_path(base) for view in self.views.values() for base in view.bases)
        return list(dict.fromkeys(path for path in paths if path is not None))

    def grow(self, data: Data) -> None:
        """Add the values of the columns to the dictionaries."""
        if isinstance(data, Features):
            self.learn_attributes(data.names)
            return
        self._check_columns(data)
        for column, known in self.vocabularies.items():
            self.learn_values(column, _new_values(data.columns[column], known, data.lengths))

    def copy_vocabulary_from(self, other: ColumnEncoder) -> None:
        """Copy the values, word lists and feature names of another encoder, with its numbers."""
        self.words.update(other.words)
        for column, values in other.vocabularies.items():
            self.learn_values(column, list(values))
        self.attributes = {**self.attributes, **other.attributes}

    def copied(self) -> Self:
        """Return a copy that may grow while this one encodes in other threads."""
        copied = copy(self)
        copied.vocabularies = {column: known.copy() for column, known in self.vocabularies.items()}
        copied.words = {**self.words}
        copied.views = {}
        for key, view in self.views.items():
            ids = view.ids.copy() if view.bases else copied.vocabularies[view.column]
            copied.views[key] = replace(view, ids=ids, words=copied.words)
        copied.attributes, copied._specs, copied.lexicon = (
            {**self.attributes},
            {**self._specs},
            None,
        )
        return copied

    def learn_attributes(self, names: Sequence[str]) -> None:
        """Store the names of the features in feature lists."""
        self.attributes |= named_keys(names)

    def learn_values(self, column: int, values: Sequence[str]) -> None:
        """Number new values of a column, in their order, and their base features."""
        self.vocabularies[column].add(values)
        for view in self.views.values():
            if view.column == column:
                view.grow(values)

    def dataset(self, data: Data, gold: Any = None) -> Dataset:
        """Return the arrays for the engine; ``gold`` has the form that the task defines."""
        raise NotImplementedError

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift pool indices by ``offset``."""
        return items

    def spec_for(self, longest: int, most: int | None) -> Array:
        """Return the problem's constants for sentences of at most ``longest`` tokens.

        ``most`` is the length of the longest feature list of a token; None: there are no lists.
        """
        raise NotImplementedError

    def labels_of(self, column: str) -> Sequence[str]:
        """Return the labels that a template column stands for; empty for an input column."""
        return self.labels if column == LABEL else ()

    def templates_by_key(self) -> dict[int, Template]:
        """Return the templates by their root keys, with the atoms in the order of hashing."""
        keys = string_keys([template.identity for template in self.templates]).tolist()
        return dict(zip(reversed(keys), reversed(self.templates), strict=True))

    def trailing_values(self, template: Template) -> list[Array]:
        """Return the possible values that are hashed into the feature key after the atoms."""
        return []

    def _column_items(self, data: Columns, n: int) -> Array:
        if isinstance(data, ItemColumns):
            return data.items
        # At least one column: the engine reads the number of items off the array's shape.
        items = np.zeros((n, max(1, len(self.views))), np.int32)
        if n:
            self._check_columns(data)
            coded = {
                column: _encode_column(data.columns[column], known, data.lengths)
                for column, known in self.vocabularies.items()
            }
            for i, view in enumerate(self.views.values()):
                items[:, i] = view.encode(*coded[view.column])
        return items

    def _check_columns(self, data: Columns) -> None:
        if len(data.columns) != len(self.names):
            raise BadData(
                f"found {len(data.columns)} columns, expected {self.trained_on()}",
                **first_token(data.lengths),
            )

    def trained_on(self) -> str:
        """Return the kind of input that the model was trained on, for messages."""
        kind = f"{len(self.names)} columns ({listed(self.names)})"
        if not self.names:
            kind = "tokens with features of their own, as dicts or lists of strings"
        if self.width >= 0:
            kind = f"a matrix of {self.width} columns"
        return f"{kind}, as the model was trained on"


def first_token(lengths: Array) -> Any:
    """Return the position of the first token, for an error that is about all of them."""
    return position(lengths, 0) if lengths.sum() else {}


def _new_values(column: Column, known: Vocabulary, lengths: Array) -> list[str]:
    check_hashable(column, lengths)
    values = column.values if isinstance(column, Factor) else dict.fromkeys(column)
    numbers = known.by_string
    new = [value for value in values if value not in numbers]
    if not isinstance(column, Factor):
        _check_strings(new, column, lengths)
    return new


def check_hashable(column: Column, lengths: Array) -> None:
    """Raise BadData at the first value that is a list, a dict or the like, and so no string."""
    try:
        hash(None if isinstance(column, Factor) else tuple(column))
    except TypeError:
        i = next(i for i, value in enumerate(column) if not _is_hashable(value))  # type: ignore[arg-type]
        raise BadData(
            f"found {quoted(column[i])} in a column, expected a string",  # type: ignore[index]
            **position(lengths, i),
        ) from None


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _check_strings(values: Iterable[Any], column: Sequence[Any], lengths: Array) -> None:
    for value in values:
        if not isinstance(value, str):
            raise BadData(
                f"found {quoted(value)} in a column, expected a string",
                **position(lengths, list(column).index(value)),
            )


def _encode_column(column: Column, known: Vocabulary, lengths: Array) -> tuple[Array, list[str]]:
    """Return the codes of a column and its unknown values, whose codes follow the known ones."""
    n = len(known)
    if isinstance(column, Factor):
        of_value = known.numbers(column.values)
        unknown = [column.values[i] for i in np.flatnonzero(of_value < 0).tolist()]
        of_value[of_value < 0] = np.arange(n, n + len(unknown))
        return of_value[column.codes], unknown
    check_hashable(column, lengths)
    codes = known.numbers(column)
    new: dict[str, int] = {}
    for i in np.flatnonzero(codes < 0).tolist():
        codes[i] = n + new.setdefault(column[i], len(new))
    _check_strings(new, column, lengths)
    return codes, list(new)


def is_number(label: Any) -> bool:
    """Return whether a label is an integer."""
    return isinstance(label, (int, np.integer)) and not isinstance(label, bool)


def distinct_labels(column: Column, lengths: Array, *, numbers: bool = False) -> list[Any]:
    """Return the labels that occur, sorted, without None (unknown): strings, or ``numbers``."""
    if isinstance(column, Factor):
        return sorted(column.values)
    check_hashable(column, lengths)
    labels = [label for label in dict.fromkeys(column) if label is not None]
    if numbers and labels and all(map(is_number, labels)):
        return sorted(map(int, labels))
    for label in labels:
        if not isinstance(label, str):
            raise BadData(
                f"found the label {quoted(label)}, expected a string or None"
                + (", or integers only" if numbers else ""),
                **position(lengths, list(column).index(label)),
            )
    return sorted(labels)


def label_numbers(column: Column, labels: Sequence[str], lengths: Array) -> Array:
    """Return the labels of all tokens as numbers, -1 for None (unknown)."""
    number: dict[Any, int] = {label: i for i, label in enumerate(labels)}
    number[None] = -1
    if isinstance(column, Factor):
        of_value = np.array([number.get(value, -2) for value in column.values], np.int32)
        codes = of_value[column.codes]
    else:
        check_hashable(column, lengths)
        codes = np.fromiter(map(number.get, column, repeat(-2)), np.int32, len(column))
    if len(codes) and codes.min() < -1:
        i = int(np.argmin(codes))
        unseen = column.values[column.codes[i]] if isinstance(column, Factor) else column[i]
        raise BadData(
            f"found the label {quoted(unseen)}, which training has not seen; expected one of "
            f"{listed(labels)}",
            **position(lengths, i),
        )
    return codes


def sentence_starts(lengths: Array) -> Array:
    """Return the first token of each sentence, and the number of all tokens."""
    if len(lengths) == 1:  # a short call
        return np.array([0, lengths.item()], np.int64)
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.add.accumulate(lengths, out=starts[1:])
    return starts


def require_columns(data: Data) -> Columns:
    """Return the data if tokens have columns; raise BadData if they have feature lists."""
    if isinstance(data, Features):
        raise BadData(
            "found tokens with features of their own, expected words or columns, as the model was "
            "trained on",
            **first_token(data.lengths),
        )
    return data


def take_inputs(dataset: Dataset, chosen: Array) -> Dataset:
    """Return the dataset of the chosen inputs."""
    rows, starts = _rows(dataset.starts, chosen)
    output_rows, output_starts = rows[:0], dataset.output_starts
    if len(output_starts) == len(dataset.starts):  # else there are none
        output_rows, output_starts = _rows(dataset.output_starts, chosen)
    return dataset._replace(
        items=dataset.items[rows],
        vectors=dataset.vectors[rows] if len(dataset.vectors) else dataset.vectors,
        starts=starts,
        outputs=dataset.outputs[output_rows],
        output_starts=output_starts,
    )


def _rows(starts: Array, chosen: Array) -> tuple[Array, Array]:
    """Return the rows of the chosen ranges that begin at ``starts``, and their new starts."""
    lengths = np.diff(starts)[chosen]
    new = sentence_starts(lengths)
    return np.repeat(starts[chosen] - new[:-1], lengths) + np.arange(new[-1]), new


def named_keys(names: Sequence[str]) -> dict[int, str]:
    """Return names of features by their keys."""
    return dict(zip(string_keys(names).tolist(), names, strict=True))


def pack_strings(strings: Sequence[str]) -> Array:
    """Return strings as an array of bytes, for a model file."""
    return np.frombuffer(json.dumps(strings, separators=(",", ":")).encode("ascii"), np.uint8)


def unpack_strings(stored: Array) -> list[str]:
    """Return the strings that ``pack_strings`` packed."""
    strings = json.loads(stored.tobytes().decode("ascii"))
    if not isinstance(strings, list) or not set(map(type, strings)) <= {str}:
        raise ValueError("found something else than a list of strings")
    return strings
