"""Ctrl-C ends calls of compiled code within two seconds, also those that would never end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from laso import Tagger

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")

LATEST = 3.0  # seconds; the machine may be busy


def interrupted(call: str) -> tuple[str, float]:
    """The line that a call prints after Ctrl-C, and the seconds until then."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.endless", call],
        cwd=ROOT,
        env={**os.environ, "LASO_CHECK": "0"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    start = time.monotonic()
    text = process.stdout.readline()
    seconds = time.monotonic() - start
    process.communicate(timeout=30)
    assert process.returncode == 0, (process.returncode, text)
    return text.strip(), seconds


@pytest.mark.parametrize("call", ["decode", "decode in threads", "decode one", "learn"])
def test_a_method_without_end(call):
    text, seconds = interrupted(call)
    assert text == "Abandoned"
    assert seconds < LATEST


@pytest.mark.parametrize("call", ["label for hours", "learn for hours", "label one for hours"])
def test_a_long_call(call):
    text, seconds = interrupted(call)
    assert text == ("kept what was learned" if "learn" in call else "KeyboardInterrupt")
    assert seconds < LATEST


WRITING = """
import signal, sys
for number in (signal.SIGTERM, signal.SIGHUP):  # as in a shell, whatever has started the tests
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from laso.cli import main
sys.argv = ["laso", "tag", "model.laso", "-", "--output", "out.txt"]
main()
"""


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith(".laso-")]


def begun_to_write(folder: Path) -> subprocess.Popen[bytes]:
    """A ``laso tag`` that has begun its output, and waits for more of its input."""
    process = subprocess.Popen(
        [sys.executable, "-c", WRITING], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    deadline = time.monotonic() + 30
    while not leftovers(folder) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert leftovers(folder)
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_no_temporary_file_stays(tmp_path, number):
    Tagger(epochs=1).fit([["a"]], [["X"]]).save(tmp_path / "model.laso")
    process = begun_to_write(tmp_path)
    process.send_signal(number)
    process.communicate(timeout=30)
    assert process.returncode == (130 if number == signal.SIGINT else -number)
    assert leftovers(tmp_path) == []
    assert not (tmp_path / "out.txt").exists()


def test_the_next_run_removes_what_a_killed_one_left(tmp_path):
    Tagger(epochs=1).fit([["a"]], [["X"]]).save(tmp_path / "model.laso")
    process = begun_to_write(tmp_path)
    process.kill()
    process.communicate(timeout=30)
    assert len(leftovers(tmp_path)) == 1
    process = begun_to_write(tmp_path)
    process.communicate(b"a X\n", timeout=30)
    assert process.returncode == 0
    assert leftovers(tmp_path) == []
