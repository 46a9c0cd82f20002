"""Evaluation of predicted labels: chunks as conlleval counts them, tokens and sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from laso.errors import counted
from laso.metrics import ChunkScores, Counts, accuracy, aligned, are_tags, chunk_scores

CHUNK_LABEL = re.compile("O|[BIES]-.+", re.DOTALL)
SHOWN = 10  # confusions


def are_chunks(labels: Iterable[Any]) -> bool:
    """Tell whether labels are those of a chunking task: B-x, I-x and O (or plain B, I and O).

    Unlike ``laso.metrics.are_tags`` this refuses tags that a ``Chunker`` cannot learn.
    """
    kinds = set(labels)
    if kinds <= {"B", "I", "O"}:
        return bool(kinds - {"O"})
    return all(isinstance(k, str) and CHUNK_LABEL.fullmatch(k) for k in kinds) and kinds != {"O"}


def is_known(label: Any) -> bool:
    """Tell whether a label is known, in all layers if it has several."""
    return label is not None and not (isinstance(label, tuple) and None in label)


@dataclass(frozen=True)
class Score:
    """How good outputs are by their task's own measure, from 0 to 1."""

    examples: int
    score: float

    def as_json(self) -> dict[str, Any]:
        """Return the score as JSON."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{counted(self.examples, 'example')}, score {self.score:.4f}"


@dataclass(frozen=True)
class Evaluation:
    """Predicted against gold labels, in per cent; ``chunks`` is None if labels mark no chunks."""

    sentences: int
    tokens: int
    accuracy: float
    sentence_accuracy: float
    labels: dict[str, Counts]
    confusions: list[tuple[str, str, int]]  # gold, predicted, count; most frequent first
    chunks: ChunkScores | None = None
    layers: list[Evaluation] = field(default_factory=list)  # where a token has several labels

    @property
    def score(self) -> float:
        """The main measure: the F of chunks, or else the accuracy of tokens."""
        return self.accuracy if self.chunks is None else self.chunks.f

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as JSON."""
        result = {
            "sentences": self.sentences,
            "tokens": self.tokens,
            "accuracy": self.accuracy,
            "sentence_accuracy": self.sentence_accuracy,
            "labels": {name: ratios(n) for name, n in self.labels.items()},
            "confusions": [list(each) for each in self.confusions],
        }
        if self.chunks is not None:
            types = {name: ratios(n) for name, n in self.chunks.types.items()}
            result["chunks"] = {**ratios(self.chunks), "types": types}
        if self.layers:
            result["layers"] = [layer.as_json() for layer in self.layers]
        return result

    def __str__(self) -> str:
        lines = [
            f"{self.sentences} sentences, {self.tokens} tokens; right: {self.accuracy:.2f} % of "
            f"the tokens, {self.sentence_accuracy:.2f} % of the sentences"
        ]
        for number, layer in enumerate(self.layers, start=1):
            lines += [f"layer {number}:", *(f"  {line}" for line in str(layer).splitlines())]
        if self.layers:
            return "\n".join(lines)
        rows = self.labels if self.chunks is None else self.chunks.types
        width = max(map(len, [*rows, "all chunks"]))
        lines.append(f"  {'':{width}}  precision  recall       F    gold")
        if self.chunks is not None:
            rows = {"all chunks": self.chunks, **rows}
        lines += [
            f"  {name:{width}}  {n.precision:9.2f}  {n.recall:6.2f}  {n.f:6.2f}  {n.gold:6}"
            for name, n in rows.items()
        ]
        if self.confusions:
            lines.append("most frequent errors (gold, predicted, count):")
            lines += [f"  {gold}  {predicted}  {n}" for gold, predicted, n in self.confusions]
        return "\n".join(lines)


def evaluated(gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> Evaluation:
    """Compare predicted with gold labels; tokens whose gold label is unknown (None) are skipped."""
    pairs = [
        [(g, p) for g, p in zip(gs, ps, strict=True) if is_known(g)]
        for gs, ps in aligned(gold, predicted)
    ]
    table = Counter(pair for sentence in pairs for pair in sentence)
    right: Counter[Any] = Counter({g: n for (g, p), n in table.items() if g == p})
    n_gold: Counter[Any] = Counter()
    n_predicted: Counter[Any] = Counter()
    for (g, p), n in table.items():
        n_gold[g] += n
        n_predicted[p] += n
    names = sorted(n_gold | n_predicted)
    wrong = [(str(g), str(p), n) for (g, p), n in table.items() if g != p]
    known = all(is_known(g) for gs in gold for g in gs)
    return Evaluation(
        sentences=len(pairs),
        tokens=table.total(),
        accuracy=_percent(right.total(), table.total()),
        sentence_accuracy=_percent(sum(all(g == p for g, p in s) for s in pairs), len(pairs)),
        labels={str(name): Counts(right[name], n_predicted[name], n_gold[name]) for name in names},
        confusions=sorted(wrong, key=lambda each: (-each[2], each))[:SHOWN],
        chunks=chunk_scores(gold, predicted) if known and are_tags(names) else None,
        layers=_layers(gold, predicted),
    )


def main_score(gold: Sequence[Sequence[Any]], predicted: Sequence[Sequence[Any]]) -> float:
    """Return ``score`` of the evaluation, from 0 to 1, without computing all the rest."""
    kinds = {label for sentences in (gold, predicted) for tags in sentences for label in tags}
    if None not in kinds:
        score = chunk_scores(gold, predicted).f if are_tags(kinds) else accuracy(gold, predicted)
        return score / 100
    pairs = [
        (label, guess)
        for tags, guesses in aligned(gold, predicted)
        for label, guess in zip(tags, guesses, strict=True)
        if label is not None
    ]
    return sum(label == guess for label, guess in pairs) / max(1, len(pairs))


def ratios(n: Counts) -> dict[str, float]:
    """Return counts and ratios as JSON."""
    counts = {key: value for key, value in asdict(n).items() if key in ("predicted", "gold")}
    return {"precision": n.precision, "recall": n.recall, "f": n.f, **counts}


def _layers(gold: Sequence[Any], predicted: Sequence[Any]) -> list[Evaluation]:
    first = next((label for sentence in gold for label in sentence), None)
    if not isinstance(first, tuple):
        return []
    return [
        evaluated(
            [[label[i] for label in sentence] for sentence in gold],
            [[label[i] for label in sentence] for sentence in predicted],
        )
        for i in range(len(first))
    ]


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
