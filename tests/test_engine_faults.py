"""Promises that a problem breaks in compiled code: every call ends with an error.

The checks before the first run are off here; test_problem_checks has them.

All calls run in a process of their own, so that a crash would be seen.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faulty_problem import CALLS

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = {
    "none": None,
    "groups": "groups: found 3, expected 0 to 2",
    "no groups": "groups: found -1, expected 0 to 2",
    "labels": "MAX_LABELS must stay within the width of the weights; Faulty.limits: found 3, "
    "expected 0 to 2",
    "block": "block: found 12, expected -1 to 11",
    "sub_block": "sub_block: found ",
    "block_features": "block_features: found 3, expected 0 to 2",
    "features": "features: found 3, expected 0 to 2",
}
KEYS = {
    "key": "key: found 1000000, expected {next} to 6",
    "same key": "key: found {place}, expected {next} to 6",
}
TOO_LONG = {
    "steps": "longer than STEPS; Faulty.limits: found 6, expected at least 6, but at most 5"
}
CHOICES = {
    "choice": "choices: found 2, expected 0 to 1",
    "choices": "choices: found 3, expected 0 to 2",
}
FACTORS = {
    "none": None,
    "factor": "factors: found 1, expected -1 to 0",
    "factor label": "factors: found 2, expected -1 to 1",
}


def errors_of(call: str, faults: dict[str, str | None], **environment: str) -> dict[str, str]:
    """The error of each fault."""
    process = subprocess.run(
        [sys.executable, "-m", "tests.faulty_problem", call, ",".join(faults)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "LASO_CHECK": "0",
            **environment,
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-2000:]
    return dict(line.split(": ", 1) for line in process.stdout.splitlines())


def check(call: str, faults: dict[str, str | None], **environment: str) -> None:
    errors = errors_of(call, faults, **environment)
    place = 1 if "siblings" in call or call == "learn factors" else 2
    for fault, expected in faults.items():
        if expected is None:
            assert errors[fault] == "no error"
        else:
            text = expected.format(place=place, next=place + 1)
            assert text in errors[fault], (fault, errors[fault])
            assert errors[fault].startswith("BadProblem: ")
            assert "input 2" in errors[fault]


COMPILED = ("decode", "learn", "exact", "learn exactly")


@pytest.mark.parametrize("call", COMPILED)
def test_compiled_code_stops_with_an_error(call):
    check(call, {**EXPECTED, **KEYS, **(CHOICES if "exact" not in call else {})})


@pytest.mark.parametrize("call", ["decode by depth", "decode ranked"])
def test_paths_longer_than_promised(call):
    check(call, {"none": None, **TOO_LONG})


@pytest.mark.parametrize("call", CALLS)
def test_every_call_stops_with_an_error_without_the_jit(call):
    if "factors" in call:
        faults = FACTORS
    elif call == "exact by depth":
        faults = {"none": None, "steps": "a path is longer than STEPS; Unkeyed.limits: found 6"}
    elif call in ("decode by depth", "decode ranked"):
        faults = {**EXPECTED, **CHOICES, **TOO_LONG}
    else:
        faults = {**EXPECTED, **KEYS}
    check(call, faults, NUMBA_DISABLE_JIT="1")
