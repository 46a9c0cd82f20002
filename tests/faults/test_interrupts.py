"""Ctrl-C ends calls of compiled code within two seconds, also those that would never end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are sent otherwise there")

LATEST = 2.5  # seconds; the machine may be busy


def interrupted(call: str) -> tuple[str, float]:
    """The first line that a call prints after Ctrl-C, and the seconds until its process ended."""
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
    text, _ = process.communicate(timeout=30)
    assert process.returncode == 0, (process.returncode, text)
    return text.strip(), time.monotonic() - start


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
