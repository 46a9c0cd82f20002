"""What answers the predictions of a fitted estimator, prepared once and kept until it learns more.

One sentence at a time with feature lists goes from Python's objects to labels by two native calls,
in arrays that stay where they are. What these cannot read or decode is left to the general code.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine.decoder import Decoder, KeptDecoder
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.engine.text import layout as lt
from laso.estimators.learning.tables import may_overflow
from laso.features.feature_lists import ListReader, is_usable

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

KEY = "decoders"  # among what is prepared
OF = ("weights_", "task_", "queue", "update", "strategy")  # the attributes that decide


def decoders_of(model: Predictor) -> Decoders:
    """Return the decoders of a model, which is a snapshot, for its present weights."""
    kept: Decoders | None = model.prepared.get(KEY)
    if kept is None or not all(map(is_, kept.of, map(vars(model).get, OF))):
        kept = model.prepared[KEY] = Decoders(model)
    return kept


class Decoders:
    """A decoder for each problem of a model's task, and arrays for single sentences.

    Several threads may use it: each takes the arrays out of those that are free, or makes them.
    """

    def __init__(self, model: Predictor) -> None:
        self.of = [*map(vars(model).get, OF)]  # not the model, which this belongs to
        self._by_problem: dict[type[CompiledProblem], Decoder] = {}
        self._kinds: int | None = None  # of the feature lists that native code reads
        self._free: list[_Arrays] = []

    def for_dataset(self, model: Predictor, dataset: Dataset) -> Decoder:
        """Return the decoder for a dataset of the task."""
        problem = model.task_.problem_for(dataset)
        if problem not in self._by_problem:
            self._by_problem[problem] = Decoder(model.engine(dataset), model.weights_)
        return self._by_problem[problem]

    def labels_of_lists(self, model: Predictor, x: Any) -> list[str] | None:
        """Return the labels of a sentence with feature lists; None if the general code must."""
        if self._kinds is None:
            self._kinds = model.task_.list_kinds() if is_usable() else 0
        if not self._kinds:
            return None
        try:
            arrays = self._free.pop()
        except IndexError:
            arrays = _Arrays(self, model.task_.classes, self._kinds)
        labels = arrays.labels(model, x)
        self._free.append(arrays)
        return labels


class _Arrays:
    """The arrays for one sentence at a time."""

    def __init__(self, decoders: Decoders, names: Sequence[str], kinds: int) -> None:
        self.of, self.names, self.kinds, self.reader = decoders, names, kinds, ListReader()
        self.most = -1  # features of a token, of which the constants know
        self.spec: Array
        self.decoders: dict[bool, KeptDecoder] = {}

    def labels(self, model: Predictor, x: Any) -> list[str] | None:
        """Return the labels of a sentence; None if the general code must."""
        counts = self.reader.read_one(x, self.kinds)
        if counts is None or not counts[lt.N_TOKENS]:
            return None
        n, longest, weighted = counts[lt.N_FEATURES], counts[lt.MOST_LISTED], counts[lt.NOT_ONE] > 0
        if longest > self.most:
            self.spec, self.most = model.task_.joint_constants(1, longest), longest
        decoder = self.decoders.get(weighted) or self._new_decoder(model, weighted)
        if weighted and may_overflow(self.reader.lists.values[:n], decoder.decoder.largest_weight):
            return None
        numbers = decoder.labels(counts[lt.N_TOKENS], n, self.spec)
        return None if numbers is None else [*map(self.names.__getitem__, numbers)]

    def _new_decoder(self, model: Predictor, weighted: bool) -> KeptDecoder:
        lists, longs = self.reader.lists, np.zeros(2, np.int64)
        values = lists.values if weighted else lists.values[:0]
        nothing = np.zeros(0, np.int32)
        dataset = Dataset(lists.items, longs, lists.keys, values, self.spec, nothing, longs)
        decoder = KeptDecoder(self.of.for_dataset(model, dataset), dataset)
        self.decoders[weighted] = decoder
        return decoder
