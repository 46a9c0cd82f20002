"""Scores of labels: chunks as CoNLL's ``conlleval`` counts them, accuracy, scikit-learn's scores.

A tag is ``O``, or ``B``, ``I``, ``E`` or ``S`` with ``-`` and a type. A chunk begins at every ``B``
and ``S``, and at an ``I`` or ``E`` whose type is not that of the chunk before it (``O`` has none):
an ``I`` without its ``B`` is forgiven, and a change of type ends one chunk and begins another. A
chunk ends with ``E`` and ``S``, before the next ``O`` or beginning, and with its sentence. A
predicted chunk is correct if a gold chunk has the same first token, last token and type. As for
conlleval, ``B`` and ``B-`` have the empty type, and ``O-x`` is ``O``. Ratios are in per cent, and 0
where nothing was counted.

The functions ``flat_...`` and ``sequence_accuracy_score`` are those of sklearn-crfsuite: fractions,
computed by scikit-learn over the labels of all sentences.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import eq
from typing import Any, NamedTuple

from laso.errors import BadData, quoted

Tags = Sequence[str]
TAG = re.compile("[OBIES](-.*)?", re.DOTALL)


class Chunk(NamedTuple):
    """A chunk: its first token ``start``, the token ``end`` after its last, and its type."""

    start: int
    end: int
    type: str


@dataclass(frozen=True)
class Counts:
    """The numbers of correct, predicted and gold chunks.

    Examples
    --------
    >>> counts = Counts(correct=3, predicted=4, gold=6)
    >>> counts.precision, counts.recall, counts.f
    (75.0, 50.0, 60.0)
    """

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
    """The counts of all types and of each type, and of tags; ``str`` gives conlleval's report.

    Examples
    --------
    >>> scores = chunk_scores([["B-NP", "I-NP", "O"]], [["B-NP", "O", "O"]])
    >>> scores.gold, scores.predicted, scores.correct, scores.types["NP"].f
    (1, 1, 0, 0.0)
    """

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
        The tags in BIO, IOB1 or IOBES.

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
        begins = mark in ("B", "S") or (mark != "O" and kind != before)
        if before is not None and (begins or mark == "O"):
            result.append(Chunk(start, i, before))
        if begins:
            start = i
        before = kind
        if mark in ("E", "S"):
            result.append(Chunk(start, i + 1, kind or ""))
            before = None
    if before is not None:
        result.append(Chunk(start, len(tags), before))
    return result


def chunk_scores(gold: Iterable[Tags], predicted: Iterable[Tags]) -> ChunkScores:
    """Return precision, recall and F of chunks, as ``conlleval`` computes them.

    Parameters
    ----------
    gold, predicted : iterables of sequences of str
        The gold and the predicted tags of each sentence, in BIO, IOB1 or IOBES.

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

    Examples
    --------
    >>> predict = majority_baseline([[("the", "DT", "B-NP"), ("cat", "NN", "I-NP")]])
    >>> predict([("a", "DT"), ("dog", "NN")])
    ['B-NP', 'I-NP']
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


def are_tags(labels: Iterable[Any]) -> bool:
    """Tell whether labels are tags that mark chunks, so that F is their score.

    Parameters
    ----------
    labels : iterable
        The distinct labels.

    Returns
    -------
    bool
        Whether each label is such a tag. ``E`` and ``S`` without a type need ``B`` or ``I`` beside
        them, for they may be anything.

    Examples
    --------
    >>> are_tags(["O", "B-NP", "E-NP"]), are_tags(["NN", "O"]), are_tags(["S", "E"])
    (True, False, False)
    """
    kinds = set(labels)
    if not kinds or not all(isinstance(kind, str) and TAG.fullmatch(kind) for kind in kinds):
        return False
    return not {"E", "S"} & kinds or any(kind[0] in "BI" for kind in kinds)


def _parse(tag: str, i: int) -> tuple[str, str | None]:
    """Return mark and type, which may have hyphens; ``O`` has no type."""
    mark, _, kind = tag.partition("-")
    if mark not in ("O", "B", "I", "E", "S"):
        raise BadData(
            f"found the tag {quoted(tag)}, expected O, or B, I, E or S with a type", token=i + 1
        )
    return mark, None if mark == "O" else kind


def aligned(gold: Iterable[Tags], predicted: Iterable[Tags]) -> Iterable[tuple[Tags, Tags]]:
    """Pair gold with predicted sentences; both must have the same lengths.

    Examples
    --------
    >>> list(aligned([["A", "B"]], [["A", "C"]]))
    [(['A', 'B'], ['A', 'C'])]
    """
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


# --------------------------------------------------------------------------- sklearn-crfsuite's


def flat_accuracy_score(y_true: Iterable[Any], y_pred: Iterable[Any]) -> float:
    """Return the fraction of tokens with the right label.

    Examples
    --------
    >>> flat_accuracy_score([["A", "B"], ["A"]], [["A", "A"], ["A"]])
    0.6666666666666666
    """
    return float(_flat("accuracy_score", y_true, y_pred))


def flat_precision_score(y_true: Iterable[Any], y_pred: Iterable[Any], **options: Any) -> Any:
    """Return ``precision_score`` of scikit-learn over all tokens, with its options."""
    return _flat("precision_score", y_true, y_pred, **options)


def flat_recall_score(y_true: Iterable[Any], y_pred: Iterable[Any], **options: Any) -> Any:
    """Return ``recall_score`` of scikit-learn over all tokens, with its options."""
    return _flat("recall_score", y_true, y_pred, **options)


def flat_f1_score(y_true: Iterable[Any], y_pred: Iterable[Any], **options: Any) -> Any:
    """Return ``f1_score`` of scikit-learn over all tokens, with its options.

    Examples
    --------
    >>> round(flat_f1_score([["A", "B"], ["A"]], [["A", "A"], ["A"]], average="weighted"), 3)
    0.533
    """
    return _flat("f1_score", y_true, y_pred, **options)


def flat_fbeta_score(
    y_true: Iterable[Any], y_pred: Iterable[Any], beta: float, **options: Any
) -> Any:
    """Return ``fbeta_score`` of scikit-learn over all tokens, with its options."""
    return _flat("fbeta_score", y_true, y_pred, beta=beta, **options)


def flat_classification_report(
    y_true: Iterable[Any],
    y_pred: Iterable[Any],
    labels: Sequence[Any] | None = None,
    **options: Any,
) -> Any:
    """Return ``classification_report`` of scikit-learn over all tokens, with its options.

    Examples
    --------
    >>> report = flat_classification_report([["A", "B"]], [["B", "B"]], labels=["B"])
    >>> report.split()[:2]
    ['precision', 'recall']
    """
    return _flat("classification_report", y_true, y_pred, labels=labels, **options)


def sequence_accuracy_score(y_true: Iterable[Any], y_pred: Iterable[Any]) -> float:
    """Return the fraction of sentences whose labels are all right; 0 without sentences.

    Examples
    --------
    >>> sequence_accuracy_score([["A", "B"], ["A"]], [["A", "B"], ["B"]])
    0.5
    """
    pairs = list(zip(y_true, y_pred, strict=True))
    return sum(list(a) == list(b) for a, b in pairs) / len(pairs) if pairs else 0.0


def _flat(name: str, *sides: Iterable[Any], **options: Any) -> Any:
    from sklearn import metrics

    return getattr(metrics, name)(*(list(chain.from_iterable(y)) for y in sides), **options)


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _ratios(n: Counts) -> str:
    return f"precision: {n.precision:6.2f}%; recall: {n.recall:6.2f}%; FB1: {n.f:6.2f}"
