"""Direct speech of a text: which words are quoted, and which mentions say or hear them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from laso.data.coreference import Text
from laso.tasks.clustering.english import QUOTES, SINGLE_QUOTES, SPEECH

LONGEST_TAG = 12  # words around a quotation among which a verb of speech says whose it is


class Quotation(NamedTuple):
    """The words from an opening mark to the closing one.

    Quotations that one speaker interrupts only to be named are one utterance. Utterances that
    follow each other without a word between them are a conversation, whose turns have two sides.
    """

    begin: int
    end: int
    utterance: int
    conversation: int
    side: int  # 0 or 1
    speaker: int | None  # a mention


class Speech:
    """The quotations of a text.

    Attributes
    ----------
    quotations : list of Quotation
        In the order of the text.
    of_word : list of int
        For each word the number of its quotation, -1 outside of all.

    Examples
    --------
    >>> from laso.data.coreference import Mention
    >>> words = '" I am lost , " said Ann .'.split()
    >>> speech = Speech(Text([words], [Mention(0, 1, 1), Mention(0, 7, 7)]))
    >>> speech.quotations
    [Quotation(begin=0, end=6, utterance=0, conversation=0, side=0, speaker=1)]
    """

    def __init__(self, text: Text) -> None:
        self.words = [word for sentence in text.sentences for word in sentence]
        starts = [0]
        for written in text.sentences:
            starts.append(starts[-1] + len(written))
        self.bounds = set(starts)
        self.begins: dict[int, int] = {}  # the longest mention that begins at a word
        self.ends: dict[int, int] = {}
        for i, (sentence, first, last) in enumerate(text.mentions):
            self.begins.setdefault(starts[sentence] + first, i)
            self.ends.setdefault(starts[sentence] + last + 1, i)
        self.of_word = [-1] * len(self.words)
        self.quotations: list[Quotation] = []
        spans = quoted_spans(self.words)
        utterance = conversation = -1
        side = 0
        for n, (begin, end) in enumerate(spans):
            self.of_word[begin:end] = [n] * (end - begin)
            before = spans[n - 1][1] if n else -1
            after = spans[n + 1][0] if n + 1 < len(spans) else len(self.words)
            goes_on = n > 0 and self._goes_on(before, begin)
            speaker = self._after(end, after)
            if speaker is None:
                speaker = self._before(begin, max(before, 0))
            if not goes_on:
                utterance += 1
                side = 1 - side if begin == before else 0
                conversation += begin != before
            self.quotations.append(Quotation(begin, end, utterance, conversation, side, speaker))

    def _goes_on(self, before: int, begin: int) -> bool:
        """Return whether a quotation goes on after words that only name its speaker."""
        near = begin not in self.bounds and 0 < begin - before <= LONGEST_TAG
        return near and self._after(before, begin) is not None

    def _after(self, at: int, end: int) -> int | None:
        """Return the mention that a verb of speech after a quotation has as its subject."""
        for i in range(at, min(end, at + LONGEST_TAG)):
            if i in self.bounds and i > at and self.words[i - 1] in (".", "!", "?", ";"):
                return None
            if self.words[i].lower() in SPEECH:
                if i + 1 in self.begins:
                    return self.begins[i + 1]
                return self.ends.get(i)
        return None

    def _before(self, at: int, begin: int) -> int | None:
        """Return the subject of a verb of speech before a quotation."""
        for i in range(at - 1, max(begin, at - LONGEST_TAG) - 1, -1):
            if self.words[i] in (".", "!", "?", ";"):
                return None
            if self.words[i].lower() in SPEECH and i in self.ends:
                return self.ends[i]
        return None


def quoted_spans(words: Sequence[str]) -> list[tuple[int, int]]:
    """Return where quotations begin and end, their marks included.

    A mark that tells its side puts right what a missing one has turned round. Single marks count
    only in texts without double ones.

    Examples
    --------
    >>> quoted_spans('" No , " he said . " No .'.split())
    [(0, 4), (7, 10)]
    """
    marks = QUOTES if any(word in QUOTES for word in words) else SINGLE_QUOTES
    spans, begin = [], -1
    for i, word in enumerate(words):
        side = marks.get(word)
        if side is None:
            continue
        if begin < 0:
            if side >= 0:
                begin = i
        elif side == 1:
            spans.append((begin, i))
            begin = i
        else:
            spans.append((begin, i + 1))
            begin = -1
    if begin >= 0:
        spans.append((begin, len(words)))
    return spans
