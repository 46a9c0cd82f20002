"""Label inputs on joblib's workers, in their order and with bounded memory."""

from __future__ import annotations

import pickle
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from copy import copy
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laso.engine.parallel.workers import Workers

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

BATCH = 1000  # inputs that one call of a worker labels
AHEAD = 8  # batches in memory for each worker


def predicted_stream(model: Predictor, X: Iterable[Any], batch: int = BATCH) -> Iterator[Any]:
    """Yield the output of each input, some batches at a time."""
    with ExitStack() as stack:
        workers = stack.enter_context(Workers(model.n_jobs))
        batches, n_ahead = _batches(iter(X), batch), AHEAD * workers.count
        light = _without_training(model)
        source: Predictor | str = light
        if not workers.shares_memory and workers.count > 1:
            folder = tempfile.TemporaryDirectory(prefix="laso-model-", ignore_cleanup_errors=True)
            path = Path(stack.enter_context(folder), "model")
            _write(light, path)
            first = list(islice(batches, n_ahead))
            try:
                outputs = list(workers.run(_predict, [(str(path), each) for each in first]))
                source = str(path)
            except FileNotFoundError:  # they are on other machines: the model goes with each batch
                outputs = list(workers.run(_predict, [(light, each) for each in first]))
            yield from chain.from_iterable(outputs)

        jobs = ((source, each) for each in batches)
        yield from chain.from_iterable(workers.stream(_predict, jobs, AHEAD))


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


def _without_training(model: Predictor) -> Predictor:
    """Return the model without what only learning needs."""
    light = copy(model)
    light.training_ = None
    return light


def _write(model: Predictor, path: Path) -> None:
    """Write a model for workers, which read it once and not with every batch."""
    from joblib import wrap_non_picklable_objects  # such as classes of the main program

    path.write_bytes(pickle.dumps(wrap_non_picklable_objects(model, keep_wrapper=False)))


@lru_cache(maxsize=2)
def _read(path: str) -> Predictor:
    model: Predictor = pickle.loads(Path(path).read_bytes())
    return model


def _predict(source: Predictor | str, batch: list[Any]) -> list[Any]:
    model = _read(source) if isinstance(source, str) else source
    return list(model.decode(*model.encoded(batch)))


def _batches(inputs: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(inputs, size)):
        yield batch
