"""Learning on processes, Dask and Ray: the same bits as on threads."""

from __future__ import annotations

import builtins
import logging
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from laso import (
    Checkpoint,
    Chunker,
    JointTagger,
    Parser,
    SearchEstimator,
    Tagger,
    early,
    max_violation,
    passive_aggressive,
    standard,
)
from laso.engine import layout as at
from laso.engine.lattice.objective import Slope
from laso.engine.layout import Array, Dataset
from laso.engine.parallel import gradients
from laso.engine.parallel.array_files import ArrayFile
from laso.engine.parallel.gradients import Part
from laso.engine.parallel.shards import Change, ShardLearner, Start
from laso.errors import WorkerLost
from laso.estimators.learning import fitting
from laso.examples import label_folder
from tests.test_shards import SETTINGS, X, Y

BACKENDS = ["loky", "dask", "ray"]


# --------------------------------------------------------------------------- clusters


@contextmanager
def dask_cluster() -> Iterator[None]:
    distributed = pytest.importorskip("distributed", reason="needs laso[dask]")
    import dask

    # A task that loses its worker twice is given back to the program, which counts on.
    settings = {"distributed.scheduler.allowed-failures": 1}
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster, timeout="60s"),
        joblib.parallel_config("dask", n_jobs=2),
    ):
        yield


@contextmanager
def ray_cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray", reason="needs laso[ray]")
    from ray.util.joblib import register_ray

    register_ray()
    before = builtins.print  # Ray puts its own in its place
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
        object_store_memory=100_000_000,
    )
    try:
        with joblib.parallel_config("ray", n_jobs=2):
            yield
    finally:
        ray.shutdown()
        builtins.print = before


@contextmanager
def processes() -> Iterator[None]:
    with joblib.parallel_config("loky", n_jobs=2):
        yield


CLUSTERS: dict[str, Callable[[], Any]] = {
    "loky": processes,
    "dask": dask_cluster,
    "ray": ray_cluster,
}


@pytest.fixture(scope="module", params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    with ExitStack() as stack:
        stack.enter_context(CLUSTERS[request.param]())
        yield request.param


@contextmanager
def threads() -> Iterator[None]:
    with joblib.parallel_config("threading", n_jobs=2):
        yield


pytestmark = pytest.mark.filterwarnings("ignore")  # those of Dask and Ray


# --------------------------------------------------------------------------- the same bits

TOKENS = [[(w, y) for w, y in zip(*s, strict=True)] for s in zip(X, Y, strict=True)]
TREES = [[(0, "root"), *((i, f"d{int(w[1:]) % 3}") for i, w in enumerate(x[1:], 1))] for x in X]


def tagged(**given: Any) -> SearchEstimator:
    return Tagger(epochs=3, shards=3, **given).fit(X, Y)


def partly(**given: Any) -> SearchEstimator:
    model = Tagger(shards=3, **given)
    return model.partial_fit(X[:30], Y[:30]).partial_fit(X[30:], Y[30:])


def streamed(folder: Path) -> SearchEstimator:
    return Tagger(epochs=3, shards=3).fit_stream(lambda: zip(X, Y, strict=True), store=folder)


def cases(folder: Path) -> dict[str, Callable[[], SearchEstimator]]:
    """Everything that can be learned in shards."""
    settings: dict[str, dict[str, Any]] = {
        **SETTINGS,
        "pa": {"update": passive_aggressive()},
        "early": {"strategy": early},
        "standard": {"strategy": standard},
        "max_violation": {"strategy": max_violation},
        "uniform": {"mixing": "uniform"},
        "updates": {"mixing": "updates", **SETTINGS["alma"]},
        "hashed": {"hash_bits": 10},
        "class weights": {"class_weight": {"L0": 2.0}},
        "float64": {"dtype": "float64"},
        "dev": {"held_out": 0.2, "patience": 2},
    }
    made = {name: lambda given=given: tagged(**given) for name, given in settings.items()}
    spans = [[f"B-{y}" for y in labels] for labels in Y]
    pairs = [[(y, w[-1]) for w, y in sentence] for sentence in TOKENS]
    return {
        **made,
        "partial_fit": partly,
        "fit_stream": lambda: streamed(folder),
        "Chunker": lambda: Chunker(epochs=2, shards=3).fit(X, spans),
        "JointTagger": lambda: JointTagger(layers=["a", "b"], epochs=2, shards=3).fit(X, pairs),
        "Parser": lambda: Parser(epochs=2, shards=3).fit(TOKENS, TREES),
    }


def weights(model: SearchEstimator) -> list[Array]:
    return [np.asarray(each) for each in model.weights_]


FEW = ("beam", "updates", "arow", "adagrad", "lbfgs", "fit_stream", "Parser")  # Ray starts slowly


def test_the_backend_changes_nothing(backend, tmp_path):
    differing = []
    for name, learn in cases(tmp_path).items():
        if backend == "ray" and name not in FEW:
            continue
        with threads():  # first, so that machine code is compiled once and not by each worker
            expected = weights(learn())
        found = weights(learn())
        if not all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True)):
            differing.append(name)
    assert not differing


def test_inputs_are_labelled_in_order(backend):
    with threads():
        model = tagged()
    many = X * 20
    assert model.predict(many) == [model.predict_single(x) for x in X] * 20
    batches = model.predict_stream(chain.from_iterable([X] * 2), batch=7)
    assert list(batches) == model.predict(X) * 2


IN_RAY = """
import sys, ray
from laso.examples.label_folder import with_ray
model, out, *paths = sys.argv[1:]
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
print(*with_ray(paths, model=model, out=out), sep="\\n")
"""


def with_ray_data(paths: list[str], *, model: str, out: str) -> list[str]:
    """The example in a process of its own: Ray Data puts functions in the place of others."""
    command = [sys.executable, "-c", IN_RAY, model, out, *paths]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 0, found.stderr
    return found.stdout.split()


@pytest.mark.parametrize("cluster", ["dask", "ray"])
def test_a_folder_of_files_is_labelled(cluster, tmp_path):
    label: Any = with_ray_data
    started: Any = nullcontext
    if cluster == "dask":
        label, started = label_folder.with_dask, CLUSTERS["dask"]
    elif find_spec("pyarrow") is None or find_spec("ray") is None:
        pytest.skip("needs laso[ray]")
    with threads():
        model = tagged()
    model.save(tmp_path / "model.laso")
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    paths = [str(tmp_path / "in" / f"{i}.txt") for i in range(3)]
    for i, path in enumerate(paths):
        text = "".join("\n".join(x) + "\n\n" for x in X[i::3])
        Path(path).write_text(text, encoding="utf-8")
    with started():
        found = label(paths, model=str(tmp_path / "model.laso"), out=str(tmp_path / "out"))
    assert sorted(found) == [str(tmp_path / "out" / f"{i}.txt") for i in range(3)]
    for i in range(3):
        written = (tmp_path / "out" / f"{i}.txt").read_text(encoding="utf-8").strip().split("\n\n")
        assert [each.split("\n") for each in written] == model.predict(X[i::3])


# --------------------------------------------------------------------------- what goes wrong


@dataclass(frozen=True)
class Faulty(ShardLearner):
    """Learns half of a round and fails, in the second epoch, so many times."""

    folder: str = ""
    program: int = 0
    times: int = 1
    memory: bool = False

    def __call__(self, dataset: Dataset, order: Array, start: Start) -> Change:
        if start.ints[at.TICKS] >= len(X):
            failures = len(list(Path(self.folder).iterdir()))
            if failures < self.times:
                super().__call__(dataset, order[: len(order) // 2], start)
                Path(self.folder, f"{os.getpid()}-{failures}").touch()
                if self.memory:
                    raise MemoryError
                assert os.getpid() != self.program
                os._exit(1)
        return super().__call__(dataset, order, start)


def faulty(monkeypatch: pytest.MonkeyPatch, folder: Path, **given: Any) -> None:
    """Let the shards of the next training fail."""
    folder.mkdir()
    monkeypatch.setattr(
        fitting,
        "ShardLearner",
        lambda engine, average, n: Faulty(engine, average, n, str(folder), os.getpid(), **given),
    )


def wait_for_workers(backend: str) -> None:
    """Wait until a cluster has replaced workers that died in another test."""
    if backend == "dask":
        import distributed

        distributed.default_client().wait_for_workers(2, timeout=60)


def test_a_worker_dies_in_the_middle_of_an_epoch(backend, monkeypatch, tmp_path):
    faulty(monkeypatch, tmp_path / "failures")
    found = tagged()
    assert list((tmp_path / "failures").iterdir())
    monkeypatch.undo()
    with threads():
        expected = tagged()
    assert all(np.array_equal(a, b) for a, b in zip(weights(found), weights(expected), strict=True))


def test_a_worker_without_memory_says_so(backend, monkeypatch, tmp_path):
    if backend == "ray":
        pytest.skip("its workers start slowly, and the code is that of the other backends")
    wait_for_workers(backend)
    faulty(monkeypatch, tmp_path / "failures", memory=True)
    with pytest.raises(WorkerLost, match="no memory left"):
        tagged()


def test_a_shard_that_is_always_lost_leaves_a_checkpoint(backend, monkeypatch, tmp_path):
    if backend != "loky":
        pytest.skip("clusters replace workers slowly, and the code is that of processes")
    faulty(monkeypatch, tmp_path / "failures", times=1000)
    checkpoint = Checkpoint(tmp_path / "model.laso", seconds=3600)
    with pytest.raises(WorkerLost, match="lost 3 times with its worker"):
        Tagger(epochs=3, shards=3).fit(X, Y, checkpoint=checkpoint)
    monkeypatch.undo()
    saved = Tagger.load(tmp_path / "model.laso")
    assert saved.n_iter_ == 1
    with threads():
        resumed = saved.resume(X, Y, epochs=3)
        assert resumed.predict(X) == tagged().predict(X)


@dataclass(frozen=True)
class FaultyPart(Part):
    """Ends its process in the third evaluation, so many times."""

    folder: str = ""
    program: int = 0
    times: int = 1

    def __call__(self, theta: ArrayFile, number: int) -> Slope:
        failures = len(list(Path(self.folder).iterdir()))
        if number == 3 and failures < self.times:
            Path(self.folder, f"{os.getpid()}-{failures}").touch()
            assert os.getpid() != self.program
            os._exit(1)
        return super().__call__(theta, number)


def climbing(**given: Any) -> Tagger:
    return Tagger(shards=3, **SETTINGS["lbfgs"]).fit(X, Y, **given)


def test_gradients_of_a_worker_that_dies(backend, monkeypatch, tmp_path):
    if backend == "ray":
        pytest.skip("its workers start slowly, and the code is that of the other backends")
    wait_for_workers(backend)
    folder = str(tmp_path)
    monkeypatch.setattr(gradients, "Part", partial(FaultyPart, folder=folder, program=os.getpid()))
    found = climbing()
    assert len(list(tmp_path.iterdir())) == 1
    with threads():
        expected = climbing()
    assert all(np.array_equal(a, b) for a, b in zip(weights(found), weights(expected), strict=True))


def test_gradients_that_are_always_lost_leave_a_checkpoint(monkeypatch, tmp_path):
    folder = tmp_path / "failures"
    folder.mkdir()
    part = partial(FaultyPart, folder=str(folder), program=os.getpid(), times=1000)
    monkeypatch.setattr(gradients, "Part", part)
    checkpoint = Checkpoint(tmp_path / "model.laso", seconds=3600)
    with processes(), pytest.raises(WorkerLost, match="lost 3 times with its worker"):
        climbing(checkpoint=checkpoint)
    saved = Tagger.load(tmp_path / "model.laso")
    assert saved.n_iter_ == 2
    assert saved.score(X, Y) > 0.5
