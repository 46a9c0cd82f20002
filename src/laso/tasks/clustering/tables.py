"""Tables as a user passes them: a DataFrame, a dict of columns, or a list of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from laso.errors import BadData, quoted
from laso.tasks.clustering.fields import fields_of, plain

EXPECTED = "expected a table: a DataFrame, a dict of columns, or a list of rows"


def is_frame(x: Any) -> bool:
    """Return whether an input is a DataFrame."""
    return hasattr(x, "to_dict") and hasattr(x, "columns")


def is_table(x: Any) -> bool:
    """Return whether an input can only be one table, or a pair of them, and no list of tables.

    Examples
    --------
    >>> is_table({"name": ["Ann"]}), is_table([{"name": "Ann"}]), is_table([{"name": ["Ann"]}])
    (True, True, False)
    """
    if is_frame(x) or isinstance(x, (Mapping, tuple)):
        return True
    if not isinstance(x, list) or not x or not isinstance(x[0], Mapping):
        return False
    return not any(map(_is_column, x[0].values()))


def columns_of(table: Any) -> dict[str, list[Any]]:
    """Return the columns of a table by their names; missing values are None.

    Examples
    --------
    >>> columns_of([{"name": "Ann", "zip": 4011.0}, {"name": "Bo"}])
    {'name': ['Ann', 'Bo'], 'zip': [4011, None]}
    """
    if is_frame(table):
        given = {str(name): list(table[name]) for name in table.columns}
        if len(given) < len(table.columns):
            raise BadData("found two columns of one name, expected different ones")
    elif isinstance(table, Mapping):
        given = _same_length(table)
    elif isinstance(table, (str, bytes)) or not isinstance(table, Iterable):
        raise BadData(f"found {quoted(table)}, {EXPECTED}")
    else:
        rows = [fields_of(row) for row in table]
        names = dict.fromkeys(name for row in rows for name in row)
        given = {name: [row.get(name) for row in rows] for name in names}
    return {name: [simple(value) for value in values] for name, values in given.items()}


def n_rows(table: Any) -> int:
    """Return the number of the rows of a table.

    Examples
    --------
    >>> n_rows({"name": ["Ann", "Bo"]})
    2
    """
    if isinstance(table, Mapping):
        return max((len(values) for values in _same_length(table).values()), default=0)
    return len(table)


def labels_of(table: Any) -> list[Any]:
    """Return the labels of the rows: the index of a pandas DataFrame, else their numbers.

    Examples
    --------
    >>> labels_of([{"name": "Ann"}, {"name": "Bo"}])
    [0, 1]
    """
    index = getattr(table, "index", None) if is_frame(table) else None
    return list(range(n_rows(table))) if index is None else list(index)


def simple(value: Any) -> Any:
    """Return a value without types of other libraries: whole numbers as int, dates as text.

    Examples
    --------
    >>> import datetime
    >>> simple(4011.0), simple(datetime.date(1908, 12, 9)), simple(float("nan")), simple(" ")
    (4011, '1908-12-09', None, None)
    """
    value = plain(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return value if value.strip() else None
    if hasattr(value, "isoformat"):
        return str(value.isoformat()).removesuffix("T00:00:00")
    return value


def _is_column(value: Any) -> bool:
    return isinstance(value, (list, tuple)) or (
        hasattr(value, "tolist") and hasattr(value, "shape")
    )


def _same_length(table: Mapping[Any, Any]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    for name, values in table.items():
        if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
            raise BadData(
                f"found {quoted(values)} as the column {quoted(name)}, expected a list of values"
            )
        columns[str(name)] = list(values)
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        short, long = (f(lengths, key=lengths.__getitem__) for f in (min, max))
        raise BadData(
            f"found {lengths[short]} values in the column {quoted(short)} and {lengths[long]} in "
            f"{quoted(long)}, expected equally many"
        )
    return columns


def clusters_from_pairs(pairs: Iterable[Sequence[Any]], table: Any) -> list[int]:
    """Return an id for each record: records of a pair have the same, as ``Clusterer.fit`` takes it.

    Parameters
    ----------
    pairs : iterable of pairs
        The numbers of two records that are of one entity, from 0; of a pandas DataFrame the labels
        of its index. They are linked transitively.
    table : int, table or pair of tables
        The records, or their number. Of a pair of tables the first of each two is of the left one.

    Examples
    --------
    >>> clusters_from_pairs([(0, 2), (2, 4)], 5)
    [0, 1, 0, 2, 0]
    """
    if isinstance(table, tuple) and len(table) == 2:
        left, right = ([*map(_hashable, labels_of(each))] for each in table)
        sides = [_numbers(left, 0), _numbers(right, len(left))]
        n = len(left) + len(right)
    else:
        labels = list(range(table)) if isinstance(table, int) else labels_of(table)
        sides, n = [_numbers([*map(_hashable, labels)], 0)] * 2, len(labels)
    heads = list(range(n))

    def head(i: int) -> int:
        while heads[i] != i:
            heads[i] = i = heads[heads[i]]
        return i

    for pair in pairs:
        ends = list(pair)
        if len(ends) != 2:
            raise BadData(f"found {quoted(pair)}, expected a pair of two records")
        both = []
        for numbers, label in zip(sides, ends, strict=True):
            number = numbers.get(_hashable(label))
            if number is None:
                raise BadData(f"found no record {quoted(label)}, which the pair {quoted(pair)} has")
            both.append(head(number))
        heads[max(both)] = min(both)
    numbers = dict[int, int]()
    return [numbers.setdefault(head(i), len(numbers)) for i in range(n)]


def _numbers(labels: Sequence[Any], first: int) -> dict[Any, int]:
    numbers = {label: i for i, label in enumerate(labels, start=first)}
    if len(numbers) < len(labels):
        raise BadData("found an index with a label that occurs twice, expected different ones")
    return numbers


def _hashable(label: Any) -> Any:
    return plain(label)
