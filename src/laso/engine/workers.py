"""Run independent jobs on joblib's workers: threads, processes, or a cluster of Dask or Ray.

    with joblib.parallel_config("dask"):
        tagger.fit(X, y)

Without such a configuration jobs run in threads. A job that is lost with its worker is run again.
"""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import laso
from laso.engine.layout import Array, Dataset
from laso.engine.passes import Training
from laso.engine.shards import (
    Change,
    Mixing,
    ShardLearner,
    Start,
    mix,
    shard_of_examples,
    start_of,
    uniform,
)
from laso.errors import LasoError, WorkerLost

log = logging.getLogger("laso.workers")

ATTEMPTS = 3  # how often a job is run if its worker is lost


# --------------------------------------------------------------------------- jobs


class Workers:
    """joblib's workers, as the caller has configured them.

    Parameters
    ----------
    n_jobs : int, default=None
        The number of workers; None: that of ``joblib.parallel_config``, or 1.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    @property
    def count(self) -> int:
        """The number of workers."""
        from joblib import Parallel

        return int(Parallel(n_jobs=self.n_jobs, prefer="threads")._effective_n_jobs())

    @property
    def shares_memory(self) -> bool:
        """Whether workers are threads of this process."""
        from joblib import Parallel

        backend = Parallel(n_jobs=self.n_jobs, prefer="threads")._backend
        return bool(getattr(backend, "supports_sharedmem", False))

    def run(self, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        """Yield the results of ``function(*job)`` in the order of the jobs."""
        done = 0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                for result in self._once(function, jobs[done:]):
                    yield result
                    done += 1
                return
            except (LasoError, MemoryError, KeyboardInterrupt, GeneratorExit):
                raise
            except Exception as error:
                if not _is_loss(error):
                    raise
                if attempt == ATTEMPTS:
                    raise WorkerLost(
                        f"job {done + 1} of {len(jobs)} was lost {ATTEMPTS} times with its worker "
                        f"({type(error).__name__}: {str(error)[:200]}); a worker may lack memory"
                    ) from error
                log.warning("a worker was lost (%s): running its jobs again", type(error).__name__)

    def _once(self, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        from joblib import Parallel, delayed

        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads")
        if getattr(parallel._backend, "supports_return_generator", False):
            parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")
        yield from parallel(delayed(function)(*job) for job in jobs)


def _is_loss(error: Exception) -> bool:
    """Return whether an error says that a worker has died, in the words of any backend."""
    names = {each.__name__ for each in type(error).__mro__}
    lost = {
        "BrokenProcessPool",  # loky and concurrent.futures
        "TerminatedWorkerError",
        "KilledWorker",  # Dask
        "CommClosedError",
        "FutureCancelledError",  # what was scattered to the worker is lost with it
        "RayActorError",  # Ray
        "WorkerCrashedError",
        "ActorDiedError",
    }
    return bool(names & lost)


# --------------------------------------------------------------------------- data for workers


@dataclass(frozen=True)
class ArrayFile:
    """An array in a file, to be mapped into memory."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    def opened(self) -> Array:
        """Return the array; only the parts that are used are read."""
        if 0 in self.shape:
            return np.zeros(self.shape, self.dtype)
        if not os.path.exists(self.path):
            raise WorkerLost(
                f"a worker does not see the file {self.path}: expected a folder that all workers "
                "share, as in fit_stream(..., store=folder)"
            )
        # Not "r": compiled code takes arrays that may be written to; nothing ever is.
        found = np.memmap(self.path, self.dtype, "c", self.offset, self.shape)
        return np.asarray(found)


@dataclass(frozen=True)
class DatasetFiles:
    """A dataset in files."""

    arrays: tuple[ArrayFile, ...]

    @lru_cache(maxsize=4)  # noqa: B019 - a worker has few datasets, each for a long time
    def opened(self) -> Dataset:
        """Return the dataset, mapped into memory."""
        return Dataset(*(each.opened() for each in self.arrays))


def in_files(dataset: Dataset, folder: Path) -> DatasetFiles:
    """Return the dataset in files: its own where it is mapped already, else new ones."""
    return DatasetFiles(
        tuple(_in_file(array, folder / name) for name, array in dataset._asdict().items())
    )


def _in_file(array: Array, path: Path) -> ArrayFile:
    dtype, shape = array.dtype.str, array.shape
    base: Any = array
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    if base is not None and array.flags.c_contiguous:
        offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return ArrayFile(str(base.filename), dtype, shape, base.offset + offset)
    np.ascontiguousarray(array).tofile(path)
    return ArrayFile(str(path.resolve()), dtype, shape)


# --------------------------------------------------------------------------- learning in shards


@dataclass(frozen=True)
class Shard:
    """The examples of a shard, and who learns from them."""

    learner: ShardLearner
    data: Dataset | DatasetFiles
    version: str

    def __call__(self, order: Array, start: Start) -> Change:
        """Return what an epoch changes."""
        if laso.__version__ != self.version:
            raise WorkerLost(
                f"a worker has laso {laso.__version__}, expected {self.version} as in the program"
            )
        data = self.data.opened() if isinstance(self.data, DatasetFiles) else self.data
        try:
            # A copy, since some backends pass arrays that are for reading only.
            return self.learner(data, order.copy(), start)
        except MemoryError as error:
            raise WorkerLost(
                f"a worker has no memory left for {len(order)} examples: expected more shards, "
                "or fewer workers at a time"
            ) from error


class InShards:
    """One pass over the examples: each shard learns from its own, then the weights are mixed."""

    def __init__(
        self,
        learner: ShardLearner,
        workers: Workers,
        shards: int,
        *,
        mixing: Mixing = uniform,
        folder: Path | None = None,
    ) -> None:
        self.learner, self.workers, self.shards = learner, workers, shards
        self.mixing, self.folder = mixing, folder
        self.traffic: list[tuple[int, int]] = []  # bytes to and from workers, of each epoch
        self._shard: Shard | None = None

    def __call__(
        self, dataset: Dataset, order: Array, training: Training
    ) -> Iterator[tuple[int, int]]:
        """Learn from the examples; yield how many are done, and how many of them had errors."""
        if self._shard is None:
            data: Dataset | DatasetFiles = dataset
            if self.folder is not None:
                data = in_files(dataset, self.folder)
            self._shard = Shard(self.learner, data, laso.__version__)
        shard_of, start = shard_of_examples(len(order), self.shards), start_of(training)
        orders = [order[shard_of[order] == shard] for shard in range(self.shards)]
        orders = [each for each in orders if len(each)]
        changes: list[Change] = []
        done = wrong = 0
        for change in self.workers.run(self._shard, [(each, start) for each in orders]):
            done += len(orders[len(changes)])
            wrong += change.wrong
            changes.append(change)
            if len(changes) < len(orders):
                yield done, wrong
        mix(training, changes, self.learner, self.mixing)
        sent = sum(each.nbytes for each in start if isinstance(each, np.ndarray))
        self.traffic.append((sent * len(orders), sum(change.nbytes for change in changes)))
        yield done, wrong


@contextmanager
def in_shards(
    learner: ShardLearner, n_jobs: int | None, shards: int, mixing: Mixing
) -> Iterator[InShards]:
    """Give the passes of a training in shards; workers of other processes read data from files."""
    workers = Workers(n_jobs)
    if workers.shares_memory:
        yield InShards(learner, workers, shards, mixing=mixing)
        return
    with tempfile.TemporaryDirectory(prefix="laso-shards-") as folder:
        yield InShards(learner, workers, shards, mixing=mixing, folder=Path(folder))
