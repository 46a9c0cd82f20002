"""Sentences as arrays for the chunking problem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from laso.data.table import Data
from laso.engine.layout import Array, Dataset
from laso.errors import BadTemplate, listed, quoted
from laso.features.encoder import ColumnEncoder, require_columns, sentence_starts
from laso.features.keys import mix_arrays, string_keys
from laso.features.schemes import OUTSIDE
from laso.features.templates import ENDS, LABEL, LENGTH, Atom, Template, shown
from laso.locks import cached_property
from laso.tasks.chunking import problem as chunking
from laso.tasks.chunking.problem import Programs, make_spec, sequence_sums

_GRAMS = {
    "any": chunking.ANY,
    "pair": chunking.PAIR,
    "triple": chunking.TRIPLE,
    "each": chunking.EACH,
}
_PLACES = {
    "first": chunking.FIRST,
    "last": chunking.LAST,
    LENGTH: chunking.LENGTH,
    "all": chunking.ALL,
    "": chunking.LABEL,
}


def kind_of(template: Template) -> int:
    """Return the kind of a chunk template, which determines its cached block."""
    places = {atom.place for atom in template.atoms}
    grams = places & set(_GRAMS)
    if grams and len(places) > 1:
        raise BadTemplate(
            f"template {shown(template)}: found {listed(sorted(map(str, template.atoms)))}, "
            f"expected nothing beside {grams.pop()} but its like"
        )
    for atom in template.atoms:
        if not atom.place and (atom.column, atom.offset) != (LABEL, -1):
            raise BadTemplate(
                f"template {shown(template)}: found {quoted(str(atom))}, expected a place in the "
                f"chunk, such as first or each, or {LABEL}[-1]"
            )
    if grams:
        return _GRAMS[grams.pop()]
    if "" in places:
        return chunking.STEP
    if places == {"all"} and len(template.atoms) == 1:
        return chunking.SEQUENCE
    if len(places) == 1 and places <= set(ENDS):
        return chunking.BEGIN if "first" in places else chunking.END
    return chunking.WHOLE


@dataclass
class SegmentEncoder(ColumnEncoder):
    """Encodes sentences to be segmented into chunks of at most ``limit`` words.

    ``longest`` has the largest length for chunks of a label, where it is smaller.
    """

    limit: int = 1
    longest: Mapping[str, int] = field(default_factory=dict)

    def _check_template(self, template: Template) -> None:
        kind_of(template)

    @cached_property
    def _sequences(self) -> list[int]:
        """The views whose whole sequences are features (the place all)."""
        atoms = [(t, atom) for t in self.templates for atom in t.atoms if atom.place == "all"]
        return sorted({self._view(template, atom) for template, atom in atoms})

    @cached_property
    def _numbers(self) -> dict[tuple[int, tuple[str, ...]], int]:
        return {key: i for i, key in enumerate(self.views)}

    def _view(self, template: Template, atom: Atom) -> int:
        return self._numbers[self._column(template, atom.column), atom.bases]

    @cached_property
    def programs(self) -> Programs:
        """The templates as programs for ``make_spec``."""
        ids = string_keys([template.identity for template in self.templates]).tolist()
        programs: dict[int, list[tuple[int, list[int] | list[tuple[int, int, int]]]]] = {}
        for key, template in zip(ids, self.templates, strict=True):
            kind = kind_of(template)
            if kind <= chunking.EACH:
                columns = [self._view(template, atom) for atom in template.atoms]
                programs.setdefault(kind, []).append((key, columns))
            elif kind == chunking.SEQUENCE:
                columns = [1 + self._sequences.index(self._view(template, template.atoms[0]))]
                programs.setdefault(kind, []).append((key, columns))
            else:
                atoms = [self._atom(template, atom) for atom in template.atoms]
                programs.setdefault(kind, []).append((key, atoms))
        return programs

    def _atom(self, template: Template, atom: Atom) -> tuple[int, int, int]:
        column = self._view(template, atom) if atom.is_column else 0
        if atom.place == "all":
            column = 1 + self._sequences.index(column)
        return _PLACES[atom.place], column, atom.offset

    @property
    def limits(self) -> list[int]:
        """The largest length of chunks of each label."""
        longest = {**self.longest, OUTSIDE: 1}
        return [longest.get(label, self.limit) for label in self.labels]

    @cached_property
    def spec(self) -> Array:
        """The problem's constants."""
        return make_spec(
            self.programs,
            limits=self.limits,
            sums=(len(self.views), 2 + len(self._sequences)),
            dense=self.has_vectors,
        )

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift pool indices by ``offset``."""
        items = items.copy()
        items[:, -1] += offset // (2 + len(self._sequences))
        return items

    def spec_for(self, longest: int, most: int | None) -> Array:
        """Return the constants, which do not depend on the sentences."""
        return self.spec

    def dataset(self, data: Data, gold: Array | None = None) -> Dataset:
        """Return the arrays for the engine; ``gold`` has the number of each word (see problem)."""
        data = require_columns(data)
        lengths = data.lengths
        starts = sentence_starts(lengths)
        n = int(starts[-1])
        items = np.zeros((n, len(self.views) + 1), np.int32)
        items[:, :-1] = self._column_items(data, n)[:, : len(self.views)]
        items[:, -1] = np.arange(n)
        hashed = [
            mix_arrays(np.ones(n, np.uint64), items[:, column].astype(np.int64).view(np.uint64))
            for column in self._sequences
        ]
        words = np.zeros(n, np.uint64)
        for column in range(len(self.views)):
            words = mix_arrays(words, items[:, column].astype(np.int64).view(np.uint64))
        outputs = np.full(n, -1, np.int32) if gold is None else gold.astype(np.int32)
        return Dataset(
            items,
            starts,
            sequence_sums(hashed, words, lengths),
            np.zeros(0, np.float32),
            self.spec,
            outputs,
            starts,
        )
