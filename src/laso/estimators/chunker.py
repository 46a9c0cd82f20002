"""Segmentation and labelling: chunks of sentences (section 4.1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laso.engine.hashing import mix
from laso.engine.layout import Array, Corpus
from laso.engine.machine import all_of
from laso.engine.options import own_key
from laso.errors import BadData, BadModel
from laso.estimators.base import SequenceEstimator, by_sentence, whole
from laso.estimators.chunk_confidence import TagsOf, inside
from laso.estimators.confidence import Confidence, confidences
from laso.estimators.tagger import quality
from laso.estimators.task import WITH_MARGIN, chosen_features
from laso.estimators.weights import ClassWeight, check_siblings
from laso.features.encode import Encoder
from laso.features.inputs import Data, Factor, Features, place, string_keys
from laso.features.schemes import (
    OUTSIDE,
    SCHEMES,
    Spans,
    Words,
    chunks_of,
    converted,
    read_partly,
    read_tags,
    write_tags,
)
from laso.features.segments import FEATURE_SETS, SegmentEncoder
from laso.features.templates import LENGTH, Template
from laso.learn import laso
from laso.metrics import chunk_scores
from laso.queues import MakeQueue, beam
from laso.tasks.chunking import MAYBE, Chunking, chunk_code, partial_code
from laso.training import Rule, Strategy

Labels = list[list[str]]


class Tagged(NamedTuple):
    """The answers: chunks, and the scheme that their tags were in."""

    spans: Spans
    scheme: str
    words: Words | None = None  # if some tags are not known


class Chunker(SequenceEstimator):
    """Cuts sentences into labelled chunks; each step of the search is a whole chunk.

    features   "rich", "paper" (see laso.features.segments), or templates of your own
    resources  word lists, clusters ... for "rich" and "paper" (see laso.features.lists)
    limit      the most words of a chunk; None: as many as the longest of its label to learn from
    scheme     of the tags answered: "BIO", "IOB1", "IOBES"; None: as in the data to learn from
    queue      the width of a beam for each number of words covered; or beam(5), which has one for
               each number of chunks, bounded_best_first(5), exact() ...
    update     None: perceptron(weighting=worst, margin=1.0)

    The other parameters are those of Tagger. Tags to learn from may be in any of the schemes. The
    score is conlleval's chunk F, from 0 to 1.
    """

    task = "chunking"

    encoder_: SegmentEncoder

    def __init__(
        self,
        *,
        features: str | Sequence[str | Template] = "rich",
        resources: Sequence[str] = (),
        limit: int | None = None,
        scheme: str | None = None,
        columns: Sequence[str] | None = None,
        queue: int | MakeQueue = 5,
        update: Rule | None = None,
        strategy: Strategy = laso,
        epochs: int = 10,
        seed: int | None = 0,
        held_out: float | None = None,
        patience: int | None = None,
        average: bool | None = None,
        class_weight: ClassWeight = None,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
    ):
        super().__init__(
            columns=columns,
            queue=queue,
            update=update,
            strategy=strategy,
            epochs=epochs,
            seed=seed,
            held_out=held_out,
            patience=patience,
            average=average,
            class_weight=class_weight,
            hash_bits=hash_bits,
            threads=threads,
            dtype=dtype,
        )
        self.features = features
        self.resources = resources
        self.limit = limit
        self.scheme = scheme

    def predict_chunks(self, X: Any) -> list[list[tuple[str, int, int]]]:
        """The chunks found in each sentence as (label, start, end): words start up to end - 1."""
        return list(map(inside, self.predict(X)))

    def predict_marginals(
        self, X: Any, *, least: float = 0.01
    ) -> list[dict[tuple[str, int, int], float]]:
        """How probable each chunk (label, start, end) of each sentence is, with ``queue=exact()``.

        Those less probable than ``least`` are left out. For what probable means see Tagger.
        """
        machine, corpus = self._exactly("predict_marginals", X)
        labels = self.encoder_.labels
        sentences = []
        for i in all_of(corpus):  # one at a time: the steps of a sentence are many
            found = machine.marginals(corpus, np.array([i]), self.weights_)
            steps = np.column_stack([found.label, found.start, found.key])
            chunks, which = np.unique(steps, axis=0, return_inverse=True)
            sums = np.bincount(which.ravel(), found.probability, len(chunks))
            sentences.append(
                {
                    (labels[label], start, end): probability
                    for (label, start, end), probability in zip(
                        chunks.tolist(), sums.tolist(), strict=True
                    )
                    if probability >= least and labels[label] != OUTSIDE
                }
            )
        return sentences

    # ----------------------------------------------------------------------- what the base asks

    def _problem(self, weighted: bool) -> type[Chunking]:
        return Chunking

    def _beam(self, width: int) -> MakeQueue:
        return beam(width, key=own_key)

    def _step(self, group: int, label: int) -> tuple[str, int]:
        return str(self.classes_[label]), group

    def _longest(self, name: str) -> int:
        return dict(zip(self.encoder_.labels, self.encoder_.limits, strict=True)).get(name, 0)

    def _decisions(self, answer: Sequence[str]) -> set[tuple[str, int, int]]:
        return set(chunks_of(answer))

    def _in_chunks(
        self, corpus: Corpus, weighted: bool, temperature: float, tags_of: TagsOf
    ) -> list[Confidence]:
        found = confidences(self, corpus, weighted, temperature)
        return [c._replace(parts=[p for p in c.parts if p.label != OUTSIDE]) for c in found]

    def _constants(self) -> list[int]:
        if LENGTH not in map(str, self.encoder_.templates):
            return []
        root = int(string_keys([LENGTH])[0])
        return [mix(root, length) for length in range(1, self.encoder_.limit + 1)]

    def _wider(self, facts: dict[str, Any]) -> dict[str, Any]:
        old, new, longest = self.facts_.get("longest"), facts["longest"], {}
        if old and new:  # else there are labels whose chunks may be as long as any
            longest = {label: max(old.get(label, 1), new.get(label, 1)) for label in {**old, **new}}
        limit = max(facts["limit"], self.facts_["limit"])
        return {**self.facts_, "limit": limit, "longest": longest}

    def _rule(self) -> Rule:
        return WITH_MARGIN if self.update is None else self.update

    def _checks(self) -> list[tuple[str, bool, str]]:
        listed = not isinstance(self.resources, str)
        return [
            *super()._checks(),
            ("limit", self.limit is None or whole(self.limit, 1), "None or from 1 up"),
            ("scheme", self.scheme in (None, *SCHEMES), f"None or one of {', '.join(SCHEMES)}"),
            ("resources", listed, "a list of names or paths"),
        ]

    def _read(self, X: Any, y: Any) -> tuple[Data, Tagged]:
        data, tags = super()._read(X, y)
        if isinstance(data, Features):
            raise BadData("found tokens with features of their own, expected words or columns")
        if not isinstance(tags, Factor) and None in tags:
            spans, words, scheme = read_partly(tags, data.lengths)
            return data, Tagged(spans, scheme, words)
        return data, Tagged(*read_tags(tags, data.lengths))

    def _labels(self, data: Data, answers: Tagged) -> list[str]:
        return list(answers.spans.names)

    def _counts(self, data: Data, answers: Tagged) -> list[Counter[str]]:
        types = answers.spans.types
        numbers = np.bincount(types[types >= 0], minlength=len(answers.spans.names)).tolist()
        return [Counter(dict(zip(answers.spans.names, numbers, strict=True)))]

    def _facts(self, data: Data, answers: Tagged) -> dict[str, Any]:
        # Where not all is known, chunks may be longer than what is known of them.
        all_known = self.limit is None and answers.words is None
        return {
            "limit": self.limit or answers.spans.limit(),
            "longest": answers.spans.longest() if all_known else {},
            "scheme": self.scheme or answers.scheme,
        }

    def _templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        return chosen_features(self.features, self.resources, FEATURE_SETS, names)

    def _encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> Encoder:
        limit, scheme = self.facts_["limit"], self.facts_["scheme"]
        if not whole(limit, 1) or scheme not in SCHEMES:
            raise BadModel(f"found the limit {limit!r} and the scheme {scheme!r}")
        longest = self.facts_.get("longest", {})
        if not isinstance(longest, dict) or not all(
            whole(most, 1) and most <= limit for most in longest.values()
        ):
            raise BadModel(f"found the longest chunks {longest!r}, expected numbers up to {limit}")
        return SegmentEncoder(templates, names, labels, limit=limit, longest=longest)

    def _corpus(self, data: Data, answers: Tagged | None) -> Corpus:
        encoder = self.encoder_
        if answers is None:
            return encoder.corpus(data)
        spans = answers.spans
        for name in spans.names:
            if name not in encoder.labels:
                at = spans.starts[np.argmax(spans.types == spans.names.index(name))]
                raise BadData(
                    f"{place(data.lengths, at)}: found the chunk type {name!r}, which learning "
                    f"has not seen; expected one of {', '.join(encoder.labels)}"
                )
        n_labels = len(encoder.labels)
        numbers = np.array([*map(encoder.labels.index, spans.names), -1], np.int64)
        most = np.array([*encoder.limits, encoder.limit])[numbers[spans.types]]
        if (spans.lengths > most).any():
            long = int(np.argmax(spans.lengths - most))
            raise BadData(
                f"{place(data.lengths, spans.starts[long])}: found a chunk of "
                f"{spans.lengths[long]} words, expected at most limit={most[long]}"
            )
        outputs = np.full(int(data.lengths.sum()), -1, np.int64)
        outputs[spans.starts] = chunk_code(spans.lengths, numbers[spans.types], n_labels)
        if answers.words is not None:
            begins, types = answers.words
            open_ones = types < 0
            if self._has_siblings:
                check_siblings(np.where(open_ones, 2 * n_labels, 1), ~open_ones, data.lengths)
            partial = np.repeat(_any_in(open_ones | (begins == MAYBE), data.lengths), data.lengths)
            outputs[partial] = partial_code(begins, numbers[types], n_labels)[partial]
        return encoder.corpus(data, outputs)

    def _found(self, steps: Array, ends: Array) -> Labels:
        lengths = steps[:, 0].astype(np.int64)
        words = np.concatenate([[0], np.cumsum(lengths)])
        spans = Spans(words[:-1], lengths, steps[:, 1], self.encoder_.labels)
        return write_tags(spans, self.facts_["scheme"], np.diff(words[ends], prepend=0))

    def _wanted(self, data: Data, answers: Tagged) -> list[list[str | None]]:
        tags = write_tags(answers.spans, "BIO", data.lengths)
        if answers.words is None:
            return [*map(list[str | None], tags)]
        sure = (answers.words.types >= 0) & (answers.words.begins != MAYBE)
        flags = by_sentence(sure.tolist(), data.lengths)
        return [
            [tag if known else None for tag, known in zip(*pair, strict=True)]
            for pair in zip(tags, flags, strict=True)
        ]

    def _quality(self, wanted: Sequence[Sequence[str | None]], found: Labels) -> float:
        found = converted(found, "BIO")
        if any(None in tags for tags in wanted):
            return quality(wanted, found)
        return chunk_scores([[*map(str, tags)] for tags in wanted], found).f / 100


def _any_in(flags: Array, lengths: Array) -> Array:
    """Is any flag of each sentence set?"""
    sums = np.concatenate([[0], np.cumsum(flags)])
    ends = np.cumsum(lengths)
    return np.asarray(sums[ends] > sums[ends - lengths])
