"""Class weights: what it costs to miss a label, for updates whose steps are as long as the loss."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from laso.data.table import Column, Factor
from laso.engine.layout import Array, Corpus
from laso.errors import BadData
from laso.tasks.tagging import UNIT

BALANCED = "balanced"
MOST_PATHS = 10_000  # siblings that a sentence with unknown labels may have

ClassWeight: TypeAlias = Mapping[str, float] | str | None
"""A weight for some labels (1 for the others), or "balanced": the rarer, the more."""


def is_class_weight(given: Any) -> bool:
    """None, "balanced", or weights above 0?"""
    if not isinstance(given, Mapping):
        return given is None or given == BALANCED
    return all(
        isinstance(label, str)
        and isinstance(weight, (int, float))
        and not isinstance(weight, bool)
        and 0.0 < weight < math.inf
        for label, weight in given.items()
    )


def counted(column: Column) -> Counter[str]:
    """How often each label occurs."""
    if isinstance(column, Factor):
        numbers = np.bincount(column.codes, minlength=len(column.values)).tolist()
        return Counter(dict(zip(column.values, numbers, strict=True)))
    return Counter(label for label in column if label is not None)


def balanced(counts: Iterable[Mapping[str, int]]) -> dict[str, float]:
    """As scikit-learn has it: all / (labels * those of this label), for each layer of labels."""
    return {
        label: sum(layer.values()) / (len(layer) * n)
        for layer in counts
        for label, n in layer.items()
        if n
    }


def weighed(
    given: ClassWeight, labels: Sequence[str], counts: Iterable[Mapping[str, int]]
) -> dict[str, float] | None:
    """The weights that a parameter stands for."""
    if given is None:
        return None
    if isinstance(given, str):
        return balanced(counts)
    for label in given:
        if label not in labels:
            raise ValueError(
                f"found a class weight for {label!r}, expected one of {', '.join(labels)}"
            )
    return {label: float(weight) for label, weight in given.items()}


def costed(
    corpus: Corpus, place: int, labels: Sequence[str], weights: Mapping[str, float] | None
) -> Corpus:
    """A corpus whose constants say what it costs to miss each label; ``place`` says where."""
    if weights is None:
        return corpus
    spec = corpus.spec.copy()
    spec[place] = len(spec)
    costs = [max(1, round(UNIT * weights.get(label, 1.0))) for label in labels]
    return corpus._replace(spec=np.concatenate([spec, np.array(costs, np.int64)]))


def check_siblings(choices: Array, known: Array, lengths: Array) -> None:
    """Good siblings are all that agree with the labels known: with few known, too many.

    ``choices`` is how many ways there are for each token, ``known`` whether anything is known.
    """
    if (choices <= 1).all():
        return
    logs = np.log(choices)
    for i, (begin, end) in enumerate(pairwise([0, *np.cumsum(lengths).tolist()])):
        told = np.flatnonzero(known[begin:end])
        before = slice(begin, begin + int(told[-1])) if len(told) else slice(0, 0)
        if logs[before].sum() > math.log(MOST_PATHS):
            unknown = int((choices[before] > 1).sum())
            raise BadData(
                f"{unknown} labels before a known one are not known, which leaves more than "
                f"{MOST_PATHS} good siblings; strategy=max_violation compares with the best of "
                "them only",
                sentence=i + 1,
            )
