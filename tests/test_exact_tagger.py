"""The tagger with exact search: what it finds, how it learns, goes on and is saved."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from laso import (
    Tagger,
    adagrad,
    alma,
    beam,
    early,
    exact,
    fit,
    greedy,
    lbfgs,
    perceptron,
    predict,
    sgd,
    standard,
)
from laso.data import load_bundled
from laso.engine.machine import as_names
from laso.engine.reference import Reference, input_of
from laso.engine.weights.row_layouts import densified, is_sparse
from laso.estimators import Checkpoint
from laso.examples.tagging import Tagging as Example
from laso.features import CHUNKING
from laso.features.inputs import read_input
from laso.search import search
from laso.tasks.tagging.problem import Tagging, WeightedTagging
from laso.vectors import Linear
from tests.interruption import StopAfter

TRAIN, TEST = load_bundled()
FEW = TRAIN[:60]
WORDS = [[token[:2] for token in sentence] for sentence in TEST]
RULES: list[Any] = [perceptron(), alma(), adagrad(), sgd(), lbfgs(iterations=5)]
TEXTS = ["w[0]", "pos[0]", "pos[-1]|pos[0]", "label[-1]", "label[-1]|pos[0]"]


def weights(tagger):
    return as_names(tagger.weights_)


@pytest.fixture(scope="module")
def field():
    return Tagger(features=TEXTS, queue=exact(), update=adagrad(), epochs=3).fit(TRAIN)


# What it finds


def labellings(tagger, sentence):
    """All labellings of a sentence with their scores, by the reference engine's features."""
    problem = Reference(Tagging, len(tagger.classes_))
    x = input_of(tagger.task_.encoder_.dataset(read_input([sentence])), 0)
    w = weights(tagger)
    found = {}
    for labels in itertools.product(range(len(tagger.classes_)), repeat=len(sentence)):
        state, score = problem.initial(x), 0.0
        for label in labels:
            phi = problem.features(x, state, (0, label))
            score += sum(w.get(name, 0.0) * value for name, value in phi.items())
            state = problem.apply(x, state, (0, label))
        found[tuple(tagger.classes_[list(labels)])] = score
    return found


def test_marginals_and_nbest_lists_are_those_of_all_labellings(field):
    small = [[(w, p, tag[:1]) for w, p, tag in sentence] for sentence in FEW]
    tagger = clone(field).fit(small)
    for sentence in (WORDS[0][:4], WORDS[3][:1], WORDS[5][:3]):
        scores = labellings(tagger, sentence)
        total = sum(map(math.exp, scores.values()))
        (marginals,) = tagger.predict_marginals([sentence])
        for i, found in enumerate(marginals):
            assert list(found) == list(tagger.classes_)
            for label, probability in found.items():
                mass = sum(math.exp(s) for labels, s in scores.items() if labels[i] == label)
                assert probability == pytest.approx(mass / total, abs=1e-6)
        (lists,) = tagger.predict_nbest([sentence], 5)
        best = sorted(scores.values(), reverse=True)[:5]
        assert [score for score, _ in lists] == pytest.approx(best, abs=1e-4)
        for score, labels in lists:
            assert scores[tuple(labels)] == pytest.approx(score, abs=1e-4)
        assert tagger.predict_single(sentence) == lists[0][1]


def test_marginals_and_nbest_lists_have_the_shape_of_the_input(field):
    X = [WORDS[0], [], WORDS[1]]
    marginals = field.predict_marginals(X)
    assert [len(s) for s in marginals] == [len(s) for s in X]
    for token in itertools.chain(*marginals):
        assert sum(token.values()) == pytest.approx(1.0)
    lists = field.predict_nbest(X, 3)
    assert [len(paths) for paths in lists] == [3, 1, 3]
    assert [paths[0][1] for paths in lists] == field.predict(X)
    assert lists[1] == [(0.0, [])]
    assert field.predict_marginals([]) == field.predict_nbest([], 2) == []


def test_the_more_probable_the_label_the_more_often_it_is_right(field):
    pairs = [
        (max(token.values()), max(token, key=token.__getitem__) == tag)
        for sentence, tokens in zip(TEST, field.predict_marginals(TEST), strict=True)
        for (*_, tag), token in zip(sentence, tokens, strict=True)
    ]
    sure = [right for probability, right in pairs if probability > 0.95]
    unsure = [right for probability, right in pairs if probability < 0.6]
    assert np.mean(sure) > 0.95 > 0.75 > np.mean(unsure)


def test_threads_change_nothing(field):
    four = clone(field).set_params(threads=4)
    for name in ("weights_", "task_", "classes_"):
        setattr(four, name, getattr(field, name))
    sentences = TRAIN + TEST
    assert four.predict(sentences) == field.predict(sentences)
    assert four.predict_nbest(TRAIN, 2) == field.predict_nbest(TRAIN, 2)
    assert four.predict_marginals(TRAIN[:300]) == field.predict_marginals(TRAIN[:300])


def test_what_is_found_is_what_the_reference_engine_finds_with_the_same_queue(field):
    problem, w = Reference(Tagging, len(field.classes_)), Linear(weights(field))
    for sentence in (WORDS[0][:6], WORDS[1][:4]):
        x = input_of(field.task_.encoder_.dataset(read_input([sentence])), 0)
        node = search(problem, x, w, exact())
        assert node is not None
        assert field.predict_single(sentence) == [field.classes_[b] for _, b in node.operators]


def test_constraints_and_values_of_features():
    tagger = Tagger(features=CHUNKING, queue=exact(), constraints="BIO", epochs=1)
    for labels in tagger.set_params(update=adagrad()).fit(FEW).predict(WORDS):
        before = ["O", *labels]
        pairs = zip(before, labels, strict=False)
        assert all(b[0] != "I" or a[1:] == b[1:] for a, b in pairs)
    forbidden = tagger.predict_marginals(WORDS[:5])
    assert all(s[0][label] == 0.0 for s in forbidden for label in s[0] if label[0] == "I")
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(n, 3)) for n in (3, 5, 4, 2) * 5]
    y = [["AB"[int(row[0] > row[1])] for row in sentence] for sentence in X]
    numeric = Tagger(queue=exact(), update=adagrad(), epochs=20).fit(X, y)
    assert (
        numeric.task_.problem_for(numeric.task_.encode(numeric.task_.read_inputs(X)))
        is WeightedTagging
    )
    assert numeric.score(X, y) > 0.9


# How it learns


@pytest.mark.parametrize("update", RULES)
@pytest.mark.parametrize("strategy", [standard, early])
def test_the_bundled_corpus_is_learned(update, strategy):
    tagger = Tagger(features=CHUNKING, queue=exact(), update=update, strategy=strategy, epochs=2)
    assert tagger.fit(TRAIN).score(TEST) > 0.7
    assert set(tagger.seconds_) == {"read", "features", "train"}


def test_the_papers_strategy_takes_the_whole_lattice_and_standard_the_best_path():
    tagger = Tagger(features=TEXTS, queue=exact(), epochs=1, average=False)
    whole = clone(tagger).fit(FEW[:5])
    best = clone(tagger).set_params(strategy=standard).fit(FEW[:5])
    assert all(value == int(value) for value in weights(best).values())
    assert any(value != int(value) for value in weights(whole).values())


def test_unknown_labels_need_no_other_strategy():
    """Every label that is known is known in exact search, however many are not."""
    hidden = [
        [(w, p, tag if j % 3 == 0 else None) for j, (w, p, tag) in enumerate(sentence)]
        for sentence in TRAIN
    ]
    tagger = Tagger(features=CHUNKING, queue=exact(), update=adagrad(), epochs=2).fit(hidden)
    assert tagger.score(TEST) > 0.6


def test_likelihood_is_not_averaged_unless_asked():
    tagger = Tagger(features=TEXTS, queue=exact(), update=adagrad(), epochs=2)
    default, last, mean = (
        weights(clone(tagger).set_params(average=average).fit(FEW))
        for average in (None, False, True)
    )
    assert default == last != mean


@pytest.mark.parametrize("update", RULES)
def test_held_out_scores_patience_and_the_best_epoch(update):
    reports: list[Any] = []
    tagger = Tagger(features=TEXTS, queue=exact(), update=update, epochs=5, patience=2)
    tagger.fit(FEW, dev=TEST, progress=reports.append)
    assert [r.score for r in reports if r.score is not None] == tagger.scores_
    assert len(tagger.scores_) == tagger.n_iter_ <= 5
    assert tagger.scores_[tagger.best_epoch_ - 1] == max(tagger.scores_)
    assert tagger.score(TEST) == max(tagger.scores_)
    stopped = tagger.n_iter_ - 1 - int(np.argmax(tagger.scores_)) >= 2
    assert stopped or tagger.n_iter_ == 5 or tagger.converged_


@pytest.mark.parametrize("update", RULES)
@pytest.mark.parametrize("dev", [None, TEST])
def test_an_interruption_keeps_what_was_learned(update, dev):
    tagger = Tagger(features=TEXTS, queue=exact(), update=update, epochs=5)
    tagger.fit(TRAIN, dev=dev, progress=StopAfter(1))
    assert tagger.interrupted_
    assert tagger.score(TEST) > 0.3
    tagger.resume(TRAIN, dev=dev, epochs=3)
    assert not tagger.interrupted_
    assert tagger.n_iter_ <= 3


# Going on and files


@pytest.mark.parametrize("average", [None, True])
@pytest.mark.parametrize("update", RULES[:-1])
@pytest.mark.parametrize("held_out", [None, 0.2])
def test_going_on_is_bit_identical_here_and_from_a_file(tmp_path, update, average, held_out):
    tagger = Tagger(
        features=TEXTS, queue=exact(), update=update, epochs=4, average=average, held_out=held_out
    )
    whole = clone(tagger).fit(FEW)
    part = clone(tagger).set_params(epochs=2).fit(FEW)
    part.save(tmp_path / "part", training=True)
    here = part.resume(FEW, epochs=4)
    there = Tagger.load(tmp_path / "part").resume(FEW, epochs=3)
    there.save(tmp_path / "part", training=True)
    there = Tagger.load(tmp_path / "part").resume(FEW, epochs=4)
    for other in (here, there):
        assert weights(other) == weights(whole)
        assert other.scores_ == whole.scores_
        assert other.training_ is not None
        assert whole.training_ is not None
        assert as_names(other.training_.table) == as_names(whole.training_.table)
        assert other.training_.clock == whole.training_.clock


def test_a_file_keeps_the_queue_and_the_update(field, tmp_path):
    field.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    assert again.update == field.update
    assert again.predict(WORDS) == field.predict(WORDS)
    assert again.predict_marginals(WORDS[:3]) == field.predict_marginals(WORDS[:3])
    for update in (sgd(rate=0.3, batch=2), lbfgs(support="pairs", iterations=1)):
        tagger = Tagger(features=["w[0]"], queue=exact(), update=update).fit(FEW[:3])
        tagger.save(tmp_path / "model")
        assert Tagger.load(tmp_path / "model").update == update


@pytest.mark.parametrize("update", [perceptron(), adagrad(), sgd()])
def test_passes_one_by_one(update):
    tagger = Tagger(features=TEXTS, queue=exact(), update=update, epochs=3)
    parts = clone(tagger)
    for _ in range(3):
        parts.partial_fit(FEW)
    assert weights(parts) == weights(clone(tagger).fit(FEW))


def test_lbfgs_goes_on_to_the_same_maximum():
    update = lbfgs(tolerance=1e-6, variance=1.0)
    tagger = Tagger(features=["w[0]", "label[-1]"], queue=exact(), update=update, dtype="float64")
    whole = clone(tagger).fit(FEW[:10])
    assert whole.converged_
    short = clone(tagger).set_params(update=lbfgs(variance=1.0, iterations=3)).fit(FEW[:10])
    assert not short.converged_
    assert short.n_iter_ == 3
    short.set_params(update=update).resume(FEW[:10], epochs=200)
    found, wanted = weights(short), weights(whole)
    assert all(found.get(k, 0.0) == pytest.approx(v, abs=1e-3) for k, v in wanted.items())


def test_a_killed_lbfgs_goes_on_to_the_same_maximum(tmp_path):
    update = lbfgs(tolerance=1e-6, variance=1.0)
    tagger = Tagger(features=["w[0]", "label[-1]"], queue=exact(), update=update, dtype="float64")
    whole = clone(tagger).fit(FEW[:10])

    class Killed(Exception):
        pass

    def killed(report):
        if report.epoch == 4:
            raise Killed

    path = tmp_path / "checkpoint"
    with pytest.raises(Killed):
        clone(tagger).fit(FEW[:10], progress=killed, checkpoint=Checkpoint(path, seconds=0))
    part = Tagger.load(path)
    assert part.n_iter_ == 3
    assert part.predict(WORDS)  # it is a model already
    part.resume(FEW[:10], epochs=200)
    assert part.converged_
    found, wanted = weights(part), weights(whole)
    assert all(found.get(k, 0.0) == pytest.approx(v, abs=1e-3) for k, v in wanted.items())
    assert part.predict(FEW[:10]) == whole.predict(FEW[:10])


# Errors


def test_what_needs_exact_search_says_so():
    tagger = Tagger(features=["w[0]"], queue=beam(2), epochs=1).fit(FEW[:3])
    with pytest.raises(ValueError, match="predict_marginals needs exact search: queue=exact"):
        tagger.predict_marginals(WORDS)
    with pytest.raises(ValueError, match="the likelihood needs exact search, queue=exact"):
        tagger.set_params(update=adagrad()).fit(FEW[:3])
    with pytest.raises(ValueError, match="exact\\(\\) without a signature, found"):
        tagger.set_params(queue=exact(len), update=None).fit(FEW[:3])
    with pytest.raises(ValueError, match="lbfgs\\(\\) needs all data at once"):
        tagger.set_params(queue=exact(), update=lbfgs()).partial_fit(FEW[:3])


@pytest.mark.parametrize("update", [adagrad(), sgd(), lbfgs()])
def test_the_reference_engine_refuses_what_it_does_not_have(update):
    data = [(["a"], ["X"])]
    problem = Example(["X", "Y"])
    with pytest.raises(ValueError, match="climbs the likelihood, which the reference engine"):
        fit(problem, data, queue=greedy(), update=update)
    with pytest.raises(ValueError, match="a key of your own needs a signature too"):
        exact(key=lambda node: node.depth)
    with pytest.raises(ValueError, match="found a state without a key of its own"):
        predict(problem, ["a"], Linear(), exact())


def test_a_model_of_many_labels_may_be_searched_exactly_later():
    """Its rows are sparse, and those of the lattice are dense."""
    words = [[str(i) for i in range(100)], ["7", "8"]]
    model = Tagger(features=["w[0]", "label[-1]"], epochs=3, queue=1).fit(words, words)
    assert is_sparse(model.weights_)
    model.set_params(queue=exact())
    assert model.predict(words) == words
    assert [model.predict_single(x) for x in words] == words
    (labels,) = model.predict_marginals([["5"]])
    assert len(labels[0]) == 100
    dense = model.with_weights(densified(model.weights_))
    assert repr(dense.predict_marginals(words)) == repr(model.predict_marginals(words))
    assert repr(dense.predict_confidence(words)) == repr(model.predict_confidence(words))
    model.partial_fit(words, words)
    assert model.training_ is not None
    assert not is_sparse(model.training_.table)
    assert model.predict(words) == words
