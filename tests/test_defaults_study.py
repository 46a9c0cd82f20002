"""The study behind the defaults: its attributes, its jobs, its report."""

import json

import pytest

from benchmarks import defaults, study_data
from benchmarks.study_data import Data, Part
from laso import BadModel, Tagger, perceptron, worst

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


def test_the_report_has_the_best_of_each_kind_and_the_gains(tmp_path):
    rows = [
        row("default", 90.0, default=True, score=91.0),
        row("default", 92.0, default=True, seed=1, score=92.0),
        row("margin 20", 91.0),
        row("margin 1", 90.5),
        row("ap", 80.0, system="python-crfsuite", score=81.0),
        row("pa", 82.0, system="python-crfsuite", score=79.0),
    ]
    rows += [{**each, "corpus": "half"} for each in rows]  # not all peers: left out
    rows += [
        row(config.name, 60.0, system=config.system, score=60.0)
        for config in defaults.peers()
        if config.name not in ("ap", "pa")
    ]
    (tmp_path / "defaults.json").write_text(json.dumps(rows))
    text = defaults.report(tmp_path).read_text()
    assert "91.50 ± 0.71 (2 s)" in text
    assert "79.00 (2 s)" in text  # chosen on held-out data, not by its test score
    assert "81.00" not in text
    assert "half" not in text
    assert "-0.50" in text


def test_the_margin_is_the_number_of_features_of_a_token():
    def margin(tokens, **given):
        model = Tagger(epochs=1, **given).fit([tokens], [["A", "B"]])
        return model.update_rule(model.task_).margin  # type: ignore[attr-defined]

    assert margin(["a", "b"], features=["w[-1..1]", "label[-1]"]) == 4.0
    assert margin([["a", "b"], ["c"]], features=["label[-1]"]) == 2.5
    assert margin([{"a": 2.0}, {"b": 1.0, "c": 1.0}], features=["bias"]) == 4.0


@pytest.mark.parametrize("squares", [3, [1.0], [1, 1], [-1.0, 1], [1.0, 0], [float("inf"), 1]])
def test_a_file_with_another_state_is_refused(squares):
    with pytest.raises(BadModel, match="expected a sum and a count"):
        Tagger().make_task().restore({"squares": squares})
