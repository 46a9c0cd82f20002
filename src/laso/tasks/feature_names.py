"""Names of features: the template and the values that a feature key was hashed from.

A feature key is the hash of a template's root key and the values of its atoms. A hash cannot be
inverted, so that names are found by hashing all combinations of values that a model knows, for
templates that have not too many of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from laso.engine.layout import Array
from laso.features.encoder import ColumnEncoder
from laso.features.keys import mix_arrays
from laso.features.templates import LENGTH, Atom, Template
from laso.features.windows import AFTER, BEFORE
from laso.locks import cached_property

MOST = 2_000_000  # the largest number of combinations to hash for one template
GRAMS = {"any": 1, "each": 1, "pair": 2, "triple": 3}  # the number of words of these places


@dataclass
class Namer:
    """Names the features of a model."""

    encoder: ColumnEncoder

    @cached_property
    def templates(self) -> dict[int, Template]:
        """The templates by their root keys."""
        return self.encoder.templates_by_key()

    @cached_property
    def _values(self) -> dict[tuple[int, tuple[str, ...]], list[str]]:
        return {key: list(view.ids) for key, view in self.encoder.views.items()}

    def name(self, numbers: Sequence[int], chunk: Array | None = None) -> str | None:
        """Return the name of the feature whose key was hashed from these numbers; None: unknown.

        ``chunk`` are the items of the chunk, for templates with the place all.
        """
        root, *values = numbers
        if root not in self.templates:
            return self.encoder.attributes.get(root)
        return self.format_feature(self.templates[root], values, chunk)

    def format_feature(
        self, template: Template, values: Sequence[int], chunk: Array | None = None
    ) -> str:
        """Return a template with the values of its atoms, as text."""
        if not template.atoms:
            return str(template)
        before = f"{template.name}: " if template.name else ""
        gram = GRAMS.get(template.atoms[0].place)
        if gram is not None:
            position, *rest = values
            words = [rest[i : i + gram] for i in range(0, len(rest), gram)]
            where = f" as word {position + 1}" if template.atoms[0].place == "each" else ""
            return before + " | ".join(
                f"{atom}={' '.join(self.value(template, atom, v) for v in parts)}{where}"
                for atom, parts in zip(template.atoms, words, strict=True)
            )
        return before + " | ".join(
            f"{atom.source if template.name else atom}={self.value(template, atom, v, chunk)}"
            for atom, v in zip(template.atoms, values, strict=False)
        )

    def value(self, template: Template, atom: Atom, number: int, chunk: Array | None = None) -> str:
        """Return the text of an atom's value."""
        labels = self.encoder.labels_of(atom.column)
        if labels:
            return labels[number] if 0 <= number < len(labels) else "(none)"
        if atom.place == LENGTH:
            return str(number)
        if not atom.is_column or atom.column not in self._columns:
            return str(number)
        if atom.place == "all":
            if chunk is None:
                return "(some words)"
            view = list(self._values).index((self._columns[atom.column], atom.bases))
            inside = replace(atom, place="")
            return " ".join(self.value(template, inside, int(n)) for n in chunk[:, view])
        if number <= AFTER:
            return f"({AFTER - number + 1} after the end)"
        if number < BEFORE:
            return f"({BEFORE - number} before the beginning)"
        known = self._values[self._columns[atom.column], atom.bases]
        if not 0 <= number < len(known):
            return "(unknown)"
        return known[number] or "(nothing)"

    @cached_property
    def _columns(self) -> dict[str, int]:
        names = self.encoder.names
        return {str(i): i for i in range(len(names))} | {name: i for i, name in enumerate(names)}

    def of_keys(self, keys: Array) -> dict[int, str]:
        """Return names for those feature keys that the known values can produce."""
        order = np.sort(keys.view(np.uint64))
        names = {k: name for k, name in self.encoder.attributes.items() if _contains(order, k)}
        for root, template in self.templates.items():
            for values in self._domains(template):
                n = int(np.prod([len(v) for v in values], dtype=np.float64)) if values else 1
                if n <= MOST:
                    names |= self._matching_names(root, template, values, order)
        return names

    def _matching_names(
        self, root: int, template: Template, values: list[Array], order: Array
    ) -> dict[int, str]:
        hashed = np.array([root], np.int64).view(np.uint64)
        for of_atom in values:
            numbers = of_atom.astype(np.int64).view(np.uint64)
            hashed = mix_arrays(np.repeat(hashed, len(numbers)), np.tile(numbers, len(hashed)))
        places = np.minimum(np.searchsorted(order, hashed), max(0, len(order) - 1))
        hits = np.flatnonzero(order[places] == hashed) if len(order) else places[:0]
        sizes = [len(of_atom) for of_atom in values]
        picked = np.unravel_index(hits, sizes) if sizes else ()
        rows = [of_atom[index].tolist() for of_atom, index in zip(values, picked, strict=True)]
        combinations = list(zip(*rows, strict=True)) if rows else [()] * len(hits)
        return {
            key: self.format_feature(template, list(combination))
            for key, combination in zip(
                hashed[hits].view(np.int64).tolist(), combinations, strict=True
            )
        }

    def _domains(self, template: Template) -> Iterator[list[Array]]:
        """Yield the possible values of each atom of a template; nothing if they are unbounded."""
        limit = int(getattr(self.encoder, "limit", 1))
        if template.atoms and template.atoms[0].place in GRAMS:
            each = template.atoms[0].place == "each"
            words = GRAMS[template.atoms[0].place]
            domains = [np.arange(limit if each else 1)]
            for atom in template.atoms:
                domains += [self._inside(atom)] * words
            yield domains
            return
        several: list[list[Array]] = []
        for atom in template.atoms:
            if atom.place == LENGTH:
                several.append([np.arange(1, limit + 1)])
            elif atom.place == "all":
                return
            elif labels := self.encoder.labels_of(atom.column):
                several.append([np.arange(-1, len(labels))])
            elif atom.column not in self._columns:
                return
            else:
                far = np.arange(1, abs(atom.offset) + 1)
                outside = [BEFORE - far, AFTER - far + 1]
                several.append([np.concatenate([self._inside(atom), *outside])])
        for combination in product(*several):
            yield [*combination, *self.encoder.trailing_values(template)]

    def _inside(self, atom: Atom) -> Array:
        return np.arange(len(self._values[self._columns[atom.column], atom.bases]))


def _contains(order: Array, key: int) -> bool:
    target = np.uint64(key & (1 << 64) - 1)
    place = int(np.searchsorted(order, target))
    return place < len(order) and order[place] == target
