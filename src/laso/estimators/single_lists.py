"""One sentence at a time with feature lists: from Python's objects to labels by two native calls.

It does what ``encoded`` and ``decode`` of an estimator do, in arrays that stay where they are. What
it cannot read or decode in them is left to these.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.engine.single import KeptDecoder
from laso.engine.text import layout as lt
from laso.estimators.tables import may_overflow
from laso.features.marshalled import ListReader, is_usable

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

KEY = "single lists"  # among what is prepared


def labels_of_lists(model: Predictor, x: Any) -> list[str] | None:
    """Return the labels of a sentence with feature lists; None if the general code must.

    ``model`` is a snapshot.
    """
    own = vars(model)
    kept: SingleLists | None = model.prepared.get(KEY)
    if kept is None or not all(map(is_, kept.of, map(own.get, OF))):
        if "weights_" not in own:
            return None
        kept = model.prepared[KEY] = SingleLists(model)
    return kept.labels(model, x)


OF = ("weights_", "task_", "queue", "update", "strategy")  # the attributes that decide


class SingleLists:
    """What labels sentences with the present weights and parameters of a model.

    Several threads may call it: each takes the arrays out of those that are free, or makes them.
    """

    def __init__(self, model: Predictor) -> None:
        self.of = [*map(vars(model).get, OF)]  # not the model, which this belongs to
        self.kinds = model.task_.list_kinds() if is_usable() else 0
        self._free: list[_Arrays] = []

    def labels(self, model: Predictor, x: Any) -> list[str] | None:
        """Return the labels of a sentence; None if the general code must."""
        if not self.kinds:
            return None
        try:
            arrays = self._free.pop()
        except IndexError:
            arrays = _Arrays(model.task_.classes, self.kinds)
        found = arrays.labels(model, x)
        self._free.append(arrays)
        return found


class _Arrays:
    """The arrays for one sentence at a time."""

    def __init__(self, names: Sequence[str], kinds: int) -> None:
        self.names, self.kinds, self.reader = names, kinds, ListReader()
        self.most = -1  # features of a token, of which the constants know
        self.spec: Array
        self.decoders: dict[bool, KeptDecoder] = {}

    def labels(self, model: Predictor, x: Any) -> list[str] | None:
        """Return the labels of a sentence; None if the general code must."""
        found = self.reader.read_one(x, self.kinds)
        if found is None or not found[lt.N_TOKENS]:
            return None
        n, most, weighted = found[lt.N_FEATURES], found[lt.MOST_LISTED], found[lt.NOT_ONE] > 0
        if most > self.most:
            self.spec, self.most = model.task_.joint_constants(1, most), most
        if weighted and may_overflow(self.reader.lists.values[:n], model.largest_weight()):
            return None
        decoder = self.decoders.get(weighted) or self._new_decoder(model, weighted)
        numbers = decoder.labels(found[lt.N_TOKENS], n, self.spec)
        return None if numbers is None else [*map(self.names.__getitem__, numbers)]

    def _new_decoder(self, model: Predictor, weighted: bool) -> KeptDecoder:
        lists, longs = self.reader.lists, np.zeros(2, np.int64)
        values = lists.values if weighted else lists.values[:0]
        nothing = np.zeros(0, np.int32)
        own = Dataset(lists.items, longs, lists.keys, values, self.spec, nothing, longs)
        made = KeptDecoder(model.engine(own), model.weights_, own)
        self.decoders[weighted] = made
        return made
