"""Which earlier items an item is compared with, and how long a state must remember each item."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadData, quoted

Block = str | Callable[[Any], Any]
Choose = Callable[[Sequence[Any]], Sequence[Sequence[int]]]


def in_window(n: int, window: int) -> tuple[Array, Array]:
    """Return for n items how many items before each one are near, and these, in ascending order."""
    counts = np.minimum(np.arange(n), window)
    ends = np.cumsum(counts)
    first = np.arange(n) - counts
    return counts, np.arange(ends[-1] if n else 0) - np.repeat(ends - counts - first, counts)


def in_blocks(
    items: Sequence[Any],
    columns: Mapping[str, Sequence[Any]],
    blocking: Sequence[Block],
    most: int,
    nearest: int = 0,
) -> tuple[Array, Array]:
    """Return the last items before each one that share a key with it, at most so many.

    The nearest items before each one are among them, whatever their keys.

    A key is a field, or a function of an item; of a list each element is one. None is no key.
    """
    members: list[dict[Any, list[int]]] = [{} for _ in blocking]
    absent = [None] * len(items)
    keys = [
        columns.get(b, absent) if isinstance(b, str) else [b(item) for item in items]
        for b in blocking
    ]
    lists: list[list[int]] = []
    for i in range(len(items)):
        near = set(range(max(0, i - nearest), i))
        for known, values in zip(members, keys, strict=True):
            value = values[i]
            for key in _keys(value):
                if key is not None:
                    block = known.setdefault(key, [])
                    near.update(block[-most:])
                    block.append(i)
        lists.append(sorted(near)[-most:])
    return _joined(lists)


def _keys(value: Any) -> Sequence[Any]:
    """Return the keys that a value stands for, each once."""
    several = isinstance(value, (list, tuple, set, frozenset))
    try:
        return list(dict.fromkeys(value if several else (value,)))
    except TypeError:
        raise BadData(
            f"found the key {quoted(value)} of blocking, expected text, a number or a list of them"
        ) from None


def chosen(items: Sequence[Any], choose: Choose) -> tuple[Array, Array]:
    """Return the candidates that a function chooses: for each item the numbers of earlier ones."""
    given = choose(items)
    try:
        lists = [sorted(set(map(int, each))) for each in given]
    except (TypeError, ValueError):
        raise BadData(
            f"found the candidates {quoted(given)}, expected for each item a list of numbers"
        ) from None
    if len(lists) != len(items):
        raise BadData(f"found candidates for {len(lists)} items, expected {len(items)}")
    for i, each in enumerate(lists):
        if each and not (each[0] >= 0 and each[-1] < i):
            wrong = each[0] if each[0] < 0 else each[-1]
            raise BadData(
                f"found the candidate {quoted(wrong)} of item {i}, expected the numbers of items "
                "before it, from 0"
            )
    return _joined(lists)


def _joined(lists: Sequence[Sequence[int]]) -> tuple[Array, Array]:
    counts = np.fromiter(map(len, lists), np.int64, len(lists))
    return counts, np.fromiter(chain.from_iterable(lists), np.int64, int(counts.sum()))


def last_uses(counts: Array, others: Array, *, forgets: bool = True) -> Array:
    """Return the item after which a state may forget each item.

    That is the last one of which the item, or an earlier one with which it may come into a cluster,
    is a candidate. So a state that has an item has the members after it, too. Unless it ``forgets``
    members, it has those before it as well.

    Examples
    --------
    >>> import numpy as np
    >>> last_uses(np.array([0, 1, 0, 1]), np.array([0, 0])).tolist()  # 1 and 3 are compared with 0
    [3, 3, 2, 3]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(counts)
    last = np.arange(n)
    first, second = pairs(counts, others)
    np.maximum.at(last, second, first)
    graph = coo_array((np.ones(len(first), bool), (first, second)), shape=(n, n))
    part = connected_components(graph, directed=False)[1].astype(np.int64)
    if not forgets:
        final = np.zeros(int(part.max(initial=-1)) + 1, np.int64)
        np.maximum.at(final, part, last)
        return np.asarray(final[part])
    order = np.argsort(part, kind="stable")
    above = part[order] * n  # a part's numbers are above those of the parts before it
    last[order] = np.maximum.accumulate(above + last[order]) - above
    return last


def slots_of(last: Array) -> Array:
    """Return a slot for each item, which no other has until its last use.

    Items whose last use is past make room for later ones, so that a state is as long as the largest
    number of items that are in use at the same time.

    Examples
    --------
    >>> import numpy as np
    >>> slots_of(np.array([1, 2, 3, 3])).tolist()  # each is used by the next one
    [0, 1, 0, 1]
    """
    slots, used = np.zeros(len(last), np.int64), 0
    free: list[int] = []
    ends: list[tuple[int, int]] = []
    for i, end in enumerate(last.tolist()):
        while ends and ends[0][0] < i:
            heapq.heappush(free, heapq.heappop(ends)[1])
        slots[i] = heapq.heappop(free) if free else used
        used = max(used, int(slots[i]) + 1)
        heapq.heappush(ends, (end, int(slots[i])))
    return slots


def pairs(counts: Array, others: Array) -> tuple[Array, Array]:
    """Return the two items of each pair that is compared."""
    items = np.fromiter(
        chain.from_iterable(map(repeat, range(len(counts)), counts.tolist())), np.int64, len(others)
    )
    return items, others
