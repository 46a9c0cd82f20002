"""One surface for all estimators: what one can do, the others can."""

from typing import Any

import pytest

from laso import Chunker, JointTagger, Tagger, load_model, max_violation
from laso.data import load_bundled, write_columns
from laso.engine.machine import as_names
from laso.estimators import Checkpoint
from laso.estimators.capabilities.explain import explained
from laso.estimators.capabilities.inspection import inspected
from laso.estimators.capabilities.precision_recall import curve
from laso.estimators.capabilities.render import as_html, as_text
from laso.estimators.learning import streaming
from tests.interruption import StopAfter

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:60]
JOINT: dict[str, Any] = {
    "layers": ("pos", "chunk"),
    "features": ["w[-1..1]", "bias", "label[-1]", "pos[0]|chunk[0]"],
    "queue": 3,
}


class Case:
    """An estimator with its data, a label to bias, and an answer to force and to ban."""

    def __init__(self, make, split, bias, known, banned):
        self.make, self.bias, self.known, self.banned = make, bias, known, banned
        self.split = split

    def new(self, **given):
        return self.make(**{"epochs": 2, "threads": 1, **given})

    def inputs(self, sentences):
        return [[t[: self.split] if self.split > 1 else t[0] for t in s] for s in sentences]

    def y(self, sentences):
        n = self.split
        return [[t[n] if len(t) == n + 1 else tuple(t[n:]) for t in s] for s in sentences]


def joint(**given):
    return JointTagger(**{**JOINT, **given})


def tagger(**given):
    return Tagger(**{"constraints": "BIO", **given})


def chunker(**given):
    return Chunker(**{"features": "paper", **given})


CASES = {
    "tagger": Case(tagger, 2, "O", "B-VP", "O"),
    "chunker": Case(chunker, 2, "O", "VP", "O"),
    "joint": Case(joint, 1, "chunk=O", ("NN", "B-VP"), "NN/O"),
}


@pytest.fixture(scope="module", params=CASES)
def fitted(request):
    case = CASES[request.param]
    return case, case.new().fit(SMALL)


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


def weights(model):
    return as_names(model.weights_)


def is_same(answer):
    return [tuple(label) if not isinstance(label, str) else label for label in answer]


def test_labels_beside_or_in_the_data(fitted):
    case, model = fitted
    assert weights(case.new().fit(case.inputs(SMALL), case.y(SMALL))) == weights(model)
    assert model.predict(TEST[:5]) == model.predict(case.inputs(TEST[:5]))
    assert 0.3 < model.score(TEST) == model.score(case.inputs(TEST), case.y(TEST)) <= 1


def test_confidence_and_calibration(fitted):
    case, model = fitted
    before = model.reliability(TEST).error
    model.calibrate(TRAIN[60:120])
    assert model.reliability(TEST).error < before
    for found, answer in zip(
        model.predict_confidence(case.inputs(TEST[:5])), model.predict(TEST[:5]), strict=True
    ):
        assert found.output == answer
        assert 0 < found.probability <= 1
        assert found.parts[0].start == 0
        assert found.parts[-1].end == len(answer)
    layer = "chunk" if case.split == 1 else True
    chunks = model.predict_confidence(case.inputs(TEST[:5]), chunks=layer)
    assert any(found.parts for found in chunks)
    assert all(0 < part.probability <= 1 for found in chunks for part in found.parts)


def test_n_best(fitted):
    case, model = fitted
    for found, answer in zip(
        model.predict_nbest(case.inputs(TEST[:5]), 3), model.predict(TEST[:5]), strict=True
    ):
        assert [score for score, _ in found] == sorted((s for s, _ in found), reverse=True)
        assert found[0][1] == answer
        assert len(found) == 3


def test_forced_and_banned(fitted):
    case, model = fitted
    sentence = [case.inputs(TEST[:1])[0][:4]]  # few words: it is the reference engine
    n = len(sentence[0])
    known: list[Any] = [None] * n
    known[2] = case.known
    if case.make is chunker:
        known = [(case.known, 2, 3)]
    (answer,) = model.predict_forced(sentence, known=[known])
    wanted = f"B-{case.known}" if case.make is chunker else case.known
    assert answer[2] == wanted
    (answer,) = model.predict_forced(sentence, banned=[[case.banned]])
    spoken = ["/".join(each) if isinstance(each, tuple) else each for each in answer]
    assert case.banned not in spoken
    assert model.predict_forced(sentence) == model.predict(sentence)


def test_unknown_labels(case):
    y = [[label if i % 3 else None for i, label in enumerate(labels)] for labels in case.y(SMALL)]
    if case.make is joint:
        y = [[label or (None, None) for label in labels] for labels in y]
    model = case.new(strategy=max_violation)
    if case.make is tagger:
        model.set_params(constraints=None)  # for a B-x may be hidden whose I-x is not
    assert model.fit(case.inputs(SMALL), y).score(TEST) > 0.3


def test_class_weight_and_dial(fitted):
    case, model = fitted
    heavy = case.new(class_weight={case.bias: 20.0}).fit(SMALL)
    light = case.new(class_weight={case.bias: 0.05}).fit(SMALL)
    assert weights(heavy) != weights(light)

    def outside(model):
        labels = [label for answer in model.predict(TEST) for label in answer]
        return sum(label == "O" or label[-1] == "O" for label in labels)

    assert outside(model.biased({case.bias: 8.0})) > outside(model.biased({case.bias: -8.0}))
    with pytest.raises(ValueError, match="found a bias for 'nobody'"):
        model.biased({"nobody": 1.0})
    low, high = curve(model, case.inputs(TEST), case.y(TEST), label=case.bias, biases=(-8, 8))
    assert low.precision < high.precision


def test_later_data_and_labels(case):
    model = case.new()
    words = case.inputs(SMALL)
    for _ in range(2):
        model.partial_fit(words, case.y(SMALL))
    whole = case.new(seed=0).fit(words, case.y(SMALL))
    assert weights(model) == weights(whole)
    before = set(model.classes_)
    later = [[(*t[:-1], "B-NEW" if t[-1] == "O" else t[-1]) for t in s] for s in SMALL[:30]]
    for _ in range(3):
        model.partial_fit(later)
    (new,) = set(model.classes_) - before
    assert new.endswith("NEW")
    assert any("NEW" in str(label) for answer in model.predict(later) for label in answer)
    assert model.score(case.inputs(later), case.y(later)) > 0.5


def test_streams_and_files(case, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 17)
    memory = case.new(patience=5).fit(SMALL, dev=TEST[:20])
    streamed = case.new(patience=5)
    streamed.fit_stream(lambda: iter(SMALL), store=tmp_path / "store", dev=TEST[:20])
    assert weights(streamed) == weights(memory)
    assert streamed.scores_ == memory.scores_
    write_columns(tmp_path / "train.txt", SMALL)
    streamed.fit_stream(tmp_path / "train.txt", store=tmp_path / "store", dev=TEST[:20])
    assert weights(streamed) == weights(memory)
    memory.save(tmp_path / "model")
    assert load_model(tmp_path / "model").predict(TEST) == memory.predict(TEST)


@pytest.mark.parametrize("streamed", [False, True], ids=["memory", "stream"])
def test_killed_and_resumed(case, tmp_path, streamed):
    path = tmp_path / "checkpoint"
    first = case.new(epochs=1)
    first.fit(SMALL, dev=TEST[:20], checkpoint=Checkpoint(path, seconds=0))
    model = load_model(path)
    if streamed:
        model.resume_stream(lambda: iter(SMALL), store=tmp_path / "s", epochs=3, dev=TEST[:20])
    else:
        model.resume(SMALL, epochs=3, dev=TEST[:20])
    assert weights(model) == weights(case.new(epochs=3).fit(SMALL, dev=TEST[:20]))
    with pytest.raises(ValueError, match="resume needs the data of fit"):
        model.resume_stream(lambda: iter(SMALL[:9]), store=tmp_path / "s", epochs=4)


def test_interrupted(case):
    model = case.new(epochs=5).fit(SMALL, progress=StopAfter(2))
    assert model.interrupted_
    assert model.n_iter_ < 5
    assert len(model.predict(TEST)) == len(TEST)


def test_inspected_and_explained(fitted):
    case, model = fitted
    table = inspected(model, features=3)
    assert "O" in as_text(table)
    assert "<html" in as_html(table)
    assert table["named"]
    assert all(some["for"] for label, some in table["top"].items() if label == case.bias)
    sentence = case.inputs(TEST[:1])[0][:4]
    found = explained(model, sentence)
    assert found["output"] == model.predict_single(sentence)
    for decision in found["decisions"]:
        assert decision["features"]
        assert decision["runner_up"]
    assert "next best" in as_text(found)
