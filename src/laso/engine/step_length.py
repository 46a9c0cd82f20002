"""How long the feature vectors of steps are, in a sample of the data to learn from."""

from __future__ import annotations

import numpy as np

from laso.engine.checking.own_problems import is_needed, tell
from laso.engine.layout import Array, Dataset, Input
from laso.engine.problem import CompiledProblem
from laso.engine.reference import Reference, input_of, output_of
from laso.training import mean_of_sample


def mean_step_length(problem: type[CompiledProblem], dataset: Dataset, n_labels: int) -> float:
    """Return the mean squared length of the feature vectors of y-good steps; 1 if there are none.

    It is the mean number of features of a step if all have the value 1. The steps are those of
    some examples, drawn at random but always the same, along their first y-good paths.
    """
    reference = Reference(problem, n_labels)

    def follow(i: int, squares: list[float], left: int) -> int:
        try:
            return _follow(reference, input_of(dataset, i), output_of(dataset, i), squares, left)
        except Exception as error:
            if is_needed(problem):
                tell(problem, dataset, i, n_labels, error)
            return 0  # without checks, learning tells what is wrong

    return mean_of_sample(len(dataset.starts) - 1, follow)


def _follow(reference: Reference, x: Input, y: Array, squares: list[float], left: int) -> int:
    """Add the squared length of each step of a y-good path; return how many operators are left."""
    state = reference.initial(x)
    while left > 0 and not reference.is_goal(x, state):
        row = np.array(state.row, np.int32)
        for step in reference.operators(x, state):
            left -= 1
            if reference.problem.is_good(x, y, row, *step):
                break
        else:
            break
        squares.append(sum(value * value for value in reference.features(x, state, step).values()))
        state = reference.apply(x, state, step)
    return left
