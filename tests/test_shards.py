"""Learning in shards: a plain mixture in the reference engine, on any number of workers."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
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
from laso.engine.epochs import InTurn, Plan, Training, train
from laso.engine.layout import Dataset
from laso.engine.machine import Machine, as_names, averaged, new_table
from laso.engine.options import options_for
from laso.engine.parallel import shards as shards_module
from laso.engine.parallel.array_files import ArrayFile, in_files
from laso.engine.parallel.shards import MIXINGS, ShardLearner, in_rounds, shard_of_examples
from laso.engine.parallel.workers import InShards, Shard, Workers, _mend
from laso.engine.reference import Reference, input_of, output_of
from laso.engine.weights.row_layouts import is_sparse
from laso.errors import WorkerLost
from laso.estimators import search
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


def mixed_weights(
    start: Any, ends: list[Any], shares: list[float], *, by_weight: bool
) -> tuple[Vector, Vector]:
    """The mixture of the weights of some shards, and of their running sums."""
    sums_of = [w._w._sum() for w in ends]
    if not by_weight:
        return sums([w.weights for w in ends], shares), sums(sums_of, [1.0] * len(ends))
    w0 = start.weights
    scale = sum(share * w._w.scale for share, w in zip(shares, ends, strict=True))
    weights: Vector = {}
    total: Vector = {}
    for name in {name for w in ends for name in w.weights}:
        before = w0.get(name, 0.0)
        changed = [w._w.v.get(name, 0.0) != before or bool(w._w.u.get(name)) for w in ends]
        weights[name], total[name] = scale * before, 0.0
        for w, own_sum, share, is_changed in zip(ends, sums_of, shares, changed, strict=True):
            own = is_changed / max(1, sum(changed))
            step = w._w.v.get(name, 0.0) - before
            weights[name] += own * w._w.scale * step
            total[name] += w._w.scales * before
            total[name] += own / share * (own_sum.get(name, 0.0) - w._w.scales * before)
    return weights, total


def mixed(
    corpus: Dataset, rule: Rule, plan: Plan, shards: int, mixing: str
) -> tuple[Vector, Vector]:
    """The weights and the averaged weights of iterative parameter mixing, in plain Python."""
    problem, n = Reference(TAGGING.problem, TAGGING.n_labels), len(corpus.starts) - 1
    ticks = 0
    total: Vector = {}
    start: Any = rule.start()
    rounds = [
        orders
        for epoch in range(plan.epochs)
        for orders in in_rounds(plan.order(epoch + 1, n), shards, epoch)
    ]
    for orders in rounds:
        ends = []
        for order in orders:
            w = Linear(start.weights, k=start.k)
            w.margin, w.precisions = start.margin, dict(start.precisions)
            for i in order:
                x, y = input_of(corpus, i), output_of(corpus, i)
                restart(problem, x, y, w, beam(2), rule)
                w.tick()
            ends.append(w)
        updates = [w.k - start.k for w in ends]
        shares = MIXINGS[mixing].shares(np.array(updates)).tolist()
        ticks += sum(w._w.ticks for w in ends)
        steps = math.ceil(sum(s * u for s, u in zip(shares, updates, strict=True)) - 1e-9)
        weights, more = mixed_weights(start, ends, shares, by_weight=MIXINGS[mixing].by_weight)
        total = sums([total, more], [1.0, 1.0])
        old, start = start, Linear(weights, k=start.k + steps)
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
def test_mixtures_equal_those_of_the_reference_engine(rule, mixing, monkeypatch):
    monkeypatch.setattr(shards_module, "FEWEST", 1)
    if MIXINGS[mixing].by_weight and rule == RULES[2]:
        pytest.skip("where a scale has begun anew, all weights have changed")

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


@pytest.mark.parametrize("name", ["beam", "alma", "arow"])
def test_sparse_rows_learn_the_same(name, monkeypatch):
    dense = fitted(name, mixing="updates"), fitted(name)
    monkeypatch.setattr(search, "MANY_LABELS", 1)
    sparse = fitted(name, mixing="updates"), fitted(name, n_jobs=2)
    for a, b in zip(dense, sparse, strict=True):
        assert is_sparse(b.weights_)
        assert as_names(a.weights_) == as_names(b.weights_)


def test_many_shards_and_first_epochs_are_mixed_more_often():
    order = np.arange(10_000)
    assert [len(in_rounds(order, 2, epoch)) for epoch in range(4)] == [4, 2, 1, 1]
    assert [len(in_rounds(order, shards, 9)) for shards in (1, 4, 16, 64)] == [1, 1, 4, 16]
    assert len(in_rounds(order[:40], 4, 0)) == 1
    for shards in (1, 3, 16):
        rounds = in_rounds(order, shards, 0)
        assert sorted(np.concatenate([np.concatenate(some) for some in rounds])) == list(order)


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
        ({"shards": 0}, "shards must be None or from 1 to 4096, found 0"),
        ({"n_jobs": 0}, "n_jobs must be None, -1, or from 1 up, found 0"),
        ({"mixing": "best"}, "mixing must be 'changed' or 'uniform' or 'updates', found 'best'"),
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


def test_tasks_that_dask_gives_up_are_reported():
    future: Future[Any] = Future()

    class Backend:
        waiting_futures = ()
        client = SimpleNamespace(ncores=lambda: {"the last": 1})

        def effective_n_jobs(self, n_jobs):
            return 1

        def submit(self, function, callback=None):
            return future

    backend = Backend()
    reported: list[Exception] = []
    _mend(backend)
    backend.submit(len, reported.append)
    future.set_exception(OSError("lost"))
    assert [str(error) for error in reported] == ["lost"]
    assert backend.effective_n_jobs(-1) == 2  # else joblib would run the jobs in the program


def test_workers_of_another_version_are_refused():
    shard = Shard(None, None, "0.0.0")  # type: ignore[arg-type]
    with pytest.raises(WorkerLost, match="as in the program"):
        shard(np.arange(3), None)  # type: ignore[arg-type]


def test_workers_that_do_not_see_the_files_say_so():
    with pytest.raises(WorkerLost, match="expected a folder that all workers share"):
        ArrayFile("missing/items", "<i4", (3, 1)).opened()


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["beam", "alma", "arow", "adagrad"])
def test_weights_travel_as_files(name, sparse, tmp_path, monkeypatch):
    if sparse and name == "adagrad":
        pytest.skip("the lattice has dense rows only")
    if sparse:
        monkeypatch.setattr(search, "MANY_LABELS", 1)
    learn, sizes = Shard.__call__, []

    def from_files(shard, order, start):
        assert (len(start.heads) > 0) == sparse
        files = in_files(start, Path(tempfile.mkdtemp(dir=tmp_path)))
        found = files.opened()
        for mine, theirs in zip(found, start, strict=True):
            assert np.array_equal(mine, theirs) if isinstance(theirs, np.ndarray) else True
        sizes.append(found.nbytes)
        return learn(shard, order, files)

    expected = fitted(name)
    monkeypatch.setattr(Shard, "__call__", from_files)
    assert_same(expected, fitted(name))
    assert sizes


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
    assert in_files(part, other).fields[0].path == files.fields[0].path
    assert np.array_equal(in_files(part, other).opened().items, array[1:3])
