"""The pieces of words: a tokenizer's numbers, and windows of sentences that are too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.errors import BadModel

Array = np.ndarray[Any, Any]

KEPT = 1 << 20  # words whose pieces are kept
MOST = 128  # pieces of one word; those behind count no more
OVERLAP = 128  # pieces that two windows of a sentence share at most
TOGETHER = 1 << 14  # words to split in one call


class Pieces:
    """The pieces of words, as a tokenizer of the library ``tokenizers`` splits them.

    Words are split one by one: of BERT's tokenizers, no word's pieces depend on other words.
    """

    def __init__(self, path: Path, longest: int = 512) -> None:
        self.longest = longest
        self.most = max(1, min(MOST, (longest - 2) // 2))
        try:
            from tokenizers import Tokenizer
        except ModuleNotFoundError as error:
            raise missing("tokenizers") from error
        try:
            self.tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises this class itself
            raise BadModel(f"found no tokenizer: {error}", file=str(path)) from error
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.begin, self.end, self.unknown = (
            self._special(name, path) for name in ("[CLS]", "[SEP]", "[UNK]")
        )
        self.known: dict[str, list[int]] = {}

    def _special(self, name: str, path: Path) -> int:
        number = self.tokenizer.token_to_id(name)
        if number is None:
            raise BadModel(f"found no piece {name}, expected a tokenizer of BERT", file=str(path))
        return int(number)

    @property
    def count(self) -> int:
        """The number of different pieces."""
        return int(self.tokenizer.get_vocab_size(with_added_tokens=True))

    def of(self, sentences: Iterable[Sequence[str]]) -> list[list[list[int]]]:
        """Return the numbers of the pieces of all words; a word of none gets the unknown one."""
        sentences = list(sentences)
        known = self.known
        new = sorted({word for words in sentences for word in words if word not in known})
        if len(known) + len(new) > KEPT:
            known = self.known = {}
            new = sorted({word for words in sentences for word in words})
        for begin in range(0, len(new), TOGETHER):
            some = new[begin : begin + TOGETHER]
            texts = [text.encode("utf-8", "replace").decode() for text in some]
            splits = self.tokenizer.encode_batch(texts, add_special_tokens=False)
            for word, split in zip(some, splits, strict=True):
                known[word] = split.ids[: self.most] or [self.unknown]
        return [[known[word] for word in words] for words in sentences]


class Window(NamedTuple):
    """The pieces of a sentence, or of a part of it, with their ends; and which words they are."""

    ids: Array
    row: int
    """The row of the first word whose vector is taken from here, among all words."""
    first: Array
    """The first piece of each of these words."""
    counts: Array


def windows(sentence: list[list[int]], row: int, pieces: Pieces) -> Iterator[Window]:
    """Yield windows of a sentence, whose first word has this row, that have every word once.

    Where a sentence is too long, windows overlap, and a word is taken from the one where it is
    further from the end.
    """
    counts = np.fromiter(map(len, sentence), np.int64, len(sentence))
    for begin, end, low, high in spans(counts, pieces.longest - 2):
        ids = [pieces.begin, *chain.from_iterable(sentence[begin:end]), pieces.end]
        taken = counts[low:high]
        before = 1 + int(counts[begin:low].sum())
        first = before + np.cumsum(taken) - taken
        yield Window(np.array(ids, np.int32), row + low, first, taken)


def spans(counts: Array, room: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield windows of words: begin and end, and the words that take their vectors from there.

    Examples
    --------
    >>> import numpy as np
    >>> list(spans(np.array([1, 2, 1]), room=10))
    [(0, 3, 0, 3)]
    >>> list(spans(np.ones(8, int), room=4))
    [(0, 4, 0, 3), (2, 6, 3, 5), (4, 8, 5, 8)]
    """
    ends = np.cumsum(counts)
    n, begin, low = len(counts), 0, 0
    overlap = min(OVERLAP, room // 2)
    while low < n:
        before = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, before + room, side="right")), begin + 1)
        if end == n:
            yield begin, n, low, n
            return
        there = int(ends[end - 1])
        following = int(np.searchsorted(ends, there - overlap)) + 1
        following = min(max(following, begin + 1), end)
        high = max((following + end) // 2, low + 1)
        yield begin, end, low, high
        begin, low = min(following, high), high


def missing(package: str) -> ModuleNotFoundError:
    """Return the error about a package of the extra ``encoder`` that is not there."""
    return ModuleNotFoundError(
        f"the package {package} is not there: python -m pip install 'laso[encoder]'", name=package
    )
