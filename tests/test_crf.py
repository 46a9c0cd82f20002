"""``CRF`` in place of sklearn-crfsuite's: parameters, features, attributes, files, the log."""

import inspect
import itertools
import math
import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import RandomizedSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

from laso import CRF, BadData, BadFeature, Tagger, load_model, metrics
from laso.crfsuite import ItemSequence, Trainer
from laso.crfsuite.parameters import ALGORITHMS, PARAMETERS
from laso.data import find_corpus, load_bundled, read_columns
from laso.errors import MissingData

TRAIN, TEST = load_bundled()
TAGS = [[token[2] for token in sentence] for sentence in TRAIN[:40]]
THEIRS = [
    *("algorithm", "min_freq", "all_possible_states", "all_possible_transitions", "c1", "c2"),
    *("max_iterations", "num_memories", "epsilon", "period", "delta", "linesearch"),
    *("max_linesearch", "calibration_eta", "calibration_rate", "calibration_samples"),
    *("calibration_candidates", "calibration_max_trials", "pa_type", "c", "error_sensitive"),
    *("averaging", "variance", "gamma", "verbose", "model_filename", "keep_tempfiles"),
    "trainer_cls",
]
SEQUENCE = [
    {"sun": 1, "wind": 0.5},
    {"sun": True, "rain": False},
    {"rain": 2.0, "cloud": "grey"},
    {},
    {"rain": 1, "cloud": b"black"},
]
LABELS = ["dry", "dry", "wet", "dry", "wet"]


def features(sentences):
    return [[{"w": word, "pos": pos} for word, pos, *_ in sentence] for sentence in sentences]


X = features(TRAIN[:40])


@pytest.fixture(scope="module")
def crf():
    return CRF(c2=0.1, max_iterations=30).fit(X, TAGS)


# Parameters


def test_parameters_are_those_of_sklearn_crfsuite_in_their_order():
    given = list(inspect.signature(CRF).parameters.values())
    own_names = [each.name for each in given if each.kind is each.KEYWORD_ONLY]
    assert own_names == ["seed", "threads", "shards", "mixing", "n_jobs"]
    given = given[: -len(own_names)]
    assert [each.name for each in given] == THEIRS
    defaults = {each.name: each.default for each in given}
    own = {name: defaults.pop(name) for name in ("verbose", "keep_tempfiles")}
    assert own == {"verbose": False, "keep_tempfiles": False}
    assert set(defaults.values()) == {None}
    assert {each.field for each in PARAMETERS} == set(THEIRS[1:-4])


def test_none_stands_for_the_defaults_of_crfsuite():
    most = {name: CRF(name).parameter("max_iterations") for name in ALGORITHMS}
    assert most == {"lbfgs": 2**31 - 1, "l2sgd": 1000, "ap": 100, "pa": 100, "arow": 100}
    assert CRF().parameter("epsilon") == CRF().parameter("delta") == 1e-5
    assert CRF("l2sgd").parameter("delta") == 1e-6
    assert CRF(c2=3).parameter("c2") == 3.0


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_algorithms(algorithm):
    found = CRF(algorithm, max_iterations=5).fit(X, TAGS)
    assert found.n_iter_ <= 5
    assert found.score(X, TAGS) > 0.5
    assert len(found.training_log_.iterations) == found.n_iter_


def test_lbfgs_runs_until_it_converges():
    found = CRF().fit(X, TAGS)
    assert found.converged_
    assert found.n_iter_ > 10


def test_l2sgd_stops_when_the_likelihood_stops_to_improve():
    slow, fast = (CRF("l2sgd", period=period, delta=1e-3).fit(X, TAGS) for period in (10, 2))
    assert fast.converged_
    assert slow.converged_
    assert fast.n_iter_ < slow.n_iter_ < 1000


def test_epsilon_is_the_fraction_of_errors_at_which_ap_stops():
    assert CRF("ap", epsilon=0.9).fit(X, TAGS).n_iter_ < CRF("ap").fit(X, TAGS).n_iter_


def test_arow_goes_on_where_it_stopped(tmp_path):
    whole = CRF("arow", variance=0.5, gamma=2.0, max_iterations=4).fit(X, TAGS)
    half = CRF("arow", variance=0.5, gamma=2.0, max_iterations=2).fit(X, TAGS)
    half.save(tmp_path / "half", training=True)
    again = CRF.load(tmp_path / "half").resume(X, TAGS, epochs=4)
    assert again.state_features_ == pytest.approx(whole.state_features_)
    assert half.state_features_ != whole.state_features_


def test_states_and_transitions_are_separate():
    none = CRF(max_iterations=3).fit(X, TAGS)
    states = CRF(max_iterations=3, all_possible_states=True).fit(X, TAGS)
    transitions = CRF(max_iterations=3, all_possible_transitions=True).fit(X, TAGS)
    assert len(states.state_features_) > len(none.state_features_)
    assert len(transitions.state_features_) == len(none.state_features_)
    assert len(states.transition_features_) == len(none.transition_features_)
    n = len(none.classes_)
    assert len(transitions.transition_features_) == n * n
    for each in (none, states, transitions):
        weights = len(each.state_features_) + len(each.transition_features_)
        assert each.training_log_.featgen_num_features == weights


def test_the_l1_prior_makes_weights_zero(crf):
    sparse = CRF(c1=0.5, c2=0.1, max_iterations=30).fit(X, TAGS)
    assert len(sparse.state_features_) < len(crf.state_features_) / 2


def test_rare_attributes_are_left_out():
    frequent = CRF(min_freq=5, max_iterations=3).fit(X, TAGS)
    pairs: dict[tuple[str, str], int] = {}
    for sentence, tags in zip(X, TAGS, strict=True):
        for token, tag in zip(sentence, tags, strict=True):
            for name, value in token.items():
                pair = f"{name}:{value}", tag
                pairs[pair] = pairs.get(pair, 0) + 1
    assert set(frequent.attributes_) == {name for (name, _), n in pairs.items() if n >= 5}


def test_what_has_no_effect_warns_once():
    given = CRF("ap", c1=0.1, gamma=2, keep_tempfiles=True, max_iterations=1)
    with pytest.warns(UserWarning, match=r"'ap': keep_tempfiles=True, c1=0.1, gamma=2") as found:
        given.fit(X, TAGS)
    assert len(found) == 1
    assert CRF(linesearch="Backtracking").without_effect() == ["linesearch"]
    assert CRF(linesearch="MoreThuente", max_linesearch=20, c1=1, c2=2).without_effect() == []
    assert CRF("pa", pa_type=2, error_sensitive=True).without_effect() == [
        "pa_type",
        "error_sensitive",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CRF(c1=0.1, period=5, delta=1e-3, max_iterations=2).fit(X, TAGS)


@pytest.mark.parametrize(
    "wrong",
    [
        {"algorithm": "newton"},
        {"c2": -1},
        {"max_iterations": 0},
        {"linesearch": "none"},
        {"pa_type": 3},
        {"c": 0},
    ],
)
def test_parameters_that_make_no_sense(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        CRF(**wrong).fit(X, TAGS)


def test_l2_prior_of_0_is_none():
    assert CRF(c2=0).update_rule(CRF().make_task()).variance == math.inf  # type: ignore[attr-defined]


# Feature values


def test_all_forms_of_features_are_the_same():
    y = [["A", "B", "A"]]
    dicts = [[{"a": 1.0, "b:c": 1.0}, {"a": 1.0}, {}]]
    for same in (
        [[["a", "b:c"], ["a"], []]],
        [[("a", "b:c"), ("a",), ()]],
        [[{"a", "b:c"}, frozenset(["a"]), set()]],
        [[{"a": 0, "b:c": 0}.keys(), {"a": 0}.keys(), {}.keys()]],
        [[[b"a", b"b:c"], [b"a"], []]],
        [[np.array(["a", "b:c"]), np.array(["a"]), []]],
        [[{"a": True, "b": "c"}, {"a": True, "z": False}, {}]],
        [[{b"a": np.float32(1), "b": b"c"}, {"a": np.bool_(True)}, {}]],
        [[{"a": 1, "b": {"c": 1}}, {"a": 1}, {}]],
        [[{"a": 1, "b": ["c"]}, {"a": 1}, {"z": {}}]],
        [[{"a": 1, "b": ("c",)}, {"a": 1}, {}]],
        [[{"a": 1, "b": {"c": 0}.keys()}, ["a"], {}]],
        [[{"a": 1, "b": np.str_("c")}, {"a": np.int64(1)}, {}]],
        [iter([{"a": 1, "b": "c"}, {"a": 1}, {}])],
        [ItemSequence([{"a": 1, "b": "c"}, {"a": 1}, {}])],
    ):
        found, expected = (CRF(max_iterations=3).fit(data, y) for data in (same, dicts))
        assert found.state_features_ == expected.state_features_
        assert found.state_features_


@pytest.mark.parametrize(
    "token", ["text", b"bytes", 3, None, {1: 2}, [1], {"a": object()}, {"a": [["b", 1]]}]
)
def test_other_tokens_are_errors_with_their_position(token):
    with pytest.raises(BadData, match="sentence 1, token 2"):
        CRF().fit([[{}, token]], [["A", "B"]])
    with pytest.raises(BadFeature, match="finite"):
        CRF().fit([[{"a": math.nan}]], [["A"]])


@pytest.mark.parametrize("wrong", ["file.txt", "text", None, 3, [["a"], "b"], {"a": 1}])
def test_other_inputs_are_errors(wrong):
    with pytest.raises(BadData):
        CRF().fit(wrong, [["A"]])


# What is learned


def test_everything_is_none_before_fit():
    new = CRF()
    for name in ("tagger_", "classes_", "size_", "attributes_", "num_attributes_"):
        assert getattr(new, name) is None
    assert new.state_features_ is new.transition_features_ is new.training_log_ is None
    with pytest.raises(NotFittedError):
        new.predict(X)


def test_what_is_learned(crf):
    assert isinstance(crf.classes_, list)
    assert sorted(crf.classes_) == sorted({tag for tags in TAGS for tag in tags})
    assert crf.tagger_.labels() == crf.classes_
    assert crf.size_ > 1000
    assert crf.num_attributes_ == len(crf.attributes_) == len(set(crf.attributes_))
    assert "w:the" in crf.attributes_
    assert {name for name, _ in crf.state_features_} == set(crf.attributes_)
    for pairs in (crf.state_features_, crf.transition_features_):
        assert all(label in crf.classes_ for _, label in pairs)
        assert {type(weight) for weight in pairs.values()} == {float}
    assert all(label in crf.classes_ for label, _ in crf.transition_features_)


def test_predictions_are_arrays_as_there(crf):
    test = features(TEST[:5])
    found = crf.predict(test)
    assert found.dtype == object
    assert [type(labels) for labels in found] == [list] * 5
    assert [crf.predict_single(x) for x in test] == list(found)
    same = [x[:2] for x in test]
    rows = crf.predict(same)
    assert rows.shape == (5, 2)
    assert (rows == [labels.tolist() for labels in rows]).all()
    assert (crf.predict(test[:1]) == found[0]).all()
    marginals = crf.predict_marginals(test)
    assert [len(tokens) for tokens in marginals] == list(map(len, test))
    assert crf.predict_marginals_single(test[0]) == marginals[0]
    for token in itertools.chain.from_iterable(marginals):
        assert list(token) == crf.classes_
        assert sum(token.values()) == pytest.approx(1.0)


def test_the_score_is_token_accuracy(crf):
    y = [[token[2] for token in sentence] for sentence in TEST]
    expected = metrics.flat_accuracy_score(y, crf.predict(features(TEST)))
    assert crf.score(features(TEST), y) == pytest.approx(expected)


def test_the_weights_told_are_those_that_score(crf):
    """The score of a labelling is the sum of its state and transition features."""
    state, transition = crf.state_features_, crf.transition_features_
    sentence = features([TEST[0][:3]])[0]
    names = [[f"{name}:{value}" for name, value in token.items()] for token in sentence]
    for score, labels in crf.predict_nbest([sentence], 500)[0]:
        tokens = sum(
            state.get((name, label), 0.0)
            for some, label in zip(names, labels, strict=True)
            for name in some
        )
        pairs = sum(transition.get(pair, 0.0) for pair in itertools.pairwise(labels))
        assert score == pytest.approx(tokens + pairs, abs=1e-4)


def test_features_whose_names_look_like_templates():
    y = [["label[-1]=(none)", "b | c", "label[-1]=(none)"]]
    found = CRF(max_iterations=3).fit([[["label[-1]=x"], [" | "], ["(none)"]]], y)
    assert set(found.attributes_) == {"label[-1]=x", " | ", "(none)"}
    assert set(found.transition_features_) == {tuple(y[0][:2]), tuple(y[0][1:])}


def test_one_tagger_until_the_next_fit():
    found = CRF(max_iterations=2).fit([SEQUENCE], [LABELS])
    found.tagger_.set(SEQUENCE)
    assert found.tagger_.marginal("dry", 0) == found.predict_marginals_single(SEQUENCE)[0]["dry"]
    before = found.tagger_
    assert found.fit([SEQUENCE], [LABELS]).tagger_ is not before


# Development data and the log


def test_development_data_are_scored_and_change_nothing(capsys):
    alone = CRF(max_iterations=5).fit(X[:30], TAGS[:30])
    found = CRF(max_iterations=5, verbose=True).fit(X[:30], TAGS[:30], X[30:], TAGS[30:])
    assert found.state_features_ == alone.state_features_
    log = found.training_log_
    assert [each["num"] for each in log.iterations] == [1, 2, 3, 4, 5]
    last = log.last_iteration
    right = metrics.flat_accuracy_score(TAGS[30:], found.predict(X[30:]))
    assert last["item_accuracy_float"] == pytest.approx(right)
    whole = metrics.sequence_accuracy_score(TAGS[30:], found.predict(X[30:]))
    assert last["instance_accuracy_float"] == pytest.approx(whole)
    score = last["scores"]["B-NP"]
    assert score.ref == sum(tags.count("B-NP") for tags in TAGS[30:])
    assert last["avg_f1"] == pytest.approx(
        np.mean([each.f1 or 0.0 for each in last["scores"].values()]), abs=1e-4
    )
    losses = [each["loss"] for each in log.iterations]
    assert losses == sorted(losses, reverse=True)
    assert last["loss"] == pytest.approx(loss(found, X[:30], TAGS[:30]), rel=1e-3)
    weights = [*found.state_features_.values(), *found.transition_features_.values()]
    assert last["feature_norm"] == pytest.approx(math.hypot(*weights), rel=1e-4)
    assert last["active_features"] == len(weights)
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("Iter ") for line in lines) == 5
    with pytest.raises(ValueError, match="X_dev and y_dev belong together"):
        CRF().fit(X, TAGS, X)


def loss(crf, X, y):
    """The negative log-likelihood with the L2 prior (c2 = 1)."""
    total = 0.0
    for x, labels in zip(X, y, strict=True):
        crf.tagger_.set(x)
        total -= math.log(crf.tagger_.probability(labels))
    weights = [*crf.state_features_.values(), *crf.transition_features_.values()]
    return total + sum(weight**2 for weight in weights)


def test_nothing_is_printed_unless_verbose(capsys):
    CRF(max_iterations=2).fit(X, TAGS)
    assert capsys.readouterr().out == ""


def test_a_trainer_of_ones_own_receives_the_log():
    class Quiet(Trainer):
        seen: list[int] = []  # noqa: RUF012

        def on_iteration(self, log, info):
            self.seen.append(info["num"])

    given = CRF("l2sgd", max_iterations=3, verbose=True, trainer_cls=Quiet)
    found = clone(given).fit(X, TAGS)
    assert Quiet.seen == [1, 2, 3]
    assert len(found.training_log_.iterations) == 3


# Files


def test_model_filename(tmp_path):
    path = tmp_path / "model.laso"
    found = CRF(model_filename=str(path), max_iterations=5).fit([SEQUENCE], [LABELS])
    new = CRF(model_filename=path)
    assert new.score([SEQUENCE], [LABELS]) == 1.0
    assert CRF(model_filename=path).classes_ == found.classes_
    assert CRF(model_filename=path).predict_single(SEQUENCE) == LABELS
    assert str(tmp_path).encode() not in path.read_bytes()
    new.fit([SEQUENCE[:2]], [["one", "two"]])  # the old file has no part in it
    assert new.classes_ == ["one", "two"] == CRF(model_filename=path).classes_
    with pytest.raises(NotFittedError):
        CRF(model_filename=tmp_path / "none").predict([SEQUENCE])
    assert CRF(model_filename=tmp_path / "none").tagger_ is None


def test_copies_and_files_predict_the_same(crf, tmp_path):
    test = features(TEST[:5])
    labels = list(crf.predict(test))
    assert crf.tagger_ is not None
    joblib.dump(crf, tmp_path / "crf.joblib")
    dumped = joblib.load(tmp_path / "crf.joblib")
    for again in (pickle.loads(pickle.dumps(crf)), dumped, crf.with_weights(crf.weights_)):
        assert list(again.predict(test)) == labels
        assert again.tagger_.tag(test[0]) == labels[0]
    crf.save(tmp_path / "crf.laso")
    loaded = load_model(tmp_path / "crf.laso")
    assert isinstance(loaded, CRF)
    assert list(loaded.predict(test)) == labels
    assert loaded.state_features_ == crf.state_features_
    assert loaded.get_params() == crf.get_params()


def test_trainers_are_not_in_the_file(tmp_path):
    found = CRF(trainer_cls=Trainer, verbose=False, max_iterations=2).fit([SEQUENCE], [LABELS])
    found.save(tmp_path / "crf.laso")
    assert load_model(tmp_path / "crf.laso").get_params()["trainer_cls"] is None


# With scikit-learn, as its tutorial does


def word_features(sentence, i):
    word = sentence[i][0]
    found = {
        "bias": 1.0,
        "word.lower()": word.lower(),
        "word[-3:]": word[-3:],
        "word.isupper()": word.isupper(),
        "word.istitle()": word.istitle(),
        "word.isdigit()": word.isdigit(),
    }
    for name, j in (("-1:", i - 1), ("+1:", i + 1)):
        if 0 <= j < len(sentence):
            near = sentence[j][0]
            found |= {f"{name}word.lower()": near.lower(), f"{name}title": near.istitle()}
    return (
        found
        | ({"BOS": True} if i == 0 else {})
        | ({"EOS": True} if i + 1 == len(sentence) else {})
    )


def all_features(sentences):
    return [[word_features(s, i) for i in range(len(s))] for s in sentences]


def test_the_tutorial_of_sklearn_crfsuite():
    try:
        path = find_corpus("wnut17") / "train.conll"
    except MissingData as missing:
        pytest.skip(str(missing))
    sentences = [s for s in read_columns(path) if any(token[-1] != "O" for token in s)][:120]
    train, test = sentences[:90], sentences[90:]
    y_train, y_test = ([[token[-1] for token in s] for s in some] for some in (train, test))
    X_train, X_test = map(all_features, (train, test))
    crf = CRF(algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True)
    crf.fit(X_train, y_train)
    labels = [label for label in crf.classes_ if label != "O"]
    y_pred = crf.predict(X_test)
    f = metrics.flat_f1_score(y_test, y_pred, average="weighted", labels=labels, zero_division=0.0)
    assert 0.0 < f < 1.0
    shown = sorted(labels, key=lambda name: (name[1:], name[0]))
    report = metrics.flat_classification_report(
        y_test, y_pred, labels=shown, digits=3, zero_division=0.0
    )
    assert all(label in report for label in labels)
    scorer = make_scorer(
        metrics.flat_f1_score, average="weighted", labels=labels, zero_division=0.0
    )
    search = RandomizedSearchCV(
        CRF(max_iterations=10, all_possible_transitions=True),
        {"c1": [0.01, 0.1], "c2": [0.01, 0.1]},
        cv=2,
        n_jobs=1,
        n_iter=2,
        scoring=scorer,
        random_state=0,
        error_score="raise",
    )
    search.fit(X_train, y_train)
    assert set(search.best_params_) == {"c1", "c2"}
    best = search.best_estimator_
    assert best.size_ > 1000
    assert len(best.predict(X_test)) == len(test)
    crossed = cross_val_predict(CRF(max_iterations=10), X_train, y_train, cv=3)
    assert [len(tags) for tags in crossed] == [len(tags) for tags in y_train]
    scores = cross_val_score(CRF(max_iterations=5), X_train, y_train, cv=3, error_score="raise")
    assert all(score > 0.5 for score in scores)
    line = Pipeline([("features", FunctionTransformer(all_features)), ("crf", crf)])
    assert line.fit(train, y_train).score(test, y_test) == crf.score(X_test, y_test)


def test_a_crf_is_a_tagger_with_exact_search(crf):
    assert isinstance(crf, Tagger)
    assert crf.predict_forced([X[0]], known=[["O"] + [None] * (len(X[0]) - 1)])[0][0] == "O"
    assert crf.inspect()["labels"]
