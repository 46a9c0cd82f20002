"""The study behind the defaults: its attributes, its jobs, its report."""

import json

import numpy as np
import pytest

from laso import (
    CRF,
    MAX_FEATURES,
    MAX_GROUPS,
    STATE_SIZE,
    STEPS,
    BadProblem,
    Chunker,
    SearchEstimator,
    Tagger,
    perceptron,
    training,
    worst,
)
from laso.data import load_bundled
from laso.engine import layout
from laso.engine.machine import averaged
from laso.examples.segmentation import LINES, LONGEST, Segmentation, Words
from studies.defaults import columns
from studies.defaults import data as study_data
from studies.defaults import learners as defaults
from studies.defaults import report as defaults_report
from studies.defaults.data import Data, Part

X = [[["w=the"], ["w=cat"]], [["w=a"], ["w=dog"]]] * 3
Y = [["D", "N"], ["D", "N"]] * 3
PART = Part(X, Y)
DATA = Data(PART, PART, PART)


def test_attributes_are_windows_affixes_and_shapes():
    first, second = study_data.attributes([("Al", "NNP"), ("ran", "VBD")])
    assert {"w0=Al", "w-1=<1>", "w1=ran", "w0w1=Al|ran", "l0=al", "s0=Xx", "p1=A", "x2=Al"} <= set(
        first
    )
    assert {"c12=NNP", "c13=VBD", "c1b2=NNP|VBD", "c1t=<1>|NNP|VBD"} <= set(first)
    assert not any(attribute.startswith("p4") for attribute in second)
    assert study_data.attributes([]) == []
    assert study_data.shape("A1-b") == "Xd-x"


def test_labels_of_nested_mentions_are_those_of_the_outermost():
    labels = study_data._outermost(4, [(1, 1, "PER"), (0, 2, "FAC"), (3, 3, "LOC")])
    assert labels == ["B-FAC", "I-FAC", "I-FAC", "B-LOC"]


def test_the_first_variant_is_the_default_of_the_tagger():
    default, *others = defaults.variants()
    assert default.default
    assert default.seeds >= 3
    assert not any(config.default for config in (*others, *defaults.peers()))
    names = [config.name for config in (default, *others)]
    assert len(set(names)) == len(names)
    assert {f"strategy {s}" for s in ("early", "delayed", "max_violation", "standard")} <= set(
        names
    )
    model = Tagger().fit(X, Y)
    assert model.epochs == 30
    # Three templates and one attribute of each token.
    assert model.update_rule(model.task_) == perceptron(weighting=worst, margin=4.0)


def test_every_corpus_meets_the_default_and_all_peers():
    jobs = list(defaults.jobs())
    peers = {config.name for config in defaults.peers()}
    for name, divisors in defaults.SIZES.items():
        for divisor in divisors:
            here = [config for n, d, config, _ in jobs if (n, d) == (name, divisor)]
            assert sum(config.default for config in here) == defaults.SEEDS
            assert peers <= {config.name for config in here}
    assert {name for name, *_ in defaults.jobs(["ewt upos"])} == {"ewt upos"}


def test_what_is_finished_is_not_run_again(tmp_path, monkeypatch):
    calls = []

    def run(data, seed):
        calls.append(seed)
        return [PART.y, PART.y], 1.25

    config = defaults.Config("laso", "default", run, default=True, seeds=2)
    monkeypatch.setattr(defaults, "variants", lambda: iter([config]))
    monkeypatch.setattr(defaults, "peers", lambda: iter(()))
    monkeypatch.setattr(defaults, "SIZES", {"ewt upos": (4,)})
    monkeypatch.setattr(study_data, "load", lambda name, divisor: DATA)
    said: list[str] = []
    for _ in range(2):
        defaults.run(said.append, folder=tmp_path)
    assert calls == [0, 1]
    assert said[0] == "ewt upos 1/4, laso default, seed 0: 100.0"
    rows = json.loads((tmp_path / "defaults.json").read_text())
    assert rows[0] == {
        "corpus": "ewt upos",
        "size": "1/4",
        "system": "laso",
        "config": "default",
        "default": True,
        "seed": 0,
        "heldout": 100.0,
        "score": 100.0,
        "train_s": 1.2,
    }


@pytest.mark.parametrize(
    "run",
    [
        defaults.tagger(epochs=3),
        defaults.crfsuite("ap", max_iterations=5),
        defaults.vowpal_wabbit,
    ],
    ids=["laso", "python-crfsuite", "vowpalwabbit"],
)
def test_systems_learn_and_answer(run, request):
    if "crfsuite" in request.node.name:
        pytest.importorskip("pycrfsuite")
    if "vowpal" in request.node.name:
        pytest.importorskip("vowpalwabbit")
    (held_out, test), seconds = run(DATA, 0)
    assert held_out == test == Y
    assert seconds > 0.0


def test_attributes_can_be_cut_off():
    part = Part([[["a", "b"], ["a"]]], [["X", "Y"]])
    assert study_data.frequent(part, 2).X == [[["a"], ["a"]]]


def test_the_smaller_weights_can_be_cut_off():
    model = Tagger(features=["bias"], epochs=3).fit(X, Y)
    small = defaults.truncated(model)
    before, after = (np.abs(each.weights_.v[each.weights_.v != 0]) for each in (model, small))
    assert 0 < len(after) <= len(before) / 2
    assert after.min() > np.sort(before)[len(before) // 2 - 1]


def row(config, heldout, *, system="laso", default=False, seed=0, **more):
    return {
        "corpus": "toy",
        "size": "all",
        "system": system,
        "config": config,
        "default": default,
        "seed": seed,
        "heldout": heldout,
        "train_s": 2.0,
        **more,
    }


def test_the_report_has_the_best_of_each_kind_ranks_bars_and_gains(tmp_path):
    crf = {"system": "python-crfsuite"}
    rows = [
        row("default", 90.0, default=True, score=91.0),
        row("default", 92.0, default=True, seed=1, score=92.0),
        row("margin 20", 91.0),
        row("margin 1", 90.5),
        row("ap", 80.0, score=81.0, **crf) | {"train_s": 1.0},
        row("pa", 82.0, score=92.0, **crf),
        row("lbfgs c1=0 c2=1", 84.0, score=70.0, **crf),
        row("lbfgs c1=0 c2=0.1", 83.0, score=75.0, **crf),
        row("sequence", 60.0, system="vowpalwabbit", score=60.0),
    ]
    rows += [{**each, "corpus": "half"} for each in rows[:5]]  # not all peers: no test scores
    (tmp_path / "defaults.json").write_text(json.dumps(rows))
    text = defaults_report.report(tmp_path).read_text()
    assert "91.50 ± 0.71 (2 s)" in text
    assert "70.00 (2 s)" in text  # chosen on held-out data, not by its test score
    assert "75.00" not in text
    assert "| half |" not in text
    assert "-0.50" in text
    assert "| laso | 2.00 | 1.00 |" in text
    assert "| CRFsuite pa | 1.00 | 3.00 |" in text
    assert "on test data: **missed**. The default is furthest below, by +0.50, on toy all." in text
    assert "on held-out data: met." in text
    assert "averaged perceptron: **missed**. The default takes from 2.00 to 2.00" in text


def test_settings_for_columns_learn_and_are_compared(tmp_path, monkeypatch):
    def make(tagged):
        assert not tagged
        return lambda seed: Tagger(features=["w[0]"], epochs=2, seed=seed)

    given = [columns.Setting(columns.BASE, make), columns.Setting("+ tags", make, tagged=True)]
    given.append(columns.Setting("other", make))
    monkeypatch.setattr(columns, "settings", lambda: iter(given))
    monkeypatch.setattr(columns, "SIZES", {"toy": 1})
    part = Part([["the", "cat"], ["a", "dog"]], [["D", "N"], ["D", "N"]])  # type: ignore[list-item]
    monkeypatch.setattr(columns, "load", lambda *_: (part, part))
    said: list[str] = []
    columns.run(said.append, tmp_path)
    assert len(said) == 2 * columns.SEEDS
    columns.run(said.append, tmp_path)  # nothing is left to do
    assert len(said) == 2 * columns.SEEDS
    text = columns.report(tmp_path)
    assert "| Tagger without dropout | 100.00 (0 s) |" in text
    assert "| other | +0.00 ± 0.00 (0 s) |" in text
    assert "tags" not in text


def test_each_seed_holds_out_another_part_of_the_training_data():
    parts = [columns.load(columns.BUNDLED, 1, seed) for seed in range(2)]
    assert [len(train.X) + len(held.X) for train, held in parts] == [len(load_bundled()[0])] * 2
    assert parts[0][1].X != parts[1][1].X
    small, _ = columns.load(columns.BUNDLED, 4, 0)
    assert parts[0][0].X[: len(small.X)] == small.X
    names = [setting.name for setting in columns.settings()]
    assert len(set(names)) == len(names)


def margin(model):
    """The margin of the update, which is that of the weights."""
    table = model.training_.table
    assert table.reals[layout.MARGIN] == model.update_rule(model.task_).margin
    return table.reals[layout.MARGIN]


def test_the_margin_is_the_number_of_features_of_a_token():
    def learned(tokens, **given):
        return margin(Tagger(epochs=1, **given).fit([tokens], [["A", "B"]]))

    assert learned(["a", "b"], features=["w[-1..1]", "label[-1]"]) == 4.0
    assert learned([["a", "b"], ["c"]], features=["label[-1]"]) == 2.5
    assert learned([{"a": 2.0}, {"b": 1.0, "c": 1.0}], features=["bias"]) == 4.0
    assert learned(["a", "b"], features=["w[0]"], update=perceptron(margin=7.0)) == 7.0


def test_the_margin_is_that_of_any_task():
    words = [line.split() for line in LINES]
    model = SearchEstimator(Segmentation(), epochs=1)
    assert margin(model.fit(["".join(line) for line in words], words)) == 4.0
    chunks = Chunker(features=["w[each]", "w[any]"], epochs=1)
    # One word has two features, of value 1; three equal words have four, of which one has value 3.
    assert margin(chunks.fit([["a", "b", "b", "b"]], [["B-X", "B-Y", "I-Y", "I-Y"]])) == 7.0


def test_later_data_keep_the_margin(tmp_path):
    model = Tagger(features=["bias"], epochs=1).fit([[["a"], ["b"]]], [["A", "B"]])
    first = margin(model)
    model.save(tmp_path / "model", training=True)
    again = Tagger.load(tmp_path / "model")
    again.partial_fit([[["a", "b", "c"], ["b"]]], [["A", "B"]])
    assert again.training_ is not None
    assert again.training_.table.reals[layout.MARGIN] == first


def test_a_sample_is_enough(monkeypatch):
    X, y = [["a", "b", "a"]] * 30, [["A", "B", "A"]] * 30
    monkeypatch.setattr(training, "OPERATORS", 5)
    assert margin(Tagger(features=["w[-1..1]"], epochs=1).fit(X, y)) == 3.0


def test_without_features_the_margin_is_one():
    assert margin(Tagger(features=["bias"], epochs=1).fit([["a"]], [["A"]])) == 1.0
    model = Tagger(features=[], epochs=1).fit([[[], []]], [["A", "B"]])
    assert margin(model) == 1.0


class Short(Words):
    """A problem that promises fewer features than it writes."""

    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, LONGEST, 1
        out[STEPS] = x.items.shape[0]


class ShortTask(Segmentation):
    name = "short"
    problem = Short


def test_an_algorithm_of_crfsuite_has_its_own_margin():
    for algorithm, expected in (("ap", 0.0), ("pa", 1.0)):
        model = CRF(algorithm, max_iterations=1).fit(X, Y)
        assert margin(model) == expected
        assert not hasattr(model.task_, "step_length_")


def test_a_faulty_problem_is_told_before_its_steps_are_measured():
    words = [line.split() for line in LINES]
    with pytest.raises(BadProblem, match="MAX_FEATURES"):
        SearchEstimator(ShortTask(), epochs=1).fit(["".join(line) for line in words], words)


def test_a_large_corpus_has_the_prior_that_is_best_on_a_quarter():
    scores = {f"lbfgs c1={c}": score for c, score in (("0", 90.0), ("0.1", 91.0), ("1", 89.0))}
    rows = [
        {"corpus": "ewt upos", "size": size, "config": name, "heldout": sign * score}
        for size, sign in (("1/4", 1.0), ("1/16", -1.0))
        for name, score in scores.items()
    ]
    left = [
        name
        for name in (*scores, "ap")
        if not defaults.is_passed_over(
            defaults.Config("python-crfsuite", name, defaults.vowpal_wabbit), "ewt upos", rows
        )
    ]
    assert left == ["lbfgs c1=0.1", "ap"]
    assert not defaults.is_passed_over(next(defaults.peers()), "ewt upos", [])


def test_averaging_may_leave_out_the_first_epochs():
    train = load_bundled()[0][:20]

    def mean_weights(epochs, **options):
        templates = ["w[0]", "label[-1]"]
        model = Tagger(features=templates, epochs=epochs, dropout=0.0).fit(train, **options)
        assert model.training_ is not None
        return averaged(model.training_.table).v

    one, three = mean_weights(1), mean_weights(3)
    late = mean_weights(3, after_epoch=defaults.averaging_from(1))
    first = np.zeros_like(three)
    first[: len(one)] = one
    assert late == pytest.approx((3 * three - first) / 2, abs=1e-4)
    assert late != pytest.approx(three, abs=0.1)
