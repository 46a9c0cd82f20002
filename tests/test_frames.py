"""Tables with one row a token, and inputs that are none: what the errors say."""

from typing import Any

import numpy as np
import pytest

from laso import BadData, Parser, Tagger
from laso.data import from_frame, read_columns, write_columns
from laso.features.reading import read_table

TABLE = {"id": [7, 7, 3], "word": ["the", "cat", "dogs"], "pos": list("DNN"), "tag": list("xyz")}
X, Y = [["the", "cat"], ["dogs"]], [["D", "N"], ["N"]]


def test_sentences_of_a_table():
    X, y = from_frame(TABLE, sentence="id", inputs=["word", "pos"], label="tag")
    assert X == [[("the", "D"), ("cat", "N")], [("dogs", "N")]]
    assert y == [["x", "y"], ["z"]]
    assert from_frame(TABLE, sentence="id", inputs=["word"]) == ([["the", "cat"], ["dogs"]], None)
    assert Tagger(epochs=1).fit(X, y).predict(X) == y


def test_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(TABLE)
    assert from_frame(frame, sentence="id", inputs=["word"], label="pos") == (X, Y)
    for given in (frame, [frame, frame]):
        with pytest.raises(BadData, match=r"found a DataFrame, .* see laso\.data\.from_frame"):
            Tagger().fit(given, Y)


def test_what_looks_like_a_data_frame_is_refused():
    class Frame:
        shape = (2, 1)

        def __iter__(self):
            return iter(("word",))

        def itertuples(self):
            return iter(())

    with pytest.raises(BadData, match="found a DataFrame"):
        Tagger().fit(Frame(), Y)
    with pytest.raises(BadData, match="found a DataFrame"):
        Tagger().fit([Frame()], Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sentence": "number"}, "found no column 'number', expected one of"),
        ({"inputs": []}, "found no input column"),
        ({"sentence": "pos"}, None),
        ({"sentence": "pair"}, "found the sentence 1 in two places, expected its rows together"),
    ],
)
def test_tables_that_are_refused(change, message):
    given = {"sentence": "id", "inputs": ["word"], **change}
    table = {**TABLE, "pair": [1, 2, 1]}
    if message is None:
        assert from_frame(table, **given)[0] == [["the"], ["cat", "dogs"]]
        return
    with pytest.raises(BadData, match=message):
        from_frame(table, **given)


def test_documents_of_conll_2003_are_no_sentences(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("-DOCSTART- O\n\nthe D\ncat N\n\n-DOCSTART- O\n\ndogs N\n")
    tokens = [[("the", "D"), ("cat", "N")], [("dogs", "N")]]
    assert read_columns(path) == tokens
    assert len(read_table(path)) == 2
    path.write_text(path.read_text() * 1000)  # long enough for the compiled reader
    assert len(read_table(path)) == 2000
    assert Tagger(epochs=1).fit(path).predict(X) == Y
    with pytest.raises(BadData, match="which marks documents, expected a word"):
        write_columns(path, [[("-DOCSTART-", "O")]])


def test_texts_numbers_and_names_get_messages():
    make: Any = Tagger
    model = make(epochs=1).fit(X, Y)
    with pytest.raises(FileNotFoundError, match="to label a text, give a list of its sentences"):
        model.predict("the cat sleeps")
    with pytest.raises(FileNotFoundError, match="to label a text, give a list of its sentences"):
        Parser().fit("no such file.conllu")
    for n in (2.5, "2", True):
        with pytest.raises(ValueError, match="n must be a whole number, found"):
            model.predict_nbest(X, n)
    assert len(model.predict_nbest(X, np.int64(2))) == 2
    with pytest.raises(TypeError, match="Tagger has no parameter epoch, did you mean epochs"):
        make(epoch=3)
    with pytest.raises(TypeError, match="Tagger has no parameter zz: it has "):
        make(zz=1)
