"""Base class of the tasks over sentences: columns, templates, labels and their storage."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy, deepcopy
from itertools import chain
from typing import Any, Self

import numpy as np

from laso.data.table import (
    Column,
    Columns,
    Data,
    Factor,
    Features,
    numbered,
    split_sentences,
)
from laso.engine.hashing import mix
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.base import WordLists
from laso.features.dense import Vectors
from laso.features.encoder import (
    ColumnEncoder,
    distinct_labels,
    pack_strings,
    unpack_strings,
)
from laso.features.inputs import read_input, read_labels
from laso.features.keys import string_keys
from laso.features.lists import read_word_list
from laso.features.numbered_columns import read_cells
from laso.features.stored_encoder import (
    CHARACTERS,
    bases_of,
    characters,
    checksums,
    restore_encoder,
    values_of,
)
from laso.features.templates import BIAS, LABEL, Template, parse_templates
from laso.tasks import displays
from laso.tasks.base import Task
from laso.tasks.batches import BatchTask
from laso.tasks.feature_names import Namer

USUAL_NAMES = ("w", "pos")


class SequenceTask(Task):
    """Base class of the tasks over sentences.

    A token has columns or a feature list; features are templates over columns. A subclass defines
    the templates, makes the encoder, and encodes gold outputs.
    """

    dense_problem: type[CompiledProblem]
    encoder_: ColumnEncoder
    state_: dict[str, Any]
    display = displays.labels
    lists: WordLists | None = None  # of a model file, which alone are used then; None: read files

    def __init__(self, *, columns: Sequence[str] | None) -> None:
        self.columns = columns

    # ------------------------------------------------------------------ for subclasses

    def words(self, x: Any) -> list[str]:
        """Return the first column of each token; a number for those with features only."""
        firsts = (token[0] if isinstance(token, tuple) and token else token for token in x)
        return [
            first if isinstance(first, str) else f"[{i}]" for i, first in enumerate(firsts, start=1)
        ]

    @abstractmethod
    def templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        """Return the feature templates for columns of these names."""

    def parse(self, templates: str | Iterable[str | Template]) -> tuple[Template, ...]:
        """Parse the feature templates of the task."""
        return parse_templates(templates)

    @abstractmethod
    def make_encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> ColumnEncoder:
        """Return an encoder, for training or for a loaded file; ``state_`` is already set."""

    @abstractmethod
    def gold_numbers(self, data: Data, outputs: Any) -> Array:
        """Return gold outputs as the numbers that the encoder expects."""

    def labels_in(self, data: Data, outputs: Any) -> list[str]:
        """Return the labels that occur, sorted."""
        return distinct_labels(outputs, data.lengths, numbers=True)

    def counts_in(self, data: Data, outputs: Any) -> list[Counter[str]]:
        """Return the frequency of each label, for each layer of labels."""
        return [count_labels(outputs)]

    def state_with(self, state: dict[str, Any] | None, data: Data, outputs: Any) -> dict[str, Any]:
        """Return the task's state, as JSON, updated with more training data."""
        return {}

    def keeps_weights(self, old: ColumnEncoder, new: ColumnEncoder) -> bool:
        """Return whether learned weights stay valid with an encoder of more labels."""
        return new.labels[: len(old.labels)] == old.labels

    # ------------------------------------------------------------------ reading

    def read(self, X: Any, y: Any) -> tuple[Data, Any]:
        """Return sentences and labels; without ``y`` the labels are the last column."""
        data = self.read_data(X, named=True)
        if not data.lengths.sum():
            raise BadData("found no token to learn from, expected at least one")
        if y is not None:
            return self._unlabelled(data), read_labels(y, data.lengths)
        if isinstance(data, Features) or len(data.columns) < 2:
            raise BadData("found no labels: expected y, or tuples whose last column is the label")
        return data.split()

    def read_inputs(self, X: Any) -> Data:
        """Return sentences without their column of labels, if they have one."""
        encoder = getattr(self, "encoder_", None)
        numbered = None
        if encoder is not None and not self.has_vectors:  # an encoder reads words
            numbered = read_cells(X, encoder, self.ignored_columns)
        if numbered is not None:
            return numbered
        return self._unlabelled(self.read_data(X, named=False))

    @property
    def ignored_columns(self) -> int:
        """The number of columns of labels that inputs may have behind their own."""
        return self.n_layers

    def read_data(self, X: Any, *, named: bool) -> Data:
        """Return what the user passed as columns or feature lists, with their names if asked."""
        return read_input(X, named=named)

    def given_vectors(self, inputs: Data) -> Vectors | None:
        """Return the vectors that sentences have of their own, a row for each token."""
        return inputs.vectors

    def sentences(self, inputs: Data) -> list[list[str]]:
        """Return the words of each sentence, which are in the first column."""
        if isinstance(inputs, Features) or not inputs.columns:
            raise BadData(
                "found tokens without words, expected columns that begin with the word, which an "
                "encoder reads, or sentences with vectors"
            )
        return split_sentences(inputs.columns[0], inputs.lengths)

    def _unlabelled(self, data: Data) -> Data:
        encoder = getattr(self, "encoder_", None)
        if (
            encoder is not None
            and encoder.names  # else tokens have features, and no column can be that of labels
            and isinstance(data, Columns)
            and len(data.columns) == len(encoder.names) + self.n_layers
        ):
            return self.split(data)[0]
        return data

    @property
    def n_layers(self) -> int:
        """The number of labels of a token."""
        return 1

    def split(self, data: Columns) -> tuple[Columns, Any]:
        """Return the input columns and the labels, which are the last columns."""
        return data.split()

    def take(self, inputs: Data, chosen: Sequence[int]) -> Data:
        """Return all inputs, since ``decode_all`` does not use them."""
        return inputs

    # ------------------------------------------------------------------ learning from data

    def observe(self, parts: Iterable[tuple[Data, Any]], *, classes: Sequence[str] = ()) -> None:
        """Learn the labels and the state that the encoder needs."""
        old: ColumnEncoder | None = getattr(self, "encoder_", None)
        state = None if old is None else self.state_
        labels, counts, first = set(classes), [Counter[str]()] * self.n_layers, None
        for data, outputs in parts:
            labels.update(self.labels_in(data, outputs))
            more = self.counts_in(data, outputs)
            counts = [a + b for a, b in zip(counts, more, strict=True)]
            state = self.state_with(state, data, outputs)
            first = data if first is None else first
        if first is None:
            raise BadData("found no sentence to learn from, expected at least one")
        known = labels | set(() if old is None else old.labels)
        if len({isinstance(label, str) for label in known}) > 1:
            raise BadData("found both strings and integers as labels, expected those of one kind")
        self.label_counts_ = counts
        if old is None:
            self._begin(first, tuple(sorted(labels)), state or {})
        elif labels - set(old.labels) or state != self.state_:
            self._extend(old, sorted(labels - set(old.labels)), state or {})

    def _begin(self, data: Data, labels: tuple[str, ...], state: dict[str, Any]) -> None:
        if not labels:
            raise BadData("found no label that is known, expected at least one")
        names = self.column_names(len(data.columns) if isinstance(data, Columns) else 0)
        width = data.width if isinstance(data, Features) else -1
        self.state_ = state
        dense = data.vectors is not None or (self.dense is not None and self.dense.encoder)
        self.encoder_ = self.make_encoder(self.parse(self.templates(names)), names, labels, width)
        self.encoder_.has_vectors = bool(dense)
        self._fill_lists(self.encoder_)

    def _fill_lists(self, encoder: ColumnEncoder) -> None:
        """Give the encoder its word lists: those of a model file, or those of the files named."""
        for path in encoder.list_paths:
            if self.lists is not None and path not in self.lists:
                raise BadModel(
                    f"found the word list {quoted(path)}, expected its words in the model file, "
                    "which names no other files to read: train the model again"
                )
            words = read_word_list(path) if self.lists is None else self.lists[path]
            encoder.words[path] = words

    def keep_resources(self, old: BatchTask) -> None:
        """Use the word lists of an older task only, if they came from a model file."""
        self.lists = old.lists if isinstance(old, SequenceTask) else None

    def _extend(self, old: ColumnEncoder, new: Sequence[str], state: dict[str, Any]) -> None:
        before, self.state_ = self.state_, state
        encoder = self.make_encoder(old.templates, old.names, (*old.labels, *new), old.width)
        encoder.has_vectors = old.has_vectors
        if not self.keeps_weights(old, encoder):
            self.state_ = before
            raise BadData(
                f"found the labels {listed(new)}, which training has not seen; expected none, "
                "for the order of the labels would change"
            )
        encoder.copy_vocabulary_from(old)
        self.encoder_ = encoder

    def column_names(self, n: int) -> tuple[str, ...]:
        """Return the names of n input columns, which ``columns`` or defaults define."""
        if self.columns is None or not n:
            return tuple(USUAL_NAMES[i] if i < len(USUAL_NAMES) else str(i) for i in range(n))
        names = tuple(self.columns)
        if len(names) != n:
            raise ValueError(f"columns has {len(names)} names, but the data has {n} columns")
        for name in names:
            usual = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
            if not (usual or name == str(names.index(name))) or name in (LABEL, BIAS):
                raise ValueError(
                    f"found the column name {quoted(name)}, expected letters, digits and _"
                )
        if len(set(names)) < n:
            raise ValueError(f"columns has a name twice: {listed(names)}")
        return names

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of operators, in the order of their numbers."""
        return self.encoder_.labels if hasattr(self, "encoder_") else ()

    # ------------------------------------------------------------------ encoding

    def encode(self, inputs: Data, outputs: Any = None) -> Dataset:
        """Return sentences as arrays; with outputs, for training, new column values get numbers."""
        if outputs is None:
            return self.encoder_.dataset(inputs)
        self.encoder_.grow(inputs)
        self.__dict__.pop("namer_", None)
        return self.encoder_.dataset(inputs, self.gold_numbers(inputs, outputs))

    def problem_for(self, dataset: Dataset) -> type[CompiledProblem]:
        """Return the problem for words that have dense vectors, if they have."""
        return self.dense_problem if dataset.vectors.shape[1] else self.problem

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift pool indices by ``offset``."""
        return self.encoder_.shift_pool(items, offset)

    def joint_constants(self, longest: int, most: int) -> Array:
        """Return the constants for pieces of data that were encoded one by one."""
        return self.encoder_.spec_for(longest, most if not self.encoder_.names else None)

    def coded_outputs(self, inputs: Data, steps: Array, ends: Array) -> tuple[Array, Sequence[Any]]:
        """Return the outputs of all tokens, one after the other: their codes, and what these mean.

        ``steps`` and ``ends`` are those of ``decode_all``.
        """
        return numbered(list(chain.from_iterable(self.decode_all(inputs, steps, ends))))

    def gold_outputs(self, inputs: Data, outputs: Any) -> list[Any]:
        """Return the labels as a list for each sentence."""
        return split_sentences(outputs, inputs.lengths)

    def evaluation(self, gold: Sequence[Any], predicted: Sequence[Any]) -> Any:
        """Return the scores of chunks, tokens and sentences."""
        from laso.metrics.evaluation import evaluated

        return evaluated(gold, predicted)

    # ------------------------------------------------------------------ names

    def decisions(self, y: Any) -> set[tuple[str, int, int]] | None:
        """Return the label of each token as (label, first token, end)."""
        return {(joined_label(label), i, i + 1) for i, label in enumerate(y)}

    def tags_of(self, layer: bool | str) -> Callable[[Any], Sequence[str]]:
        """Return a function from an output to its chunk tags."""
        if layer is not True:
            raise ValueError(f"chunks must be False or True, found {layer!r}")
        return lambda output: output

    def longest_step(self, name: str) -> int:
        """Return 1 for a label, 0 for anything else."""
        return int(name in self.encoder_.labels)

    def namer(self) -> Namer:
        """Return the object that names features, for the current encoder."""
        if not hasattr(self, "namer_"):
            self.namer_ = Namer(self.encoder_)
        return self.namer_

    def describe_feature(self, numbers: Sequence[int], items: Array) -> str | None:
        """Return the template with the values of its atoms."""
        return self.namer().name(numbers, items)

    def feature_names(self, keys: Array) -> dict[int, str]:
        """Return names for the feature keys that known words and labels can produce."""
        return self.namer().of_keys(keys)

    def add_names(self, other: BatchTask) -> None:
        """Take over the names of features that another task of the same data knows."""
        assert isinstance(other, SequenceTask)
        known = self.encoder_.attributes
        self.encoder_.attributes = {**known, **other.encoder_.attributes}

    def bias_keys(self) -> Sequence[int]:
        """Return the feature key of ``bias``, or the keys of ``label[-1]`` for all labels."""
        names = [str(template) for template in self.encoder_.templates]
        if BIAS in names:
            return [int(string_keys([BIAS])[0])]
        if f"{LABEL}[-1]" not in names:
            return []
        return [self._key_after(-1), *self.transition_keys()]  # every step has one of these

    def transition_keys(self) -> dict[int, str]:
        """Return the keys of the feature ``label[-1]``, with the label that each stands for."""
        return {self._key_after(i): label for i, label in enumerate(self.encoder_.labels)}

    def _key_after(self, label: int) -> int:
        return mix(int(string_keys([f"{LABEL}[-1]"])[0]), label)

    # ------------------------------------------------------------------ files

    def copied(self) -> Self:
        """Return a copy that may learn more while this one predicts in other threads."""
        copied = copy(self)
        copied.__dict__.pop("namer_", None)
        copied.encoder_, copied.state_ = self.encoder_.copied(), deepcopy(self.state_)
        return copied

    def state(self) -> dict[str, Any]:
        """Return the state that the encoder needs beside the labels."""
        return dict(self.state_)

    def pack(self, keys: Array | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return labels, columns, templates and state, and the values of the columns."""
        encoder = self.encoder_
        tensors = values_of(encoder)
        if encoder.attributes and keys is not None:
            known = [encoder.attributes[key] for key in keys.tolist() if key in encoder.attributes]
            tensors["attributes"] = pack_strings(known)
        for i, words in enumerate(encoder.words.values()):
            tensors[f"list.{i}"] = pack_strings(sorted(words))
        header = {
            "labels": list(encoder.labels),
            "columns": list(encoder.names),
            "width": encoder.width,
            "templates": [str(template) for template in encoder.templates],
            "state": self.state(),
            "base features": checksums(encoder),
        }
        if encoder.words:
            header["lists"] = list(encoder.words)
        return header, tensors

    def pack_plain(
        self, header: dict[str, Any], tensors: dict[str, Array]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what ``pack`` returned, with base features that need not be computed."""
        return {**header, CHARACTERS: characters()}, {**tensors, **bases_of(self.encoder_)}

    def unpack(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Restore what ``pack`` or ``pack_plain`` returned."""
        labels, names = check_labels(header["labels"]), check_strings(header["columns"])
        templates = self.parse(check_strings(header["templates"]))
        self.state_ = dict(header["state"])
        self.restore(self.state_)
        width = header["width"]
        if type(width) is not int or width < -1:
            raise BadModel(f"found the width {quoted(width)}")
        lists = check_strings(header.get("lists", []))
        self.lists = {
            path: frozenset(unpack_strings(tensors[f"list.{i}"])) for i, path in enumerate(lists)
        }
        encoder = self.make_encoder(templates, tuple(names), tuple(labels), width)
        encoder.has_vectors = self.has_vectors
        self._fill_lists(encoder)
        restore_encoder(encoder, header, tensors)
        if "attributes" in tensors:
            encoder.attributes = tensors["attributes"]
        self.encoder_ = encoder


def check_labels(value: Any) -> list[Any]:
    """Return the value if it is a list of distinct strings or integers, else raise BadModel."""
    if isinstance(value, list) and value and all(type(each) is int for each in value):
        check_strings([*map(str, value)])
        return value
    return check_strings(value)


def check_strings(value: Any) -> list[str]:
    """Return the value if it is a list of distinct strings, else raise BadModel."""
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadModel(f"found {quoted(value)}, expected a list of strings")
    if len(set(value)) < len(value):
        raise BadModel("found a name twice")
    return value


def resolve_features(
    features: str | Sequence[str | Template] | None,
    resources: Sequence[str],
    sets: Mapping[Any, Callable[..., Sequence[str]]],
    *names: Sequence[str],
) -> str | Sequence[str | Template]:
    """Return the templates of a named feature set, or the user's own templates.

    The name None stands for the default set.
    """
    if features is None or (isinstance(features, str) and features in sets):
        return sets[features](*names, resources)
    if resources:
        raise ValueError(
            f"resources={quoted(resources)} are for the features {' and '.join(map(str, sets))} "
            f"only, found features={quoted(features)}"
        )
    return features


def joined_label(label: Any) -> str:
    """Return a label, or the labels of several layers, as one string."""
    return "/".join(map(str, label)) if isinstance(label, tuple) else label


def count_labels(column: Column) -> Counter[str]:
    """Return the frequency of each label."""
    if isinstance(column, Factor):
        numbers = np.bincount(column.codes, minlength=len(column.values)).tolist()
        return Counter(dict(zip(column.values, numbers, strict=True)))
    return Counter(label for label in column if label is not None)
