"""Regular expressions of templates: those of RE2, in linear time and bounded memory."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso.errors import BadTemplate
from laso.features.base import base_function
from laso.features.patterns import compiled_search
from laso.features.templates import parse_templates

ATOMS = ["a", "b", "é", "K", "1", ".", "[0-9]", "[a-c]", "[^a]", "[0-9_]", "\\n"]
PLACES = ["^", r"\A", "", "", "", ""]


def repeated(inner):
    times = st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,3}", "{0,2}?"])
    return st.one_of(
        st.builds(lambda a, n: f"(?:{a}){n}", inner, times),
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: f"(?:{a}|{b})", inner, inner),
        st.builds(lambda a, b: f"({a})|{b}", inner, inner),
        st.builds(lambda a: f"(?i:{a})", inner),
    )


BODIES = st.recursive(st.sampled_from(ATOMS), repeated, max_leaves=6)
PATTERNS = st.builds(
    lambda flags, begin, body: f"{flags}{begin}{body}",
    st.sampled_from(["", "", "(?s)", "(?i)", "(?m)"]),
    st.sampled_from(PLACES),
    BODIES,
)
TEXTS = st.text(st.sampled_from("abcéK1k\u212a_\u0661 \n\ud800"), max_size=8)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=6))
def test_patterns_match_where_those_of_python_do(pattern, texts):
    search, like = compiled_search(pattern), re.compile(pattern)
    for text in texts:
        assert (search(text) is None) == (like.search(text) is None), (pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        "^(a+)+$",
        "(a|a)*b",
        "(a|ab|b)*c",
        r"(\w+\s?)+$",
        "a*a*a*a*a*a*b",
        "(.*)*$",
        r"^(([a-z])+.)+[A-Z]([a-z])+$",
        "(?i)(a|A|aa)+$",
        "(x+x+)+y",
    ],
)
def test_patterns_that_backtrack_for_ever_are_matched_at_once(pattern):
    value = "a" * 20_000 + "!"
    test = base_function(f'test("{pattern}")')
    begun = time.perf_counter()
    found = test(value)
    assert time.perf_counter() - begun < 2.0
    assert found in ("0", "1")
    short = "a" * 6 + "!"
    assert test(short) == ("1" if re.search(pattern, short) else "0")


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (
            r"(a+)\1",
            r"found .*, expected a regular expression of RE2 \(invalid escape sequence: \\1",
        ),
        (r"(?=(a+)+$)a", r"invalid perl operator: \(\?="),
        (r"a\Z", r"invalid escape sequence: \\Z"),
        (r"((a{1000}){1000}){1000}", "invalid repetition size"),
        (r"\pL{1000}", "too large"),
        (r"(((\pL{9}){9}){9}|x)*", "too large"),
        ("[" + "a-" * 300, "missing ]"),
        ("a" * 1001, "found 1001 characters, expected at most 1000"),
    ],
)
def test_what_re2_refuses_is_refused_at_once(pattern, message):
    begun = time.perf_counter()
    with pytest.raises(BadTemplate, match=message) as error:
        parse_templates([f'w.match("{pattern}")[0]'])
    assert time.perf_counter() - begun < 1.0
    assert len(str(error.value)) < 1500


def test_a_large_pattern_takes_linear_time():
    pattern = "|".join(f"(?:{a}.{{90}}){{5}}" for a in "abc") + "|" + "(" * 99 + "x*" + ")*" * 99
    search = compiled_search(pattern)
    begun = time.perf_counter()
    search("abc" * 7000)
    assert time.perf_counter() - begun < 2.0


@pytest.mark.parametrize(
    ("pattern", "value", "wanted"),
    [
        (r"\bfoo\b", "a foo", "foo"),
        (r"\d{2,4}$", "x12345", "2345"),
        (r"a$", "a\n", ""),
        (r"[\s\S]+\z", "a\n", "a\n"),
        (r"\w+", "aé", "a"),
        (r"[\pL\pM]+", "1e\u0301\u00e9.", "e\u0301\u00e9"),
        (r"\p{Lu}\p{Ll}+", "éÉté", "Été"),
        (r"[[:upper:]]+", "aBCd", "BC"),
        (r"(?i)straße", "STRAßE", "STRAßE"),
        (r"(a|ab)(c|bcd)", "abcd", "abcd"),
        ("x.", "\ud800x\ud801", "x\ud801"),
    ],
)
def test_the_text_that_a_pattern_matches(pattern, value, wanted):
    assert base_function(f'match("{pattern}")')(value) == wanted
