"""Tags for a model that learns from tags and will see predicted ones: a pipeline of estimators.

A parser that learned from gold tags trusts them too much when they are predicted. So the tags of
its training data are predicted too, each by a tagger that has not learned from that sentence
(jackknifing): the data is split into folds, and a tagger of the other folds tags each. A tagger of
all the data tags what comes later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.data.table import Column, Columns, Data, columns_of, value_list
from laso.engine.layout import Array
from laso.errors import BadData, BadModel, listed
from laso.features.dense import with_vectors
from laso.features.encoder import require_columns
from laso.files.container import file_bytes
from laso.files.limits import inner_limit

if TYPE_CHECKING:
    from laso.estimators.search import SearchEstimator

TENSOR = "tagger."  # the beginning of the names of tensors that hold model files


@dataclass
class Jackknife:
    """Predicts the columns of tags that a task reads, from the first column.

    Parameters
    ----------
    taggers : mapping
        An estimator for each column that is predicted, by the column's name, in their order; a
        single one under the name None predicts as many columns as its labels have.
    folds : int
        The number of parts of the training data.
    fitted : list
        The estimators that have learned from all the training data; empty before that.
    """

    taggers: Mapping[str | None, SearchEstimator]
    folds: int
    fitted: list[SearchEstimator] = field(default_factory=list)

    def learned(self, data: Data, names: tuple[str, ...]) -> Columns:
        """Learn to tag; return the training data with predicted tags, those of each fold apart."""
        table = require_columns(data)
        n, columns = len(table), [table.columns[0]]
        if n < 2:
            raise BadData(f"found {n} sentences, expected at least two: tags are jackknifed")
        self.fitted, first = [], 1
        for tagger, layers in zip(self.taggers.values(), self._layers(names), strict=True):
            gold = table.columns[first : first + layers]
            first += layers
            known = [tuple(labels) for labels in zip(*map(value_list, gold), strict=True)]
            labels = known if layers > 1 else [label for (label,) in known]
            columns += self._jackknifed(tagger, table, labels, layers)
        return replace(table, columns=columns)

    def tagged(self, data: Data) -> Columns:
        """Return sentences with their predicted tags, in place of those that they may have."""
        table = require_columns(data)
        if not len(table):
            return table
        words = replace(table, columns=table.columns[:1])
        columns = [table.columns[0]]
        inputs = _sentences(words)
        for tagger in self.fitted:
            labels = list(chain.from_iterable(tagger.predict(inputs)))
            columns += _columns(labels, _n_layers(tagger))
        return replace(table, columns=columns)

    def tags_of(self, data: Data) -> list[list[Any]]:
        """Return the tags of each sentence that ``tagged`` returned: a tuple for each word."""
        table = require_columns(data)
        columns = map(value_list, table.columns[1:])
        return _split(list(zip(*columns, strict=True)), table.lengths)

    def _jackknifed(
        self, tagger: SearchEstimator, table: Columns, labels: list[Any], layers: int
    ) -> list[Column]:
        inputs = _sentences(replace(table, columns=table.columns[:1]))
        gold = _split(labels, table.lengths)
        predicted: list[Any] = [None] * len(inputs)
        k = min(self.folds, len(inputs))
        for fold in range(k):
            rest = [i for i in range(len(inputs)) if i % k != fold]
            held = range(fold, len(inputs), k)
            fitted = _unfitted(tagger).fit([inputs[i] for i in rest], [gold[i] for i in rest])
            for i, tags in zip(held, fitted.predict([inputs[i] for i in held]), strict=True):
                predicted[i] = tags
        self.fitted.append(_unfitted(tagger).fit(inputs, gold))
        return _columns(list(chain.from_iterable(predicted)), layers)

    def _layers(self, names: tuple[str, ...]) -> list[int]:
        """Return the number of columns of each tagger, which must be those after the first."""
        layers = [_n_layers(tagger) for tagger in self.taggers.values()]
        known, expected = list(self.taggers), list(names[1 : 1 + sum(layers)])
        if sum(layers) > len(names) - 1:
            raise BadData(
                f"found the columns {listed(names)}, expected {sum(layers)} of tags after the first"
            )
        if None not in known and known != expected:
            raise ValueError(f"found taggers for {listed(known)}, expected {listed(expected)}")
        return layers

    # ------------------------------------------------------------------ files

    def pack(self, *, compress: bool = True) -> dict[str, Array]:
        """Return the fitted taggers as model files."""
        from laso.files.estimator import packed_model

        packed = (packed_model(each, None, False, compress=compress) for each in self.fitted)
        files = (file_bytes(*each, compress=compress) for each in packed)
        return {f"{TENSOR}{i}": np.frombuffer(data, np.uint8) for i, data in enumerate(files)}

    def unpack(self, tensors: Mapping[str, Array]) -> None:
        """Take over the taggers that ``pack`` returned."""
        from laso.files.estimator import from_bytes

        names = [name for name in tensors if name.startswith(TENSOR)]
        expected = [f"{TENSOR}{i}" for i in range(len(self.taggers))]
        if sorted(names) != sorted(expected):
            raise BadModel(f"found {len(names)} taggers in the file, expected {len(expected)}")
        files = [tensors[name].tobytes() for name in expected]
        self.fitted = [from_bytes(data, limit=inner_limit(len(data))) for data in files]
        for stored, tagger in zip(self.fitted, self.taggers.values(), strict=True):
            if type(stored) is not type(tagger):
                raise BadModel(f"found a {type(stored).__name__} that tags for the model")


def _unfitted(tagger: SearchEstimator) -> SearchEstimator:
    return type(tagger)(**tagger.get_params())


def _n_layers(tagger: SearchEstimator) -> int:
    return int(getattr(tagger.make_task(), "n_layers", 1))


def _sentences(words: Columns) -> list[list[tuple[str]]]:
    column = value_list(words.columns[0])
    sentences = _split([(word,) for word in column], words.lengths)
    return sentences if words.vectors is None else list(map(with_vectors, sentences, words.vectors))


def _split(values: list[Any], lengths: Array) -> list[Any]:
    return [values[a:b] for a, b in pairwise([0, *np.cumsum(lengths).tolist()])]


def _columns(labels: list[Any], layers: int) -> list[Column]:
    return columns_of(labels if layers > 1 else [(label,) for label in labels], layers)
