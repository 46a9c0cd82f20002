"""The command line on items and on texts with mentions: learn, label, score, explain, inspect."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from laso import load_model
from tests.test_coreference import corpus

ITEMS = [{"name": "Ann Lee", "year": 1990}, {"name": "A. Lee"}, {"name": "Bo Day"}]
OTHERS = [{"name": "Kim May"}, {"name": "Jo Fox", "year": 7}, {"name": "J. Fox", "year": 7}]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Items and texts to learn from."""
    monkeypatch.chdir(tmp_path)
    lines = [{"items": ITEMS, "clusters": [0, 0, 1]}, {"items": OTHERS, "clusters": ["x", 2, 2]}]
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, lines * 5)), encoding="utf-8")
    (tmp_path / "new.jsonl").write_text(json.dumps({"items": ITEMS}) + "\n", encoding="utf-8")
    (tmp_path / "texts.conll").write_text(corpus(6), encoding="utf-8")
    text = {"sentences": [["Ann", "ran", "."], ["She", "sat"]], "mentions": [[0, 0, 0], [1, 0, 0]]}
    lines = [{**text, "clusters": [5, 5]}] * 4
    (tmp_path / "texts.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    (tmp_path / "tags.txt").write_text("The DT\ncat NN\n\n", encoding="utf-8")
    return tmp_path


def test_items(laso, folder):
    shown = laso("train", "items.jsonl", "--epochs", "3")
    assert (shown.code, shown.err) == (0, "")
    assert "learned clusters from 10 examples of items.jsonl: 2 labels" in shown.out
    assert load_model("items.laso").task_.name == "clustering"
    assert list(map(json.loads, laso("tag", "items.laso", "new.jsonl").out.splitlines())) == [
        {"items": ITEMS, "clusters": [0, 0, 1]}
    ]
    by_pipe = laso("tag", "items.laso", stdin=(folder / "new.jsonl").read_text())
    assert by_pipe.out == laso("tag", "items.laso", "new.jsonl").out
    asked = ("tag", "items.laso", "new.jsonl", "--json", "--nbest", "2", "--confidence")
    record = json.loads(laso(*asked).out)
    assert (record["input"], record["output"]) == (ITEMS, [0, 0, 1])
    assert [part["label"] for part in record["parts"]] == ["new", "0", "new"]
    assert len(record["nbest"]) == 2
    scored = laso("eval", "items.laso", "items.jsonl")
    assert scored.out.startswith("10 documents; CoNLL average 100.00")
    assert json.loads(laso("eval", "items.laso", "items.jsonl", "--json").out)["conll"] == 100.0


def test_items_are_explained_and_the_model_is_inspected(laso, folder):
    laso("train", "items.jsonl", "--epochs", "3")
    told = laso("explain", "items.laso", "new.jsonl", "--features", "99").out
    assert "A. Lee joins Ann Lee" in told
    assert "name.words[last]=some" in told
    record = json.loads(laso("explain", "items.laso", "new.jsonl", "--json").out)
    assert record["decisions"][1]["text"] == "A. Lee joins Ann Lee"
    shown = laso("inspect", "items.laso", "items.jsonl").out
    assert "Clusterer (clustering), 2 labels" in shown
    assert "columns: position, name, year" in shown
    assert "name." in shown
    assert "<table>" in laso("inspect", "items.laso", "items.jsonl", "--html").out


@pytest.mark.parametrize("how", [["--task", "coref"], []], ids=["named", "detected"])
def test_texts(laso, folder, how):
    shown = laso("train", "texts.conll", "--epochs", "4", "--dev", "texts.conll", *how)
    assert (shown.code, shown.err) == (0, "")
    assert "held out: 6 documents; CoNLL average 100.00" in shown.out
    assert load_model("texts.laso").task_.name == "coreference"
    tagged = laso("tag", "texts.laso", "texts.conll").out
    assert tagged.count("#begin document (d); part 0") == 6
    given = (folder / "texts.conll").read_text(encoding="utf-8")
    plain = [re.sub(r"\(\d\)", "(n)", text).split() for text in (tagged, given)]
    assert plain[0] == plain[1]  # the ids are others, the mentions are the same
    assert "CoNLL average 100.00" in laso("eval", "texts.laso", "texts.conll").out
    assert "she joins Ann" in laso("explain", "texts.laso", "texts.conll").out
    assert "Clusterer (coreference)" in laso("inspect", "texts.laso").out


def test_texts_of_json(laso, folder):
    assert laso("train", "texts.jsonl", "--epochs", "2").code == 0
    assert laso("tag", "texts.laso", "texts.jsonl", "--json").code == 0
    record = json.loads(laso("tag", "texts.laso", "texts.jsonl", "--json").out.splitlines()[0])
    assert record["input"]["mentions"] == [[0, 0, 0], [1, 0, 0]]
    assert record["output"] == [0, 0]
    out = laso("tag", "texts.laso", "texts.jsonl").out
    assert out.splitlines()[1].split("\t") == ["document", "0", "0", "Ann", "_", "(0)"]


def test_settings(laso, folder):
    (folder / "few.tpl").write_text("# few\nbias\nname.words[any]\n", encoding="utf-8")
    train = ("train", "items.jsonl", "--epochs", "2", "--model", "few.laso")
    assert laso(*train, "--templates", "few.tpl", "--set", "window=5").code == 0
    model: Any = load_model("few.laso")
    assert [str(t) for t in model.task_.encoder_.templates] == ["bias", "name.words[any]"]
    assert model.window == 5
    assert laso(*train, "--class-weight", "join=2", "--jobs", "2", "--refit").code == 0
    assert laso(*train, "--store", "store").code == 0
    assert laso("freeze", "few.laso", "items.jsonl", "--output", "small.laso").code == 0
    assert laso("average", "few.laso", "few.laso", "--model", "mean.laso").code == 0
    predicted = laso("tag", "mean.laso", "new.jsonl").out
    assert predicted == laso("tag", "few.laso", "new.jsonl").out


MISTAKES = [
    (
        "texts.conll",
        ("(2)", "(2"),
        (),
        3,
        r"a.conll:15: found (2, expected 2) in the same sentence",
    ),
    ("texts.conll", ("(2)", "2)"), (), 3, "a.conll:15: found '2)', expected (2 before it"),
    ("texts.conll", ("Then _ -", ""), (), 3, "a.conll:7: found 3 columns, expected at least 5"),
    ("texts.conll", ("", ""), ("--task", "cluster"), 3, "a.conll:1: found no JSON"),
    ("texts.conll", ("", ""), ("--task", "tag"), 3, "a.conll:2: found 6 columns"),
    ("texts.conll", ("", ""), ("--label", "2"), 3, "a.conll:2: found 6 columns"),
    ("items.jsonl", ('"clusters"', '"ids"'), (), 3, 'a.jsonl:1: found none for "clusters"'),
    ("items.jsonl", ("[0, 0, 1]", "[0, 0]"), (), 3, 'a.jsonl:1: found 2 for "clusters"'),
    ("items.jsonl", ("[0, 0, 1]", "[0, 0, [1]]"), (), 3, "found [1] as an id"),
    ("items.jsonl", ("]}", ""), (), 3, "a.jsonl:1: found no JSON (Expecting"),
    ("items.jsonl", ("", ""), ("--task", "coref"), 3, "a.jsonl:1: found {'items'"),
    ("items.jsonl", ("", ""), ("--task", "cluster", "--label", "2"), 2, "--label is for files"),
    ("items.jsonl", ("", ""), ("--set", "window=0"), 2, "window must be from 1"),
    ("items.jsonl", ("", ""), ("--set", 'blocking=["nme"]'), 3, "found no field 'nme', which bl"),
    ("items.jsonl", ("", ""), ("--set", "queue=exact()"), 2, "cannot search exactly"),
    ("items.jsonl", ("", ""), ("--class-weight", "joi=2"), 2, "expected one of join, new"),
    ("items.jsonl", ("", ""), ("--pipeline",), 2, "--pipeline needs --task parse"),
    ("texts.jsonl", ("[0, 0, 0]", "[0, 0, 9]"), (), 3, "a.jsonl:1: found the mention (0, 0, 9)"),
    (
        "texts.jsonl",
        ('"clusters": [5, 5]', '"x": 0'),
        (),
        3,
        'a.jsonl:1: found None for "clusters"',
    ),
    ("tags.txt", ("", ""), ("--task", "coref"), 3, "a.txt:1: found 'The DT', expected '#begin"),
    ("tags.txt", ("", ""), ("--task", "cluster"), 3, "a.txt:1: found no JSON"),
]


@pytest.mark.parametrize(("name", "change", "how", "code", "message"), MISTAKES, ids=str)
def test_mistakes_of_training_get_one_line(laso, folder, name, change, how, code, message):
    text = (folder / name).read_text(encoding="utf-8")
    file = folder / f"a.{name.split('.')[1]}"
    file.write_text(text.replace(*change, 1), encoding="utf-8")
    shown = laso("train", file.name, "--epochs", "1", *how)
    assert (shown.code, shown.out) == (code, "")
    assert message in " ".join(shown.err.split())
    assert "Traceback" not in shown.err
    if code == 3:
        assert shown.err.startswith("laso: ")
        assert shown.err.count("\n") == 1
    assert not (folder / "a.laso").exists()


def test_files_of_other_tasks_than_the_model(laso, folder):
    laso("train", "items.jsonl", "--epochs", "1")
    laso("train", "texts.conll", "--epochs", "1")
    for command in ("tag", "eval", "explain"):
        for model, file, message in (
            ("items", "texts.conll", "texts.conll:1: found no JSON"),
            ("items", "tags.txt", "tags.txt:1: found no JSON"),
            ("texts", "items.jsonl", "items.jsonl:1: found {'items'"),
            ("texts", "tags.txt", "tags.txt:1: found 'The DT', expected '#begin document'"),
        ):
            shown = laso(command, f"{model}.laso", file)
            assert (shown.code, shown.out) == (3, "")
            assert message in shown.err
    assert laso("eval", "items.laso", "new.jsonl").code == 3
    assert laso("tag", "items.laso", "no.jsonl").code == 5


def test_help_names_the_tasks(laso):
    shown = " ".join(laso("train", "--help").out.split())
    assert "cluster (items of JSON lines), coref (mentions of texts)" in shown
    assert "laso train texts.conll" in shown
    assert "expected tag, chunk, joint, cluster or module:Class" in " ".join(
        laso("warmup", "clusters").err.split()
    )
