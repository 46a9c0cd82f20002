"""Small corpora of chunks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from laso.data.table import Columns
from laso.engine.layout import Dataset
from laso.engine.reference import Reference
from laso.features.templates import parse_templates
from laso.tasks.chunking.encoder import SegmentEncoder
from laso.tasks.chunking.problem import chunk_code

LABELS = ("A", "B", "O")
LIMITS = (3, 2, 1)  # of chunks of each label; O is outside
Segmentation = list[tuple[int, int]]  # of (length, label)


def encoder_for(features: list[str], sentences: list[Any], limit: int = 3) -> SegmentEncoder:
    templates, longest = parse_templates(features), {"B": LIMITS[1]}
    encoder = SegmentEncoder(templates, ("w", "pos"), LABELS, limit=limit, longest=longest)
    encoder.grow(data_of(sentences))
    return encoder


def data_of(sentences: list[Any]) -> Columns:
    tokens = [token for sentence in sentences for token in sentence]
    lengths = np.array([len(sentence) for sentence in sentences], np.int64)
    return Columns(lengths, [[w for w, _ in tokens], [pos for _, pos in tokens]])


def output(segmentation: Segmentation) -> list[int]:
    """The output of an input, written by hand from the description of the task."""
    y = []
    for length, label in segmentation:
        y += [int(chunk_code(length, label, len(LABELS))), *[-1] * (length - 1)]
    return y


def corpus_of(features: list[str], sentences: list[Any], outputs: Any = None) -> Dataset:
    flat = None if outputs is None else np.array([i for one in outputs for i in output(one)], int)
    return encoder_for(features, sentences).dataset(data_of(sentences), flat)


# --------------------------------------------------------------------------- features

SENTENCES = [
    [("The", "DT"), ("running", "VBG"), ("dogs", "NNS"), ("ran", "VBD"), (".", ".")],
    [("dogs", "NNS"), ("ran", "VBD"), ("the", "DT"), ("dogs", "NNS")],
    [("Ran", "NNP")],
    [("the", "DT")] * 5,
]


META = "[each,pair,triple,all,first-1,last+1]"
SMALL_PAPER = [
    *(f"{base}{META}" for base in ("w", "pos", "w.suffix1", "pos.prefix1")),
    "length",
    "label[-1]",
]


OTHERS = [
    "w[first-1]|w[first]",
    "w[last]|w[last+1]",
    "pos[first-2]|pos[first-1]|pos[first]",
    "pos[first-1]|pos[all]|pos[last+1]",
    "length|pos[first]",
    "label[-1]|w[first]",
    "w[last]|label[-1]|length",
    "w[any]|pos[any]",
    "w[each]|pos[each]",
    "w[pair]|pos[pair]",
    "w[first+2]",
    "bias",
]


# --------------------------------------------------------------------------- both engines

SOME = [*SMALL_PAPER, *OTHERS]


def features_of(problem: Reference, x: Any, chunks: Segmentation) -> Iterator[Any]:
    state = problem.initial(x)
    for operator in chunks:
        yield from problem.features(x, state, operator).items()
        state = problem.apply(x, state, operator)


def score(problem: Reference, x: Any, chunks: Segmentation, weights: Any) -> float:
    return float(sum(weights[name] * count for name, count in features_of(problem, x, chunks)))
