"""Vectors on disk: found again, bounded, harmless when damaged, safe among processes."""

import copy
import logging
import multiprocessing
import os
import pickle

import numpy as np
import pytest

from laso.encoders import CachedEncoder, cache, load_encoder
from laso.encoders.cache import ENTRY, MAGIC, key_of, prune

WORDS = [["a", "bb"], [], ["ccc"], ["a", "bb"]]


class Counted:
    """Vectors of two lengths, with what was encoded."""

    dimensions = 2

    def __init__(self, fingerprint="lengths, 1"):
        self.fingerprint, self.calls = fingerprint, []

    def encode(self, sentences):
        self.calls.append([list(words) for words in sentences])
        return [np.array([[len(w), 0.5] for w in words]).reshape(-1, 2) for words in sentences]


@pytest.fixture(autouse=True)
def every_call_is_worth_a_file(monkeypatch):
    monkeypatch.setattr(cache, "FEWEST", 1)


def lengths(vectors):
    return [array[:, 0].tolist() for array in vectors]


def test_what_was_encoded_once_is_not_encoded_again(tmp_path):
    first = CachedEncoder(Counted(), folder=tmp_path)
    assert lengths(first.encode(WORDS)) == [[1, 2], [], [3], [1, 2]]
    assert first.encoder.calls == [[["a", "bb"], [], ["ccc"]]]
    assert lengths(first.encode(WORDS[::-1])) == [[1, 2], [3], [], [1, 2]]
    second = CachedEncoder(Counted(), folder=tmp_path)
    assert lengths(second.encode([["ccc"], ["new"], ["a", "bb"]])) == [[3], [3], [1, 2]]
    assert (len(first.encoder.calls), second.encoder.calls) == (1, [[["new"]]])
    assert lengths(first.encode([["new"]])) == [[3]]  # another object has kept it meanwhile
    assert len(first.encoder.calls) == 1
    vectors = second.encode(WORDS)
    assert all(array.dtype == np.float32 and array.flags.writeable for array in vectors)


def test_encoders_do_not_mix(tmp_path):
    CachedEncoder(Counted(), folder=tmp_path).encode(WORDS)
    other = CachedEncoder(Counted("lengths, 2"), folder=tmp_path)
    other.encode(WORDS)
    assert other.encoder.calls
    with pytest.raises(ValueError, match="found no fingerprint of Counted"):
        CachedEncoder(Counted(""))


def test_sentences_do_not_mix():
    sentences = [["a", "bc"], ["ab", "c"], ["a", "b", "c"], ["abc"], ["abc", ""], [], ["\ud800"]]
    assert len({key_of(words) for words in sentences}) == len(sentences)


@pytest.mark.parametrize("place", range(0, 200, 7))
def test_damaged_packs_are_not_used(tmp_path, place):
    made = CachedEncoder(Counted(), folder=tmp_path)
    expected = lengths(made.encode(WORDS))
    (path,) = made.folder.glob("*.vectors")
    data = bytearray(path.read_bytes())
    size = len(MAGIC) + 16 + 3 * ENTRY.itemsize + 3 * 2 * 4
    assert len(data) == size
    data[place % size] ^= 0x41
    path.write_bytes(data)
    assert lengths(CachedEncoder(Counted(), folder=tmp_path).encode(WORDS)) == expected
    path.write_bytes(data[: place % size])
    assert lengths(CachedEncoder(Counted(), folder=tmp_path).encode(WORDS)) == expected


def test_packs_that_are_removed_meanwhile(tmp_path):
    made = CachedEncoder(Counted(), folder=tmp_path)
    made.encode(WORDS)
    made.encode([["later"]])
    for path in made.folder.glob("*.vectors"):
        path.unlink()
    assert lengths(made.encode(WORDS)) == [[1, 2], [], [3], [1, 2]]
    assert len(made.encoder.calls) == 3


def test_all_packs_together_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "PACK", 8 * 100)  # of 100 words
    made = CachedEncoder(Counted(), folder=tmp_path, limit=5e-6)
    sentences = [[f"word{i}"] * 10 for i in range(100)]
    made.encode(sentences)
    sizes = [path.stat().st_size for path in made.folder.glob("*.vectors")]
    assert len(sizes) > 2
    assert sum(sizes) <= 5000
    assert lengths(made.encode(sentences)) == [[len(words[0])] * 10 for words in sentences]


def test_the_packs_not_used_for_longest_go_first(tmp_path):
    (tmp_path / "x").mkdir()
    for i in range(5):
        path = tmp_path / "x" / f"{i}.vectors"
        path.write_bytes(b"0" * 100)
        os.utime(path, (1000 + (i * 3) % 5, 1000 + (i * 3) % 5))
    prune(tmp_path, 250)
    assert sorted(path.stem for path in tmp_path.glob("x/*")) == ["1", "3"]
    prune(tmp_path, 0)
    assert not [*tmp_path.glob("x/*")]


def test_use_renews_a_pack(tmp_path):
    made = CachedEncoder(Counted(), folder=tmp_path)
    made.encode(WORDS)
    (path,) = made.folder.glob("*.vectors")
    os.utime(path, (1000, 1000))
    made.encode(WORDS)
    assert path.stat().st_mtime > 1000


def test_few_words_are_not_worth_a_file(tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "FEWEST", 4)
    made = CachedEncoder(Counted(), folder=tmp_path)
    made.encode(WORDS)
    assert not made.folder.exists()
    made.encode([*WORDS, ["d"]])
    assert made.folder.exists()


def test_limits_by_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    monkeypatch.setenv("LASO_VECTORS_GB", "0")
    off = CachedEncoder(Counted())
    off.encode(WORDS)
    assert (off.root, off.limit) == (tmp_path / "vectors", 0)
    assert not off.root.exists()
    monkeypatch.delenv("LASO_VECTORS_GB")
    assert CachedEncoder(Counted()).limit == 2
    for text in ("much", "-1", "inf"):
        monkeypatch.setenv("LASO_VECTORS_GB", text)
        with pytest.raises(ValueError, match=f"found LASO_VECTORS_GB={text}, expected gigabytes"):
            load_encoder_of(Counted())


def load_encoder_of(encoder):
    return CachedEncoder(load_encoder(encoder))


def test_a_folder_that_cannot_be_written_costs_time_only(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    made = CachedEncoder(Counted(), folder=tmp_path / "file" / "below")
    with caplog.at_level(logging.WARNING):
        assert lengths(made.encode(WORDS)) == [[1, 2], [], [3], [1, 2]]
    assert "cannot keep vectors in" in caplog.text


def test_progress_counts_what_was_kept(tmp_path):
    class Telling(Counted):
        def encode(self, sentences, progress=None):
            for done in range(1, sum(map(len, sentences)) + 1):
                progress(done, -1)
            return super().encode(sentences)

    calls = []
    CachedEncoder(Telling(), folder=tmp_path).encode([["a", "b"]], lambda *x: calls.append(x))
    assert calls == [(1, 2), (2, 2)]
    CachedEncoder(Telling(), folder=tmp_path).encode(
        [["a", "b"], ["c"]], lambda *x: calls.append(x)
    )
    assert calls[2:] == [(2, 3), (3, 3)]
    CachedEncoder(Telling(), folder=tmp_path).encode([["a", "b"]], lambda *x: calls.append(x))
    assert calls[4:] == [(2, 2)]


def test_copies(tmp_path):
    made = CachedEncoder(Counted(), folder=tmp_path)
    made.encode(WORDS)
    assert copy.deepcopy(made) is made
    other = pickle.loads(pickle.dumps(made))
    other.encode(WORDS)
    assert len(other.encoder.calls) == 1


def _encode(folder, n, done):
    made = CachedEncoder(Counted(), folder=folder)
    for i in range(20):
        words = [[f"{'x' * ((i + n) % 7)}{j}" for j in range(5)] for _ in range(3)]
        assert lengths(made.encode(words)) == [[len(w) for w in ws] for ws in words]
    done.put(n)


def test_several_processes_write_at_the_same_time(tmp_path):
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    processes = [context.Process(target=_encode, args=(tmp_path, n, done)) for n in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert not [*tmp_path.glob("*/.laso-*")]
