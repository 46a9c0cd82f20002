"""Comparisons of values, and candidates of items, against slow twins from their definitions."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso.errors import BadData
from laso.tasks.clustering import candidates as near
from laso.tasks.clustering.comparisons import (
    COMPARE,
    KINDS,
    OUTCOMES,
    numbered_values,
    outcomes_of,
)
from tests.spaces import quick


def above(value: float, bounds: tuple[str, ...]) -> str:
    """Return the first bound that a value is not above, else "more"."""
    return next((b for b in bounds if b != "more" and value <= float(b)), "more")


def below(value: float, bounds: tuple[str, ...]) -> str:
    """Return the first bound that a value is not below."""
    return next(b for b in bounds if value >= float(b))


def sets(a: Any, b: Any, names: tuple[str, ...]) -> str | None:
    if not a | b:
        return None
    if a == b:
        return "all"
    if a & b and (a < b or b < a):
        return "within"
    if 2 * len(a & b) >= len(a | b):
        return "half"
    return "some" if a & b else "none"


def words(a: str, b: str, names: tuple[str, ...]) -> str | None:
    one, other = (set(re.findall(r"\w+", text.lower())) for text in (a, b))
    return sets(one, other, names)


def levenshtein(a: str, b: str) -> int:
    """The textbook table."""
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
    return table[-1][-1]


def edit(a: str, b: str, names: tuple[str, ...]) -> str:
    a, b = a[:64].lower(), b[:64].lower()
    longest = max(len(a), len(b), 1)
    return below((longest - levenshtein(a, b)) / longest, names)


def prefix(a: str, b: str, names: tuple[str, ...]) -> str:
    a, b = a[:4].lower(), b[:4].lower()
    return str(max(n for n in range(5) if a[:n] == b[:n] and n <= min(len(a), len(b))))


def suffix(a: str, b: str, names: tuple[str, ...]) -> str:
    return prefix(a[::-1], b[::-1], names)


def ratio(a: float, b: float, names: tuple[str, ...]) -> str:
    if a == b:
        return "1"
    if a * b <= 0:
        return "0"
    small, large = sorted((abs(a), abs(b)))
    return below(small / large, names)


def nested(a: tuple[int, int], b: tuple[int, int], names: tuple[str, ...]) -> str:
    if b[0] <= a[0] and a[1] <= b[1]:
        return "within"
    return "around" if a[0] <= b[0] and b[1] <= a[1] else "no"


def gap(a: tuple[int, int], b: tuple[int, int], names: tuple[str, ...]) -> str:
    return above(max(a[0] - b[1], b[0] - a[1], 0), names)


def cosine(distinct: Any, a: Any, b: Any, names: tuple[str, ...]) -> str:
    """The cosine of vectors with log((n + 1) / m) for an element that m of the n sets have."""
    weight = {
        each: math.log((len(distinct) + 1) / sum(each in value for value in distinct))
        for each in set().union(*distinct)
    }
    lengths = [math.sqrt(sum(weight[each] ** 2 for each in value)) for value in (a, b)]
    common = sum(weight[each] ** 2 for each in a & b)
    return below(common / max(math.prod(lengths), 1e-300) + 1e-9, names)


def agreement(a: Any, b: Any, names: tuple[str, ...]) -> str:
    one, other = dict(a), dict(b)
    same = any(one[key] == other[key] for key in one.keys() & other.keys())
    different = any(one[key] != other[key] for key in one.keys() & other.keys())
    return names[same + 2 * different]


def similar(a: bytes, b: bytes, names: tuple[str, ...]) -> str:
    """The cosine of two vectors; that of a vector of zeros is 0."""
    one, other = (np.frombuffer(each, np.float32).tolist() for each in (a, b))
    lengths = [math.hypot(*each) for each in (one, other)]
    product = sum(x * y for x, y in zip(one, other, strict=True))
    value = product / max(math.prod(lengths), 1e-12) + 2e-7
    return next((name for name in names[:-1] if value + 1e-6 >= float(name)), names[-1])


TEXTS = st.text(alphabet="aAbB c", max_size=8) | st.text(alphabet="ab", max_size=70) | st.text()
NUMBERS = (
    st.integers(-5, 130) | st.sampled_from([0.5, -0.25, 1e300, -1e300, 1e-5]) | st.floats(-200, 200)
)
FACTS = st.dictionaries(st.sampled_from("xy"), st.integers(0, 1)).map(
    lambda table: frozenset(table.items())
)
SPANS = st.tuples(st.integers(0, 20), st.integers(0, 4)).map(lambda s: (s[0], s[0] + s[1]))
VECTORS = st.tuples(*[st.integers(-4, 4)] * 3).map(lambda v: np.array(v, np.float32).tobytes())
TWINS: dict[str, tuple[Callable[..., str | None], st.SearchStrategy[Any]]] = {
    "words": (words, TEXTS),
    "edit": (edit, TEXTS),
    "prefix": (prefix, TEXTS),
    "suffix": (suffix, TEXTS),
    "overlap": (sets, st.frozensets(st.integers(0, 4), max_size=4)),
    "difference": (lambda a, b, names: above(abs(a - b), names), NUMBERS),
    "ratio": (ratio, NUMBERS),
    "nested": (nested, SPANS),
    "gap": (gap, SPANS),
    "agreement": (agreement, FACTS),
    "similar": (similar, VECTORS),
    "cosine": (cosine, st.frozensets(st.integers(0, 4), max_size=4)),
}


def test_every_comparison_has_a_twin():
    assert {name for names in KINDS.values() for name in names} <= {*TWINS, "equal"}
    assert set(OUTCOMES) == {*TWINS, "equal"}
    assert set(COMPARE) == set(TWINS)


@pytest.mark.parametrize("name", TWINS)
def test_a_comparison_is_what_its_definition_says(name):
    twin, values = TWINS[name]

    @quick
    @given(st.lists(values | st.none(), min_size=1, max_size=6), st.booleans())
    def same(column, few):
        distinct, codes = numbered_values(column)
        pairs = [(i, j) for i in range(len(column)) for j in range(len(column))]
        if few:  # fewer pairs than a table of all values has: another way through the code
            pairs = pairs[: max(1, len(pairs) // 8)]
        first, second = np.array(pairs).T
        outcomes = outcomes_of(name, distinct, codes[first], codes[second])
        for (i, j), outcome in zip(pairs, outcomes.tolist(), strict=True):
            a, b = column[i], column[j]
            given = (distinct, a, b) if twin is cosine else (a, b)
            expected = None if a is None or b is None else twin(*given, OUTCOMES[name])
            found = None if outcome < 0 else OUTCOMES[name][outcome]
            assert found == expected, (a, b)

    same()


@quick
@given(st.lists(st.sampled_from(["x", "y", None]), min_size=1, max_size=5))
def test_equal_tells_what_is_missing(column):
    distinct, codes = numbered_values(column)
    for i, a in enumerate(column):
        for j, b in enumerate(column):
            [outcome] = outcomes_of("equal", distinct, codes[[i]], codes[[j]])
            expected = "yes" if a == b else "no"
            if a is None or b is None:
                expected = "both missing" if a == b else "one missing"
            assert OUTCOMES["equal"][outcome] == expected


@quick
@given(st.text(alphabet="abc", max_size=64), st.text(alphabet="abc", max_size=64))
def test_long_edit_distances_are_exact(a, b):
    similarity = 1 - levenshtein(a, b) / max(len(a), len(b), 1)
    [outcome] = COMPARE["edit"]([a, b], np.array([0]), np.array([1]))
    low = float(OUTCOMES["edit"][outcome])
    assert similarity >= low - 1e-9
    assert math.isclose(low, 1) == (a == b)


# Candidates, and how long they are remembered.


def lists_of(counts: Any, others: Any) -> list[list[int]]:
    """Return the candidates of each item."""
    ends = np.cumsum(counts)
    return [others[e - n : e].tolist() for n, e in zip(counts, ends, strict=True)]


@quick
@given(st.integers(0, 9), st.integers(1, 12))
def test_a_window_has_the_last_items(n, window):
    assert lists_of(*near.in_window(n, window)) == [
        list(range(max(0, i - window), i)) for i in range(n)
    ]


KEYS = st.sampled_from(["u", "v", None]) | st.lists(st.sampled_from("uvw"), max_size=3)


@quick
@given(
    st.lists(st.tuples(KEYS, st.integers(0, 3)), max_size=9), st.integers(1, 4), st.integers(0, 2)
)
def test_blocks_have_the_last_items_with_a_common_key(rows, most, nearest):
    def keys(i: int) -> set[Any]:
        value = rows[i][0]
        own = set(value if isinstance(value, list) else [value]) - {None}
        return {("k", key) for key in own} | {("parity", rows[i][1] % 2)}

    items = [{"k": k, "n": n} for k, n in rows]
    columns = {"k": [k for k, _ in rows]}
    found = lists_of(
        *near.in_blocks(items, columns, ["k", lambda item: item["n"] % 2], most, nearest)
    )
    for i, candidates in enumerate(found):
        alike = set(range(max(0, i - nearest), i))
        for key in keys(i):
            alike |= set([j for j in range(i) if key in keys(j)][-most:])
        assert candidates == sorted(alike)[-most:]


def test_a_field_that_no_item_has_is_no_key():
    assert lists_of(*near.in_blocks([{}, {}], {}, ["k"], 5)) == [[], []]


GRAPHS = st.integers(0, 7).flatmap(
    lambda n: st.tuples(
        *(st.lists(st.integers(0, i - 1), unique=True) if i else st.just([]) for i in range(n))
    )
)


@quick
@given(GRAPHS, st.booleans())
def test_items_are_remembered_while_they_or_members_before_them_are_candidates(lists, forgets):
    n = len(lists)
    component = {i: {i} for i in range(n)}
    for i, candidates in enumerate(lists):
        for j in candidates:
            both = component[i] | component[j]
            component |= dict.fromkeys(both, both)
    use = [max([j, *(i for i in range(n) if j in lists[i])]) for j in range(n)]
    counts, others = near.chosen(range(n), lambda items: lists)
    last = near.last_uses(counts, others, forgets=forgets).tolist()
    assert last == [max(use[k] for k in component[j] if k <= j or not forgets) for j in range(n)]
    slots = near.slots_of(np.array(last, np.int64)).tolist()
    at_once = [{j for j in range(i + 1) if last[j] >= i} for i in range(n)]
    for used in at_once:
        assert len({slots[j] for j in used}) == len(used)
    assert max(slots, default=-1) + 1 == max(map(len, at_once), default=0)


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[]], "found candidates for 1 items, expected 2"),
        ([[], [1]], "found the candidate 1 of item 1, expected the numbers of items before it"),
        ([[], [-1]], "found the candidate -1 of item 1, expected"),
    ],
)
def test_chosen_candidates_are_earlier_items(lists, message):
    with pytest.raises(BadData, match=message):
        near.chosen(["a", "b"], lambda items: lists)
