"""Model files: what is saved comes back, and nothing else is ever taken for a model."""

import json
import os
import pickle
import random
import struct
from functools import partial
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import laso
from laso import (
    BadModel,
    Tagger,
    alma,
    beam,
    bounded_best_first,
    early,
    exact,
    greedy,
    passive_aggressive,
    perceptron,
    restart,
    uniform,
    worst,
)
from laso.data import load_bundled
from laso.engine.machine import as_names
from laso.engine.options import options_for, own_key
from laso.engine.weights.compact import make_table
from laso.features import CHUNKING, default_templates
from laso.files.container import read_file, write_file
from laso.files.estimator import described_parameters, parameter_from_json, parameter_to_json
from laso.files.weight_tensors import pack_weights, unpack_weights
from laso.tasks.tagging.problem import Tagging
from laso.values import known

TRAIN, TEST = load_bundled()
FEW = TRAIN[:60]
WORDS = [[token[:2] for token in sentence] for sentence in TEST]


@pytest.fixture(scope="module")
def fitted():
    return Tagger(features=default_templates(("w", "pos")), queue=2, epochs=3).fit(TRAIN)


def same_parameters(one, two):
    """Queues are functions made anew: what the engine makes of them must be the same."""
    assert one.engine_for(one.task_, one.task_.problem) == two.engine_for(
        two.task_, two.task_.problem
    )
    a, b = described_parameters(one), described_parameters(two)
    assert a == b


# Round trips


def test_a_model_comes_back(fitted, tmp_path):
    path = tmp_path / "model.laso"
    assert fitted.save(path) == path.stat().st_size
    again = Tagger.load(path)
    assert again.predict(WORDS) == fitted.predict(WORDS)
    assert as_names(again.weights_) == as_names(fitted.weights_)
    for name in ("n_iter_", "best_epoch_", "scores_", "converged_", "interrupted_", "size_"):
        assert getattr(again, name) == getattr(fitted, name)
    assert again.classes_.tolist() == fitted.classes_.tolist()
    same_parameters(again, fitted)
    other = tmp_path / "again.laso"
    again.save(other)
    assert other.read_bytes() == path.read_bytes()


@pytest.mark.parametrize(
    "parameters",
    [
        {"queue": bounded_best_first(2), "update": passive_aggressive(C=0.5)},
        {"queue": beam(2, key=own_key), "update": alma(alpha=0.8, weighting=worst)},
        {"queue": greedy(), "strategy": early, "constraints": "BIO", "held_out": 0.2},
        {"hash_bits": 12, "update": perceptron(margin=0.5), "average": False},
        {"dtype": "float64", "columns": ["w", "tag"], "features": ["w[0]", "near: tag[-1..1]"]},
        {"features": "w[0]\nbias\nlabel[-1]", "seed": None, "threads": 1},
        {"features": ['w.test("é\\"")[0]', "w[0]"], "constraints": {"O": ["O"], None: ["O"]}},
    ],
)
def test_every_parameter_comes_back(parameters, tmp_path):
    few: list[Any] = FEW
    if isinstance(parameters.get("constraints"), dict):
        few = [[(w, p, "O") for w, p, _ in s] for s in FEW] + [[("a", "b", "O")]]
    tagger = Tagger(**{"features": CHUNKING, "epochs": 2, **parameters}).fit(few)
    tagger.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    same_parameters(again, tagger)
    assert again.constraints == tagger.constraints
    assert again.predict(WORDS) == tagger.predict(WORDS)
    assert as_names(again.weights_) == as_names(tagger.weights_)


def test_features_and_matrices_come_back(tmp_path):
    y = [["A", "B"], ["B"]]
    for X in (
        [[{"x": "1", "n": 2.0}, {"x": "2"}], [{"n": -1.0}]],
        [np.array([[1.0, 0.0], [0.5, 2.0]]), np.array([[0.0, 1.0]])],
    ):
        tagger = Tagger(queue=1, epochs=3).fit(X, y)
        tagger.save(tmp_path / "model")
        again = Tagger.load(tmp_path / "model")
        assert again.predict(X) == tagger.predict(X)
        assert again.task_.encoder_.width == tagger.task_.encoder_.width


def test_words_of_any_characters_come_back(tmp_path):
    words = ["", " ", "\n", "é", "漢", "\ud800", '"', "\0"]
    tagger = Tagger(features=["w[0]"], queue=1, epochs=3)
    tagger.fit([words], [[f"L{i}\n" for i in range(len(words))]])
    tagger.save(tmp_path / "model")
    assert Tagger.load(tmp_path / "model").predict([words]) == tagger.predict([words])
    assert tagger.predict_single(words) == [f"L{i}\n" for i in range(len(words))]


@pytest.mark.parametrize(("weights", "most"), [("float32", 0), ("float16", 1e-3)])
def test_smaller_weights_are_near_the_true_ones(fitted, tmp_path, weights, most):
    path = tmp_path / "model"
    full = fitted.save(path)
    small = fitted.save(path, precision=weights)
    assert small < full or weights == "float32"
    again = Tagger.load(path)
    wanted, found = as_names(fitted.weights_), as_names(again.weights_)
    largest: dict[int, float] = {}
    for (key, _), value in wanted.items():
        largest[key] = max(largest.get(key, 0.0), abs(value))
    for name, value in wanted.items():
        assert abs(found.get(name, 0.0) - value) <= most * largest[name[0]] * 1.01
    assert found.keys() <= wanted.keys()
    assert again.score(TEST) == pytest.approx(fitted.score(TEST), abs=0.02)


def test_a_model_is_much_smaller_than_its_table(fitted, tmp_path):
    on_disk = fitted.save(tmp_path / "model", precision="float16")
    assert on_disk < fitted.size_.bytes / 4


@pytest.mark.parametrize("held_out", [None, 0.2])
@pytest.mark.parametrize("average", [True, False])
def test_training_goes_on_from_a_file_bit_by_bit(tmp_path, held_out, average):
    tagger = Tagger(features=CHUNKING, queue=2, held_out=held_out, average=average)
    whole = laso.Tagger(**tagger.get_params()).set_params(epochs=4).fit(FEW)
    part = tagger.set_params(epochs=2).fit(FEW)
    part.save(tmp_path / "state", training=True)
    again = Tagger.load(tmp_path / "state").resume(FEW, epochs=4)
    assert as_names(again.weights_) == as_names(whole.weights_)
    assert again.training_ is not None
    assert whole.training_ is not None
    assert as_names(again.training_.table) == as_names(whole.training_.table)
    assert (again.training_.table.reals == whole.training_.table.reals).all()
    # The first is the number of rows, some of which may be empty.
    assert again.training_.table.ints[1:].tolist() == whole.training_.table.ints[1:].tolist()
    assert again.scores_ == whole.scores_
    assert again.best_epoch_ == whole.best_epoch_


def test_without_the_state_there_is_no_going_on(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    again = Tagger.load(tmp_path / "model")
    for call in (lambda: again.resume(FEW, epochs=9), lambda: again.partial_fit(FEW)):
        with pytest.raises(ValueError, match="saved without it"):
            call()
    with pytest.raises(ValueError, match="found precision='float16'"):
        fitted.save(tmp_path / "model", precision="float16", training=True)
    with pytest.raises(ValueError, match="precision must be None or float32, float16, found 'int8"):
        fitted.save(tmp_path / "model", precision="int8")


# Writing


def test_saving_is_all_or_nothing(fitted, tmp_path, monkeypatch):
    path = tmp_path / "model"
    fitted.save(path)
    before = path.read_bytes()

    def full_disk(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full_disk)
        with pytest.raises(OSError, match="No space left"):
            fitted.save(path, precision="float16")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model"]
    with pytest.raises(FileNotFoundError):
        fitted.save(tmp_path / "no such folder" / "model")


def test_what_cannot_be_saved_by_name_is_refused(fitted, tmp_path):
    def own(sibs, nodes):
        return uniform(sibs, nodes)

    for thing in (own, exact(hash), perceptron(weighting=own), partial(print, 1)):
        with pytest.raises(ValueError, match="which cannot be saved"):
            parameter_to_json(thing)


def test_the_refusal_names_the_parameter():
    with pytest.raises(ValueError, match=r"^found weighting=<function .*> in perceptron\("):
        parameter_to_json(perceptron(weighting=lambda sibs, nodes: []))
    with pytest.raises(ValueError, match=r"^found key=<built-in function id> in beam\(5, key="):
        parameter_to_json(beam(5, key=id))


def test_queues_updates_and_strategies_are_stored_as_text():
    assert parameter_to_json(beam(5)) == {"value": "beam(5)"}
    assert parameter_to_json(perceptron(weighting=worst)) == {
        "value": "perceptron(weighting=worst)"
    }
    assert parameter_to_json(restart) == {"value": "restart"}


@pytest.mark.parametrize(
    "thing",
    [None, 3, 0.5, "a", True, restart, early, worst, alma(alpha=0.5), perceptron(weighting=worst)],
)
def test_descriptions_are_json_and_come_back(thing):
    assert parameter_from_json(json.loads(json.dumps(parameter_to_json(thing)))) == thing


@pytest.mark.parametrize("queue", [greedy(), beam(7), beam(2, key=own_key), bounded_best_first(3)])
def test_queues_come_back(queue):
    again = parameter_from_json(json.loads(json.dumps(parameter_to_json(queue))))
    assert again == queue
    rule = perceptron()
    assert options_for(Tagging, again, rule) == options_for(Tagging, queue, rule)


# Reading what is no model


def refused(path, data):
    path.write_bytes(data)
    with pytest.raises(BadModel) as error:
        Tagger.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """The bytes of a small model with the state of its training."""
    path = tmp_path_factory.mktemp("models") / "model"
    tagger = Tagger(features=["w[0]", "w.lower[0]", "label[-1]"], queue=1, epochs=2)
    tagger.fit(FEW[:5]).save(path, training=True)
    return path.read_bytes()


def test_any_change_of_a_bit_is_noticed(small, tmp_path):
    draw = random.Random(0)
    places = [*range(24), *(draw.randrange(len(small)) for _ in range(300))]
    for place in places:
        data = bytearray(small)
        data[place] ^= 1 << draw.randrange(8)
        refused(tmp_path / "model", bytes(data))


def test_any_other_damage_is_noticed(small, tmp_path):
    draw = random.Random(1)
    for _ in range(100):
        a, b = sorted(draw.randrange(len(small)) for _ in range(2))
        kinds = [small[:a], small[:a] + small[b + 1 :], small + small[a:b] + b"\0"]
        kinds.append(small[:a] + draw.randbytes(9) + small[a:])
        kinds.append(draw.randbytes(a % 200))
        refused(tmp_path / "model", draw.choice(kinds))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"\x80\x04N.",
        pickle.dumps({"a": 1}),
        struct.pack("<Q", 2) + b"{}",
        struct.pack("<Q", 2**63) + b"{}",
        safetensors.numpy.save({"a": np.zeros(3)}),
        safetensors.numpy.save({"a": np.zeros(3)}, {"laso": "{}"}),
        safetensors.numpy.save({"a": np.zeros(3)}, {"laso": '{"digest":"' + "0" * 32 + '"}'}),
        b"PK\x03\x04" + bytes(100),
    ],
    ids=range(10),
)
def test_other_files_are_no_models(data, tmp_path):
    refused(tmp_path / "model", data)


def test_a_file_that_is_not_there_is_another_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        Tagger.load(tmp_path / "none")


def rewritten(small, path, change):
    """A file with a valid digest whose header and tensors someone has changed."""
    path.write_bytes(small)
    header, tensors = read_file(path)
    change(header, tensors)
    for name in ("digest", "compressed", "library", "arrays"):
        header.pop(name, None)
    write_file(path, header, tensors)
    return path.read_bytes()


def setting(*keys: Any, to: Any) -> Any:
    def change(header, tensors):
        for key in keys[:-1]:
            header = header[key]
        header[keys[-1]] = to

    return change


def tensor(name: str, change: Any) -> Any:
    def changed(header, tensors):
        tensors[name] = change(tensors[name])

    return changed


def setting_rows(name: str) -> Any:
    def changed(header, tensors):
        tensors[name] = tensors[name][: -header["labels"]]

    return changed


def poisoned(values):
    values = values.copy()
    values[0] = np.nan
    return values


CHANGES = {
    "format": setting("format", to=99),
    "task": setting("task", to="parsing"),
    "no labels": setting("learned", "labels", to=[]),
    "labels of another type": setting("learned", "labels", to="ABC"),
    "labels twice": setting("learned", "labels", to=["O", "O"]),
    "fewer labels": setting("learned", "labels", to=["O"]),
    "columns": setting("learned", "columns", to=[]),
    "templates": setting("learned", "templates", to=["w[0"]),
    "other templates": setting("learned", "templates", to=["w[0]", "w.shape[0]", "label[-1]"]),
    "a column too many": setting("learned", "templates", to=["pos[0]"]),
    "width": setting("learned", "width", to="wide"),
    "base features": setting("learned", "base features", to=[1, 2]),
    "bits": setting("bits", to=-1),
    "parameters": setting("parameters", to={"colour": "red"}),
    "unknown parameter": setting("parameters", "power", to=9),
    "bad parameter": setting("parameters", "epochs", to=0),
    "bad queue": setting("parameters", "queue", to={"value": "system()"}),
    "odd queue": setting("parameters", "queue", to={"value": "beam(5, colour=1)"}),
    "bad function": setting("parameters", "strategy", to={"value": "eval"}),
    "bad update": setting("parameters", "update", to={"value": "alma(alpha=7)"}),
    "no value": setting("parameters", "update", to={"make": "Alma", "with": {}}),
    "a value that is no text": setting("parameters", "update", to={"value": 7}),
    "history": setting("history", to=None),
    "epoch": setting("history", "epoch", to=-1),
    "scores": setting("history", "scores", to=["x"]),
    "fewer keys": tensor("keys", lambda t: t[:-1]),
    "a key twice": tensor("keys", lambda t: np.concatenate([t[:-1], [0]]).astype("<u8")),
    "two keys in turn": tensor("keys", lambda t: np.full_like(t, 2**63)),
    "keys of another type": tensor("keys", lambda t: t.astype("<f8")),
    "fewer weights": tensor("weights", lambda t: t[:-1]),
    "fewer rows": setting_rows("weights"),
    "weights not finite": tensor("weights", poisoned),
    "weights that are none": tensor("weights", lambda t: t.astype("<i4")),
    "state not finite": tensor("learning.sums", poisoned),
    "fewer rows of the state": setting_rows("learning.sums"),
    "state of another size": tensor("learning.reals", lambda t: t[:2]),
    "state of another type": tensor("learning.weights", lambda t: t.astype("<f8")),
    "counters": tensor("learning.ints", lambda t: -t),
    "no clock": tensor("learning.clock", lambda t: t[:0]),
    "a clock that is none": tensor("learning.clock", lambda t: t * np.nan),
    "number of labels": setting("labels", to=1),
    "state": setting("learned", "state", to=1),
    "metadata": setting("metadata", to=1),
    "words": tensor("task.values.0.text", lambda t: t[:-1]),
    "no words": tensor("task.values.0.text", lambda t: np.zeros_like(t) + 0xFF),
    "words that are none": tensor("task.values.0.text", lambda t: t.astype("<i4")),
    "words twice": tensor("task.values.0.text", lambda t: np.zeros_like(t)),
    "fewer words": tensor("task.values.0.lengths", lambda t: t[:-1]),
    "no tensors": lambda header, tensors: tensors.clear(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_well_formed_file_of_wrong_content_is_refused(small, tmp_path, change):
    path = tmp_path / "model"
    refused(path, rewritten(small, path, change))


def test_a_file_rewritten_without_change_is_the_same(small, tmp_path):
    path = tmp_path / "model"
    assert rewritten(small, path, lambda header, tensors: None) == small


def test_rows_of_zero_are_not_stored():
    table = make_table(np.array([5, 9, 11]), np.array([[1, 2], [0, 0], [0, 3]], np.float32))
    tensors = pack_weights(table, None)
    assert np.cumsum(tensors["keys"]).tolist() == [5, 11]
    assert unpack_weights(tensors, 2, np.float32, 0).v.tolist() == [[1, 2], [0, 3]]


def test_loading_makes_only_what_is_known():
    """Nothing that runs a command, imports or opens a file can be named."""
    modules = {thing.__module__ for thing in known().values()}
    own = ("queues", "updates", "weightings", "arow", "learn", "vectors")
    assert modules == {f"laso.{name}" for name in own}
