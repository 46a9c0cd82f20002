"""The benchmark of more workers, on little data."""

from __future__ import annotations

import pytest

from laso.data import load_bundled
from studies.measure import load
from studies.speed import scale

TRAIN, TEST = load_bundled()


def little(part: str) -> scale.Data:
    sentences = TEST if part == "test" else TRAIN[:60]
    return [[t[:-1] for t in s] for s in sentences], [[t[-1] for t in s] for s in sentences]


def test_times_are_measured_and_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(scale, "chunks", little)
    monkeypatch.setattr(scale, "CORPORA", {"conll2000 chunks": little})
    for name, value in (("EPOCHS", 2), ("RUNS", 1), ("TIMES", 2), ("FEW_EPOCHS", 2)):
        monkeypatch.setattr(scale, name, value)
    monkeypatch.setattr(scale, "BACKENDS", ("threading", "loky"))
    said: list[str] = []
    report = scale.run(tmp_path, said.append, part="time").read_text(encoding="utf-8")
    rows = load(tmp_path / "scale.json")
    assert len(rows) == len(scale.times()) == 10
    assert all(row["train_s"] > 0 for row in rows)
    for what in ("2 shards on 2 threads", "overhead of loky", "`laso tag`", "`predict_stream`"):
        assert what in report
    assert "a billion tokens" in (tmp_path / "scale_plan.md").read_text(encoding="utf-8")
    said.clear()
    assert scale.run(tmp_path, said.append, part="time").read_text(encoding="utf-8") == report
    assert not said  # all of it was there


@pytest.mark.parametrize("shards", [1, 2])
def test_scores_are_those_of_every_epoch(shards, monkeypatch):
    monkeypatch.setattr(scale, "CORPORA", {"little": little})
    row = scale.scored(scale.Case("learning, little", shards=shards, epochs=2))
    assert len(row["scores"]) == 2
    assert (row["bytes"] > 0) == (shards > 1)
