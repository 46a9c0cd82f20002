"""``python -m studies speed``: rows of what is measured replace older ones, others stay."""

from __future__ import annotations

import json
import subprocess
from importlib.util import find_spec
from typing import Any

import pytest

from studies import corpus
from studies.speed import profile, speed
from studies.speed import tokens as speed_tokens


def test_rows_are_replaced_by_key(tmp_path, monkeypatch):
    other = {
        "key": "file_tokens_per_s",
        "system": "python-crfsuite",
        "config": "ap",
        "value": 84000.0,
        "f": 93.1,
    }
    old = speed_tokens.row("load_ms", "laso", "Tagger", 99.0)
    (tmp_path / "speed.json").write_text(json.dumps([other, old]))
    monkeypatch.setattr(
        speed,
        "MEASURES",
        {"load_ms": lambda _: [speed_tokens.row("load_ms", "laso", "Tagger", 12.5)]},
    )
    said: list[str] = []
    file = speed.run(tmp_path, [], said.append)
    rows = json.loads(file.read_text())
    assert [(one["key"], one["value"]) for one in rows] == [  # in the order of speed.MEANINGS
        ("load_ms", 12.5),
        ("file_tokens_per_s", 84000.0),
    ]
    assert all({"key", "system", "config", "value", "f"} <= {*one} for one in rows)
    assert said == ["load_ms, Tagger: 12.500"]
    table = (tmp_path / "speed.md").read_text()
    assert "| load a model | laso | Tagger | 12.5 ms |  |  |" in table
    assert "| tokens per second, file to file | python-crfsuite | ap | 84,000 | 93.10 |  |" in table


def test_a_ratio_above_one_is_in_favour_of_its_system():
    rows = [
        {"key": key, "system": system, "config": "c", "value": value, "f": None}
        for key in ("file_tokens_per_s", "joint_train_s")
        for system, value in (("laso", 400.0), ("python-crfsuite", 100.0))
    ]
    lines = speed.table(rows).splitlines()[-4:]
    assert [line.split("|")[-2].strip() for line in lines] == ["4.0", "", "0.2", ""]


def test_what_is_measured_has_a_meaning():
    assert {*speed.MEASURES} == {*speed.MEANINGS}


def test_programs_that_fail_end_the_measurement():
    with pytest.raises(subprocess.CalledProcessError):
        speed.seconds(speed.python("raise SystemExit(1)"), {})


def test_tokens_per_second_of_all_systems_in_one_run(tmp_path, monkeypatch):
    pytest.importorskip("pycrfsuite")
    files = corpus.files("bundled", tmp_path, quick=True)
    monkeypatch.setattr(corpus, "files", lambda *_, **__: files)
    monkeypatch.setattr(speed_tokens, "ROUNDS", 1)
    monkeypatch.setattr(speed_tokens, "CHOSEN", tmp_path / "chosen.json")
    monkeypatch.setattr(speed_tokens, "RUNS", 1)
    monkeypatch.setattr(speed_tokens, "SMALL", 1)
    monkeypatch.setattr(speed_tokens, "LARGE", 2)
    monkeypatch.setitem(speed_tokens.TRAINING, "max_iterations", 2)
    monkeypatch.setitem(speed_tokens.SETTINGS, "epochs", 1)
    rows = speed_tokens.columns_tokens(tmp_path)
    peers = {*speed_tokens.readers()} | ({"vowpalwabbit"} if find_spec("vowpalwabbit") else set())
    assert {one["system"] for one in rows} == {"laso", *peers}
    assert all(0 < one["f"] <= 100 for one in rows)
    # Vowpal Wabbit's time is a difference, which may be anything for so few sentences.
    assert all(one["value"] > 0 for one in rows if one["system"] != "vowpalwabbit")
    labelled = tmp_path / "labelled.txt"
    gold = corpus.plain_read(files.test)
    for system in speed_tokens.readers():
        peer = speed_tokens.peer(tmp_path, files.train)
        speed_tokens.tag_by_peer(system, str(peer), str(files.test), str(labelled))
        found = corpus.plain_read(labelled)
        assert [[token[:-1] for token in s] for s in found] == gold


def test_a_profile_has_all_stages():
    from laso import Tagger

    sentences: list[Any] = [
        [("the", "DT", "B-NP"), ("cat", "NN", "I-NP")],
        [("sleeps", "VBZ", "O")],
    ]
    X = [[token[:2] for token in s] for s in sentences]
    model = Tagger(epochs=1, threads=1).fit(X, [[token[2] for token in s] for s in sentences])
    row = profile.measure("Tagger", model, sentences, 2)
    assert [*row] == ["model", *profile.STAGES]
    assert all(row[stage] >= 0 for stage in profile.STAGES)
    assert "| keys and search |" in profile.report([row])
