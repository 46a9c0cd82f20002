"""The tagger: any input, the reference engine's predictions, constraints, epochs and going on."""

import os
import pickle
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from laso import (
    Linear,
    Tagger,
    alma,
    beam,
    bounded_best_first,
    early,
    greedy,
    hill_climbing,
    passive_aggressive,
    perceptron,
    polynomial_kernel,
    search,
    worst,
)
from laso.data import find_corpus, load_bundled
from laso.data.table import Columns, Factor
from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.machine import as_names
from laso.engine.reference import Reference, input_of, output_of
from laso.errors import BadData, BadTemplate, MissingData
from laso.features import CHUNKING
from laso.features.inputs import read_input
from laso.metrics import accuracy, chunk_scores
from laso.metrics.evaluation import main_score
from laso.tasks.tagging.problem import Tagging, WeightedTagging
from tests.spaces import quick

TRAIN, TEST = load_bundled()
WORDS = [[token[:2] for token in sentence] for sentence in TEST]
LABELS = [[token[2] for token in sentence] for sentence in TEST]
FEW = TRAIN[:60]


@pytest.fixture(scope="module")
def fitted():
    return Tagger(features=CHUNKING, queue=3, epochs=4, threads=1).fit(TRAIN)


def weights(tagger):
    return as_names(tagger.weights_)


def averaged(w):
    average = w.averaged()
    assert isinstance(average, Linear)
    return average.weights


# Learning and labelling


def test_the_bundled_corpus_is_learned_better_than_by_the_most_frequent_label(fitted):
    assert fitted.score(TEST) > 0.75
    assert fitted.score(TEST) == fitted.score(WORDS, LABELS)
    assert fitted.score(WORDS, LABELS) == chunk_scores(LABELS, fitted.predict(WORDS)).f / 100


def test_predictions_have_the_shape_of_the_input(fitted):
    found = fitted.predict([WORDS[0], [], WORDS[1]])
    assert [len(labels) for labels in found] == [len(WORDS[0]), 0, len(WORDS[1])]
    assert found == [fitted.predict_single(s) for s in (WORDS[0], [], WORDS[1])]
    assert {type(label) for labels in found for label in labels} == {str}
    assert fitted.predict([]) == []
    assert fitted.predict([[]]) == [[]]


def test_a_column_of_labels_is_not_looked_at(fitted):
    wrong = [[(*token[:2], "?") for token in sentence] for sentence in TEST]
    assert fitted.predict(wrong) == fitted.predict(WORDS)


def test_threads_change_nothing(fitted):
    four = clone(fitted).set_params(threads=4)
    for name in ("weights_", "task_", "classes_"):
        setattr(four, name, getattr(fitted, name))
    sentences = TRAIN + TEST
    assert sum(map(len, sentences)) > 2000
    assert four.predict(sentences) == fitted.predict(sentences)


def test_a_file_is_learned_from_as_lists_are(fitted, tmp_path):
    path = tmp_path / "train.txt"
    text = "\n".join("".join(" ".join(token) + "\n" for token in s) for s in TRAIN)
    path.write_text(text, encoding="utf-8")
    again = clone(fitted).fit(path)
    assert weights(again) == weights(fitted)
    assert again.score(path) == fitted.score(TRAIN)
    assert clone(fitted).fit(
        [[t[:2] for t in s] for s in TRAIN], [[t[2] for t in s] for s in TRAIN]
    )
    assert again.predict(str(path)) == fitted.predict(TRAIN)


def test_a_file_read_in_small_pieces_is_the_same(monkeypatch, tmp_path):
    path = tmp_path / "train.txt"
    text = "\n".join("".join(" ".join(token) + "\n" for token in s) for s in FEW)
    path.write_text(text, encoding="utf-8")
    whole = read_input(path)
    monkeypatch.setattr("laso.engine.thresholds.SHORT_FILE", 0)
    monkeypatch.setattr("laso.features.column_text.CHUNK", 50)
    pieces = read_input(path)
    assert isinstance(whole, Columns)
    assert isinstance(pieces, Columns)
    assert pieces.lengths.tolist() == whole.lengths.tolist() == [len(s) for s in FEW]
    for a, b in zip(pieces.columns, whole.columns, strict=True):
        assert isinstance(a, Factor)
        assert isinstance(b, Factor)
        assert (a.values, a.codes.tolist()) == (b.values, b.codes.tolist())


RULES = [
    (2, perceptron(), None),
    (greedy(), perceptron(weighting=worst, margin=1.0), None),
    (beam(3), alma(), "BIO"),
    (bounded_best_first(2), passive_aggressive(), None),
]


@pytest.mark.parametrize(("queue", "update", "constraints"), RULES)
def test_learning_and_prediction_are_those_of_the_reference_engine(queue, update, constraints):
    """Two epochs in the order of the data, then three sentences, with exact arithmetic."""
    few = [sentence[:7] for sentence in TRAIN[:8]]
    tagger = Tagger(
        features=["w[0]", "w.suffix2[-1]|pos[0]", "label[-2]|label[-1]", "label[-1]|pos[0]"],
        queue=queue,
        update=update,
        constraints=constraints,
        epochs=2,
        seed=None,
        dtype="float64",
        strategy=early,
    ).fit(few)
    data = read_input(few)
    numbers = np.array([tagger.task_.encoder_.labels.index(t[2]) for s in few for t in s])
    corpus = tagger.task_.encoder_.dataset(data.split()[0], numbers)  # type: ignore[union-attr]
    problem = Reference(Tagging, len(tagger.classes_))
    make = beam(queue) if isinstance(queue, int) else queue
    w = update.start()
    share, seed = round(tagger.dropout_rate() * at.DROPOUT_SCALE), mix(0, 1)
    for visit, i in enumerate(list(range(len(few))) * tagger.n_iter_):
        problem.dropout = (share, mix(seed, visit))
        w = early(problem, input_of(corpus, i), output_of(corpus, i), w, make, update)
        w.tick()
    average = averaged(w)
    found = weights(tagger)
    problem.dropout = (0, 0)
    for name in average.keys() | found.keys():
        assert found.get(name, 0.0) == pytest.approx(average.get(name, 0.0), abs=1e-9)
    for i, sentence in enumerate(few[:3]):
        node = search(problem, input_of(corpus, i), Linear(found), make)
        assert node is not None
        labels = [tagger.classes_[label] for _, label in node.operators]
        assert tagger.predict_single(sentence) == labels


def test_numeric_features_are_learned_as_the_reference_engine_learns_them():
    rng = np.random.default_rng(0)
    X = [rng.integers(-2, 3, (n, 3)) / 2 for n in (3, 1, 4, 2)]
    y = [[("A", "B")[int(row[0] > row[1])] for row in sentence] for sentence in X]
    update = perceptron()
    tagger = Tagger(queue=2, epochs=3, seed=None, update=update, dropout=0.0).fit(X, y)
    data = read_input(X)
    numbers = np.array(["AB".index(label) for s in y for label in s])
    corpus = tagger.task_.encoder_.dataset(data, numbers)
    problem = Reference(WeightedTagging, 2)
    w = update.start()
    for i in list(range(len(X))) * tagger.n_iter_:
        w = tagger.strategy(problem, input_of(corpus, i), output_of(corpus, i), w, beam(2), update)
        w.tick()
    average = {name: value for name, value in averaged(w).items() if value}
    assert weights(tagger) == pytest.approx(average)


# Inputs


def as_dicts(sentences):
    return [
        [{"w": w, "pos": p, "title": w.istitle(), "bias": 1.0} for w, p, *_ in sentence]
        for sentence in sentences
    ]


def as_lists(sentences):
    return [
        [
            [f"w:{w}", f"pos:{p}", *(["title"] if w.istitle() else []), "bias"]
            for w, p, *_ in sentence
        ]
        for sentence in sentences
    ]


def test_dicts_lists_and_templates_that_say_the_same_learn_the_same():
    y = [[token[2] for token in sentence] for sentence in FEW]
    settings: dict[str, Any] = {"queue": 2, "epochs": 3, "dropout": 0.0}
    labels = ["label[-1]"]
    dicts = Tagger(features=labels, **settings).fit(as_dicts(FEW), y)
    lists = Tagger(features=labels, **settings).fit(as_lists(FEW), y)
    assert weights(dicts) == weights(lists)
    found = dicts.predict(as_dicts(TEST))
    assert found == lists.predict(as_lists(TEST))
    texts = ["w[0]", "pos[0]", 'w.test(".")[0]', "label[-1]"]
    columns = Tagger(features=texts, **settings).fit(FEW)
    without = [[{"w": w, "pos": p, "bias": True} for w, p, _ in s] for s in FEW]
    same = Tagger(features=labels, **settings).fit(without, y)
    assert Counter(weights(same).values()) == Counter(weights(columns).values())


def test_matrices_dense_and_sparse_learn_the_same():
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(n, 4)) * (rng.random((n, 4)) < 0.7) for n in (5, 0, 3, 8, 6, 2) * 5]
    y = [["ABC"[int(np.argmax(row[:3]))] for row in sentence] for sentence in X]
    dense = Tagger(queue=2, epochs=8).fit(X, y)
    sparse = Tagger(queue=2, epochs=8).fit([scipy.sparse.csr_matrix(s) for s in X], y)
    assert weights(dense) == weights(sparse)
    assert dense.score(X, y) > 0.8
    with pytest.raises(BadData, match="found a matrix of 5 columns, expected a matrix of 4"):
        dense.predict([np.ones((1, 5))])


def test_counts_met_first_in_prediction_are_counted():
    """A model of plain features, then a feature twice as strong: its scores are its own."""
    X = [[["a"], ["b"], ["a", "b"]]]
    tagger = Tagger(features=["bias"], queue=1, epochs=1, average=False).fit(X, [["A", "B", "B"]])
    for a, b in ((1.0, 5.0), (5.0, 1.0)):
        corpus = tagger.task_.encoder_.dataset(read_input([[{"a": a, "b": b}]]))
        problem = Reference(WeightedTagging, 2)
        node = search(problem, input_of(corpus, 0), Linear(weights(tagger)), greedy())
        assert node is not None
        expected = [tagger.classes_[node.operators[0][1]]]
        assert tagger.predict_single([{"a": a, "b": b}]) == expected


def test_words_alone():
    X = [[w for w, _, _ in s] for s in TRAIN]
    y = [[p for _, p, _ in s] for s in TRAIN]
    tagger = Tagger(queue=2, epochs=4).fit(X, y)
    found = tagger.predict([[w for w, _, _ in s] for s in TEST])
    wanted = [[p for _, p, _ in s] for s in TEST]
    assert accuracy(wanted, found) > 70
    assert tagger.score([[w for w, _, _ in s] for s in TEST], wanted) == pytest.approx(
        accuracy(wanted, found) / 100
    )


def test_named_columns():
    tagger = Tagger(features=["form[0]", "tag[0]", "1[1]"], columns=["form", "tag"], epochs=1)
    tagger.fit(FEW)
    assert [view.column for view in tagger.task_.encoder_.views.values()] == [0, 1]
    before = tagger.predict(WORDS)
    with pytest.raises(BadTemplate, match="found the column 'w', expected one of form, tag"):
        tagger.set_params(features=["w[0]"]).fit(FEW)
    assert tagger.predict(WORDS) == before  # what fails leaves the model as it was


# Size and memory


def test_rows_that_are_all_zero_are_left_out(fitted):
    assert (fitted.weights_.v != 0).any(axis=1).all()
    assert fitted.training_.best is not None
    assert weights(fitted) == as_names(fitted.training_.best)
    size = fitted.size_
    assert size.features == len({key for key, _ in weights(fitted)})
    assert size.weights == len(weights(fitted))
    assert size.bytes == fitted.weights_.slots.nbytes + fitted.weights_.v.nbytes


def test_hashing_bounds_the_rows():
    tagger = Tagger(features=CHUNKING, queue=1, epochs=2, hash_bits=8).fit(TRAIN)
    assert tagger.size_.features <= 256
    assert {key for key, _ in weights(tagger)} <= set(range(256))
    assert tagger.score(TEST) > 0.4
    assert tagger.weights_.ints[at.BITS] == 8


# scikit-learn's conventions


def test_parameters_are_stored_as_given_and_cloned():
    parameters = {
        "features": ("w[0]", "label[-1]"),
        "queue": beam(3),
        "update": alma(alpha=0.8),
        "strategy": early,
        "constraints": {"a": ["b"]},
    }
    tagger = Tagger(**parameters)  # type: ignore[arg-type]
    assert all(tagger.get_params()[name] is value for name, value in parameters.items())
    copy = clone(tagger)
    assert copy.get_params().keys() == tagger.get_params().keys()
    assert copy.update == tagger.update
    assert copy.features == tagger.features
    assert not hasattr(copy, "weights_")
    before = dict(tagger.get_params())
    tagger.set_params(constraints=None).fit(FEW)
    assert {**tagger.get_params(), "constraints": 0} == {**before, "constraints": 0}


def test_a_grid_search_picks_a_parameter():
    y = [[token[2] for token in sentence] for sentence in FEW]
    X = [[token[:2] for token in sentence] for sentence in FEW]
    grid = {"features": [["bias"], ["pos[0]", "w[0]"]]}
    found = GridSearchCV(Tagger(queue=1, epochs=2), grid, cv=2).fit(X, y)
    assert found.best_params_ == {"features": ["pos[0]", "w[0]"]}


def test_a_fitted_tagger_can_be_pickled(fitted):
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(WORDS) == fitted.predict(WORDS)


def test_prediction_needs_a_fitted_tagger():
    for call in (lambda t: t.predict(WORDS), lambda t: t.score(TEST), lambda t: t.size_):
        with pytest.raises(NotFittedError):
            call(Tagger())


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": 0}, "epochs must be a whole number from 1 to 2 ** 31, found 0"),
        ({"patience": 0}, "patience must be None or from 1 up, found 0"),
        ({"threads": 0}, "threads must be None or from 1 to 1024, found 0"),
        ({"held_out": 1.0}, "held_out must be None or a fraction between 0 and 1, found 1.0"),
        ({"hash_bits": 63}, "hash_bits must be 0 to 62, found 63"),
        ({"dtype": "int8"}, "dtype must be 'float32' or 'float64', found 'int8'"),
        ({"constraints": "BILOU"}, "constraints must be None, 'BIO', 'IOBES' or a table, found"),
        ({"queue": 0}, "the width of a beam must be a whole number from 1 up, found 0"),
        ({"queue": hill_climbing()}, "the compiled engine has the queues"),
        ({"update": perceptron(kernel=polynomial_kernel(2))}, "the compiled engine has no kernels"),
        ({"strategy": len}, "the compiled engine has no strategy"),
        ({"columns": ["a"]}, "columns has 1 names, but the data has 2 columns"),
        ({"columns": ["a", "a"]}, "columns has a name twice: a, a"),
        ({"columns": ["a", "label"]}, "found the column name 'label', expected letters"),
        ({"columns": ["a", "b c"]}, "found the column name 'b c', expected letters"),
        ({"held_out": 0.999}, "held_out=0.999 leaves none of 2 examples to learn from"),
    ],
)
def test_parameters_are_checked_by_fit(parameters, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011
        Tagger(**parameters).fit(FEW[:2])
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], None, "found no token to learn from"),
        ([[]], [[]], "found no token to learn from"),
        ([["a"]], None, "found no labels: expected y"),
        ([[["f"]]], None, "found no labels: expected y"),
        ([["a"]], [[None]], "found no label that is known"),
        ([["a"]], [["X", "Y"]], "sentence 1: found 2 labels, expected 1"),
    ],
)
def test_data_are_checked_by_fit(X, y, message):
    with pytest.raises(BadData) as error:
        Tagger().fit(X, y)
    assert message in str(error.value)


def test_importing_laso_is_light_and_finds_the_tagger():
    code = (
        "import sys, laso; assert not {'numba', 'sklearn', 'numpy'} & set(sys.modules);"
        "assert laso.Tagger.__module__ == 'laso.estimators.products.tagger'; laso.Taggers"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stderr.strip().endswith("module 'laso' has no attribute 'Taggers'")


def test_a_model_loaded_answers_without_numba(tmp_path):
    tagger = Tagger(features=["w[0]"]).fit([["a", "b"]], [["X", "Y"]])
    tagger.save(tmp_path / "model.laso")  # and what it needs is compiled now
    code = (
        "import sys, laso; print(laso.Tagger.load(sys.argv[1]).predict([['b', 'a']]),"
        "sorted({'numba', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "model.laso")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout == "[['Y', 'X']] []\n"


# Scores


def test_the_score_follows_the_labels():
    bio = [["B-X", "I-X", "O"]]
    assert main_score(bio, [["B-X", "I-X", "B-X"]]) == pytest.approx(2 / 3)
    iobes = [["B-X", "E-X", "S-X"]]
    assert main_score(iobes, [["B-X", "E-X", "O"]]) == pytest.approx(2 / 3)
    assert main_score([["A", "B"]], [["A", "A"]]) == 0.5
    assert main_score([["O", "O"]], [["O", "O"]]) == 0.0  # as conlleval says
    assert main_score([["B-X", None]], [["B-X", "O"]]) == 1.0


# CoNLL-2000


def test_the_chunking_task_of_conll_2000():
    try:
        folder = find_corpus("conll2000")
    except MissingData as error:
        pytest.skip(str(error))
    tagger = Tagger(features=CHUNKING, queue=greedy(), epochs=5, seed=1).fit(folder / "train.txt")
    assert tagger.score(folder / "test.txt") >= 0.93


@settings(quick, max_examples=5)
@given(st.integers(0, 10**6))
def test_a_run_is_a_function_of_data_and_seed(seed):
    one, two = (Tagger(features=["w[0]"], queue=1, epochs=1, seed=seed).fit(FEW) for _ in "ab")
    assert weights(one) == weights(two)


def test_what_is_learned_does_not_depend_on_the_hash_seed(tmp_path):
    code = (
        "from laso import Tagger; from laso.data import load_bundled; import sys;"
        "t = Tagger(features=['w[0]', 'w.lower[0]', 'label[-1]'], queue=1, epochs=1);"
        "t.fit(load_bundled()[0][:60]).save(sys.argv[1])"
    )
    there, here = tmp_path / "there", tmp_path / "here"
    env = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run([sys.executable, "-c", code, str(there)], env=env, check=True)
    texts = ["w[0]", "w.lower[0]", "label[-1]"]
    Tagger(features=texts, queue=1, epochs=1).fit(FEW).save(here)
    assert there.read_bytes() == here.read_bytes()
