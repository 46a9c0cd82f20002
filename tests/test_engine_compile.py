"""Compiling a problem: the cache by hash of all sources, several processes, and error messages."""

from __future__ import annotations

import importlib.util
import inspect
import json
import logging
import os
import subprocess
import sys
import time
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laso.engine import kernels
from laso.engine.layout import STEPS, Limit
from laso.engine.native import PLAIN, Variant, cache, compiled, fingerprint, on_compile
from laso.engine.native.sources import _reached, engine_fingerprint
from laso.engine.problem import CompiledProblem
from tests.engine_inputs import Segmenting, corpus_of

TINY = """
from laso.engine.layout import BLOCKS, MAX_FEATURES, MAX_GROUPS, STATE_SIZE, STEPS
from laso.engine.problem import CompiledProblem
from tiny_helpers import longest

class {name}(CompiledProblem):
    @staticmethod
    def limits(x, out):
        out[STATE_SIZE] = out[MAX_GROUPS] = out[MAX_FEATURES] = out[BLOCKS] = 1
        out[STEPS] = longest(x.items.shape[0])

    @staticmethod
    def initial(x, state):
        state[0] = 0

    @staticmethod
    def features(x, state, group, out):
        out.keys[0] = 1
        return 1

    @staticmethod
    def apply(x, state, group, label, new):
        new[0] = state[0] + 1

    @staticmethod
    def is_goal(x, state):
        return state[0] == {goal}

    @staticmethod
    def is_good(x, y, state, group, label):
        return True
"""
HELPERS = """
EXTRA = 10

def longest(n):
    return 2 * n + EXTRA
"""
RUN = """
import json, sys, time
from pathlib import Path
import numpy as np
from laso import beam, perceptron
from laso.engine.native import compiled
from laso.engine.layout import STEPS, Limit
from laso.engine.machine import Machine, new_table
from laso.engine.options import options_for
from tests.engine_inputs import corpus_of
import tiny

Path(sys.argv[1]).touch()
while not all(Path(name).exists() for name in sys.argv[1:-2]):  # all begin at once
    time.sleep(0.01)
corpus = corpus_of([[[0]] * 3], [[]], [0])
found = []
for name in sys.argv[-2].split(","):
    problem = getattr(tiny, name)
    most = np.zeros(len(Limit), np.int64)
    compiled(problem)("largest", corpus, np.array([0]), most, np.zeros(len(Limit), np.int64))
    found.append(int(most[STEPS]))
    if sys.argv[-1] == "decode":
        machine = Machine(problem, options_for(problem, beam(2), perceptron()))
        steps, _, _ = machine.decode(corpus, np.array([0]), new_table(1))
        found.append(len(steps))
print(json.dumps([found, "numba" in sys.modules]))
"""


class Runner:
    """Runs a problem in a new process."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.cache = str(folder / "cache")
        self.processes: list[subprocess.Popen[str]] = []
        (folder / "tiny_helpers.py").write_text(HELPERS)
        both = (TINY.format(name=name, goal=goal) for name, goal in [("Tiny", 3), ("Other", 5)])
        (folder / "tiny.py").write_text("\n".join(both))

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    def start(
        self, problems: str, *, what: str = "limits", beside: str = ""
    ) -> subprocess.Popen[str]:
        """``beside`` is our name and that of a process to begin together with."""
        names = [str(self.folder / f"started {name}") for name in (beside or problems).split()]
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", RUN, *names, problems, what],
            env={
                **os.environ,
                "LASO_CACHE": self.cache,
                "PYTHONPATH": os.pathsep.join([str(self.folder), *sys.path]),
                "PYTHONDONTWRITEBYTECODE": "1",  # an edit within a second leaves the old code valid
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def result(self, process: subprocess.Popen[str]) -> Any:
        out, errors = process.communicate(timeout=300)
        self.processes.remove(process)
        assert process.returncode == 0, errors
        return json.loads(out)

    def run(self, problems: str = "Tiny", **options: Any) -> Any:
        return self.result(self.start(problems, **options))


@pytest.fixture
def runner(tmp_path) -> Iterator[Runner]:
    runner = Runner(tmp_path)
    yield runner
    for process in runner.processes:
        process.kill()
        process.communicate()


def test_an_edit_anywhere_compiles_again(runner):
    assert runner.run() == [[16], True]
    assert runner.run() == [[16], False]
    runner.edit("tiny_helpers.py", "EXTRA = 10", "EXTRA = 20")
    assert runner.run()[0] == [26]
    runner.edit("tiny_helpers.py", "2 * n", "3 * n")
    assert runner.run()[0] == [29]
    runner.edit("tiny.py", "longest(x.items.shape[0])", "longest(1)")
    assert runner.run()[0] == [23]


def test_two_processes_compile_into_one_empty_cache(runner):
    processes = [runner.start("Tiny", beside=names) for names in ("one other", "other one")]
    assert [runner.result(process)[0] for process in processes] == [[16], [16]]
    assert runner.run() == [[16], False]


def test_problems_from_the_cache_do_not_mix(runner):
    # Each is compiled in a process of its own, where Numba counts functions from the same number:
    # now, or when these tests first ran.
    runner.cache = os.environ["LASO_CACHE"]
    processes = [runner.start(name, what="decode") for name in ("Tiny", "Other")]
    assert [runner.result(process)[0] for process in processes] == [[16, 3], [16, 5]]
    assert runner.run("Tiny,Other", what="decode") == [[16, 3, 16, 5], False]


# The hash.


def made(source: str, **names: Any) -> type[CompiledProblem]:
    """A problem whose limits are as written."""
    namespace: dict[str, Any] = {"__name__": "made", **names}
    exec(source, namespace)
    return type("Made", (CompiledProblem,), {"limits": staticmethod(namespace["limits"])})


def module(**names: Any) -> types.ModuleType:
    new = types.ModuleType("module")
    vars(new).update(names)
    return new


def helper(source: str) -> Any:
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    return namespace["helper"]


LIMITS = "def limits(x, out):\n    out[0] = a"
ATTRIBUTE = "def limits(x, out):\n    out[0] = a.b"
CALL = "def limits(x, out):\n    out[0] = helper(x)"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: made(LIMITS, a=1), lambda: made(LIMITS, a=2)),
        (lambda: made(LIMITS, a=1), lambda: made(LIMITS, a=1.0)),
        (lambda: made(LIMITS, a=(1, 2)), lambda: made(LIMITS, a=(2, 1))),
        (lambda: made(LIMITS, a=np.arange(3)), lambda: made(LIMITS, a=np.arange(1, 4))),
        (lambda: made(LIMITS, a=np.arange(3)), lambda: made(LIMITS, a=np.arange(3.0))),
        (lambda: made(LIMITS, a=np.zeros((2, 3))), lambda: made(LIMITS, a=np.zeros((3, 2)))),
        (lambda: made(LIMITS, a=1), lambda: made(LIMITS.replace("[0]", "[1]"), a=1)),
        (lambda: made(ATTRIBUTE, a=module(b=1)), lambda: made(ATTRIBUTE, a=module(b=2))),
        (
            lambda: made(ATTRIBUTE + ".c", a=module(b=module(c=1))),
            lambda: made(ATTRIBUTE + ".c", a=module(b=module(c=2))),
        ),
        (
            lambda: made(CALL, helper=helper("def helper(x): return 1")),
            lambda: made(CALL, helper=helper("def helper(x): return 2")),
        ),
        (
            lambda: made(CALL, helper=helper("def helper(x, k=1): return k")),
            lambda: made(CALL, helper=helper("def helper(x, k=2): return k")),
        ),
        (
            lambda: made(CALL, helper=helper("K = 1\ndef helper(x): return K")),
            lambda: made(CALL, helper=helper("K = 2\ndef helper(x): return K")),
        ),
        (
            lambda: made(CALL, helper=helper("def f(k):\n return lambda x: k\nhelper = f(1)")),
            lambda: made(CALL, helper=helper("def f(k):\n return lambda x: k\nhelper = f(2)")),
        ),
    ],
)
def test_the_hash_tells_problems_apart(one, other):
    assert mark(one()) == mark(one())
    assert mark(one()) != mark(other())


def mark(problem: type[CompiledProblem], variant: Variant = PLAIN) -> str:
    return fingerprint(problem, variant, variant.entry_points[0])


def edited(path: str, *changes: tuple[str, str]) -> Any:
    """Return a module of the engine, made from its source with changes."""
    module = importlib.import_module(path)
    source = Path(str(module.__file__)).read_text()
    for before, after in changes:
        assert before in source
        source = source.replace(before, after)
    spec = importlib.util.spec_from_loader(path, None)
    assert spec
    again = importlib.util.module_from_spec(spec)
    exec(compile(source, str(module.__file__), "exec"), vars(again))
    return again


def test_the_hash_knows_code_and_no_words(monkeypatch):
    """A comment, a docstring or a function that an entry point does not call changes nothing."""
    path = "laso.engine.kernels.weight_table"
    before = {entry: engine_fingerprint(PLAIN, entry) for entry in PLAIN.entry_points}

    def changed(*changes: tuple[str, str]) -> set[str]:
        _reached.cache_clear()
        again = edited(path, *changes)
        for name, value in vars(again).items():
            if inspect.isfunction(value) and value.__module__ == path:
                for module in kernels.MODULES:
                    if name in vars(module):
                        monkeypatch.setattr(module, name, value)
        return {name for name in before if engine_fingerprint(PLAIN, name) != before[name]}

    assert not changed(('"""Return', '"""Give'), ("\n\n\n", "\n\n\n# words\n"))
    head = "def row_of(table, feature):"  # which updates call
    assert changed((f"{head}\n", f"{head}\n    feature = feature + 0\n")) == {"learn_many"}
    _reached.cache_clear()


def test_the_hash_knows_weighted_and_the_variant():
    weighted = type("Made", (Segmenting,), {"weighted": True})
    variants = [PLAIN._replace(**{name: True}) for name in PLAIN._fields]
    marks = {mark(p, v) for p in (Segmenting, weighted) for v in (PLAIN, *variants)}
    assert len(marks) == 2 * (1 + len(variants)) - 1  # reading text is no problem's own


# The cache folder.


def limits_of(problem: type[CompiledProblem]) -> int:
    most = np.zeros(len(Limit), np.int64)
    corpus = corpus_of([[[0]] * 3], [[]], [0])
    compiled(problem)("largest", corpus, np.array([0]), most, np.zeros(len(Limit), np.int64))
    return int(most[STEPS])


def test_a_cache_that_cannot_be_written(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("LASO_CACHE", str(tmp_path / "file"))
    with caplog.at_level(logging.WARNING, logger="laso.engine"):
        assert limits_of(type("Segmenting", (Segmenting,), {})) == 3
    (message,) = (r.getMessage() for r in caplog.records if "cannot write" in r.getMessage())
    assert str(tmp_path / "file") in message
    assert "this process only" in message


def test_a_folder_for_one_process_goes_with_it(runner, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    runner.cache = str(tmp_path / "file")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    assert runner.run() == [[16], True]
    assert not [*(tmp_path / "temporary").iterdir()]


def test_old_code_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    monkeypatch.setattr(cache, "KEEP_FOLDERS", 3)
    root = cache.cache_root()
    days = {"today": 0, "yesterday": 1, "month": 30, "months": 50, "old": 61, "older": 400}
    for name, age in days.items():
        used = root / name / "used"
        used.parent.mkdir(parents=True)
        used.touch()
        os.utime(used, (time.time() - age * 86400,) * 2)
    (root / "no use known").mkdir()
    current = cache.folder_for("current")
    assert current.is_dir()
    left = {folder.name for folder in root.iterdir()}
    assert left == {"today", "yesterday", "month", "no use known", current.name}


def line_of(text: str) -> int:
    lines = Path(__file__).read_text().splitlines()
    (number,) = [n for n, line in enumerate(lines, 1) if line.endswith(f"  # {text}")]
    return number


class Raises(Segmenting):
    @staticmethod
    def choices(x, state, group, out):
        """Comparisons of numbers, and a text in a message, are allowed."""
        if group == -1:
            raise ValueError("no labels")
        return -1


def test_what_can_be_compiled_is_not_refused():
    assert limits_of(Raises) == 3  # all methods are checked before the first is compiled


class LimitsTooFar(Segmenting):
    @staticmethod
    def limits(x, out):
        out[100] = 1  # limits


def test_compiled_code_that_checks_bounds_names_the_line(monkeypatch):
    monkeypatch.setenv("LASO_BOUNDS_CHECK", "1")
    with pytest.raises(IndexError, match=f"(?s)LimitsTooFar.limits .*:{line_of('limits')}\n"):
        limits_of(LimitsTooFar)


# Announcements.


def test_compiling_is_announced_and_loading_is_not(tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("LASO_CACHE", str(tmp_path))
    heard: list[tuple[str, str]] = []

    def listener(problem: type[CompiledProblem], entry: str) -> None:
        heard.append((problem.__name__, entry))

    for announced in (1, 0):
        caplog.clear()
        heard.clear()
        with caplog.at_level(logging.INFO, logger="laso.engine"), on_compile(listener):
            assert limits_of(type("Segmenting", (Segmenting,), {})) == 3
        assert heard == [("Segmenting", "largest")] * announced
        messages = [r.getMessage() for r in caplog.records if r.levelno == logging.INFO]
        assert len(messages) == announced
        assert all(
            "compiling Segmenting (largest) for this computer, once" in message
            for message in messages
        )
    heard.clear()
    limits_of(type("Other", (Segmenting,), {}))
    assert not heard
