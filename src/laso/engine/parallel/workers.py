"""Run independent jobs on joblib's workers: threads, processes, or a cluster of Dask or Ray.

    with joblib.parallel_config("dask"):
        tagger.fit(X, y)

Without such a configuration jobs run in threads. A job that is lost with its worker is run again.
"""

from __future__ import annotations

import logging
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import laso
from laso.engine.epochs import Training
from laso.engine.layout import Array, Dataset
from laso.engine.parallel.array_files import InFiles, folder_of, in_files
from laso.engine.parallel.shards import (
    DEFAULT,
    Change,
    Mixing,
    ShardLearner,
    Start,
    in_rounds,
    keys_by_row,
    mix,
    start_of,
)
from laso.engine.weights.row_layouts import measure
from laso.errors import LasoError, WorkerLost
from laso.files.atomic import temporary_folder

log = logging.getLogger("laso.workers")

ATTEMPTS = 3  # how often a job is run if its worker is lost


# --------------------------------------------------------------------------- jobs


class Workers:
    """joblib's workers, as the caller has configured them.

    Inside of a with statement they stay, ready for more jobs.

    Parameters
    ----------
    n_jobs : int, default=None
        The number of workers; None: that of ``joblib.parallel_config``, or 1.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs
        self._stack: ExitStack | None = None
        self._kept: Any = None

    def __enter__(self) -> Workers:
        """Keep workers."""
        self._stack = ExitStack()
        return self

    def __exit__(self, *_: object) -> None:
        """Let them go."""
        self._let_go()
        self._stack = None

    @property
    def count(self) -> int:
        """The number of workers."""
        return int(self._parallel()._effective_n_jobs())

    @property
    def shares_memory(self) -> bool:
        """Whether workers are threads of this process."""
        return bool(getattr(self._parallel()._backend, "supports_sharedmem", False))

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
                self._let_go()
                if attempt == ATTEMPTS:
                    raise WorkerLost(
                        f"job {done + 1} of {len(jobs)} was lost {ATTEMPTS} times with its worker "
                        f"({type(error).__name__}: {str(error)[:200]}); a worker may lack memory"
                    ) from error
                log.warning("a worker was lost (%s): running its jobs again", type(error).__name__)

    def stream(
        self, function: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], ahead: int
    ) -> Iterator[Any]:
        """Yield results as ``run`` does; each worker has at most ``ahead`` jobs in memory."""
        at_once, left = ahead * self.count, iter(jobs)
        if self._stack is not None and self.shares_memory:
            yield from self._in_threads(function, left, at_once)
            return
        while batch := list(islice(left, at_once)):
            yield from self.run(function, batch)

    def _once(self, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        from joblib import delayed

        if self._stack is None:
            with Workers(self.n_jobs) as workers:
                yield from workers._once(function, jobs)
        elif self.shares_memory:
            yield from self._in_threads(function, jobs, len(jobs))
        else:
            parallel = self._keep(self._generating)
            yield from parallel(delayed(function)(*job) for job in jobs)

    def _in_threads(
        self, function: Callable[..., Any], jobs: Iterable[tuple[Any, ...]], most: int
    ) -> Iterator[Any]:
        """Do as joblib, which looks for results of its threads once in 10 ms only.

        Not more than ``most`` jobs wait at a time, for a thread or to be yielded.
        """
        if min(self.count, most) <= 1:
            for job in jobs:
                yield function(*job)
            return
        from concurrent.futures import Future, ThreadPoolExecutor

        threads = self._keep(lambda: ThreadPoolExecutor(self.count))
        waiting: deque[Future[Any]] = deque()
        try:
            for job in jobs:
                waiting.append(threads.submit(function, *job))
                if len(waiting) == most:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def _keep(self, make: Callable[[], Any]) -> Any:
        """Return what runs the jobs; it is made once and stays."""
        assert self._stack is not None
        if self._kept is None:
            self._kept = self._stack.enter_context(make())
        return self._kept

    def _generating(self) -> Any:
        """Return joblib's Parallel, which yields results as they come if the backend can."""
        backend = self._parallel()._backend
        can = getattr(backend, "supports_return_generator", False)
        return self._parallel(**({"return_as": "generator"} if can else {}))

    def _parallel(self, **given: Any) -> Any:
        from joblib import Parallel

        parallel = Parallel(n_jobs=self.n_jobs, prefer="threads", **given)
        _mend(parallel._backend)
        return parallel

    def _let_go(self) -> None:
        self._kept = None
        if self._stack is not None:
            self._stack.pop_all().close()


def _mend(backend: Any) -> None:
    """Let joblib survive the loss of Dask's workers.

    Its backend calls nobody back for a task that the scheduler has given up, so that joblib waits
    forever. And while one worker is left, joblib would run the jobs in the program.
    """
    if not hasattr(backend, "waiting_futures") or "mended" in vars(backend):
        return
    name = "submit" if hasattr(backend, "submit") else "apply_async"  # of older versions
    start = getattr(backend, name)
    backend.effective_n_jobs(-1)  # which raises an error if there is no worker at all

    def started(function: Any, callback: Any = None) -> Any:
        future = start(function, callback)
        if callback is not None:
            future.add_done_callback(lambda f: f.exception() and callback(f.exception()))
        return future

    setattr(backend, name, started)
    backend.effective_n_jobs = lambda n_jobs: max(2, sum(backend.client.ncores().values()))
    backend.mended = True


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


# --------------------------------------------------------------------------- learning in shards


@dataclass(frozen=True)
class Shard:
    """The examples of a shard, and who learns from them."""

    learner: ShardLearner
    data: Dataset | InFiles[Dataset]
    version: str

    def __call__(self, order: Array, start: Start | InFiles[Start]) -> Change:
        """Return what a round changes."""
        with telling(self.version, len(order)):
            data = self.data.opened() if isinstance(self.data, InFiles) else self.data
            weights = start.opened() if isinstance(start, InFiles) else start
            # A copy, since some backends pass arrays that are for reading only.
            return self.learner(data, order.copy(), weights)


@contextmanager
def telling(version: str, examples: int) -> Iterator[None]:
    """Raise WorkerLost in a worker that has another version of laso or no memory."""
    if laso.__version__ != version:
        raise WorkerLost(
            f"a worker has laso {laso.__version__}, expected {version} as in the program"
        )
    try:
        yield
    except MemoryError as error:
        raise WorkerLost(
            f"a worker has no memory left for {examples} examples: expected more shards, "
            "or fewer workers at a time"
        ) from error


class InShards:
    """One pass over the examples, in rounds: shards learn from their own, then they are mixed.

    With a folder, workers of other processes read examples and weights from its files.
    """

    def __init__(
        self,
        learner: ShardLearner,
        workers: Workers,
        shards: int,
        *,
        mixing: Mixing = DEFAULT,
        folder: Path | None = None,
    ) -> None:
        self.learner, self.workers, self.shards = learner, workers, shards
        self.mixing, self.folder = mixing, folder
        self.traffic: list[tuple[int, int]] = []  # bytes to and from workers, of each epoch
        self.keeps = False
        self.before: Training | None = None  # as at the beginning of this epoch, if it is kept
        self._shard: Shard | None = None
        self._keys = np.zeros(0, np.int64)  # of the rows, in their order

    def __call__(
        self, dataset: Dataset, order: Array, training: Training
    ) -> Iterator[tuple[int, int]]:
        """Learn from the examples; yield how many are done, and how many of them had errors."""
        if self._shard is None:
            data: Dataset | InFiles[Dataset] = dataset
            if self.folder is not None:
                data = in_files(dataset, self.folder)
            self._shard = Shard(self.learner, data, laso.__version__)
            self._keys = keys_by_row(training.table)
            measure(training.table)
        self.before = training.copied() if self.keeps else None
        self.traffic.append((0, 0))
        done = wrong = 0
        for orders in in_rounds(order, self.shards, training.epoch):
            start = start_of(training, self._keys)
            weights: Start | InFiles[Start] = start
            if self.folder is not None:
                weights = in_files(start, self.folder)
            changes: list[Change] = []
            for change in self.workers.run(self._shard, [(each, weights) for each in orders]):
                done += len(orders[len(changes)])
                wrong += change.wrong
                changes.append(change)
                if len(changes) < len(orders):
                    yield done, wrong
            mixed = mix(training, changes, self.learner, self.mixing)
            self._keys = np.concatenate([self._keys, mixed])
            self._count(start.nbytes, changes)
            yield done, wrong

    def _count(self, size: int, changes: Sequence[Change]) -> None:
        """Count the bytes of a round; without a folder, as if each shard had its own worker."""
        readers = len(changes)
        if self.folder is not None:
            readers = min(readers, self.workers.count)
        sent, received = self.traffic[-1]
        received += sum(change.nbytes for change in changes)
        self.traffic[-1] = sent + size * readers, received


@contextmanager
def in_shards(
    learner: ShardLearner, workers: Workers, shards: int, mixing: Mixing, dataset: Dataset
) -> Iterator[InShards]:
    """Give the passes of a training in shards, on workers that stay until its end."""
    with ExitStack() as stack:
        stack.enter_context(workers)
        folder = stack.enter_context(shared_folder(workers, dataset))
        yield InShards(learner, workers, shards, mixing=mixing, folder=folder)


@contextmanager
def shared_folder(workers: Workers, dataset: Dataset) -> Iterator[Path | None]:
    """Give a folder for what workers of other processes read; None if they are threads.

    It is beside the files of the dataset, if it has any.
    """
    if workers.shares_memory:
        yield None
        return
    with temporary_folder(folder_of(dataset) or Path(tempfile.gettempdir())) as folder:
        yield folder
