"""Odd input and bad luck: each either works or is one clear error, and no model is lost."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from laso import BadData, BadFeature, Chunker, Tagger, load_model
from laso.data import load_bundled, write_columns

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:40]
MAKE = {
    "tagger": lambda **more: Tagger(**{"epochs": 2, **more}),
    "chunker": lambda **more: Chunker(**{"epochs": 2, "features": "paper", **more}),
}


@pytest.fixture(params=MAKE)
def make(request):
    return MAKE[request.param]


def inputs(sentences):
    return [[token[:2] for token in sentence] for sentence in sentences]


def test_no_sentences_and_sentences_without_words(make):
    model = make().fit([[], *SMALL, []])
    assert model.predict([]) == []
    assert model.predict([[], inputs(TEST)[0], []])[::2] == [[], []]
    assert model.predict_confidence([[]])[0].output == []
    empty: list[Any] = [[], [[]], [[], []]]
    for nothing in empty:
        with pytest.raises(BadData, match="found no token"):
            make().fit(nothing)


def test_sentences_of_one_word_and_of_ten_thousand(make):
    plain = [("word", "NN", "O")] * 10_000
    model = make(epochs=1).fit([*SMALL, plain, [("Yes", "UH", "O")]])
    words = [token[:2] for sentence in TRAIN for token in sentence]
    words = (words * (10_000 // len(words) + 1))[:10_000]
    found = model.predict([words, [("Yes", "UH")]])
    assert [len(tags) for tags in found] == [10_000, 1]


def test_a_label_set_of_one(make):
    model = make().fit([[("a", "O"), ("b", "O")], [("c", "O")]])
    assert model.predict([["x", "y"]]) == [["O", "O"]]
    assert model.predict_confidence([["x"]])[0].probability == pytest.approx(1.0)
    assert model.converged_


def test_labels_with_spaces_and_other_characters():
    labels = ["two words", "ünïcödé", "a-b", "\t"]
    data = [[(f"w{i}", label) for i, label in enumerate(labels)]] * 3
    model = Tagger(epochs=3).fit(data)
    assert model.predict([[word for word, _ in data[0]]]) == [labels]


def test_chunk_types_with_spaces_and_hyphens():
    model = Chunker(epochs=3, features="paper").fit([[("a", "B-my type"), ("b", "I-my type")]] * 2)
    assert model.predict_chunks([["a", "b"]]) == [[("my type", 0, 2)]]


def test_duplicate_and_contradictory_sentences(make):
    sentence = SMALL[0]
    other = [(w, p, "O") for w, p, _ in sentence]
    model = make(epochs=5).fit([sentence] * 9 + [other])
    assert model.predict([[t[:2] for t in sentence]])[0] == [t[2] for t in sentence]
    assert np.isfinite(model.weights_.v).all()


def test_labels_never_seen_in_learning(make):
    model = make().fit(SMALL)
    new = [[("a", "DT", "B-NEW"), ("b", "NN", "I-NEW")]]
    assert model.score(new) == 0.0
    with pytest.raises(BadData, match="which training has not seen"):
        model.resume(new, epochs=9)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_feature_values_that_are_no_numbers(value):
    good = [[{"a": 1.0}, {"b": 2.0}]]
    bad = [[{"a": 1.0}, {"b": value}]]
    with pytest.raises(BadFeature, match=r"sentence 1, token 2: found .* for the feature 'b'"):
        Tagger().fit(bad, [["X", "Y"]])
    model = Tagger().fit(good, [["X", "Y"]])
    with pytest.raises(BadFeature):
        model.predict(bad)
    with pytest.raises(BadFeature, match="NaN or infinity"):
        Tagger().fit([np.array([[1.0], [value]])], [["X", "Y"]])


def test_huge_values_leave_weights_finite():
    def learned(value):
        return Tagger(epochs=3).fit([[{"a": value}, {"a": -value}]] * 3, [["X", "Y"]] * 3)

    assert np.isfinite(learned(1e20).weights_.v).all()
    with pytest.raises(BadFeature, match="weights that overflow"):  # their scores would
        learned(1e30)


def test_files(laso, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_columns("good.txt", SMALL)
    assert laso("train", "good.txt", "--task", "tag", "--epochs", "1").code == 0
    cases = {
        "empty.txt": (b"", "empty.txt:1: found no token"),
        "blank.txt": (b"\n \n\t\n", "blank.txt:1: found no token"),
        "ragged.txt": (b"a DT O\nb NN\n", "ragged.txt:2: found 2 columns"),
        "latin.txt": ("a DT O\ncafé NN O\n".encode("latin-1"), "latin.txt:2: found the byte 0xe9"),
        "zero.txt": (b"a\x00b DT O\n", None),
        "wide.txt": (b"a DT O " + b"x" * 10_000_000 + b"\nb NN O\n", "wide.txt:2: found 3 columns"),
        "long.txt": (b"x" * 10_000_000 + b" DT O\n", None),
    }
    for name, (data, message) in cases.items():
        (tmp_path / name).write_bytes(data)
        shown = laso("eval", "good.laso", name)
        if message is None:
            assert shown.code == 0, name
        else:
            assert shown.code == 3, name
            assert message in shown.err
            assert len(shown.err) < 600


# bad luck

LITTLE_DISK = """
import resource, signal, sys
from laso import load_model
model = load_model(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    model.save(sys.argv[1])
except OSError:
    sys.exit(7)
"""
KILLED = """
import os, sys
from laso import Tagger, load_model
model = load_model(sys.argv[1])
os.fsync = lambda file: os.kill(os.getpid(), 9)
model.save(sys.argv[1])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits and signals")
@pytest.mark.parametrize(("code", "ends"), [(LITTLE_DISK, 7), (KILLED, -9)], ids=["full", "killed"])
def test_a_full_disk_and_a_kill_while_saving_leave_the_old_model(code, ends, tmp_path):
    path = tmp_path / "model.laso"
    model = Tagger(epochs=2).fit(SMALL)
    model.save(path)
    before = path.read_bytes()
    run = subprocess.run(
        [sys.executable, "-c", code, str(path)], check=False, capture_output=True, text=True
    )
    assert run.returncode == ends, run.stderr
    assert path.read_bytes() == before
    assert load_model(path).predict(TEST) == model.predict(TEST)
    if code == LITTLE_DISK:
        assert [each.name for each in tmp_path.iterdir()] == ["model.laso"]


READ = """
import sys
from laso import load_model
from laso.data import load_bundled
print(len(load_model(sys.argv[1]).predict(load_bundled()[1][:20])))
"""


def test_several_processes_read_one_model_while_it_is_saved_again(tmp_path):
    path = tmp_path / "model.laso"
    model = Tagger(epochs=1).fit(SMALL)
    model.save(path)

    def read(_):
        return subprocess.run(
            [sys.executable, "-c", READ, str(path)], check=False, capture_output=True, text=True
        )

    with ThreadPoolExecutor(3) as pool:
        runs = pool.map(read, range(3))
        for _ in range(20):
            model.save(path)
    assert [(run.returncode, run.stdout) for run in runs] == [(0, "20\n")] * 3


def test_several_threads_use_one_model():
    model = Tagger(epochs=2).fit(SMALL)
    wanted = model.predict(TEST)
    with ThreadPoolExecutor(4) as pool:
        assert all(found == wanted for found in pool.map(model.predict, [TEST] * 8))
