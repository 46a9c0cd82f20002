"""Label inputs on joblib's workers, in their order and with bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from laso.engine.workers import Workers

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

BATCH = 1000  # inputs that one call of a worker labels
AHEAD = 8  # batches in memory for each worker


def predicted_stream(model: Predictor, X: Iterable[Any], batch: int = BATCH) -> Iterator[Any]:
    """Yield the output of each input, some batches at a time."""
    inputs = iter(X)
    workers = Workers(model.n_jobs)
    some = AHEAD * workers.count
    while batches := list(islice(_batches(inputs, batch), some)):
        found = workers.run(_predict, [(model, each) for each in batches])
        yield from chain.from_iterable(found)


def is_remote(model: Predictor, X: Any) -> bool:
    """Return whether the workers for so many inputs are other processes.

    Threads need no batches: the engine has its own.
    """
    if not isinstance(X, (list, tuple)) or len(X) <= BATCH:
        return False
    if model.n_jobs is None and "joblib" not in sys.modules:
        return False  # nobody can have configured anything
    workers = Workers(model.n_jobs)
    return workers.count > 1 and not workers.shares_memory


def _predict(model: Predictor, batch: list[Any]) -> list[Any]:
    return list(model.decode(*model.encoded(batch)))


def _batches(inputs: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(inputs, size)):
        yield batch
