"""Parser with predicted tags: taggers that are trained with it, and jackknifed tags."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from laso import BadData, Parser, Tagger, load_model
from laso.data.table import value_list
from laso.estimators.learning.jackknife import Jackknife
from laso.features.inputs import read_input
from laso.files.estimator import packed_model
from laso.tasks.parsing.templates import (
    MOST_FEATURES,
    feature_templates,
    parse_templates,
    suffix_templates,
)
from tests.commands import Laso
from tests.test_parser import TEXT, X, Y

WORDS = [[(word,) for word, _ in sentence] for sentence in X]
SETTINGS: dict[str, Any] = {"epochs": 5, "folds": 3}


def tagger(**given: Any) -> Tagger:
    return Tagger(queue=1, epochs=3, **given)


@cache
def fitted() -> Parser:
    return Parser(tagger=tagger(), **SETTINGS).fit(X * 3, Y * 3)


def test_words_are_enough():
    model = fitted()
    assert model.predict(WORDS) == Y
    assert model.predict([["A", "cat", "sleeps"]]) == [Y[1]]
    # Tags and trees of the data are not looked at.
    wrong = [[(word, "X", "0", "x") for word, _ in sentence] for sentence in X]
    assert model.predict(wrong) == Y
    assert model.score(WORDS, Y) == model.score(X, Y) == 1.0
    tags = [[(tag,) for _, tag in sentence] for sentence in X]
    assert model.predict_tags(WORDS) == tags
    with pytest.raises(ValueError, match="predict_tags needs a tagger"):
        Parser(epochs=1).fit(X, Y).predict_tags(X)


def templates_of(model):
    return {*map(str, model.task_.encoder_.templates)}


def test_suffixes_are_among_the_default_templates():
    usual = templates_of(Parser(epochs=1).fit(X, Y))
    assert templates_of(fitted()) == usual
    assert usual > {*map(str, parse_templates(suffix_templates()))}
    own = Parser(tagger=tagger(), features=["w[s0]"], **SETTINGS).fit(X * 3, Y * 3)
    assert len(templates_of(own)) == 1


FEATURED = (
    TEXT.replace("NNS\t_", "NNS\tCase=Nom|Number=Plur")
    .replace("NN\t_", "NN\tCase=Nom|Number=Sing")
    .replace("RB\t_", "RB\tNumber[psor]=Sing")
)


def test_morphological_features_are_read_where_a_treebank_has_them(tmp_path):
    path = tmp_path / "with.conllu"
    path.write_text(FEATURED, encoding="utf-8")
    model = Parser(epochs=3).fit(path)
    assert model.task_.encoder_.names == ("w", "pos", "xpos", "feats")
    assert model.task_.main_ == 2  # tags, not features
    templates = templates_of(model)
    (possessor,) = feature_templates(["Number[psor]=Sing"])[:1]
    assert possessor in templates
    assert r"Number\[psor\]=" in possessor
    assert model.predict(path) == Parser(epochs=3).fit(*pairs_of(FEATURED)).predict(path)
    plain = tmp_path / "without.conllu"
    plain.write_text(TEXT, encoding="utf-8")
    assert Parser(epochs=1).fit(plain).task_.encoder_.names == ("w", "pos", "xpos")
    assert model.predict(plain)  # which has none


def test_single_features_are_told_apart():
    texts = feature_templates(["_", "A=1|B=2", "B=3"])
    assert texts[0] == 'feats.match("(^|[|])B=[^|]*")[s0]|feats.match("(^|[|])B=[^|]*")[b0]'
    assert len(texts) == 4
    assert feature_templates(["_", "odd", "=x", 'a"b=1']) == []
    many = feature_templates(["|".join(f"F{i}=x" for i in range(99))])
    assert len(parse_templates(many)) == len(many) == 2 * MOST_FEATURES


def test_a_line_of_as_many_words_as_columns_is_plain_text(tmp_path, monkeypatch, capsysbinary):
    (tmp_path / "a.conllu").write_text(FEATURED * 4, encoding="utf-8")
    laso = Laso(monkeypatch, capsysbinary)
    laso("train", tmp_path / "a.conllu", "--task", "parse", "--epochs", "2")
    told = laso("tag", tmp_path / "a.laso", "-", stdin="The old cat sleeps\n")
    assert (told.code, told.out) == (3, "")
    assert "this model needs tags: train with --pipeline" in told.err
    given = laso("tag", tmp_path / "a.laso", "-", stdin="The DET DT _\n")
    assert given.out.startswith("The DET DT _ ")


def pairs_of(text):
    """The columns of CoNLL-U that a parser reads, and trees."""
    inputs: list[Any] = []
    trees: list[Any] = []
    for row in (line.split("\t") for line in text.splitlines() if "\t" in line):
        if row[0].isdigit():
            if row[0] == "1":
                inputs.append([])
                trees.append([])
            inputs[-1].append((row[1], row[3], row[4], row[5]))
            trees[-1].append((int(row[6]), row[7]))
    return inputs, trees


def test_a_pipeline_predicts_features_too(tmp_path, monkeypatch, capsysbinary):
    file = tmp_path / "a.conllu"
    file.write_text(FEATURED * 4, encoding="utf-8")
    laso = Laso(monkeypatch, capsysbinary)
    laso("train", file, "--task", "parse", "--pipeline", "--epochs", "3")
    model = load_model(tmp_path / "a.laso")
    assert isinstance(model, Parser)
    assert isinstance(model.tagger, dict)
    assert list(model.tagger) == ["pos", "xpos", "feats"]
    tags = model.predict_tags([["The", "cat", "sleeps"]])
    assert tags[0][1] == ("NOUN", "NN", "Case=Nom|Number=Sing")


def test_tags_of_the_training_data_are_jackknifed():
    data = read_input(X)
    jackknife = Jackknife({None: tagger()}, 2)
    table = jackknife.learned(data, ("w", "pos"))
    flat = [token for sentence in X for token in sentence]
    assert value_list(table.columns[0]) == [word for word, _ in flat]
    found, position = value_list(table.columns[1]), 0
    for i, sentence in enumerate(X):
        rest = [j for j in range(len(X)) if j % 2 != i % 2]
        other = tagger().fit([WORDS[j] for j in rest], [[t for _, t in X[j]] for j in rest])
        assert found[position : position + len(sentence)] == other.predict([WORDS[i]])[0]
        position += len(sentence)
    # A tagger of all the data tags what comes later.
    all_of_it = tagger().fit(WORDS, [[tag for _, tag in sentence] for sentence in X])
    (later,) = jackknife.fitted
    assert later.predict(WORDS) == all_of_it.predict(WORDS)


def test_the_file_has_the_taggers(tmp_path):
    path = tmp_path / "pipeline.laso"
    fitted().save(path)
    loaded = load_model(path)
    assert isinstance(loaded, Parser)
    assert loaded.predict(WORDS) == Y
    assert loaded.predict_tags(WORDS) == fitted().predict_tags(WORDS)
    assert isinstance(loaded.tagger, Tagger)
    assert (loaded.tagger.epochs, loaded.folds) == (3, 3)
    loaded.save(tmp_path / "again.laso")
    assert (tmp_path / "again.laso").read_bytes() == path.read_bytes()


def test_the_file_of_a_parser_without_taggers_is_the_same_as_before():
    header, tensors = packed_model(Parser(epochs=1).fit(X, Y), None, training=False)
    assert header["parameters"]["tagger"] is None
    assert not any("tagger" in name for name in tensors)


def test_several_columns(tmp_path):
    path = tmp_path / "trees.conllu"
    path.write_text(TEXT * 4, encoding="utf-8")
    model = Parser(tagger={"pos": tagger(), "xpos": tagger()}, **SETTINGS).fit(path)
    words = [["A", "cat", "sleeps"]]
    assert model.predict_tags(words) == [[("DET", "DT"), ("NOUN", "NN"), ("VERB", "VBZ")]]
    assert model.predict(words) == [[(2, "det"), (3, "nsubj"), (0, "root")]]
    model.save(tmp_path / "model.laso")
    assert load_model(tmp_path / "model.laso").predict(path) == model.predict(path)
    # With one tagger the column of XPOS is not used.
    model = Parser(tagger=tagger(), **SETTINGS).fit(path, dev=(path, None))
    assert model.task_.encoder_.names == ("w", "pos")
    assert len(model.scores_) == model.n_iter_


def test_other_methods_see_predicted_tags():
    model = fitted()
    assert model.predict_nbest(WORDS[1:2], 2)[0][0][1] == Y[1]
    assert model.predict_confidence(WORDS[1:2])[0].output == Y[1]
    assert model.predict_forced(WORDS[1:2], known=[[(2, "amod"), None, None]])[0][0] == (2, "amod")
    names = {f["name"] for d in model.explain(WORDS[1])["decisions"] for f in d["features"]}
    assert any("pos[s0]=NOUN" in name for name in names)


def test_what_is_refused():
    no_taggers: list[Any] = [{}, "joint", Parser()]
    for wrong in no_taggers:
        with pytest.raises(ValueError, match="tagger must be None, an estimator such as Tagger"):
            Parser(tagger=wrong).fit(X, Y)
    with pytest.raises(ValueError, match="folds must be from 2"):
        Parser(tagger=tagger(), folds=1).fit(X, Y)
    with pytest.raises(ValueError, match="found taggers for xpos, expected pos"):
        Parser(tagger={"xpos": tagger()}, **SETTINGS).fit(X, Y)
    with pytest.raises(BadData, match="expected 1 of tags after the first"):
        Parser(tagger=tagger(), **SETTINGS).fit(WORDS, Y)
    with pytest.raises(BadData, match="at least two"):
        Parser(tagger=tagger(), **SETTINGS).fit(X[:1], Y[:1])
    with pytest.raises(ValueError, match="resume cannot repeat"):
        fitted().resume(X, Y, epochs=9)
    with pytest.raises(ValueError, match="all examples at once"):
        Parser(tagger=tagger()).fit_stream("file", store="folder")


# --------------------------------------------------------------------------- command line


def test_a_pipeline_on_the_command_line(tmp_path, monkeypatch, capsysbinary):
    laso = Laso(monkeypatch, capsysbinary)
    file, model = tmp_path / "trees.conllu", tmp_path / "trees.laso"
    file.write_text(TEXT * 4, encoding="utf-8")
    laso(
        "train", str(file), "--task", "parse", "--pipeline", "--epochs", "5", "--model", str(model)
    )
    # Tags are filled in like heads and labels; comments, multi-word tokens and empty nodes stay.
    rows = [line.split("\t") for line in TEXT.split("\n")]
    blank = [
        [*row[:3], "_", "_", row[5], "_", "_", *row[8:]] if row[0].isdigit() else row
        for row in rows
    ]
    unlabelled = tmp_path / "blank.conllu"
    unlabelled.write_text("\n".join("\t".join(row) for row in blank), encoding="utf-8")
    assert laso("tag", str(model), str(unlabelled)).out == TEXT
    evaluated = laso("eval", str(model), str(file)).out
    assert "LAS 100.00" in evaluated
    assert "accuracy of upos: 100.00 %" in evaluated
    assert json.loads(laso("eval", str(model), str(file), "--json").out)["tags"] == {
        "upos": 100.0,
        "xpos": 100.0,
    }
    text = tmp_path / "text.txt"
    text.write_text("A cat sleeps\n", encoding="utf-8")
    expected = "A\tDET\tDT\t2\tdet\ncat\tNOUN\tNN\t3\tnsubj\nsleeps\tVERB\tVBZ\t0\troot\n\n"
    assert laso("tag", str(model), str(text)).out == expected
    found = json.loads(laso("tag", str(model), str(text), "--json").out)
    assert found["tags"] == [["DET", "DT"], ["NOUN", "NN"], ["VERB", "VBZ"]]
    rows = [["1", "A", "DET", "DT", "2", "det"], ["2", "cat", "NOUN", "NN", "3", "nsubj"]]
    rows += [["3", "sleeps", "VERB", "VBZ", "0", "root"]]
    lines = [[i, w, "_", u, x, "_", h, d, "_", "_"] for i, w, u, x, h, d in rows]
    conllu = "".join("\t".join(line) + "\n" for line in lines) + "\n"
    assert laso("tag", str(model), str(text), "--output-format", "conllu").out == conllu
    refused = laso("train", str(file), "--pipeline", "--task", "tag")
    assert "--pipeline needs --task parse" in refused.err


def test_a_pipeline_is_evaluated_on_what_is_held_out(tmp_path, laso):
    file, model = tmp_path / "trees.conllu", tmp_path / "trees.laso"
    file.write_text(TEXT * 30, encoding="utf-8")
    options = ("--task", "parse", "--pipeline", "--epochs", "2", "--model", str(model))
    assert "LAS 100.00" in laso("train", str(file), *options).out
    assert load_model(model).predict([]) == []


def test_a_parser_without_taggers_asks_for_tags(tmp_path, laso):
    file, model, text = (tmp_path / name for name in ("t.conllu", "t.laso", "t.txt"))
    file.write_text(TEXT * 4, encoding="utf-8")
    text.write_text("A cat sleeps.\nIt sleeps and sleeps today.\n", encoding="utf-8")
    laso("train", str(file), "--task", "parse", "--epochs", "1", "--model", str(model))
    for options in ([], ["--format", "text"]):
        refused = laso("tag", str(model), str(text), *options)
        assert refused.code == 3
        assert f"{text}:1: found plain text, expected" in refused.err
        assert "this model needs tags: train with --pipeline" in refused.err
    columns = tmp_path / "columns.txt"
    columns.write_text("A\tDET\tDT\ncat\tNOUN\tNN\n", encoding="utf-8")
    expected = "1\tA\t_\tDET\tDT\t_\t2\tdet\t_\t_\n"
    assert laso("tag", str(model), str(columns), "--output-format", "conllu").out.startswith(
        expected
    )


def test_labels_without_a_column_of_conllu(folder, laso):
    laso("train", "train.txt", "--epochs", "1", "--model", "chunks.laso")
    refused = laso("tag", "chunks.laso", "test.txt", "--output-format", "conllu")
    assert "CoNLL-U has no column for the labels 3" in refused.err
    assert "there is columns" in laso("tag", "chunks.laso", "test.txt", "--output-format", "x").err


def test_an_inspected_parser_has_no_empty_headings(tmp_path, laso):
    path = tmp_path / "t.laso"
    Parser(epochs=1).fit(X, Y).save(path)
    lines = laso("inspect", str(path)).out.splitlines()
    top = next(i for i, line in enumerate(lines) if line.endswith("the top ones:"))
    for line, after in zip(lines[top + 1 :], [*lines[top + 2 :], ""], strict=True):
        assert line.startswith("  ") or after.startswith("  ") or "labels have no feature" in line
