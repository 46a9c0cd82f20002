"""Tagger with labels that are unknown, and with labels that may not follow each other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from laso import (
    Tagger,
    max_violation,
)
from laso.data import load_bundled
from laso.engine.machine import as_names
from laso.errors import BadData
from laso.features import CHUNKING
from laso.tasks.constraints import table
from tests.spaces import quick

TRAIN, TEST = load_bundled()


def weights(tagger):
    return as_names(tagger.weights_)


@pytest.fixture(scope="module")
def hidden():
    """Every other label is not known."""
    return [
        [(w, p, None if (i + j) % 2 else tag) for j, (w, p, tag) in enumerate(sentence)]
        for i, sentence in enumerate(TRAIN)
    ]


def test_the_labels_known_are_enough_to_learn_from(hidden):
    tagger = Tagger(
        features=CHUNKING,
        queue=3,
        epochs=3,
        constraints="BIO",
        strategy=max_violation,
        dtype="float64",
    ).fit(hidden)
    assert None not in tagger.classes_
    assert tagger.score(TEST) > 0.6
    known = sum(tag is not None for s in hidden for *_, tag in s)
    found = tagger.predict(hidden)
    right = sum(
        tag == guess
        for s, guesses in zip(hidden, found, strict=True)
        for (*_, tag), guess in zip(s, guesses, strict=True)
    )
    assert tagger.score(hidden) == right / known


def test_few_unknown_labels_for_the_papers_strategy_many_for_others(hidden):
    one = [
        [(w, p, None if j == i % 5 else tag) for j, (w, p, tag) in enumerate(sentence)]
        for i, sentence in enumerate(TRAIN)
    ]
    tagger = Tagger(features=CHUNKING, queue=2, epochs=2, constraints="BIO").fit(one)
    assert tagger.score(TEST) > 0.6
    with pytest.raises(ValueError, match=r"sentence \d+: \d+ labels before a known one"):
        clone(tagger).fit(hidden)


def test_one_sentence_with_nothing_known_changes_nothing():
    tagger = Tagger(features=["w[0]"], epochs=1).fit([[("a", "X")], [("b", None)]])
    assert weights(tagger) == {}
    assert tagger.predict([["a"]]) == [["X"]]


# Constraints

labels_of_chunks = st.sampled_from(["O", "B-X", "I-X", "B-Y", "I-Y"])


@st.composite
def bio_sentences(draw):
    """Well-formed BIO labels with words that say little about them."""
    sentences = []
    for size in draw(st.lists(st.integers(1, 5), min_size=1, max_size=5)):
        sentence, before = [], "O"
        for _ in range(size):
            label = draw(labels_of_chunks)
            if label[0] == "I" and before[1:] != label[1:]:
                label = "B" + label[1:]
            sentence.append((draw(st.sampled_from("abc")), label))
            before = label
        sentences.append(sentence)
    return sentences


def is_bio(labels):
    before = ["O", *labels]
    return all(b[0] != "I" or a[1:] == b[1:] for a, b in zip(before, labels, strict=False))


def as_iobes(labels):
    result = []
    for i, label in enumerate(labels):
        ends = i + 1 == len(labels) or labels[i + 1][0] != "I"
        mark = {"B": "S", "I": "E"}.get(label[0], "O") if ends else label[0]
        result.append(mark + label[1:])
    return result


@quick
@given(bio_sentences(), st.lists(st.text("abcd", min_size=1, max_size=7), max_size=4), st.data())
def test_no_output_breaks_the_constraints(train, test, data):
    width = data.draw(st.integers(1, 3))
    texts = data.draw(st.sampled_from([["w[0]"], ["w[0]", "label[-1]"], ["label[-2]|w[0]"]]))
    settings: dict[str, Any] = {"features": texts, "queue": width, "epochs": 1, "average": False}
    X = [list(words) for words in test]
    for labels in Tagger(constraints="BIO", **settings).fit(train).predict(X):
        assert is_bio(labels)
    y = [as_iobes([label for _, label in sentence]) for sentence in train]
    words = [[word for word, _ in sentence] for sentence in train]
    tagger = Tagger(constraints="IOBES", **settings).fit(words, y)
    constraints = tagger.task_.encoder_.constraints
    assert constraints is not None
    for x in X:
        if not constraints.allows_length(len(x)):
            with pytest.raises(BadData, match="in a row keep the constraints"):
                tagger.predict([x])
            continue
        (found,) = tagger.predict([x])
        assert as_iobes([{"S": "B", "E": "I"}.get(t[0], t[0]) + t[1:] for t in found]) == found


@quick
@given(st.data())
def test_no_output_breaks_a_table(data):
    """A table with dead ends: labels that only some numbers of further words get out of."""
    names = ["a", "b", "c"]
    following = st.lists(st.sampled_from([*names, None]), max_size=3)
    given_table = data.draw(st.dictionaries(st.sampled_from([*names, None]), following))
    tagger = Tagger(features=["w[0]"], queue=1, epochs=1, constraints=given_table)
    X = [["x"] * n for n in range(1, 6)]
    try:
        tagger.fit([["x"]] * 3, [["a"], ["b"], ["c"]])
    except BadData:
        tagger.constraints = None
        tagger.fit([["x"]] * 3, [["a"], ["b"], ["c"]])
        tagger.constraints = given_table
        tagger.task_.encoder_.constraints = table(names, given_table)
        tagger.task_.encoder_._specs.clear()
    constraints = tagger.task_.encoder_.constraints
    assert constraints is not None
    ends = any(None in after for after in given_table.values())
    for x in X:
        try:
            (found,) = tagger.predict([x])
        except BadData:
            assert not constraints.allows_length(len(x))
            continue
        for a, b in zip([None, *found], found, strict=False):
            assert b in given_table.get(a, names)
        assert not ends or None in given_table.get(found[-1], [None])


def test_labels_of_learning_must_keep_the_constraints():
    with pytest.raises(BadData, match="sentence 1, token 1: found the label I-X after the begin"):
        Tagger(constraints="BIO").fit([[("a", "I-X")]])
    with pytest.raises(ValueError, match="found the label 'X', expected BIO"):
        Tagger(constraints="BIO").fit([[("a", "X")]])
