"""Several models in one: the mean of their weights, feature by feature."""

import tracemalloc

import numpy as np
import pytest
from typer.testing import CliRunner

from laso import BadModel, Chunker, Tagger, average_models, load_model
from laso.cli import app
from laso.data import load_bundled, write_columns
from laso.engine.weights.compact import keys_and_rows, make_sparse_table
from laso.engine.weights.row_layouts import dense_rows, densified, from_triples, is_sparse
from laso.estimators.learning.tables import mean, with_bias
from studies.measure import Row, save
from studies.paper import average1
from studies.runner import experiment

TRAIN, TEST = load_bundled()


def tagger(**given):
    return Tagger(**{"features": ["w[-1..1]", "label[-1]"], "epochs": 2, "threads": 1, **given})


@pytest.fixture(scope="module")
def models():
    return [tagger(seed=seed).fit(TRAIN) for seed in range(3)]


def by_key(model):
    keys, rows = keys_and_rows(model.weights_)
    return {key: model.weights_.v[row] for key, row in zip(keys.tolist(), rows, strict=True)}


def test_every_weight_is_the_mean(models):
    tables, found = [by_key(model) for model in models], by_key(average_models(models))
    assert set(found) == set().union(*tables)
    assert any(key not in tables[0] for key in found)
    nothing = np.zeros(len(models[0].classes_))
    for key, weights in found.items():
        expected = sum(table.get(key, nothing).astype(float) for table in tables) / 3
        assert np.allclose(weights, expected, rtol=1e-5, atol=1e-6)


def sparse_table(rng, n, width):
    """A table of sparse rows with one random weight in each of n rows."""
    keys = np.sort(rng.choice(2 * n, n, replace=False))
    values = {"v": rng.normal(size=n).astype(np.float32)}
    labels = rng.integers(width, size=n).astype(np.int32)
    return make_sparse_table(keys, from_triples(np.arange(n), labels, values, n, width), width, 0)


def test_sparse_rows_have_the_mean_that_dense_ones_have():
    rng = np.random.default_rng(0)
    tables = [sparse_table(rng, 40_000, 3) for _ in range(3)]
    found, dense = mean(tables), mean([densified(table) for table in tables])
    assert is_sparse(found)
    keys, rows = keys_and_rows(found)
    its_keys, its_rows = keys_and_rows(dense)
    assert np.array_equal(keys, its_keys)
    assert np.array_equal(dense_rows(found, rows), dense.v[its_rows])
    assert len(mean([sparse_table(rng, 0, 3)] * 2).v) == 0


def test_sparse_rows_stay_small_while_they_are_averaged_and_biased():
    rng = np.random.default_rng(0)
    n, width = 200_000, 250
    tables = [sparse_table(rng, n, width) for _ in range(2)]
    for make in (lambda: mean(tables), lambda: with_bias(tables[0], [-1], np.ones(width))):
        tracemalloc.start()
        made = make()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert is_sparse(made)
        assert peak < 2 * n * width  # half of one dense table
    assert dense_rows(made, find_rows_of(made, [-1])).tolist() == [[1.0] * width]


def find_rows_of(table, wanted):
    keys, rows = keys_and_rows(table)
    return rows[np.isin(keys, wanted)]


def test_one_model_is_its_own_average(models):
    assert average_models(models[:1]).predict(TEST) == models[0].predict(TEST)


def test_the_models_stay_as_they_are_and_the_average_goes_into_a_file(models, tmp_path):
    before = [model.predict(TEST) for model in models]
    found = average_models(models)
    assert [model.predict(TEST) for model in models] == before
    found.save(tmp_path / "m.laso")
    assert load_model(tmp_path / "m.laso").predict(TEST) == found.predict(TEST)
    with pytest.raises(ValueError, match="the state of the training is not there"):
        found.resume(TRAIN, epochs=9)


def test_features_of_tokens_and_hashed_ones():
    X = [[{t[0]: 1.0} for t in s] for s in TRAIN[:60]]
    y = [[t[2] for t in s] for s in TRAIN[:60]]
    some = [tagger(features=["label[-1]"], epochs=5, seed=seed).fit(X, y) for seed in (0, 1)]
    assert average_models(some).score(X, y) > 0.8
    hashed = [tagger(hash_bits=14, seed=seed).fit(TRAIN) for seed in (0, 1)]
    assert average_models(hashed).score(TEST) > 0.7


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (lambda: tagger(features=["w[0]"]).fit(TRAIN), "templates"),
        (lambda: tagger().fit(TRAIN[:100]), "labels"),
        (lambda: tagger().fit([*TRAIN[1:], TRAIN[0]]), "words"),
        (lambda: tagger(hash_bits=14).fit(TRAIN), "hash bits"),
        (lambda: Chunker(features="paper", epochs=1, threads=1).fit(TRAIN), "estimators"),
    ],
)
def test_models_of_another_kind_are_refused(models, other, what):
    with pytest.raises(BadModel, match=f"model 2 has other {what} than model 1, .* --refit"):
        average_models([models[0], other()])


def test_no_models():
    with pytest.raises(ValueError, match="found no models"):
        average_models([])


def test_the_command(models, tmp_path):
    names = [str(tmp_path / f"{i}.laso") for i in range(3)]
    for name, model in zip(names, models, strict=True):
        model.save(name)
    done = CliRunner().invoke(app, ["average", *names, "--model", str(tmp_path / "all.laso")])
    assert done.exit_code == 0, done.output
    assert "3 models averaged" in done.output
    write_columns(tmp_path / "test.txt", TEST)
    found = load_model(tmp_path / "all.laso")
    assert found.predict(tmp_path / "test.txt") == average_models(models).predict(TEST)


# The experiments


def test_each_size_is_tested_with_the_models_of_its_own(tmp_path):
    made = average1.ModelGroup(tagger, seed=1)
    assert [model.seed for model in made.models] == list(range(12, 24))
    write_columns(tmp_path / "train.txt", TRAIN[:40])
    made.fit(tmp_path / "train.txt")

    def evaluate(model, path):
        return {"weights": float(np.abs(model.weights_.v).sum()), "path": path}

    parts = average1.evaluate_by_size(evaluate, made, tmp_path)["parts"]
    sizes = [part["models"] for part in parts]
    assert sizes == [1] * 12 + [2] * 6 + [4] * 3
    average = average_models(made.models[4:8])
    assert parts[19] == evaluate(average, tmp_path) | {"models": 4, "first": 4}
    assert made.n_iter_ == 2
    assert made.save(tmp_path / "m.laso") == (tmp_path / "m.laso").stat().st_size


def test_settings_are_chosen_with_one_model(tmp_path):
    write_columns(tmp_path / "train.txt", TRAIN[:40])
    made = average1.ModelGroup(tagger, seed=0).fit(
        tmp_path / "train.txt", dev=tmp_path / "train.txt"
    )
    alone = tagger(seed=0).fit(tmp_path / "train.txt", dev=tmp_path / "train.txt")
    assert len(made.models) == 1
    assert made.scores_ == alone.scores_


def test_rows_and_choices_are_those_of_the_table():
    found, base = experiment("average1"), experiment("table1")
    assert found.chosen_by == base.name
    assert found.rows == {row: base.rows[row] for row in found.rows}


def average_results(**more) -> list[Row]:
    facts: Row = {"row": "LaSOp_5", "features": "rich", "resources": [], "corpus": "conll2000"}
    facts |= {"seed": 0, "cpu_s": 120.0, "precision": 1.0, "recall": 2.0, "test_s": 0.5}
    facts |= {"versions": {"laso": "1"}, "machine": {}, "jobs": 1, "settings": {"epochs": 2}}
    return [facts | {"models": n, "f": 90.0 + n, **more} for n in average1.SIZES]


def test_the_report_has_a_line_for_each_number_of_models(tmp_path):
    results = average_results()
    (file,) = experiment("average1").report(results, {}, tmp_path)
    text = file.read_text()
    assert "## Features rich, no resources" in text
    assert "| LaSOp_5 | 4 | **1** | 1.00 | 2.00 | 94.00 | 0.50 | 40 |" in text
    (file,) = experiment("average1").report([], {}, tmp_path)
    assert "Nothing was measured yet." in file.read_text()


def test_single_models_include_those_of_the_table(tmp_path):
    first, *_ = average_results()
    others = [first | {"seed": seed, "f": 93.0} for seed in (0, 1, 2)]
    others.append(first | {"seed": 3, "f": 50.0, "settings": {"epochs": 9}})
    save(tmp_path / "table1.json", others)
    (file,) = experiment("average1").report(average_results(), {}, tmp_path)
    # Seed 0 is the first model of the average itself, seed 3 has other settings.
    assert "| LaSOp_5 | 1 | 3 | 1.00 ± 0.00 | 2.00 ± 0.00 | 92.33 ± 1.15 |" in file.read_text()
