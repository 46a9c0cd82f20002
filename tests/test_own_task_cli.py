"""Tasks of the user's own on the command line: ``--task module:Class``."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from laso import load_model
from laso.cli import app
from laso.cli.progress import Display
from laso.data import load_bundled, write_columns
from laso.examples.segmentation import Segmentation
from tests.interruption import KILLED, StopAfter

OWN = ("--task", "laso.examples.segmentation:Segmentation")
TRAIN, TEST = load_bundled()
LINES = [
    " ".join(re.sub("[^a-z]", "", word.lower())[:12] for word, *_ in sentence if word.isalpha())
    for sentence in TRAIN[:60]
]
LINES = [line for line in LINES if line]

# A task that reads files as Task does: columns, the label last.
MODULE = """
from laso import MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS, CompiledProblem, Task, mix


class Labels(CompiledProblem):
    @staticmethod
    def limits(x, out):
        out[STATE_SIZE], out[MAX_GROUPS], out[MAX_FEATURES] = 2, 1, 3
        out[STEPS] = x.items.shape[0]

    @staticmethod
    def initial(x, state):
        state[0], state[1] = 0, -1

    @staticmethod
    def groups(x, state, out):
        out[0] = 0
        return 1

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = mix(1, x.items[state[0], 0])
        out.keys[1] = mix(2, state[1])
        out.keys[2] = 3
        return 3

    @staticmethod
    def apply(x, state, group, label, new):
        new[0], new[1] = state[0] + 1, label

    @staticmethod
    def is_goal(x, state):
        return state[0] == x.items.shape[0]

    @staticmethod
    def is_good(x, y, state, group, label):
        return y[state[0]] == label

    @staticmethod
    def key(x, state, group, label):
        return state[0] + 1


class Tags(Task):
    name = "tags"
    problem = Labels

    def items(self, x):
        return x

    def gold(self, x, y):
        return y

    def decode(self, x, steps):
        return [self.classes[label] for _, label in steps]

    def score(self, gold, predicted):
        pairs = [p for g, q in zip(gold, predicted) for p in zip(g, q)]
        return sum(g == q for g, q in pairs) / len(pairs)


class Picky(Tags):
    def read_file(self, path, *, labelled):
        raise ValueError("no such thing")


class Buggy(Tags):
    def gold(self, x, y):
        return [int(label) for label in y]


class Needy(Tags):
    def __init__(self, scale):
        self.scale = scale


ready = Tags()
number = 3
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])  # where --task adds the current folder
    Path("text.txt").write_text("\n".join(LINES) + "\n")
    Path("own_tags.py").write_text(MODULE)
    write_columns("train.txt", [[(w, p) for w, p, _ in s] for s in TRAIN[:60]])
    write_columns("test.txt", [[(w, p) for w, p, _ in s] for s in TEST[:20]])
    yield tmp_path
    sys.modules.pop("own_tags", None)


# one task with a reader of its own


def test_a_task_is_trained_with_held_out_examples_and_reported_by_its_score(laso, folder):
    shown = laso("train", "text.txt", *OWN, "--json", "--epochs", "4")
    assert (shown.code, shown.err) == (0, "")
    result = json.loads(shown.out)
    held_out = round(len(LINES) * 0.1)
    assert result["task"] == OWN[1]
    assert (result["examples"], result["held out"]) == (len(LINES) - held_out, held_out)
    assert len(result["scores"]) == result["epochs"] <= 4
    assert result["evaluation"] == {"examples": held_out, "score": max(result["scores"])}
    assert 0 <= result["calibration_error"] <= 1
    assert not list(folder.glob("*.checkpoint"))
    model = load_model("text.laso", task=Segmentation())
    assert model.best_epoch_ == result["best_epoch"]
    assert model.metadata_["held out"] == {"score": max(result["scores"])}
    assert model.metadata_["configuration"]["task"] == OWN[1]


def test_the_report_for_people(laso, folder):
    shown = laso("train", "text.txt", *OWN, "--epochs", "2").out
    assert f"learned {OWN[1]} from {len(LINES) - 6} examples of text.txt: 1 label, " in shown
    assert re.search(r"^held out: 6 examples, score \d\.\d{4}$", shown, re.MULTILINE)
    assert f"next: laso tag text.laso FILE --task {OWN[1]}\n" in shown


def test_outputs_are_written_as_the_task_says(laso, folder):
    laso("train", "text.txt", *OWN, "--epochs", "3", "--held-out", "0")
    predicted = load_model("text.laso", task=Segmentation()).predict([LINES[0].replace(" ", "")])[0]
    shown = laso("tag", "text.laso", *OWN, stdin=LINES[0].replace(" ", "") + "\n")
    assert (shown.code, shown.err) == (0, "")
    assert json.loads(shown.out) == predicted
    Path("one.txt").write_text(LINES[0] + "\n")
    laso("tag", "text.laso", "one.txt", *OWN, "--output", "out.txt")
    assert Path("out.txt").read_text() == shown.out
    more = ("--json", "--confidence", "--nbest", "2")
    record = json.loads(laso("tag", "text.laso", "one.txt", *OWN, *more).out)
    assert (record["input"], record["output"]) == (LINES[0].replace(" ", ""), predicted)
    assert record["nbest"][0]["output"] == predicted
    assert len(record["nbest"]) == 2
    assert 0 <= record["probability"] <= 1
    spans = [(part["start"], part["end"]) for part in record["parts"]]
    assert [record["input"][a:b] for a, b in spans] == predicted


def test_a_model_is_evaluated_inspected_explained_and_averaged(laso, folder):
    for seed in "12":
        options = ("--held-out", "0", "--set", f"seed={seed}", "--epochs", "2")
        laso("train", "text.txt", *OWN, *options, "--model", f"{seed}.laso")
    result = json.loads(laso("eval", "1.laso", "text.txt", *OWN, "--json", "--confidence").out)
    assert result["examples"] == len(LINES)
    X = [line.replace(" ", "") for line in LINES]
    model = load_model("1.laso", task=Segmentation())
    assert result["score"] == model.score(X, [line.split() for line in LINES])
    assert 0 <= result["calibration"]["error"] <= 1
    shown = laso("eval", "1.laso", "text.txt", *OWN).out
    assert shown == f"{len(LINES)} examples, score {result['score']:.4f}\n"
    assert json.loads(laso("inspect", "1.laso", *OWN, "--json").out)["task"] == "segmentation"
    for form in ((), ("--html",)):
        shown = laso("inspect", "1.laso", "text.txt", *OWN, *form)
        assert (shown.code, shown.err) == (0, "")
        assert "segmentation" in shown.out
    explained = json.loads(laso("explain", "1.laso", *OWN, "--json", stdin=X[0] + "\n").out)
    assert explained["output"] == model.predict(X[:1])[0]
    assert laso("explain", "1.laso", *OWN, stdin=X[0] + "\n").out.startswith(" ".join(X[0]))
    assert laso("average", "1.laso", "2.laso", "--model", "both.laso", *OWN).code == 0
    assert load_model("both.laso", task=Segmentation()).predict(X[:1])


def test_settings_of_the_estimator(laso, folder):
    (folder / "a.toml").write_text(f'task = "{OWN[1]}"\nepochs = 2\n[set]\nqueue = "exact()"\n')
    assert laso("train", "text.txt", "--config", "a.toml", "--set", "seed=3").code == 0
    model = load_model("text.laso", task=Segmentation())
    assert (repr(model.queue), model.seed, model.epochs) == ("exact()", 3, 2)
    shown = laso("train", "text.txt", *OWN, "--set", "nope=3")
    assert shown.code == 2
    assert "has no parameter nope; it has queue, update" in shown.err
    assert laso("train", "text.txt", *OWN, "--set", "task=1").code == 2
    assert laso("train", "text.txt", *OWN, "--class-weight", "word=2").code == 2
    for option in ("--label", "--inputs", "--columns", "--templates", "--separator", "--comment"):
        shown = laso("train", "text.txt", *OWN, option, "x")
        assert shown.code == 2
        assert f"{option} is for files of columns" in shown.err


def test_refit_and_a_development_file(laso, folder):
    Path("dev.txt").write_text("\n".join(LINES[:9]))
    options = ("--epochs", "3", "--dev", "dev.txt", "--refit", "--json")
    result = json.loads(laso("train", "text.txt", *OWN, *options).out)
    assert (result["examples"], result["held out"], result["refit"]) == (len(LINES), 9, True)
    assert result["best_epoch"] == result["epochs"] <= 3
    assert load_model("text.laso", task=Segmentation()).metadata_["held out"]


def test_what_is_streamed_is_the_same_model(laso, folder):
    for model, store in (("memory.laso", ()), ("streamed.laso", ("--store", "encoded"))):
        laso("train", "text.txt", *OWN, "--epochs", "2", "--model", model, *store)
    assert Path("memory.laso").read_bytes() == Path("streamed.laso").read_bytes()


# interrupted and killed


def test_ctrl_c_saves_what_was_learned(laso, folder, monkeypatch):
    stop = StopAfter(3)
    monkeypatch.setattr(Display, "__call__", lambda self, report: stop(report))
    shown = laso("train", "text.txt", *OWN, "--json")
    assert (shown.code, json.loads(shown.out)["interrupted"]) == (130, True)
    model = load_model("text.laso", task=Segmentation())
    assert model.interrupted_
    assert model.predict(["thecat"])


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="kills by SIGKILL")
def test_a_killed_run_goes_on_to_the_same_model(laso, folder):
    laso("train", "text.txt", *OWN, "--model", "whole.laso")
    command = [sys.executable, "-c", KILLED, "2", "train", "text.txt", *OWN, "--model", "two.laso"]
    assert subprocess.run(command, check=False, capture_output=True).returncode == -9
    assert not Path("two.laso").exists()
    shown = laso("train", "text.txt", *OWN, "--model", "two.laso", "--json")
    assert shown.err == "resuming a run that was cut short after epoch 2\n"
    assert json.loads(shown.out)["resumed"]
    assert Path("two.laso").read_bytes() == Path("whole.laso").read_bytes()
    assert not Path("two.laso.checkpoint").exists()


# a task in the current folder, with the default reader of columns


def test_a_module_in_the_current_folder(laso, folder):
    own = ("--task", "own_tags:Tags")
    shown = laso("train", "train.txt", *own, "--json")
    assert (shown.code, shown.err) == (0, "")
    assert json.loads(shown.out)["labels"] == len({p for s in TRAIN[:60] for _, p, _ in s})
    score = json.loads(laso("eval", "train.laso", "test.txt", *own, "--json").out)["score"]
    assert score > 0.5
    words = [word for word, *_ in TEST[0]]
    shown = laso("tag", "train.laso", *own, stdin="\n".join(words) + "\n")
    rows = [line.split("\t") for line in shown.out.splitlines() if line]
    assert [word for word, _ in rows] == words
    assert laso("train", "train.txt", "--task", "own_tags:ready", "--epochs", "1").code == 0
    shown = laso("tag", "train.laso", "test.txt", *own)
    assert shown.code == 3
    assert "found 2 columns, expected 1" in shown.err


def test_the_module_is_found_by_the_command_itself(folder):
    command = [sys.executable, "-P", "-c", "from laso.cli import main; main()"]
    arguments = ["train", "train.txt", "--task", "own_tags:Tags", "--epochs", "1"]
    run = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert (run.returncode, "saved as train.laso" in run.stdout) == (0, True), run.stderr


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("nonesuch:Task", "--task nonesuch:Task: No module named 'nonesuch'"),
        ("own_tags:None_", "has no attribute 'None_'"),
        ("own_tags:number", "found 3, expected a subclass of laso.Task"),
        ("os:system", "expected a subclass of laso.Task"),
        ("own_tags:Labels", "expected a subclass of laso.Task"),
        ("own_tags:Needy", "'scale'; expected a class without required parameters, or a task"),
        (":Task", "--task :Task: "),
    ],
)
def test_what_is_no_task_is_wrong_usage(laso, folder, task, message):
    shown = laso("train", "train.txt", "--task", task)
    assert (shown.code, shown.out) == (2, "")
    assert message in " ".join(shown.err.replace("│", " ").split())


def test_errors_about_data_are_no_wrong_usage(laso, folder):
    shown = laso("train", "train.txt", "--task", "own_tags:Picky")
    assert (shown.code, shown.out) == (3, "")
    assert shown.err == "laso: train.txt: Picky.read_file: no such thing\n"
    Path("bad.txt").write_bytes(b"\xff\xfe")
    shown = laso("train", "bad.txt", *OWN)
    assert shown.code == 3
    assert shown.err.startswith("laso: bad.txt: Segmentation.read_file: 'utf-8'")
    assert laso("train", "none.txt", *OWN).code == 5
    Path("bad.txt").write_text("a X\nb\n")
    shown = laso("train", "-", "--task", "own_tags:Tags", stdin="a X\nb\n")
    assert (shown.code, shown.err.partition(" ")[2][:17]) == (3, "<stdin>:2: found ")
    Path("empty.txt").write_text("")
    assert laso("train", "empty.txt", *OWN).code == 3


def test_errors_of_the_task_itself_keep_their_traceback(laso, folder):
    with pytest.raises(ValueError, match="invalid literal for int"):
        app(["train", "train.txt", "--task", "own_tags:Buggy"], standalone_mode=False)


def test_a_model_of_a_task_needs_the_task(laso, folder):
    laso("train", "text.txt", *OWN, "--epochs", "1")
    for command in (
        ("tag", "text.laso"),
        ("eval", "text.laso", "text.txt"),
        ("inspect", "text.laso"),
    ):
        shown = laso(*command)
        assert (shown.code, shown.out) == (4, "")
        assert "found a model for the task 'segmentation', which is not built in" in shown.err
        assert "--task module:MyTask" in shown.err
    shown = laso("tag", "text.laso", "--task", "own_tags:Tags")
    assert (shown.code, "expected 'tags'" in shown.err) == (4, True)
    assert laso("tag", "text.laso", "--task", "tag").code == 2
    assert laso("tag", "text.laso", *OWN, "--confidence").code == 2
    assert laso("tag", "text.laso", *OWN, "--format", "jsonl").code == 2
    assert laso("eval", "--compare", "text.txt", *OWN).code == 2


# compiled ahead of time


def test_warmup_takes_names_tasks_and_problems(laso, folder):
    for name in ("tag", OWN[1], "laso.examples.segmentation:Words"):
        shown = laso("warmup", name)
        assert shown.code == 0
        assert shown.out.startswith(f"{name}, strategy restart: ready after ")


@pytest.mark.parametrize("name", ["os:system", "os:PathLike", "own_tags:number", "nope", "no:pe"])
def test_warmup_refuses_all_else(laso, folder, name):
    shown = laso("warmup", name)
    assert (shown.code, shown.out) == (2, "")
    assert name in shown.err
