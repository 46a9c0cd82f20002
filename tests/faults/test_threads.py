"""Learning in one thread and predicting in others: each call sees the old model or the new one."""

import copy
import os
import pickle
from collections.abc import Callable
from functools import partial
from itertools import permutations
from typing import Any
from unittest import mock

import joblib
import pytest
from sklearn.base import clone

from laso import CRF, Chunker, Parser, Tagger, Task, exact
from laso.engine.machine import as_names
from laso.estimators import SearchEstimator
from laso.estimators.publishing import TRANSIENT
from laso.examples.segmentation import Segmentation
from laso.features import feature_lists
from tests.faults.forks import survived
from tests.faults.threads import PARTS, TRAIN, Reader, X, together, while_reading

WORDS = [("thecat", ["the", "cat"]), ("acat", ["a", "cat"]), ("thedog", ["the", "dog"])]
MAKE = {
    "tagger": lambda: Tagger(epochs=2),
    "exact": lambda: Tagger(epochs=2, features=["w[0]", "label[-1]"], queue=exact()),
    "chunker": lambda: Chunker(epochs=2, features="paper"),
}


def relabelled(part, n):
    """Other labels and other words: what does not fit together shows."""
    return [
        [(f"{w}{n}", pos, f"{tag}{n}" if tag == "O" else tag) for w, pos, tag in s] for s in part
    ]


@pytest.fixture(params=["tagger", "exact"])
def make(request):
    return MAKE[request.param]


def test_predictions_during_partial_fit_are_those_of_one_model(make):
    parts = [PARTS[0], *(relabelled(part, n) for n, part in enumerate(PARTS[1:]))] * 3
    twin, model = make().partial_fit(parts[0]), make().partial_fit(parts[0])
    expected = {repr((twin.predict(X), twin.predict_confidence(X[:1])))}
    for part in parts[1:]:
        twin.partial_fit(part)
        expected.add(repr((twin.predict(X), twin.predict_confidence(X[:1]))))

    def call():
        now = model.snapshot()
        return now.predict(X), now.predict_confidence(X[:1])

    def learn():
        for part in parts[1:]:
            model.partial_fit(part)

    for thread in while_reading(call, learn):
        assert thread.errors == []
        assert set(thread.results) <= expected
        assert len(thread.results) > 1  # it saw several models
    assert repr(call()) == repr((twin.predict(X), twin.predict_confidence(X[:1])))


def test_plain_calls_during_learning_see_the_old_or_the_new_model():
    new = relabelled(TRAIN[:40], 1)
    model = Tagger(epochs=2).fit(TRAIN[:40])
    calls: dict[str, Callable[[Any], Any]] = {
        "predict": lambda m: m.predict(X),
        "nbest": lambda m: m.predict_nbest(X[:2], 3),
        "score": lambda m: m.score(TRAIN[:5]),
        "explain": lambda m: m.explain(X[0]),
        "size": lambda m: m.file_size(),
        "pickle": lambda m: pickle.loads(pickle.dumps(m)).predict(X[:2]),
    }
    old = {name: repr(call(model)) for name, call in calls.items()}
    after = Tagger(epochs=2).fit(new)
    later = {name: repr(call(after)) for name, call in calls.items()}
    readers = [Reader(partial(call, model)) for call in calls.values()]
    for reader in readers:
        reader.start()
    for _ in range(3):
        model.fit(new).fit(TRAIN[:40])
    for reader in readers:
        reader.over.set()
    for name, reader in zip(calls, readers, strict=True):
        reader.join(60)
        assert reader.errors == [], name
        assert set(reader.results) <= {old[name], later[name]}, name


def test_learning_in_several_threads_takes_turns():
    model = Tagger(epochs=1).partial_fit(PARTS[0])
    assert together(*[lambda part=part: model.partial_fit(part) for part in PARTS]) == []
    found = as_names(model.weights_)
    in_some_order = []
    for order in permutations(PARTS):
        twin = Tagger(epochs=1).partial_fit(PARTS[0])
        for part in order:
            twin.partial_fit(part)
        in_some_order.append(as_names(twin.weights_))
    assert found in in_some_order


def test_all_kinds_of_learning_at_once(tmp_path):
    model = Tagger(epochs=2).fit(PARTS[0])
    works = [
        lambda: model.fit(PARTS[0]),
        lambda: model.fit_stream(lambda: PARTS[0], store=tmp_path),
        lambda: model.calibrate(PARTS[1]),
        lambda: model.partial_fit(PARTS[1]),
        lambda: model.save(tmp_path / "model", training=True),
        lambda: copy.deepcopy(model).partial_fit(PARTS[2]),
    ]
    assert together(*works) == []
    loaded = Tagger.load(tmp_path / "model")
    assert loaded.training_ is not None
    loaded.partial_fit(PARTS[2])


@pytest.mark.parametrize("kind", MAKE)
def test_an_error_leaves_the_model_as_it_was(kind):
    model: Any = MAKE[kind]().fit(PARTS[0])
    before, weights = {**vars(model)}, as_names(model.weights_)
    training = as_names(model.training_.table)
    file, words = model.file_size(), model.predict(X)

    def fail(report):
        raise RuntimeError("the progress bar")

    bad: Any = [[("a", "DT", 7)]]
    for learn in (
        lambda: model.fit(PARTS[1], progress=fail),
        lambda: model.partial_fit(relabelled(PARTS[1], 1), progress=fail),
        lambda: model.resume(PARTS[0], epochs=9, progress=fail),
        lambda: model.resume(PARTS[1], epochs=9),
        lambda: model.partial_fit(bad),
        lambda: model.calibrate([]),
    ):
        with pytest.raises((RuntimeError, ValueError)):
            learn()
        now = {name: value for name, value in vars(model).items() if name not in TRANSIENT}
        assert now.keys() == before.keys() - TRANSIENT
        assert all(now[name] is before[name] for name in now)
        assert (model.file_size(), model.predict(X)) == (file, words)
        assert as_names(model.weights_) == weights
        assert as_names(model.training_.table) == training


def test_a_task_of_ones_own_learns_more_without_changing_the_old_one():
    model = SearchEstimator(Segmentation(), epochs=3)
    model.fit([x for x, _ in WORDS], [y for _, y in WORDS])
    old, task = model.snapshot(), model.task_
    before = old.predict(["thecat", "adog"])
    model.partial_fit(["xyz"], [["xy", "z"]])
    assert isinstance(model.task_, Task)
    assert model.task_ is not task
    assert old.task_ is task
    assert old.predict(["thecat", "adog"]) == before


def test_locks_do_not_hinder_copies():
    model = Tagger(epochs=1).partial_fit(PARTS[0])  # has a lock now
    expected = model.predict(X)
    for made in (
        *(pickle.loads(pickle.dumps(model, protocol)) for protocol in range(6)),
        copy.copy(model),
        copy.deepcopy(model),
        model.snapshot(),
        copy.copy(model.snapshot()),
    ):
        assert made.predict(X) == expected
        assert made.get_params() == model.get_params()
        copy.deepcopy(made).partial_fit(PARTS[1])
        assert made.predict(X) == expected
    assert clone(model).get_params() == model.get_params()
    assert not hasattr(clone(model), "weights_")
    assert joblib.hash(model) == joblib.hash(copy.deepcopy(model))
    assert not TRANSIENT & set(copy.copy(model.snapshot()).__dict__)
    assert set(joblib.Parallel(2)(joblib.delayed(repr)(model) for _ in range(2))) == {repr(model)}


@pytest.mark.parametrize(
    "method", ["predict", "predict_single", "predict_nbest", "explain", "save"]
)
def test_a_call_sees_one_model_if_another_is_learned_in_its_midst(method, tmp_path):
    """The other model has other words and labels, and is published while the input is encoded."""
    first, second = PARTS[0], relabelled(PARTS[1], 5)
    calls: dict[str, Callable[[Tagger], Any]] = {
        "predict": lambda model: model.predict(X[:1]),
        "predict_single": lambda model: model.predict_single(X[0]),
        "predict_nbest": lambda model: model.predict_nbest(X[:1], 2),
        "explain": lambda model: model.explain(X[0])["output"],
        "save": lambda model: model.save(tmp_path / "model"),
    }
    call, model = calls[method], Tagger(epochs=1).fit(first)
    wanted, other = repr(call(model)), Tagger(epochs=1).fit(second)
    plain = type(model.task_).encode

    def encode(self: Any, *given: Any) -> Any:
        found = plain(self, *given)
        vars(model).update({**vars(other), "_prepared": {}})  # as learning publishes
        return found

    with mock.patch.object(type(model.task_), "encode", encode):
        assert repr(call(model)) == wanted


def test_a_signal_may_predict_while_its_thread_reads():
    """A handler runs between two lines of the call that it interrupts."""
    sentences = [[{"w": word} for word in words] for words in (["a", "b"], ["c", "d", "e"])]
    model = Tagger(epochs=3).fit(sentences, [["A", "B"], ["C", "D", "E"]])
    wanted = [model.predict_single(sentence) for sentence in sentences]
    plain = feature_lists.ListReader.read
    deep: list[int] = []

    def read(self: Any, data: bytes, kinds: int) -> Any:
        if not deep:
            deep.append(1)
            self.data[: len(data)] = data  # what read begins with
            assert model.predict_single(sentences[1]) == wanted[1]
            assert self not in feature_lists._free
        return plain(self, data, kinds)

    with mock.patch.object(feature_lists.ListReader, "read", read):
        assert model.predict_single(sentences[0]) == wanted[0]
    assert deep


def test_single_sentences_from_many_threads_and_forks():
    """Parsers and taggers of feature lists, with kept arrays and code, in threads and children."""
    sentences = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    trees = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
    parser = Parser(epochs=3, queue=2).fit(sentences, trees)
    attributes = [[{"w": word, "n": 0.5} for word, _ in sentence] for sentence in sentences]
    crf = CRF("ap", max_iterations=3).fit(attributes, [["D", "N", "V"], ["N", "V"]])

    def call() -> Any:
        return (
            [parser.predict_single(sentence) for sentence in sentences],
            [crf.predict_single(sentence) for sentence in attributes],
            [crf.predict_marginals_single(sentence) for sentence in attributes],
        )

    wanted = repr(call())
    outcomes: list[str] = []

    def fork() -> None:
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                code = 2
                try:
                    code = int(repr(call()) != wanted)
                finally:
                    os._exit(code)
            outcomes.append(survived(pid, 60.0))

    for thread in while_reading(call, fork):
        assert thread.errors == []
        assert set(thread.results) == {wanted}
    assert outcomes == ["predicted"] * 20


def test_learning_in_shards_beside_predictions():
    """Threads of joblib learn while others predict, pickle and fork."""
    model = Tagger(epochs=2, n_jobs=2).fit(PARTS[0])
    known = {repr(model.predict(X))}
    for part in PARTS[1:]:
        known.add(repr(Tagger(epochs=2, n_jobs=2).fit(part).predict(X)))

    def call() -> Any:
        return pickle.loads(pickle.dumps(model)).predict(X)

    def learn() -> None:
        for part in PARTS[1:]:
            model.fit(part)

    for thread in while_reading(call, learn, readers=2):
        assert thread.errors == []
        assert set(thread.results) <= known
