"""Learning on processes, Dask and Ray: the same bits as on threads."""

from __future__ import annotations

import os
import signal
import threading
import time

import joblib
import pytest

from laso import Tagger
from tests.test_shards import X, Y, assert_same, fitted


def on(backend: str, **given) -> Tagger:
    with joblib.parallel_config(backend, n_jobs=2):
        return fitted("beam", **given)


def test_processes():
    model = on("loky")
    assert_same(model, fitted("beam"))
    many = X * 20
    with joblib.parallel_config("loky", n_jobs=2):
        assert model.predict(many) == [model.predict_single(x) for x in X] * 20


@pytest.fixture(scope="module")
def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="needs laso[dask]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def test_dask(dask_cluster):
    assert_same(on("dask"), fitted("beam"))


def test_a_dask_worker_is_killed_in_the_middle(dask_cluster):
    # Its scheduler runs what was lost again, on the other worker.
    (pid, *_) = dask_cluster.run(os.getpid).values()
    more = [X[i % 60] for i in range(3000)], [Y[i % 60] for i in range(3000)]

    def kill() -> None:
        time.sleep(0.5)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with joblib.parallel_config("dask", n_jobs=2):
        found = Tagger(epochs=6, shards=3).fit(*more)
    killer.join()
    assert_same(found, Tagger(epochs=6, shards=3).fit(*more))


@pytest.fixture(scope="module")
def ray_cluster():
    ray = pytest.importorskip("ray", reason="needs laso[ray]")
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


@pytest.mark.filterwarnings("ignore")
def test_ray(ray_cluster):
    assert_same(on("ray"), fitted("beam"))
