"""Forced decoding: some labels or chunks are known or banned, the rest is found by search.

The search is that of the reference engine, without the steps that do not fit; so it works alike
for every task and queue, at the speed of Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from laso.engine.layout import Array, Dataset, Input
from laso.engine.reference import Operator, State, input_of, output_of
from laso.errors import BadData, SearchFailed, quoted
from laso.estimators.capabilities.explain import SCORE
from laso.estimators.capabilities.scored_reference import Walk
from laso.search import search
from laso.tasks.sequences import joined_label
from laso.vectors import Linear

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

Known: TypeAlias = Sequence[Any] | None
"""Of an input: for each item its label or None, or spans (label, start, end)."""
Banned: TypeAlias = Collection[str] | Sequence[Collection[str]] | None
"""Of an input: labels that no item may have, or such labels for each item."""


class Restricted(Walk):
    """The problem without the steps that do not fit what is known."""

    def __init__(
        self,
        model: Predictor,
        dataset: Dataset,
        known: Known,
        banned: Banned,
        gold: Array | None = None,
    ) -> None:
        super().__init__(model, dataset)
        n = len(dataset.items)
        self.gold = gold  # if it says all that is known
        self.known = spans(known, n) if self.gold is None else []
        for label, start, end in self.known:
            longest = self.task.longest_step(label)
            if longest == 0:
                raise BadData(f"found {quoted(label)} as known, which training has not seen")
            if end - start > longest:
                raise BadData(
                    f"found {quoted(label)} from {start} to {end} as known, expected at most "
                    f"{longest} long"
                )
        self.banned = [set(each) for each in per_token(banned, n)]

    def operators(self, x: Input, state: State) -> Iterator[Operator]:
        """The steps that fit."""
        row = self._row(state)
        for operator in super().operators(x, state):
            names, first, end = self.task.step_items(state.row, operator, state.position)
            if self.gold is not None:
                fits = self.problem.is_good(x, self.gold, row, *operator)
            else:
                fits = all(
                    span in [(name, first, end) for name in names]
                    for span in self.known
                    if span[1] < end and first < span[2]
                )
            if fits and not any(
                name in banned for banned in self.banned[first:end] for name in names
            ):
                yield operator


def spans(known: Known, n: int) -> list[tuple[str, int, int]]:
    """What is known as spans; they must be within the sentence."""
    if not known:
        return []
    if all(is_span(each) for each in known):
        spans = [(joined_label(label), int(start), int(end)) for label, start, end in known]
    elif len(known) == n:
        spans = [
            (joined_label(label), i, i + 1) for i, label in enumerate(known) if label is not None
        ]
    else:
        raise BadData(f"found {len(known)} known labels for {n} tokens")
    for label, start, end in spans:
        if not 0 <= start < end <= n:
            raise BadData(f"found {label} from {start} to {end}, expected a span of {n} tokens")
    return spans


def is_span(known: Any) -> bool:
    """A span, and no label or labels of several layers?"""
    return isinstance(known, tuple) and len(known) == 3 and isinstance(known[1], int)


def per_token(banned: Banned, n: int) -> Sequence[Collection[str]]:
    """What is banned, for each token."""
    if banned is None:
        return [()] * n
    if all(isinstance(each, str) for each in banned):
        return [[str(each) for each in banned]] * n
    if len(banned) != n:
        raise BadData(f"found banned labels for {len(banned)} tokens, expected {n}")
    return [list(each) for each in banned]


def forced(model: Predictor, x: Any, known: Known, banned: Banned) -> tuple[Any, float]:
    """The output of one input that fits, and its score."""
    inputs, dataset, gold = _encoded(model, x, known)
    path, score = forced_path(model, dataset, known, banned, gold)
    return model.task_.decode_all(inputs, path, np.array([len(path)]))[0], score


def restricted(model: Predictor, x: Any, known: Known, banned: Banned) -> Restricted:
    """The problem of one input without the steps that do not fit."""
    _, dataset, gold = _encoded(model, x, known)
    return Restricted(model, dataset, known, banned, gold)


def _encoded(model: Predictor, x: Any, known: Known) -> tuple[Any, Dataset, Array | None]:
    """One input as the task reads it and as arrays, with the gold output that is known of it."""
    task, inputs = model.task_, model.task_.read_inputs([x])
    partial = None if known is None else task.known_gold(inputs, known)
    if partial is None:
        return inputs, task.arrays(inputs), None
    return inputs, task.with_vectors(partial, inputs), output_of(partial, 0)


def forced_path(
    model: Predictor, dataset: Dataset, known: Known, banned: Banned, gold: Array | None
) -> tuple[Array, float]:
    """The steps for one encoded input that fit, and their score."""
    problem = Restricted(model, dataset, known, banned, gold)
    goal = search(problem, input_of(dataset, 0), Linear(dict(SCORE)), problem.queue())
    if goal is None:
        raise SearchFailed(
            "no output that the search keeps fits what is known and banned; a wider beam keeps more"
        )
    return np.array(goal.operators, np.int32).reshape(-1, 2), float(goal.g)
