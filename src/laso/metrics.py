"""Chunk precision, recall and F as CoNLL's ``conlleval`` counts them, accuracy, and a baseline.

A tag is ``O``, or ``B`` or ``I`` with ``-`` and a type. A chunk begins at every ``B``, and at an
``I`` whose type is not that of the tag before it (``O`` has none): an ``I`` without its ``B``
is forgiven, and a change of type ends one chunk and begins another. A chunk ends before the next
``O`` or beginning, and with its sentence. A predicted chunk is correct if a gold chunk has the same
first token, last token and type. Ratios are in per cent, and 0 where nothing was counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import eq
from typing import NamedTuple

from laso.errors import BadData, quoted

Tags = Sequence[str]


class Chunk(NamedTuple):
    """A chunk: its first token ``start``, the token ``end`` after its last, and its type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class Counts:
    """The numbers of correct, predicted and gold chunks."""

    correct: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """The share of the predicted chunks that are correct, in per cent."""
        return _percent(self.correct, self.predicted)

    @property
    def recall(self) -> float:
        """The share of the gold chunks that are predicted, in per cent."""
        return _percent(self.correct, self.gold)

    @property
    def f(self) -> float:
        """The harmonic mean of precision and recall, in per cent."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


@dataclass(frozen=True)
class ChunkScores(Counts):
    """The counts of all types and of each type, and of tags; ``str`` gives conlleval's report."""

    types: Mapping[str, Counts]
    correct_tags: int
    tokens: int

    @property
    def accuracy(self) -> float:
        """The share of the tokens with the gold tag, in per cent."""
        return _percent(self.correct_tags, self.tokens)

    def __str__(self) -> str:
        lines = [
            f"processed {self.tokens} tokens with {self.gold} phrases; "
            f"found: {self.predicted} phrases; correct: {self.correct}."
        ]
        if self.tokens:
            lines.append(f"accuracy: {self.accuracy:6.2f}%; {_ratios(self)}")
        lines += [f"{name:>17}: {_ratios(n)}  {n.predicted}" for name, n in self.types.items()]
        return "\n".join(lines)


def chunks(tags: Tags) -> list[Chunk]:
    """Return the chunks of one sentence, in order.

    Parameters
    ----------
    tags : sequence of str
        The tags in BIO or IOB1.

    Returns
    -------
    list of Chunk
        The chunks.

    Examples
    --------
    >>> chunks(["B-NP", "I-NP", "O"])
    [Chunk(start=0, end=2, type='NP')]
    """
    result = []
    start, before = 0, None  # the type of the open chunk
    for i, tag in enumerate(tags):
        mark, kind = _parse(tag, i)
        begins = mark == "B" or (mark == "I" and kind != before)
        if before is not None and (begins or mark == "O"):
            result.append(Chunk(start, i, before))
        if begins:
            start = i
        before = kind
    if before is not None:
        result.append(Chunk(start, len(tags), before))
    return result


def chunk_scores(gold: Iterable[Tags], predicted: Iterable[Tags]) -> ChunkScores:
    """Return precision, recall and F of chunks, as ``conlleval`` computes them.

    Parameters
    ----------
    gold, predicted : iterables of sequences of str
        The gold and the predicted tags of each sentence, in BIO or IOB1.

    Returns
    -------
    ChunkScores
        The scores of all types and of each type.

    Examples
    --------
    >>> chunk_scores([["B-NP", "I-NP", "B-VP"]], [["B-NP", "I-NP", "O"]]).recall
    50.0
    """
    correct: Counter[str] = Counter()
    n_predicted: Counter[str] = Counter()
    n_gold: Counter[str] = Counter()
    right = tokens = 0
    for number, (tags, guesses) in enumerate(aligned(gold, predicted), start=1):
        try:
            gold_chunks, predicted_chunks = chunks(tags), chunks(guesses)
        except BadData as error:
            raise error.at(sentence=number) from None
        n_gold.update(chunk.type for chunk in gold_chunks)
        n_predicted.update(chunk.type for chunk in predicted_chunks)
        correct.update(chunk.type for chunk in set(gold_chunks) & set(predicted_chunks))
        right += sum(map(eq, tags, guesses))
        tokens += len(tags)
    return ChunkScores(
        correct=correct.total(),
        predicted=n_predicted.total(),
        gold=n_gold.total(),
        types={
            name: Counts(correct[name], n_predicted[name], n_gold[name])
            for name in sorted(n_gold | n_predicted)
        },
        correct_tags=right,
        tokens=tokens,
    )


def accuracy(gold: Iterable[Tags], predicted: Iterable[Tags]) -> float:
    """Return the token accuracy, in per cent.

    Parameters
    ----------
    gold, predicted : iterables of sequences of str
        The gold and the predicted tags of each sentence, of any kind.

    Returns
    -------
    float
        The percentage of tokens with the gold tag, 0 without tokens.

    Examples
    --------
    >>> accuracy([["DT", "NN"]], [["DT", "VB"]])
    50.0
    """
    right = tokens = 0
    for tags, guesses in aligned(gold, predicted):
        right += sum(map(eq, tags, guesses))
        tokens += len(tags)
    return _percent(right, tokens)


def majority_baseline(
    train: Iterable[Sequence[Sequence[str]]],
) -> Callable[[Sequence[Sequence[str]]], list[str]]:
    """Train the baseline of the CoNLL-2000 shared task: each POS tag's most frequent chunk tag.

    Parameters
    ----------
    train : iterable of sentences
        Sentences of tokens (word, POS tag, chunk tag).

    Returns
    -------
    callable
        A function from a sentence, with or without chunk tags, to its predicted chunk tags. An
        unknown POS tag gets the most frequent chunk tag of all; of two equally frequent tags, the
        first in the data wins.
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


def _parse(tag: str, i: int) -> tuple[str, str | None]:
    """Return mark and type, which may have hyphens; plain ``B`` and ``I`` are of the type ''."""
    if tag == "O":
        return "O", None
    mark, hyphen, kind = tag.partition("-")
    if mark not in ("B", "I") or (hyphen and not kind):
        raise BadData(f"found the tag {quoted(tag)}, expected O, B-type or I-type", token=i + 1)
    return mark, kind


def aligned(gold: Iterable[Tags], predicted: Iterable[Tags]) -> Iterable[tuple[Tags, Tags]]:
    """Pair gold with predicted sentences; both must have the same lengths."""
    pairs = list(gold), list(predicted)
    n_gold, n_predicted = map(len, pairs)
    if n_gold != n_predicted:
        raise BadData(f"found {n_predicted} predicted sentences, expected {n_gold} as in gold")
    for number, (tags, guesses) in enumerate(zip(*pairs, strict=True), start=1):
        if len(tags) != len(guesses):
            raise BadData(
                f"found {len(guesses)} predicted tags, expected {len(tags)} as in gold",
                sentence=number,
            )
    return zip(*pairs, strict=True)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _ratios(n: Counts) -> str:
    return f"precision: {n.precision:6.2f}%; recall: {n.recall:6.2f}%; FB1: {n.f:6.2f}"
