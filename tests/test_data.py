"""Column files: what the reader forgives, what it refuses, and that writing comes back."""

import io
import os
import re
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laso.data import (
    Format,
    find_corpus,
    load_bundled,
    read,
    read_columns,
    write_columns,
)
from laso.data.columns import no_token
from laso.data.table import Columns, Factor, concatenated, table_of
from laso.engine import thresholds
from laso.errors import BadData, LasoError, MissingData
from laso.features import column_text, reading
from laso.features.inputs import read_input
from laso.features.reading import read_table
from tests.spaces import quick

TWO = [[("a", "X"), ("b", "Y")], [("c", "X")]]


def from_bytes(data, **options):
    return read_columns(io.BytesIO(data), **options)


@pytest.mark.parametrize(
    "data",
    [
        b"a X\nb Y\n\nc X\n",
        b"a X\nb Y\n\nc X",
        b"a X\r\nb Y\r\n\r\nc X\r\n",
        b"a X\r\r\nb Y\r\r\n\r\r\nc X\r\r\n",
        b"a X\rb Y\r\rc X\r",
        b"\xef\xbb\xbfa X\nb Y\n\nc X\n",
        b"a X  \nb Y\t\n\nc X \n",
        b"\n\n a X\nb \t  Y\n\n \t \n\nc X\n\n\n",
    ],
    ids=["plain", "no end", "crlf", "crcrlf", "cr", "bom", "trailing", "blank lines"],
)
def test_the_same_sentences_however_the_file_is_spaced(data, tmp_path):
    assert from_bytes(data) == TWO
    path = tmp_path / "x.txt"
    path.write_bytes(data)
    assert read_columns(path) == read_columns(str(path)) == TWO
    with path.open(encoding="utf-8", newline="") as file:
        assert read_columns(file, columns=2) == TWO


def test_no_break_and_other_wide_spaces_stay_in_their_word():
    assert from_bytes("1\xa0000 CD\n\u2028 X\n\x85 Y\n".encode()) == [
        [("1\xa0000", "CD"), ("\u2028", "X"), ("\x85", "Y")]
    ]


def test_a_separator_keeps_spaces_inside_columns():
    data = b"New York\tNNP\nis\tVBZ \n\t\nbig\tJJ\n"
    assert from_bytes(data, separator="\t") == [
        [("New York", "NNP"), ("is", "VBZ")],
        [("big", "JJ")],
    ]
    with pytest.raises(BadData, match="<input>:1: found 3 columns"):
        from_bytes(data, columns=2)


def test_comments_are_left_out_only_if_asked():
    data = b"# # B-NP\n5 CD I-NP\n"
    assert from_bytes(data) == [[("#", "#", "B-NP"), ("5", "CD", "I-NP")]]
    assert from_bytes(data, comment="#") == [[("5", "CD", "I-NP")]]


def test_a_comment_does_not_end_a_sentence():
    assert from_bytes(b"a X\n# note\nb Y\n", comment="#") == [[("a", "X"), ("b", "Y")]]


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (b"a X\n\nb\n", {}, r"bad.txt:3: found 1 column in 'b', expected 2 as in line 1"),
        (b"\na X\nb Y Z\n", {}, r"bad.txt:3: found 3 columns in 'b Y Z', expected 2 as in line 2"),
        (b"a X\n", {"columns": 3}, r"bad.txt:1: found 2 columns in 'a X', expected 3 as asked for"),
        (b"a\t\tX\n", {"separator": "\t"}, r"bad.txt:1: found nothing in column 2 of 'a\\t\\tX'"),
        (b"a X\nb\t\n", {"separator": "\t"}, r"bad.txt:2: found 2 columns in 'b\\t', expected 1"),
        (b"a X\r\nb \xe9\n", {}, r"bad.txt:2: found the byte 0xe9 at byte 7 of .*expected UTF-8"),
        (b"a \xc3", {}, r"bad.txt:1: found the byte 0xc3 at byte 2 .*unexpected end of data"),
        (b"", {}, r"bad.txt:1: found no token in the file, expected one token a line"),
        (b"\xef\xbb\xbf \n\t\n", {}, r"bad.txt:1: found no token"),
        (b"# a\n", {"comment": "#"}, r"bad.txt:1: found no token"),
    ],
)
def test_errors_name_the_file_the_line_the_finding_and_what_was_expected(
    data, options, message, tmp_path
):
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(BadData, match=message):
        read_columns(path, **options)
    with path.open("rb") as file, pytest.raises(BadData, match=message):
        read_columns(file, **options)


def test_bytes_that_are_not_utf8_are_named_in_text_files_too(tmp_path):
    path = tmp_path / "latin.txt"
    path.write_bytes("a X\ncafé Y\n".encode("latin-1"))
    with (
        path.open(encoding="utf-8") as file,
        pytest.raises(BadData, match=r"latin.txt:2: found the byte 0xe9 at byte 7 "),
    ):
        read_columns(file)


def test_a_file_that_is_not_there_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        read_columns(tmp_path / "none.txt")


def test_options_that_make_no_sense():
    with pytest.raises(ValueError, match="at least 1"):
        from_bytes(b"a\n", columns=0)
    with pytest.raises(ValueError, match="not be empty"):
        from_bytes(b"a\n", separator="")
    with pytest.raises(ValueError, match="space or a tab"):
        write_columns(io.StringIO(), TWO, separator="|")


def test_written_as_bytes_exactly(tmp_path):
    path = tmp_path / "out.txt"
    write_columns(path, TWO)
    assert path.read_bytes() == b"a X\nb Y\n\nc X\n"
    write_columns(path, TWO, separator="\t")
    assert path.read_bytes() == b"a\tX\nb\tY\n\nc\tX\n"


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ([], "no sentence to write"),
        ([[("a",)], []], "sentence 2: found no token"),
        ([[("a", "X"), ("b",)]], "sentence 1, token 2: found 1 column, expected 2"),
        ([[()]], "sentence 1, token 1: found 0 columns, expected at least 1"),
        ([[("a b",)]], "sentence 1, token 1: found the column 'a b'"),
        ([[("a\n",)]], "found the column"),
        ([[("a\tb",)]], "found the column"),
        ([[("", "X")]], "found the column ''"),
        ([[("\ufeffa",)]], "found the column"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(sentences, message, tmp_path):
    path = tmp_path / "out.txt"
    with pytest.raises(BadData, match=message):
        write_columns(path, sentences)
    assert not path.exists()


@quick
@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(
            st.lists(
                st.tuples(
                    *[st.text("a#é \t\r\n\ufeff\xa0\u2028|", min_size=1, max_size=3)] * width
                ),
                max_size=3,
            ),
            max_size=3,
        )
    ),
    st.sampled_from([" ", "\t"]),
)
def test_reading_gives_back_what_was_written_or_it_was_refused(sentences, separator):
    file = io.StringIO()
    try:
        write_columns(file, sentences, separator=separator)
    except BadData:
        assert file.getvalue() == ""
        return
    assert from_bytes(file.getvalue().encode(), separator=separator) == sentences
    if separator == " ":
        assert from_bytes(file.getvalue().encode()) == sentences


@quick
@given(
    st.lists(
        st.lists(
            st.tuples(*[st.text("aé'`$,-", min_size=1, max_size=4)] * 2), min_size=1, max_size=4
        ),
        min_size=1,
        max_size=4,
    )
)
def test_ordinary_sentences_are_never_refused(sentences):
    file = io.StringIO()
    write_columns(file, sentences)
    assert read_columns(io.StringIO(file.getvalue())) == sentences


@quick
@given(st.binary(max_size=30))
def test_any_bytes_are_read_or_refused_with_a_line(data):
    try:
        sentences = from_bytes(data)
    except BadData as error:
        message = str(error)
    else:
        message = ""
    if message:
        assert re.match(r"<input>:\d+: found .*, expected ", message)
        return
    widths = {len(token) for sentence in sentences for token in sentence}
    assert len(widths) == 1
    assert all(sentences)


# Whole tables: the fast parser and the line reader are twins


def outcome(action):
    """The columns with all their parts, or the error with all its fields."""
    try:
        table = action()
    except BadData as error:
        return str(error), vars(error)
    assert all(isinstance(column, Factor) for column in table.columns)
    return (
        table.lengths.tolist(),
        [(column.codes.tolist(), column.values) for column in table.columns],
        table.source,
        table.lines.tolist(),
    )


def by_lines(data, form):
    """The twin of ``read_table``."""
    blocks = [block for block in read(io.BytesIO(data), format=form) if block.tokens]
    if not blocks:
        raise BadData("found no token in the file, expected one token a line").at(
            file="<input>", line=1
        )
    return table_of(blocks)


PARTS = ["a", "b", "B-NP", "é", "\xa0", " ", " ", "\t", "\t", ",", "\n", "\n", "\n\n", "\r\n", "\v"]
PARTS += ["#", "# ", "\ufeff"]
FORMS = st.builds(
    Format,
    separator=st.sampled_from([None, None, "\t", " ", ",", "é", "a", ", "]),
    comment=st.sampled_from([None, "#", "é"]),
    names=st.sampled_from([(), (), ("word", "tag")]),
)
TEXTS = st.lists(st.sampled_from(PARTS), max_size=24).map("".join).map(str.encode)
# Mostly plain: rows of equally many columns, with a separator that may be another than the form's.
PLAIN = st.builds(
    lambda separator, rows, end: "".join(separator.join(r) + end if r else end for r in rows),
    st.sampled_from(["\t", " ", ","]),
    st.integers(1, 3).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from(["a", "b", "é", "x y", "#"]), min_size=n, max_size=n)
            | st.just([]),
            max_size=8,
        )
    ),
    st.sampled_from(["\n", "\n", "\n\n", " \n"]),
).map(str.encode)


@quick
@given(TEXTS | PLAIN | st.binary(max_size=20), FORMS)
def test_a_table_is_what_the_line_reader_reads(data, form):
    expected = outcome(lambda: by_lines(data, form))
    for short in (0, 1 << 14):
        with patch.object(thresholds, "SHORT_FILE", short):
            assert outcome(lambda: read_table(io.BytesIO(data), format=form)) == expected


@quick
@given(TEXTS | PLAIN, FORMS, st.sampled_from([1, 3]))
def test_tables_of_some_sentences_are_those_of_the_whole(data, form, tokens):
    """Also after a batch that only the general code reads."""

    def joined():
        tables = list(reading.read_tables(io.BytesIO(data), form, tokens))
        if not tables:
            raise no_token("<input>")
        return concatenated(tables)

    with patch.object(thresholds, "SHORT_FILE", 0), patch.object(column_text, "CHUNK", 8):
        found = outcome(joined)
    expected = outcome(lambda: by_lines(data, form))
    if isinstance(expected, tuple) and len(expected) == 4:
        expected = (*expected[:2], ["<input>"] * len(expected[0]), expected[3])
        assert found[2] in ("<input>", expected[2])
        found = (*found[:2], expected[2], found[3])
    assert found == expected


def by_compiled_code(data, form):
    """The table, if the general code need not read the file."""
    with (
        patch.object(thresholds, "SHORT_FILE", 0),
        patch.object(reading, "read", side_effect=AssertionError),
    ):
        return read_table(io.BytesIO(data), format=form)


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"a X\nb Y\n\nc X\n", Format()),
        (b"a X\nb Y\n\nc X\n", Format(names=("w", "t"))),
        (b"a X\nb Y\n\nc X\n", Format(comment="#")),
        (b"New York\tX\nb\tY\n\nc\tX\n", Format(separator="\t")),
        (b"a,X\n b,Y\n\n\nc d,X", Format(separator=",")),
        (b"#a X\nb Y\n", Format(comment="#")),
        (b"a X\n# Y\n", Format(comment="#")),
        (b"a\tX \n", Format(separator="\t")),
        (b"a  X\n", Format()),
        (b"\xef\xbb\xbfa X\r\nb Y\r\n", Format()),
        (b"a X\nb Y\n\n\nc X", Format()),
        (b"\n\na\tX\nb Y\n\nc X\n\n", Format()),
        ("é ß\nb Y\n".encode(), Format()),
    ],
)
def test_plain_files_are_read_by_compiled_code(data, form):
    assert outcome(lambda: by_compiled_code(data, form)) == outcome(lambda: by_lines(data, form))


@pytest.mark.parametrize(
    ("data", "form"),
    [
        (b"a X\n", Format(separator="")),
        (b"a X\n", Format(separator=", ")),
        (b"a X\n", Format(names=("w",))),
        (b"a\t\tX\n", Format(separator="\t")),
        (b"a X\rb Y\n", Format()),
        (b" ".join([b"a"] * 128), Format()),
    ],
)
def test_other_files_are_left_to_the_line_reader(data, form):
    with pytest.raises(AssertionError):
        by_compiled_code(data, form)


def test_positions_of_every_format(tmp_path):
    tree = "# id = 1\n1\ta" + "\t_" * 8 + "\n1-2\tb" + "\t_" * 8 + "\n2\tc" + "\t_" * 8 + "\n\n"
    cases = {
        "columns": ("\na X\nb Y\n\n\nc X\n", [[2, 3], [6]]),
        "conllu": (tree * 2, [[2, 4], [7, 9]]),
        "jsonl": ('{"tokens": ["a", "b"]}\n\n{"tokens": ["c"]}\n', [[1, 1], [3]]),
        "text": ("One two. Three.\n\nFour.\n", [[1, 1, 1], [1, 1], [3, 3]]),
    }
    path = tmp_path / "x"
    for form, (text, lines) in cases.items():
        path.write_text(text, encoding="utf-8")
        blocks = list(read(path, format=form))
        assert [block.line_numbers for block in blocks] == lines
        assert {block.source for block in blocks} == {str(path)}
        table = read_table(path, format=form)
        assert table.lines is not None
        assert table.lines.tolist() == [line for sentence in lines for line in sentence]
        assert (table.source, len(table)) == (str(path), len(lines))
    with pytest.raises(ValueError, match="format must be one of columns, conllu, jsonl, text"):
        read(path, format="xml")


def test_json_lines_with_other_columns_are_refused(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"tokens": ["a"], "tags": ["X"]}\n{"tokens": ["b"]}\n', encoding="utf-8")
    with pytest.raises(BadData, match=r"jsonl:2: found the columns tokens, expected tokens, tags"):
        read_table(path, format="jsonl")


def test_a_table_of_a_text_file():
    assert outcome(lambda: read_table(io.StringIO("a X\nb Y\n"))) == outcome(
        lambda: read_table(io.BytesIO(b"a X\nb Y\n"))
    )


# Subsets


def parts_of(data):
    """All parts of columns or features as plain lists, for comparison."""
    if isinstance(data, Columns):
        lines = None if data.lines is None else data.lines.tolist()
        columns = [
            (c.codes.tolist(), c.values) if isinstance(c, Factor) else list(c) for c in data.columns
        ]
        return data.lengths.tolist(), columns, lines
    values = [1.0] * len(data.keys) if data.values is None else data.values.tolist()
    return data.lengths.tolist(), data.counts.tolist(), data.keys.tolist(), values, data.width


CELLS = st.sampled_from(["a", "b", "c"])
TOKENS = {
    "strings": CELLS,
    "tuples": st.tuples(CELLS, CELLS),
    "unknown labels": st.tuples(CELLS, CELLS | st.none()),
    "lists": st.lists(CELLS, max_size=3),
    "dicts": st.dictionaries(CELLS, st.sampled_from(["x", 2.5, 3.5]), max_size=3),
}


@pytest.mark.parametrize("kind", TOKENS)
@given(data=st.data())
def test_some_of_the_sentences(kind, data):
    sentences = data.draw(st.lists(st.lists(TOKENS[kind], max_size=3), min_size=1, max_size=5))
    order = data.draw(st.lists(st.integers(0, len(sentences) - 1), min_size=1))
    table = read_input(sentences)
    chosen = table.take(order)
    assert (len(table), len(chosen)) == (len(sentences), len(order))
    if not chosen.lengths.sum():
        assert not any(parts_of(chosen)[0])
        return
    again, found = parts_of(read_input([sentences[i] for i in order])), parts_of(chosen)
    if kind == "unknown labels":  # without None, a column is read as a factor
        assert (found[0], listed_columns(chosen)) == (again[0], listed_columns(table, order))
    else:
        assert found == again


def listed_columns(table, order=None):
    """The columns of each sentence as lists."""
    ends = [int(end) for end in table.lengths.cumsum()]
    result = []
    for column in table.columns:
        values = (
            [column.values[i] for i in column.codes] if isinstance(column, Factor) else list(column)
        )
        cut = [values[end - n : end] for end, n in zip(ends, table.lengths.tolist(), strict=True)]
        result.append(cut if order is None else [cut[i] for i in order])
    return result


def test_some_of_the_sentences_of_a_file_keep_their_lines():
    table = read_table(io.BytesIO(b"a X\nb Y\n\nc X\n\nd Y\ne Z\n")).take([2, 0])
    assert listed_columns(table) == [[["d", "e"], ["a", "b"]], [["Y", "Z"], ["X", "Y"]]]
    assert table.lines is not None
    assert (table.lines.tolist(), table.source) == ([6, 7, 1, 2], "<input>")
    assert [c.values for c in table.columns if isinstance(c, Factor)] == [
        ["d", "e", "a", "b"],
        ["Y", "Z", "X"],
    ]


def test_find_corpus_takes_the_first_folder_that_has_it(tmp_path, monkeypatch):
    one, two, three = (tmp_path / name for name in ("one", "two", "three"))
    (two / "mine").mkdir(parents=True)
    (three / "mine").mkdir(parents=True)
    one.mkdir()
    (one / "mine").write_text("a file, not a folder")
    monkeypatch.setenv("LASO_DATA", os.pathsep.join(["", str(one), str(two), str(three)]))
    assert find_corpus("mine") == two / "mine"


def test_a_missing_corpus_says_where_it_was_sought_and_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_DATA", str(tmp_path))
    with pytest.raises(MissingData) as caught:
        find_corpus("conll2000")
    assert isinstance(caught.value, LasoError)
    for part in (str(tmp_path / "conll2000"), "https://", "set LASO_DATA"):
        assert part in str(caught.value)
    monkeypatch.delenv("LASO_DATA")
    with pytest.raises(MissingData, match=r"corpus other was not found \(LASO_DATA is not set\)"):
        find_corpus("other")


def test_the_bundled_corpus_is_fresh_each_time():
    train, test = load_bundled()
    train.clear()
    test[0].clear()
    again = load_bundled()
    assert again[0]
    assert again[1][0]
