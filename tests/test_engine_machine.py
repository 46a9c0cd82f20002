"""The arrays around the kernels: growth, order, threads, failures; and the kernels uncompiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from laso import SearchFailed, beam, bounded_best_first, delayed, perceptron, restart, standard
from laso.engine import kernels, machine, thresholds
from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.kernels import weight_table
from laso.engine.layout import Dataset, Out, WeightTable
from laso.engine.machine import (
    all_of,
    averaged,
    grown_table,
    new_table,
)
from laso.engine.weights import bloom
from laso.engine.weights.empty_rows import has_empty_rows, without_empty_rows
from laso.engine.weights.hash_table import placed
from laso.features.windows import LABEL_ATOM
from laso.tasks.constraints import Constraints
from laso.tasks.parsing.templates import default_templates
from laso.tasks.tagging import problem as tagging
from tests.engine_inputs import N_TAGS, TASKS, Task, corpus_of, tree_encoder
from tests.engine_twins import STRATEGIES, Twins, some_of_each, split, tight
from tests.faulty_problem import FAULTS

ROOT = Path(__file__).resolve().parent.parent
TAGGING, PARSING, CLUSTERING, SEGMENTING, _, JOINT = TASKS[:6]

few = settings(
    deadline=None,
    derandomize=True,
    max_examples=8,
    suppress_health_check=list(HealthCheck),
)


def learned(twins: Twins, *, small: bool = False) -> WeightTable:
    table, run = twins.begin(small=small)
    order = np.tile(all_of(twins.corpus), 2)
    return twins.machine.learn(twins.corpus, order, table, run)[0]


def same_tables(a: WeightTable, b: WeightTable) -> bool:
    """Whether all but the numbers of rows, and rows without any weight, is the same."""
    others = [i for i in range(len(a.ints)) if i != at.ROWS]
    return (
        np.array_equal(a.ints[others], b.ints[others])
        and np.array_equal(a.reals, b.reals)
        and weights_of(a) == weights_of(b)
    )


def weights_of(table: WeightTable) -> dict[int, tuple[list[float], list[float]]]:
    """Key to weights and their sums, of rows that have any."""
    rows = ((key, table.v[row], table.u[row]) for key, row in entries(table).items())
    return {key: (v.tolist(), u.tolist()) for key, v, u in rows if v.any() or u.any()}


def entries(table: WeightTable) -> dict[int, int]:
    """Key to row."""
    return {int(key): int(row) - 1 for key, row in table.slots if row}


# Growth.


@pytest.fixture
def grown(monkeypatch) -> Counter[Any]:
    """How often each array had to grow."""
    counts: Counter[Any] = Counter()
    grow_table, grow_run = machine.grown_table, machine.grown_run

    def rows(table, extra, **more):
        counts[at.MORE_ROWS] += 1
        return grow_table(table, extra, **more)

    def space(run, status, what):
        counts[status] += 1
        return grow_run(run, status, what)

    monkeypatch.setattr(machine, "grown_table", rows)
    monkeypatch.setattr(machine, "grown_run", space)
    return counts


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_growing_arrays_change_nothing(task: Task, grown):
    @few
    @given(task.corpora)
    def same(corpus):
        for choice in some_of_each(task):
            twins = Twins(task, corpus, *choice)
            assert same_tables(learned(twins, small=True), learned(twins))

    same()
    assert min(grown[at.MORE_ROWS], grown[at.MORE_NODES], grown[at.MORE_ENTRIES]) > 0


@pytest.mark.parametrize("task", [SEGMENTING, JOINT], ids=str)
def test_a_filter_of_keys_changes_nothing(task: Task, monkeypatch):
    @few
    @given(task.corpora)
    def same(corpus):
        twins = Twins(task, corpus, beam(3), perceptron(), restart)
        monkeypatch.setattr(thresholds, "FILTER_SLOTS_PER_ITEM", 0)
        plain = learned(twins)
        found = twins.machine.decode(corpus, all_of(corpus), plain)
        monkeypatch.setattr(thresholds, "FILTER_SLOTS_PER_ITEM", 1 << 30)
        for small in (False, True):
            table = learned(twins, small=small)
            assert len(table.bloom) or not len(corpus.items)
            assert same_tables(table, plain)
        filtered = twins.machine.decode(corpus, all_of(corpus), table)
        assert all(map(np.array_equal, filtered, found))

    same()


def test_a_filter_has_all_keys_and_few_others():
    table = bloom.with_filter(new_table(2))
    for n in range(1000):
        weight_table.row_of(table, mix(1, n))
    made = bloom.with_filter(table)
    assert np.array_equal(made.bloom, table.bloom)
    buffer = Out(np.array([mix(1, n) for n in range(2000)]), np.ones(2000))
    known = weight_table.keep_known(made, buffer, 2000)
    assert 1000 <= known < 1100
    assert buffer.keys[:1000].tolist() == [mix(1, n) for n in range(1000)]


def test_long_paths_need_more_scratch(grown):
    random = np.random.default_rng(0)
    n = 10
    words, tags = random.integers(0, 3, (n, 1)).tolist(), random.integers(-1, 3, n).tolist()
    corpus = corpus_of([words] * 3, [tags] * 3, tagging_spec())
    twins = Twins(TAGGING, corpus, beam(4), perceptron(margin=0.75), restart)
    assert same_tables(learned(twins, small=True), learned(twins))
    assert grown[at.MORE_SCRATCH] > 0


def test_decoding_grows_too(grown):
    n = 20  # two steps for each word: more than decoding begins with
    encoder = tree_encoder(default_templates(("w", "pos")))
    chain: list[Any] = [*((i + 1, "a") for i in range(1, n)), (0, "b")]
    corpus = corpus_of(
        [[[i % 3, i % 2] for i in range(n)]] * 2,
        [encoder.numbers(chain).tolist()] * 2,
        encoder.spec_for(0, None),
        columns=2,
    )
    twins = Twins(PARSING, corpus, bounded_best_first(4), perceptron(), restart)

    class Tight(machine.Machine):
        def new_run(self, corpus, order, table):
            return tight(table, super().new_run(corpus, order, table), self.options.width)[1]

    table = learned(twins)
    little = Tight(PARSING.problem, twins.machine.options).decode(corpus, all_of(corpus), table)
    assert grown[at.MORE_NODES] > 0
    found = twins.machine.decode(corpus, all_of(corpus), table)
    assert all(np.array_equal(a, b) for a, b in zip(little, found, strict=True))
    assert found[1].tolist() == [2 * n, 4 * n]


@few
@given(
    st.sets(st.integers(-(2**62), 2**62) | st.integers(0, 40) | st.integers(-6, -1), max_size=30)
)
@example({-1, 63, 127, 191, 255, 0, 1})  # their places go on at the start
def test_every_key_keeps_its_row_when_the_table_grows(keys):
    entries = np.array([(key, row + 1) for row, key in enumerate(sorted(keys))], np.int64)
    for capacity in (64, 256):
        slots = placed(entries.reshape(-1, 2), capacity)
        assert [weight_table.find(slots, key) for key in sorted(keys)] == list(range(len(keys)))
        assert weight_table.find(slots, 2**62 + 1) == -1


def test_a_grown_table_has_room_and_the_same_weights():
    table = new_table(2, dtype=np.float64)
    for n in range(900):
        table.v[weight_table.row_of(table, n * 7919)] = n
    larger = grown_table(table, 5000)
    assert len(larger.v) >= 5900 <= len(larger.mark)
    assert len(larger.slots) >= 2 * 5900
    assert entries(larger) == entries(table)
    assert np.array_equal(larger.v[:900], table.v[:900])
    assert grown_table(larger, 1) == larger


# Order, threads and inputs of no length.


def tagging_spec() -> Any:
    return tagging.make_spec(N_TAGS, [(1, [(0, 0)]), (2, [(LABEL_ATOM, -1), (0, 0)])])


def sentences(n: int) -> Dataset:
    """Sentences of 0, 1, 2, ... words."""
    random = np.random.default_rng(n)
    rows = [random.integers(0, 9, (i % 7, 1)).tolist() for i in range(n)]
    outputs = [[sum(row) % N_TAGS for row in words] for words in rows]
    return corpus_of(rows, outputs, tagging_spec())


def test_threads_do_not_change_the_output():
    corpus = sentences(11)
    twins = Twins(TAGGING, corpus, beam(2), perceptron(), restart)
    table = averaged(learned(twins))
    one = twins.machine.decode(corpus, all_of(corpus), table)
    for threads in (2, 3, 20):
        found = twins.machine.decode(corpus, all_of(corpus), table, threads=threads)
        assert all(np.array_equal(a, b) for a, b in zip(one, found, strict=True))


def test_decoding_follows_the_order():
    corpus = sentences(9)
    twins = Twins(TAGGING, corpus, beam(2), perceptron(), restart)
    table = learned(twins)
    steps, ends, scores = twins.machine.decode(corpus, all_of(corpus), table)
    all_steps = split(steps, ends)
    order = np.array([5, 0, 8, 5, 3])
    for threads in (1, 2):
        steps, ends, some = twins.machine.decode(corpus, order, table, threads=threads)
        assert split(steps, ends) == [all_steps[i] for i in order]
        assert np.array_equal(some, scores[order])


def test_learning_at_once_or_one_by_one_is_the_same():
    corpus = sentences(9)
    twins = Twins(TAGGING, corpus, beam(2), perceptron(), restart)
    order = np.array([8, 1, 1, 6, 3, 0])
    at_once, run = twins.begin()
    at_once, _, wrong = twins.machine.learn(corpus, order, at_once, run)
    table, run = twins.begin()
    errors = 0
    for i in order:
        table, run, error = twins.machine.learn(corpus, np.array([i]), table, run)
        errors += error
    assert same_tables(at_once, table)
    assert wrong == errors > 0


@pytest.mark.parametrize("strategy", [restart, standard, delayed])
def test_nothing_to_learn_from_or_to_decode(strategy):
    empty = corpus_of([], [], tagging_spec())
    twins = Twins(TAGGING, empty, beam(2), perceptron(), strategy)
    table, run = twins.begin()
    none = all_of(empty)
    assert twins.machine.learn(empty, none, table, run) == (table, run, 0)
    for threads in (1, 2):
        steps, ends, scores = twins.machine.decode(empty, none, table, threads=threads)
        assert (steps.shape, ends.shape, scores.shape) == ((0, 2), (0,), (0,))


@pytest.mark.parametrize("task", TASKS, ids=str)
def test_an_input_without_items_is_its_own_goal(task: Task):
    @few
    @given(task.corpora)
    def same(corpus):
        n = len(corpus.starts) - 1
        nothing = corpus._replace(
            starts=np.zeros(n + 1, np.int64), output_starts=np.zeros(n + 1, np.int64)
        )
        twins = Twins(task, nothing, beam(2), perceptron(), restart)
        table = learned(twins)
        assert table.ints.tolist() == [0, 1, 2 * n, 0, task.n_labels, 0]
        steps, ends, scores = twins.machine.decode(nothing, all_of(nothing), table)
        assert (len(steps), ends.tolist(), scores.tolist()) == (0, [0] * n, [0.0] * n)

    same()


def test_the_average_of_no_examples_is_the_weights():
    corpus = sentences(5)
    table = learned(Twins(TAGGING, corpus, beam(2), perceptron(), restart))
    table.ints[at.TICKS] = 0
    table.reals[at.SCALE] = 0.5
    rows = table.ints[at.ROWS]
    assert np.array_equal(averaged(table).v, 0.5 * table.v[:rows])


def test_a_search_that_fails_names_its_input():
    never = Constraints(np.zeros((N_TAGS + 1, N_TAGS), np.int64), np.ones(N_TAGS, np.int64))
    spec = tagging.make_spec(N_TAGS, [(1, [(0, 0)])], constraints=never)
    corpus = corpus_of([[], [], [[0]]], [[], [], [0]], spec)
    twins = Twins(TAGGING, corpus, beam(2), perceptron(), restart)
    table, _ = twins.begin()
    with pytest.raises(SearchFailed, match="input 3: the queue ran empty"):
        twins.machine.decode(corpus, np.array([0, 1, 2]), table)


# Other ways to run the kernels.


def run_small(folder: Path, *command: str, **environment: str) -> None:
    variables = {**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder)}
    result = subprocess.run(
        [sys.executable, *command],
        cwd=ROOT,
        env={**variables, **environment},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]


def test_the_kernels_as_plain_python(tmp_path):
    """With the JIT off both engines still agree, and nearly every line of the kernels is run."""
    names = ",".join(map(str, TASKS))
    modules = ",".join(str(module.__file__) for module in kernels.MODULES)
    strategies = ",".join(strategy.__name__ for strategy in STRATEGIES)
    settings = {
        "NUMBA_DISABLE_JIT": "1",
        "COVERAGE_FILE": str(tmp_path / "data"),
        "LASO_CHECK": "0",  # else faults are found before the kernels run
    }
    coverage = ("-m", "coverage", "run", "--append", "--rcfile", os.devnull, "--include", modules)
    run_small(tmp_path, *coverage, "-m", "tests.engine_small", names, strategies, **settings)
    for file, test in (
        ("test_chunking_bounds", "rounds_filled"),
        ("test_dropout", "keeps_its_order"),
        ("test_sparse_rows", "entries"),
        ("test_learning_encoders", "hinge and Tagger"),
    ):
        tests = ("-m", "pytest", "-p", "no:cacheprovider", f"tests/{file}.py", "-k", test)
        run_small(tmp_path, *coverage, *tests, **settings)
    for call in ("decode", "learn siblings", "factors"):
        faulty = ("-m", "tests.faulty_problem", call, ",".join(FAULTS))
        run_small(tmp_path, *coverage, *faulty, **settings)
    run_small(
        tmp_path,
        "-m",
        "coverage",
        "json",
        "--rcfile",
        os.devnull,
        "-o",
        str(tmp_path / "report"),
        **settings,
    )
    reports = json.loads((tmp_path / "report").read_text())["files"]
    assert len(reports) == len(kernels.MODULES)
    run = sum(len(report["executed_lines"]) for report in reports.values())
    missing = {file: report["missing_lines"] for file, report in reports.items()}
    total = run + sum(map(len, missing.values()))
    assert run >= 0.97 * total, f"lines never run: {missing}"


def test_no_index_is_out_of_bounds(tmp_path):
    """Compiled with bounds checks: an index beyond an array would end in an IndexError."""
    run_small(
        tmp_path, "-m", "tests.engine_small", "ArcHybrid", "restart,early", LASO_BOUNDS_CHECK="1"
    )


@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_counted_as_empty_if_no_matrix_has_a_weight(sparse):
    table = new_table(90, sparse=sparse)
    table.ints[at.ROWS] = 64
    for row in range(64):
        if sparse:
            weight_table.add_entry_to_row(table, row, row)
            table.v[weight_table.entry_of(table, row, row), 0] = 1.0
        else:
            table.v[row, row] = 1.0
    assert not has_empty_rows(table)
    weight = [weight_table.entry_of(table, row, row) if sparse else row for row in range(64)]
    table.v[weight[:8]], table.u[weight[0]] = 0.0, 1.0
    assert not has_empty_rows(table)  # one of 8 has a running sum
    table.v[weight[8:10]] = 0.0
    assert has_empty_rows(table)


def test_sparse_rows_that_have_left_many_places_count_as_empty():
    table = new_table(90, sparse=True)
    table.ints[at.ROWS] = 1
    weight_table.add_entry_to_row(table, 0, 3)
    table.v[weight_table.entry_of(table, 0, 3), 0] = 1.0
    assert not has_empty_rows(table)
    table.ints[at.USED] = 5
    assert has_empty_rows(table)


def test_rows_without_weight_are_dropped_and_nothing_else_changes():
    table = new_table(2, dtype=np.float64)
    keys = np.arange(1, 9, dtype=np.int64) * 1_000_003
    table.slots[:] = placed(np.column_stack([keys, np.arange(1, 9)]), len(table.slots))
    table.ints[at.ROWS] = 8
    table.v[2] = [0.5, 0.0]
    table.u[5] = [0.0, -1.0]  # no weight now, but in the average
    table.v[7] = [1.0, 2.0]
    smaller = without_empty_rows(table)
    rows = entries(smaller)
    assert set(rows) == set(keys[[2, 5, 7]].tolist())
    assert smaller.ints[at.ROWS] == 3
    v = [smaller.v[rows[int(key)]].tolist() for key in keys[[2, 5, 7]]]
    u = [smaller.u[rows[int(key)]].tolist() for key in keys[[2, 5, 7]]]
    assert v == [[0.5, 0.0], [0.0, 0.0], [1.0, 2.0]]
    assert u == [[0.0, 0.0], [0.0, -1.0], [0.0, 0.0]]
    assert not smaller.v[3:].any()
    assert not smaller.u[3:].any()
