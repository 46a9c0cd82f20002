"""Features of chunks: the sets of section 4.1 and beyond, and their encoding as integers.

A feature set is a list of templates (see templates.py), to print, to cut and to add to:

    print("\\n".join(paper_features(("w", "pos"))))
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from laso.data.table import Data, Features
from laso.engine.layout import Array, Corpus
from laso.errors import BadData, BadTemplate
from laso.features.encode import Encoder
from laso.features.inputs import mixed, string_keys
from laso.features.lists import base_features
from laso.features.schemes import OUTSIDE
from laso.features.templates import ENDS, LABEL, LENGTH, Atom, Template
from laso.tasks import chunking
from laso.tasks.chunking import Programs, make_spec, sequence_sums

# --------------------------------------------------------------------------- feature sets

OF_WORDS = (
    "",
    "lower",
    "stem",
    "ending",
    "shape",
    *(f"{affix}{n}" for affix in ("prefix", "suffix") for n in (1, 2, 3)),
)
META = "[each,pair,triple,all,first-1,last+1]"


def paper_features(names: Sequence[str], resources: Sequence[str] = ()) -> list[str]:
    """Section 4.1: all base features in all meta features, the length, the label before.

    The first column has the words; of the others the values and their first characters count.
    """
    word, *others = names
    bases = [".".join(filter(None, (word, base))) for base in OF_WORDS]
    for other in others:
        bases += [other, f"{other}.prefix1"]
    bases += [f"{word}.{base}" for resource in resources for base in base_features(resource)]
    return [*(base + META for base in bases), LENGTH, f"{LABEL}[-1]"]


def rich_features(names: Sequence[str], resources: Sequence[str] = ()) -> list[str]:
    """Those of the paper, and more: the borders, two words out, several columns at once."""
    more = [template for kind in additions(names).values() for template in kind]
    return [*paper_features(names, resources), *more]


def additions(names: Sequence[str]) -> dict[str, list[str]]:
    """What ``rich`` has beside ``paper``, by kinds."""
    word, *others = names
    found = {
        "two words out": [f"{name}[first-2,last,last+2]" for name in names],
        "pairs across borders": [pair for name in names for pair in _borders(name, name)],
    }
    for other in others:
        more = {
            "words with tags across borders": [*_borders(word, other), *_borders(other, word)],
            "triples of tags at borders": [
                f"{other}[first-2]|{other}[first-1]|{other}[first]",
                f"{other}[first-1]|{other}[first]|{other}[first+1]",
                f"{other}[last-1]|{other}[last]|{other}[last+1]",
                f"{other}[last]|{other}[last+1]|{other}[last+2]",
            ],
            "words with their tags": [f"{word}[{at}]|{other}[{at}]" for at in ("each", "any")],
            "all tags with those around": [
                f"{other}[first-1]|{other}[all]",
                f"{other}[all]|{other}[last+1]",
                f"{other}[first-1]|{other}[all]|{other}[last+1]",
                f"{other}[first-1]|{other}[last+1]",
            ],
            "the label before with the first tag": [f"{LABEL}[-1]|{other}[first]"],
        }
        for kind, templates in more.items():
            found.setdefault(kind, []).extend(templates)
    return found


def _borders(left: str, right: str) -> list[str]:
    """Two words with a border of the chunk between them."""
    return [f"{left}[first-1]|{right}[first]", f"{left}[last]|{right}[last+1]"]


FEATURE_SETS = {"paper": paper_features, "rich": rich_features}

# --------------------------------------------------------------------------- encoding

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
    """Which cells of a chunk a template belongs to."""
    places = {atom.place for atom in template.atoms}
    grams = places & set(_GRAMS)
    if grams and len(places) > 1:
        raise BadTemplate(
            f"template {str(template)!r}: found {', '.join(sorted(map(str, template.atoms)))}, "
            f"expected nothing beside {grams.pop()} but its like"
        )
    for atom in template.atoms:
        if not atom.place and (atom.column, atom.offset) != (LABEL, -1):
            raise BadTemplate(
                f"template {str(template)!r}: found {str(atom)!r}, expected a place in the chunk, "
                f"such as first or each, or {LABEL}[-1]"
            )
    if grams:
        return _GRAMS[grams.pop()]
    if "" in places:
        return chunking.STEP
    if len(places) == 1 and places <= set(ENDS):
        return chunking.BEGIN if "first" in places else chunking.END
    return chunking.WHOLE


@dataclass
class SegmentEncoder(Encoder):
    """Makes a corpus of sentences to be cut into chunks of at most ``limit`` words.

    ``longest`` has the most words of chunks of a label, where they are fewer.
    """

    limit: int = 1
    longest: Mapping[str, int] = field(default_factory=dict)

    def _check_template(self, template: Template) -> None:
        kind_of(template)

    @cached_property
    def _sequences(self) -> list[int]:
        """The views of which whole sequences are asked for."""
        atoms = [(t, atom) for t in self.templates for atom in t.atoms if atom.place == "all"]
        return sorted({self._view(template, atom) for template, atom in atoms})

    @cached_property
    def _numbers(self) -> dict[tuple[int, tuple[str, ...]], int]:
        return {key: i for i, key in enumerate(self.views)}

    def _view(self, template: Template, atom: Atom) -> int:
        return self._numbers[self._column(template, atom.column), atom.bases]

    @cached_property
    def programs(self) -> Programs:
        """The templates as numbers."""
        ids = string_keys([template.identity for template in self.templates]).tolist()
        programs: dict[int, list[tuple[int, list[int] | list[tuple[int, int, int]]]]] = {}
        for key, template in zip(ids, self.templates, strict=True):
            kind = kind_of(template)
            if kind <= chunking.EACH:
                columns = [self._view(template, atom) for atom in template.atoms]
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
        """The most words that chunks of each label may have."""
        longest = {**self.longest, OUTSIDE: 1}
        return [longest.get(label, self.limit) for label in self.labels]

    @cached_property
    def spec(self) -> Array:
        """The problem's constants."""
        return make_spec(
            self.programs,
            limits=self.limits,
            sums=(len(self.views), 1 + len(self._sequences)),
        )

    def moved(self, items: Array, pool: int) -> Array:
        """The items of a part, if so much of the pool stands before its own."""
        items = items.copy()
        items[:, -1] += pool // (1 + len(self._sequences))
        return items

    def spec_for(self, longest: int, most: int | None) -> Array:
        """The constants do not depend on the sentences."""
        return self.spec

    def corpus(self, data: Data, wanted: Array | None = None) -> Corpus:
        """The arrays for the engine; ``wanted`` has a number for each word (see chunking.py)."""
        if isinstance(data, Features):
            raise BadData("found tokens with features of their own, expected columns")
        lengths = data.lengths
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        n = int(starts[-1])
        items = np.zeros((n, len(self.views) + 1), np.int32)
        items[:, :-1] = self._column_items(data, n)[:, : len(self.views)]
        items[:, -1] = np.arange(n)
        hashed = [
            mixed(np.ones(n, np.uint64), items[:, column].astype(np.int64).view(np.uint64))
            for column in self._sequences
        ]
        outputs = np.full(n, -1, np.int32) if wanted is None else wanted.astype(np.int32)
        return Corpus(
            items,
            starts,
            sequence_sums(hashed, lengths),
            np.zeros(0, np.float32),
            self.spec,
            outputs,
            starts,
        )
