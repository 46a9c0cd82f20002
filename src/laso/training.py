"""Passes over training data: ``fit`` calls a strategy once for every example and averages."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from laso.learn import laso
from laso.problem import Problem
from laso.queues import MakeQueue, beam
from laso.search import predict
from laso.updates import perceptron
from laso.vectors import WeightVector


class Rule(Protocol):
    """An update rule: the first weights, and better ones."""

    def start(self) -> WeightVector: ...
    def __call__(self, w: WeightVector, x: Any, sibs: Any, nodes: Any) -> WeightVector: ...


Strategy = Callable[[Problem, Any, Any, WeightVector, MakeQueue, Any], WeightVector]


@dataclass(frozen=True)
class Progress:
    """How far training has come; handed to the ``progress`` callback after every example."""

    epoch: int
    epochs: int
    example: int
    examples: int
    updates: int
    wrong: int

    @property
    def error_rate(self) -> float:
        """The part of this epoch's examples so far that needed an update."""
        return self.wrong / self.example


@dataclass(frozen=True)
class Model:
    """A problem with the weights learned for it and the queue they were learned in."""

    problem: Problem
    w: WeightVector
    queue: MakeQueue
    updates: int = 0
    converged: bool = False

    def predict(self, x: Any) -> Any:
        """The output that the search finds for ``x``."""
        return predict(self.problem, x, self.w, self.queue)


def fit(
    problem: Problem,
    data: Iterable[tuple[Any, Any]],
    *,
    queue: MakeQueue | None = None,
    update: Rule | None = None,
    strategy: Strategy = laso,
    epochs: int = 10,
    seed: int | None = 0,
    average: bool = True,
    progress: Callable[[Progress], None] | None = None,
) -> Model:
    """Learn weights for ``problem`` from pairs (x, y), inside the very search of ``queue``.

    Examples are visited in an order shuffled by ``seed`` (None: as they come). Training ends early
    after an epoch without an update. Ctrl-C ends it too: what was learned until then is returned.
    """
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, found {epochs}")
    examples: Sequence[tuple[Any, Any]] = list(data)
    if not examples:
        raise ValueError("there is nothing to learn from: no pair (x, y) was given")
    queue = queue or beam(5)
    rule = update or perceptron()
    order = random.Random(seed)
    w = rule.start()
    converged = False
    try:
        for epoch in range(1, epochs + 1):
            wrong = 0
            at_start = w.k
            visit = list(range(len(examples)))
            if seed is not None:
                order.shuffle(visit)
            for n, i in enumerate(visit, start=1):
                before = w.k
                w = strategy(problem, *examples[i], w, queue, rule)
                w.tick()
                wrong += w.k != before
                if progress is not None:
                    progress(Progress(epoch, epochs, n, len(examples), w.k - 1, wrong))
            converged = w.k == at_start
            if converged:
                break
    except KeyboardInterrupt:
        if w.k == 1:
            raise
    updates = w.k - 1
    return Model(problem, w.averaged() if average else w, queue, updates, converged)
