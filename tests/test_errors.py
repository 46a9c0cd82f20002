"""Errors have fields for the position; nobody needs to parse a message."""

import copy
import copyreg
import pickle

import numpy as np
import pytest

from laso import BadData, BadFeature, BadModel, BadTemplate, Chunker, JointTagger, LasoError, Tagger
from laso.data import Format, Sentence, load_bundled, read, write_columns
from laso.data.table import Columns, located, locating, position
from laso.errors import InputError, listed, quoted
from laso.estimators.learning import streaming
from laso.features import read_templates
from laso.features.inputs import read_input
from laso.features.reading import read_table
from laso.metrics import chunk_scores

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:30]
KINDS = [BadData, BadFeature, BadTemplate, BadModel]


def fields(error):
    return error.file, error.line, error.sentence, error.token


@pytest.mark.parametrize("kind", KINDS)
def test_the_position_comes_first(kind):
    assert issubclass(kind, (LasoError, ValueError))
    error = kind("found a, expected b")
    assert str(error) == error.message == "found a, expected b"
    assert fields(error) == (None, None, None, None)
    assert str(error.at(sentence=3)) == "sentence 3: found a, expected b"
    assert str(error.at(sentence=3, token=2)) == "sentence 3, token 2: found a, expected b"
    assert str(error.at(token=2)) == "token 2: found a, expected b"
    assert str(error.at(file="x.txt")) == "x.txt: found a, expected b"
    assert str(error.at(line=7)) == "line 7: found a, expected b"
    assert str(error.at(file="dev", sentence=3)) == "dev: sentence 3: found a, expected b"
    whole = error.at(sentence=3, token=2).at(file="x.txt", line=7)
    assert str(whole) == "x.txt:7: found a, expected b"
    assert fields(whole) == ("x.txt", 7, 3, 2)
    assert (whole.message, fields(error)) == (error.message, (None,) * 4)


def test_an_error_keeps_its_class_its_fields_and_its_traceback():
    class Own(BadData):
        """A subclass of a user."""

    def fail():
        raise Own("m", sentence=1)

    with pytest.raises(Own) as caught:
        fail()
    found = caught.value.at(file="x")
    assert type(found) is Own
    assert found.__traceback__ is caught.value.__traceback__
    error = BadData("found é", file="x", line=2, sentence=1, token=9)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is BadData
        assert (str(again), fields(again), again.args) == (str(error), fields(error), error.args)


# Quotes


@pytest.mark.parametrize(
    "value", ["a" * 100, "\0" * 100, b"\xff" * 100, ["a"] * 100, {1: "b" * 99}]
)
def test_quotes_are_cut(value):
    assert len(quoted(value)) == 60
    assert quoted(value).endswith("...")
    assert quoted(value)[:20] == repr(value)[:20]


def test_short_quotes_are_whole():
    assert [quoted(v) for v in ("a", 3, None, "a" * 58)] == ["'a'", "3", "None", f"'{'a' * 58}'"]
    assert listed(["a", "b"]) == "a, b"
    assert listed("abcde", limit=3) == "a, b, c, ... (2 more)"
    assert len(listed(["x" * 10**6] * 10**4)) < 2500


HUGE = "\0é" * 2_500_000
WIDE = " ".join(["x"] * 300_000)


def huge_files():
    token = HUGE.encode()
    return {
        "columns": (b"a X\n" + token + b" X Y\n", Format()),
        "width": (b"a X\n" + WIDE.encode() + b"\n", Format()),
        "empty column": (b"a\tX\n" + token + b"\t\n", Format(separator="\t")),
        "utf-8": (b"a X\n" + token + b"\xff\n", Format()),
        "json": (b'{"tokens": "' + b"x" * 10**7 + b'"}\n', Format("jsonl")),
        "no json": (b"x" * 10**7 + b"\n", Format("jsonl")),
        "keys": (b"{" + b",".join(b'"%d":1' % i for i in range(10**5)) + b"}", Format("jsonl")),
        "labels": (b'{"tokens": [], "labels": "' + b"x" * 10**7 + b'"}\n', Format("jsonl")),
    }


@pytest.mark.parametrize("name", list(huge_files()))
def test_no_message_is_as_large_as_the_file(name, tmp_path):
    data, form = huge_files()[name]
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(BadData) as caught:
        read_table(tmp_path / "x", format=form)
    assert len(str(caught.value)) < 3000 + len(str(tmp_path))


@pytest.mark.parametrize(
    "action",
    [
        lambda: Chunker().fit([[("a", HUGE)]]),
        lambda: Chunker().fit([[(HUGE, "O"), ("b",)]]),
        lambda: Tagger().fit([[HUGE]], [[3.5]]),
        lambda: Tagger().fit([[HUGE, 3]], [["X", "Y"]]),
        lambda: Tagger().fit([HUGE], [["X"]]),
        lambda: Tagger().fit([["a"]], [HUGE]),
        lambda: Tagger().fit([[{HUGE: object()}]], [["X"]]),
        lambda: Tagger(epochs=1).fit([[("a", HUGE)]]).resume([[("a", "Y")]], epochs=2),
        lambda: Tagger(epochs=1).fit([[("a", "X")]]).resume([[("a", HUGE)]], epochs=2),
        lambda: JointTagger(layers=("p", "q")).fit([["a"]], [[HUGE]]),
        lambda: Chunker(epochs=1).fit([[("a", "O")]]).resume([[("a", "B-" + HUGE)]], epochs=2),
        lambda: chunk_scores([[HUGE]], [["O"]]),
        lambda: write_columns("x", [[(HUGE + " ",)]]),
    ],
)
def test_no_message_is_as_large_as_the_data(action, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadData) as caught:
        action()
    assert len(str(caught.value)) < 500


# Positions


def test_positions_of_tokens():
    lengths = np.array([2, 0, 3])
    found = [position(lengths, i) for i in range(5)]
    assert [(p["sentence"], p["token"]) for p in found] == [(1, 1), (1, 2), (3, 1), (3, 2), (3, 3)]


def test_errors_of_readers_have_fields(tmp_path):
    path = tmp_path / "x.txt"
    cases = [
        (b"a X\n\nb\n", "columns", 3),
        (b"a \xff\n", "columns", 1),
        (b"", "columns", 1),
        (b'{"tokens": ["a"]}\n[]\n', "jsonl", 2),
        (b"1\ta\n", "conllu", 1),
    ]
    for data, form, line in cases:
        path.write_bytes(data)
        with pytest.raises(BadData) as caught:
            read_table(path, format=form)
        assert fields(caught.value) == (str(path), line, None, None)
        assert str(caught.value).startswith(f"{path}:{line}: found ")
    path.write_text("w[0]\nw[0\n", encoding="utf-8")
    with pytest.raises(BadTemplate) as template:
        read_templates(path)
    assert fields(template.value) == (str(path), 2, None, None)


def test_an_error_is_located_once_and_only_in_its_own_data(tmp_path):
    path = tmp_path / "x.txt"
    path.write_bytes(b"\na X\nb Y\n\n\nc X\n")
    columns, blocks = read_table(path), list(read(path))
    for data in (columns, blocks):
        found = [
            located(BadData("m", sentence=s, token=t), data)
            for s, t in [(1, None), (1, 1), (1, 2), (2, None), (2, 1)]
        ]
        assert [e.line for e in found] == [2, 2, 3, 6, 6]
        assert {e.file for e in found} == {str(path)}
        for other in (
            BadData("m"),
            BadData("m", sentence=1, line=9),
            BadData("m", sentence=1, file="dev"),
        ):
            assert located(other, data) is other
        assert located(BadData("m", sentence=2, file="dev"), data, name="dev").line == 6
    own: list[object] = [[["a"]], read_input([["a"]]), read_input([[["f"]]])]
    for nowhere in own:
        error = BadFeature("m", sentence=1)
        assert located(error, nowhere) is error  # type: ignore[arg-type]
    with pytest.raises(BadFeature, match=r"x\.txt:6: m") as caught, locating(columns):
        raise BadFeature("m", sentence=2)
    assert isinstance(caught.value, InputError)
    assert caught.value.__suppress_context__


BAD = [("good", "NN", "B-NP"), ("bad", "NN", "I-VP")]
MODELS = {
    "tagger": (lambda: Tagger(epochs=1, constraints="BIO"), BAD),
    "chunker": (lambda: Chunker(epochs=1, features="paper"), [BAD[0], ("bad", "NN", "X-NP")]),
    "joint": (
        lambda: JointTagger(layers=("pos", "chunk"), constraints={"chunk": "BIO"}, epochs=1),
        BAD,
    ),
}


@pytest.fixture(params=MODELS)
def make_and_file(request, tmp_path):
    make, bad = MODELS[request.param]
    path = tmp_path / "train.txt"
    write_columns(path, [*SMALL, bad, SMALL[0]])
    return make, path


def is_located(error, path):
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(i for i, text in enumerate(lines, start=1) if text.startswith("bad "))
    assert fields(error) == (str(path), line, len(SMALL) + 1, 2)
    assert str(error).startswith(f"{path}:{line}: found the ")


def test_learning_from_a_file_names_file_and_line(make_and_file, tmp_path):
    make, path = make_and_file
    good = tmp_path / "good.txt"
    write_columns(good, SMALL)
    with pytest.raises(BadData) as caught:
        make().fit(path)
    is_located(caught.value, path)
    with pytest.raises(BadData) as caught:
        make().partial_fit(path)
    is_located(caught.value, path)
    with pytest.raises(BadData) as caught:
        make().fit(good).resume(path, epochs=2)
    is_located(caught.value, path)


def test_learning_from_a_stream_names_file_and_line(make_and_file, tmp_path, monkeypatch):
    monkeypatch.setattr(streaming, "EXAMPLES_AT_A_TIME", 7)
    make, path = make_and_file
    with pytest.raises(BadData) as caught:
        make().fit_stream(path, store=tmp_path / "store")
    is_located(caught.value, path)
    with pytest.raises(BadData) as caught:
        make().fit_stream(lambda: (b.tokens for b in read(path)), store=tmp_path / "store")
    assert fields(caught.value) == (None, None, len(SMALL) + 1, 2)


def test_errors_about_development_data_are_not_about_the_training_data(tmp_path):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    wrong: list[Sentence] = [*SMALL, [BAD[0], ("bad", "NN", "X-NP")]]
    write_columns(good, SMALL)
    write_columns(bad, wrong)
    with pytest.raises(BadData) as caught:
        Chunker(features="paper").fit(good, dev=bad)
    is_located(caught.value, bad)
    with pytest.raises(BadData, match=r"^dev: sentence 31, token 2: found the tag 'X-NP'"):
        Chunker(features="paper").fit(good, dev=wrong)


def test_columns_given_in_place_of_sentences(tmp_path):
    path = tmp_path / "train.txt"
    write_columns(path, SMALL)
    columns = read_table(path)
    assert isinstance(columns, Columns)
    assert read_input(columns) is columns
    model = Tagger(epochs=1).fit(columns)
    assert model.predict(columns) == Tagger(epochs=1).fit(SMALL).predict(SMALL)


def test_a_position_is_added_however_others_copy_exceptions(monkeypatch):
    error = BadData("found a, expected b")
    monkeypatch.setitem(copyreg.dispatch_table, BadData, lambda each: (lambda: error, ()))
    assert str(error.at(sentence=3)) == "sentence 3: found a, expected b"
    assert str(error) == "found a, expected b"
