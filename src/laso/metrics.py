"""Chunk precision, recall and F as CoNLL's ``conlleval`` counts them, accuracy, and a baseline.

A tag is ``O``, or ``B`` or ``I`` with ``-`` and a type. A chunk begins at every ``B``, and at an
``I`` whose type is not that of the tag before it (``O`` has none): an ``I`` without its ``B``
is forgiven, and a change of type ends one chunk and begins another. A chunk ends before the next
``O`` or beginning, and with its sentence. A chunk found is correct if one that is wanted has the
same first token, last token and type. Ratios are in per cent, and 0 where nothing was counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from typing import NamedTuple

from laso.errors import BadData

Tags = Sequence[str]


class Chunk(NamedTuple):
    """Tokens ``start`` up to, but not with, ``end``."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class Counts:
    """How many chunks are correct, were found, and were wanted."""

    correct: int
    found: int
    wanted: int

    @property
    def precision(self) -> float:
        """Correct of found, in per cent."""
        return _percent(self.correct, self.found)

    @property
    def recall(self) -> float:
        """Correct of wanted, in per cent."""
        return _percent(self.correct, self.wanted)

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall, in per cent."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


@dataclass(frozen=True)
class ChunkScores(Counts):
    """The counts over all types, for each type, and over tags; ``str`` is conlleval's report."""

    types: Mapping[str, Counts]
    correct_tags: int
    tokens: int

    @property
    def accuracy(self) -> float:
        """Tags that are right, in per cent."""
        return _percent(self.correct_tags, self.tokens)

    def __str__(self) -> str:
        lines = [
            f"processed {self.tokens} tokens with {self.wanted} phrases; "
            f"found: {self.found} phrases; correct: {self.correct}."
        ]
        if self.tokens:
            lines.append(f"accuracy: {self.accuracy:6.2f}%; {_ratios(self)}")
        lines += [f"{name:>17}: {_ratios(n)}  {n.found}" for name, n in self.types.items()]
        return "\n".join(lines)


def chunks(tags: Tags) -> list[Chunk]:
    """The chunks of one sentence, in order."""
    result = []
    start, before = 0, None  # the type of the open chunk
    for i, tag in enumerate(tags):
        mark, kind = _parse(tag)
        begins = mark == "B" or (mark == "I" and kind != before)
        if before is not None and (begins or mark == "O"):
            result.append(Chunk(start, i, before))
        if begins:
            start = i
        before = kind
    if before is not None:
        result.append(Chunk(start, len(tags), before))
    return result


def chunk_scores(wanted: Iterable[Tags], found: Iterable[Tags]) -> ChunkScores:
    """Compare the tags found with the tags wanted, sentence by sentence."""
    correct: Counter[str] = Counter()
    n_found: Counter[str] = Counter()
    n_wanted: Counter[str] = Counter()
    right = tokens = 0
    for gold, guess in _aligned(wanted, found):
        gold_chunks, guess_chunks = chunks(gold), chunks(guess)
        n_wanted.update(chunk.type for chunk in gold_chunks)
        n_found.update(chunk.type for chunk in guess_chunks)
        correct.update(chunk.type for chunk in set(gold_chunks) & set(guess_chunks))
        right += sum(map(eq, gold, guess))
        tokens += len(gold)
    return ChunkScores(
        correct=correct.total(),
        found=n_found.total(),
        wanted=n_wanted.total(),
        types={
            name: Counts(correct[name], n_found[name], n_wanted[name])
            for name in sorted(n_wanted | n_found)
        },
        correct_tags=right,
        tokens=tokens,
    )


def accuracy(wanted: Iterable[Tags], found: Iterable[Tags]) -> float:
    """The tokens whose tag is right, in per cent; any tags."""
    right = tokens = 0
    for gold, guess in _aligned(wanted, found):
        right += sum(map(eq, gold, guess))
        tokens += len(gold)
    return _percent(right, tokens)


def majority_baseline(
    train: Iterable[Sequence[Sequence[str]]],
) -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """The baseline of the CoNLL-2000 shared task: each POS tag's most frequent chunk tag.

    ``train`` holds tokens (word, POS tag, chunk tag); the function returned gives the chunk tags
    of a sentence, and needs no third column. A POS tag never seen gets the most frequent chunk
    tag of all; of two equally frequent ones, the one seen first is taken.
    """
    by_pos: dict[str, Counter[str]] = {}
    overall: Counter[str] = Counter()
    for sentence in train:
        for _, pos, tag in sentence:
            by_pos.setdefault(pos, Counter())[tag] += 1
            overall[tag] += 1
    if not overall:
        raise BadData("found no token to count, expected (word, POS tag, chunk tag)")
    best = {pos: counts.most_common(1)[0][0] for pos, counts in by_pos.items()}
    default = overall.most_common(1)[0][0]

    def tag_sentence(sentence: Sequence[Sequence[str]]) -> list[str]:
        return [best.get(token[1], default) for token in sentence]

    return tag_sentence


def _parse(tag: str) -> tuple[str, str | None]:
    """The mark and the type, which may have hyphens; plain ``B`` and ``I`` are of the type ''."""
    if tag == "O":
        return "O", None
    mark, hyphen, kind = tag.partition("-")
    if mark not in ("B", "I") or (hyphen and not kind):
        raise BadData(f"found the tag {tag!r}, expected O, B-type or I-type")
    return mark, kind


def _aligned(wanted: Iterable[Tags], found: Iterable[Tags]) -> Iterable[tuple[Tags, Tags]]:
    golds, guesses = list(wanted), list(found)
    if len(golds) != len(guesses):
        raise ValueError(f"{len(golds)} sentences are wanted, but {len(guesses)} were found")
    for number, (gold, guess) in enumerate(zip(golds, guesses, strict=True), start=1):
        if len(gold) != len(guess):
            raise ValueError(
                f"sentence {number}: {len(gold)} tags are wanted, but {len(guess)} were found"
            )
    return zip(golds, guesses, strict=True)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _ratios(n: Counts) -> str:
    return f"precision: {n.precision:6.2f}%; recall: {n.recall:6.2f}%; FB1: {n.f:6.2f}"
