"""Forced decoding: some labels or chunks are known or banned, the rest is found by search.

The search is that of the reference engine, with the steps that do not fit left out; so it works
alike for every task and queue, at the speed of Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from laso.engine.layout import Input
from laso.engine.problem import CompiledProblem
from laso.engine.reference import Operator, Reference, State, exact_queue, input_of
from laso.errors import BadData, SearchFailed
from laso.estimators.task import spoken
from laso.explanation import Scored, Steps
from laso.features.inputs import read_input
from laso.queues import MakeQueue
from laso.search import search
from laso.vectors import Linear

if TYPE_CHECKING:
    from laso.estimators.base import SequenceEstimator

Known: TypeAlias = Sequence[Any] | None
"""Of a sentence: for each token its label or None, or spans (label, start, end)."""
Banned: TypeAlias = Collection[str] | Sequence[Collection[str]] | None
"""Of a sentence: labels that no token may have, or such labels for each token."""


class Restricted(Scored):
    """The problem without the steps that do not fit what is known."""

    def __init__(self, steps: Steps, known: Known, banned: Banned, n: int) -> None:
        super().__init__(steps)
        self.known = spans(known, n)
        for label, start, end in self.known:
            most = steps.model._longest(label)
            if most == 0:
                raise BadData(f"found {label!r} as known, which learning has not seen")
            if end - start > most:
                raise BadData(
                    f"found {label!r} from {start} to {end} as known, expected at most {most} long"
                )
        self.banned = [set(each) for each in per_token(banned, n)]

    def operators(self, x: Input, state: State) -> Iterator[Operator]:
        """The steps that fit."""
        first = int(state.row[0])
        for operator in super().operators(x, state):
            label, n = self.steps.model._step(*operator)
            end = first + n
            fits = all(
                span == (label, first, end)
                for span in self.known
                if span[1] < end and first < span[2]
            )
            if fits and not any(label in some for some in self.banned[first:end]):
                yield operator


def spans(known: Known, n: int) -> list[tuple[str, int, int]]:
    """What is known as spans; they must be within the sentence."""
    if not known:
        return []
    if all(is_span(each) for each in known):
        found = [(spoken(label), int(start), int(end)) for label, start, end in known]
    elif len(known) == n:
        found = [(spoken(label), i, i + 1) for i, label in enumerate(known) if label is not None]
    else:
        raise BadData(f"found {len(known)} known labels for {n} tokens")
    for label, start, end in found:
        if not 0 <= start < end <= n:
            raise BadData(f"found {label} from {start} to {end}, expected a span of {n} tokens")
    return found


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


def forced(
    model: SequenceEstimator, sentence: Any, known: Known, banned: Banned
) -> tuple[Any, float]:
    """The answer for one sentence that fits, and its score."""
    data = model._inputs(read_input([sentence]))
    weighted = bool(getattr(data, "values", None) is not None)
    corpus = model._corpus(data, None)
    x = input_of(corpus, 0)
    steps = Steps(model, weighted)
    problem = Restricted(steps, known, banned, len(x.items))
    goal = search(problem, x, Linear({"score": 1.0}), queue_of(model, steps.problem))
    if goal is None:
        raise SearchFailed(
            "no answer that the search keeps fits what is known and banned; a wider beam keeps more"
        )
    path = np.array(goal.operators, np.int32).reshape(-1, 2)
    return model._found(path, np.array([len(path)]))[0], float(goal.g)


def queue_of(model: SequenceEstimator, problem: Reference) -> MakeQueue:
    """The queue of a model, for the reference engine."""
    if model._is_exact:
        return exact_queue(problem.problem.key is not CompiledProblem.key)
    return model._beam(model.queue) if isinstance(model.queue, int) else model.queue
