"""Regular expressions of templates: the values of Python's ``re``, in linear time."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso.errors import BadTemplate
from laso.features.base import base_function
from laso.features.patterns import compiled_search
from laso.features.templates import parse_templates

ATOMS = ["a", "b", "é", "K", "1", ".", r"\w", r"\d", r"\S", r"\W", "[a-c]", "[^a]", r"[\d_]", "\\n"]
PLACES = ["^", r"\A", "", "", "", ""]
ENDS = ["$", r"\Z", "", "", "", ""]


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
    lambda flags, begin, body, end: f"{flags}{begin}{body}{end}",
    st.sampled_from(["", "", "(?a)", "(?s)", "(?i)", "(?m)"]),
    st.sampled_from(PLACES),
    BODIES,
    st.sampled_from(ENDS),
)
TEXTS = st.text(st.sampled_from("abcéK1k\u212a_\u0661 \n\ud800"), max_size=8)


@settings(max_examples=400, deadline=None)
@given(PATTERNS, st.lists(TEXTS, min_size=1, max_size=6))
def test_values_are_those_of_python(pattern, texts):
    """Wherever a pattern is taken, both base features have Python's values."""
    for exists in (True, False):
        try:
            search = compiled_search(pattern, exists=exists)
        except ValueError:
            continue
        for text in texts:
            wanted = re.search(pattern, text)
            found = search(text)
            if exists:
                assert (found is None) == (wanted is None), (pattern, text)
            else:
                assert found == (None if wanted is None else wanted.span()), (pattern, text)


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
        (r"(a+)\1", "a reference to a group"),
        (r"(?=(a+)+$)a", "lookaround"),
        (r"\b(a+)+$", "the border of a word"),
        (r"(?:a{1,1000}){0,1000}\b", "the border of a word"),
        (r"((a{1000}){1000}){1000}", "too large"),
        ("(" * 400 + ")" * 400, "too deeply nested|too large|too many"),
    ],
)
def test_patterns_that_may_take_too_long_are_refused(pattern, message):
    with pytest.raises(BadTemplate, match=message) as error:
        parse_templates([f'w.match("{pattern}")[0]'])
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("pattern", "value", "wanted"),
    [
        (r"\bfoo\b", "a foo", "foo"),
        (r"(?<=-)\d", "a-1", "1"),
        (r"(?!ab)a.", "abac", "ac"),
        (r"(a|b)\1", "abb", "bb"),
        (r"\d{2,4}$", "x12345", "2345"),
        (r"a$", "a\n", "a"),
        (r"[\s\S]+$", "a\n", "a\n"),
        (r"\w+", "e\u0301\u00e9", "e"),
    ],
)
def test_what_re2_lacks_works_if_nothing_repeats_without_bound(pattern, value, wanted):
    assert re.search(pattern, value)[0] == wanted  # type: ignore[index]
    assert base_function(f'match("{pattern}")')(value) == wanted
