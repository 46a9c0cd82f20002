"""Memory that is not there: an error that says how much is needed, before the system ends all."""

import math
import subprocess
import sys

import numpy as np
import pytest

from laso import CRF, LasoError, OutOfMemory, Parser, Tagger, exact
from laso.engine import memory_limit
from laso.engine.machine import new_run, new_table
from laso.engine.memory_limit import check_room, memory_left
from laso.estimators.decoding import decoders_of
from tests.careless_problem import Careful

WORDS = [["the", "cat", "sleeps"]]
TREES = [[(2, "det"), (3, "nsubj"), (0, "root")]]


@pytest.fixture
def little(monkeypatch):
    """A machine with half a million bytes left, which is asked for everything."""
    monkeypatch.setattr(memory_limit, "SMALL", 0)
    monkeypatch.setattr(memory_limit, "memory_left", lambda: 5e5)
    return monkeypatch


def test_the_system_is_asked(monkeypatch, tmp_path):
    assert 1e6 < memory_left() < 1e15
    check_room(1e5, "a little", "less")
    with pytest.raises(OutOfMemory, match=r"much: found 1,000,000,000.0 GB .* are left: less"):
        check_room(1e18, "much", "less")
    assert issubclass(OutOfMemory, LasoError)
    assert issubclass(OutOfMemory, MemoryError)
    (tmp_path / "memory.max").write_text("3000\n", encoding="ascii")
    (tmp_path / "memory.current").write_text("1000\n", encoding="ascii")
    monkeypatch.setattr(memory_limit, "GROUP", tmp_path)
    assert memory_left() == 2000.0
    (tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    assert memory_left() > 1e6
    monkeypatch.setattr(memory_limit, "MEMORY", tmp_path / "none")
    assert 1e6 < memory_left() <= math.inf


def test_a_long_sentence(little):
    model = Parser(epochs=1, queue=2).fit(WORDS, TREES)
    long = [["the"] * 300]
    for call in (
        model.predict,
        lambda X: model.predict_nbest(X, 2),
        lambda X: model.predict(X * 2),
    ):
        with pytest.raises(OutOfMemory, match=r"input 1, \d+ nodes: found .* shorter inputs, or a"):
            call(long)
    with pytest.raises(OutOfMemory, match=r"input 2, "):
        model.predict([*WORDS, *long])
    with pytest.raises(OutOfMemory, match=r"input 1, "):
        Parser(epochs=1, queue=2).fit(long, [[(0, "root"), *[(1, "x")] * 299]])
    assert model.predict(WORDS) == Parser(epochs=1, queue=2).fit(WORDS, TREES).predict(WORDS)


def test_many_labels(little):
    words = [[str(i) for i in range(400)]]
    attributes = [[{"w": word} for word in words[0]]]
    with pytest.raises(OutOfMemory, match=r"1024 rows of 400 labels: .* hash_bits"):
        CRF("ap", max_iterations=1).fit(attributes, words)
    little.setattr(memory_limit, "memory_left", lambda: 1e6)
    model = Tagger(features=["w[0]"], epochs=1, queue=1).fit(words, words)  # its rows are sparse
    model.queue = exact()
    little.setattr(memory_limit, "memory_left", lambda: 5e5)
    with pytest.raises(OutOfMemory, match=r"which exact.. and shards have dense"):
        model.predict(words)


def test_many_pairs_of_labels(monkeypatch):
    words = [[str(i) for i in range(600)]]
    model = Tagger(features=["w[0]", "label[-1]"], epochs=1, queue=1).fit(words, words)
    model.queue = exact()
    monkeypatch.setattr(memory_limit, "SMALL", 0)
    monkeypatch.setattr(memory_limit, "memory_left", lambda: 8e6)
    with pytest.raises(OutOfMemory, match=r"all pairs of 600 labels, .* instead of exact"):
        model.predict([["1", "2"]] * 2)


def test_limits_beyond_all_memory(monkeypatch):
    monkeypatch.setattr(memory_limit, "memory_left", lambda: 4e9)
    with pytest.raises(OutOfMemory, match=r"input \d, group_bounds of 2147483711: found .* GB"):
        new_run(
            np.array([2, 2**31 - 1, 2, 9, 9, 1, 2, 0, 0, 0]),
            new_table(2),
            Careful,
            width=1,
            what="input 0",
        )


def test_a_limit_of_the_process_counts():
    code = "from laso.engine.memory_limit import memory_left; print(memory_left() < 2**30)"
    command = ["bash", "-c", f"ulimit -v 1000000; {sys.executable} -c '{code}'"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "True\n"


def test_a_billion_paths():
    model = Tagger(features=["w[0]", "label[-1]"], epochs=1, queue=exact()).fit(WORDS, WORDS)
    with pytest.raises(OutOfMemory, match=r"1000000000 paths of each of .* fewer labels or paths"):
        model.predict_nbest(WORDS, 10**9)


def test_a_large_space_is_not_kept():
    """What one long input needed is free again: servers label for months."""
    model = Parser(epochs=1, queue=8).fit(WORDS, TREES)
    long = ["the"] * 400
    model.predict_single(long)
    model.predict_single(WORDS[0])
    (decoder,) = decoders_of(model)._by_problem.values()
    kept = [space.run.states.nbytes for space in decoder._free]
    assert len(kept) == 1
    assert np.max(kept) < 1 << 26
