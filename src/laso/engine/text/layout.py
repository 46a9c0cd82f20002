"""The arrays with which feature lists are read."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from laso.engine.layout import Array


class Marshalled(NamedTuple):
    """Sentences as ``marshal.dumps(sentences, 4)`` writes them, and the room to read them."""

    bytes: Array  # uint8
    references: Array  # int64: where the objects begin to which others refer
    meta: Array  # int64 (TextMeta,)
    real: Array  # float64 (1,)
    bits: Array  # int64 (1,): the same memory


class FeatureLists(NamedTuple):
    """The features of tokens, end to end."""

    counts: Array  # int64 (tokens,): the number of features of each token
    keys: Array  # int64 (features,)
    values: Array  # float32 (features,)


class Names(NamedTuple):
    """The distinct names of features in the order of their first occurrence, end to end."""

    slots: Array  # int64 (capacity, SlotColumn): their numbers by their keys; as in WeightTable
    ints: Array  # int64 (TableInt,)
    ends: Array  # int64 (names,)
    text: Array  # uint8, with room for one more name


class TextMeta(IntEnum):
    """The state of reading."""

    N_REFERENCES = 0
    N_TOKENS = 1
    N_FEATURES = 2
    TOKEN_KINDS = 3  # of the tokens read
    NOT_ONE = 4  # the number of values other than 1
    KEEPS_NAMES = 5


class TokenKind(IntEnum):
    """The types of tokens, as flags."""

    AS_DICT = 1
    AS_LIST = 2
    AS_TUPLE = 4


class ReadStatus(IntEnum):
    """How a call ended."""

    READ = 0
    MORE_TEXT = 1  # there is no room for the next name
    OTHER = 2  # something is there that only the general code reads


N_REFERENCES, N_TOKENS, N_FEATURES, TOKEN_KINDS, NOT_ONE, KEEPS_NAMES = TextMeta
AS_DICT, AS_LIST, AS_TUPLE = TokenKind
READ, MORE_TEXT, OTHER = ReadStatus
