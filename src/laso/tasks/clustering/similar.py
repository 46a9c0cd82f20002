"""Candidates of records: those that share words which few records have.

A record is a vector of its words, each weighted by its rarity (the logarithm of n / the number of
records that have it). Two records are compared if the cosine of their vectors is large enough, and
if one is among the most similar records of the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from laso.engine.layout import Array
from laso.tasks.clustering.comparisons import rare_vectors

WORK = 2000  # pairs with a common word for each record, of which the rarest words count
ROWS = 1000  # records that are compared with all others at a time
_WORD = re.compile(r"\w+")


def words_of(columns: Mapping[str, Sequence[Any]]) -> list[set[str]]:
    """Return the words of each record; those with digits are of their field.

    Examples
    --------
    >>> [sorted(words) for words in words_of({"name": ["Ann Lee", None], "zip": ["4011", "X"]})]
    [['ann', 'lee', 'zip=4011'], ['x']]
    """
    pairs = ([(name, value) for value in values] for name, values in columns.items())
    rows = zip(*pairs, strict=True)
    return [{word for name, value in row for word in _words(name, value)} for row in rows]


def _words(name: str, value: Any) -> Iterator[str]:
    if value is None:
        return
    values = value if isinstance(value, (list, tuple, set, frozenset)) else (value,)
    for each in values:
        for word in _WORD.findall(str(each).lower()):
            yield word if word.isalpha() else f"{name}={word}"


class Pairs(NamedTuple):
    """Two records of each pair, the later one first, and the cosine of the two."""

    first: Array
    second: Array
    cosine: Array

    def take(self, kept: Array) -> Pairs:
        """Return some of the pairs."""
        return Pairs(*(each[kept] for each in self))


def similar_pairs(
    words: Sequence[set[str]], least: float, most: int, sources: Sequence[Any] | None = None
) -> Pairs:
    """Return the pairs of similar records in ascending order.

    A pair has at least the cosine ``least``, and is among the ``most`` best of one of the two. With
    ``sources`` both have different ones.

    Examples
    --------
    >>> pairs = similar_pairs([{"ann", "lee"}, {"bo", "day"}, {"ann", "leigh"}], 0.1, 5)
    >>> pairs.first.tolist(), pairs.second.tolist()
    ([2], [0])
    """
    matrix = _vectors(words)
    columns = matrix.T.tocsr()
    source = None if sources is None else np.unique(np.array(sources, str), return_inverse=True)[1]
    found = [Pairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
    for begin in range(0, len(words), ROWS):
        product = (matrix[begin : begin + ROWS] @ columns).tocoo()
        a, b = (each.astype(np.int64) for each in product.coords)
        a += begin
        kept = (a != b) & (product.data >= least)
        if source is not None:
            kept &= source[a] != source[b]
        a, b, cosine = a[kept], b[kept], product.data[kept]
        best = _ranks(a, cosine) < most
        found.append(Pairs(np.maximum(a, b)[best], np.minimum(a, b)[best], cosine[best]))
    pairs = Pairs(*(np.concatenate(each) for each in zip(*found, strict=True)))
    numbers = pairs.first * len(words) + pairs.second
    return pairs.take(np.unique(numbers, return_index=True)[1])


def with_cosines(words: Sequence[set[str]], first: Array, second: Array) -> Pairs:
    """Return given pairs with the cosines of their words.

    Examples
    --------
    >>> import numpy as np
    >>> with_cosines([{"ann"}, {"bo"}, {"ann"}], np.array([2]), np.array([0])).cosine.tolist()
    [1.0]
    """
    rows = _vectors(words)
    cosine = np.zeros(len(first))
    for begin in range(0, len(first), ROWS * ROWS):
        part = slice(begin, begin + ROWS * ROWS)
        cosine[part] = np.asarray((rows[first[part]] * rows[second[part]]).sum(axis=1)).ravel()
    return Pairs(first, second, cosine)


def bounded(pairs: Pairs, n: int, most: int) -> Pairs:
    """Leave out the least similar pairs so that no more than ``most`` records are connected.

    Where more are, pairs connect records one after the other, except where too many would be
    connected: first the most similar pair of each record, then its second one, and so on.

    Examples
    --------
    >>> import numpy as np
    >>> chain = Pairs(np.array([1, 2, 3]), np.array([0, 1, 2]), np.array([0.9, 0.2, 0.8]))
    >>> bounded(chain, 4, 3).cosine.tolist()
    [0.9, 0.8]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ones = np.ones(len(pairs.first), bool)
    graph = coo_array((ones, (pairs.first, pairs.second)), shape=(n, n))
    part = connected_components(graph, directed=False)[1]
    large = np.bincount(part, minlength=1)[part] > most
    if not large.any():
        return pairs
    heads, sizes = list(range(n)), [1] * n

    def head(i: int) -> int:
        while heads[i] != i:
            heads[i] = i = heads[heads[i]]
        return i

    some = pairs.take(large[pairs.first])
    both = np.concatenate([some.first, some.second])
    ranks = _ranks(both, np.concatenate([some.cosine, some.cosine])).reshape(2, -1).min(axis=0)
    ranked = some.take(np.lexsort((-some.cosine, ranks)))
    for a, b in zip(ranked.first.tolist(), ranked.second.tolist(), strict=True):
        a, b = head(a), head(b)
        if a != b and sizes[a] + sizes[b] <= most:
            heads[b] = a
            sizes[a] += sizes[b]
    ends = np.array([head(i) for i in range(n)])
    return pairs.take(~large[pairs.first] | (ends[pairs.first] == ends[pairs.second]))


def _vectors(words: Sequence[set[str]]) -> Any:
    """Return a row of length 1 for each record, without words that too many records have."""
    rows = rare_vectors(words)
    counts = np.bincount(rows.indices, minlength=rows.shape[1])
    order = np.argsort(counts, kind="stable")
    kept = np.zeros(len(counts), bool)
    kept[order[np.cumsum(counts[order].astype(np.float64) ** 2) <= WORK * len(words)]] = True
    return rows[:, kept & (counts > 1)]


def _ranks(of: Array, value: Array) -> Array:
    """Return the rank of each value among those of the same record, from 0 for the highest.

    Values are from 0 to 1, so that one key sorts by records and values.
    """
    order = np.argsort(of - value / 2, kind="stable")
    starts = np.flatnonzero(np.diff(of[order], prepend=-1))
    ranks = np.zeros(len(of), np.int64)
    ranks[order] = np.arange(len(of)) - np.repeat(starts, np.diff([*starts, len(of)]))
    return ranks
