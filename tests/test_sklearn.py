"""scikit-learn's conventions, and the calls of sklearn-crfsuite's CRF."""

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils import Tags, TargetTags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

from laso import CRF, BadData, Chunker, Tagger
from laso.data import load_bundled

ROOT = Path(__file__).parents[1]
TRAIN, TEST = load_bundled()
WORDS = [[token[:2] for token in sentence] for sentence in TRAIN[:40]]
TAGS = [[token[2] for token in sentence] for sentence in TRAIN[:40]]

MATRIX = "it fits a matrix with one label a row, where X is a list of sentences"
MESSAGE = "it wants the words of scikit-learn's own message in the error"
SPARSE = "it fits one sparse matrix, where each sentence is one"
# The checks of scikit-learn that cannot be passed, with the reason; a document has the same list.
EXPECTED = {
    "check_complex_data": MESSAGE,
    "check_dict_unchanged": MATRIX,
    "check_dont_overwrite_parameters": MATRIX,
    "check_dtype_object": MATRIX,
    "check_estimator_sparse_array": SPARSE,
    "check_estimator_sparse_matrix": SPARSE,
    "check_estimator_sparse_tag": SPARSE,
    "check_estimators_dtypes": MATRIX,
    "check_estimators_empty_data_messages": MESSAGE,
    "check_estimators_fit_returns_self": MATRIX,
    "check_estimators_nan_inf": MATRIX,
    "check_estimators_overwrite_params": MATRIX,
    "check_estimators_pickle": MATRIX,
    "check_f_contiguous_array_estimator": MATRIX,
    "check_fit2d_1feature": MATRIX,
    "check_fit2d_1sample": MATRIX,
    "check_fit2d_predict1d": MATRIX,
    "check_fit_check_is_fitted": MATRIX,
    "check_fit_idempotent": MATRIX,
    "check_fit_score_takes_y": MATRIX,
    "check_methods_sample_order_invariance": MATRIX,
    "check_methods_subset_invariance": MATRIX,
    "check_n_features_in": MATRIX,
    "check_n_features_in_after_fitting": MATRIX,
    "check_pipeline_consistency": MATRIX,
    "check_positive_only_tag_during_fit": MATRIX,
    "check_readonly_memmap_input": MATRIX,
}


def features(sentences):
    return [[{"w": word, "pos": pos} for word, pos, *_ in sentence] for sentence in sentences]


@pytest.mark.filterwarnings("ignore:Estimator .* does not inherit")
@pytest.mark.filterwarnings("ignore:Can't test estimator")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.EstimatorCheckFailedWarning")
@pytest.mark.parametrize("estimator", [Tagger, Chunker, CRF])
def test_the_checks_of_scikit_learn_pass_but_for_those_listed(estimator):
    class AsForMatrices(estimator):  # type: ignore[misc, valid-type]
        """What the checks are for; by its own tags only few would be tried."""

        def __sklearn_tags__(self):
            return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    results = check_estimator(AsForMatrices(), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    assert failed <= set(EXPECTED)  # another version of scikit-learn may have fewer of them
    assert len(passed) >= 10
    check_estimator(estimator(), on_skip=None)


@pytest.mark.parametrize(
    "estimator", [Tagger(epochs=2), Chunker(epochs=2, features="paper"), CRF(max_iterations=3)]
)
def test_what_these_checks_are_about_holds_for_sentences(estimator):
    X = features(WORDS) if isinstance(estimator, CRF) else WORDS
    before = copy.deepcopy((X, TAGS, estimator.get_params()))
    model = clone(estimator)
    assert model.fit(X, TAGS) is model
    found = list(model.predict(X))
    assert (X, TAGS, model.get_params()) == before  # nothing handed in is changed
    assert list(clone(estimator).fit(X, TAGS).predict(X)) == found  # the same again
    assert list(model.fit(X, TAGS).predict(X)) == found
    assert list(model.predict(X[::-1])) == found[::-1]  # whatever the order
    assert [model.predict_single(x) for x in X] == found  # or together
    known = dict(vars(model))
    model.predict(X)
    assert vars(model) == known
    assert list(pickle.loads(pickle.dumps(model)).predict(X)) == found
    check_is_fitted(model)
    wrong: list[Any] = [[], [[]], None, 3, ["text"], np.ones(3)]
    for bad in wrong:
        with pytest.raises(BadData):
            clone(estimator).fit(bad, [["a"]])


@pytest.mark.parametrize("estimator", [Tagger(epochs=1), Chunker(epochs=1, features="paper")])
def test_cross_validation_and_searches(estimator):
    scores = cross_val_score(estimator, WORDS, TAGS, cv=3, error_score="raise")
    assert len(scores) == 3
    assert all(0 < score <= 1 for score in scores)
    search = GridSearchCV(estimator, {"queue": [1, 3]}, cv=2, error_score="raise")
    search.fit(WORDS, TAGS)
    assert search.best_params_["queue"] in (1, 3)
    assert search.predict(WORDS) == search.best_estimator_.predict(WORDS)
    random = RandomizedSearchCV(estimator, {"epochs": [1, 2]}, n_iter=2, cv=2, random_state=0)
    assert random.fit(WORDS, TAGS).best_estimator_.weights_ is not None


def test_pipelines():
    line = Pipeline([("features", FunctionTransformer(features)), ("tagger", Tagger(epochs=1))])
    line.set_params(tagger__queue=2)
    assert line.fit(WORDS, TAGS).score(WORDS, TAGS) > 0.5
    assert line.named_steps["tagger"].queue == 2
    alone = Tagger(epochs=1, queue=2).fit(features(WORDS), TAGS)
    assert line.predict(WORDS) == alone.predict(features(WORDS))


@pytest.mark.parametrize(
    "estimator", [Tagger(epochs=3), Chunker(max_chunk_length=4), CRF(c2=0.3)], ids=repr
)
def test_parameters_come_and_go(estimator):
    again = clone(estimator)
    assert again.get_params() == estimator.get_params()
    assert repr(again) == repr(estimator)
    with pytest.raises(ValueError, match="has no parameter 'what'"):
        again.set_params(what=1)


def test_arrays_of_objects_are_sentences_too():
    X = np.empty(len(WORDS), dtype=object)
    X[:] = WORDS
    y = np.empty(len(TAGS), dtype=object)
    y[:] = TAGS
    tagger = Tagger(epochs=1).fit(X, y)
    assert tagger.predict(X) == Tagger(epochs=1).fit(WORDS, TAGS).predict(WORDS)


def test_the_list_of_exceptions_is_that_of_the_document():
    text = (ROOT / "docs/how-to/use-scikit-learn.md").read_text(encoding="utf-8")
    for name, reason in EXPECTED.items():
        assert f"| `{name}` | {reason} |" in text
