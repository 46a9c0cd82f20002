"""The task of ``Chunker``: labelled chunks of sentences (section 4.1 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from laso.data.table import Data, Factor, Features, locating, position, split_sentences
from laso.engine.hashing import mix
from laso.engine.layout import Array
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.encoder import ColumnEncoder, check_hashable
from laso.features.keys import string_keys
from laso.features.schemes import (
    MAYBE,
    SCHEMES,
    PartialTags,
    Spans,
    chunks_of,
    convert_tags,
    read_partial_tags,
    read_tags,
    write_tags,
)
from laso.features.templates import LENGTH, Template
from laso.metrics.evaluation import main_score
from laso.params import check_parameters, is_whole
from laso.tasks.base import Step
from laso.tasks.batches import Ambiguity
from laso.tasks.chunking.encoder import SegmentEncoder
from laso.tasks.chunking.feature_sets import FEATURE_SETS
from laso.tasks.chunking.problem import (
    BEGINS,
    ENDS,
    Chunking,
    DenseChunking,
    chunk_code,
    partial_code,
)
from laso.tasks.sequences import SequenceTask, resolve_features

Labels = list[list[str]]
LONGEST_CHUNK = 100_000  # words


class Tagged(NamedTuple):
    """Gold outputs: chunks, and the scheme of their tags."""

    spans: Spans
    scheme: str
    words: PartialTags | None = None  # if some tags are unknown


class ChunkingTask(SequenceTask):
    """Cuts sentences into labelled chunks; each step of the search is a whole chunk.

    The parameters are those of ``laso.Chunker``.
    """

    name = "chunking"
    problem = Chunking
    dense_problem = DenseChunking
    steps_are_chunks = True
    encoder_: SegmentEncoder

    def __init__(
        self,
        *,
        features: str | Sequence[str | Template] = "rich",
        resources: Sequence[str] = (),
        max_chunk_length: int | None = None,
        scheme: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        super().__init__(columns=columns)
        self.features = features
        self.resources = resources
        self.max_chunk_length = max_chunk_length
        self.scheme = scheme

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
        length, listed = self.max_chunk_length, not isinstance(self.resources, str)
        schemes = f"None or one of {', '.join(SCHEMES)}"
        check_parameters(
            self,
            [
                (
                    "max_chunk_length",
                    length is None or is_whole(length, 1, LONGEST_CHUNK),
                    f"None or from 1 to {LONGEST_CHUNK}",
                ),
                ("scheme", self.scheme in (None, *SCHEMES), schemes),
                ("resources", listed, "a list of names or paths"),
            ],
        )

    def read(self, X: Any, y: Any) -> tuple[Data, Tagged]:
        """Return sentences and their chunks; tags may be in any scheme."""
        data, tags = super().read(X, y)
        if isinstance(data, Features):
            raise BadData("found tokens with features of their own, expected words or columns")
        with locating(data):
            check_hashable(tags, data.lengths)
            if not isinstance(tags, Factor) and None in tags:
                spans, words, scheme = read_partial_tags(tags, data.lengths)
                return data, Tagged(spans, scheme, words)
            return data, Tagged(*read_tags(tags, data.lengths))

    def labels_in(self, data: Data, outputs: Tagged) -> list[str]:
        """Return the types of the chunks."""
        return list(outputs.spans.names)

    def counts_in(self, data: Data, outputs: Tagged) -> list[Counter[str]]:
        """Return the frequency of each chunk type."""
        types = outputs.spans.types
        numbers = np.bincount(types[types >= 0], minlength=len(outputs.spans.names)).tolist()
        return [Counter(dict(zip(outputs.spans.names, numbers, strict=True)))]

    def state_with(
        self, state: dict[str, Any] | None, data: Data, outputs: Tagged
    ) -> dict[str, Any]:
        """Return the largest chunk lengths, and the scheme of predicted tags."""
        # Partially known chunks may be longer than their known part.
        all_known = self.max_chunk_length is None and outputs.words is None
        limit = self.max_chunk_length or outputs.spans.limit()
        longest = outputs.spans.longest() if all_known else {}
        scheme = self.scheme or outputs.scheme
        if state is not None:
            old, new = state["longest"], longest
            limit, scheme, longest = max(limit, state["max_chunk_length"]), state["scheme"], {}
            if old and new:  # otherwise some labels have no length of their own
                longest = {
                    label: max(old.get(label, 1), new.get(label, 1)) for label in {**old, **new}
                }
        return {"max_chunk_length": limit, "longest": longest, "scheme": scheme}

    def templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        """Return the feature templates for columns of these names."""
        return resolve_features(self.features, self.resources, FEATURE_SETS, names)

    def make_encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> ColumnEncoder:
        """Return an encoder for chunks of the lengths in ``state_``."""
        limit, scheme = self.state_["max_chunk_length"], self.state_["scheme"]
        if not is_whole(limit, 1, LONGEST_CHUNK) or scheme not in SCHEMES:
            raise BadModel(
                f"found the longest chunk {quoted(limit)} and the scheme {quoted(scheme)}"
            )
        longest = self.state_["longest"]
        if not isinstance(longest, dict) or not all(
            is_whole(length, 1) and length <= limit for length in longest.values()
        ):
            raise BadModel(
                f"found the longest chunks {quoted(longest)}, expected numbers up to {limit}"
            )
        return SegmentEncoder(templates, names, labels, limit=limit, longest=longest)

    def gold_numbers(self, data: Data, outputs: Tagged) -> Array:
        """Return a number for each word (see ``problem.py``)."""
        encoder, spans = self.encoder_, outputs.spans
        for name in spans.names:
            if name not in encoder.labels:
                at = spans.starts[np.argmax(spans.types == spans.names.index(name))]
                raise BadData(
                    f"found the chunk type {quoted(name)}, which training has not seen; expected "
                    f"one of {listed(encoder.labels)}",
                    **position(data.lengths, at),
                )
        n_labels = len(encoder.labels)
        numbers = np.array([*map(encoder.labels.index, spans.names), -1], np.int64)
        longest = np.array([*encoder.limits, encoder.limit])[numbers[spans.types]]
        if (spans.lengths > longest).any():
            long = int(np.argmax(spans.lengths - longest))
            raise BadData(
                f"found a chunk of {spans.lengths[long]} words, expected at most "
                f"max_chunk_length={longest[long]}",
                **position(data.lengths, spans.starts[long]),
            )
        gold = np.full(int(data.lengths.sum()), -1, np.int64)
        gold[spans.starts] = chunk_code(spans.lengths, numbers[spans.types], n_labels)
        if outputs.words is not None:
            begins, types = outputs.words
            partly = np.repeat(
                _any_by_sentence(_is_ambiguous(outputs.words), data.lengths), data.lengths
            )
            gold[partly] = partial_code(begins, numbers[types], n_labels)[partly]
        return gold

    def ambiguity(self, inputs: Data, outputs: Tagged) -> Ambiguity | None:
        """Return the number of possible tags of each word; None: all tags are known."""
        if outputs.words is None:
            return None
        unknown = outputs.words.types < 0
        choices = np.where(unknown, 2 * len(self.encoder_.labels), 1)
        return Ambiguity(choices, ~unknown, inputs.lengths)

    def decode_all(self, inputs: Any, steps: Array, ends: Array) -> Labels:
        """Return the tags of each sentence."""
        lengths = steps[:, 0].astype(np.int64)
        words = np.concatenate([[0], np.cumsum(lengths)])
        spans = Spans(words[:-1], lengths, steps[:, 1], self.encoder_.labels)
        return write_tags(spans, self.state_["scheme"], np.diff(words[ends], prepend=0))

    def describe_vector(self, number: int) -> str:
        """Return whose vectors have the weights of this number."""
        return {ENDS: "vector last", BEGINS: "vector first"}.get(number, "vectors any")

    def describe(self, group: int, label: int) -> Step:
        """Return the label of a chunk, and its length."""
        return Step(self.encoder_.labels[label], group)

    def decisions(self, y: Any) -> set[tuple[str, int, int]] | None:
        """Return the chunks and the words outside."""
        return set(chunks_of(y))

    def longest_step(self, name: str) -> int:
        """Return the length of the longest chunk of a label."""
        return dict(zip(self.encoder_.labels, self.encoder_.limits, strict=True)).get(name, 0)

    def bias_keys(self) -> Sequence[int]:
        """Return the feature keys of all lengths, of which every chunk has one."""
        if LENGTH not in map(str, self.encoder_.templates):
            return []
        root = int(string_keys([LENGTH])[0])
        return [mix(root, length) for length in range(1, self.encoder_.limit + 1)]

    def gold_outputs(self, inputs: Data, outputs: Tagged) -> list[list[str | None]]:
        """Return the tags in BIO, None for unknown tags."""
        tags = write_tags(outputs.spans, "BIO", inputs.lengths)
        if outputs.words is None:
            return [*map(list[str | None], tags)]
        flags = split_sentences((~_is_ambiguous(outputs.words)).tolist(), inputs.lengths)
        return [
            [tag if known else None for tag, known in zip(*pair, strict=True)]
            for pair in zip(tags, flags, strict=True)
        ]

    def score(self, gold: Sequence[Sequence[str | None]], predicted: Sequence[Any]) -> float:
        """Return the chunk F of conlleval; token accuracy if some tags are unknown."""
        return main_score(gold, convert_tags(predicted, "BIO"))


def _is_ambiguous(words: PartialTags) -> Array:
    """Return flags for the words whose tag is not fully known."""
    return np.asarray((words.types < 0) | (words.begins == MAYBE))


def _any_by_sentence(flags: Array, lengths: Array) -> Array:
    """Return for each sentence whether any of its flags is set."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    ends = np.cumsum(lengths)
    return np.asarray(sums[ends] > sums[ends - lengths])
