"""Class weights: what it costs to miss a label, for updates whose steps are as long as the loss."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from laso.engine.costs import cost_of
from laso.engine.native.sources import plain_functions
from laso.engine.problem import CompiledProblem
from laso.errors import BadData, listed, quoted
from laso.features.schemes import OUTSIDE, split_tag
from laso.tasks.batches import Ambiguity

BALANCED = "balanced"
LEAST, MOST = 1e-6, 1e6  # weights
RARE = 0.2  # the share of tokens in chunks below which O weighs less
LIGHTEST = 0.3  # the default weight of O where hardly any token is in a chunk
MOST_PATHS = 10_000  # siblings that a sentence with unknown labels may have

ClassWeight: TypeAlias = Mapping[str, float] | Mapping[int, float] | str | None
"""A weight for some labels (1 for the others), or "balanced": the rarer, the more.

None stands for the default of an estimator, and a mapping without any label for no weights at all.
"""


def reads_costs(problem: type[CompiledProblem]) -> bool:
    """Return whether the loss of a problem reads the costs of labels by ``cost_of``."""
    return cost_of in plain_functions(problem.loss)


def is_class_weight(given: Any) -> bool:
    """None, "balanced", or weights above 0?"""
    if not isinstance(given, Mapping):
        return given is None or given == BALANCED
    return all(
        isinstance(label, (str, int))
        and isinstance(weight, (int, float))
        and not isinstance(weight, bool)
        and LEAST <= weight <= MOST
        for label, weight in given.items()
    )


def balanced(counts: Iterable[Mapping[str, int]]) -> dict[str, float]:
    """Return all / (labels * those of this label), as scikit-learn does, for each layer."""
    return {
        str(label): sum(layer.values()) / (len(layer) * n)
        for layer in counts
        for label, n in layer.items()
        if n
    }


def for_rare_chunks(counts: Sequence[Mapping[str, int]]) -> dict[str, float] | None:
    """Return a weight of O that falls with the share of tokens in chunks; None: it is 1.

    Otherwise a model would find few chunks that it has not seen before.
    """
    if len(counts) != 1 or OUTSIDE not in counts[0]:
        return None
    inside = {label: n for label, n in counts[0].items() if label != OUTSIDE}
    if not inside or not all(split_tag(label)[0] for label in inside):
        return None
    n = sum(inside.values())
    weight = round(max(LIGHTEST, n / (n + counts[0][OUTSIDE]) / RARE), 2)
    return {OUTSIDE: weight} if weight < 1 else None


def class_weights(
    given: ClassWeight, labels: Sequence[str], counts: Iterable[Mapping[str, int]]
) -> dict[str, float] | None:
    """Return the weights that the parameter ``class_weight`` stands for, unless it is None.

    Their keys are strings, as in model files, also where labels are integers.
    """
    if not given:
        return None
    if isinstance(given, str):
        return balanced(counts)
    for label in given:
        if str(label) not in map(str, labels):
            raise ValueError(
                f"found a class weight for {quoted(label)}, expected one of {listed(labels)}"
            )
    return {str(label): float(weight) for label, weight in given.items()}


def check_siblings(ambiguity: Ambiguity) -> None:
    """Raise ValueError where too many outputs agree with the labels that are known.

    All of them would be good siblings.
    """
    choices, known, lengths = ambiguity
    if (choices <= 1).all():
        return
    logs = np.log(choices)
    for i, (begin, end) in enumerate(pairwise([0, *np.cumsum(lengths).tolist()])):
        given = np.flatnonzero(known[begin:end])
        before = slice(begin, begin + int(given[-1])) if len(given) else slice(0, 0)
        if logs[before].sum() > math.log(MOST_PATHS):
            unknown = int((choices[before] > 1).sum())
            raise BadData(
                f"{unknown} labels before a known one are not known, which leaves more than "
                f"{MOST_PATHS} good siblings; strategy=max_violation compares with the best of "
                "them only",
                sentence=i + 1,
            )
