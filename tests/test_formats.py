"""Formats, separators, and the small tokeniser."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso import Tagger
from laso.data.formats import ColumnRoles, Format, default_roles, guessed
from laso.data.reading import read
from laso.data.tokenizer import sentences, tokens
from laso.metrics.evaluation import are_chunks, evaluated
from laso.tasks.constraints import scheme_of


@given(st.text(max_size=80))
def test_no_character_is_lost_or_changed(text):
    assert "".join(tokens(text)) == "".join(text.split())
    assert [t for s in sentences(text) for t in s] == tokens(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("It's Mr. Li's.", ["It 's Mr. Li 's ."]),
        ("He left. She can't.", ["He left .", "She ca n't ."]),
        ('"Go!" she said. 3.5 km', ['" Go ! " she said .', "3.5 km"]),
        ("See https://a.org/b. Or a@b.org, e.g. today.", None),
        ("the end. and on", ["the end . and on"]),
        ("well-known (old) U.S. 1,000", ["well-known ( old ) U.S. 1,000"]),
        ("", []),
    ],
)
def test_sentences_of_a_text(text, wanted):
    found = [" ".join(sentence) for sentence in sentences(text)]
    if wanted is None:
        wanted = ["See https://a.org/b .", "Or a@b.org , e.g. today ."]
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "name", "form"),
    [
        ("a X\nb Y\n", "", Format("columns")),
        ("a\tX\nb\tY\n", "", Format("columns", "\t")),
        ("New York\tX\nb\tY\n", "", Format("columns", "\t")),
        ("a;X\nb;Y\n", "", Format("columns", ";")),
        ("a,X\nb,Y\n", "", Format("columns", ",")),
        ("a\n,\nb\n", "", Format("columns")),
        ("#a O\nb O\n", "", Format("columns")),
        ("# id = 1\na X\n", "", Format("columns", None, "#")),
        ('{"tokens": []}', "", Format("jsonl")),
        ("anything", "x.jsonl", Format("jsonl")),
        ("1\t" + "\t".join("abcdefghi") + "\n", "", Format("conllu")),
        ("", "x.conllu", Format("conllu")),
        ("", "", Format("columns")),
    ],
)
def test_what_a_file_is(text, name, form):
    assert guessed(text, name) == form


def test_roles_of_columns_in_other_files():
    trained = ColumnRoles(("1", "2"), ("3",), 3)
    assert trained.for_names(("1", "2", "3")) is trained
    assert trained.for_names(("1", "2")) == ColumnRoles(("1", "2"), (), 2)
    assert trained.for_names(("1", "2", "3", "4")) is None
    assert trained.for_names(("1",)) is None
    assert ColumnRoles(("1",), ("3",), 3).for_names(("1",)) == ColumnRoles(("1",), (), 1)
    first = ColumnRoles(("2",), ("1",), 2)
    assert first.for_names(("1",)) == ColumnRoles(("1",), (), 1)
    assert default_roles(Format("jsonl"), ("tokens", "tags", "pos")).labels == ("tags",)


def test_blocks_are_read_when_they_are_asked_for():
    class Lines(io.RawIOBase):
        def __iter__(self):
            yield b"a X\n"
            yield b"\n"
            raise AssertionError("read too far")

    (first, *_) = [next(read(Lines()))]  # type: ignore[arg-type]
    assert first.tokens == [("a", "X")]


def test_labels_that_mark_chunks():
    assert are_chunks(["B-X", "I-X", "O"])
    assert are_chunks(["B", "I", "O"])
    assert are_chunks(["S-X", "E-Y"])
    assert not are_chunks(["O"])
    assert not are_chunks(["B-X", "N"])
    assert not are_chunks(["S", "E"])
    assert not are_chunks([None, "B-X"])


def test_evaluation_of_several_layers_and_of_unknown_labels():
    joint = evaluated([[("N", "B-X"), ("V", "O")]], [[("N", "B-X"), ("N", "O")]])
    assert (joint.accuracy, [layer.score for layer in joint.layers]) == (50.0, [50.0, 100.0])
    assert "layer 2" in str(joint)
    partial = evaluated([["N", None]], [["N", "V"]])
    assert (partial.tokens, partial.accuracy) == (1, 100.0)
    assert partial.as_json()["labels"]["N"]["f"] == 100.0


@pytest.mark.parametrize(
    ("sequences", "scheme"),
    [
        ([["B-X", "I-X", "O"], ["O"]], "BIO"),
        ([["B", "I", "O"]], "BIO"),
        ([["B-X", "B-X"]], "BIO"),
        ([["I-X", "O"], ["B-X"]], None),  # IOB1
        ([["B-X", "I-Y"], ["B-Y"]], None),
        ([["S-X", "B-Y", "E-Y", "O"]], "IOBES"),
        ([["O", "B-Y", "E-Y"], ["B-Y", "O"]], None),
        ([["B-Y", "E-Y"], ["B-Y", "I-Y", "E-Y"]], None),  # no sentence of one word
        ([["B-X", None]], None),
        ([["NN", "O"]], None),
        ([["O", "O"]], None),
        ([[]], None),
    ],
)
def test_the_scheme_of_labels_is_one_that_all_keep_to(sequences, scheme):
    assert scheme_of(sequences) == scheme
    if scheme is not None:
        Tagger(epochs=1, features=["w[0]", "label[-1]"], constraints=scheme).fit(
            [["a"] * len(labels) for labels in sequences], sequences
        )
