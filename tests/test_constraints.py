"""Which label may follow which: BIO, IOBES, tables."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso.engine.reference import input_of, output_of
from laso.errors import BadData
from laso.features.encoder import (
    label_numbers,
)
from laso.features.inputs import read_input
from laso.features.templates import parse_templates
from laso.tasks.constraints import Constraints, bio, iobes, table
from laso.tasks.tagging.encoder import TaggingEncoder
from laso.tasks.tagging.problem import Tagging
from tests.spaces import quick

# Constraints

LABELS = ("O", "B-X", "I-X", "B-Y", "I-Y")


def keeps(constraints, labels):
    """The twin: does a sequence of label numbers keep the constraints?"""
    return not labels or bool(
        constraints.follow[0, labels[0]]
        and all(constraints.follow[a + 1, b] for a, b in pairwise(labels))
        and constraints.end[labels[-1]]
    )


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_bio_and_iobes_allow_what_they_mean(n):
    names = ["O", "B-X", "I-X", "E-X", "S-X", "B-Y", "I-Y", "E-Y", "S-Y"]
    is_bio = {"O", "B-X", "I-X", "B-Y", "I-Y"}
    for labels in product(range(len(names)), repeat=n):
        tags = [names[i] for i in labels]
        open_type = None  # IOBES: the chunk that must go on
        good = True
        for tag in tags:
            mark, _, kind = tag.partition("-")
            good &= (open_type == kind) if mark in "IE" else open_type is None
            open_type = kind if mark in "BI" else None
        assert keeps(iobes(names), labels) == (good and open_type is None)
        if set(tags) <= is_bio:
            numbers = [LABELS.index(tag) for tag in tags]
            before = ["O", *tags][:-1] if tags else []
            good = all(t[0] != "I" or b[1:] == t[1:] for b, t in zip(before, tags, strict=True))
            assert keeps(bio(LABELS), numbers) == good


@pytest.mark.parametrize("make", [bio, iobes])
@pytest.mark.parametrize("label", ["X", "B-", "O-X", "", "b-X"])
def test_labels_outside_a_scheme(make, label):
    with pytest.raises(ValueError, match=f"found the label {label!r}, expected"):
        make(["O", label])


def test_a_table_of_what_may_follow():
    constraints = table(
        ["a", "b", "c"], {"a": ["b", None, "?"], None: ["a"], "?": ["a"], "b": ["c"]}
    )
    assert constraints.follow.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1]]
    assert constraints.end.tolist() == [1, 0, 1]
    assert table(["a", "b"], {"a": ["b"]}).end.tolist() == [1, 1]
    assert table(["a", "b"], {"a": ["b"]}).follow.tolist() == [[1, 1], [0, 1], [1, 1]]


flags = st.lists(st.booleans(), min_size=3, max_size=3)
constraint_tables = st.builds(
    lambda follow, end: Constraints(np.array(follow, np.int64), np.array(end, np.int64)),
    st.lists(flags, min_size=4, max_size=4),
    flags,
)


@quick
@given(constraint_tables, st.lists(st.integers(-1, 2), max_size=4))
def test_ends_are_reached_and_sets_are_good_as_enumeration_says(constraints, wanted):
    n = len(wanted)
    paths = [p for p in product(range(3), repeat=n) if keeps(constraints, p)]
    assert constraints.allows_length(n) == bool(paths)
    rows = constraints.reaching(max(n, 1))
    for left in range(n):
        row = rows[min(left, len(rows) - 1)]
        for label in range(3):
            ends = [
                p
                for p in product(range(3), repeat=left)
                if all(constraints.follow[a + 1, b] for a, b in pairwise((label, *p)))
                and constraints.end[(label, *p)[-1]]
            ]
            assert bool(row[label]) == bool(ends)
    good = [p for p in paths if all(w in (-1, label) for w, label in zip(wanted, p, strict=True))]
    sets = constraints.good_sets(np.array(wanted, np.int64))
    assert (sets is not None) == bool(good)
    if sets is not None:
        for path in good:
            assert all(sets[i, label] for i, label in enumerate(path))
        # From any label of a set that may come next, the rest can be had.
        for i, label in product(range(n), range(3)):
            rest = [
                p
                for p in product(range(3), repeat=n - i)
                if p[0] == label
                and all(w in (-1, b) for w, b in zip(wanted[i:], p, strict=True))
                and all(constraints.follow[a + 1, b] for a, b in pairwise(p))
                and constraints.end[p[-1]]
            ]
            assert bool(sets[i, label]) == bool(rest)


def bio_corpus(labels, constraints="BIO"):
    names = tuple(sorted({label for s in labels for label in s if label} | set(LABELS)))
    encoder = TaggingEncoder(parse_templates(["bias"]), ("w",), names, constraints=bio(names))
    data = read_input([["x"] * len(s) for s in labels])
    numbers = label_numbers([label for s in labels for label in s], names, data.lengths)
    return names, encoder.dataset(data, numbers)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["O"], ["O", "I-X"]], "sentence 2, token 2: found the label I-X after O"),
        ([["I-X"]], "sentence 1, token 1: found the label I-X after the beginning"),
        ([["B-X", "I-Y"]], "sentence 1, token 2: found the label I-Y after B-X"),
        ([["O"], ["B-X", None, "I-Y"], ["I-X"]], "sentence 3, token 1: found the label I-X"),
    ],
)
def test_labels_that_break_the_constraints_are_named(labels, message):
    with pytest.raises(BadData) as error:
        bio_corpus(labels)
    assert message in str(error.value)


def test_labels_between_which_nothing_fits():
    names = ("a", "b")
    encoder = TaggingEncoder(
        parse_templates(["bias"]), ("w",), names, constraints=table(names, {"a": ["b"]})
    )
    data = read_input([["x"], ["x"] * 3])
    encoder.dataset(data, np.array([0, 0, -1, 1]))
    encoder = TaggingEncoder(
        parse_templates(["bias"]), ("w",), names, constraints=table(names, {"a": ["b"], "b": ["a"]})
    )
    with pytest.raises(BadData, match="sentence 2: no labels between those known keep"):
        encoder.dataset(data, np.array([0, 0, -1, 1]))


def test_sentences_that_cannot_be_labelled():
    names = ("B-X", "E-X")
    encoder = TaggingEncoder(parse_templates(["bias"]), ("w",), names, constraints=iobes(names))
    encoder.dataset(read_input([["x", "x"], []]))
    with pytest.raises(BadData, match="sentence 2: no 3 labels in a row keep the constraints"):
        encoder.dataset(read_input([["x", "x"], ["x"] * 3]))


def test_an_unknown_label_before_a_known_one_is_good_only_if_it_leads_there():
    names, corpus = bio_corpus([[None, "I-X"], [None, "O"]])
    x, y = input_of(corpus, 0), output_of(corpus, 0)
    start = np.array([0, -1], np.int32)
    good = {name for i, name in enumerate(names) if Tagging.is_good(x, y, start, 0, i)}
    assert good == {"B-X", "I-X"}
    allowed = {name for i, name in enumerate(names) if Tagging.allowed(x, start, 0, i)}
    assert good & allowed == {"B-X"}
    x, y = input_of(corpus, 1), output_of(corpus, 1)
    assert all(Tagging.is_good(x, y, start, 0, i) for i in range(len(names)))
