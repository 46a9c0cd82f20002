"""Compiled code that reads columns: the same bytes, items and errors as the general code."""

import io
import pickle
from copy import copy
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laso import Chunker, JointTagger, Parser, Tagger
from laso.cli import column_files, tag
from laso.cli.settings import Settings
from laso.data.formats import Format
from laso.engine import thresholds
from laso.errors import LasoError
from laso.features import column_text, value_tables
from laso.features.inputs import read_input
from laso.features.numbered_columns import read_cells

WORDS = ["a", "The", "cat", "sleeps", "sleepsx", "incomprehensible", "incomprehensiblf", "Ünïcödé"]
TAGS = ["DT", "NN", "a", "incomprehensible"]
KNOWN = [[(word, tag) for tag in TAGS] for word in WORDS[:6]]
FEATURES = ["w[-1..1]", "w.lower[0]", "w.suffix2[0]", "pos[-1..1]", "w[0]|pos[0]", "label[-1]"]


def labels_of(sentence):
    return ["B-X" if word[0] in "Tc" else "I-X" if tag == "NN" else "O" for word, tag in sentence]


@pytest.fixture(scope="module")
def models():
    y = [labels_of(sentence) for sentence in KNOWN]
    words = [[word for word, _ in sentence] for sentence in KNOWN]
    layers = [
        list(zip((t for _, t in s), labels, strict=True))
        for s, labels in zip(KNOWN, y, strict=True)
    ]
    trees = [[(i, "x") for i in range(len(sentence))] for sentence in KNOWN]
    return {
        "tagger": Tagger(features=FEATURES, queue=2, epochs=2).fit(KNOWN, y),
        "constrained": Tagger(features=FEATURES, constraints="BIO", epochs=1).fit(
            [[("a", "DT")]], [["B-X"]]
        ),
        "words": Tagger(epochs=1).fit(words, y),
        "chunker": Chunker(epochs=1).fit(KNOWN, y),
        "joint": JointTagger(layers=["pos", "chunk"], epochs=1).fit(words, layers),
        "parser": Parser(epochs=1).fit(KNOWN, trees),
    }


# --------------------------------------------------------------------------- files


def labelled(model, data, form, *, fast, batch=3, chunk=64, threads=1):
    """The bytes that ``laso tag`` writes for a file, and the error with which it ends."""
    written, model.threads = b"", threads
    file = io.BufferedReader(io.BytesIO(data))
    possible = column_files.is_possible if fast else lambda *_: False
    with (
        patch.object(tag, "BATCH", batch),
        patch.object(tag, "recognised", lambda *_: form),
        patch.object(column_text, "CHUNK", chunk),
        patch.object(thresholds, "SHORT_FILE", 0),
        patch.object(column_files, "is_possible", possible),
    ):
        try:
            for text in tag.labelled(
                model, file, "x.txt", Settings(), to=None, extras=tag.Extras()
            ):
                written += bytes(text)
        except LasoError as error:
            return written, type(error), str(error)
    return written, None, ""


def assert_same(model, data, form, **options):
    assert labelled(model, data, form, fast=True, **options) == labelled(
        model, data, form, fast=False, batch=options.get("batch", 3)
    )


word = st.sampled_from([*WORDS, "x\0y", "a\u00a0b", "#", "#c", "\u2028", "\x0b", "long" * 9])
usual_end = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r\r\n"])
blank_line = st.tuples(st.sampled_from(["", "", " ", "\t", " \t "]), usual_end).map("".join)


def token_line(separators, columns):
    cells = st.lists(word, min_size=columns, max_size=columns)
    between = st.lists(separators, min_size=columns, max_size=columns)
    ends = st.sampled_from(["", "", "", " ", "  ", "\t", " \t "])
    return st.builds(
        lambda a, b, before, after, end: (
            before
            + "".join(x for pair in zip(a, ["", *b], strict=False) for x in pair[::-1])
            + after
            + end
        ),
        cells,
        between,
        st.sampled_from(["", "", "", " ", "\t"]),
        ends,
        usual_end,
    )


@st.composite
def files(draw, separator, columns):
    """A file of usual lines, with now and then one that is not, as bytes."""
    separators = st.just(separator) if separator else st.sampled_from([" ", " ", "\t", "  "])
    usual = st.one_of(token_line(separators, columns), token_line(separators, columns), blank_line)
    comment = st.sampled_from(["# text\n", "#\n", "# a b\r\n"])
    odd = st.sampled_from(["a\rb c\n", "a\n", "a b c d e\n", "\r \n", "a b c\r", "\ufeffa b c\n"])
    lines = draw(st.lists(usual, max_size=25))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        lines.insert(draw(st.integers(0, len(lines))), draw(st.one_of(odd, comment)))
    data = "".join(lines).encode()
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(data)))
        data = data[:at] + b"\xff" + data[at:]
    if draw(st.booleans()):
        data = data.rstrip(b"\n")
    return "\ufeff".encode() * draw(st.sampled_from([0, 0, 1])) + data


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_files_are_labelled_as_by_the_general_code(models, data):
    separator = data.draw(st.sampled_from([None, None, " ", "\t", ","]))
    form = Format("columns", separator, data.draw(st.sampled_from([None, "#"])))
    columns = data.draw(st.sampled_from([2, 3]))
    text = data.draw(files(separator, columns))
    batch, chunk = data.draw(st.sampled_from([(3, 16), (1000, 64), (7, 1000)]))
    assert_same(models["tagger"], text, form, batch=batch, chunk=chunk)


PLAIN = "".join(
    f"{word}{separator}{tag} O\n" + ("\n" if i % 3 == 0 else "")
    for i, (word, tag, separator) in enumerate(
        (word, tag, separator) for word in WORDS for tag in TAGS for separator in (" ", "\t")
    )
).encode()


@pytest.mark.parametrize("name", ["tagger", "chunker", "parser"])
@pytest.mark.parametrize("threads", [1, 3])
def test_all_tasks_and_numbers_of_threads(models, name, threads):
    model, form = models[name], Format()
    columns = 4 if name == "parser" else 3
    text = PLAIN.replace(b" O\n", b" 0 x\n") if columns == 4 else PLAIN
    assert_same(model, text, form, threads=threads)
    found, error, _ = labelled(model, text, form, fast=True, threads=threads)
    assert error is None
    assert found.count(b"\n") > text.count(b"O\n")


@pytest.mark.parametrize("name", ["words", "joint"])
def test_models_of_one_column(models, name):
    text = "\n".join([*WORDS, "", *WORDS, "", ""]).encode()
    assert_same(models[name], text, Format())
    assert_same(models[name], text, Format("columns", "\t"))


def test_it_reads_what_it_should_read(models):
    """The comparisons above would also hold if the general code read everything."""
    with patch.object(column_files.ColumnFile, "_stop", side_effect=AssertionError):
        for end in (b"\n", b"\r\n"):
            text = b"\xef\xbb\xbf# comment\n\n" + PLAIN.replace(b"\n", end)
            found, error, _ = labelled(
                models["tagger"], text, Format("columns", None, "#"), fast=True
            )
            assert error is None
            assert found.startswith(b"# comment\n\na DT O ")


def test_errors_after_batches_name_the_line_and_the_byte(models):
    for wrong in (b"a b c d\n", b"a b \xff\n", b"a\rb c d\n"):
        text = PLAIN + wrong + PLAIN
        for threads in (1, 3):
            assert_same(models["tagger"], text, Format(), threads=threads, chunk=1000)
    _, error, message = labelled(models["tagger"], PLAIN + b"a b c d\n", Format(), fast=True)
    assert error is not None
    assert f":{PLAIN.count(10) + 1}:" in message.replace(" ", "")
    assert "as in line 1" in message


def test_errors_about_a_sentence_name_its_line():
    y = [["B-X", "I-X"], ["B-X"]]
    rules: Any = {None: ["B-X"], "B-X": ["I-X", None], "I-X": [None]}
    model = Tagger(features=FEATURES, constraints=rules, epochs=1)
    model.fit([[("a", "DT"), ("cat", "NN")], [("a", "DT")]], y)
    text = b"a DT O\n\n" * 5 + b"a DT O\na DT O\na DT O\n\n"
    assert_same(model, text, Format())
    assert labelled(model, text, Format(), fast=True)[1] is not None


def test_small_files_take_the_general_way(models):
    model, file = models["tagger"], io.BufferedReader(io.BytesIO(b"a DT O\n"))
    plain = column_files.ColumnFile(model, file, Format(), tag_roles(model), 100)
    assert list(plain.texts()) == []
    assert plain.rest is not None
    assert list(plain.rest) == [b"a DT O\n"]


def tag_roles(model):
    from laso.cli.examples import remembered

    return remembered(model)


@pytest.mark.parametrize(
    "form",
    [
        Format("conllu"),
        Format("text"),
        Format("columns", "--"),
        Format("columns", "·"),
        Format("columns", None, "\n"),
        Format("columns", ""),
    ],
)
def test_other_formats_are_not_plain(form):
    assert not column_text.is_plain(form)


def test_new_values_are_kept_within_bounds(models):
    encoder = models["tagger"].task_.encoder_
    text = "".join(f"word{i} NN O\n\n" for i in range(4000)).encode()
    with patch.object(value_tables, "KEPT", 50), patch.object(value_tables, "FEW", 4):
        assert_same(models["tagger"], text, Format(), batch=100, chunk=5000)
        values = value_tables.NewValues(value_tables.known_values(encoder))
        values.lexicon.ints[0] = 51
        values.limit()
        assert not values.lexicon.ints.any()


# --------------------------------------------------------------------------- sentences in Python

any_word = st.one_of(st.sampled_from(WORDS), st.text(max_size=20), st.just("\ud800"))


def general_code(only):
    """Let the general code read sentences, or compiled code."""
    return patch("laso.tasks.sequences.read_cells", (lambda *_: None) if only else read_cells)


def items(task, X, *, fast):
    with general_code(not fast):
        inputs = task.read_inputs(X)
        assert (type(inputs).__name__ == "ItemColumns") == fast
        dataset = task.encode(inputs)
        return dataset.items, dataset.starts


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_tuples_are_numbered_as_by_the_general_code(models, data):
    name, width = data.draw(st.sampled_from([("tagger", 2), ("tagger", 3), ("words", 2)]))
    token = st.tuples(*[any_word] * width) if width > 1 else any_word
    X = data.draw(st.lists(st.lists(token, max_size=4), min_size=2, max_size=6))
    X += [[X[0][0]]] * 2 if X[0] else [[("a",) * width]] * 2  # the same objects again
    task = models[name].task_
    for fast, general in zip(items(task, X, fast=True), items(task, X, fast=False), strict=True):
        np.testing.assert_array_equal(fast, general)


def test_strings_and_joint_tokens(models):
    X = [[*WORDS, "new"], ["a"]]
    for name in ("words", "joint"):
        task = models[name].task_
        fast, general = items(task, X, fast=True), items(task, X, fast=False)
        np.testing.assert_array_equal(fast[0], general[0])


@pytest.mark.parametrize(
    "X",
    [
        [[("a", "DT")], [("a", 1)]],
        [[("a", "DT")], ["a"]],
        [[("a", "DT")], [("a",)]],
        [[("a", "DT")], "ab"],
        [[("a", "DT")], None],
        [[("a", "DT")], [["a", "DT"]]],
        [[("a", "DT", "O", "O")], [("a", "DT", "O", "O")]],
    ],
)
def test_what_is_wrong_is_reported_by_the_general_code(models, X):
    task = models["tagger"].task_
    assert read_cells(X, task.encoder_, 1) is None
    with pytest.raises(LasoError):
        task.encode(task.read_inputs(X))


def test_other_capabilities_have_the_same_results(models):
    X = [KNOWN[0], [("new", "NN"), ("cat", "a")], KNOWN[2]]
    for name in ("tagger", "chunker", "parser"):
        model = models[name]
        found = []
        for general in (False, True):
            with general_code(general):
                assert type(model.task_.read_inputs(X)).__name__.startswith("Item") != general
                found.append(
                    [model.predict(X), model.predict_nbest(X, 2), model.predict_confidence(X)]
                )
        assert found[0] == found[1]


def test_copies_and_other_processes_make_their_own_lexicon(models):
    encoder = models["tagger"].task_.encoder_
    value_tables.known_values(encoder)
    assert encoder.lexicon is not None
    assert encoder.copied().lexicon is None
    assert pickle.loads(pickle.dumps(encoder)).lexicon is None


def test_more_columns_than_keys_tell_apart_are_left_to_the_general_code(models):
    encoder = copy(models["tagger"].task_.encoder_)
    assert value_tables.is_numbered(encoder)
    encoder.names = tuple(map(str, range(128)))
    assert not value_tables.is_numbered(encoder)


def test_a_lexicon_is_kept_and_made_again_after_more_training():
    model = Tagger(features=FEATURES, epochs=1).fit(KNOWN, [labels_of(s) for s in KNOWN])
    task = model.task_
    task.read_inputs(KNOWN[:2])
    kept = task.encoder_.lexicon
    task.read_inputs(KNOWN[:2])
    assert task.encoder_.lexicon is kept
    assert len(kept.spare) == 1
    model.partial_fit([[("new", "NEW")]], [["O"]])
    task = model.task_
    known = read_input([[("new", "NEW")], [("new", "NEW")]])
    fast = items(task, [[("new", "NEW")]] * 2, fast=True)[0]
    np.testing.assert_array_equal(fast, task.encode(known).items)
    assert fast.min() >= 0
