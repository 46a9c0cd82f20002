"""Feature keys: 64-bit hashes of strings, for many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat

import numpy as np

from laso.data.table import Array
from laso.engine.text.layout import PAD

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_S1, _S2 = np.uint64(32), np.uint64(29)
_TAILS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def mix_arrays(a: Array, b: Array) -> Array:
    """Apply the feature hash ``laso.engine.hashing.mix`` to arrays of uint64, elementwise."""
    z = a ^ (b * _K1)
    z = (z ^ (z >> _S1)) * _K2
    return np.asarray(z ^ (z >> _S2))


def encoded_strings(strings: Sequence[str]) -> tuple[bytes, Array]:
    """Return the UTF-8 bytes of strings end to end, and their lengths."""
    encoded = list(map(str.encode, strings, repeat("utf-8"), repeat("surrogatepass")))
    return b"".join(encoded), np.fromiter(map(len, encoded), np.int64, len(encoded))


def first_words(text: bytes) -> Array:
    """Return the eight bytes from each place of a text on as a number; zeros follow its end."""
    return np.ndarray((len(text) + 1,), "<u8", text + bytes(PAD), strides=(1,))


def text_keys(text: bytes, lengths: Array) -> Array:
    """Hash strings to 64-bit feature keys: the length, then the UTF-8 bytes, eight at a time.

    ``text`` and ``lengths`` are as of ``encoded_strings``.
    """
    words = first_words(text)
    starts = np.cumsum(lengths) - lengths
    keys = mix_arrays(np.zeros(len(lengths), np.uint64), lengths.astype(np.uint64))
    left, places, at = lengths, starts, 0
    chosen: Array | slice = slice(None)  # nearly all strings have some bytes: no copies for them
    if len(left) and not left.min():
        chosen = np.flatnonzero(left)
        left, places = left[chosen], places[chosen]
    while len(left):
        tails = _TAILS[np.minimum(left - at, 8)]
        keys[chosen] = mix_arrays(keys[chosen], words[places].astype(np.uint64, copy=False) & tails)
        at += 8
        longer = np.flatnonzero(left > at)
        chosen = longer if isinstance(chosen, slice) else chosen[longer]
        left, places = left[longer], places[longer] + 8
    return keys.view(np.int64)


def string_keys(strings: Sequence[str]) -> Array:
    """Hash strings to 64-bit feature keys: the length, then the UTF-8 bytes, eight at a time."""
    return text_keys(*encoded_strings(strings))
