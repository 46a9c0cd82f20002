"""What a model was trained on and what it is given: equal answers, or an error that says both."""

import json
import os
import threading
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from laso import (
    CRF,
    BadData,
    BadFeature,
    Chunker,
    JointTagger,
    LasoError,
    Parser,
    SearchEstimator,
    Tagger,
    adagrad,
    exact,
    load_model,
)
from laso.examples.segmentation import Segmentation

WORDS = [["the", "cat"], ["a", "dog"], ["the", "dog"]]
TAGS = [["DT", "NN"], ["DT", "NN"], ["DT", "NN"]]
Y = [["D", "N"], ["D", "N"], ["D", "N"]]


def attributes(word):
    return {"w": word, "last": word[-1]}


def names(word):
    return [f"w:{word}", f"last:{word[-1]}"]


def of_words(form):
    return [[form(word) for word in sentence] for sentence in WORDS]


GIVEN = {
    "strings": WORDS,
    "numpy strings": [np.array(sentence) for sentence in WORDS],
    "str_": of_words(np.str_),
    "1-tuples": of_words(lambda word: (word,)),
    "2-tuples": [[*zip(words, tags, strict=True)] for words, tags in zip(WORDS, TAGS, strict=True)],
    "3-tuples": of_words(lambda word: (word, "X", "Y")),
    "dicts": of_words(attributes),
    "lists": of_words(names),
    "sets": of_words(lambda word: set(names(word))),
    "tuples of names": of_words(lambda word: tuple(names(word))),
    "2-d strings": [np.array([names(word) for word in sentence]) for sentence in WORDS],
    "matrices": [np.eye(2)[: len(sentence)] for sentence in WORDS],
    "wider matrices": [np.eye(3)[: len(sentence)] for sentence in WORDS],
    "numbers": of_words(len),
    "bytes": of_words(str.encode),
    "None": of_words(lambda word: None),
    "text": ["the cat", "a dog", "the dog"],
    "one file": None,
    "two file": None,
    "three file": None,
}
# What a model takes for what it was trained on, besides itself. One more column is that of labels.
ONE = {"strings", "numpy strings", "str_", "1-tuples", "2-tuples", "one file", "two file"}
TWO = {"2-tuples", "tuples of names", "3-tuples", "two file", "three file"}
NAMES = {"dicts", "lists", "sets", "2-d strings"}
TAKEN = {
    "strings": ONE | {"tuples of names"},
    "1-tuples": ONE | {"tuples of names"},
    "numpy strings": ONE | {"tuples of names"},
    "2-tuples": TWO,
    "dicts": NAMES,
    "lists": NAMES,
    "matrices": {"matrices"},
    "one file": ONE | {"tuples of names"},
    "two file": TWO,
}
METHODS = {
    "predict": lambda model, X: model.predict(X),
    "predict_single": lambda model, X: [model.predict_single(x) for x in X],
    "nbest": lambda model, X: model.predict_nbest(X, 2),
    "confidence": lambda model, X: model.predict_confidence(X),
    "marginals": lambda model, X: model.predict_marginals(X),
    "explain": lambda model, X: [model.explain(x) for x in X],
    "forced": lambda model, X: model.predict_forced(X),
    "trace": lambda model, X: [model.trace(x) for x in X],
    "score": lambda model, X: model.score(X, Y),
    "partial_fit": lambda model, X: model.partial_fit(X, Y),
}
OF_FILES = {"predict", "nbest", "confidence", "marginals", "score", "partial_fit"}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    columns = {"one file": WORDS, "two file": GIVEN["2-tuples"], "three file": GIVEN["3-tuples"]}
    given = dict(GIVEN)
    for name, sentences in columns.items():
        rows = [
            [" ".join([token] if isinstance(token, str) else token) for token in sentence]
            for sentence in sentences
        ]
        path = folder / name.replace(" ", "-")
        path.write_text("\n\n".join("\n".join(some) for some in rows) + "\n", encoding="utf-8")
        given[name] = str(path)
    return given


def trained(kind, data, queue):
    return Tagger(features=None, epochs=3, queue=queue).fit(data[kind], Y)


@pytest.mark.parametrize("kind", TAKEN)
@pytest.mark.parametrize("queue", [2, exact()], ids=["beam", "exact"])
def test_a_tagger_takes_what_it_was_trained_on_and_nothing_else(kind, queue, data):
    """All combinations: a given kind either has the answers of the trained kind, or is refused."""
    model = trained(kind, data, queue)
    wanted = model.predict(data[kind])
    for method, call in METHODS.items():
        if (method == "marginals") != (queue != 2) and method != "predict":
            continue
        for given, X in data.items():
            if isinstance(X, str) and method not in OF_FILES:
                continue
            if given in TAKEN[kind]:
                found = call(model, X)
                if method == "predict" and kind not in ("2-tuples", "two file"):
                    assert found == wanted or given in ("2-tuples", "two file", "tuples of names")
                if method == "partial_fit":
                    model = trained(kind, data, queue)
                continue
            with pytest.raises(LasoError) as error:
                call(model, X)
            message = str(error.value)
            assert isinstance(error.value, (BadData, BadFeature)), (method, given)
            assert "expected" in message, (method, given)
            assert "sentence " in message or ":" in message, (method, given, message)
        assert model.predict(data[kind]) == wanted


@pytest.mark.parametrize(
    ("kind", "given", "message"),
    [
        ("dicts", "strings", r"found 1 columns, expected tokens with features of their own.*train"),
        ("dicts", "one file", r"one-file:1: found 1 columns, expected tokens with features"),
        (
            "lists",
            "tuples of names",
            r"found 2 columns, expected tokens with features of their own",
        ),
        ("strings", "dicts", r"found tokens with features.*1 columns \(w\), as the model was tra"),
        ("strings", "3-tuples", r"found 3 columns, expected 1 columns \(w\), as the model was tr"),
        ("2-tuples", "strings", r"found 1 columns, expected 2 columns \(w, pos\), as the model"),
        ("matrices", "dicts", r"found feature names, expected a matrix of 2 columns, as the model"),
        ("dicts", "matrices", r"found a matrix of 2 columns, expected feature names: tokens with"),
    ],
)
def test_the_error_says_what_was_found_and_what_the_model_was_trained_on(
    kind, given, message, data
):
    with pytest.raises(BadData, match=message):
        trained(kind, data, 2).predict(data[given])


def test_a_crf_takes_lists_of_features_in_all_forms_and_nothing_else(data):
    X = data["dicts"]
    model = CRF("ap", max_iterations=3).fit(X, Y)
    wanted = model.predict(X).tolist()
    for given in ("lists", "sets", "tuples of names", "2-d strings"):
        assert model.predict(data[given]).tolist() == wanted, given
    for given in set(data) - {*NAMES, "tuples of names"}:
        if given in ("1-tuples", "2-tuples", "3-tuples"):
            continue  # python-crfsuite takes tuples for lists of features, too
        with pytest.raises(LasoError, match="expected"):
            model.predict(data[given])
    with pytest.raises(BadData, match="expected a dict or a list of features"):
        model.predict_single(["w:the", "w:cat"])


def test_a_chunker_says_what_it_was_trained_on(data):
    model = Chunker(epochs=1, features="paper").fit([[("a", "DT", "B-X"), ("b", "NN", "I-X")]] * 2)
    for given, found in (("dicts", "features of their own"), ("strings", "found 1 columns")):
        with pytest.raises(BadData, match=rf"sentence 1, token 1: .*{found}.*trained on"):
            model.predict(data[given])


CONLLU = "".join(
    "".join(
        f"{i}\t{word}\t_\tX\tY\t_\t{i % 2 * 2}\tdep\t_\t_\n"
        for i, word in enumerate(words, start=1)
    )
    + "\n"
    for words in WORDS
)
TREES = [[(2, "det"), (0, "root")]] * 3
LAYERS = [[("D", "O"), ("N", "O")]] * 3
SAME = {"strings", "numpy strings", "str_", "1-tuples", "one file"}
# The estimators of columns: how they are made, what they learn, and what has labels to be dropped.
OF_COLUMNS: dict[str, Any] = {
    "chunker": (lambda: Chunker(epochs=1, features=["w[each]"]), [["B-X", "I-X"]] * 3, 1),
    "joint": (lambda: JointTagger(layers=["a", "b"], epochs=1, queue=2), LAYERS, 2),
    "parser": (lambda: Parser(epochs=1, queue=2), TREES, 2),
}


@pytest.mark.parametrize("name", OF_COLUMNS)
@pytest.mark.parametrize("kind", ["strings", "2-tuples", "one file", "two file"])
def test_estimators_of_columns_take_what_they_were_trained_on(name, kind, data, tmp_path):
    make, y, labels = OF_COLUMNS[name]
    given = {**data, "conllu": str(tmp_path / "x.conllu"), "json": str(tmp_path / "x.jsonl")}
    (tmp_path / "x.conllu").write_text(CONLLU, encoding="utf-8")
    (tmp_path / "x.jsonl").write_text('{"tokens": ["the", "cat"]}\n', encoding="utf-8")
    model = make().fit(data[kind], y)
    wanted = model.predict(data[kind])
    taken = SAME if kind in SAME else {"2-tuples", "two file", "tuples of names"}
    with_labels = {1: {"2-tuples", "two file", "tuples of names"}, 2: {"3-tuples", "three file"}}
    columns = 1 if kind in SAME else 2
    if name != "parser":  # whose heads are numbers, and cannot be anything else
        taken = taken | with_labels.get(columns + labels - 1, set())
    taken = taken | ({"conllu"} if name == "parser" else set())
    taken = taken | ({"json"} if columns == 1 else set())
    for each, X in given.items():
        if each in taken:
            found = model.predict(X)
            assert found == wanted or each in ("conllu", "json", "tuples of names"), each
            continue
        with pytest.raises(LasoError, match="expected") as error:
            model.predict(X)
        assert isinstance(error.value, (BadData, BadFeature)), each


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_estimators_of_columns_do_not_learn_from_anything_else(name, data):
    make, y, _ = OF_COLUMNS[name]
    for kind in ("dicts", "lists", "sets", "matrices", "numbers", "bytes", "None", "text"):
        with pytest.raises(BadData, match="expected") as error:
            make().fit(data[kind], y)
        assert "trained on" not in str(error.value)


def test_the_heads_of_a_file_are_no_input(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    model = Parser(epochs=1, queue=2).fit(path, TREES)
    assert model.task_.encoder_.names == ("w", "pos", "xpos")
    assert model.score(path, TREES) == Parser(epochs=1, queue=2).fit(
        [[(word, "X", "Y") for word in words] for words in WORDS], TREES
    ).score(path, TREES)


def test_a_file_of_another_format_is_not_taken_for_columns(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text('{"tokens": ["the", "cat"], "labels": ["D", "N"]}\n' * 3, encoding="utf-8")
    (tmp_path / "x.conllu").write_text(CONLLU, encoding="utf-8")
    assert Tagger(features=["w[0]"], epochs=2).fit(path).predict(path) == [["D", "N"]] * 3
    for action in (
        lambda: Tagger().fit_stream(path, store=tmp_path / "store"),
        lambda: Tagger().fit(tmp_path / "x.conllu"),
        lambda: Parser().fit_stream(tmp_path / "x.conllu", store=tmp_path / "store"),
    ):
        with pytest.raises(BadData, match=r"x\.\w+: found a file of .*, expected one of columns"):
            action()


def test_data_may_come_through_a_pipe(tmp_path):
    path, text = tmp_path / "fifo", CONLLU * 2000  # more than a pipe holds
    os.mkfifo(path)
    model = Parser(epochs=1, queue=2).fit(
        [[(w, "X", "Y") for w in words] for words in WORDS], TREES
    )
    writer = threading.Thread(target=path.write_text, args=(text,), daemon=True)
    writer.start()
    assert len(model.predict(path)) == 6000
    writer.join(10.0)
    with pytest.raises(BadData, match="found a pipe, expected a regular file"):
        Tagger().fit_stream(path, store=tmp_path)  # which is read twice


class Lying(list[Any]):
    """A list with another length than it says, as one that another thread changes."""

    def __len__(self) -> int:
        return 1000


def test_lists_that_change_while_they_are_read():
    features = of_words(names)
    model = Tagger(epochs=1).fit(features, Y)
    wrong: Any
    for wrong in ([[Lying(token) for token in s] for s in features], [Lying(s) for s in features]):
        for call in (model.predict, lambda X: [model.predict_single(x) for x in X]):
            with pytest.raises(BadData, match="found another number of elements"):
                call(wrong)
    broken = sparse.csr_matrix(np.eye(2))
    of_matrices = Tagger(epochs=1).fit([broken] * 3, Y)
    broken.indptr[-1] = 1000
    with pytest.raises(BadData, match="found another number of elements"):
        of_matrices.predict([broken])


def test_laso_tag_refuses_columns_for_a_model_of_features(data, laso, tmp_path):
    path = tmp_path / "model.laso"
    trained("dicts", data, 2).save(path)
    shown = laso("tag", str(path), data["two file"])
    assert shown.code == 3
    assert "trained on" in shown.err or "expected" in shown.err
    jsonl = tmp_path / "x.jsonl"
    jsonl.write_text(json.dumps({"tokens": WORDS[0]}) + "\n", encoding="utf-8")
    shown = laso("tag", str(path), str(jsonl))
    assert shown.code == 3


def test_a_task_of_ones_own_does_not_mix_strings_and_numbers():
    model = SearchEstimator(Segmentation(), epochs=2).fit(
        ["abab", "aab"], [["ab", "ab"], ["a", "ab"]]
    )
    with pytest.raises(BadData, match="found 3, expected a string, as the model was trained on"):
        model.predict([[1, 2, 3][2:]])


@pytest.mark.parametrize("value", [1e39, -1e39, 10**400, 1e300])
def test_values_that_overflow_32_bits_are_refused_with_their_place(value):
    message = "sentence 1, token 2: found .* expected a finite number up to 3.4e"
    for model in (Tagger(), CRF()):
        with pytest.raises(BadFeature, match=message):
            model.fit([[{"a": 1.0}, {"b": value}]], [["X", "Y"]])
    if abs(value) < 1e301:
        with pytest.raises(BadFeature, match=r"sentence 1, token 2: found .*1e\+"):
            Tagger().fit([np.array([[1.0], [float(value)]])], [["X", "Y"]])


@pytest.mark.parametrize("value", [1e20, 3e38, -3e38])
@pytest.mark.parametrize(
    "make",
    [
        lambda: Tagger(epochs=9),
        lambda: Tagger(epochs=9, queue=exact()),
        lambda: CRF("l2sgd", max_iterations=5),
        lambda: Tagger(epochs=9, shards=2),
    ],
    ids=["beam", "exact", "sgd", "shards"],
)
def test_weights_and_scores_that_overflow_are_no_failed_search(make, value):
    """Each value is a 32-bit float, but its square is none."""
    X = [[{"a": value, "b": value}, {"c": value, "a": -value}], [{"a": value}, {"c": value}]]
    with pytest.raises(BadFeature, match=r"overflow.*expected"):
        make().fit(X, [["A", "B"], ["B", "A"]]).predict(X)
    small = [[{name: v / value for name, v in token.items()} for token in s] for s in X]
    model = make().fit(small, [["A", "B"], ["B", "A"]])
    wanted = model.predict(small)
    large = [[dict.fromkeys(token, 3e38) for token in s] for s in X[:1]]
    for call in (model.predict, model.predict_confidence, lambda X: model.predict_nbest(X, 2)):
        with suppress(BadFeature):  # but nothing else is raised, nor a warning
            call([small[0], *large])
    assert repr(model.predict(small)) == repr(wanted)


def test_a_score_that_overflows_is_told_with_its_sentence():
    model = Tagger(epochs=3).fit([[{"a": 1.0}, {"b": 1.0}]], [["A", "B"]])
    good, bad = [{"a": 1.0}, {"b": 1.0}], [{"a": 3e38}, {"b": 3e38, "a": -3e38}]
    for call in (model.predict, model.predict_confidence, lambda X: model.predict_nbest(X, 2)):
        with pytest.raises(BadFeature, match=r"sentence 2, token 1: found the value 3e\+38, with"):
            call([good, bad])
    with pytest.raises(BadFeature, match="sentence 1, token 1: found the value"):
        model.predict_single(bad)


cyclic: dict[str, object] = {}
cyclic["a"] = cyclic
ODD = {
    "a cyclic dict": ([[cyclic]], [["X"]]),
    "a list in a column": ([[("a", ["u"])]], [["X"]]),
    "a list as label": ([["a"]], [[["x"]]]),
    "a list as last column": ([[("a", ["u"])]], None),
    "None for labels": ([["a"]], [None]),
    "a number for y": ([["a"]], 5),
    "no label known": ([["a"]], [[None]]),
    "a set in a dict": ([[{"a": {1}}]], [["X"]]),
    "None in a dict": ([[{"a": None}]], [["X"]]),
    "a number as name": ([[{1: "a"}]], [["X"]]),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_input_is_answered_with_one_kind_of_error(name):
    X, y = ODD[name]
    for model in (Tagger(epochs=1), CRF("ap", max_iterations=1), Chunker(epochs=1)):
        with pytest.raises(LasoError) as error:
            model.fit(X, y)
        assert len(str(error.value)) < 500


@pytest.mark.parametrize("weight", [1e300, 1e-300, float("nan"), float("inf"), 0, "1"])
def test_class_weights_that_make_no_sense(weight):
    with pytest.raises(ValueError, match="class_weight must be"):
        Tagger(class_weight={"D": weight}).fit(WORDS, Y)


def test_what_json_lacks_in_the_notes(tmp_path):
    model = Tagger(epochs=1).fit(WORDS, Y)
    for odd in (float("nan"), object(), cyclic):
        model.metadata_["note"] = odd
        with pytest.raises(BadData, match="found in the metadata"):
            model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_messages_quote_only_the_beginning(laso, tmp_path):
    long: Any = "x" * 3_000_000
    (tmp_path / "template").write_text(f"w[0]\n{long}\n", encoding="utf-8")
    (tmp_path / "data").write_text("a X\nb Y\n", encoding="utf-8")
    shown = laso("train", str(tmp_path / "data"), "--templates", str(tmp_path / "template"))
    assert shown.code == 3
    assert len(shown.err) < 1500
    for action in (
        lambda: Tagger(features=[long]).fit(WORDS, Y),
        lambda: Tagger(queue=long).fit(WORDS, Y),
        lambda: Tagger(class_weight={long: 1.0}).fit(WORDS, Y),
        lambda: Tagger(epochs=1).fit(WORDS, Y).predict([[{long: long}]]),
        lambda: Tagger(columns=["!" + long]).fit(WORDS, Y),
        lambda: CRF(long).fit([[{"a": 1}]], [["X"]]),
    ):
        with pytest.raises((LasoError, ValueError)) as error:
            action()
        assert len(str(error.value)) < 2500


# --------------------------------------------------------------------------- integers as labels

NUMBERED = [["a", "b", "c"], ["c", "a"], ["b"]] * 5, [[0, 1, 2], [2, 0], [1]] * 5


@pytest.mark.parametrize("kind", [list, np.array, lambda y: [np.int64(each) for each in y]])
def test_integer_labels_are_predicted_as_integers(kind, tmp_path):
    X, y = NUMBERED
    model = Tagger(epochs=3, class_weight={0: 2.0}).fit(X, [kind(labels) for labels in y])
    assert model.predict(X) == y
    assert {type(label) for labels in model.predict(X) for label in labels} == {int}
    assert model.score(X, y) == 1.0
    assert model.calibrate(X, y).predict_confidence(X)[0].output == [0, 1, 2]
    assert model.predict_nbest(X[:1], 1)[0][0][1] == [0, 1, 2]
    assert model.predict_forced(X[:1], known=[[None, 2, None]])[0][1] == 2
    model.save(tmp_path / "m.laso", training=True)
    again = load_model(tmp_path / "m.laso")
    assert again.predict(X) == y
    assert again.class_weight_ == {"0": 2.0}
    assert again.partial_fit([["d"]] * 5, [[7]] * 5).predict([["d"]]) == [[7]]
    with pytest.raises(BadData, match="both strings and integers as labels"):
        again.partial_fit([["d"]], [["seven"]])


def test_integer_labels_of_feature_lists_and_in_exact_search():
    X, y = NUMBERED
    dicts = [[{"word": word} for word in x] for x in X]
    assert [list(labels) for labels in CRF(max_iterations=9).fit(dicts, y).predict(dicts)] == y
    field = Tagger(epochs=3, queue=exact(), update=adagrad()).fit(X, y)
    probabilities: dict[Any, float] = field.predict_marginals(X[:1])[0][0]
    assert set(probabilities) == {0, 1, 2}


@pytest.mark.parametrize("label", [True, 1.0, (1,)])
def test_labels_that_are_neither_strings_nor_integers_are_refused(label):
    with pytest.raises(BadData, match="expected a string or None, or integers only"):
        Tagger(epochs=1).fit([["a", "b"]], [[label, "A"]])
