"""Several models in one: the mean of their weights, feature by feature."""

import numpy as np
import pytest
from typer.testing import CliRunner

from laso import BadModel, Chunker, Tagger, load_model, mixed
from laso.cli import app
from laso.data import load_bundled, write_columns
from laso.model_file import stored_rows

TRAIN, TEST = load_bundled()


def tagger(**given):
    return Tagger(**{"templates": ["w[-1..1]", "label[-1]"], "epochs": 2, "threads": 1, **given})


@pytest.fixture(scope="module")
def models():
    return [tagger(seed=seed).fit(TRAIN) for seed in range(3)]


def by_key(model):
    keys, rows = stored_rows(model.weights_)
    return {key: model.weights_.v[row] for key, row in zip(keys.tolist(), rows, strict=True)}


def test_every_weight_is_the_mean(models):
    tables, found = [by_key(model) for model in models], by_key(mixed(models))
    assert set(found) == set().union(*tables)
    assert any(key not in tables[0] for key in found)
    nothing = np.zeros(len(models[0].classes_))
    for key, weights in found.items():
        expected = sum(table.get(key, nothing).astype(float) for table in tables) / 3
        assert np.allclose(weights, expected, rtol=1e-5, atol=1e-6)


def test_one_model_is_its_own_mixture(models):
    assert mixed(models[:1]).predict(TEST) == models[0].predict(TEST)


def test_the_models_stay_as_they_are_and_the_mixture_goes_into_a_file(models, tmp_path):
    before = [model.predict(TEST) for model in models]
    found = mixed(models)
    assert [model.predict(TEST) for model in models] == before
    found.save(tmp_path / "m.laso")
    assert load_model(tmp_path / "m.laso").predict(TEST) == found.predict(TEST)
    with pytest.raises(ValueError, match="the state of the training is not there"):
        found.resume(TRAIN, epochs=9)


def test_features_of_tokens_and_hashed_ones():
    X = [[{t[0]: 1.0} for t in s] for s in TRAIN[:60]]
    y = [[t[2] for t in s] for s in TRAIN[:60]]
    some = [tagger(templates=["label[-1]"], seed=seed).fit(X, y) for seed in (0, 1)]
    assert mixed(some).score(X, y) > 0.8
    hashed = [tagger(hash_bits=14, seed=seed).fit(TRAIN) for seed in (0, 1)]
    assert mixed(hashed).score(TEST) > 0.7


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: tagger(templates=["w[0]"]).fit(TRAIN), "templates"),
        (lambda: tagger().fit(TRAIN[:100]), "labels|words"),
        (lambda: tagger(hash_bits=14).fit(TRAIN), "hash bits"),
        (lambda: Chunker(features="paper", epochs=1, threads=1).fit(TRAIN), "estimators"),
    ],
)
def test_models_of_another_kind_are_refused(models, other, what):
    with pytest.raises(BadModel, match=f"model 2 has other ({what}) than model 1"):
        mixed([models[0], other()])


def test_no_models():
    with pytest.raises(ValueError, match="found no models"):
        mixed([])


def test_the_command(models, tmp_path):
    names = [str(tmp_path / f"{i}.laso") for i in range(3)]
    for name, model in zip(names, models, strict=True):
        model.save(name)
    done = CliRunner().invoke(app, ["mix", *names, "--model", str(tmp_path / "all.laso")])
    assert done.exit_code == 0, done.output
    assert "3 models mixed" in done.output
    write_columns(tmp_path / "test.txt", TEST)
    found = load_model(tmp_path / "all.laso")
    assert found.predict(tmp_path / "test.txt") == mixed(models).predict(TEST)
