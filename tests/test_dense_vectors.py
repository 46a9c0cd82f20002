"""Dense vectors beside sparse features: given with inputs, or computed by an encoder."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laso
from laso import Chunker, JointTagger, Parser, Tagger, load_model, with_vectors
from laso.errors import BadData, BadFeature, BadModel
from laso.estimators.capabilities.render import as_text
from laso.files.container import read_file, write_file
from tests.dense_inputs import NO_WORDS, SIZE, Words, chunks, classes, told

# --------------------------------------------------------------------------- given vectors


def test_vectors_tell_what_words_do_not() -> None:
    X, y = classes(60)
    fitted = Tagger(**NO_WORDS).fit(told(X, y)[:40], y[:40])
    assert fitted.score(told(X, y)[40:], y[40:]) == 1.0
    assert Tagger(**NO_WORDS).fit(X[:40], y[:40]).score(X[40:], y[40:]) < 0.7


def test_neighbours_vectors_are_features_on_request() -> None:
    X, y = classes(60)
    data = told(X, y, shift=1)  # what tells a word's label is its right neighbour's vector
    assert Tagger(**NO_WORDS).fit(data[:40], y[:40]).score(data[40:], y[40:]) < 0.7
    fitted = Tagger(vector_window=1, **NO_WORDS).fit(data[:40], y[:40])
    assert fitted.score(data[40:], y[40:]) > 0.75  # the last word has no right neighbour


def test_feature_values_and_vectors_together() -> None:
    X, y = classes(40)
    lists = [[{"bias": 0.5} for _ in x] for x in X]
    data = [with_vectors(x, t.vectors) for x, t in zip(lists, told(X, y), strict=True)]
    assert Tagger(epochs=5).fit(data, y).score(data, y) > 0.95


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([np.eye(3), np.eye(2)], r"sentence 2: found vectors of shape \(2, 2\) .*\(3, 3\)"),
        ([np.eye(3), np.ones(3)], r"sentence 2: found vectors of shape \(3,\)"),
        ([np.eye(3), np.array([["a"] * 3] * 3)], "sentence 2: .* type <U1"),
        ([np.eye(3), np.full((3, 3), math.nan)], "sentence 2: .* not finite"),
        ([np.eye(3), None], "sentence 2: found no vectors, expected them as with others"),
    ],
)
def test_bad_vectors(vectors: list[Any], message: str) -> None:
    X = [["a", "b", "c"] if v is None else with_vectors(["a", "b", "c"], v) for v in vectors]
    with pytest.raises((BadData, BadFeature), match=message):
        Tagger().fit(X, [["A", "B", "C"]] * 2)


def test_a_model_keeps_to_the_vectors_it_has_learned_from() -> None:
    X, y = classes(20)
    fitted = Tagger(**NO_WORDS).fit(told(X, y), y)
    with pytest.raises(BadData, match=r"found inputs without vectors, expected .* 3 dimensions"):
        fitted.predict(X)
    with pytest.raises(BadData, match="found vectors of 2 dimensions, expected vectors of 3"):
        fitted.predict([with_vectors(["a"], np.ones((1, 2)))])
    with pytest.raises(BadData, match="expected inputs without vectors"):
        Tagger(**NO_WORDS).fit(X, y).predict(told(X, y))
    assert fitted.predict([]) == []
    assert fitted.predict([with_vectors([], np.ones((0, 3)))]) == [[]]


def test_only_sentences_carry_vectors() -> None:
    with pytest.raises(TypeError, match="found an input of type int"):
        with_vectors(3, np.eye(3))


def test_a_task_without_a_method_for_vectors() -> None:
    from laso.examples.segmentation import Segmentation

    X = [with_vectors("ab", np.eye(2))]
    with pytest.raises(ValueError, match="to have a method vectors"):
        laso.SearchEstimator(Segmentation()).fit(X, [["a", "b"]])


# --------------------------------------------------------------------------- encoders


@pytest.mark.parametrize(
    "make",
    [
        lambda: Tagger(encoder=Words(), epochs=3),
        lambda: Tagger(encoder=Words(), epochs=3, vector_window=1),
        lambda: Tagger(encoder=Words(), queue=laso.exact(), epochs=3),
        lambda: Tagger(encoder=Words(), queue=laso.exact(), update=laso.lbfgs()),
        lambda: Tagger(encoder=Words(), update=laso.arow(), epochs=3),
        lambda: Tagger(encoder=Words(), update=laso.alma(), epochs=3),
        lambda: Tagger(encoder=Words(), update=laso.passive_aggressive(), shards=2, epochs=3),
        lambda: Tagger(encoder=Words(), dtype="float64", hash_bits=12, epochs=3),
        lambda: Chunker(encoder=Words(), epochs=3),
    ],
)
def test_everything_that_models_do(make: Any, tmp_path: Path) -> None:
    X, y = classes(24)
    y = chunks(y)
    fitted = make().fit(X[:20], y[:20])
    outputs = fitted.predict(X)
    assert fitted.predict_single(X[0]) == outputs[0]
    assert [best[0][1] for best in fitted.predict_nbest(X, 2)] == outputs
    assert [each.output for each in fitted.predict_confidence(X)] == outputs
    assert list(fitted.predict_stream(iter(X), batch=5)) == outputs
    assert fitted.predict_forced(X) == outputs
    assert fitted.freeze(X).predict(X) == outputs
    explained = fitted.explain(X[0], features=1000)
    assert explained["output"] == outputs[0]
    for decision in explained["decisions"]:
        names = [feature["name"] for feature in decision["features"]]
        assert any(name.startswith("vector") for name in names)
        total = sum(feature["weight"] * feature["value"] for feature in decision["features"])
        assert total == pytest.approx(decision["score"], abs=1e-4)
    size = fitted.save(tmp_path / "model")
    assert fitted.save(tmp_path / "half", precision="float16") < size
    loaded = load_model(tmp_path / "model", encoder=Words())
    assert loaded.predict(X) == outputs
    assert loaded.encoder is None  # no file names an encoder that is not built in
    with pytest.raises(BadData, match=r"expected vectors .* encoder= beside the model.*words"):
        load_model(tmp_path / "model").predict(X)


def test_joint_labels_and_trees(tmp_path: Path) -> None:
    X, y = classes(20)
    pairs = [[(label, label.lower()) for label in labels] for labels in y]
    joint = JointTagger(layers=["a", "b"], encoder=Words(), epochs=3).fit(X, pairs)
    assert joint.score(X, pairs) == 1.0
    names = [f["name"] for f in joint.explain(X[0], features=500)["decisions"][0]["features"]]
    assert "vector[0]" in names
    trees = [[(0, "root"), *((1, label) for label in labels[1:])] for labels in y]
    words = [[(word,) for word in x] for x in X]
    given: dict[str, Any] = {"features": ["w.shape[s0]"], "epochs": 5, "columns": ["w"]}
    parser = Parser(encoder=Words(), **given).fit(words, trees)
    sparse = Parser(**given).fit(words, trees)
    assert parser.score(words, trees) > sparse.score(words, trees) + 0.05
    decisions = parser.explain(words[0], features=500)["decisions"]
    names = [feature["name"] for decision in decisions for feature in decision["features"]]
    assert {"vector s0", "vector b0", "vector s1"} <= {*names}
    parser.save(tmp_path / "parser")
    assert load_model(tmp_path / "parser", encoder=Words()).predict(words) == parser.predict(words)


def test_a_joint_tagger_needs_a_template_with_words_and_one_label() -> None:
    X, y = classes(4)
    pairs = [[(label, label) for label in labels] for labels in y]
    model = JointTagger(layers=["a", "b"], features=["a[0]|b[0]"], encoder=Words())
    with pytest.raises(ValueError, match=r"found no template .* label"):
        model.fit(X, pairs)


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    X, y = classes(8)
    Tagger(encoder=Words(), epochs=1).fit(X, y).save(tmp_path / "model")
    other = Words()
    other.fingerprint = "11" * 32
    with pytest.raises(BadModel, match="found the encoder words with the fingerprint 11111"):
        load_model(tmp_path / "model", encoder=other)
    Tagger(epochs=1).fit(X, y).save(tmp_path / "sparse")
    with pytest.raises(BadModel, match="found a model without vectors"):
        load_model(tmp_path / "sparse", encoder=other)


def write_hostile(folder: Path, header: Any, tensors: Any, changed: dict[str, Any]) -> None:
    """Write a model whose header says something else of its vectors."""
    header = {name: value for name, value in header.items() if name != "digest"}
    header["vectors"] = {**header["vectors"], **changed}
    write_file(folder / "hostile", header, tensors)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("dimensions", 0),
        ("dimensions", 1 << 40),
        ("dimensions", "3"),
        ("scale", -1.0),
        ("scale", None),
        ("scale", 1e9),
        ("encoder", 5),
        ("fingerprint", None),
    ],
)
def test_hostile_headers(tmp_path: Path, name: str, value: Any) -> None:
    X, y = classes(8)
    Tagger(encoder=Words(), epochs=1).fit(X, y).save(tmp_path / "model")
    header, tensors = read_file(tmp_path / "model")
    write_hostile(tmp_path, header, tensors, {name: value})
    with pytest.raises(BadModel):
        load_model(tmp_path / "hostile")


@pytest.mark.parametrize("name", ["vectors.mean", "vectors.deviation"])
@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_hostile_numbers(tmp_path: Path, name: str, value: float) -> None:
    X, y = classes(8)
    Tagger(encoder=Words(), epochs=1).fit(X, y).save(tmp_path / "model")
    header, tensors = read_file(tmp_path / "model")
    write_hostile(tmp_path, header, {**tensors, name: np.full(SIZE, value, np.float32)}, {})
    with pytest.raises(BadModel, match=name):
        load_model(tmp_path / "hostile")


def test_a_file_names_no_folder_to_read(tmp_path: Path) -> None:
    X, y = classes(8)
    Tagger(encoder=Words(), epochs=1).fit(X, y).save(tmp_path / "model")
    header, tensors = read_file(tmp_path / "model")
    write_hostile(tmp_path, header, tensors, {"encoder": str(tmp_path)})
    with pytest.raises(BadData, match="found inputs without vectors"):
        load_model(tmp_path / "hostile").predict(X)


def test_the_scale_is_chosen_on_held_out_data() -> None:
    X, y = classes(60)
    model = Tagger(encoder=Words(), held_out=0.2, **NO_WORDS).fit(X, y)
    scores = dict(map(tuple, model.metadata_["vector_scales"]))
    assert len(scores) > 2
    assert model.task_.dense is not None
    assert scores[model.task_.dense.scale] == max(scores.values())
    fixed = Tagger(encoder=Words(), held_out=0.2, vector_scale=0.3, **NO_WORDS).fit(X, y)
    assert fixed.task_.dense is not None
    assert fixed.task_.dense.scale == 0.3
    assert "vector_scales" not in fixed.metadata_


@pytest.mark.parametrize("wrong", [{"encoder": 3}, {"encoder": Words}, {"vector_scale": 0.0}])
def test_wrong_parameters(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Tagger(**wrong).fit(*classes(4))


def test_an_encoder_that_returns_something_else() -> None:
    encoder = Words()
    encoder.encode = lambda sentences: [np.eye(3)]  # type: ignore[method-assign]
    with pytest.raises(BadFeature, match="found 1 array of words, expected one for each of 4"):
        Tagger(encoder=encoder).fit(*classes(4))


def test_a_stream_learns_what_fit_learns(tmp_path: Path) -> None:
    X, y = classes(30)
    at_once = Tagger(encoder=Words(), **NO_WORDS).fit(X, y)
    streamed = Tagger(encoder=Words(), **NO_WORDS)
    streamed.fit_stream(lambda: zip(X, y, strict=True), store=tmp_path)
    assert streamed.predict(X) == at_once.predict(X)
    assert streamed.weights_.v.tobytes() == at_once.weights_.v.tobytes()


def test_more_data_and_resuming(tmp_path: Path) -> None:
    X, y = classes(30)
    whole = Tagger(encoder=Words(), **NO_WORDS).fit(X, y)
    part = Tagger(encoder=Words(), **{**NO_WORDS, "epochs": 2}).fit(X, y)
    part.save(tmp_path / "part", training=True)
    resumed = load_model(tmp_path / "part", encoder=Words()).resume(X, y, epochs=5)
    assert resumed.weights_.v.tobytes() == whole.weights_.v.tobytes()
    more, labels = classes(5)
    before = resumed.score(more, labels)
    for _ in range(5):
        resumed.partial_fit(more, labels)
    assert resumed.score(more, labels) > before


def test_files_of_columns(tmp_path: Path) -> None:
    X, y = classes(10)
    lines = ["".join(f"{w} {t}\n" for w, t in zip(*s, strict=True)) for s in zip(X, y, strict=True)]
    path = tmp_path / "train.txt"
    path.write_text("\n".join(lines))
    fitted = Tagger(encoder=Words(), epochs=2).fit(path)
    assert fitted.predict(X) == fitted.predict([[(w,) for w in x] for x in X])


# --------------------------------------------------------------------------- files and commands


def test_inspection_tells_of_vectors() -> None:
    X, y = classes(8)
    model = Tagger(encoder=Words(), epochs=2).fit(X, y)
    shown = model.inspect(data=X)
    assert (shown["vectors"]["dimensions"], shown["vectors"]["encoder"]) == (SIZE, "words")
    assert "vectors: 3 dimensions of words, scale 0.1" in as_text(shown)
    assert not any(name.startswith("#") for top in shown["top"].values() for name, _ in top["for"])
    assert not Tagger(epochs=1).fit(X, y).inspect()["vectors"]


def test_a_tuned_encoder_is_beside_its_model(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="torch is not installed: laso[torch]")
    from laso.encoders import Schedule, load_encoder
    from laso.encoders.torch import TorchEncoder
    from tests.small_bert import write_bert

    write_bert(tmp_path / "bert")
    X = [["a", "bc", "."], ["cab", "a", "b"]] * 10
    y = [["A", "B", "C"], ["B", "A", "B"]] * 10
    encoder = TorchEncoder(tmp_path / "bert", schedule=Schedule(rate=1e-3, warmup=1))
    before = encoder.fingerprint
    model = Tagger(encoder=encoder, held_out=0.2, epochs=3).fit(X, y)
    assert encoder.fingerprint != before
    model.save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.predict(X) == model.predict(X)
    assert (tmp_path / "model.encoder" / "model.safetensors").is_file()
    other = load_encoder(tmp_path / "bert")
    with pytest.raises(BadModel, match="with the fingerprint"):
        load_model(tmp_path / "model", encoder=other)
    (tmp_path / "model.encoder").rename(tmp_path / "elsewhere")
    with pytest.raises(BadData, match="that of tuned"):
        load_model(tmp_path / "model").predict(X)


def test_the_command_line(tmp_path: Path, request: Any) -> None:
    pytest.importorskip("tokenizers", reason="tokenizers is not installed: laso[encoder]")
    from tests.small_bert import write_bert

    command = request.getfixturevalue("laso")
    write_bert(tmp_path / "bert")
    train, new = tmp_path / "train.txt", tmp_path / "new.txt"
    train.write_text("a A\nb B\nc A\n\nc A\na A\nb B\n\n" * 12)
    new.write_text("a\nb\n")
    model, bert = tmp_path / "train.laso", tmp_path / "bert"
    assert command("train", train, "--encoder", bert, "--epochs", 3).code == 0
    assert "vectors: 8 dimensions" in command("inspect", model).out
    assert command("tag", model, new, "--encoder", bert).out.split() == ["a", "A", "b", "B"]
    assert command("eval", model, train, "--encoder", bert).code == 0
    shown = command("tag", model, new)
    assert (shown.code, "expected vectors of 8 dimensions" in shown.err) == (3, True)
    shown = command("tag", model, new, "--encoder", "large")
    assert (shown.code, "expected minilm" in shown.err) == (2, True)
