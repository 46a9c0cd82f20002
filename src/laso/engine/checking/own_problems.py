"""Checks of a user's own problem before compiled code runs it.

Compiled code cannot notice in time that a method reads or writes beyond an array. So the first
inputs of every new problem, and every input whose limits exceed those checked, run once uncompiled
along some paths. Every result and every access is compared with what ``limits`` promised. The tasks
of this library are tested instead. ``LASO_CHECK=0`` turns the checks off.
"""

from __future__ import annotations

import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from laso.engine import layout as at
from laso.engine.checking.dry_run import Trial
from laso.engine.checking.guarded_arrays import ReadOnly
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.native.bounds_checks import OutOfBounds, origin
from laso.engine.native.dispatch import is_loaded
from laso.engine.native.method_checks import CompileError, check_methods
from laso.engine.problem import REPLACED, CompiledProblem, is_foreign
from laso.engine.reference import limits_of
from laso.engine.weights import row_layouts
from laso.errors import BadProblem, LasoError
from laso.locks import shared_lock

SECONDS = 0.25  # of processor time for the first inputs of a problem; as much again for learning
PATHS = 20  # of each input, to find the line that leaves an array
LEARNING = ("learn_many", "learn_exact_many", "likelihood_many")  # only these read the outputs
# The limit that bounds an array, by the name of the array.
ROOM = {
    "out.keys": at.MAX_FEATURES,
    "out.values": at.MAX_FEATURES,
    "the groups": at.MAX_GROUPS,
    "the choices": at.MAX_LABELS,
    "state": at.STATE_SIZE,
    "new": at.STATE_SIZE,
}

Largest = Callable[[Dataset, Array], Array]

_lock = shared_lock()
_checked: dict[tuple[Any, ...], Array] = {}  # the largest limits of the inputs checked


# --------------------------------------------------------------------------- when to check


def is_needed(problem: type[CompiledProblem]) -> bool:
    """Return whether a problem must be checked: one that is not part of this library."""
    return is_foreign(problem) and os.environ.get("LASO_CHECK", "") != "0"


def check_inputs(
    problem: type[CompiledProblem],
    largest: Largest,
    dataset: Dataset,
    order: Array,
    n_labels: int,
    *,
    learning: bool,
) -> None:
    """Check what has not been checked of the given inputs; ``largest`` returns their limits.

    The first call for a problem checks some inputs. A later one does nothing but compare limits,
    unless the inputs have larger ones, or the problem has other constants or labels.
    """
    if not len(order):
        return
    constants = hash(dataset.spec.tobytes())
    key = (problem, learning, n_labels, dataset.items.shape[1], constants)
    done = _checked.get(key)
    if done is not None and (largest(dataset, order) <= done).all():
        return
    with _lock:  # other threads would find the same
        done = _checked.get(key)
        if done is None:
            done = check_problem(problem, dataset, order, n_labels, learning=learning)
        limits = largest(dataset, order)
        for limit in at.Limit:
            if limits[limit] > done[limit]:
                i = _input_with(largest, dataset, order, limit, int(limits[limit]))
                one = np.array([i], np.int64)
                check_problem(problem, dataset, one, n_labels, learning=learning)
                done = np.maximum(done, largest(dataset, one))
        _checked[key] = done


def _input_with(largest: Largest, dataset: Dataset, order: Array, limit: int, value: int) -> int:
    """Return an input that has this value of a limit, the highest; by bisection."""
    while len(order) > 1:
        half = order[: len(order) // 2]
        order = half if largest(dataset, half)[limit] == value else order[len(half) :]
    return int(order[0])


def check_problem(
    problem: type[CompiledProblem],
    dataset: Dataset,
    order: Array,
    n_labels: int,
    *,
    learning: bool,
) -> Array:
    """Run some of the given inputs uncompiled, and return the largest of their limits.

    These are the first two, the shortest and the longest. ``learning`` adds the gold path, and the
    methods that know the gold output.

    Raises
    ------
    BadProblem
        If a method breaks a promise; the message names the method, its file and line, the input,
        the value, and what to do.
    CompileError
        If that method, or another one, cannot be compiled at all.
    """
    check_methods(problem)
    for name in REPLACED:
        if hasattr(problem, name):
            raise BadProblem(f"{problem.__name__} has {name}, expected {REPLACED[name]}")
    inputs = _chosen(dataset, order)
    limits = np.ones(len(at.Limit), np.int64)
    start = time.thread_time()
    for n, i in enumerate(inputs, 1):
        deadline = start + SECONDS * n / len(inputs)
        trial = Trial(problem, dataset, i, n_labels, learning=learning)
        try:
            trial.run(deadline)
        except Exception as error:
            _raise(trial, error)
        limits = np.maximum(limits, trial.limits)
    return limits


def locate(
    problem: type[CompiledProblem], error: IndexError, name: str, arguments: tuple[Any, ...]
) -> NoReturn:
    """Raise an error that names method, file and line, after a call of an entry point failed.

    Compiled code with checks (``LASO_BOUNDS_CHECK=1``) raises IndexError without a place. The same
    inputs run uncompiled, where Python names the line.
    """
    dataset, order = arguments[:2]
    n_labels = next((row_layouts.n_labels(a) for a in arguments if isinstance(a, WeightTable)), 1)
    for i in np.unique(order).tolist():
        trial = Trial(problem, dataset, i, n_labels, learning=name in LEARNING)
        try:
            trial.run(time.thread_time() + SECONDS, paths=PATHS)
        except Exception as found:
            _raise(trial, found)
    raise OutOfBounds(
        f"{problem.__name__} leaves the bounds of an array ({error}), but none of its methods does "
        f"so uncompiled, on {PATHS} paths for each input"
    ) from error


def tell(
    problem: type[CompiledProblem], dataset: Dataset, i: int, n_labels: int, error: Exception
) -> NoReturn:
    """Raise what a user should know of an error of a method that ran uncompiled."""
    trial = Trial(problem, dataset, i, n_labels, learning=True)
    trial.limits = limits_of(problem, trial.x, n_labels)
    _raise(trial, error)


@contextlib.contextmanager
def naming_methods(problem: type[CompiledProblem]) -> Iterator[None]:
    """Let errors of methods that run uncompiled, as in explanations, name method and place."""
    try:
        yield
    except (ArithmeticError, IndexError, MemoryError, RecursionError) as error:
        method, place = origin(problem, error)
        if method == "?" or isinstance(error, LasoError):
            raise
        found = f"{problem.__name__}.{method} fails uncompiled: {type(error).__name__}: {error}"
        raise BadProblem(f"{found}\n  {place}\n  Correct the method.") from error


def _chosen(dataset: Dataset, order: Array) -> list[int]:
    """Return the first two of some inputs, the shortest and the longest; short ones first."""
    inputs = np.unique(order)
    sizes = dataset.starts[inputs + 1] - dataset.starts[inputs]
    chosen = {*inputs[:2].tolist(), int(inputs[sizes.argmin()]), int(inputs[sizes.argmax()])}
    return sorted(chosen, key=lambda i: int(dataset.starts[i + 1] - dataset.starts[i]))


def _raise(trial: Trial, error: Exception) -> NoReturn:
    """Raise what the user should know of an error: first of all what cannot be compiled."""
    problem = trial.problem
    mistake = None if is_loaded(problem) else _mistake(problem)  # type: ignore[arg-type]
    if mistake:
        raise CompileError(mistake) from error
    if isinstance(error, LasoError):
        raise error
    method, place = origin(problem, error)
    if isinstance(error, IndexError):
        raise OutOfBounds(
            f"{problem.__name__}.{method} leaves the bounds of an array at input {trial.i + 1}: "
            f"{error}\n  {place}\n  {_room_for(str(error), trial)}"
        ) from error
    if isinstance(error, ReadOnly):
        raise BadProblem(
            f"{problem.__name__}.{method} changes {error} at input {trial.i + 1}, which it may "
            f"only read\n  {place}\n  Write only to the arrays that the method is to fill: out, "
            "the state in initial, new in apply."
        ) from error
    if isinstance(error, ArithmeticError | MemoryError | RecursionError):
        raise BadProblem(
            f"{problem.__name__}.{method} fails at input {trial.i + 1}: {type(error).__name__}: "
            f"{error}\n  {place}\n  Correct it: compiled code would go on with a wrong number."
        ) from error
    error.add_note(
        f"{problem.__name__}.{method} raised this at input {trial.i + 1}, when it ran "
        f"uncompiled to be checked ({place})"
    )
    raise error


@functools.cache
def _mistake(problem: Any) -> str | None:
    """Return what is wrong with a method that cannot be compiled; None if all of them can."""
    from laso.engine.native.compile_errors import mistake_in  # imports Numba

    return mistake_in(problem)


def _room_for(message: str, trial: Trial) -> str:
    """Return what to do about an index out of bounds."""
    limit = next((ROOM[name] for name in ROOM if message.endswith(f" in {name}")), None)
    if limit is None:
        return "Correct the index; limits bounds only what the problem writes."
    size = int(trial.limits[limit])
    return f"Correct the index, or let limits promise more than {limit.name} = {size}."
