"""Distinct strings and their numbers: the values of a column, or those of a base feature.

Files and compiled code take the strings as bytes, Python looks them up in a dictionary. Each is
made of the other when it is first needed, so that a model is loaded without making a string.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, pairwise, repeat
from typing import Any

import numpy as np

from laso.data.table import Array
from laso.errors import BadModel
from laso.features.keys import encoded_strings, text_keys

UNKNOWN = -1
"""The number of a string that is not in a vocabulary."""


class Vocabulary(Mapping[str, int]):
    """Strings with the numbers from 0 on, in the order in which they were added.

    Several threads may look strings up while none is added.
    """

    def __init__(self, strings: Iterable[str] = ()) -> None:
        self._numbers: defaultdict[str, int] | None = defaultdict(None)
        self._encoded: tuple[bytes, Array] | None = None
        self.add([*strings])

    @property
    def by_string(self) -> defaultdict[str, int]:
        """The numbers by the strings; nothing but ``add`` may change them."""
        if self._numbers is None:
            numbers = defaultdict(None, zip(self._strings(), count(), strict=False))
            if len(numbers) < len(self):
                raise BadModel("found a string twice")
            self._numbers = numbers
        return self._numbers

    @property
    def encoded(self) -> tuple[bytes, Array]:
        """The strings in UTF-8, end to end, and where each ends."""
        encoded = self._encoded
        if encoded is None:
            text, lengths = encoded_strings(list(self.by_string))
            encoded = self._encoded = text, np.cumsum(lengths)
        return encoded

    def __getitem__(self, string: str) -> int:
        return self.by_string[string]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_string)

    def __len__(self) -> int:
        return len(self.encoded[1] if self._numbers is None else self._numbers)

    def numbers(self, strings: Sequence[Any]) -> Array:
        """Return the number of each string, UNKNOWN for others; they need not be strings."""
        return np.fromiter(
            map(self.by_string.get, strings, repeat(UNKNOWN)), np.int32, len(strings)
        )

    def some(self, chosen: Array) -> list[str]:
        """Return the strings of some numbers, without making the others."""
        text, ends = self.encoded
        starts = np.where(chosen > 0, ends[chosen - 1], 0)
        places = zip(starts.tolist(), ends[chosen].tolist(), strict=True)
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in places]

    def _strings(self) -> Iterator[str]:
        text, ends = self.encoded
        if not text.isascii():  # from bytes to characters
            begins = (np.frombuffer(text, np.uint8) & 0xC0) != 0x80
            ends = np.append(0, np.cumsum(begins))[ends]
        whole = text.decode("utf-8", "surrogatepass")
        return (whole[first:end] for first, end in pairwise([0, *ends.tolist()]))

    def add(self, strings: Sequence[str]) -> Array:
        """Number the strings that are new, in their order; return the numbers of all of them."""
        known = self.by_string
        before, known.default_factory = len(known), count(len(known)).__next__
        numbers = np.fromiter(map(known.__getitem__, strings), np.int32, len(strings))
        known.default_factory = None
        if len(known) > before:
            self._encoded = None
        return numbers

    def copy(self) -> Vocabulary:
        """Return a copy, to which other strings may be added."""
        copied = Vocabulary()
        copied._numbers = None if self._numbers is None else self._numbers.copy()
        copied._encoded = self._encoded
        return copied

    # ------------------------------------------------------------------ files

    def pack(self) -> dict[str, Array]:
        """Return the strings as tensors of a model file."""
        text, ends = self.encoded
        return {
            "text": np.frombuffer(text, np.uint8),
            "lengths": np.diff(ends, prepend=0).astype("<u4"),
        }

    @classmethod
    def unpack(cls, tensors: Mapping[str, Array], *, distinct: bool) -> Vocabulary:
        """Return the strings that ``pack`` packed; other tensors raise BadModel.

        A string that is there twice is found now if ``distinct``, else when one is looked up.
        """
        text, lengths = tensors["text"], tensors["lengths"]
        kinds = [array.dtype.str for array in (text, lengths)]
        if kinds != ["|u1", "<u4"]:
            raise BadModel(f"found strings as {', '.join(kinds)}")
        lengths = lengths.astype(np.int64)
        ends = np.cumsum(lengths)
        if int(lengths.sum()) != len(text):
            raise BadModel("found strings beyond their text")
        data, starts = text.tobytes(), ends - lengths
        data.decode("utf-8", "surrogatepass")
        inside = starts[starts < len(text)]
        if ((text[inside] & 0xC0) == 0x80).any():
            raise BadModel("found a string that begins inside of a character")
        vocabulary = cls()
        vocabulary._numbers, vocabulary._encoded = None, (data, ends)
        if distinct and _has_twice(text_keys(data, lengths)):
            vocabulary.by_string  # noqa: B018 - raises the error, unless other strings have one hash
        return vocabulary


def _has_twice(hashes: Array) -> bool:
    """Return whether two hashes are equal; most are compared with one that has the same place."""
    n = np.arange(len(hashes), dtype=np.int32)
    places = hashes & ((4 << len(n).bit_length()) - 1)
    last = np.empty(4 << len(n).bit_length(), np.int32)
    last[places] = n
    of_place = last[places]
    lost = np.flatnonzero(of_place != n)
    rest = np.sort(hashes[lost])
    return bool((hashes[of_place[lost]] == hashes[lost]).any() or (rest[1:] == rest[:-1]).any())
