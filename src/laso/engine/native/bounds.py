"""Finds the method of a problem that leaves the bounds of an array.

Compiled code with checks (``LASO_BOUNDS_CHECK=1``) raises IndexError without a place. The same
functions run uncompiled over the same inputs, where Python names the line.
"""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Iterator
from typing import Any

import numpy as np

from laso.engine.layout import Dataset, WeightTable
from laso.engine.native.checks import plain
from laso.engine.native.sources import plain_functions
from laso.engine.problem import NAMES, CompiledProblem
from laso.errors import BadProblem

PATHS = 20  # through the search space of each input
STEPS = 20_000  # at most, for each input
LEARNING = ("learn_many", "learn_exact_many", "likelihood_many")  # only these read the outputs


class OutOfBounds(BadProblem, IndexError):
    """A problem's method reads or writes beyond the end of an array; the message names it."""


def located(
    problem: type[CompiledProblem], error: IndexError, name: str, arguments: tuple[Any, ...]
) -> IndexError:
    """Returns an error that names method, file and line, for a call of an entry point."""
    corpus, order = arguments[:2]
    n_labels = next((a.v.shape[1] for a in arguments if isinstance(a, WeightTable)), 1)
    for i in np.unique(order).tolist():
        steps = _steps(problem, corpus, i, n_labels=n_labels, learning=name in LEARNING)
        try:
            for _ in itertools.islice(steps, STEPS):
                pass
        except IndexError as found:
            method, place = origin(problem, found)
            return OutOfBounds(
                f"{problem.__name__}.{method} leaves the bounds of an array at input {i}: {found}"
                f"\n  {place}\n  Correct the index, or let limits ask for more room."
            )
    return OutOfBounds(
        f"{problem.__name__} leaves the bounds of an array ({error}), but none of its methods does "
        f"so uncompiled, on {PATHS} paths for each input"
    )


def _steps(
    problem: type[CompiledProblem], corpus: Dataset, i: int, *, n_labels: int, learning: bool
) -> Iterator[None]:
    """Calls all methods for all steps along some paths; yields after each step."""
    from laso.engine.reference import Reference, input_of, output_of

    reference = Reference(problem, n_labels)
    x, y = input_of(corpus, i), output_of(corpus, i)
    random = np.random.default_rng(i)
    for path in range(PATHS):
        state = reference.initial(x)
        while not reference.is_goal(x, state):
            row = np.array(state.row, np.int32)
            operators = [*reference.operators(x, state)]
            good = []
            for operator in operators:
                reference.features(x, state, operator)
                reference.apply(x, state, operator)
                yield
            # The engine asks for the goodness of steps that are not allowed, too.
            for group in {group for group, _ in operators} if learning else ():
                for label in range(int(problem.labels(x, n_labels))):
                    is_good = bool(problem.is_good(x, y, row, group, label))
                    problem.loss(x, y, row, group, label, True, is_good)
                    good += [(group, label)] if is_good else []
            # The first path follows the gold output, the others are random.
            preferred = [operator for operator in operators if operator in good and path == 0]
            choices = preferred or operators
            if not choices:
                break
            state = reference.apply(x, state, choices[random.integers(len(choices))])


def origin(problem: type[CompiledProblem], error: Exception) -> tuple[str, str]:
    """Returns the method that raised an error, and the file and line where it did."""
    methods = {plain(getattr(problem, name)).__code__: name for name in NAMES}
    own = {f.__code__ for name in NAMES for f in plain_functions(plain(getattr(problem, name)))}
    frames = [*traceback.walk_tb(error.__traceback__)]
    method = next((methods[f.f_code] for f, _ in frames if f.f_code in methods), "?")
    places = [f"{f.f_code.co_filename}:{line}" for f, line in frames if f.f_code in own]
    return method, places[-1] if places else "?"
