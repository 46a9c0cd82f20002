"""Learning in shards: a plain mixture in the reference engine, on any number of workers."""

from __future__ import annotations

import math
import os
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import (
    CRF,
    Tagger,
    adagrad,
    alma,
    arow,
    beam,
    exact,
    lbfgs,
    passive_aggressive,
    perceptron,
    restart,
    sgd,
    worst,
)
from laso.engine import layout as at
from laso.engine.layout import Dataset
from laso.engine.machine import Machine, as_names, averaged, new_table
from laso.engine.options import options_for
from laso.engine.passes import InTurn, Plan, Training, train
from laso.engine.reference import Reference, input_of, output_of
from laso.engine.shards import MIXINGS, ShardLearner, shard_of_examples
from laso.engine.workers import ArrayFile, InShards, Shard, Workers, in_files
from laso.errors import WorkerLost
from laso.problem import Vector
from laso.training import Rule
from laso.vectors import Linear
from tests.engine_inputs import TASKS, Task
from tests.test_engine_equality import few

TAGGING: Task = TASKS[0]
RULES: list[Rule] = [
    perceptron(weighting=worst, margin=0.75),
    alma(alpha=0.5),
    alma(alpha=1.0, C=40.0),  # steps so long that the scale is soon begun anew
    passive_aggressive(weighting=worst),
    arow(weighting=worst, variance=0.5, gamma=2.0),
]


# --------------------------------------------------------------------------- the slow twin


def sums(vectors: list[Vector], shares: list[float]) -> Vector:
    """The sum of vectors, each with its share."""
    names = {name for vector in vectors for name in vector}
    pairs = list(zip(vectors, shares, strict=True))
    return {name: math.fsum(share * v.get(name, 0.0) for v, share in pairs) for name in names}


def mixed(
    corpus: Dataset, rule: Rule, plan: Plan, shards: int, mixing: str
) -> tuple[Vector, Vector]:
    """The weights and the averaged weights of iterative parameter mixing, in plain Python."""
    problem, n = Reference(TAGGING.problem, TAGGING.n_labels), len(corpus.starts) - 1
    shard_of, ticks = shard_of_examples(n, shards), 0
    total: Vector = {}
    start: Any = rule.start()
    for epoch in range(1, plan.epochs + 1):
        order, ends = plan.order(epoch, n), []
        for shard in range(shards):
            w = Linear(start.weights, k=start.k)
            w.margin, w.precisions = start.margin, dict(start.precisions)
            for i in order[shard_of[order] == shard]:
                x, y = input_of(corpus, i), output_of(corpus, i)
                restart(problem, x, y, w, beam(2), rule)
                w.tick()
            if (shard_of == shard).any():
                ends.append(w)
        updates = [w.k - start.k for w in ends]
        shares = MIXINGS[mixing](np.array(updates)).tolist()
        total = sums([total, *(w._w._sum() for w in ends)], [1.0] * (len(ends) + 1))
        ticks += sum(w._w.ticks for w in ends)
        steps = math.ceil(sum(s * u for s, u in zip(shares, updates, strict=True)) - 1e-9)
        old, start = start, Linear(sums([w.weights for w in ends], shares), k=start.k + steps)
        start.margin = sum(s * w.margin for s, w in zip(shares, ends, strict=True))
        ones = [1.0] * len(ends) + [1.0 - len(ends)]
        start.precisions = sums([*(w.precisions for w in ends), old.precisions], ones)
    return start.weights, {name: value / ticks for name, value in total.items()}


def in_shards(
    corpus: Dataset, rule: Rule, plan: Plan, shards: int, mixing: str, n_jobs: int = 1
) -> Training:
    """The same by the compiled engine."""
    machine = Machine(TAGGING.problem, options_for(TAGGING.problem, beam(2), rule, restart))
    table = new_table(TAGGING.n_labels, margin=machine.options.margin, dtype=np.float64)
    learner = ShardLearner(machine, True, len(corpus.starts) - 1)
    one_pass = InShards(learner, Workers(n_jobs), shards, mixing=MIXINGS[mixing])
    return train(one_pass, corpus, Training(table), plan)


def assert_close(found: dict[Any, float], expected: dict[Any, float]) -> None:
    names = {*found, *expected}
    assert all(abs(found.get(n, 0.0) - expected.get(n, 0.0)) < 1e-9 for n in names)


@pytest.mark.parametrize("mixing", MIXINGS)
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_mixtures_equal_those_of_the_reference_engine(rule, mixing):
    @few(8)
    @given(TAGGING.corpora, st.sampled_from([1, 2, 4]))
    def same(corpus, shards):
        plan = Plan(epochs=3)
        weights, averages = mixed(corpus, rule, plan, shards, mixing)
        training = in_shards(corpus, rule, plan, shards, mixing)
        if training.epoch == plan.epochs:  # else it has converged, and the twin went on
            assert_close(as_names(training.table), weights)
            assert_close(as_names(averaged(training.table)), averages)

    same()


@few(10)
@given(TAGGING.corpora)
def test_one_shard_learns_as_without_shards(corpus):
    rule, plan = RULES[0], Plan(epochs=3)
    machine = Machine(TAGGING.problem, options_for(TAGGING.problem, beam(2), rule, restart))
    table = new_table(TAGGING.n_labels, margin=machine.options.margin, dtype=np.float64)
    training = train(InTurn(machine), corpus, Training(table), plan)
    shard = in_shards(corpus, rule, plan, 1, "uniform")
    assert as_names(shard.table) == as_names(training.table)
    assert shard.table.ints[at.TICKS] == training.table.ints[at.TICKS]


@given(st.integers(1, 5000), st.integers(1, 70))
def test_shards_divide_the_examples_evenly(n, shards):
    found = shard_of_examples(n, shards)
    assert len(found) == n
    counts = Counter(found.tolist())
    assert set(counts) == set(range(min(shards, n)))
    run = next((i for i in range(n) if found[i] != found[0]), n)
    assert max(counts.values()) - min(counts.values()) <= run


# --------------------------------------------------------------------------- estimators

X = [[f"w{(3 * i + j * j) % 17}" for j in range(2 + i % 5)] for i in range(60)]
Y = [[f"L{int(w[1:]) % 3}" for w in s] for s in X]
SETTINGS: dict[str, dict[str, Any]] = {
    "beam": {},
    "alma": {"update": alma()},
    "arow": {"update": arow()},
    "exact": {"queue": exact(), "update": perceptron()},
    "adagrad": {"queue": exact(), "update": adagrad()},
    "sgd": {"queue": exact(), "update": sgd()},
    "lbfgs": {"queue": exact(), "update": lbfgs(iterations=8)},
}


def fitted(name: str, **given: Any) -> Tagger:
    return Tagger(epochs=4, shards=3, **SETTINGS[name], **given).fit(X, Y)


def assert_same(a: Tagger, b: Tagger) -> None:
    assert np.array_equal(a.weights_.v, b.weights_.v)
    assert np.array_equal(a.weights_.slots, b.weights_.slots)


@pytest.mark.parametrize("name", SETTINGS)
def test_the_number_of_workers_changes_nothing(name):
    one, three = fitted(name), fitted(name, n_jobs=3)
    assert_same(one, three)
    assert one.score(X, Y) > 0.8


def test_shards_default_to_the_number_of_workers():
    assert_same(Tagger(epochs=4, n_jobs=3).fit(X, Y), fitted("beam"))
    plain = Tagger(epochs=4).fit(X, Y)
    assert_same(plain, Tagger(epochs=4, shards=1, n_jobs=2).fit(X, Y))


def test_a_run_in_shards_is_resumed_as_if_it_had_not_stopped(tmp_path):
    half = Tagger(epochs=2, shards=3).fit(X, Y)
    half.save(tmp_path / "half.laso", training=True)
    again = Tagger.load(tmp_path / "half.laso").resume(X, Y, epochs=4)
    assert again.shards == 3
    assert again.n_jobs is None
    assert np.allclose(again.weights_.v, fitted("beam").weights_.v, atol=1e-6)


def test_partial_fit_in_shards():
    model = Tagger(shards=3, n_jobs=2)
    for _ in range(4):
        model.partial_fit(X, Y)
    other = Tagger(shards=3)
    for _ in range(4):
        other.partial_fit(X, Y)
    assert_same(model, other)


def test_streams_in_shards(tmp_path):
    streamed = Tagger(epochs=4, shards=3, n_jobs=2)
    streamed.fit_stream(lambda: zip(X, Y, strict=True), store=tmp_path)
    assert_same(streamed, fitted("beam"))


def test_streams_of_inputs_are_labelled_in_order():
    model = fitted("beam", n_jobs=2)
    assert list(model.predict_stream(iter(X), batch=7)) == model.predict(X)


def test_traffic_is_counted():
    model = fitted("beam")
    assert len(model.traffic_) == model.n_iter_
    assert all(down > 0 and up > 0 for down, up in model.traffic_)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"shards": 0}, "shards must be None or from 1 to 100000, found 0"),
        ({"n_jobs": 0}, "n_jobs must be None, -1, or from 1 up, found 0"),
        ({"mixing": "best"}, "mixing must be 'uniform' or 'updates', found 'best'"),
    ],
)
def test_parameters_that_make_no_sense(given, message):
    with pytest.raises(ValueError, match=message):
        Tagger(**given).fit(X, Y)


def test_crf_learns_in_shards():
    dicts = [[{"w": w} for w in s] for s in X]
    one = CRF("ap", max_iterations=5, shards=2).fit(dicts, Y)
    two = CRF("ap", max_iterations=5, shards=2, n_jobs=2).fit(dicts, Y)
    assert_same(one, two)


# --------------------------------------------------------------------------- workers that fail


def dies_once(marker: str, value: int) -> int:
    """The square of a value; the process that computes it first dies."""
    if not os.path.exists(marker):
        open(marker, "w").close()
        os._exit(1)
    return value * value


def always_dies(value: int) -> int:
    os._exit(1)


def test_jobs_of_a_lost_worker_run_again(tmp_path):
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config("loky", n_jobs=2):
        jobs = [(str(tmp_path / "died"), value) for value in range(5)]
        assert list(Workers().run(dies_once, jobs)) == [0, 1, 4, 9, 16]


def test_a_job_that_always_loses_its_worker_is_an_error():
    joblib = pytest.importorskip("joblib")
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(WorkerLost, match="lost 3 times"):
        list(Workers().run(always_dies, [(1,)]))


def test_workers_of_another_version_are_refused():
    shard = Shard(None, None, "0.0.0")  # type: ignore[arg-type]
    with pytest.raises(WorkerLost, match="as in the program"):
        shard(None, None)  # type: ignore[arg-type]


def test_workers_that_do_not_see_the_files_say_so():
    with pytest.raises(WorkerLost, match="expected a folder that all workers share"):
        ArrayFile("missing/items", "<i4", (3, 1)).opened()


def test_data_travels_as_files(tmp_path):
    array = np.arange(12, dtype=np.int32).reshape(4, 3)
    longs = np.zeros(2, np.int64)
    dataset = Dataset(array, longs, longs, np.zeros(0, np.float32), longs, longs, longs)
    files = in_files(dataset, tmp_path)
    again = files.opened()
    assert all(np.array_equal(a, b) for a, b in zip(dataset, again, strict=True))
    # What is mapped already is not written again.
    part = again._replace(items=again.items[1:3])
    other = tmp_path / "other"
    other.mkdir()
    assert in_files(part, other).arrays[0].path == files.arrays[0].path
    assert np.array_equal(in_files(part, other).opened().items, array[1:3])
