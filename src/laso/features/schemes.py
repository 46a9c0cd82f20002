"""Chunks as tags of words: BIO, IOB1 and IOBES, read as ``conlleval`` reads them.

    BIO    B-x begins a chunk, I-x continues it
    IOB1   I-x is in a chunk; B-x begins a chunk only directly after another of the same type
    IOBES  S-x is a chunk of one word; otherwise B-x begins, I-x continues and E-x ends a chunk

The reader accepts all three and any combination: a chunk begins at B or S, after E or S, and at I
or E whose type differs from that of the tag before. Plain B, I ... have the type "".

An unknown tag is None. It may then be undecided whether a chunk begins at a word.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from laso.data.table import Array, Column, Factor, numbered, position
from laso.errors import BadData, quoted

SCHEMES = ("BIO", "IOB1", "IOBES")
OUTSIDE = "O"
_MARKS = "OBIES"
NEVER, MAYBE, SURELY = range(3)  # whether a chunk begins at a word
_O, _B, _I, _E, _S = range(5)


class Spans(NamedTuple):
    """The chunks of all sentences, in order; every word outside is a chunk of its own.

    Where tags are unknown, the chunks are the shortest possible.
    """

    starts: Array  # the first token of each chunk
    lengths: Array
    types: Array  # indices into names, -1 where all tags are unknown
    names: tuple[str, ...]  # sorted; includes OUTSIDE if it occurs

    def limit(self) -> int:
        """Return the length of the longest chunk."""
        return int(self.lengths.max(initial=1))

    def longest(self) -> dict[str, int]:
        """Return the length of the longest chunk of each type."""
        of = [self.lengths[self.types == i] for i in range(len(self.names))]
        return {name: int(lengths.max()) for name, lengths in zip(self.names, of, strict=True)}


def read_tags(column: Column, lengths: Array) -> tuple[Spans, str]:
    """Return the chunks of tagged sentences, and the scheme of the tags."""
    factor = column if isinstance(column, Factor) else Factor(*numbered(column))
    parsed = [_parse_tag(tag, factor, lengths) for tag in factor.values]
    names = tuple(sorted({kind for _, kind in parsed}))
    marks = np.array([mark for mark, _ in parsed], np.int64)[factor.codes]
    types = np.array([names.index(kind) for _, kind in parsed], np.int64)[factor.codes]
    first = _sentence_beginnings(lengths)
    before = np.concatenate([[_O], marks[:-1]])
    before[first] = _O
    after_same = (before != _O) & (np.concatenate([[-1], types[:-1]]) == types)
    begins = np.isin(marks, (_O, _B, _S)) | np.isin(before, (_O, _E, _S)) | ~after_same
    starts = np.flatnonzero(begins)
    spans = Spans(starts, np.diff(starts, append=len(types)), types[starts], names)
    return spans, _scheme(marks, begins, after_same)


class PartialTags(NamedTuple):
    """What partially tagged sentences say about each word."""

    begins: Array  # whether a chunk begins: NEVER, MAYBE or SURELY
    types: Array  # as in Spans


def read_partial_tags(
    column: Sequence[str | None], lengths: Array
) -> tuple[Spans, PartialTags, str]:
    """Return the chunks, what is known about each word, and the scheme; some tags are None."""
    known = np.array([tag is not None for tag in column], bool)
    factor = Factor(*numbered([OUTSIDE if tag is None else tag for tag in column]))
    parsed = [_parse_tag(tag, factor, lengths) for tag in factor.values]
    names = tuple(sorted({parsed[code][1] for code in np.unique(factor.codes[known]).tolist()}))
    numbers = [names.index(kind) if kind in names else -1 for _, kind in parsed]
    marks = np.array([mark for mark, _ in parsed], np.int64)[factor.codes]
    types = np.where(known, np.array(numbers, np.int64)[factor.codes], -1)
    first = _sentence_beginnings(lengths)
    before, was_known = np.roll(marks, 1), np.roll(known, 1) | first
    before[first] = _O
    after_same = was_known & (before != _O) & (np.roll(types, 1) == types)
    apart = np.isin(marks, (_O, _B, _S)) | np.isin(before, (_O, _E, _S)) | ~after_same
    scheme = _scheme(marks[known & was_known], *(a[known & was_known] for a in (apart, after_same)))
    begins = np.where(apart, SURELY, NEVER)
    inside = known & ~was_known & np.isin(marks, (_I, _E))
    begins[inside] = MAYBE if scheme == "IOB1" else NEVER
    begins[~known] = np.where(was_known & np.isin(before, (_O, _E, _S)), SURELY, MAYBE)[~known]
    if scheme == "IOBES":
        goes_on = ~known & was_known & np.isin(before, (_B, _I))
        begins[goes_on], types[goes_on] = NEVER, np.roll(types, 1)[goes_on]
    starts = np.flatnonzero(begins != NEVER)
    spans = Spans(starts, np.diff(starts, append=len(types)), _span_types(types, starts), names)
    torn = (begins == NEVER) & (np.roll(types, 1) != types) & (np.roll(types, 1) >= 0)
    if torn.any():
        i = int(np.argmax(torn))
        raise BadData(
            f"found the tag {quoted(column[i])} in a chunk of the type "
            f"{quoted(names[types[i - 1]])}",
            **position(lengths, i),
        )
    return spans, PartialTags(begins, types), scheme


def _sentence_beginnings(lengths: Array) -> Array:
    """Return flags for the first token of each sentence."""
    first = np.zeros(int(lengths.sum()), bool)
    first[(np.cumsum(lengths) - lengths)[lengths > 0]] = True
    return first


def _span_types(types: Array, starts: Array) -> Array:
    """Return the types of spans: the largest of each, since all others are equal or -1."""
    return np.maximum.reduceat(types, starts) if len(starts) else types


def _scheme(marks: Array, begins: Array, after_same: Array) -> str:
    if np.isin(marks, (_E, _S)).any():
        return "IOBES"
    lone = (marks == _I) & begins
    return "IOB1" if lone.any() and not ((marks == _B) & ~after_same).any() else "BIO"


def split_tag(tag: str) -> tuple[str, str]:
    """Return mark and type of a tag; both are empty if the tag is malformed."""
    if tag == OUTSIDE:
        return OUTSIDE, OUTSIDE
    mark, hyphen, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
    is_tag = mark in ("B", "I", "E", "S") and (kind or not hyphen) and kind != OUTSIDE
    return (mark, kind) if is_tag else ("", "")


def chunks_of(tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Return the chunks of a sentence as (type, start, end), in order, words outside included."""
    spans, _ = read_tags(tags, np.array([len(tags)]))
    bounds = pairwise([*spans.starts.tolist(), len(tags)])
    names = (spans.names[i] for i in spans.types)
    return [(name, a, b) for name, (a, b) in zip(names, bounds, strict=True)]


def _parse_tag(tag: str, column: Factor, lengths: Array) -> tuple[int, str]:
    mark, kind = split_tag(tag)
    if not mark:
        token = int(np.argmax(column.codes == column.values.index(tag)))
        raise BadData(
            f"found the tag {quoted(tag)}, expected O, or B, I, E or S with - and a type that is "
            "not O",
            **position(lengths, token),
        )
    return _MARKS.index(mark), kind


def write_tags(spans: Spans, scheme: str, lengths: Array) -> list[list[str]]:
    """Return the tags of each sentence in a scheme."""
    n = int(spans.lengths.sum())
    of_span = np.repeat(np.arange(len(spans.starts)), spans.lengths)
    types = spans.types[of_span]
    first = np.zeros(n, bool)
    first[spans.starts] = True
    marks = np.where(first, _B, _I)
    ends = np.cumsum(lengths)
    if scheme == "IOB1":
        same = np.concatenate([[-1], types[:-1]]) == types
        same[(ends - lengths)[lengths > 0]] = False
        marks[first & ~same] = _I
    elif scheme == "IOBES":
        last = np.append(first[1:], True)[:n]
        marks[last] = np.where(first[last], _S, _E)
    kinds = [kind if kind == OUTSIDE else f"-{kind}" if kind else "" for kind in spans.names]
    table = [
        kind if kind == OUTSIDE else _MARKS[mark] + kind for kind in kinds for mark in range(5)
    ]
    tags = np.array(table, dtype=object)[types * 5 + marks].tolist()
    return [tags[a:b] for a, b in pairwise([0, *ends.tolist()])]


def convert_tags(sentences: Sequence[Sequence[str]], scheme: str) -> list[list[str]]:
    """Convert tagged sentences to a scheme.

    Parameters
    ----------
    sentences : sequence of sequences of str
        The tags of each sentence, in any of the schemes.
    scheme : {"BIO", "IOB1", "IOBES"}
        The scheme of the result.

    Returns
    -------
    list of list of str
        The same chunks in the scheme.
    """
    lengths = np.array([len(tags) for tags in sentences], np.int64)
    spans, _ = read_tags([tag for tags in sentences for tag in tags], lengths)
    return write_tags(spans, scheme, lengths)
