"""Feature lists read by compiled code, from the bytes that Python's ``marshal`` writes.

``marshal`` writes strings, numbers, lists and dicts of exactly these types. Whatever else a token
has, ``laso.features.inputs`` reads it, with the same result.
"""

from __future__ import annotations

import functools
import marshal
import sys
from collections.abc import Callable
from itertools import chain, pairwise
from typing import Any

import numpy as np

from laso.data.table import Array, Features
from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.machine import longer
from laso.engine.native import text_kernels
from laso.engine.native.calls import Prepared
from laso.engine.text import layout as lt
from laso.engine.text.layout import PAD, FeatureLists, Marshalled, Names
from laso.engine.weights.hash_table import placed

FORMAT = 4  # the version of marshal's format
SLICE = 200  # sentences to write at a time
ROOM = 1 << 16  # bytes of a sentence that is read in arrays kept for the next one
NO_ITEMS = np.zeros((0, 2), np.int32)

_free: list[ListReader] = []  # of calls that have ended


def read_marshalled(sentences: list[Any], kinds: int, *, named: bool) -> Features | None:
    """Return the feature lists of sentences; None if only the general code can read them.

    All tokens must be of one kind, which is among the flags ``kinds``. The names of features are
    kept if ``named``.
    """
    return _read(sentences, kinds, named=named) if is_usable() else None


def _read(sentences: list[Any], kinds: int, *, named: bool) -> Features | None:
    if len(sentences) == 1 and not named:
        try:
            data = marshal.dumps(sentences, FORMAT)
        except ValueError:  # it cannot write everything
            return None
        if len(data) <= ROOM:
            # Out of the list: another thread, or a signal in this one, may read meanwhile.
            try:
                reader = _free.pop()
            except IndexError:
                reader = ListReader()
            counts = reader.read(data, kinds)
            features = None if counts is None else reader.features(counts)
            _free.append(reader)
            return features
    try:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        sizes = np.fromiter(map(len, chain.from_iterable(sentences)), np.int64, int(lengths.sum()))
        return _Reader(lengths, sizes).read(sentences, kinds, named=named)
    except (TypeError, ValueError):  # not everything has a length, or can be written
        return None


# --------------------------------------------------------------------------- many sentences


class _Reader:
    """Reads many sentences, slice by slice."""

    def __init__(self, lengths: Array, sizes: Array) -> None:
        self.lengths = lengths
        self.ends = np.concatenate([[0], np.cumsum(sizes)])[np.append(0, np.cumsum(lengths))]
        self.lists = FeatureLists(
            np.zeros(len(sizes), np.int64),
            np.empty(int(self.ends[-1]), np.int64),
            np.empty(int(self.ends[-1]), np.float32),
            NO_ITEMS,
        )
        self.names = Names(
            np.zeros((2, len(at.SlotColumn)), np.int64),
            np.zeros(len(at.TableInt), np.int64),
            np.zeros(2, np.int64),
            np.zeros(ROOM, np.uint8),
        )
        self.meta = np.zeros(len(lt.TextMeta), np.int64)

    def read(self, sentences: list[Any], kinds: int, *, named: bool) -> Features | None:
        """Return the feature lists; None if there is something that only general code reads."""
        self.meta[lt.KEEPS_NAMES] = named
        for first in range(0, len(sentences), SLICE):
            part = sentences[first : first + SLICE]
            if named:
                self._make_room(int(self.ends[first + len(part)] - self.ends[first]))
            if not read_slice(part, self.meta, self._call, self._more_text):
                return None
        if not _is_one_of(self.meta[lt.TOKEN_KINDS], kinds):
            return None
        n, plain = int(self.meta[lt.N_FEATURES]), not self.meta[lt.NOT_ONE]
        lists = self.lists
        values = None if plain else lists.values[:n]
        return Features(
            self.lengths, lists.counts, lists.keys[:n], values, names=self._decoded_names()
        )

    def _make_room(self, extra: int) -> None:
        """Make room for the numbers of so many more names."""
        names, need = self.names, int(self.names.ints[at.ROWS]) + extra + 2
        slots, ends = names.slots, names.ends
        if need > len(ends):
            ends = longer(ends, max(need, 2 * len(ends)))
        if 2 * need > len(slots):
            used = slots[slots[:, at.SLOT_ROW] != 0]
            slots = placed(used, 1 << (2 * need - 1).bit_length())
        self.names = names._replace(slots=slots, ends=ends)

    def _call(self, given: Marshalled) -> int:
        status, _ = text_kernels()("read_marshalled", given, self.lists, self.names)
        return int(status)

    def _more_text(self) -> None:
        self.names = self.names._replace(text=longer(self.names.text, 2 * len(self.names.text)))

    def _decoded_names(self) -> list[str]:
        ends = self.names.ends[: int(self.names.ints[at.ROWS]) + 1].tolist()
        text = self.names.text[: ends[-1]].tobytes()
        return [text[a:b].decode("utf-8", "surrogatepass") for a, b in pairwise(ends)]


def read_slice(
    sentences: list[Any],
    meta: Array,
    call: Callable[[Marshalled], int],
    make_room: Callable[[], None],
) -> bool:
    """Let compiled code read some sentences; return False if only general code can.

    Where it lacks room for text, ``make_room`` is called, and the sentences are read once more.
    ValueError: ``marshal`` cannot write them.
    """
    data = marshal.dumps(sentences, FORMAT)
    given, before = marshalled(bytearray(data + bytes(PAD)), meta), meta.copy()
    while (status := call(given)) == lt.MORE_TEXT:
        make_room()
        meta[:] = before
    return status == lt.READ


def marshalled(data: bytearray, meta: Array) -> Marshalled:
    """Return the arrays with which compiled code reads what ``marshal`` has written."""
    real = np.zeros(1)
    return Marshalled(
        np.frombuffer(data, np.uint8),
        np.zeros(len(data) // 2 + 1, np.int64),  # the shortest object has two bytes
        meta,
        real,
        real.view(np.int64),
    )


def _is_one_of(found: Any, kinds: int) -> bool:
    """Return whether all tokens are of one kind, and it is among these; there may be none."""
    kind = int(found)
    return not kind or (kind & (kind - 1) == 0 and kind & kinds != 0)


# --------------------------------------------------------------------------- one sentence


class ListReader:
    """The arrays for short sentences, and the call that reads into them, one at a time.

    ``lists`` stays where it is. A sentence replaces the one before.
    """

    def __init__(self) -> None:
        data = bytearray(ROOM)
        self.data, self.meta = memoryview(data), np.zeros(len(lt.TextMeta), np.int64)
        self.lists = FeatureLists(
            np.zeros(ROOM // 2, np.int64),
            np.zeros(ROOM // 2, np.int64),
            np.zeros(ROOM // 2, np.float32),
            np.zeros((ROOM // 2, 2), np.int32),
        )
        longs = np.zeros(2, np.int64)
        names = Names(
            np.zeros((2, len(at.SlotColumn)), np.int64),
            np.zeros(len(at.TableInt), np.int64),
            longs,
            np.zeros(2 * ROOM, np.uint8),
        )
        self.call: Prepared | None = text_kernels().prepared(
            "read_marshalled", marshalled(data, self.meta), self.lists, names
        )

    def read_one(self, x: Any, kinds: int) -> list[int] | None:
        """Read a sentence; return the members of ``TextMeta``, or None for the general code."""
        try:
            data = marshal.dumps([x], FORMAT)
        except ValueError:  # it cannot write everything
            return None
        return self.read(data, kinds) if len(data) <= ROOM else None

    def read(self, data: bytes, kinds: int) -> list[int] | None:
        """Read a list of sentences; return as ``read_one`` does."""
        call = self.call
        if call is None:
            return None
        self.data[: len(data)] = data
        self.meta.fill(0)
        status, _ = call()
        counts: list[int] = self.meta.tolist()
        if status != lt.READ or not _is_one_of(counts[lt.TOKEN_KINDS], kinds):
            return None
        return counts

    def features(self, found: list[int]) -> Features:
        """Return the feature lists of the sentence that was read."""
        tokens, n = found[lt.N_TOKENS], found[lt.N_FEATURES]
        counts, keys, values, _ = self.lists
        reals = values[:n].copy() if found[lt.NOT_ONE] else None
        return Features(np.array([tokens]), counts[:tokens].copy(), keys[:n].copy(), reals)


# --------------------------------------------------------------------------- the format


@functools.cache
def is_usable() -> bool:
    """Return whether this Python writes the format that the compiled code reads."""
    if sys.implementation.name != "cpython" or sys.byteorder != "little":
        return False
    shared, half = "".join(["a", "b"]), 2.5
    token = {"w": shared, "x" * 300: 3, "\u20ac": shared, shared: True, "n": half, "m": half}
    features = _read([[token, token]], lt.AS_DICT, named=False)
    names = [f"w:{shared}", "x" * 300, f"\u20ac:{shared}", shared, "n", "m"]
    expected = [_key(name.encode()) for name in names]
    return (
        features is not None
        and features.keys.tolist() == 2 * expected
        and features.values is not None
        and features.values.tolist() == 2 * [1.0, 3.0, 1.0, 1.0, half, half]
    )


def _key(name: bytes) -> int:
    key = mix(0, len(name))
    for i in range(0, len(name), 8):
        key = mix(key, int.from_bytes(name[i : i + 8], "little"))
    return key
