"""The built-in encoder: its vectors are those of a plain BERT, in batches of any kind."""

import copy
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import erf
from threadpoolctl import ThreadpoolController

from laso.encoders import BertEncoder, kernels, load_encoder, pretrained
from laso.encoders.pieces import spans
from laso.errors import BadModel
from tests.small_bert import PIECES, plain_vectors, write_bert

SENTENCES = [
    ["a", "bc", "."],
    ["cab", "a", "b"],
    ["b"],
    [],
    ["A", "b.c", "??", "​", "aab"],
    ["c"] * 9,
]
SPLIT = {
    "a": ["a"],
    "b": ["b"],
    "c": ["c"],
    ".": ["."],
    "bc": ["b", "##c"],
    "cab": ["c", "##a", "##b"],
    "A": ["a"],
    "b.c": ["b", ".", "c"],
    "??": ["[UNK]", "[UNK]"],
    "​": ["[UNK]"],
    "aab": ["a", "##a", "##b"],
}


@pytest.fixture
def small(tmp_path):
    return (tmp_path / "small", *write_bert(tmp_path / "small"))


@pytest.mark.parametrize("layer", [0, 1, 2])
@pytest.mark.parametrize("pieces", [1, 10, 1024])
def test_vectors_are_those_of_a_plain_bert(small, layer, pieces, monkeypatch):
    folder, tensors, config = small
    monkeypatch.setattr(pretrained, "PIECES", pieces)
    for threads in (1, 2):
        encoder = BertEncoder(folder, layer=layer, threads=threads)
        for words, vectors in zip(SENTENCES, encoder.encode(SENTENCES), strict=True):
            assert vectors.dtype == np.float32
            assert vectors.shape == (len(words), encoder.dimensions)
            if words:
                expected = plain_vectors(tensors, config, [SPLIT[w] for w in words], layer)
                assert np.abs(vectors - expected).max() < 1e-5


def test_a_difference_is_seen(small):
    folder, tensors, config = small
    words = SENTENCES[0]
    vectors = BertEncoder(folder).encode([words])[0]
    name = "encoder.layer.1.attention.self.value.bias"
    changed = tensors | {name: tensors[name] + np.float32(0.01)}
    expected = plain_vectors(changed, config, [SPLIT[w] for w in words], 2)
    assert np.abs(vectors - expected).max() > 1e-4


def test_the_bias_of_keys_changes_nothing(small):
    _, tensors, config = small
    words = [SPLIT[w] for w in SENTENCES[1]]
    name = "encoder.layer.0.attention.self.key.bias"
    changed = tensors | {name: tensors[name] + np.float32(3)}
    assert np.allclose(
        plain_vectors(tensors, config, words, 2), plain_vectors(changed, config, words, 2)
    )


def test_long_sentences_are_cut_into_windows(small):
    folder, tensors, config = small
    words = ["ab", "c", ".", "cab"] * 10  # 70 pieces, and 22 have room
    splits = {**SPLIT, "ab": ["a", "##b"]}
    encoder = BertEncoder(folder)
    vectors = encoder.encode([words, words[:3]])[0]
    counts = np.array([len(splits[w]) for w in words])
    parts = list(spans(counts, 22))
    assert len(parts) > 3
    assert [low for *_, low, _ in parts] == [0, *(high for *_, high in parts[:-1])]
    for begin, end, low, high in parts:
        assert counts[begin:end].sum() <= 22
        expected = plain_vectors(tensors, config, [splits[w] for w in words[begin:end]], 2)
        assert np.abs(vectors[low:high] - expected[low - begin : high - begin]).max() < 1e-5


@pytest.mark.parametrize("seed", range(30))
def test_windows_have_every_word_once_and_neighbours_on_both_sides(seed):
    rng = np.random.default_rng(seed)
    room = int(rng.integers(4, 600))
    most = max(1, min(128, room // 2))
    counts = rng.integers(1, most + 1, int(rng.integers(1, 300)))
    taken: list[int] = []
    for begin, end, low, high in spans(counts, room):
        assert begin <= low < high <= end
        assert counts[begin:end].sum() <= room
        taken += range(low, high)
    assert taken == list(range(len(counts)))


def test_a_word_of_many_pieces_is_cut(small):
    folder, tensors, config = small
    vectors = BertEncoder(folder).encode([["." * 100, "a"]])[0]
    expected = plain_vectors(tensors, config, [["."] * 11, ["a"]], 2)
    assert np.abs(vectors - expected).max() < 1e-5


def test_gelu_and_softmax_are_exact():
    x = np.linspace(-9, 9, 20001).astype(np.float32)[None]
    exact = x.astype(float) * (1 + erf(x.astype(float) / np.sqrt(2))) / 2
    kernels.gelu(x, np.zeros(x.shape[1], np.float32))
    assert np.abs(x - exact).max() < 1e-6
    rows = (np.random.default_rng(0).standard_normal((50, 37)) * 20).astype(np.float32)
    rows[0] = [-3e38] * 36 + [3e38]
    exact = np.exp(rows.astype(float) - rows.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    kernels.softmax(rows, rows.view(np.int32), np.empty(37, np.int32))
    assert np.abs(rows - exact).max() < 1e-6


def test_kernels_where_no_folder_can_be_written(monkeypatch):
    from numba.core import caching

    monkeypatch.setattr(caching.CacheImpl, "_locator_classes", [])
    again = kernels.compiled(kernels.PLAIN)(getattr(kernels.add_bias, "py_func", kernels.add_bias))
    x = np.zeros((2, 3), np.float32)
    again(x, np.array([1, 2], np.float32))
    assert x.tolist() == [[1, 2, 0], [1, 2, 0]]


def test_progress_is_in_words(small):
    calls = []
    BertEncoder(small[0]).encode(SENTENCES, progress=lambda *given: calls.append(given))
    words = sum(map(len, SENTENCES))
    assert calls[-1] == (words, words)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def blas_threads():
    found = ThreadpoolController().select(user_api="blas").info()
    return [each["num_threads"] for each in found]


def test_other_matrices_have_all_threads_again(small, monkeypatch):
    monkeypatch.setattr(pretrained, "PIECES", 10)
    encoder = BertEncoder(small[0], threads=2)
    encoder.encode(SENTENCES)
    before, during = blas_threads(), []
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: encoder.encode(SENTENCES * 5), range(8)))
    assert blas_threads() == before

    def stop(done, total):
        during.append(blas_threads())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encoder.encode(SENTENCES, progress=stop)
    assert set(during[0]) == {1}
    assert blas_threads() == before


def test_fingerprints_tell_encoders_apart(small, tmp_path):
    folder = small[0]
    one = BertEncoder(folder).fingerprint
    assert one == BertEncoder(folder, layer=2, threads=1).fingerprint
    write_bert(tmp_path / "other", seed=1)
    write_bert(tmp_path / "same")
    assert one == BertEncoder(tmp_path / "same").fingerprint
    prints = {one, BertEncoder(folder, layer=1).fingerprint}
    assert len(prints | {BertEncoder(tmp_path / "other").fingerprint}) == 3


def test_copies_are_cheap_and_equal(small):
    encoder = BertEncoder(small[0], layer=1)
    encoder.encode(SENTENCES)
    assert copy.deepcopy(encoder) is encoder
    data = pickle.dumps(encoder)
    assert len(data) < 1000
    for a, b in zip(encoder.encode(SENTENCES), pickle.loads(data).encode(SENTENCES), strict=True):
        assert np.array_equal(a, b)


def test_layers_and_folders(small):
    folder = small[0]
    assert load_encoder(folder, cache=False).layer == 2
    encoder = load_encoder(f"{folder}:1", cache=False)
    assert (encoder.layer, encoder.name, encoder.dimensions) == (1, "small:1", 8)
    with pytest.raises(ValueError, match=r"found layer 3 of .*, expected 0 to 2"):
        load_encoder(f"{folder}:3")


def test_what_is_no_bert_is_refused(small, tmp_path):
    folder = small[0]
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))

    def refused(match, name="config.json", content=b"", **changes):
        other = tmp_path / "other"
        write_bert(other)
        if changes:
            content = json.dumps(config | changes).encode()
        (other / name).write_bytes(content)
        with pytest.raises(BadModel, match=match):
            BertEncoder(other).encode([["a"]])

    refused("other/config.json: found no settings of a BERT")
    refused("no settings of a BERT: found hidden_size -1, expected", hidden_size=-1)
    refused("found model_type 'gpt2', expected 'bert'", model_type="gpt2")
    refused("found hidden_act 'relu', expected 'gelu'", hidden_act="relu")
    refused("found no tensor encoder.layer.2.*, expected those of a BERT", num_hidden_layers=3)
    refused("do not have the sizes of config.json", hidden_size=16)
    refused("found no tokenizer", "tokenizer.json", b"{}")
    refused("found no safetensors", "model.safetensors", b"x" * 100)
    (tmp_path / "other" / "tokenizer.json").unlink()
    with pytest.raises(BadModel, match=r"tokenizer.json: found no such file"):
        _ = BertEncoder(tmp_path / "other").fingerprint


def test_all_pieces_of_the_small_tokenizer_are_used():
    used = {piece for pieces in SPLIT.values() for piece in pieces}
    assert used | {"[PAD]", "[CLS]", "[SEP]", "##c", ","} == set(PIECES)
