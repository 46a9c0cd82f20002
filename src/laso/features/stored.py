"""Strings of model files, which become Python's strings when these are needed.

A file without compression has the values of a column as text, and of each base feature the numbers
of all values and the hashes of its own values. So a model is loaded without making a string, and
labels its first sentences by hashes; after some more, dictionaries are made, which are faster.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Generic, TypeVar

import numpy as np

from laso.engine import thresholds
from laso.engine.layout import Array
from laso.errors import BadModel
from laso.features.keys import encoded_strings, string_keys, text_keys
from laso.locks import cached_property

SAMPLE = 64  # values of which base features are computed again when a model is loaded
UNKNOWN = -1

Key = TypeVar("Key")
Value = TypeVar("Value")


class Later(Mapping[Key, Value], Generic[Key, Value]):
    """A dictionary that is made when something is looked up in it; copies are plain dictionaries.

    Parameters
    ----------
    make : callable
        It returns the dictionary.
    """

    def __init__(self, make: Callable[[], dict[Key, Value]]) -> None:
        self.make = make

    @cached_property
    def made(self) -> dict[Key, Value]:
        """The dictionary."""
        return self.make()

    def __getitem__(self, key: Key) -> Value:
        return self.made[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.made)

    def __len__(self) -> int:
        return len(self.made)

    def __or__(self, other: Any) -> dict[Key, Value]:
        both = {**self.made}
        both.update(other)
        return both

    def __reduce__(self) -> Any:
        return dict, (self.made,)


def made_dict(known: Mapping[Key, Value]) -> dict[Key, Value]:
    """Return the dictionary itself, to which more may be added."""
    return known if isinstance(known, dict) else {**known}


class StoredStrings(Later[str, int]):
    """Distinct strings with the numbers from 0 on, by their hashes until many are looked up.

    Parameters
    ----------
    size : int
        The number of the strings.
    strings : callable
        It returns them.
    hashes : callable
        It returns their hashes, sorted, and the number that belongs to each.
    """

    def __init__(
        self,
        size: int,
        strings: Callable[[], Sequence[str]],
        hashes: Callable[[], tuple[Array, Array]],
    ) -> None:
        super().__init__(lambda: dict(zip(strings(), range(size), strict=True)))
        self.size, self.hashes, self.asked = size, hashes, 0

    def __len__(self) -> int:
        return self.size

    @cached_property
    def sorted(self) -> tuple[Array, Array]:
        """The hashes, sorted, and the number that belongs to each."""
        return self.hashes()

    def numbers(self, strings: Sequence[Any]) -> Array:
        """Return the number of each string, UNKNOWN for others; they need not be strings."""
        self.asked += len(strings)
        few = thresholds.LOOKUPS_PER_STRING * self.asked < self.size and "made" not in vars(self)
        if not few or not all(map(str.__instancecheck__, strings)):
            return numbers_in(self.made, strings)
        return self.by_hash(strings)

    def by_hash(self, strings: Sequence[str]) -> Array:
        """Return the number of each string, UNKNOWN for others, by their hashes alone."""
        asked = string_keys(strings).view(np.uint64)
        known, numbers = self.sorted
        if not self.size:
            return np.full(len(strings), UNKNOWN, np.int32)
        places = np.minimum(np.searchsorted(known, asked), self.size - 1)
        return np.where(known[places] == asked, numbers[places], UNKNOWN).astype(np.int32)


def numbers_in(known: Mapping[str, int], strings: Sequence[Any]) -> Array:
    """Return the numbers of strings, UNKNOWN for those that are not known."""
    if isinstance(known, StoredStrings):
        return known.numbers(strings)
    return np.fromiter(map(known.get, strings, repeat(UNKNOWN)), np.int32, len(strings))


# --------------------------------------------------------------------------- the values of columns


class StoredValues(StoredStrings):
    """The values of a column, whose text is in a model file.

    Parameters
    ----------
    text : array of uint8
        The values in UTF-8, end to end.
    ends : array of int64
        Where each ends.
    order : array of uint32
        The values sorted by their hashes.
    """

    def __init__(self, text: Array, ends: Array, order: Array) -> None:
        self.text, self.ends, self.order = text.tobytes(), ends, order
        self.lengths = np.diff(ends, prepend=0)
        super().__init__(len(ends), lambda: self.some(np.arange(len(ends))), self._by_hash)

    def some(self, chosen: Array) -> list[str]:
        """Return some of the values."""
        ends = self.ends[chosen]
        places = zip((ends - self.lengths[chosen]).tolist(), ends.tolist(), strict=True)
        return [self.text[first:end].decode("utf-8", "surrogatepass") for first, end in places]

    def all_numbers(self) -> Array:
        """Return the numbers of all values as a base feature that changes none."""
        return np.arange(self.size, dtype=np.int32)

    def _by_hash(self) -> tuple[Array, Array]:
        return text_keys(self.text, self.lengths).view(np.uint64)[self.order], self.order


def pack_values(values: Sequence[str]) -> dict[str, Array] | None:
    """Return the values of a column as tensors for ``StoredValues``; None: their hashes collide."""
    text, lengths = encoded_strings(values)
    hashes = text_keys(text, lengths).view(np.uint64)
    order = np.argsort(hashes)
    if not _is_increasing(hashes[order]):
        return None
    return {
        "text": np.frombuffer(text, np.uint8),
        "ends": np.cumsum(lengths).astype("<i8"),
        "order": order.astype("<u4"),
    }


def unpack_values(tensors: Mapping[str, Array]) -> StoredValues:
    """Return the values that ``pack_values`` packed; other tensors raise BadModel."""
    text, ends, order = tensors["text"], tensors["ends"], tensors["order"]
    kinds = [array.dtype.str for array in (text, ends, order)]
    if kinds != ["|u1", "<i8", "<u4"] or len(order) != len(ends):
        raise BadModel(f"found values of a column as {', '.join(kinds)}")
    starts = np.append(0, ends)[:-1]
    if (ends < starts).any() or np.append(0, ends)[-1] != len(text):
        raise BadModel("found values of a column beyond their text")
    if len(order) and order.max() >= len(order):
        raise BadModel("found an order of other values")
    made = StoredValues(text, ends, order)
    made.text.decode("utf-8", "surrogatepass")
    inside = starts[starts < len(text)]
    if ((text[inside] & 0xC0) == 0x80).any():
        raise BadModel("found a value of a column that begins inside of a character")
    if not _is_increasing(made.sorted[0]):
        raise BadModel("found a column value twice")
    return made


def _is_increasing(hashes: Array) -> bool:
    return bool((hashes[1:] > hashes[:-1]).all())


# --------------------------------------------------------------------------- base features

Bases = Callable[[Sequence[str]], Sequence[str]]
"""The base features of a column: a function of its values."""


def pack_bases(numbers: Array, strings: Sequence[str]) -> dict[str, Array] | None:
    """Return base features as tensors: the number of each value, and the hashes of their strings.

    None: hashes collide.
    """
    hashes = string_keys(strings).view(np.uint64)
    order = np.argsort(hashes)
    if not _is_increasing(hashes[order]):
        return None
    return {
        "numbers": numbers.astype("<i4"),
        "hashes": hashes[order].astype("<u8"),
        "order": order.astype("<u4"),
    }


def unpack_bases(
    tensors: Mapping[str, Array], values: StoredValues, compute: Bases, *, whole: bool
) -> tuple[Array, StoredStrings]:
    """Return the numbers of all values, and the strings that these stand for.

    Base features of some values are computed again, of all if ``whole``. If they come out otherwise
    than in the file, BadModel is raised; for the others, when all strings are needed.
    """
    numbers, hashes, order = tensors["numbers"], tensors["hashes"], tensors["order"]
    kinds, n = [array.dtype.str for array in (numbers, hashes, order)], len(hashes)
    if kinds != ["<i4", "<u8", "<u4"] or len(order) != n or len(numbers) != len(values):
        raise BadModel(f"found base features as {', '.join(kinds)}")
    if len(values) and not (numbers.min() >= 0 and numbers.max() < n and order.max() < n):
        raise BadModel("found base features of other strings")
    if not _is_increasing(hashes):
        raise BadModel("found a base feature twice")

    def strings() -> list[str]:
        found = compute(values.some(np.arange(len(values))))
        made = {string: i for i, string in enumerate(dict.fromkeys(found))}
        again = np.fromiter(map(made.__getitem__, found), np.int32, len(found))
        by_hash = string_keys(list(made)).view(np.uint64)
        if len(made) != n or (again != numbers).any() or (by_hash[order] != hashes).any():
            raise other_bases()
        return list(made)

    stored = StoredStrings(n, strings, lambda: (hashes, order))
    if whole:
        stored.made  # noqa: B018
        return numbers, stored
    some = np.linspace(0, max(0, len(values) - 1), min(SAMPLE, len(values)), dtype=np.int64)
    if (stored.by_hash(compute(values.some(some))) != numbers[some]).any():
        raise other_bases()
    return numbers, stored


def other_bases() -> BadModel:
    """Return the error about base features that differ from those of training."""
    return BadModel(
        "its base features come out otherwise here, perhaps because another version of Python "
        "knows other characters"
    )


def characters() -> str:
    """Return the version of Unicode that base features follow."""
    return unicodedata.unidata_version
