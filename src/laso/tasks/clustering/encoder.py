"""Documents of items as the arrays of the clustering problem."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.errors import BadData, quoted
from laso.features.encoder import sentence_starts
from laso.features.keys import mix_arrays, string_keys
from laso.features.templates import Atom, Template
from laso.tasks.clustering import candidates as near
from laso.tasks.clustering import problem as p
from laso.tasks.clustering.comparisons import (
    CATEGORY,
    OUTCOMES,
    numbered_values,
    outcomes_of,
)
from laso.tasks.clustering.fields import Document
from laso.tasks.clustering.templates import (
    OF_CLUSTERS,
    OF_PAIRS,
    OF_VALUES,
    POSITION,
    looks_at_cluster,
)

WORD = 62  # bits of a word that are used
OUTCOME = "outcome"  # the comparison of a user's function
MOST_OUTCOMES = 16  # of such a function; what comes later counts as the last of them
UNKNOWN, MISSING = -1, -2  # values of items

_PLACES = {kind: place for place, kind in OF_VALUES.items()}
Comparer = Callable[[Any, Any], Any]
Code = tuple[int, int, int]  # an atom: kind, column or word, mask


@dataclass(frozen=True)
class Candidates:
    """Which earlier items an item is compared with: the last ones, or of these some."""

    window: int = 500
    blocking: Sequence[near.Block] = ()
    choose: near.Choose | None = None
    nearest: int = 0  # with blocking, the last items are candidates whatever their keys

    def of(self, document: Document) -> tuple[Array, Array]:
        """Return the number of candidates of each item, and all candidates."""
        if self.choose is not None:
            return near.chosen(document.items, self.choose)
        if self.blocking:
            return near.in_blocks(
                document.items, document.columns, self.blocking, self.window, self.nearest
            )
        return near.in_window(len(document), self.window)


@dataclass
class ClusteringEncoder:
    """Encodes documents; ``values`` and ``outcomes`` grow while it learns."""

    kinds: Mapping[str, str]
    templates: tuple[Template, ...]
    candidates: Candidates = field(default_factory=Candidates)
    functions: Mapping[str, Comparer] = field(default_factory=dict)
    different: str | None = None
    values: dict[str, dict[Any, int]] = field(default_factory=dict)
    outcomes: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        atoms = [atom for template in self.templates for atom in template.atoms]
        compared = {(a.column, a.bases[0]): None for a in atoms if a.bases}
        self.columns = list(dict.fromkeys(a.column for a in atoms if not a.bases))
        self.columns = [name for name in self.columns if name not in OF_CLUSTERS]
        for name in self.columns:
            self.values.setdefault(name, {})
        self.bits: dict[tuple[str, str], tuple[int, int, int]] = {}  # word, first bit, number
        word = used = 0
        for name, comparison in compared:
            n = MOST_OUTCOMES if comparison == OUTCOME else len(OUTCOMES[comparison])
            if used + n > WORD:
                word, used = word + 1, 0
            self.bits[name, comparison] = word, used, n
            used += n
        self.words = word + 1
        self.width = p.VALUES + len(self.columns) + (self.different is not None)
        self.by_key: dict[int, Template] = {}
        self.spec = self._make_spec()

    # ------------------------------------------------------------------ the problem's constants

    def bits_of(self, atom: Atom) -> tuple[int, int, int]:
        """Return the word of a comparison, its first bit, and the number of its bits."""
        return self.bits[atom.column, atom.bases[0]]

    def mask_of(self, atom: Atom) -> tuple[int, int]:
        """Return the word and the bits of a comparison."""
        word, first, n = self.bits_of(atom)
        return word, ((1 << n) - 1) << first

    def code(self, template: Template) -> list[Code]:
        """Return the atoms of a template; comparisons with one place and word are one atom."""
        codes: list[Code] = []
        masks: dict[tuple[int, int], int] = {}
        for atom in template.atoms:
            if atom.bases:
                word, mask = self.mask_of(atom)
                masks[OF_PAIRS[atom.place], word] = (
                    masks.get((OF_PAIRS[atom.place], word), 0) | mask
                )
            elif atom.column in OF_CLUSTERS:
                codes.append((OF_CLUSTERS[atom.column][1], 0, 0))
            else:
                kind = OF_VALUES[atom.place, atom.offset]
                codes.append((kind, self.columns.index(atom.column), 0))
        return [*codes, *((kind, word, mask) for (kind, word), mask in masks.items())]

    def _make_spec(self) -> Array:
        joining = [t for t in self.templates if looks_at_cluster(t) or not t.atoms]
        beginning = [t for t in self.templates if not looks_at_cluster(t)]
        head, tail, most = [0] * p.HEAD, list[int](), 0
        for i, templates in enumerate((joining, beginning)):
            numbers: dict[Code, int] = {}
            program: list[int] = []
            keys = string_keys([str(template) for template in templates]).tolist()
            for key, template in zip(keys, templates, strict=True):
                codes = self.code(template)
                program += [key, len(codes)]
                program += [numbers.setdefault(code, len(numbers)) for code in codes]
            at, atoms = p.PARTS + i * p.PART, [number for code in numbers for number in code]
            begin = p.HEAD + len(tail)
            head[at + p.ATOMS], head[at + p.N_ATOMS] = begin, len(numbers)
            head[at + p.TEMPLATES], head[at + p.N_TEMPLATES] = begin + len(atoms), len(templates)
            tail += [*atoms, *program]
            most = max(most, len(templates) + len(numbers))
            kinds = {kind for kind, _, _ in numbers}
            head[p.USES_MOST] |= p.MOST in kinds
            head[p.USES_RANK] |= p.RANK_OF in kinds
        head[p.WORDS] = self.words
        head[p.MOST_FEATURES] = most + (3 + p.PLANES) * self.words
        if self.different is not None:
            head[p.DIFFERENT] = p.VALUES + len(self.columns)
        return np.array([*head, *tail], np.int64)

    def copied(self) -> ClusteringEncoder:
        """Return a copy that may learn more values."""
        values = {name: dict(known) for name, known in self.values.items()}
        outcomes = {name: list(known) for name, known in self.outcomes.items()}
        return replace(self, values=values, outcomes=outcomes)

    def feature_name(self, numbers: Sequence[int]) -> str | None:
        """Return the name of a feature whose key was mixed from these numbers, in order.

        The first is the key of a template; None: it is none of these.
        """
        if not self.by_key:
            keys = string_keys([str(template) for template in self.templates]).tolist()
            self.by_key = dict(zip(keys, self.templates, strict=True))
        template = self.by_key.get(numbers[0])
        if template is None:
            return None
        parts = [
            self._atom_name(template, code, value)
            for code, value in zip(self.code(template), numbers[1:], strict=True)
        ]
        return "|".join(parts) or str(template)

    def _atom_name(self, template: Template, code: Code, value: int) -> str:
        kind, column, mask = code
        for own, (where, of) in OF_CLUSTERS.items():
            if kind == of:
                return f"{own}[{where}]={value}" + "+" * (value == p.LARGEST)
        if not mask:
            name = self.columns[column]
            place = _PLACES[kind]
            atom = next(
                a for a in template.atoms if (a.column, a.place, a.offset) == (name, *place)
            )
            known = {p.NOTHING: "none", MISSING: "missing", UNKNOWN: "?"}
            if value >= 0:
                return f"{atom}={list(self.values[name])[value]}"
            return f"{atom}={known.get(value, value)}"
        texts = []
        for atom in template.atoms:
            if atom.bases and OF_PAIRS[atom.place] == kind and self.bits_of(atom)[0] == column:
                _, first, _ = self.bits_of(atom)
                names = self.outcome_names(atom)
                has = [name for i, name in enumerate(names) if value >> (first + i) & 1]
                texts.append(f"{atom}={'none' if value == p.NOTHING else '/'.join(has) or '?'}")
        return "|".join(texts)

    def outcome_names(self, atom: Atom) -> Sequence[str]:
        """Return the names of the outcomes of a comparison."""
        name, comparison = atom.column, atom.bases[0]
        return self.outcomes.get(name, ()) if comparison == OUTCOME else OUTCOMES[comparison]

    # ------------------------------------------------------------------ documents

    def dataset(
        self, documents: Sequence[Document], gold: Sequence[Sequence[Any]] | None = None
    ) -> Dataset:
        """Return documents as arrays; with the ids of items, to learn from: values get numbers."""
        tables, pools, outputs, at = [], [np.zeros(0, np.int64)], [], 0
        for i, document in enumerate(documents):
            counts, others = self.candidates.of(document)
            table, pool = self._encoded(document, counts, others, at, learning=gold is not None)
            tables.append(table)
            pools.append(pool)
            at += len(pool)
            if gold is not None:
                self.check_apart(document, gold[i])
                outputs.append(gold_numbers(gold[i], counts, others))
        lengths = np.array([len(table) for table in tables], np.int64)
        empty = np.zeros((0, self.width), np.int32)
        return Dataset(
            items=np.concatenate([empty, *tables]),
            starts=sentence_starts(lengths),
            pool=np.concatenate(pools),
            values=np.zeros(0, np.float32),
            spec=self.spec,
            outputs=np.concatenate([np.zeros(0, np.int32), *outputs]),
            output_starts=sentence_starts(2 * lengths if outputs else lengths[:0]),
        )

    def _encoded(
        self, document: Document, counts: Array, others: Array, at: int, *, learning: bool
    ) -> tuple[Array, Array]:
        """Return the items of a document, and its part of the pool, which begins at ``at``."""
        n, width = len(document), 1 + self.words
        table = np.zeros((n, self.width), np.int32)
        for c, name in enumerate(self.columns):
            table[:, p.VALUES + c] = self._numbers(name, document, learning=learning)
        first, second = near.pairs(counts, others)
        bits = self.pair_bits(document, first, second, learning=learning)
        last = near.last_uses(counts, others, forgets=self.different is None)
        if self.different is not None:
            table[:, -1] = self._different(document)
        ends = np.cumsum(width * (1 + counts))
        table[:, p.AT] = at + ends - width * (1 + counts)
        table[:, p.CANDIDATES], table[:, p.LAST_USE] = counts, last
        table[:, p.SLOT] = near.slots_of(last)
        pool = np.zeros(int(ends[-1]) if n else 0, np.int64)
        heads = table[:, p.AT].astype(np.int64) - at
        rank = np.arange(len(others)) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = heads[first] + width * (1 + rank)
        pool[entries] = second
        for w in range(self.words):
            pool[entries + 1 + w] = bits[w]
            known = np.zeros(n, np.int64)
            np.bitwise_or.at(known, first, bits[w])
            pool[heads + 1 + w] = known
        content = blake2b(table[:, p.CANDIDATES :].tobytes() + pool.tobytes(), digest_size=8)
        digest = np.frombuffer(content.digest(), np.uint64)
        pool[heads] = mix_arrays(digest, np.arange(n).astype(np.uint64)).view(np.int64)
        return table, pool

    def _different(self, document: Document) -> Array:
        """Return a number for each value that no two items of a cluster have, -1 for none."""
        assert self.different is not None
        kind = self.kinds.get(self.different, CATEGORY)
        return numbered_values(document.column(self.different, kind))[1]

    def check_apart(self, document: Document, ids: Sequence[Any]) -> None:
        """Raise BadData if ids put items together that must be in different clusters."""
        if self.different is None:
            return
        seen: dict[tuple[Any, int], int] = {}
        for i, (each, value) in enumerate(
            zip(ids, self._different(document).tolist(), strict=True)
        ):
            if each is None or value < 0:
                continue
            other = seen.setdefault((each, value), i)
            if other != i:
                raise BadData(
                    f"found items {other} and {i}, counted from 0, in one cluster and with one "
                    f"value of {quoted(self.different)}, of which different={self.different!r} "
                    "allows one to a cluster",
                    sentence=document.source or None,
                )

    def _numbers(self, name: str, document: Document, *, learning: bool) -> list[int]:
        known = self.values[name]
        column = [None if v is None else str(v) for v in document.column(name, self.kinds[name])]
        if learning:
            return [MISSING if v is None else known.setdefault(v, len(known)) for v in column]
        return [MISSING if v is None else known.get(v, UNKNOWN) for v in column]

    def pair_bits(
        self, document: Document, first: Array, second: Array, *, learning: bool
    ) -> list[Array]:
        """Return the bits of pairs, for each word."""
        bits = [np.zeros(len(first), np.int64) for _ in range(self.words)]
        numbered: dict[str, tuple[list[Any], Array]] = {}
        for (name, comparison), (word, place, _) in self.bits.items():
            if comparison == OUTCOME:
                outcome = self._outcomes(name, document, first, second, learning=learning)
            elif name == POSITION:
                outcome = outcomes_of(comparison, range(len(document)), first, second)
            else:
                if name not in numbered:
                    numbered[name] = numbered_values(document.column(name, self.kinds[name]))
                distinct, codes = numbered[name]
                outcome = outcomes_of(comparison, distinct, codes[first], codes[second])
            bits[word] |= np.where(outcome >= 0, 1 << (place + np.maximum(outcome, 0)), 0)
        return bits

    def _outcomes(
        self, name: str, document: Document, first: Array, second: Array, *, learning: bool
    ) -> Array:
        """Return what a user's function says of each pair; None is no outcome."""
        known, items, function = (
            self.outcomes.setdefault(name, []),
            document.items,
            self.functions[name],
        )
        result = np.full(len(first), -1, np.int64)
        for i, (a, b) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
            outcome = function(items[a], items[b])
            if outcome is None:
                continue
            if not isinstance(outcome, (str, bool, int)):
                raise BadData(
                    f"found {quoted(outcome)} as the outcome of the comparison {quoted(name)}, "
                    "expected text, a truth value, a whole number or None"
                )
            text = str(outcome)
            if learning and text not in known and len(known) < MOST_OUTCOMES:
                known.append(text)
            result[i] = known.index(text) if text in known else -1
        return result


def gold_numbers(ids: Sequence[Any], counts: Array, others: Array) -> Array:
    """Return an output: the number of each item's cluster, and its last candidate in it, from 1."""
    _, codes = numbered_values(ids)
    first, second = near.pairs(counts, others)
    nearest = np.zeros(len(codes), np.int64)
    same = (codes[first] >= 0) & (codes[first] == codes[second])
    np.maximum.at(nearest, first[same], second[same] + 1)
    return np.concatenate([codes, nearest]).astype(np.int32)
