"""``laso.crfsuite`` in place of python-crfsuite: trainer, tagger, sequences, the log."""

import itertools
import math
import re
import subprocess
import sys
from fractions import Fraction
from typing import Any

import pytest

from laso import CRF, Chunker, crfsuite, load_model
from laso.crfsuite import CRFSUITE_VERSION, ItemSequence, Tagger, Trainer
from laso.crfsuite._logparser import LabelScore, TrainLogParser
from laso.data import load_bundled

SEQUENCE: list[dict[str, Any]] = [
    {"sun": 1, "wind": 0.5},
    {"sun": True, "rain": False},
    {"rain": 2.0, "天空": "灰色"},
    {},
    {"rain": 1, "cloud": ["low", "black"]},
]
LABELS = ["dry", "dry", "wet", "dry", "湿"]


def trained(path, algorithm="lbfgs", params=None, **options):
    trainer = Trainer(algorithm, params, verbose=False)
    trainer.append(SEQUENCE, LABELS)
    trainer.train(path, **options)
    return str(path)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("crfsuite") / "model", params={"c2": 0.01})


# Sequences


def test_sequences_are_dicts_of_numbers():
    items = ItemSequence(
        [
            ["a", "b"],
            {"a": True, "b": {"c": -1, "d": False}, "e": ["x", "y"], "f": {"g": {"h"}}},
            {"词": "世界", b"key": b"value", "n": 0.5},
            (),
        ]
    )
    assert items.items() == [
        {"a": 1.0, "b": 1.0},
        {"a": 1.0, "b:c": -1.0, "b:d": 0.0, "e:x": 1.0, "e:y": 1.0, "f:g:h": 1.0},
        {"词:世界": 1.0, "key:value": 1.0, "n": 0.5},
        {},
    ]
    assert len(items) == 4
    assert repr(items) == "<ItemSequence of size 4>"
    assert ItemSequence(items).items() == ItemSequence(items.items()).items() == items.items()
    assert ItemSequence([]).items() == []


@pytest.mark.parametrize("wrong", ["text", b"text", ["text"], [{"a": object()}], [3]])
def test_other_sequences_are_errors(wrong):
    with pytest.raises(ValueError, match="found"):
        ItemSequence(wrong)


# The trainer


@pytest.mark.parametrize("algorithm", ["lbfgs", "l2sgd", "ap", "pa", "arow"])
def test_a_model_for_each_algorithm(tmp_path, algorithm):
    found = load_model(trained(tmp_path / "model", algorithm))
    assert isinstance(found, CRF)
    assert found.algorithm == algorithm


def test_parameters():
    trainer = Trainer()
    trainer.select("averaged-perceptron")
    assert trainer.params()[-2:] == ["max_iterations", "epsilon"]
    for name in ("lbfgs", "l2sgd", "ap", "pa", "passive-aggressive", "arow"):
        trainer.select(name)
        defaults = trainer.get_params()
        trainer.set_params(defaults)
        assert trainer.get_params() == defaults
        assert all(trainer.help(each) for each in trainer.params())
    trainer.select("lbfgs")
    trainer.set("feature.possible_states", 1)
    assert trainer.get("feature.possible_states") is True
    trainer.set("c2", "0.25")
    assert trainer.get("c2") == 0.25
    assert "L1" in trainer.help("c1")
    trainer.select("lbfgs")
    assert trainer.get("c2") == 1.0
    for call in (trainer.get, trainer.help, lambda name: trainer.set(name, 1)):
        with pytest.raises(ValueError, match="no parameter 'gamma'"):
            call("gamma")
    with pytest.raises(ValueError, match="algorithm must be one of"):
        trainer.select("newton")
    with pytest.raises(ValueError, match="type must be"):
        trainer.select("lbfgs", "crf2d")
    with pytest.raises(ValueError, match="found 1 labels, expected 2"):
        trainer.append([{}, {}], ["a"])


def test_parameters_reach_the_model(tmp_path):
    given = {"c1": 0.5, "feature.minfreq": 2, "feature.possible_transitions": True}
    found = load_model(trained(tmp_path / "model", params=given))
    assert (found.c1, found.min_freq, found.all_possible_transitions) == (0.5, 2.0, True)  # type: ignore[attr-defined]


def test_a_group_is_held_out(tmp_path):
    trainer = Trainer("lbfgs", {"max_iterations": 3}, verbose=False)
    trainer.append(SEQUENCE, LABELS)
    trainer.append(SEQUENCE, ["dry"] * 5, 7)
    trainer.train(str(tmp_path / "model"), holdout=7)
    log = trainer.logparser
    assert log is not None
    assert log.log[0] == "Holdout group: 8\n"
    assert [each["num"] for each in log.iterations] == [1, 2, 3]
    assert log.last_iteration["scores"]["dry"].ref == 5
    trainer.clear()
    with pytest.warns(UserWarning, match="no token to learn from"):
        trainer.train(str(tmp_path / "none"))
    assert not (tmp_path / "none").exists()


def test_without_a_file_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    trained("")
    assert list(tmp_path.iterdir()) == []


def test_messages(tmp_path):
    class Capturing(Trainer):
        def __init__(self):
            self.messages = []

        def message(self, message):
            self.messages.append(message)

    trainer = Capturing()
    trainer.append(iter(SEQUENCE), iter(LABELS))
    assert trainer.messages == []
    trainer.train(str(tmp_path / "model"))
    assert "type: CRF1d\n" in trainer.messages

    class Failing(Trainer):
        def message(self, message):
            raise LookupError(message)

    failing = Failing()
    failing.append(SEQUENCE, LABELS)
    with pytest.raises(LookupError, match="Feature generation"):
        failing.train(str(tmp_path / "model"))


def test_the_log_is_printed_and_can_be_parsed_again(tmp_path, capsys):
    trainer = Trainer("l2sgd", {"max_iterations": 2})
    trainer.append(SEQUENCE, LABELS)
    trainer.append(SEQUENCE, LABELS, 1)
    trainer.train(str(tmp_path / "model"), 1)
    printed = capsys.readouterr().out
    log = trainer.logparser
    assert log is not None
    assert printed == "".join(log.log)
    events = [event for event, _, _ in log.events if event != "featgen_progress"]
    assert events == [
        *("start", "featgen_end", "prepared", "iteration", "iteration"),
        *("optimization_end", "end"),
    ]
    assert log.featgen_percent == 100
    assert log.last_iteration["item_accuracy"] == Fraction(
        sum(score.match for score in log.last_iteration["scores"].values()), 5
    )


# The parser of logs, with lines that laso does not write


def test_lines_of_crfsuite():
    parser = TrainLogParser()
    lines = [
        *("Holdout group: 2", "", "Feature generation", "type: CRF1d"),
        *("Number of features: 12", "Seconds required: 0.500", "", "L-BFGS optimization"),
        *("***** Iteration #1 *****", "Loss: 12.5", "Error norm: 7.25", "Active features: 9"),
        *("Line search trials: 3", "Line search step: 0.25"),
        "Seconds required for this iteration: 0.125",
        "    a: b: (1, 2, 3) (0.5000, 0.3333, 0.4000)",
        "    c: (0, 0, 0) (******, ******, ******)",
        "Macro-average precision, recall, F1: (0.250000, 0.166650, 0.200000)",
        *("Item accuracy: 1 / 4 (0.2500)", "Instance accuracy: 0 / 2 (0.0000)", ""),
        *("Total seconds required for training: 1.500", "", "Storing the model"),
        *("Seconds required: 0.250", ""),
    ]
    events = [parser.feed(f"{line}\n") for line in lines]
    assert [event for event in events if event] == [
        *("start", "featgen_end", "prepared", "iteration", "optimization_end", "end")
    ]
    assert parser.featgen_num_features == 12
    times = parser.featgen_seconds, parser.training_seconds, parser.storing_seconds
    assert times == (0.5, 1.5, 0.25)
    assert parser.iterations == [parser.last_iteration]
    assert parser.last_iteration == {
        "num": 1,
        "loss": 12.5,
        "error_norm": 7.25,
        "active_features": 9,
        "time": 0.125,
        "linesearch_trials": 3,
        "linesearch_step": 0.25,
        "scores": {
            "a: b": LabelScore(1, 2, 3, 0.5, 0.3333, 0.4),
            "c": LabelScore(0, 0, 0, None, None, None),
        },
        "avg_precision": 0.25,
        "avg_recall": 0.16665,
        "avg_f1": 0.2,
        "item_accuracy": Fraction(1, 4),
        "item_accuracy_float": 0.25,
        "instance_accuracy": 0,
        "instance_accuracy_float": 0.0,
    }
    assert parser.last_log == "Storing the model\nSeconds required: 0.250\n\n"


def test_a_training_that_fails():
    parser = TrainLogParser()
    lines = [
        *("Feature generation", "Seconds required: 0.001", "", "L-BFGS optimization"),
        *("L-BFGS terminated with error code (-1020)", "Storing the model", ""),
    ]
    events = [parser.feed(f"{line}\n") for line in lines]
    assert [event for event in events if event] == [
        *("start", "featgen_end", "prepare_error", "optimization_end", "end")
    ]
    assert parser.iterations == []


# The tagger


def test_labels_and_probabilities(path):
    with Tagger().open(path) as tagger:
        assert set(tagger.labels()) == set(LABELS)
        assert tagger.tag(SEQUENCE) == tagger.tag(ItemSequence(SEQUENCE)) == tagger.tag() == LABELS
        every = [
            tagger.probability(labels) for labels in itertools.product(tagger.labels(), repeat=5)
        ]
        assert math.fsum(every) == pytest.approx(1.0)
        assert max(every) == tagger.probability(LABELS)
        for i in range(5):
            assert sum(tagger.marginal(y, i) for y in tagger.labels()) == pytest.approx(1.0)
        first = [
            tagger.probability(["dry", *rest])
            for rest in itertools.product(tagger.labels(), repeat=4)
        ]
        assert tagger.marginal("dry", 0) == pytest.approx(math.fsum(first))
        for wrong in (("snow", 0), ("dry", 5), ("dry", -1)):
            with pytest.raises(ValueError, match="found the"):
                tagger.marginal(*wrong)
        with pytest.raises(ValueError, match="expected 5 labels"):
            tagger.probability(["dry"])
        with pytest.raises(ValueError, match="'snow', which training has not seen"):
            tagger.probability(["snow"] * 5)
        tagger.set([])
        assert tagger.tag() == []


def test_features_of_other_forms(path):
    with Tagger().open(path) as tagger:
        assert tagger.tag([x.keys() for x in SEQUENCE])
        for wrong in ("text", ["text"], [[{"a": 1.0}]]):
            with pytest.raises(ValueError, match="found"):
                tagger.tag(wrong)


def test_a_tagger_that_is_not_open(path):
    tagger = Tagger()
    for call in (tagger.labels, lambda: tagger.tag(SEQUENCE), lambda: tagger.marginal("dry", 0)):
        with pytest.raises(ValueError, match="not opened"):
            call()
    with tagger.open(path):
        with pytest.raises(ValueError, match="no sequence"):
            tagger.tag()
        assert tagger.labels()
    for dump in (tagger.dump, tagger.info):
        with pytest.raises(RuntimeError, match="not opened"):
            dump()


def test_files(path, tmp_path):
    with open(path, "rb") as file:
        data = file.read()
    with Tagger().open_inmemory(data) as tagger:
        assert tagger.tag(SEQUENCE) == LABELS
    for wrong in (b"", b"lCRF", data[:-1], data[:20]):
        with pytest.raises(ValueError, match="cannot be loaded"):
            Tagger().open_inmemory(wrong)
    with pytest.raises(OSError, match="none"):
        Tagger().open(tmp_path / "none")
    with pytest.raises(ValueError, match="cannot be loaded"):
        Tagger().open(__file__)
    Chunker(epochs=1, features="paper").fit(load_bundled()[0][:5]).save(tmp_path / "chunker")
    with pytest.raises(ValueError, match="found a Chunker"):
        Tagger().open(tmp_path / "chunker")


def test_dump_and_info(path, tmp_path, capsys):
    with Tagger().open(path) as tagger:
        info = tagger.info()
        tagger.dump(tmp_path / "dump")
        tagger.dump()
    text = (tmp_path / "dump").read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    model = CRF.load(path)
    assert (info.state_features, info.transitions) == (
        model.state_features_,
        model.transition_features_,
    )
    assert info.header["num_labels"] == "3"
    assert int(info.header["size"]) == model.size_
    assert sorted(info.labels.values()) == ["0", "1", "2"]
    assert set(info.attributes) == {"sun", "wind", "rain", "天空:灰色", "cloud:low", "cloud:black"}
    blocks = re.findall(r"^(\w+) = \{\n(.*?)^\}\n\n", text, re.DOTALL | re.MULTILINE)
    assert [name for name, _ in blocks] == [
        *("FILEHEADER", "LABELS", "ATTRIBUTES", "TRANSITIONS", "STATE_FEATURES")
    ]
    weight = info.state_features["天空:灰色", "wet"]
    assert f"  (0) 天空:灰色 --> wet: {weight:f}\n" in text


# The module


def test_the_module_has_the_names():
    assert CRFSUITE_VERSION
    assert set(crfsuite.__all__) >= {"CRFSUITE_VERSION", "ItemSequence", "Tagger", "Trainer"}
    code = "import sys, laso; print('numpy' in sys.modules, 'laso.crfsuite' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "False False\n"
