"""laso train, interrupted: Ctrl-C, killed runs, progress on a terminal."""

import json
import re
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from laso import Tagger, load_model
from laso.cli import main
from laso.cli.progress import COMPILING, Display, display
from laso.data import load_bundled, write_columns
from laso.engine.native import dispatch
from laso.engine.weights import compact
from laso.estimators import Checkpoint
from laso.estimators.learning import fitting
from laso.tasks.tagging import Tagging
from laso.training import Progress
from tests.commands import without_notice
from tests.interruption import KILLED, StopAfter

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:60]
FAST = ("--task", "tag", "--epochs", "3")


# interrupted and killed


def test_ctrl_c_saves_what_was_learned(laso, folder, monkeypatch):
    stop = StopAfter(3)
    monkeypatch.setattr(Display, "__call__", lambda self, report: stop(report))
    shown = laso("train", "train.txt", "--task", "tag", "--json")
    assert shown.code == 130
    assert "interrupted" in shown.err
    assert json.loads(shown.out)["interrupted"]
    assert Tagger.load("train.laso").score(TEST[:20]) > 0.3


PRESSED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background process ignores it
from laso.cli import main, progress
def show(self, report):
    report.epoch == 2 and print("learning", flush=True)
progress.Display.__call__ = show
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
def test_the_key_itself_leaves_a_usable_model(folder):
    contradiction = [[(w, p, "O") for w, p, _ in SMALL[0]]]
    write_columns("endless.txt", [*SMALL, *contradiction])
    arguments = ["train", "endless.txt", "--task", "tag", "--epochs", "1000000", "--held-out", "0"]
    run = subprocess.Popen(
        [sys.executable, "-c", PRESSED, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    assert run.stdout.readline() == "learning\n"
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert run.returncode == 130
    assert without_notice(err) == "interrupted: what was learned until then is saved\n"
    assert load_model("endless.laso").interrupted_


def test_a_killed_run_goes_on_to_the_same_model(laso, folder):
    options = ("--task", "tag", "--json")
    laso("train", "train.txt", *options, "--model", "whole.laso")
    whole = (folder / "whole.laso").read_bytes()
    command = [sys.executable, "-c", KILLED, "2", "train", "train.txt", *options]
    killed = subprocess.run([*command, "--model", "two.laso"], check=False, capture_output=True)
    assert killed.returncode == -9
    assert (folder / "two.laso.checkpoint").exists()
    assert not (folder / "two.laso").exists()
    shown = laso("train", "train.txt", *options, "--model", "two.laso")
    assert shown.err == "resuming a run that was cut short after epoch 2\n"
    assert json.loads(shown.out)["resumed"]
    assert (folder / "two.laso").read_bytes() == whole
    assert not (folder / "two.laso.checkpoint").exists()


def test_a_killed_stream_goes_on_to_the_same_model(laso, folder):
    options = ("--task", "tag", "--json")
    laso("train", "train.txt", *options, "--model", "whole.laso")
    command = [sys.executable, "-c", KILLED, "2", "train", "train.txt", *options]
    more = ("--model", "two.laso", "--store", "encoded")
    assert subprocess.run([*command, *more], check=False, capture_output=True).returncode == -9
    shown = laso("train", "train.txt", *options, *more)
    assert shown.err == "resuming a run that was cut short after epoch 2\n"
    assert (folder / "two.laso").read_bytes() == (folder / "whole.laso").read_bytes()


def test_a_checkpoint_of_other_data_or_settings_is_left_alone(laso, folder):
    path = folder / "train.laso.checkpoint"
    Tagger(epochs=1).fit(SMALL, checkpoint=Checkpoint(path, seconds=0))
    assert Tagger.load(path).training_ is not None
    assert not json.loads(laso("train", "train.txt", *FAST, "--json").out)["resumed"]
    path.write_bytes(b"damaged")
    assert not json.loads(laso("train", "train.txt", *FAST, "--json").out)["resumed"]


# what is shown meanwhile


def test_compiling_is_announced_once_on_stderr(folder, capfd, monkeypatch):
    fit = Tagger.fit

    def compiled(self, *arguments, **options):
        for entry in ("learn_many", "decode_many"):
            dispatch._announce(Tagging, entry)
        return fit(self, *arguments, **options)

    monkeypatch.setattr(Tagger, "fit", compiled)
    monkeypatch.setattr(sys, "argv", ["laso", "train", "train.txt", *FAST, "--json"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert capfd.readouterr().err == f"{COMPILING}\n"
    assert COMPILING == "compiling (once for this task, about 15 s) ..."


class Times:
    """A clock for rich that tells what it is set to."""

    now = 0.0

    def __call__(self):
        return self.now


def test_the_clock_of_the_bar_runs_on_after_an_epoch():
    written, clock = StringIO(), Times()
    console = Console(file=written, force_terminal=True, width=80, get_time=clock)
    with display(console) as shown:
        shown(Progress(1, 5, 10, 10, 3, 0.1, 0.5))  # an epoch is complete
        clock.now = 61.5
        shown.stage("evaluating")
    seen = re.sub(r"\x1b\[[\d;?]*\w", "", written.getvalue())
    assert "epoch 1 of at most 5: held-out score 50.00" in seen
    assert "0:00" in seen
    assert re.search(r"evaluating .* 1:01", seen)


def test_a_terminal_shows_that_it_compiles():
    written = StringIO()
    with display(Console(file=written, force_terminal=True, width=120)):
        dispatch._announce(Tagging, "learn_many")
    assert COMPILING in written.getvalue()


# a second Ctrl-C


def pressed(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("stage", ["evaluation", "calibrate", "reliability", "refit"])
def test_ctrl_c_after_learning_does_not_cost_the_model(laso, folder, monkeypatch, stage):
    laso("train", "train.txt", *FAST, "--model", "whole.laso")
    target = {
        "evaluation": "laso.cli.examples.Examples.evaluation",
        "calibrate": "laso.Tagger.calibrate",
        "reliability": "laso.Tagger.reliability",
        "refit": "laso.cli.report.refitted",
    }
    monkeypatch.setattr(target[stage], pressed)
    shown = laso("train", "train.txt", *FAST, "--refit", "--json")
    assert (shown.code, shown.err) == (130, "interrupted: what was learned until then is saved\n")
    result = json.loads(shown.out)
    assert result["interrupted"]
    assert (result["evaluation"] is None) == (stage == "evaluation")
    saved, whole = load_model("train.laso"), load_model("whole.laso")
    assert saved.predict(TEST[:20]) == whole.predict(TEST[:20])
    assert not saved.interrupted_
    assert laso("tag", "train.laso", "test.txt").code == 0  # the columns are known


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent in another way there")
@pytest.mark.parametrize("first", [True, False])
def test_a_further_ctrl_c_waits_until_the_model_is_saved(laso, folder, monkeypatch, first):
    pack, stop = compact.compact_table, StopAfter(3)
    if first:
        monkeypatch.setattr(Display, "__call__", lambda self, report: stop(report))

    def packed(table):
        signal.raise_signal(signal.SIGINT)  # while the weights are made ready
        return pack(table)

    monkeypatch.setattr(fitting, "compact_table", packed)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        shown = laso("train", "train.txt", *FAST, "--json")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert (shown.code, shown.err) == (130, "interrupted: what was learned until then is saved\n")
    assert json.loads(shown.out)["evaluation"] is None
    assert Tagger.load("train.laso").score(TEST[:20]) > 0.3


def test_ctrl_c_before_anything_was_learned_saves_nothing(laso, folder, monkeypatch):
    monkeypatch.setattr(Tagger, "fit", pressed)
    shown = laso("train", "train.txt", *FAST)
    assert (shown.code, shown.err) == (130, "interrupted before anything was learned\n")
    assert not Path("train.laso").exists()


def test_the_scores_of_a_refitted_model_are_held_out(laso, folder):
    first = json.loads(laso("train", "train.txt", *FAST, "--json").out)
    again = json.loads(laso("train", "train.txt", *FAST, "--json", "--refit").out)
    assert again["refit"]
    assert again["evaluation"] == first["evaluation"]
    assert again["scores"] == first["scores"]
