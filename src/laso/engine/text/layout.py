"""The arrays with which feature lists and columns are read."""

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
    items: Array  # int32 (tokens or 0, 2): where the features of each token begin and end


class Names(NamedTuple):
    """The distinct names of features in the order of their first occurrence, end to end."""

    slots: Array  # int64 (capacity, SlotColumn): their numbers by their keys; as in WeightTable
    ints: Array  # int64 (TableInt,)
    ends: Array  # int64 (names,)
    text: Array  # uint8, with room for one more name


class Lexicon(NamedTuple):
    """Values of columns with their numbers: those of training, or those that it did not see."""

    slots: Array  # int64 (capacity, SlotColumn): entries by their keys; as in WeightTable
    ints: Array  # int64 (TableInt,): ROWS is the number of entries
    places: Array  # int64 (entries, PlaceColumn)
    text: Array  # uint8: the values end to end, with room for eight more bytes
    numbers: Array  # int32 (entries, most views of a column)


class Lines(NamedTuple):
    """The lines of a part of a column file."""

    bytes: Array  # uint8: whole lines, and room for eight more bytes
    comment: Array  # uint8: the prefix of comments; empty if there are none
    roles: Array  # int64 (columns of the file,): the input column, -1 if it is none
    lines: Array  # int64 (lines and ends of blocks, LineColumn)
    numbers: Array  # int32 (tokens,): the line of each token
    meta: Array  # int64 (LinesMeta,)


class Cells(NamedTuple):
    """The values of sentences as entries of lexicons; entries of the second follow the first."""

    codes: Array  # int32 (tokens, input columns)
    lengths: Array  # int64 (sentences,)


class PlaceColumn(IntEnum):
    """Where the bytes of an entry are, and of which input column it is a value."""

    PLACE_START = 0
    PLACE_END = 1
    PLACE_COLUMN = 2


class LineColumn(IntEnum):
    """A line to write: where it is, without what is not written, and its kind."""

    LINE_START = 0
    LINE_END = 1
    LINE_KIND = 2


class LineKind(IntEnum):
    """What is written for a line."""

    TOKEN = 0  # its label follows a space, or the separator of the format
    TABBED = 1  # its label follows a tab
    OTHER_LINE = 2  # a comment
    BLOCK_END = 3  # an empty line


class LinesMeta(IntEnum):
    """The state of reading lines."""

    LINES_AT = 0  # the next byte
    LINES_STOP = 1  # the end of the bytes
    LINES_READ = 2  # the number of lines before this part and in it
    N_LINES = 3  # the number of rows of ``lines``
    N_WORDS = 4  # tokens
    N_SENTENCES = 5
    SEPARATOR = 6  # a byte; -1 for any number of spaces and tabs
    IN_BLOCK = 7  # the number of lines of the present block
    IN_SENTENCE = 8  # the number of its tokens
    ENOUGH = 9  # tokens after which the end of a block ends a batch


class TextMeta(IntEnum):
    """The state of reading."""

    N_REFERENCES = 0
    N_TOKENS = 1
    N_FEATURES = 2
    TOKEN_KINDS = 3  # of the tokens read
    NOT_ONE = 4  # the number of values other than 1
    KEEPS_NAMES = 5
    MOST_LISTED = 6  # features of one token


class TokenKind(IntEnum):
    """The types of tokens, as flags."""

    AS_DICT = 1
    AS_LIST = 2
    AS_TUPLE = 4
    AS_STRING = 8


class ReadStatus(IntEnum):
    """How a call ended."""

    READ = 0
    MORE_TEXT = 1  # there is no room for the next name, or entry
    OTHER = 2  # something is there that only the general code reads


PLACE_START, PLACE_END, PLACE_COLUMN = PlaceColumn
LINE_START, LINE_END, LINE_KIND = LineColumn
TOKEN, TABBED, OTHER_LINE, BLOCK_END = LineKind
(
    LINES_AT,
    LINES_STOP,
    LINES_READ,
    N_LINES,
    N_WORDS,
    N_SENTENCES,
    SEPARATOR,
    IN_BLOCK,
    IN_SENTENCE,
    ENOUGH,
) = LinesMeta
N_REFERENCES, N_TOKENS, N_FEATURES, TOKEN_KINDS, NOT_ONE, KEEPS_NAMES, MOST_LISTED = TextMeta
AS_DICT, AS_LIST, AS_TUPLE, AS_STRING = TokenKind
READ, MORE_TEXT, OTHER = ReadStatus
PAD = 8  # bytes after a text that compiled code may read
