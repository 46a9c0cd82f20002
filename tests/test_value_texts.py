"""Texts of values as files and the command line give them: what is read and what is refused."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import laso
from laso import (
    beam,
    lbfgs,
    perceptron,
)
from laso.cli.settings import made
from laso.values import (
    CONSTANTS,
    CONSTRUCTORS,
    MAX_DEPTH,
    known,
    parse,
)

# Texts to read


def test_known_names_are_public():
    assert {*CONSTANTS, *CONSTRUCTORS} <= set(laso.__all__)
    assert known()["beam"] is beam


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-0.5", -0.5),
        ("True", True),
        ("None", None),
        ("'rows'", "rows"),
        ("  beam(5) ", beam(5)),
        ("beam(width=5)", beam(5)),
        ("greedy()", beam(1)),
        ("lbfgs(variance=float('inf'))", lbfgs(variance=math.inf)),
        ("float('-inf')", -math.inf),
        ("perceptron(\n  margin=1.0,\n)", perceptron(margin=1.0)),
    ],
)
def test_texts_that_are_read(text, value):
    assert parse(text) == value
    assert made(text) == value


HOSTILE = [
    "",
    " ",
    "beam",
    "perceptron",
    "beam(5",
    "beam(5); beam(6)",
    "beam(5) or beam(6)",
    "[beam(5)]",
    "(1, 2)",
    "{}",
    "{1: 2}",
    "b'x'",
    "...",
    "1j",
    "f'{beam}'",
    "lambda: 5",
    "x := 5",
    "not True",
    "-True",
    "-'x'",
    "~5",
    "2 ** 99",
    "'a' * 9",
    "beam(*[5])",
    "beam(**{'width': 5})",
    "beam(5).__class__",
    "beam.__init__",
    "beam.__init__.__globals__",
    "beam(5)(5)",
    "laso.beam(5)",
    "__import__('os')",
    "__import__('os').system('true')",
    "eval('1')",
    "exec('1')",
    "open('x')",
    "print",
    "print(1)",
    "len",
    "float",
    "float(5)",
    "float('nan')",
    "float('1')",
    "float(x='inf')",
    "uniform([], [])",
    "restart(1, 2, 3, 4, 5, 6)",
    "own_key(5)",
    "fit",
    "fit(1, 2)",
    "Tagger()",
    "load_model('x')",
    "observed(beam(5), depth)",
    "beam()",
    "beam(0)",
    "beam(5, 6)",
    "beam(5, colour=1)",
    "beam(5, key=5)",
    "beam(5, width=6)",
    "alma(alpha=7)",
    "alma(alpha='x')",
    "alma(alpha=None)",
    "polynomial_kernel('x')",
    "perceptron(margin=1, margin=2)",
    "beam(\x005)",
    "beam(5)\x00",
    "\ud800",
    "beam(" + "9" * 5000 + ")",
    "beam(5" + " " * 5000 + ")",
    "(" * 150 + "5" + ")" * 151,
    "-" * 900 + "5",
    "only_good(" * 90 + "beam(5)" + ")" * 90,
    "only_good(" * MAX_DEPTH + "beam(5)" + ")" * MAX_DEPTH,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_refused(text):
    with pytest.raises(ValueError, match=r"^found ") as error:
        parse(text)
    assert type(error.value) is ValueError
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("thing", [None, 5, b"beam(5)", ["beam(5)"], beam(5)])
def test_only_text_is_read(thing):
    with pytest.raises(ValueError, match=r"^found \w+, expected text$"):
        parse(thing)


@settings(max_examples=300)
@given(st.text(max_size=40) | st.lists(st.sampled_from(list("beam(5)=,-.'x")), max_size=20))
def test_any_text_is_read_or_refused(text):
    text = "".join(text)
    try:
        value = parse(text)
    except ValueError:
        return
    assert parse(repr(value)) == value


def test_deep_texts_up_to_the_limit_are_read():
    n = MAX_DEPTH - 1  # for 5 is inside beam
    text = "only_good(" * n + "beam(5)" + ")" * n
    assert repr(parse(text)) == text


def test_the_refusal_says_what_is_wrong_and_what_there_is():
    for text, why in [
        ("beam", "beam needs parentheses"),
        ("beem(5)", "'beem' cannot be called"),
        ("uniforn", "there is no 'uniforn'"),
        ("beam(0)", "the width of a beam must be a whole number from 1 up, found 0"),
        ("beam(5, colour=1)", r"Beam\(\) got an unexpected keyword argument 'colour'"),
        ("beam(**{})", "arguments cannot be unpacked"),
    ]:
        with pytest.raises(ValueError, match=why):
            parse(text)
        with pytest.raises(
            ValueError, match="expected a number or a call of one of beam, greedy, exact"
        ):
            parse(text)
