"""``python -m benchmarks speed``: rows of what is measured replace older ones, others stay."""

from __future__ import annotations

import json
import subprocess

import pytest

from benchmarks import speed


def test_rows_are_replaced_by_key(tmp_path, monkeypatch):
    other = {
        "key": "file_tokens_per_s",
        "system": "python-crfsuite",
        "config": "ap",
        "value": 84000.0,
        "f": 93.1,
    }
    old = speed.row("load_ms", "Tagger", 99.0)
    (tmp_path / "speed.json").write_text(json.dumps([old, other]))
    monkeypatch.setattr(
        speed, "MEASURES", {"load_ms": lambda _: [speed.row("load_ms", "Tagger", 12.5)]}
    )
    said: list[str] = []
    file = speed.run(tmp_path, [], said.append)
    rows = json.loads(file.read_text())
    assert [(one["key"], one["value"]) for one in rows] == [
        ("file_tokens_per_s", 84000.0),
        ("load_ms", 12.5),
    ]
    assert all({"key", "system", "config", "value", "f"} <= {*one} for one in rows)
    assert said == ["load_ms, Tagger: 12.500"]
    table = (tmp_path / "speed.md").read_text()
    assert "| load a model | Tagger | 12.5 ms |" in table
    assert "| file_tokens_per_s | python-crfsuite, ap | 84,000 |" in table


def test_what_is_measured_has_a_meaning():
    assert {*speed.MEASURES} == {*speed.MEANINGS}


def test_programs_that_fail_end_the_measurement():
    with pytest.raises(subprocess.CalledProcessError):
        speed.seconds(speed.python("raise SystemExit(1)"), {})
