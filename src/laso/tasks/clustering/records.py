"""The task of ``Clusterer(preset="records")``: which records of tables are of one entity."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.errors import BadData, InputError, quoted
from laso.features.templates import BIAS
from laso.tasks.clustering.candidates import pairs
from laso.tasks.clustering.comparisons import CATEGORY, KINDS, NUMBER, SET, TEXT
from laso.tasks.clustering.components import Components, components_of
from laso.tasks.clustering.encoder import Candidates
from laso.tasks.clustering.fields import Document, kinds_of, plain
from laso.tasks.clustering.similar import bounded, similar_pairs, with_cosines, words_of
from laso.tasks.clustering.tables import columns_of, is_table, labels_of
from laso.tasks.clustering.task import ClusteringTask
from laso.tasks.clustering.templates import MOST_PAIRED, POSITION, SIZE
from laso.training import Rule
from laso.updates import perceptron
from laso.weightings import worst

ALL_FIELDS, TABLE = "all_fields", "table_of_pair"  # fields that every record has
LEFT, RIGHT = "left", "right"
PLACES = ("any", "all")  # of members
LEAST_COSINE, MOST_SIMILAR = 0.1, 5  # of records that are compared
MARGIN = 4  # times the number of templates: few decisions are hard, and these need a large one
LEAST_RECALL = 0.98  # of the links of training data, without a warning
log = logging.getLogger("laso.records")


class Table(Document):
    """The records of a table, or of a pair of tables, the left ones first."""

    def __init__(self, x: Any, source: int = 0, *, ids: str | None = None) -> None:
        is_pair = isinstance(x, tuple)
        if is_pair and len(x) != 2:
            raise BadData(f"found {len(x)} tables, expected one, or a pair (left, right)")
        sides = [columns_of(side) for side in (x if is_pair else (x,))]
        sizes = [max(map(len, side.values()), default=0) for side in sides]
        names = dict.fromkeys(name for side in sides for name in side)
        for name in (ALL_FIELDS, TABLE):
            if name in names:
                raise BadData(f"found the field {quoted(name)}, whose name is taken")
        columns = {
            name: [
                value
                for side, n in zip(sides, sizes, strict=True)
                for value in side.get(name, [None] * n)
            ]
            for name in names
        }
        self.ids = None if ids is None else columns.pop(ids, None)
        rows = zip(*columns.values(), strict=True)
        self.items = [dict(zip(columns, row, strict=True)) for row in rows]
        self.text, self.source = None, source
        self.labels = [label for side in (x if is_pair else (x,)) for label in labels_of(side)]
        self.tables = [LEFT] * sizes[0] + [RIGHT] * sizes[1] if is_pair else None
        self.columns = {**columns, TABLE: self.tables or [None] * sum(sizes)}
        self.words: list[set[str]] = []

    def with_words(self, names: Iterable[str]) -> Table:
        """Add the words of some fields as a field."""
        self.words = words_of({name: self.columns.get(name, [None] * len(self)) for name in names})
        self.columns[ALL_FIELDS] = [frozenset(each) or None for each in self.words]
        return self


@dataclass(frozen=True)
class RecordCandidates(Candidates):
    """Which records are compared: those with rare words in common, unless the user chooses."""

    def of(self, document: Document) -> tuple[Array, Array]:
        """Return the number of candidates of each record, and all candidates."""
        assert isinstance(document, Table)
        n, words, tables = len(document), document.words, document.tables
        if self.choose is None and not self.blocking:
            most = min(self.window, MOST_SIMILAR)
            compared = similar_pairs(words, LEAST_COSINE, most, tables)
        else:
            compared = with_cosines(words, *pairs(*super().of(document)))
            if tables is not None:
                table = np.array(tables)
                compared = compared.take(table[compared.first] != table[compared.second])
        compared = bounded(compared, n, self.window)
        return np.bincount(compared.first, minlength=n), compared.second


class RecordsTask(ClusteringTask):
    """Finds which records of a table, or of two tables, are of one entity.

    The parameters are those of ``laso.Clusterer``.
    """

    name = "records"
    default_window = 50
    measures_steps = False

    def __init__(self, *, different: str | None = None, **parameters: Any) -> None:
        super().__init__(different=TABLE if different is None else different, **parameters)

    # ------------------------------------------------------------------ reading

    def documents(self, X: Iterable[Any]) -> list[Document]:
        """Return tables as documents of records."""
        return [*self._tables(X)]

    def _tables(self, X: Iterable[Any], ids: str | None = None) -> Iterator[Table]:
        if is_table(X):
            pair = isinstance(X, tuple)
            what, how = ("a pair of tables", "(left, right)") if pair else ("a table", "table")
            raise BadData(f"found {what} as X, expected a list of such inputs: [{how}], and [y]")
        for i, x in enumerate(X, start=1):
            try:
                table = x if isinstance(x, Table) else Table(x, i, ids=ids)
                if table.tables is not None and self.different != TABLE:
                    raise BadData(
                        f"found a pair of tables beside different={quoted(self.different)}, "
                        "expected one of the two"
                    )
                yield table.with_words(self._names(table))
            except InputError as error:
                raise error.at(sentence=i) from None

    def _names(self, table: Table) -> list[str]:
        """Return the names of the fields that are compared."""
        names = self.encoder_.kinds if hasattr(self, "encoder_") else self.fields or table.columns
        return [name for name in names if name not in (ALL_FIELDS, TABLE, POSITION)]

    def read_inputs(self, X: Any) -> list[Document]:
        """Return the tables of a list."""
        return self.documents(X) if is_table(X) else super().read_inputs(X)

    def read(self, X: Any, y: Any) -> tuple[list[Document], list[Any]]:
        """Return tables and the ids of their records, or the column that has them."""
        if isinstance(y, str):
            X = [*self._tables(X, y)]
            for i, table in enumerate(X, start=1):
                if table.ids is None:
                    raise BadData(f"found no column {quoted(y)} with ids", sentence=i)
            y = [table.ids for table in X]
        elif is_table(X):
            self.documents(X)
        documents, outputs = super().read(X, y)
        for i, (document, ids) in enumerate(zip(documents, outputs, strict=True)):
            outputs[i] = [plain(each) for each in ids]
            _check_pair(document, outputs[i])
        return documents, outputs

    # ------------------------------------------------------------------ learning from data

    def _kinds(self, documents: Sequence[Document]) -> dict[str, str]:
        """Return the kinds of fields: text, unless there are fractions, lists, or a user's kind."""
        given = self.fields
        if given is None:
            names = dict.fromkeys(name for document in documents for name in document.columns)
            given = [name for name in names if name not in (ALL_FIELDS, TABLE)]
        kinds = kinds_of(documents, given)
        if not isinstance(given, Mapping):
            for name, kind in kinds.items():
                values = (v for d in documents for v in d.columns.get(name, ()))
                if kind == CATEGORY or (kind == NUMBER and not any(map(_is_fraction, values))):
                    kinds[name] = TEXT
        return {**kinds, ALL_FIELDS: SET, TABLE: CATEGORY}

    def make_candidates(self) -> Candidates:
        """Return which records are compared."""
        return RecordCandidates(self.window, self.blocking, self.candidates)

    def components(self, dataset: Dataset) -> Components | None:
        """Return the components of tables, whatever the templates."""
        return components_of(dataset)

    def item_labels(self, document: Document) -> Sequence[Any]:
        """Return the labels of the index of a DataFrame, else the numbers of rows."""
        assert isinstance(document, Table)
        return document.labels

    def default_features(self, kinds: Mapping[str, str], own: Sequence[str]) -> Sequence[str]:
        """Return templates for fields of these kinds, and for functions of these names."""
        return record_templates(kinds, own)

    def default_update(self) -> Rule:
        """Return the perceptron against the best wrong node, with a large margin."""
        templates = self.encoder_.templates if hasattr(self, "encoder_") else ()
        return perceptron(weighting=worst, margin=float(max(1, MARGIN * len(templates))))

    def encode(self, inputs: Any, outputs: Any = None) -> Dataset:
        """Return tables as arrays; with outputs, to learn from."""
        dataset = super().encode(inputs, outputs)
        if outputs is not None:
            self.check_candidates(dataset)
        return dataset

    def check_candidates(self, dataset: Dataset) -> None:
        """Tell how many links of the training data are between records that are compared."""
        linked = reached = largest = 0
        for begin, end in pairwise(dataset.output_starts.tolist()):
            ids, nearest = dataset.outputs[begin:end].reshape(2, -1)
            _, sizes = np.unique(ids[ids >= 0], return_counts=True)
            linked += int(np.sum(sizes - 1))
            largest = max(largest, int(sizes.max(initial=0)))
            reached += int(np.count_nonzero(nearest[ids >= 0]))
        self.blocking_recall_ = reached / linked if linked else 1.0
        text = (
            f"{reached} of {linked} records that follow others of their entity are compared with "
            f"one of these ({self.blocking_recall_:.1%})"
        )
        if largest > self.window:
            text = (
                f"found {largest} records of one entity, but at most window={self.window} are "
                "connected: choose a larger window"
            )
        elif self.blocking_recall_ >= LEAST_RECALL:
            log.info(text)
            return
        else:
            text = f"{text}; the others cannot be found: choose other blocking"
        warnings.warn(text, stacklevel=2)

    def words(self, x: Any) -> list[str]:
        """Return the values of each record."""
        document = x if isinstance(x, Document) else self.documents([x])[0]
        names = (
            [name for name in self.encoder_.kinds if name in document.items[0]]
            if len(document)
            else []
        )
        rows = ([row[name] for name in names] for row in document.items)
        return [" ".join(str(v) for v in row if v is not None) or "?" for row in rows]


def record_templates(kinds: Mapping[str, str], own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return templates of records with fields of these kinds.

    Examples
    --------
    >>> record_templates({"age": "number"})[:3]
    ('bias', 'size[all]', 'age.equal[any]')
    """
    compared = {
        name: [f"{name}.{comparison}" for comparison in KINDS[kind]]
        for name, kind in kinds.items()
        if name not in (TABLE, POSITION)
    }
    compared |= {name: [f"{name}.outcome"] for name in own}
    templates = [BIAS, f"{SIZE}[all]"]
    templates += [
        f"{each}[{place}]" for field in compared.values() for each in field for place in PLACES
    ]
    main = [field[min(2, len(field) - 1)] for field in compared.values()]
    for a, b in combinations(main[:MOST_PAIRED], 2):
        templates += [f"{a}[{place}]|{b}[{place}]" for place in PLACES]
    return tuple(templates)


def _check_pair(document: Document, ids: Sequence[Any]) -> None:
    """Raise BadData if two records of one table of a pair have the same id."""
    assert isinstance(document, Table)
    seen: set[Any] = set()
    for i, (table, each) in enumerate(zip(document.tables or (), ids, strict=False), start=1):
        if each is not None and (table, each) in seen:
            raise BadData(
                f"found the id {quoted(each)} twice in the {table} table, expected it once, since "
                "records of one table of a pair are never linked; to link them put all records "
                "into one table",
                sentence=document.source,
                token=i,
            )
        seen.add((table, each))


def _is_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()
