"""One search of a model, uncompiled: states that tell where they are, steps and their scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.key_origins import numbers_of, recorded
from laso.engine.layout import Array, Dataset, Input, WeightTable
from laso.engine.options import is_exact
from laso.engine.problem import CompiledProblem
from laso.engine.reference import (
    Operator,
    Reference,
    State,
    exact_queue,
)
from laso.engine.weights.compact import keys_and_rows
from laso.engine.weights.row_layouts import dense_rows, n_labels
from laso.estimators.capabilities.states import known_of
from laso.queues import MakeQueue

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

ROWS = "rows"  # among what a model has prepared


def rows_of(model: Predictor) -> dict[int, int]:
    """Return the row of each feature of a model, which is kept until the model learns more."""
    known: tuple[WeightTable, dict[int, int]] | None = model.prepared.get(ROWS)
    if known is None or known[0] is not model.weights_:
        keys, rows = keys_and_rows(model.weights_)
        table = dict(zip(keys.tolist(), rows.tolist(), strict=True))
        known = model.prepared[ROWS] = (model.weights_, table)
    return known[1]


class Walk(Reference):
    """A model's problem in the reference engine; its only feature is the score of a step.

    The real features of a step are those of ``reference``.
    """

    def __init__(self, model: Predictor, dataset: Dataset) -> None:
        table = model.weights_
        plain = model.task_.problem_for(dataset)
        problem, self.origins = recorded(plain)
        super().__init__(problem, n_labels(table))
        self.model, self.task = model, model.task_
        self.reference = Reference(problem, n_labels(table))
        self._plain = Reference(plain, n_labels(table))  # which takes no notes
        self.mask = (1 << int(table.ints[at.BITS])) - 1 if table.ints[at.BITS] else -1
        self._known = known_of(model, dataset)

    def apply(self, x: Input, state: State, operator: Operator) -> State:
        """The state after a step, which knows how many items are covered."""
        place = (state.row, state.position, operator)
        if place not in self._known.states:
            position = state.position + self.task.describe(*operator).length
            after = replace(super().apply(x, state, operator), position=position)
            self._known.states[place] = after
        return self._known.states[place]

    def operators(self, x: Input, state: State) -> Iterator[Operator]:
        """The steps that are possible in a state."""
        if state.row not in self._known.operators:
            self._known.operators[state.row] = list(super().operators(x, state))
        return iter(self._known.operators[state.row])

    def is_goal(self, x: Input, state: State) -> bool:
        """Whether a state is a goal."""
        if state.row not in self._known.goals:
            self._known.goals[state.row] = super().is_goal(x, state)
        return self._known.goals[state.row]

    def features(self, x: Input, state: State, operator: Operator) -> dict[Any, float]:
        """The score of the step as its only feature."""
        return {"score": self.step_score(x, state, operator)}

    def queue(self) -> MakeQueue:
        """The queue of the model, for the reference engine."""
        queue = self.model.search_queue(self.task)
        if is_exact(queue):
            return exact_queue(self.problem.key is not CompiledProblem.key)
        return queue

    @property
    def _rows(self) -> dict[int, int]:
        return rows_of(self.model)

    def weight(self, key: int, label: int) -> float:
        """The weight of a feature for a label."""
        row = self._rows.get(key & self.mask)
        return 0.0 if row is None else float(dense_rows(self.model.weights_, row)[label])

    def step_score(self, x: Input, state: State, operator: Operator) -> float:
        """What a step adds to the score: the sum over its factors."""
        step = (state.row, operator)
        if step not in self._known.steps:
            row = self._row(state)
            score = 0.0
            for group, label in self._plain.factors_of(x, row, operator):
                place = (state.row, group)
                if place not in self._known.scores:
                    self._known.scores[place] = self._scores_of(x, row, group)
                score += float(self._known.scores[place][label])
            self._known.steps[step] = score
        return self._known.steps[step]

    def _scores_of(self, x: Input, row: Array, group: int) -> Array:
        """The scores of all labels of a group."""
        plain = self._plain
        scores = self._sum(plain.own_features(x, row, group))
        for block in plain.blocks_of(x, int(plain.problem.block(x, row, group))):
            if block not in self._known.blocks:
                self._known.blocks[block] = self._sum(plain.of_block(x, block))
            scores += self._known.blocks[block]
        return scores

    def _sum(self, features: Iterable[tuple[int, float]]) -> Array:
        """The scores that features add, for each label."""
        scores, rows = np.zeros(self.n_labels), self._rows
        for key, value in features:
            row = rows.get(key & self.mask)
            if row is not None:
                scores += value * dense_rows(self.model.weights_, row)
        return scores

    def feature_name(self, key: int, items: Array) -> str:
        """The name of a feature; the numbers that its key was mixed from if the task has none."""
        numbers = numbers_of(key, self.origins)
        name = self.task.describe_feature(numbers, items)
        if name is None:
            name = ", ".join(map(_shown, numbers))
            return name if len(numbers) == 1 else f"mix({name})"
        return name


def _shown(number: int) -> str:
    """A number that was mixed into a key; a large one is a key itself."""
    return str(number) if abs(number) < 1 << 31 else f"#{number & (1 << 64) - 1:016x}"
