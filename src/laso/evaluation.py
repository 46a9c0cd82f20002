"""How good labels are: chunks as conlleval counts them, tokens, sentences, and what is confused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from laso.metrics import ChunkScores, Counts, chunk_scores

CHUNK_LABEL = re.compile("O|[BIES]-.+", re.DOTALL)
SHOWN = 10  # confusions


def are_chunks(labels: Iterable[Any]) -> bool:
    """Do labels mark chunks, as B-x, I-x and O do (or plain B, I and O)?"""
    kinds = set(labels)
    if kinds <= {"B", "I", "O"}:
        return bool(kinds - {"O"})
    return all(isinstance(k, str) and CHUNK_LABEL.fullmatch(k) for k in kinds) and kinds != {"O"}


def is_known(label: Any) -> bool:
    """Is a label known, in all layers if it has several?"""
    return label is not None and not (isinstance(label, tuple) and None in label)


@dataclass(frozen=True)
class Evaluation:
    """The labels found beside those wanted, in per cent; ``chunks`` is None for other labels."""

    sentences: int
    tokens: int
    accuracy: float
    sentence_accuracy: float
    labels: dict[str, Counts]
    confusions: list[tuple[str, str, int]]  # wanted, found, how often; the most frequent first
    chunks: ChunkScores | None = None
    layers: list[Evaluation] = field(default_factory=list)  # where a token has several labels

    @property
    def score(self) -> float:
        """The one number that counts: the F of chunks, or the tokens that are right."""
        return self.accuracy if self.chunks is None else self.chunks.f

    def as_json(self) -> dict[str, Any]:
        """All of it as JSON."""
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
        lines.append(f"  {'':{width}}  precision  recall       F  wanted")
        if self.chunks is not None:
            rows = {"all chunks": self.chunks, **rows}
        lines += [
            f"  {name:{width}}  {n.precision:9.2f}  {n.recall:6.2f}  {n.f:6.2f}  {n.wanted:6}"
            for name, n in rows.items()
        ]
        if self.confusions:
            lines.append("most frequent errors (wanted, found, how often):")
            lines += [f"  {wanted}  {found}  {n}" for wanted, found, n in self.confusions]
        return "\n".join(lines)


def evaluated(wanted: Sequence[Sequence[Any]], found: Sequence[Sequence[Any]]) -> Evaluation:
    """Compare labels; those that are not known (None) are passed over."""
    pairs = [
        [(w, f) for w, f in zip(ws, fs, strict=True) if is_known(w)]
        for ws, fs in zip(wanted, found, strict=True)
    ]
    table = Counter(pair for sentence in pairs for pair in sentence)
    right: Counter[Any] = Counter({w: n for (w, f), n in table.items() if w == f})
    n_wanted: Counter[Any] = Counter()
    n_found: Counter[Any] = Counter()
    for (w, f), n in table.items():
        n_wanted[w] += n
        n_found[f] += n
    names = sorted(n_wanted | n_found)
    wrong = [(str(w), str(f), n) for (w, f), n in table.items() if w != f]
    known = all(is_known(w) for ws in wanted for w in ws)
    return Evaluation(
        sentences=len(pairs),
        tokens=table.total(),
        accuracy=_percent(right.total(), table.total()),
        sentence_accuracy=_percent(sum(all(w == f for w, f in s) for s in pairs), len(pairs)),
        labels={str(name): Counts(right[name], n_found[name], n_wanted[name]) for name in names},
        confusions=sorted(wrong, key=lambda each: (-each[2], each))[:SHOWN],
        chunks=_chunks(wanted, found) if known and are_chunks(names) else None,
        layers=_layers(wanted, found),
    )


def ratios(n: Counts) -> dict[str, float]:
    """Counts as JSON."""
    counts = {key: value for key, value in asdict(n).items() if key in ("found", "wanted")}
    return {"precision": n.precision, "recall": n.recall, "f": n.f, **counts}


def _chunks(wanted: Sequence[Any], found: Sequence[Any]) -> ChunkScores:
    from laso.features.schemes import converted

    return chunk_scores(converted(wanted, "BIO"), converted(found, "BIO"))


def _layers(wanted: Sequence[Any], found: Sequence[Any]) -> list[Evaluation]:
    first = next((label for sentence in wanted for label in sentence), None)
    if not isinstance(first, tuple):
        return []
    return [
        evaluated(
            [[label[i] for label in sentence] for sentence in wanted],
            [[label[i] for label in sentence] for sentence in found],
        )
        for i in range(len(first))
    ]


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0
