"""The template language, base features, and the template files of CRF++ and Wapiti."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso.errors import BadTemplate
from laso.features import (
    CHUNKING,
    Atom,
    Template,
    default_templates,
    parse_templates,
    read_crfpp,
    read_templates,
    read_wapiti,
)
from laso.features.base import PLAIN, apply_bases, base_function
from laso.features.other_tools import translate_regex
from laso.features.templates import FURTHEST
from laso.features.windows import AFTER, BEFORE, UNKNOWN
from tests.spaces import quick


def texts(templates):
    return [str(template) for template in parse_templates(templates)]


@pytest.mark.parametrize(
    ("template", "expanded"),
    [
        ("w[0]", ["w[0]"]),
        ("w[-2..2]", ["w[-2]", "w[-1]", "w[0]", "w[1]", "w[2]"]),
        ("w[3..3]", ["w[3]"]),
        (" w [ -1 ] | w [ +0 ] ", ["w[-1]|w[0]"]),
        ("pos[-2]|pos[-1]|pos[0]", ["pos[-2]|pos[-1]|pos[0]"]),
        ("w[-1..0]|1[0..1]", ["w[-1]|1[0]", "w[-1]|1[1]", "w[0]|1[0]", "w[0]|1[1]"]),
        ("label[-2..-1]|w[0]", ["label[-2]|w[0]", "label[-1]|w[0]"]),
        ("label[-2]|label[-1]", ["label[-2]|label[-1]"]),
        ("w.lower.suffix3[0]", ["w.lower.suffix3[0]"]),
        ('w.test("^[A-Z]|]")[0]', ['w.test("^[A-Z]|]")[0]']),
        (r'w.match( "a\"b" )[1]', [r'w.match("a\"b")[1]']),
        ("bias", ["bias"]),
        ("bias[0]", ["bias[0]"]),
        ("biased[0]", ["biased[0]"]),
        ("near: w[-1..1]", ["near: w[-1]", "near: w[0]", "near: w[1]"]),
        ("all: bias", ["all: bias"]),
    ],
)
def test_what_a_template_stands_for(template, expanded):
    assert texts([template]) == expanded
    assert texts(expanded) == expanded


def test_templates_that_say_the_same_count_once_in_the_order_of_their_first():
    assert texts(["w[0]", "w[-1..1]", "w[ 0 ]", Template((Atom("w", (), 0),))]) == [
        "w[0]",
        "w[-1]",
        "w[1]",
    ]


def test_a_single_string_has_a_template_on_each_line():
    assert texts("# words\nw[0]\n\n  label[-1]  \n") == ["w[0]", "label[-1]"]


def test_only_templates_of_one_name_and_the_same_columns_share_features():
    one, two, three, four = parse_templates(["a: w[-1]", "a: w[1]", "b: w[1]", "a: w.lower[1]"])
    assert one.identity == two.identity
    assert len({two.identity, three.identity, four.identity}) == 3
    plain = parse_templates("w[-1..1]")
    assert len({template.identity for template in plain}) == 3


@pytest.mark.parametrize(
    ("template", "position", "found", "expected"),
    [
        ("", 1, "the end", "a column's name or number"),
        ("w", 2, "the end", "'['"),
        ("w[0", 4, "the end", "']'"),
        ("w[x]", 3, "'x]'", "a whole number"),
        ("w[0]]", 5, "']'", "'|' or the end"),
        ("w[0]|", 6, "the end", "a column's name or number"),
        ("w[0] pos[0]", 6, "'pos[0]'", "'|' or the end"),
        ("w.lowr[0]", 3, "'lowr[0]'", "a base feature: one of lower"),
        ("w.prefix0[0]", 3, "'prefix0[0]'", "prefix1 to prefix9"),
        ("w.[0]", 3, "'[0]'", "a base feature"),
        ("w[2..-2]", 3, "'2..-2]'", "a window whose first offset is not above its last, -2"),
        ("w[501]", 3, "'501]'", "an offset from -500 to 500"),
        ("w[99999999999999999999]", 3, "'99999999999999999999'", "an offset from -500 to 500"),
        ("label[0]", 7, "'0]'", "an offset below 0"),
        ("label[-1..0]", 7, "'-1..0]'", "an offset below 0"),
        ("label.lower[-1]", 6, "'.lower[-1]'", "a label has no base features"),
        ("w.test[0]", 7, "'[0]'", 'a regular expression, ("...")'),
        ('w.test("(")[0]', 3, "'test(", "a regular expression of RE2 (missing )"),
        ("ü[0]", 1, "'ü[0]'", "a column's name or number"),
        ("bias|w[0]", 5, "'|w[0]'", "'|' or the end"),
    ],
)
def test_errors_name_the_template_the_position_and_what_was_expected(
    template, position, found, expected
):
    with pytest.raises(BadTemplate) as error:
        parse_templates([template])
    message = str(error.value)
    assert message.startswith(f"template {template!r}, position {position}: found {found}")
    assert f"expected {expected}" in message or expected in message.partition("expected")[2]


def test_a_template_that_is_no_string():
    with pytest.raises(BadTemplate, match="found the template 7, expected a string"):
        parse_templates([7])  # type: ignore[list-item]


@quick
@given(st.text(alphabet='w0[]|.-12:"()label bias\\', max_size=14))
def test_anything_is_read_or_refused_and_what_is_read_comes_back(text):
    try:
        templates = parse_templates([text])
    except BadTemplate:
        return
    assert parse_templates([str(template) for template in templates]) == templates


def test_the_chunking_preset_is_crfsuites():
    assert [template for template in texts(CHUNKING) if not template.startswith("label")] == [
        *(f"w[{i}]" for i in range(-2, 3)),
        "w[-1]|w[0]",
        "w[0]|w[1]",
        *(f"pos[{i}]" for i in range(-2, 3)),
        *(f"pos[{i}]|pos[{i + 1}]" for i in range(-2, 2)),
        *(f"pos[{i}]|pos[{i + 1}]|pos[{i + 2}]" for i in range(-2, 1)),
    ]
    assert texts(CHUNKING)[-1] == "label[-1]"


@pytest.mark.parametrize("columns", [(), ("w",), ("w", "pos"), ("0", "1", "2")])
def test_the_default_speaks_of_all_columns_and_of_nothing_else(columns):
    templates = parse_templates(default_templates(columns))
    used = {atom.column for template in templates for atom in template.atoms}
    assert used == {*columns, "label"}


def test_no_offset_is_so_far_that_before_and_after_meet():
    before = {BEFORE - i for i in range(1, FURTHEST + 1)}
    after = {AFTER - i for i in range(FURTHEST)}
    assert not before & after
    assert UNKNOWN not in before | after
    assert max(before | after) < 0


# Base features


BASES = [
    ("lower", {"McCoy": "mccoy", "ÉÀ": "éà"}),
    ("shape", {"McCoy-77's": "XxXxx-00'x", "Éa9": "Xx0", "漢字": "aa", "": "", "ǅ": "X"}),
    ("shortshape", {"McCoy-77's": "XxXx-0'x", "AAA": "X", "...": "."}),
    ("digits", {"1,234.5": "0,000.0", "a": "a", "٣": "0"}),
    ("length", {"": "0", "abc": "3"}),
    ("prefix1", {"abc": "a", "": ""}),
    ("prefix4", {"abc": "abc", "abcde": "abcd"}),
    ("suffix3", {"abcde": "cde", "ab": "ab"}),
    ("isupper", {"AB": "1", "Ab": "0", "": "0"}),
    ("islower", {"ab": "1", "aB": "0"}),
    ("istitle", {"Ab": "1", "AB": "0"}),
    ("isdigit", {"12": "1", "1.2": "0"}),
    ("isalpha", {"ab": "1", "a1": "0"}),
    ("isalnum", {"a1": "1", "a-1": "0"}),
    ("hasupper", {"aBc": "1", "abc": "0"}),
    ("hasdigit", {"a1": "1", "a": "0"}),
    ("hashyphen", {"a-b": "1", "ab": "0"}),
    ('test("^[A-Z]")', {"Ab": "1", "aB": "0"}),
    ('match("[0-9]+")', {"a12b3": "12", "abc": ""}),
]


@pytest.mark.parametrize(("name", "values"), BASES)
def test_base_features(name, values):
    assert apply_bases([name], list(values)) == list(values.values())


def test_every_plain_base_feature_has_a_case_above_and_others_are_refused():
    assert set(PLAIN) <= {name for name, _ in BASES}
    with pytest.raises(ValueError, match="found the base feature 'shapes', expected one of lower"):
        base_function("shapes")


def test_base_features_follow_one_another():
    assert apply_bases(["lower", "suffix3", "length"], ["ABCDE", "xy"]) == ["3", "2"]


# Files


def test_a_template_file_and_where_it_is_wrong(tmp_path):
    path = tmp_path / "templates.txt"
    path.write_text("\ufeff# words\nw[-1..0]\n\nlabel[-1]\n", encoding="utf-8")
    assert list(map(str, read_templates(path))) == ["w[-1]", "w[0]", "label[-1]"]
    path.write_text("w[0]\nw[0\n", encoding="utf-8")
    with pytest.raises(BadTemplate, match=r"templates.txt:2: template 'w\[0', position 4"):
        read_templates(path)
    path.write_bytes(b"w[0]\n\xff")
    with pytest.raises(BadTemplate, match="found the byte 0xff at byte 5, expected UTF-8"):
        read_templates(path)


def crfpp(tmp_path, text):
    path = tmp_path / "template"
    path.write_text(text, encoding="utf-8")
    return [str(template) for template in read_crfpp(path)]


def test_a_crfpp_template_file(tmp_path):
    text = """# Unigram
U00:%x[-2,0]
U01:%x[0,0]
U05:%x[-1,0]/%x[0,0]

U10:%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
U

# Bigram
B
B01:%x[0,0]
"""
    assert crfpp(tmp_path, text) == [
        "0[-2]",
        "0[0]",
        "0[-1]|0[0]",
        "1[1]",
        "1[0]|1[1]|1[2]",
        "bias",
        "label[-1]",
        "label[-1]|0[0]",
    ]


def test_crfpp_lines_without_an_identifier_are_bags_of_words(tmp_path):
    text = "U:%x[-1,0]\nU:%x[1,0]\nU:%x[0,1]\nUx:%x[0,0]\nB:%x[0,0]\n"
    assert crfpp(tmp_path, text) == [
        "bag1: 0[-1]",
        "bag1: 0[1]",
        "1[0]",
        "0[0]",
        "label[-1]|0[0]",
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("X00:%x[0,0]", "2: found 'X00:%x[0,0]', expected a line that begins U or B"),
        ("U00:%x[0]", "2, position 5: found '%x[0]', expected %x[row,column]"),
        ("U00:%y[0,0]", "2, position 5: found '%y[0,0]', expected %x[row,column]"),
        ("U00:%X[0,0]", "2, position 5: found '%X[0,0]', expected %x[row,column]"),
        ("U00:%x[0,0]/%", "2, position 13: found '%', expected %x[row,column]"),
        ("U00:%x[-501,0]", "expected a row from -500 to 500"),
        ('U00:%x[0,0,"a"]', "expected a regular expression with %t and %m only"),
    ],
)
def test_what_is_wrong_with_a_crfpp_line(tmp_path, line, message):
    with pytest.raises(BadTemplate, match=re.escape(message)):
        crfpp(tmp_path, "U\n" + line + "\n")


def wapiti(tmp_path, text):
    path = tmp_path / "pattern.txt"
    path.write_text(text, encoding="utf-8")
    return [str(template) for template in read_wapiti(path)]


def test_a_wapiti_pattern_file(tmp_path):
    text = r"""
*
U:word=%x[ 0,0]   # a comment
u:lower=%X[-1,0]/%x[ 0,1]
b:%x[0,1]
*:pre=%m[ 0,0,"^.?.?"]
u:caps=%t[ 1,0,"\u"]
u:suffix=%M[ 0,0,".?$"]
"""
    assert wapiti(tmp_path, text) == [
        "bias",
        "label[-1]",
        "0[0]",
        "0.lower[-1]|1[0]",
        "label[-1]|1[0]",
        r'0.match("(?s)\A.?.?")[0]',
        r'label[-1]|0.match("(?s)\A.?.?")[0]',
        '0.test("(?s)[A-Z]")[1]',
        r'0.match("(?s).?\z").lower[0]',
    ]
    read = wapiti(tmp_path, text)
    assert texts(read) == read


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("x:%x[0,0]", "1: found 'x:%x[0,0]', expected a line that begins u, b or *"),
        ("u:%x[@1,0]", "position 3: found '%x[@1,0]', expected an offset"),
        ("u:%x[*1,0]", "position 3: found '%x[*1,0]', expected an offset"),
        ("u:%t[0,0]", "expected a regular expression with %t and %m only"),
        ("u:%q[0,0]", "expected %x[row,column] or %t[row,column,...] or %m[row,column,...]"),
        ('u:%t[0,0,"*a"]', "expected a character before '*'"),
        ('u:%t[0,0,"a*?"]', "expected a character before '?'"),
    ],
)
def test_what_is_wrong_with_a_wapiti_line(tmp_path, line, message):
    with pytest.raises(BadTemplate, match=re.escape(message)):
        wapiti(tmp_path, line + "\n")


CLASSES = {
    "a": string.ascii_letters,
    "d": string.digits,
    "l": string.ascii_lowercase,
    "p": string.punctuation,
    "s": " \t\n\r\f\v",
    "u": string.ascii_uppercase,
    "w": string.ascii_letters + string.digits,
}


def wapiti_matches(pattern, text):
    """Where a pattern of Wapiti's matches at the start of a text: the first length it tries."""
    if not pattern:
        return 0
    if pattern == ["$"]:
        return None if text else 0
    unit, rest = pattern[0], pattern[1:]

    def fits(character):
        if unit == ".":
            return True
        if len(unit) == 2 and unit[1].lower() in CLASSES:
            return (character in CLASSES[unit[1].lower()]) == unit[1].islower()
        return character == unit[-1]

    def after(n, following):
        found = wapiti_matches(following, text[n:])
        return None if found is None else n + found

    if rest[:1] == ["*"]:
        lengths, following = range(len(text) + 1), rest[1:]
    elif rest[:1] == ["?"]:
        lengths, following = range(1, -1, -1), rest[1:]
    else:
        lengths, following = range(1, 2), rest
    for n in lengths:
        if n <= len(text) and all(map(fits, text[:n])):
            found = after(n, following)
            if found is not None:
                return found
    return None


def wapiti_match(units, text):
    """The first substring that a pattern matches, None if none does."""
    anchored = units[:1] == ["^"]
    for at in range(1 if anchored else len(text) + 1):
        n = wapiti_matches(units[anchored:], text[at:])
        if n is not None:
            return text[at : at + n]
    return None


units = st.sampled_from([".", "a", "B", "7", "-", "(", "[", "|", r"\.", r"\\", r"\u", r"\U", r"\l"])
units |= st.sampled_from([r"\d", r"\D", r"\p", r"\w", r"\W", r"\a", r"\s", r"\^", r"\$", '\\"'])


@quick
@given(
    st.lists(st.tuples(units, st.sampled_from(["", "", "*", "?"])), min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.lists(st.text('aBz7-.([|\\^$"é ', max_size=6), min_size=5, max_size=5),
)
def test_wapitis_regular_expressions_match_what_they_match_there(parts, begin, end, values):
    pattern = ["^"] * begin + [u for part in parts for u in part if u] + ["$"] * end
    name = f'match("{translate_regex("".join(pattern), "here")}")'
    (template,) = parse_templates([f"0.{name}[0]"])
    for value in values:
        found = wapiti_match(pattern, value)
        assert base_function(template.atoms[0].bases[0])(value) == (found or "")
        tested = base_function(name.replace("match", "test", 1))(value)
        assert tested == str(int(found is not None))
