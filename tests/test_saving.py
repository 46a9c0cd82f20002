"""Files of the plain model: what comes back, what is refused, and damage."""

import json
import math
import random
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import (
    BadModel,
    Linear,
    Model,
    alma,
    beam,
    closed_set,
    exact,
    fit,
    linear_kernel,
    load_model,
    own_key,
    own_signature,
    perceptron,
)
from laso.examples import tagging
from laso.files.container import read_file, write_file
from tests.spaces import Tagging

DATA = [("xyx", tuple("ABA")), ("yx", tuple("BA")), ("zz", tuple("AB")), ("xz", tuple("AB"))]


class Place(NamedTuple):
    row: int
    column: str


class Colour(Enum):
    RED = "red"


plain = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
finite = plain.filter(lambda name: not isinstance(name, float) or math.isfinite(name))
names = st.recursive(finite, lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=5)
weights = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("models") / "model.laso"


def of(w: Any, queue: Any = None) -> Model:
    return Model(Tagging(), w, queue or beam(5))


@given(st.dictionaries(names, weights, max_size=8))
def test_weights_come_back_by_name(path, given):
    model = of(Linear(given, k=3))
    size = model.save(path)
    again = Model.load(path, problem=model.problem)
    assert path.stat().st_size == size
    assert isinstance(again.w, Linear)
    assert again.w.weights == given
    assert list(map(repr, again.w.weights.items())) == list(map(repr, given.items()))
    assert again.w.k == 3


@pytest.mark.parametrize("queue", [beam(2), beam(3, key=own_key), exact(), exact(own_signature)])
def test_queues_come_back(path, queue):
    of(Linear(), queue).save(path)
    assert Model.load(path, problem=Tagging()).queue == queue


@pytest.mark.parametrize("update", [perceptron(), alma(), alma(p=4.0)])
@pytest.mark.parametrize("average", [True, False])
def test_a_loaded_model_predicts_the_same(path, update, average):
    model = fit(Tagging(), DATA, update=update, epochs=20, average=average)
    model.save(path)
    again = Model.load(path, problem=Tagging())
    assert [again.predict(x) for x, _ in DATA] == [model.predict(x) for x, _ in DATA]
    assert again.w.weights == model.w.weights  # type: ignore[attr-defined]
    assert (again.updates, again.converged) == (model.updates, model.converged)
    assert (again.queue, again.w.k) == (model.queue, model.w.k)


def test_an_example_of_the_library(path):
    model = tagging.train()
    model.save(path)
    again = Model.load(path, problem=model.problem)
    x = ("we", "can", "see", "the", "old", "can")
    assert again.predict(x) == model.predict(x)


def test_names_that_equal_plain_ones_are_saved_as_these(path):
    given = {Place(1, "a"): 1.0, np.str_("b"): 2.0, np.float64(0.5): 3.0, np.int64(7): 4.0}
    of(Linear(given)).save(path)
    again = Model.load(path, problem=Tagging()).w.weights  # type: ignore[attr-defined]
    assert again == given
    assert [type(name) for name in again] == [tuple, str, float, int]


@pytest.mark.parametrize(
    "name",
    [
        Colour.RED,
        b"x",
        frozenset("a"),
        1j,
        math.inf,
        math.nan,
        object(),
        ("a", (b"x",)),
        len,
        ("a", math.nan),
    ],
)
def test_other_names_are_refused(path, name):
    with pytest.raises(ValueError, match=r"^found the feature name .*, which cannot be saved"):
        of(Linear({"fine": 1.0, name: 1.0})).save(path)


@pytest.mark.parametrize(
    "queue", [closed_set(beam(3), key=tuple), lambda nodes: beam(3)(nodes)], ids=["key", "queue"]
)
def test_a_queue_with_a_function_of_ones_own_is_given_again(path, queue):
    model = fit(Tagging(), DATA, queue=queue, epochs=3)
    model.save(path)
    with pytest.raises(BadModel, match=r"has a function of your own.*expected load\(path, problem"):
        Model.load(path, problem=Tagging())
    for again in (
        Model.load(path, problem=Tagging(), queue=queue),
        load_model(path, problem=Tagging(), queue=queue),
    ):
        assert again.queue is queue
        assert [again.predict(x) for x, _ in DATA] == [model.predict(x) for x, _ in DATA]


def test_weights_with_a_kernel_are_refused(path):
    model = fit(Tagging(), DATA, update=perceptron(kernel=linear_kernel()), epochs=1)
    with pytest.raises(ValueError, match="found weights of the type Kernelised, which cannot be"):
        model.save(path)


def test_a_model_that_is_refused_leaves_the_file_alone(tmp_path):
    of(Linear({"a": 1.0})).save(tmp_path / "model")
    before = (tmp_path / "model").read_bytes()
    with pytest.raises(ValueError, match="cannot be saved"):
        of(Linear({b"a": 1.0})).save(tmp_path / "model")
    assert (tmp_path / "model").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


# Files that are no models


def changed(path, change):
    """The file of a small model, written anew with another header or other tensors."""
    of(Linear({"a": 1.0, ("b", 2): -0.5}), beam(2)).save(path)
    header, tensors = read_file(path)
    for name in ("digest", "format", "compressed", "library", "arrays"):
        header.pop(name)
    change(header, tensors)
    write_file(path, header, tensors)


def header(**given):
    return lambda header, tensors: header.update(given)


def stored(names):
    data = names if isinstance(names, bytes) else json.dumps(names).encode()
    return lambda header, tensors: tensors.update(names=np.frombuffer(data, np.uint8))


def weighed(array):
    return lambda header, tensors: tensors.update(weights=array)


CHANGES: dict[str, Any] = {
    "another kind": header(kind="tagging"),
    "no kind": lambda header, tensors: header.pop("kind"),
    "no queue": lambda header, tensors: header.pop("queue"),
    "a hostile queue": header(queue="__import__('os').system('true')"),
    "a queue that is none": header(queue="5"),
    "a queue that is no text": header(queue={"beam": 5}),
    "updates": header(updates=-1),
    "updates that are no number": header(updates=True),
    "converged": header(converged=1),
    "generation": header(k=0),
    "no names": lambda header, tensors: tensors.pop("names"),
    "no weights": lambda header, tensors: tensors.pop("weights"),
    "fewer names": stored(["a"]),
    "a name twice": stored(["a", "a"]),
    "names that are no list": stored({"a": 1, "b": 2}),
    "a name that is no name": stored(["a", {"b": 1}]),
    "a name within a name that is none": stored(["a", ["b", {}]]),
    "a name that is no number": stored(b'["a",NaN]'),
    "names that are no JSON": stored(b'["a",'),
    "names that are no UTF-8": stored(b'["a","\xff"]'),
    "deep names": stored(b"[" * 100_000),
    "names of another type": lambda header, tensors: tensors.update(names=np.zeros(2)),
    "more weights": weighed(np.zeros(3)),
    "weights of another type": weighed(np.zeros(2, np.float32)),
    "weights that are no numbers": weighed(np.array([1.0, math.nan])),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_wrong_content_is_refused(tmp_path, change):
    path = tmp_path / "model"
    changed(path, change)
    with pytest.raises(BadModel, match=r"cannot be loaded"):
        Model.load(path, problem=Tagging())


def test_a_file_written_anew_without_change_is_read(tmp_path):
    changed(tmp_path / "model", lambda header, tensors: None)
    model = Model.load(tmp_path / "model", problem=Tagging())
    assert model.w.weights == {"a": 1.0, ("b", 2): -0.5}  # type: ignore[attr-defined]


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "model"
    of(Linear({f"f{i}": float(i) for i in range(50)})).save(path)
    whole = path.read_bytes()
    draw = random.Random(0)
    for n in range(60):
        data = bytearray(whole)
        if n % 2:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        else:
            del data[draw.randrange(len(data)) :]
        path.write_bytes(data)
        with pytest.raises(BadModel):
            Model.load(path, problem=Tagging())


def test_models_of_other_kinds_are_told_apart(tmp_path):
    of(Linear({"a": 1.0})).save(tmp_path / "model")
    with pytest.raises(BadModel):
        load_model(tmp_path / "model")
    write_file(tmp_path / "other", {"task": "tagging"}, {})
    with pytest.raises(BadModel, match=r"found a model for 'tagging', expected one of laso\.fit"):
        Model.load(tmp_path / "other", problem=Tagging())


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Model.load(tmp_path / "none", problem=Tagging())
