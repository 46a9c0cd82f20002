"""Dense vectors beside sparse features: given with inputs, or computed by an encoder."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laso
from laso import Chunker, JointTagger, Parser, Tagger, load_model, with_vectors
from laso.engine.layout import Array
from laso.engine.machine import Machine
from laso.errors import BadData, BadFeature, BadModel
from laso.files.container import read_file, write_file

SIZE = 3


class Words:
    """An encoder that has a vector for each word, drawn by its letters, and learns if asked."""

    name, dimensions, fingerprint = "words", SIZE, "00ff" * 16

    def __init__(self, *, hidden: int = 0) -> None:
        self.rows: dict[str, Array] = {}
        self.calls, self.hidden = 0, hidden

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        self.calls += len(sentences)
        return [np.array([self.row(word) for word in each], np.float32) for each in sentences]

    def row(self, word: str) -> Array:
        if word not in self.rows:
            self.rows[word] = np.random.default_rng([*word.encode()]).normal(size=SIZE)
        return self.rows[word]


class Learner(Words):
    """The same as an encoder that learns."""

    rate = 0.05

    def learn(self, sentences: Sequence[Sequence[str]], gradients: Sequence[Array]) -> None:
        for sentence, rows in zip(sentences, gradients, strict=True):
            for word, row in zip(sentence, rows, strict=True):
                self.rows[word] = self.row(word) + self.rate * row

    def state(self) -> Any:
        return deepcopy(self.rows)

    def restore(self, state: Any) -> None:
        self.rows = deepcopy(state)


def classes(n: int, length: int = 5, words: int = 40) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of words, each with a label of its own that nothing but its vector tells."""
    random = np.random.default_rng(0)
    known = {f"w{i}": "ABC"[random.integers(3)] for i in range(words)}
    X = [[f"w{i}" for i in random.integers(words, size=length)] for _ in range(n)]
    return X, [[known[word] for word in x] for x in X]


def told(X: list[list[str]], y: list[list[str]], shift: int = 0) -> list[Any]:
    """The sentences with vectors that tell the label of the word so many places before."""
    table = dict(zip("ABC", np.eye(3), strict=True))
    rows = [np.array([table[label] for label in labels]) for labels in y]
    return [with_vectors(x, np.roll(row, shift, axis=0)) for x, row in zip(X, rows, strict=True)]


# --------------------------------------------------------------------------- given vectors

NO_WORDS: dict[str, Any] = {"features": ["label[-1]"], "epochs": 5}


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


def chunks(y: list[list[str]]) -> list[list[str]]:
    return [[f"B-{label}" for label in labels] for labels in y]


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


# --------------------------------------------------------------------------- encoders that learn


def moved(model: Any, X: Any, y: Any) -> tuple[Any, Array]:
    """The dataset of examples, and where one pass over them would move the vectors."""
    task = deepcopy(model.task_)
    dataset = task.arrays(*task.read(X, y))
    dataset = dataset._replace(moves=np.zeros_like(dataset.vectors))
    engine = model.engine(dataset)
    assert isinstance(engine, Machine)
    table = type(model.training_.table)(*(a.copy() for a in model.training_.table))
    order = np.arange(len(dataset.starts) - 1)
    engine.learn(dataset, order, table, engine.new_run(dataset, order, table))
    return dataset, dataset.moves


def hinge(model: Any, dataset: Any, good: Array, bad: Array, vectors: Array) -> float:
    """The score of the good path minus that of the bad one, with other vectors."""
    from laso.engine.machine import current
    from laso.engine.reference import input_of
    from laso.estimators.capabilities.scored_reference import Walk

    walk = Walk(model.with_weights(current(model.training_.table)), dataset)
    x = input_of(dataset._replace(vectors=vectors), 0)
    totals = []
    for path in (good, bad):
        state, total = walk.initial(x), 0.0
        for step in map(tuple, path.tolist()):
            features = walk.reference.features(x, state, step)
            total += sum(walk.weight(key, of) * value for (key, of), value in features.items())
            state = walk.apply(x, state, step)
        totals.append(total)
    return totals[0] - totals[1]


@pytest.mark.parametrize("kind", [Tagger, Chunker, Parser])
def test_moves_are_derivatives_of_the_structured_hinge(kind: Any) -> None:
    """With one update at the end they compare the gold output with the predicted one."""
    from laso.engine.machine import all_of, current

    X, y = classes(12)
    outputs: Any = chunks(y)
    given: dict[str, Any] = {"vector_window": 1} if kind is Tagger else {}
    if kind is Parser:
        X = [[(word,) for word in x] for x in X]  # type: ignore[misc]
        outputs = [[(0, "root"), *((1, label) for label in labels[1:])] for labels in y]
        given = {"columns": ["w"], "features": ["w[s0]"]}
    update = laso.perceptron(weighting=laso.worst)
    model = kind(
        encoder=Words(),
        epochs=1,
        queue=4,
        strategy=laso.standard,
        update=update,
        dtype="float64",
        vector_scale=1.0,
        **({"dropout": 0.0} if kind is Tagger else {}),
        **given,
    ).fit(X, outputs)
    compared = 0
    for x, output in zip(X, outputs, strict=True):
        dataset, moves = moved(model, [x], [output])
        engine = model.engine(dataset)
        steps, _, _ = engine.decode(dataset, all_of(dataset), current(model.training_.table))
        forced = model.with_weights(current(model.training_.table))
        gold = forced_steps(forced, x, output)
        expected = np.zeros_like(moves)
        if model.task_.decode_all(None, steps, np.array([len(steps)])) != [output]:
            compared += 1
            for at in np.ndindex(*moves.shape):
                ends = []
                for sign in (1.0, -1.0):
                    vectors = dataset.vectors.astype(np.float64)
                    vectors[at] += sign
                    ends.append(hinge(model, dataset, gold, steps, vectors))
                expected[at] = (ends[0] - ends[1]) / 2
        assert moves == pytest.approx(expected, abs=1e-4)
    assert compared > 2


def forced_model(model: Any) -> Any:
    return model


def forced_steps(model: Any, x: Any, output: Any) -> Array:
    """The steps of the gold output."""
    from laso.engine.reference import Reference, input_of, output_of

    dataset = model.task_.arrays(*model.task_.read([x], [output]))
    problem = model.task_.problem_for(dataset)
    reference, row, y = Reference(problem, len(model.classes_)), input_of(dataset, 0), None
    y = output_of(dataset, 0)
    state, steps = reference.initial(row), []
    while not reference.is_goal(row, state):
        here = np.array(state.row, np.int32)
        step = next(
            each for each in reference.operators(row, state) if problem.is_good(row, y, here, *each)
        )
        steps.append(step)
        state = reference.apply(row, state, step)
    return np.array(steps, np.int32)


@pytest.mark.parametrize("strategy", [laso.restart, laso.early, laso.delayed, laso.max_violation])
def test_an_encoder_learns_inside_the_search(strategy: Any) -> None:
    X, y = classes(200)
    frozen, learned = (
        Tagger(
            encoder=encoder,
            strategy=strategy,
            queue=3,
            vector_scale=1.0,
            features=["label[-1]"],
            epochs=4,
        )
        for encoder in (Words(), Learner())
    )
    assert frozen.fit(X[:150], y[:150]).score(X[150:], y[150:]) < 0.7
    assert learned.fit(X[:150], y[:150]).score(X[150:], y[150:]) > 0.95


def test_the_encoder_of_the_best_epoch_is_kept() -> None:
    X, y = classes(100)

    class Forgets(Learner):
        """Forgets all words in its third epoch."""

        visits = 0

        def learn(self, sentences: Any, gradients: Any) -> None:
            self.visits += len(sentences)
            super().learn(sentences, gradients)
            if self.visits > 2 * 80:
                self.rows = {word: np.zeros(SIZE) for word in self.rows}

    encoder = Forgets()
    model = Tagger(encoder=encoder, vector_scale=1.0, held_out=0.2, **NO_WORDS).fit(X, y)
    assert model.best_epoch_ <= 2
    assert model.scores_[-1] < max(model.scores_) - 0.2
    assert np.abs(encoder.row("w0")).max() > 0
    assert model.score(X, y) > 0.7


@pytest.mark.parametrize("given", [{"queue": laso.exact()}, {"shards": 2}])
def test_what_keeps_an_encoder_from_learning(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="found an encoder that learns, and"):
        Tagger(encoder=Learner(), **given).fit(*classes(4))


def test_streams_keep_an_encoder_from_learning(tmp_path: Path) -> None:
    X, y = classes(4)
    with pytest.raises(ValueError, match="found an encoder that learns, and a stream"):
        Tagger(encoder=Learner()).fit_stream(lambda: zip(X, y, strict=True), store=tmp_path)
