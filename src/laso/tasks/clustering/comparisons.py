"""Comparisons of two values of a field: each has a few outcomes, which are bits of a pair.

A comparison is a function of distinct values and of two arrays of indices into them, and returns
the number of the outcome of each pair; -1 is none. ``OUTCOMES`` has their names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadData

Compare = Callable[[Sequence[Any], Array, Array], Array]

TEXT, CATEGORY, NUMBER, SET, SPAN = "text", "category", "number", "set", "span"
FACTS, VECTOR = "facts", "vector"
KINDS: dict[str, tuple[str, ...]] = {
    TEXT: ("equal", "words", "edit", "prefix", "suffix"),
    CATEGORY: ("equal",),
    NUMBER: ("equal", "difference", "ratio"),
    SET: ("equal", "overlap", "cosine"),
    SPAN: ("nested", "gap"),
    FACTS: ("agreement",),
    VECTOR: ("similar",),
}
"""The comparisons of fields of each kind."""
OUTCOMES: dict[str, tuple[str, ...]] = {
    "equal": ("yes", "no", "one missing", "both missing"),
    "words": ("none", "some", "half", "within", "all"),
    "overlap": ("none", "some", "half", "within", "all"),
    "cosine": ("1", "0.9", "0.8", "0.65", "0.5", "0.35", "0.2", "0.1", "0"),
    "edit": ("1", "0.9", "0.8", "0.65", "0.5", "0"),
    "prefix": ("0", "1", "2", "3", "4"),
    "suffix": ("0", "1", "2", "3", "4"),
    "difference": ("0", "1", "2", "4", "8", "16", "32", "64", "more"),
    "nested": ("no", "within", "around"),
    "agreement": ("none", "same", "different", "both"),
    "gap": ("0", "1", "2", "3", "5", "8", "13", "more"),
    "similar": ("0.9", "0.8", "0.7", "0.6", "0.5", "0.4", "0.3", "0.2", "0.1", "0", "below"),
    "ratio": ("1", "0.99", "0.95", "0.9", "0.8", "0.5", "0"),
}
ONE_MISSING, BOTH_MISSING = 2, 3
LEAST_SIMILAR = np.array([0.9999, 0.9, 0.8, 0.65, 0.5])
LEAST_COSINES = np.array([0.9999, 0.9, 0.8, 0.65, 0.5, 0.35, 0.2, 0.1])
LEAST_PRODUCTS = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1, 0])
LEAST_RATIOS = np.array([1, 0.99, 0.95, 0.9, 0.8, 0.5])
LARGEST_GAPS = np.array([0, 1, 2, 3, 5, 8, 13])
LARGEST_DIFFERENCES = np.array([0, 1, 2, 4, 8, 16, 32, 64])
ROUNDING = 1e-6
TOGETHER = 1 << 14  # pairs of vectors that are multiplied at a time
LONGEST = 64  # characters that edit distances look at
DENSE = 4  # all pairs of values are compared if they are at most so many times those that occur
_WORD = re.compile(r"\w+")


def affixes(values: Sequence[str], a: Array, b: Array) -> Array:
    """Return the length of the common prefix, at most 4."""
    heads = np.array([value[:4].lower() for value in values], "U4").view(np.uint32).reshape(-1, 4)
    same = (heads[a] == heads[b]) & (heads[a] > 0)
    return np.asarray(np.cumprod(same, axis=1).sum(axis=1))


def suffixes(values: Sequence[str], a: Array, b: Array) -> Array:
    """Return the length of the common suffix, at most 4."""
    return affixes([value[::-1] for value in values], a, b)


def word_overlap(values: Sequence[str], a: Array, b: Array) -> Array:
    """Return how far the words of two texts overlap, whatever their case and order."""
    return overlap([frozenset(_WORD.findall(value.lower())) for value in values], a, b)


def overlap(values: Sequence[frozenset[Hashable]], a: Array, b: Array) -> Array:
    """Return how far two sets overlap: by their Jaccard coefficient, and if one is within another.

    Examples
    --------
    >>> import numpy as np
    >>> sets = [frozenset("ab"), frozenset("abc"), frozenset("xy"), frozenset("ax")]
    >>> numbers = overlap(sets, np.array([0, 0, 0, 0]), np.array([0, 1, 2, 3]))
    >>> [OUTCOMES["overlap"][number] for number in numbers]
    ['all', 'within', 'none', 'some']
    """
    sizes = np.array([len(value) for value in values], np.int64)
    common = common_elements(values, a, b)
    smaller, either = np.minimum(sizes[a], sizes[b]), sizes[a] + sizes[b] - common
    outcome = (common > 0).astype(np.int64)
    outcome[(common > 0) & (2 * common >= either)] = 2
    outcome[(common > 0) & (common == smaller)] = 3
    outcome[common == either] = 4
    outcome[either == 0] = -1
    return outcome


def common_elements(values: Sequence[Collection[Hashable]], a: Array, b: Array) -> Array:
    """Return the number of elements that two sets have in common."""
    from scipy.sparse import csr_array

    numbers: dict[Hashable, int] = {}
    columns = [numbers.setdefault(each, len(numbers)) for value in values for each in value]
    ends = np.concatenate([[0], np.cumsum([len(value) for value in values])])
    shape = (len(values), max(1, len(numbers)))
    rows = csr_array((np.ones(len(columns), np.int32), columns, ends), shape=shape)
    if len(values) ** 2 <= DENSE * len(a):
        return np.asarray((rows @ rows.T).toarray())[a, b]
    return np.asarray((rows[a] * rows[b]).sum(axis=1)).ravel()


def agreement(values: Sequence[frozenset[tuple[Hashable, Hashable]]], a: Array, b: Array) -> Array:
    """Return whether two tables have the same or different values under the keys they share.

    Examples
    --------
    >>> import numpy as np
    >>> tables = [{"eyes": "blue"}, {"eyes": "blue", "age": 3}, {"eyes": "red"}, {"age": 3}]
    >>> facts = [frozenset(table.items()) for table in tables]
    >>> numbers = agreement(facts, np.array([0, 0, 0]), np.array([1, 2, 3]))
    >>> [OUTCOMES["agreement"][number] for number in numbers]
    ['same', 'different', 'none']
    """
    same = common_elements(values, a, b)
    shared = common_elements([{key for key, _ in value} for value in values], a, b)
    return (same > 0) + 2 * (shared > same)


def cosines(values: Sequence[frozenset[Hashable]], a: Array, b: Array) -> Array:
    """Return the range of the cosine of two sets, whose elements count more if they are rare.

    An element has the weight log((n + 1) / m) if m of n sets have it.
    """
    rows = rare_vectors(values)
    cosine = np.asarray((rows[a] * rows[b]).sum(axis=1)).ravel()
    return np.asarray((cosine[:, None] < LEAST_COSINES).sum(axis=1))


def rare_vectors(values: Sequence[Collection[Hashable]]) -> Any:
    """Return each set as a sparse vector of length 1, in which rare elements weigh more.

    Examples
    --------
    >>> rare_vectors([{"ann", "lee"}, {"ann"}]).toarray().round(2).tolist()
    [[0.35, 0.94], [1.0, 0.0]]
    """
    from scipy.sparse import csr_array

    numbers: dict[Hashable, int] = {}
    column = np.array(
        [
            numbers.setdefault(each, len(numbers))
            for value in values
            for each in sorted(value, key=str)
        ],
        np.int64,
    )
    n, sizes = len(values), np.array([len(value) for value in values], np.int64)
    row, counts = np.repeat(np.arange(n), sizes), np.bincount(column, minlength=1)
    weight = np.log((n + 1) / np.maximum(counts, 1))[column]
    length = np.sqrt(np.bincount(row, weight**2, minlength=n))
    return csr_array((weight / length[row], (row, column)), shape=(n, len(counts)))


def edit_similarity(values: Sequence[str], a: Array, b: Array) -> Array:
    """Return the range of 1 - distance / length, by the edit distance of two texts.

    Myers' algorithm (1999) has a column of the table of distances in the bits of two words; it
    runs here over all pairs at once. The first 64 characters count.
    """
    texts = [value[:LONGEST].lower() for value in values]
    lengths = np.array([len(text) for text in texts], np.int64)
    width = int(lengths.max(initial=1))
    letters = np.array(texts, f"U{max(1, width)}").view(np.uint32).reshape(len(texts), -1)
    alphabet, codes = np.unique(letters, return_inverse=True)
    codes = codes.reshape(letters.shape)
    places = np.zeros((len(texts), len(alphabet)), np.uint64)  # of each letter, as bits
    for i in range(letters.shape[1]):
        has = np.flatnonzero(lengths > i)
        places[has, codes[has, i]] |= np.uint64(1 << i)
    one, n = np.uint64(1), lengths[a]
    last = one << np.maximum(n - 1, 0).astype(np.uint64)
    up, down = np.full(len(a), ~np.uint64(0)), np.zeros(len(a), np.uint64)
    distance, m = n.copy(), lengths[b]
    for i in range(int(m.max(initial=0))):
        equal = places[a, codes[b, i]]
        vertical = equal | down
        horizontal = (((equal & up) + up) ^ up) | equal
        rises, falls = down | ~(horizontal | up), up & horizontal
        change = ((rises & last) > 0).astype(np.int64) - ((falls & last) > 0)
        distance += np.where((i < m) & (n > 0), change, 0)
        rises, falls = (rises << one) | one, falls << one
        up, down = falls | ~(vertical | rises), rises & vertical
    distance = np.where(n == 0, m, distance)
    similarity = 1 - distance / np.maximum(np.maximum(n, m), 1)
    return np.asarray((similarity[:, None] < LEAST_SIMILAR).sum(axis=1))


def differences(values: Sequence[float], a: Array, b: Array) -> Array:
    """Return the range of the difference of two numbers."""
    numbers = np.array(values, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        between = np.abs(numbers[a] - numbers[b])
    return np.asarray((between[:, None] > LARGEST_DIFFERENCES).sum(axis=1))


def ratios(values: Sequence[float], a: Array, b: Array) -> Array:
    """Return the range of the smaller number divided by the larger one; 0 if signs differ."""
    numbers = np.array(values, np.float64)
    low, high = np.minimum(numbers[a], numbers[b]), np.maximum(numbers[a], numbers[b])
    low, high = np.where(high <= 0, -high, low), np.where(high <= 0, -low, high)
    ratio = np.where(low == high, 1.0, np.maximum(low, 0) / np.maximum(high, 1e-300))
    return np.asarray((ratio[:, None] < LEAST_RATIOS).sum(axis=1))


def similarities(values: Sequence[bytes], a: Array, b: Array) -> Array:
    """Return the range of the cosine of two dense vectors, given as the bytes of float32 numbers.

    Examples
    --------
    >>> import numpy as np
    >>> values = [np.array(v, np.float32).tobytes() for v in ([1, 0], [4, 3], [-1, 0])]
    >>> numbers = similarities(values, np.array([0, 0, 0]), np.array([0, 1, 2]))
    >>> [OUTCOMES["similar"][number] for number in numbers]
    ['0.9', '0.8', 'below']
    """
    if len(sizes := {len(value) // 4 for value in values}) > 1:
        raise BadData(f"found vectors of {min(sizes)} and of {max(sizes)} numbers, expected one")
    rows = np.frombuffer(b"".join(values), np.float32).reshape(len(values), -1)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    cosine = np.empty(len(a), np.float32)
    for first in range(0, len(a), TOGETHER):
        part = slice(first, first + TOGETHER)
        cosine[part] = np.einsum("ij,ij->i", rows[a[part]], rows[b[part]])
    return np.asarray((cosine[:, None] < LEAST_PRODUCTS - ROUNDING).sum(axis=1))


def nestings(values: Sequence[tuple[int, int]], a: Array, b: Array) -> Array:
    """Return whether a span (start, end) is within another, or around it."""
    ends = np.array(values, np.int64).reshape(-1, 2)
    within = (ends[a, 0] >= ends[b, 0]) & (ends[a, 1] <= ends[b, 1])
    around = (ends[a, 0] <= ends[b, 0]) & (ends[a, 1] >= ends[b, 1])
    return np.where(within, 1, np.where(around, 2, 0))


def gaps(values: Sequence[tuple[int, int]], a: Array, b: Array) -> Array:
    """Return the range of the distance between two spans, 0 if they touch or overlap."""
    ends = np.array(values, np.int64).reshape(-1, 2)
    gap = np.maximum(ends[a, 0] - ends[b, 1], ends[b, 0] - ends[a, 1])
    return np.asarray((gap[:, None] > LARGEST_GAPS).sum(axis=1))


COMPARE: dict[str, Compare] = {
    "words": word_overlap,
    "overlap": overlap,
    "cosine": cosines,
    "edit": edit_similarity,
    "prefix": affixes,
    "suffix": suffixes,
    "difference": differences,
    "ratio": ratios,
    "nested": nestings,
    "gap": gaps,
    "agreement": agreement,
    "similar": similarities,
}


def numbered_values(values: Sequence[Any]) -> tuple[list[Any], Array]:
    """Return the distinct values that are not None, and the number of each value; -1: None."""
    numbers: dict[Any, int] = {}
    codes = [-1 if v is None else numbers.setdefault(v, len(numbers)) for v in values]
    return list(numbers), np.array(codes, np.int64)


def outcomes_of(name: str, distinct: Sequence[Any], a: Array, b: Array) -> Array:
    """Return the outcome of a comparison for pairs of values, as ``numbered_values`` has them.

    Examples
    --------
    >>> import numpy as np
    >>> pairs = np.array([0, 0, -1]), np.array([1, 0, 1])
    >>> [int(n) for n in outcomes_of("prefix", ["Anna", "Anders"], *pairs)]
    [2, 4, -1]
    """
    if name == "equal":
        missing = (a < 0).astype(np.int64) + (b < 0)
        return np.asarray(np.where(missing > 0, ONE_MISSING - 1 + missing, a != b))
    result = np.full(len(a), -1, np.int64)
    both = np.flatnonzero((a >= 0) & (b >= 0))
    if not len(both):
        return result
    a, b, n = a[both], b[both], len(distinct)
    if n * n <= DENSE * len(both):
        every = np.divmod(np.arange(n * n), n)
        table = COMPARE[name](distinct, *every)
        result[both] = table[a * n + b]
    else:
        pairs, inverse = np.unique(a * n + b, return_inverse=True)
        result[both] = COMPARE[name](distinct, *np.divmod(pairs, n))[inverse.ravel()]
    return result
