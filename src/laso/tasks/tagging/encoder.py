"""Sentences as arrays for the tagging problem."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from laso.data.table import Data, Features
from laso.engine.layout import Array, Dataset
from laso.errors import BadData
from laso.features.encoder import MOST_FEATURES, ColumnEncoder, first_token, sentence_starts
from laso.features.keys import string_keys
from laso.features.templates import LABEL
from laso.features.windows import INSIDE_ATOM, LABEL_ATOM, Program
from laso.locks import cached_property
from laso.tasks.constraints import Constraints, check_labels
from laso.tasks.tagging.problem import make_spec

NO_KEYS, NO_VALUES = np.zeros(0, np.int64), np.zeros(0, np.float32)


@dataclass
class TaggingEncoder(ColumnEncoder):
    """Encodes sentences whose tokens have one label each."""

    constraints: Constraints | None = None
    start_features: bool = True
    vector_window: int = 0

    @cached_property
    def program(self) -> Program:
        """The templates as a program."""
        items = {key: i for i, key in enumerate(self.views)}
        label_atom = LABEL_ATOM if self.start_features else INSIDE_ATOM
        ids = string_keys([template.identity for template in self.templates]).tolist()
        return [
            (
                key,
                [
                    (label_atom, atom.offset)
                    if atom.column == LABEL
                    else (items[self._column(template, atom.column), atom.bases], atom.offset)
                    for atom in template.atoms
                ],
            )
            for key, template in zip(ids, self.templates, strict=True)
        ]

    def dataset(self, data: Data, gold: Array | None = None) -> Dataset:
        """Return the arrays for the engine; ``gold`` has the label of each token, -1 if unknown."""
        lengths = data.lengths
        starts = sentence_starts(lengths)
        n = int(starts[-1])
        pool, values = NO_KEYS, NO_VALUES
        lists = (-1, 0)
        if isinstance(data, Features):
            items, lists = self._list_items(data)
            pool = data.keys
            values = NO_VALUES if data.values is None else data.values
        else:
            items = self._column_items(data, n)
        sets = None
        if gold is None:
            outputs = np.empty(n, np.int32)
            outputs.fill(-1)
        else:
            outputs, sets = self._outputs(gold, starts)
        self._check_lengths(lengths)
        longest = int(lengths.max(initial=1)) if len(lengths) != 1 else n
        spec = self._spec(longest, lists, sets)
        return Dataset(items, starts, pool, values, spec, outputs, starts)

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift pool indices by ``offset``."""
        return items if self.names else items + np.int32(offset)

    def spec_for(self, longest: int, most: int | None) -> Array:
        """Return the constants for these lengths of sentences and feature lists."""
        return self._spec(longest, (-1, 0) if most is None else (0, most), None)

    def _spec(self, longest: int, lists: tuple[int, int], sets: Array | None) -> Array:
        """Return the problem's constants; arrays are cached, which makes short calls faster."""
        # Rounded up to powers of two, so that few different arrays are needed.
        room = 1 << longest.bit_length() if self.constraints is not None else 1
        lists = (lists[0], 1 << lists[1].bit_length())
        if sets is None and (room, lists) in self._specs:
            return self._specs[room, lists]
        spec = make_spec(
            len(self.labels),
            self.program,
            constraints=self.constraints,
            longest=room,
            sets=sets,
            lists=lists,
            around=self.vector_window,
        )
        if sets is None:
            self._specs[room, lists] = spec
        return spec

    def _list_items(self, data: Features) -> tuple[Array, tuple[int, int]]:
        if self.names:
            raise BadData(
                f"found tokens with features of their own, expected {self.trained_on()}",
                **first_token(data.lengths),
            )
        if data.width != self.width and len(data.counts):
            given = f"a matrix of {data.width} columns" if data.width >= 0 else "feature names"
            expected = (
                self.trained_on() if self.width >= 0 else f"feature names: {self.trained_on()}"
            )
            raise BadData(f"found {given}, expected {expected}", **first_token(data.lengths))
        if len(data.keys) > MOST_FEATURES:
            raise BadData(f"found {len(data.keys)} features, expected at most {MOST_FEATURES}")
        items = np.empty((len(data.counts), 2), np.int32)
        items[:, 1] = np.add.accumulate(data.counts)
        items[:1, 0] = 0
        items[1:, 0] = items[:-1, 1]
        return items, (0, int(np.maximum.reduce(data.counts, initial=0)))

    def _check_lengths(self, lengths: Array) -> None:
        if self.constraints is None:
            return
        for length in np.unique(lengths).tolist():
            if not self.constraints.allows_length(length):
                raise BadData(
                    f"no {length} labels in a row keep the constraints",
                    sentence=int(np.argmax(lengths == length)) + 1,
                )

    def _outputs(self, gold: Array, starts: Array) -> tuple[Array, Array | None]:
        """Return the gold outputs, and sets of good labels for unknown labels under constraints."""
        outputs = gold.astype(np.int32)
        if self.constraints is None:
            return outputs, None
        self._check_labels(gold, starts)
        sets: dict[bytes, int] = {}
        rows: list[Array] = []
        unknown = np.flatnonzero(gold < 0)
        for i in np.unique(np.searchsorted(starts, unknown, side="right") - 1).tolist():
            inside = slice(starts[i], starts[i + 1])
            good = self.constraints.good_sets(gold[inside])
            if good is None:
                raise BadData("no labels between those known keep the constraints", sentence=i + 1)
            for j in np.flatnonzero(gold[inside] < 0).tolist():
                if not good[j].all():
                    number = sets.setdefault(good[j].tobytes(), len(sets))
                    if number == len(rows):
                        rows.append(good[j])
                    outputs[starts[i] + j] = -2 - number
        return outputs, np.array(rows) if rows else None

    def _check_labels(self, gold: Array, starts: Array) -> None:
        assert self.constraints is not None
        check_labels(self.constraints, self.labels, gold, starts)
