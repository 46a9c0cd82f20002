"""Learning from sentences of which not all labels are known: every completion is right."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import BadData, Chunker, JointTagger, early, exact, max_violation, standard
from laso.data import load_bundled
from laso.engine.machine import as_names
from laso.engine.reference import Reference, input_of, output_of
from laso.estimators.learning import streaming
from laso.features.schemes import SCHEMES, chunks_of, convert_tags, read_partial_tags
from laso.tasks.chunking.problem import Chunking

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:60]
X = [[token[:2] for token in s] for s in SMALL]
CHUNKS = [[token[2] for token in s] for s in SMALL]
JOINT: dict[str, Any] = {
    "layers": ("pos", "chunk"),
    "features": ["w[-1..1]", "label[-1]", "pos[0]|chunk[0]"],
    "queue": 3,
    "epochs": 2,
}


def some(labels, every=3):
    """Every third label is unknown."""
    return [[None if i % every == 1 else t for i, t in enumerate(tags)] for tags in labels]


def good_outputs(model, tags):
    """The segmentations that are y-good, step by step, of one sentence."""
    sentence = ["w"] * len(tags)
    data, answers = model.task_.read([sentence], [tags])
    corpus = model.task_.encode(data, answers)
    x, y = input_of(corpus, 0), output_of(corpus, 0)
    problem = Reference(model.task_.problem, len(model.task_.encoder_.labels))
    found = set()

    def go(state, path):
        if problem.is_goal(x, state):
            found.add(path)
            return
        for group, label in problem.operators(x, state):
            row = np.array(state.row, np.int32)
            if problem.problem.is_good(x, y, row, group, label):
                name = model.task_.encoder_.labels[label]
                begin = state.row[0]
                after = problem.apply(x, state, (group, label))
                go(after, (*path, (name, begin, begin + group)))

    go(problem.initial(x), ())
    return found


def completions(tags, scheme, limit):
    """All segmentations whose tags in the scheme agree with those known, by enumeration."""
    kinds = ("a", "b")
    marks = {"BIO": "BI", "IOB1": "BI", "IOBES": "BIES"}[scheme]
    every = ["O", *(f"{mark}-{kind}" for mark in marks for kind in kinds)]
    choices = [every if tag is None else [tag] for tag in tags]
    found = set()
    for full in product(*choices):
        chunks = tuple(chunks_of(full))
        written = convert_tags([full], scheme)[0]  # B for I is no mistake
        proper = all(
            a == b or (a[0] == "B" and b[0] == "I") for a, b in zip(full, written, strict=True)
        )
        if proper and max(b - a for _, a, b in chunks) <= limit:
            found.add(chunks)
    return found


@pytest.fixture(scope="module", params=SCHEMES)
def chunker(request):
    tags = [["B-a", "I-a", "I-a", "B-a", "O", "B-b", "I-b", "I-b"]]
    model = Chunker(features=["w[first]", "length"], epochs=1, strategy=max_violation)
    return request.param, model.fit([["w"] * 8], convert_tags(tags, request.param))


@settings(deadline=None, derandomize=True, max_examples=30)
@given(data=st.data())
def test_the_good_outputs_are_the_completions(chunker, data):
    scheme, model = chunker
    spans = data.draw(
        st.lists(st.tuples(st.sampled_from("abO"), st.integers(1, 3)), min_size=1, max_size=3)
    )
    bio: list[str] = []
    for kind, n in spans:
        bio += ["O"] * n if kind == "O" else [f"B-{kind}", *[f"I-{kind}"] * (n - 1)]
    (tags,) = convert_tags([bio[:5]], scheme)
    hidden = data.draw(st.lists(st.booleans(), min_size=len(tags), max_size=len(tags)))
    partly = [None if hide else tag for tag, hide in zip(tags, hidden, strict=True)]
    _, _, read_as = read_partial_tags(partly, np.array([len(tags)]))
    if not any(hidden) or read_as != scheme:
        return  # few tags do not tell the scheme
    assert good_outputs(model, partly) == completions(partly, scheme, model.task_.encoder_.limit)


@pytest.mark.parametrize("strategy", [max_violation, standard])
def test_a_chunker_learns_from_some_tags(strategy):
    model = Chunker(features="paper", epochs=3, strategy=strategy)
    model.fit([[t[:2] for t in s] for s in TRAIN], some([[t[2] for t in s] for s in TRAIN]))
    assert model.score(TEST) > 0.85
    known = [tag for tags in some(CHUNKS) for tag in tags if tag is not None]
    assert model.score(X, some(CHUNKS)) > 0.9  # of the known tags
    assert 0 < len(known) < sum(map(len, CHUNKS))


def test_a_chunker_with_exact_search_learns_from_some_tags():
    model = Chunker(features=["w[first,last,each]", "pos[each]", "length"], queue=exact(), epochs=3)
    assert model.fit(X, some(CHUNKS)).score(SMALL) > 0.8


@pytest.mark.parametrize("name", ["chunker", "joint"])
def test_too_many_siblings_are_refused(name):
    one: list[Any] = [[None] * 12 + ["O"]]
    model: Any = Chunker(features="paper", strategy=early)
    words = [["w"] * 13]
    if name == "joint":
        model = JointTagger(**JOINT)
        one = [[(None, None)] * 12 + [("N", "O")]]
    full: list[Any] = (
        [["O", "B-x"] * 6 + ["O"]]
        if name == "chunker"
        else [[("N", "O"), ("V", "B-x")] * 6 + [("V", "O")]]
    )
    with pytest.raises(ValueError, match=r"sentence 2: 12 labels before .*=max_violation compares"):
        model.fit(words * 2, full + one)


def test_a_few_unknown_tags_are_fine_for_laso():
    tags = [list(tags) for tags in CHUNKS]
    tags[0][1] = None  # type: ignore[call-overload]
    assert Chunker(features="paper", epochs=2).fit(X, tags).score(SMALL) > 0.9


def test_tags_that_contradict_each_other_are_named():
    with pytest.raises(BadData, match=r"sentence 1, token 3: found the tag 'E-b' in a chunk"):
        Chunker(features="paper").fit([["w"] * 4], [["B-a", None, "E-b", "S-a"]])


def test_unknown_tags_are_streamed_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 7)
    model = Chunker(features="paper", epochs=2, strategy=max_violation)
    wanted = as_names(model.fit(X, some(CHUNKS)).weights_)
    pairs = list(zip(X, some(CHUNKS), strict=True))
    model.fit_stream(lambda: iter(pairs), store=tmp_path)
    assert as_names(model.weights_) == wanted


def test_all_known_is_as_if_none_were_missing():
    """One sentence with an unknown tag does not change what the others say."""
    model = Chunker(features="paper", epochs=2)
    data, answers = model.fit(SMALL).task_.read(X, CHUNKS)
    full = model.task_.encode(data, answers).outputs
    tags = [list(tags) for tags in CHUNKS]
    tags[-1][0] = None  # type: ignore[call-overload]
    _, partly = model.task_.read(X, tags)
    found = model.task_.encode(data, partly).outputs
    last = len(CHUNKS[-1])
    assert np.array_equal(found[:-last], full[:-last])
    assert (found[-last:] < -1).all()
    assert issubclass(model.task_.problem, Chunking)


# --------------------------------------------------------------------------- several layers


def layers(sentences):
    return [[tuple(token[1:]) for token in s] for s in sentences]


def words(sentences):
    return [[token[0] for token in s] for s in sentences]


def test_layers_may_be_known_in_part():
    y = [
        [(pos if i % 3 else None, chunk if i % 4 else None) for i, (pos, chunk) in enumerate(s)]
        for s in layers(TRAIN)
    ]
    model = JointTagger(**JOINT, strategy=max_violation).fit(words(TRAIN), y)
    assert model.score(words(TEST), layers(TEST)) > 0.6
    assert model.score(words(TRAIN), y) > model.score(words(TRAIN), layers(TRAIN)) * 0.95


def test_one_layer_of_which_nothing_is_known_is_free():
    y = [[("N", "B-x"), (None, "O")], [("V", None), ("N", "B-x")]]
    model = JointTagger(**{**JOINT, "epochs": 5}).fit([["a", "b"], ["c", "a"]], y)
    found = model.predict([["a", "b"], ["c", "a"]])
    assert [found[0][0], found[0][1][1], found[1][0][0], found[1][1]] == [
        ("N", "B-x"),
        "O",
        "V",
        ("N", "B-x"),
    ]


def test_constraints_narrow_what_is_unknown():
    y = [[("N", "B-x"), ("N", None), ("N", "I-x")], [("N", "O"), ("V", "B-x"), ("V", "I-x")]]
    model = JointTagger(**JOINT, constraints={"chunk": "BIO"}, strategy=max_violation)
    model.fit([["a", "b", "c"], ["a", "d", "d"]], y)
    ((_, (_, tag), _),) = model.predict([["a", "b", "c"]])
    assert tag in ("B-x", "I-x")
    with pytest.raises(BadData, match="no labels of chunk between those known keep"):
        model.fit(
            [["a", "b"], ["a", "b"]], [[("N", "O"), ("N", None)], [("N", None), ("N", "I-x")]]
        )


def test_constraints_between_layers_need_all_labels():
    between = {"pos": {"chunk": {"N": ["B-x"]}}}
    model = JointTagger(**JOINT, pairs=between)
    with pytest.raises(BadData, match="sentence 1, token 2: found None, expected a label of each"):
        model.fit([["a", "b"]], [[("N", "B-x"), (None, "O")]])
