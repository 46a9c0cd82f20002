"""The commands of the page: ``laso serve``, ``laso trace``, ``laso train --watch``."""

import json
import sys

import pytest

from laso.cli.serve import train_bundled
from laso.serve.server import check_installed
from laso.serve.workbench import Workbench
from tests.workbenches import PLAIN, workbench

pytest.importorskip("starlette", reason="needs laso[serve]")


def test_a_search_is_traced_into_files(laso, folder):
    model = workbench("tagger").model
    model.save("m.laso")
    written = laso("trace", "m.laso", "words.txt", "--html", "a.html")
    assert written.code == 5  # no such file
    (folder / "words.txt").write_text(f"{PLAIN}\nThe man can see .\n", encoding="utf-8")
    options = ("--sentence", "2", "--html", "a.html", "--svg", "a.svg")
    assert laso("trace", "m.laso", "words.txt", *options).code == 0
    assert (folder / "a.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (folder / "a.svg").read_text(encoding="utf-8").startswith("<svg")
    shown = laso("trace", "m.laso", "words.txt")
    assert json.loads(shown.out)["output"] == model.predict_single(PLAIN.split())
    assert laso("trace", "m.laso", "words.txt", "--sentence", "3").code == 2


def test_wrong_use_of_the_page_is_said(laso, folder, monkeypatch):
    assert laso("serve", "--save-in", "nowhere").code == 2
    assert laso("serve", "--compare", "other.laso").code == 2
    assert laso("serve", "none.laso").code == 5
    assert laso("train", "train.txt", "--watch", "--store", "s").code == 2
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'laso\[serve\]'"):
        check_installed()


def test_the_bundled_model_is_trained_while_the_page_is_open():
    bench = Workbench()
    train_bundled(bench)
    told = bench.watched.since({"known": 2})
    assert told["state"] == "ended"
    assert [row["epoch"] for row in told["epochs"]] == [3, 4, 5]
    for row in told["epochs"]:
        assert row["picture"].startswith("<svg")
        assert 0 < row["score"] < 1
    assert bench.look({"item": 0})["gold_output"] == bench.examples[0].gold
