"""Items and their fields: what a user passes, and what each field is."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from laso.errors import BadData, listed, quoted
from laso.tasks.clustering.comparisons import (
    CATEGORY,
    FACTS,
    KINDS,
    NUMBER,
    SET,
    SPAN,
    TEXT,
    VECTOR,
)
from laso.tasks.clustering.templates import OF_CLUSTERS, POSITION

VALUE = "value"  # the field of items that have no fields
MOST_CATEGORIES = 40  # values of a category; of text there are more
PLAIN = frozenset({str, int, bool, tuple, list, dict, frozenset, set, type(None)})
_NAME = re.compile(r"[A-Za-z_]\w*|\d+", re.ASCII)


class Document:
    """The items of an input, and their fields as columns.

    Items are tables, tuples, objects with attributes, or single values.
    """

    def __init__(self, items: Sequence[Any], source: int = 0, text: Any = None) -> None:
        self.items = items
        self.text = text  # what the items are mentions of
        rows = [fields_of(item) for item in items]
        names = dict.fromkeys(name for row in rows for name in row)
        self.columns: dict[str, list[Any]] = {
            name: plain_values([row.get(name) for row in rows]) for name in names
        }
        self.source = source  # its number among the inputs, from 1

    def __len__(self) -> int:
        return len(self.items)

    def column(self, name: str, kind: str) -> Sequence[Any]:
        """Return the values of a field as its kind has them; None where one is missing."""
        if name == POSITION:
            return range(len(self))
        values = self.columns.get(name, [None] * len(self))
        try:
            return [None if v is None else _READ[kind](v) for v in values]
        except (TypeError, ValueError):
            for i, v in enumerate(values, start=1):
                if not _fits(v, kind):
                    raise BadData(
                        f"found {quoted(v)} in the field {quoted(name)}, expected {kind}",
                        sentence=self.source or None,
                        token=i,
                    ) from None
            raise


def fields_of(item: Any) -> Mapping[str, Any]:
    """Return the fields of an item by their names.

    Examples
    --------
    >>> fields_of(("Ann", 1980)), fields_of("Ann")
    ({'0': 'Ann', '1': 1980}, {'value': 'Ann'})
    """
    if isinstance(item, Mapping):
        return {str(name): value for name, value in item.items()}
    if isinstance(item, tuple):
        names = getattr(item, "_fields", range(len(item)))
        return {str(name): value for name, value in zip(names, item, strict=True)}
    if dataclasses.is_dataclass(item) and not isinstance(item, type):
        return {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
    if isinstance(item, (str, int, float, np.generic)) or item is None:
        return {VALUE: item}
    if hasattr(item, "__dict__"):
        return {name: v for name, v in vars(item).items() if not name.startswith("_")}
    raise BadData(
        f"found {quoted(item)} as an item, expected a table or tuple of fields, an object with "
        "attributes, text or a number"
    )


def plain_values(values: list[Any]) -> list[Any]:
    """Return values without NumPy's types and pandas' missing values; most have neither."""
    return values if {*map(type, values)} <= PLAIN else [plain(value) for value in values]


def plain(value: Any) -> Any:
    """Return a value without NumPy's types; what pandas has for a missing value is None."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    return value


def as_set(value: Any) -> frozenset[Hashable]:
    """Return a list as a set; a single value is a set of one."""
    if isinstance(value, (str, int, float, bool)) or not isinstance(value, Iterable):
        return frozenset([value])
    return frozenset(value)


def as_span(value: Any) -> tuple[int, int]:
    """Return a pair of whole numbers."""
    start, end = value
    return int(start), int(end)


def as_facts(value: Any) -> frozenset[tuple[Hashable, Hashable]]:
    """Return a table as the set of its keys with their values."""
    return frozenset(dict(value).items())


def as_vector(value: Any) -> bytes:
    """Return a list or an array of numbers as the bytes of 32-bit floats."""
    vector = np.asarray(value, np.float32)
    if vector.ndim != 1 or not len(vector) or not np.isfinite(vector).all():
        raise ValueError
    return vector.tobytes()


_READ: dict[str, Any] = {
    TEXT: str,
    CATEGORY: str,
    NUMBER: float,
    SET: as_set,
    SPAN: as_span,
    FACTS: as_facts,
    VECTOR: as_vector,
}


def _fits(value: Any, kind: str) -> bool:
    try:
        return value is None or _READ[kind](value) is not None
    except (TypeError, ValueError):
        return False


def kind_of(values: Iterable[Any]) -> str | None:
    """Return the kind of a field with these values; None if all are missing.

    Numbers, lists and arrays are told by their types. Text is a category if it has no blanks and
    few values.

    Examples
    --------
    >>> kind_of([1.5, None]), kind_of(["f", "m", "f"]), kind_of(["Ann Lee", "Bo"])
    ('number', 'category', 'text')
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in known):
        return NUMBER
    if all(isinstance(value, Mapping) for value in known):
        return FACTS
    if all(isinstance(value, np.ndarray) for value in known):
        return VECTOR
    if any(isinstance(value, (list, tuple, set, frozenset)) for value in known):
        return SET
    texts = {str(value) for value in known}
    if len(texts) <= min(MOST_CATEGORIES, max(2, len(known) // 2)) and not any(
        " " in text for text in texts
    ):
        return CATEGORY
    return TEXT


def kinds_of(
    documents: Sequence[Document], given: Mapping[str, str] | Sequence[str] | None
) -> dict[str, str]:
    """Return the kind of each field: as given, else as the values have it."""
    present = dict.fromkeys(name for document in documents for name in document.columns)
    names = list(present) if given is None else list(given)
    kinds: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name) or name in (POSITION, *OF_CLUSTERS):
            raise BadData(
                f"found the field {quoted(name)}, expected letters, digits and _, and not "
                f"{', '.join(OF_CLUSTERS)} or {POSITION}"
            )
        if name not in present:
            raise BadData(f"found no field {quoted(name)}, expected one of {listed(present)}")
        kind = given[name] if isinstance(given, Mapping) else None
        if kind is None:
            kind = kind_of(v for d in documents for v in d.columns.get(name, ()))
        if kind is not None:
            kinds[name] = check_kind(name, kind)
    if not kinds:
        raise BadData("found no field with a value, expected at least one")
    return kinds


def check_kind(name: str, kind: str) -> str:
    """Return a kind of fields; raise BadData for any other text."""
    if kind not in KINDS:
        raise BadData(f"found the kind {quoted(kind)} of {quoted(name)}, expected {listed(KINDS)}")
    return kind
