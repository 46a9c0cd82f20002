"""BERT by torch: the reference of the built-in encoder, and the encoder that learns."""

import copy
import dataclasses
import json
import math
import pickle
import sys

import numpy as np
import pytest

from laso.encoders import BertEncoder, LearningEncoder, Schedule, load_encoder, weights
from laso.errors import MissingData
from tests.small_bert import write_bert

torch = pytest.importorskip("torch", reason="torch is not installed: laso[torch]")
learning = pytest.importorskip("laso.encoders.torch")
functional = torch.nn.functional

SENTENCES = [["a", "bc", "."], ["cab", "a", "b"], ["b"], [], ["ab"] * 30, ["c"] * 9]
STILL = Schedule(dropout=0.0, sentences=1, warmup=0, rate=1e-3)


def reference(tensors, config, ids, layers):
    """BERT with the functions of torch, as its authors wrote it."""
    heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]

    def linear(x, name):
        return functional.linear(x, tensors[f"{name}.weight"], tensors[f"{name}.bias"])

    def norm(x, name):
        scale, shift = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
        return functional.layer_norm(x, (x.shape[-1],), scale, shift, epsilon)

    ids = torch.tensor(ids)
    x = functional.embedding(ids, tensors["embeddings.word_embeddings.weight"])
    x = x + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    x = x + tensors["embeddings.token_type_embeddings.weight"][0]
    x = norm(x, "embeddings.LayerNorm")
    for i in range(layers):
        name = f"encoder.layer.{i}"
        query, key, value = (
            linear(x, f"{name}.attention.self.{part}").view(len(ids), heads, -1).transpose(0, 1)
            for part in ("query", "key", "value")
        )
        scores = query @ key.transpose(1, 2) / math.sqrt(query.shape[-1])
        attended = (functional.softmax(scores, dim=-1) @ value).transpose(0, 1).flatten(1)
        attended = linear(attended, f"{name}.attention.output.dense")
        x = norm(x + attended, f"{name}.attention.output.LayerNorm")
        inner = functional.gelu(linear(x, f"{name}.intermediate.dense"))
        x = norm(x + linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")
    return x.numpy()


def words_by_reference(encoder, sentence):
    from safetensors.torch import load_file

    tensors = load_file(encoder.folder / weights.TENSORS)
    (pieces,) = encoder.pieces.of([sentence])
    ids = [encoder.pieces.begin, *sum(pieces, start=[]), encoder.pieces.end]  # noqa: RUF017
    x = reference(tensors, encoder.config, ids, encoder.layer)
    ends = 1 + np.cumsum([len(word) for word in pieces])
    return np.array([x[e - len(w) : e].mean(axis=0) for w, e in zip(pieces, ends, strict=True)])


TEXTS = [
    "The British economist , a Nobel laureate , unexpectedly re-examined 1,234.5 % of $ 7bn .",
    "Confidence in the pound is widely expected to take another sharp dive",
    "é 漢字 #hashtag @someone http://example.org/a?b=c :-) ...",
    "Yes",
]


@pytest.mark.parametrize("layer", [1, 3, 6])
def test_vectors_of_minilm_are_those_of_torch(layer):
    try:
        encoder = load_encoder(f"minilm:{layer}", cache=False)
    except MissingData as error:
        pytest.skip(str(error))
    sentences = [text.split() for text in TEXTS]
    for words, vectors in zip(sentences, encoder.encode(sentences), strict=True):
        assert np.abs(vectors - words_by_reference(encoder, words)).max() < 1e-4


@pytest.fixture
def folder(tmp_path):
    write_bert(tmp_path / "small")
    return tmp_path / "small"


def test_vectors_of_a_small_bert_are_those_of_torch(folder):
    encoder = BertEncoder(folder)
    for words in SENTENCES[:3]:
        vectors = encoder.encode([words])[0]
        assert np.abs(vectors - words_by_reference(encoder, words)).max() < 1e-5


def equal(ones, others, error=1e-5):
    for one, other in zip(ones, others, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max(initial=0) < error


@pytest.mark.parametrize("layer", [1, 2])
def test_torch_and_numpy_give_the_same_vectors(folder, layer):
    made = learning.TorchEncoder(BertEncoder(folder, layer=layer), schedule=STILL)
    expected = BertEncoder(folder, layer=layer).encode(SENTENCES)
    equal(made.encode(SENTENCES), expected)
    calls = []
    equal(made.encode(SENTENCES, progress=lambda *given: calls.append(given)), expected)
    assert calls[-1] == (sum(map(len, SENTENCES)),) * 2
    made.train()
    equal(made.encode(SENTENCES), expected)


def test_it_is_an_encoder_that_learns(folder):
    assert isinstance(learning.TorchEncoder(folder), LearningEncoder)


def hinge(vectors, rows, good, bad):
    """Score of the bad output minus that of the good one, and the gradients of learning."""
    flat = np.concatenate(vectors).astype(float)
    difference = rows[good] - rows[bad]
    ends = np.cumsum([len(each) for each in vectors])[:-1]
    return -(flat * difference).sum(), np.split(difference, ends)


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    words = sum(map(len, SENTENCES))
    good = rng.integers(0, 3, words)
    return rng.standard_normal((3, 8)), good, (good + 1) % 3


@pytest.mark.parametrize("training", [False, True])
def test_learning_follows_the_gradient_of_the_hinge(folder, task, training):
    schedule = dataclasses.replace(STILL, sentences=100)  # no step
    made = learning.TorchEncoder(folder, schedule=schedule)
    made.is_training = training
    _, gradients = hinge(made.encode(SENTENCES), *task)
    made.learn(SENTENCES, gradients)
    made.is_training = False
    rng, h, checked = np.random.default_rng(1), 1e-2, 0
    for name, tensor in made.learned.items():
        place = tuple(int(rng.integers(0, size)) for size in tensor.shape)
        losses = []
        for sign in (2, 1, -1, -2):
            with torch.no_grad():
                tensor[place] += sign * h
            losses.append(hinge(made.encode(SENTENCES), *task)[0])
            with torch.no_grad():
                tensor[place] -= sign * h
        slope = (-losses[0] + 8 * losses[1] - 8 * losses[2] + losses[3]) / (12 * h)
        assert float(tensor.grad[place]) == pytest.approx(slope, abs=2e-2, rel=2e-2), name
        checked += abs(slope) > 0.1
    assert checked > 10


def test_learning_makes_good_outputs_better_than_bad_ones(folder, task):
    made = learning.TorchEncoder(folder, schedule=dataclasses.replace(STILL, dropout=0.1))
    first = hinge(made.encode(SENTENCES), *task)[0]
    made.train()
    for _ in range(30):
        made.learn(SENTENCES, hinge(made.encode(SENTENCES), *task)[1])
    made.train(False)
    assert hinge(made.encode(SENTENCES), *task)[0] < first - 10


def copied(made):
    return {name: tensor.detach().clone() for name, tensor in made.tensors.items()}


def moved(before, made):
    return {name for name, tensor in made.tensors.items() if not torch.equal(tensor, before[name])}


def test_gradients_add_up_until_there_are_enough_sentences(folder, task):
    gradients = hinge(BertEncoder(folder).encode(SENTENCES), *task)[1]
    made = learning.TorchEncoder(folder, schedule=dataclasses.replace(STILL, sentences=6))
    other = learning.TorchEncoder(folder, schedule=dataclasses.replace(STILL, sentences=6))
    before = copied(made)
    made.learn(SENTENCES[:4], gradients[:4])
    assert (moved(before, made), made.steps, made.pending) == (set(), 0, 4)
    made.learn(SENTENCES[4:], gradients[4:])
    other.learn(SENTENCES, gradients)
    assert (made.steps, made.pending) == (other.steps, other.pending) == (1, 0)
    for name, tensor in made.tensors.items():
        if "key.bias" not in name:  # its gradient is 0 but for rounding
            assert torch.allclose(tensor, other.tensors[name], atol=1e-4), name
    made.learn(SENTENCES[:1], gradients[:1])
    assert made.train(False).steps == 2  # what waits at the end is not lost


def test_layers_have_their_own_rates_and_embeddings_stay(folder, task):
    made = learning.TorchEncoder(folder, schedule=dataclasses.replace(STILL, layer_decay=0.0))
    before = copied(made)
    made.learn(SENTENCES, hinge(made.encode(SENTENCES), *task)[1])
    names = moved(before, made)
    assert names
    assert all(name.startswith("encoder.layer.1.") for name in names)
    made = learning.TorchEncoder(folder, schedule=dataclasses.replace(STILL, layer_decay=0.5))
    made.learn(SENTENCES, hinge(made.encode(SENTENCES), *task)[1])
    assert {name.split(".")[0] for name in moved(before, made)} == {"encoder"}
    assert {name.split(".")[2] for name in moved(before, made)} == {"0", "1"}


def test_no_word_no_step(folder):
    made = learning.TorchEncoder(folder, schedule=STILL).train()
    assert [len(each) for each in made.encode([[], []])] == [0, 0]
    made.learn([[], []], [np.zeros((0, 8))] * 2)
    assert made.encode([]) == []
    made.learn([], [])


def test_numpy_serves_what_torch_has_learned(folder, task, tmp_path):
    made = learning.TorchEncoder(BertEncoder(folder, layer=1), schedule=STILL).train()
    first = made.fingerprint
    made.learn(SENTENCES, hinge(made.encode(SENTENCES), *task)[1])
    made.train(False)
    assert made.fingerprint != first
    served = load_encoder(made.save(tmp_path / "tuned"), cache=False)
    assert isinstance(served, BertEncoder)
    assert served.fingerprint == made.fingerprint
    equal(served.encode(SENTENCES), made.encode(SENTENCES))
    assert not (tmp_path / "tuned" / learning.STATE).exists()


def test_a_checkpoint_resumes(folder, task, tmp_path):
    schedule = dataclasses.replace(STILL, dropout=0.3, sentences=9, warmup=3)
    made = learning.TorchEncoder(folder, schedule=schedule, seed=1).train()

    def go_on(encoder, times):
        encoder.train()
        for _ in range(times):
            encoder.learn(SENTENCES, hinge(encoder.encode(SENTENCES), *task)[1])

    go_on(made, 4)
    assert (made.steps, made.pending) == (2, 0)
    go_on(made, 1)
    made.save(tmp_path / "checkpoint", training=True)
    go_on(made, 4)
    other = learning.TorchEncoder(folder, schedule=schedule).load(tmp_path / "checkpoint")
    assert (other.steps, other.pending) == (2, 6)
    go_on(other, 4)
    assert (other.steps, other.pending) == (made.steps, made.pending)
    for name, tensor in made.tensors.items():
        assert torch.equal(tensor, other.tensors[name]), name
    config = json.loads((tmp_path / "checkpoint" / "config.json").read_text(encoding="utf-8"))
    assert config["num_hidden_layers"] == 2


def test_a_kill_between_two_files_leaves_the_old_state(folder, task, tmp_path, monkeypatch):
    made = learning.TorchEncoder(folder, schedule=STILL)
    gradients = hinge(made.encode(SENTENCES), *task)[1]
    made.learn(SENTENCES, gradients)
    made.save(tmp_path / "checkpoint", training=True)
    before = copied(made)
    made.learn(SENTENCES, gradients)
    newer = made.save(tmp_path / "newer", training=True)
    for name in (weights.TENSORS, weights.CONFIG, weights.TOKENIZER):  # but not the state
        (newer / name).replace(tmp_path / "checkpoint" / name)
    other = learning.TorchEncoder(folder, schedule=STILL).load(tmp_path / "checkpoint")
    assert (moved(before, other), other.steps) == (set(), 1)
    made.save(tmp_path / "checkpoint")
    assert made.load(tmp_path / "checkpoint").steps == 0


def test_the_best_epoch_is_restored(folder, task):
    made = learning.TorchEncoder(folder, schedule=STILL)
    assert (made.name, made.batch) == ("tuned small:2", 1)
    gradients = hinge(made.encode(SENTENCES), *task)[1]
    made.learn(SENTENCES, gradients)
    best, before, vectors = made.state(), made.fingerprint, made.encode(SENTENCES)
    made.learn(SENTENCES, gradients)
    assert made.fingerprint != before
    made.restore(best)
    assert made.fingerprint == before
    equal(made.encode(SENTENCES), vectors, error=1e-9)


def test_copies_learn_apart(folder, task):
    made = learning.TorchEncoder(folder, schedule=STILL).train()
    gradients = hinge(made.encode(SENTENCES), *task)[1]
    made.learn(SENTENCES, gradients)
    made.encode(SENTENCES)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        before = copied(made)
        other.encode(SENTENCES)
        other.learn(SENTENCES, gradients)
        assert moved(before, other)
        assert (moved(before, made), made.steps, other.steps) == (set(), 1, 2)


def test_other_random_numbers_do_not_matter(folder):
    def encoded(noise):
        made = learning.TorchEncoder(folder, seed=5).train()
        torch.manual_seed(noise)
        return made.encode(SENTENCES)

    state = torch.get_rng_state()
    for one, other in zip(encoded(1), encoded(2), strict=True):
        assert np.array_equal(one, other)
    torch.set_rng_state(state)


def test_only_a_bert_learns(folder):
    class Mine:
        def encode(self, sentences):
            return []

    with pytest.raises(TypeError, match="found Mine, expected a BERT or a folder with one"):
        learning.TorchEncoder(Mine())


def test_without_torch_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "laso.encoders.torch")
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'laso\[torch\]'"):
        __import__("laso.encoders.torch")
