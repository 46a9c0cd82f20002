"""Smaller models for labelling only: the same outputs, fewer weights, a smaller file."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from laso import BadModel, Chunker, Parser, SearchEstimator, Tagger, load_model
from laso.cli import app
from laso.data import load_bundled, write_columns
from laso.engine.weights import row_layouts
from laso.examples.segmentation import Segmentation

TRAIN, TEST = load_bundled()
TREES = (
    [[("the", "D"), ("dogs", "N"), ("bark", "V")], [("Sleep", "V"), ("the", "D"), ("cat", "N")]],
    [[(2, "det"), (3, "nsubj"), (0, "root")], [(0, "root"), (3, "det"), (1, "obj")]],
)
LINES = ["the cat sat", "the dog sat on the mat"]


def tagger():
    return Tagger(features=["w[-1..1]", "pos[0]", "label[-1]"], epochs=3).fit(TRAIN), TEST


def chunker():
    return Chunker(epochs=2, features="paper").fit(TRAIN[:60]), TEST[:40]


def parser():
    return Parser(epochs=3).fit(*TREES), TREES[0]


def own():
    outputs = [line.split() for line in LINES]
    inputs = ["".join(words) for words in outputs]
    return SearchEstimator(Segmentation(), epochs=3).fit(inputs, outputs), inputs


@pytest.mark.parametrize("made", [tagger, chunker, parser, own])
def test_a_frozen_model_labels_alike_with_fewer_weights(made, tmp_path):
    model, X = made()
    before = model.predict(X)
    small = model.freeze(X)
    assert small.predict(X) == before == model.predict(X)
    assert small.size_.weights < model.size_.weights
    size = small.save(tmp_path / "small.laso")
    assert size < model.save(tmp_path / "model.laso")
    task = Segmentation() if made is own else None
    again = load_model(tmp_path / "small.laso", task=task)
    assert again.predict(X) == before
    assert again.metadata_ == small.metadata_
    with pytest.raises(ValueError, match="the state of the training is not there"):
        small.resume(X, epochs=9) if made is own else small.resume(TRAIN, epochs=9)


def test_sparse_rows_are_frozen_alike(monkeypatch):
    monkeypatch.setattr("laso.estimators.search.MANY_LABELS", 2)
    model, X = parser()
    assert row_layouts.is_sparse(model.weights_)
    small = model.freeze(X)
    assert row_layouts.is_sparse(small.weights_)
    assert small.predict(X) == model.predict(X)
    assert small.size_.weights < model.size_.weights


def test_more_may_change_and_then_fewer_weights_are_kept():
    model, X = tagger()
    few, exact = model.freeze(X, changed=0.2), model.freeze(X)
    pairs = zip(few.predict(X), model.predict(X), strict=True)
    assert 0 < sum(a != b for a, b in pairs) <= 0.2 * len(X)
    assert few.size_.weights < exact.size_.weights
    assert exact.metadata_["frozen"]["of"] == model.size_.weights


def test_the_weights_have_16_bits():
    model, X = tagger()
    weights = row_layouts.all_weights(model.freeze(X).weights_)
    assert np.array_equal(weights.astype(np.float16).astype(np.float32), weights)


def test_what_makes_no_sense_is_refused(tmp_path):
    model, X = tagger()
    with pytest.raises(ValueError, match="changed must be a fraction from 0 to below 1, found 1"):
        model.freeze(X, changed=1)
    with pytest.raises(ValueError, match="found no inputs, expected some"):
        model.freeze([])
    small = model.freeze(X)
    small.metadata_["frozen"]["precision"] = "float8"
    with pytest.raises(ValueError, match="precision must be None or float32"):
        small.save(tmp_path / "small.laso")
    small.metadata_["frozen"]["precision"] = "float32"
    small.save(tmp_path / "small.laso")
    with pytest.raises(BadModel, match=r"frozen to .*float32.*expected float16"):
        load_model(tmp_path / "small.laso")


def test_the_command(tmp_path):
    model, text = tmp_path / "model.laso", tmp_path / "dev.txt"
    write_columns(text, TEST)
    run = CliRunner().invoke
    write_columns(tmp_path / "train.txt", TRAIN[:100])
    options = ["--model", str(model), "--epochs", "2"]
    assert run(app, ["train", str(tmp_path / "train.txt"), *options]).exit_code == 0
    small = tmp_path / "small.laso"
    result = run(app, ["freeze", str(model), str(text), "--output", str(small)])
    assert result.exit_code == 0, result.output
    assert "weights" in result.output
    assert small.stat().st_size < model.stat().st_size
    outputs = [run(app, ["tag", str(each), str(text)]).output for each in (model, small)]
    assert outputs[0] == outputs[1]
    scores = run(app, ["eval", str(small), str(text), "--json"]).output
    assert json.loads(scores)
