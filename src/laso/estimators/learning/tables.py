"""Transformations of weight tables: more labels, a bias for some labels, the mean of several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from laso.data.table import Features, position
from laso.engine import layout as at
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.weights.compact import keys_and_rows, make_sparse_table, make_table
from laso.engine.weights.row_layouts import (
    batches_of,
    dense_rows,
    from_triples,
    is_sparse,
    n_labels,
    sparse_rows,
)
from laso.errors import BadFeature, BadTemplate

MANY = 1000  # products of weights and values that a score may be the sum of


def wider(table: WeightTable, places: Sequence[int], n: int) -> WeightTable:
    """The table with n labels, of which the old ones are in these places."""
    if is_sparse(table):
        return _relabelled(table, places, n)
    arrays = {"v": table.v, "u": table.u, "precisions": table.precisions}
    return table._replace(**{name: moved(array, places, n) for name, array in arrays.items()})


def _relabelled(table: WeightTable, places: Sequence[int], n: int) -> WeightTable:
    """The same for sparse rows, whose entries name their labels."""
    ints, named = table.ints.copy(), np.asarray(places, np.int32)[table.entry_labels]
    ints[at.LABELS] = n
    arrays = sparse_rows(table._replace(entry_labels=named, ints=ints), np.arange(len(table.heads)))
    ints[at.USED] = len(arrays["v"])
    return table._replace(**arrays, ints=ints)


def _made(keys: Array, parts: Iterable[Array], like: WeightTable) -> WeightTable:
    """A table that only scores, with rows like those of another.

    The parts are dense rows, some at a time: all of them at once may take far more memory than
    sparse rows.
    """
    bits, width = int(like.ints[at.BITS]), n_labels(like)
    if not is_sparse(like):
        return make_table(keys, np.concatenate([like.v[:0], *parts]), bits=bits)
    rows, labels, values = [np.zeros(0, int)], [like.entry_labels[:0]], [like.v[:0, 0]]
    n = 0
    for part in parts:
        filled, named = np.nonzero(part)
        rows.append(filled + n)
        labels.append(named.astype(np.int32))
        values.append(part[filled, named])
        n += len(part)
    matrices = {"v": np.concatenate(values)}
    arrays = from_triples(np.concatenate(rows), np.concatenate(labels), matrices, len(keys), width)
    return make_sparse_table(keys, arrays, width, bits)


def moved(weights: Array, places: Sequence[int], n: int) -> Array:
    """Columns in their places among n, of which the others are zero."""
    if list(places) == list(range(n)):
        return weights
    among = np.zeros((len(weights), n), weights.dtype)
    among[:, places] = weights
    return among


def changed_weights(table: WeightTable, change: Callable[[Array], Array]) -> WeightTable:
    """A table that only scores, with a function of all weights; zero must stay zero."""
    v = table.v.copy()
    v[:] = change(v)
    return table._replace(v=v)


def with_bias(table: WeightTable, constants: list[int], amounts: Array) -> WeightTable:
    """A table that only scores, with amounts added to the weights of some keys, for each label."""
    if not constants:
        raise BadTemplate(
            "no feature is there in every step, so there is none to add a bias to: "
            "expected 'bias' or 'label[-1]' among the templates, 'length' among those of chunks, "
            "or bias_keys() of a task of your own"
        )
    bits = int(table.ints[at.BITS])
    mask = (1 << bits) - 1 if bits else -1
    keys, rows = keys_and_rows(table)
    wanted = np.array(sorted({key & mask for key in constants}), np.int64)
    missing = np.setdiff1d(wanted, keys)

    def parts() -> Iterator[Array]:
        for batch in batches_of(len(keys)):
            v = dense_rows(table, rows[batch])
            v[np.isin(keys[batch], wanted)] += amounts.astype(v.dtype)
            yield v
        yield np.tile(amounts.astype(table.v.dtype), (len(missing), 1))

    return _made(np.concatenate([keys, missing]), parts(), table)


def mean(tables: Sequence[WeightTable]) -> WeightTable:
    """A table that only scores, with the mean of weights; what a table does not have is zero."""
    stored = [keys_and_rows(table) for table in tables]
    keys: Array = reduce(np.union1d, [keys.view(np.uint64) for keys, _ in stored])
    places = [np.searchsorted(keys, chosen.view(np.uint64)) for chosen, _ in stored]

    def parts() -> Iterator[Array]:
        for batch in batches_of(len(keys)):
            v = np.zeros((batch.stop - batch.start, n_labels(tables[0])), tables[0].v.dtype)
            for table, place, (_, rows) in zip(tables, places, stored, strict=True):
                chosen = slice(*np.searchsorted(place, [batch.start, batch.stop]))
                v[place[chosen] - batch.start] += dense_rows(table, rows[chosen]) / len(tables)
            yield v

    return _made(keys.view(np.int64), parts(), tables[0])


def may_overflow(values: Array, largest: float) -> bool:
    """Return whether scores may overflow with these values and weights up to ``largest``."""
    return not largest * float(np.abs(values).max(initial=0.0)) < 1.0 / MANY


def check_overflow(inputs: Any, dataset: Dataset, largest: float) -> None:
    """Raise BadFeature if a score may overflow with weights up to ``largest`` (``largest_of``)."""
    if not may_overflow(dataset.values, largest):
        return
    highest = float(np.abs(dataset.values).max())
    where: Any = {}
    if isinstance(inputs, Features) and inputs.values is not None:
        feature = int(np.argmax(np.abs(inputs.values)))
        token = int(np.searchsorted(np.cumsum(inputs.counts), feature, side="right"))
        where = position(inputs.lengths, token)
    raise BadFeature(
        f"found the value {highest:.3g}, with which scores overflow, expected smaller ones", **where
    )
