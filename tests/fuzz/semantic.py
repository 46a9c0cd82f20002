"""Every number and string of a model file at an extreme, one at a time, and all that models do.

``python -m tests.fuzz.semantic --seconds 60`` changes files of the corpus and tries each change in
a process of its own, with five seconds and four gigabytes.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

from laso import LasoError, load_model
from laso.cli import main as command_line
from laso.data import write_columns
from laso.files.container import file_bytes, read_bytes
from tests.fuzz.late import in_child
from tests.fuzz.targets import (
    CORPUS,
    Lost,
    NeedsCompiling,
    _gold,
    _plain,
    inputs_for,
    without_compiler,
)

NUMBERS = (0, -1, 1, 2, 100_000, 2**31 - 1, 2**31, 2**62, 10**30, 1e-320, 1e-30, 1e38, -1e300)
STRINGS = ("", "\ud800", "O", "x" * 100_000, "\x00", "a\nb", "B-\ud800", "1e400")
REALS = (0.0, -1.0, 1e-320, 1e-30, 1e30, 3e38)
KEPT = ("digest", "format", "compressed", "library", "arrays")

Place = tuple[Any, ...]


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Yield the place of each number and string in JSON, and what is there."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part, (*place, name))
    elif isinstance(value, list):
        for i, part in enumerate(value):
            yield from leaves(part, (*place, i))
    else:
        yield place, value


def changed(value: Any, place: Place, leaf: Any) -> Any:
    """Return a copy of JSON with another leaf."""
    value = deepcopy(value)
    part = value
    for step in place[:-1]:
        part = part[step]
    part[place[-1]] = leaf
    return value


def changes(data: bytes) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield each change of a file by its name, and what makes the changed file."""
    header, tensors = read_bytes(data)
    plain = {name: value for name, value in header.items() if name not in KEPT}
    compress = header["compressed"]

    def made(place: Place, odd: Any) -> bytes:
        return file_bytes(changed(plain, place, odd), tensors, compress=compress)

    def with_tensor(name: str, at: int, odd: float) -> bytes:
        array = tensors[name].copy()
        with np.errstate(over="ignore"):
            array[slice(None) if at < 0 else at] = np.array(odd).astype(array.dtype)
        return file_bytes(plain, {**tensors, name: array}, compress=compress)

    with patch("laso.files.container.check_text"):
        for place, leaf in leaves(plain):
            for odd in STRINGS if isinstance(leaf, str) else NUMBERS:
                name = f"{'.'.join(map(str, place))} = {odd!r}"[:80]
                yield name, lambda place=place, odd=odd: made(place, odd)  # type: ignore[misc]
        for name, array in tensors.items():
            if array.dtype.kind == "f":
                for at in (-1, *range(min(5, len(array)))):
                    for real in REALS:
                        text = f"{name}[{at}] = {real}"
                        yield text, lambda n=name, a=at, r=real: with_tensor(n, a, r)  # type: ignore[misc]


def numbers_in(value: Any) -> Iterator[float]:
    """Yield all real numbers in a result."""
    if isinstance(value, float):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from numbers_in(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from numbers_in(part)


def use(model: Any, folder: Path) -> None:
    """Call all that a model can do; whatever is no LasoError is raised."""
    X = inputs_for(model)
    calls: dict[str, Callable[[], Any]] = {
        "predict": lambda: _plain(model.predict(X)),
        "n-best": lambda: model.predict_nbest(X, 2),
        "confidence": lambda: model.predict_confidence(X),
        "marginals": lambda: model.predict_marginals(X) if "exact" in str(model.queue) else 0,
        "explain": lambda: model.explain(X[0]),
        "trace": lambda: model.trace(X[0]) and 0,
        "inspect": lambda: model.inspect() and 0,
        "forced": lambda: _plain(model.predict_forced(X)),
        "save": lambda: model.save(folder / "again"),
        "save all": lambda: model.training_ and model.save(folder / "again", training=True),
        "freeze": lambda: model.freeze(X) and 0,
    }
    found = {}
    for name, call in calls.items():
        try:
            found[name] = call()
        except LasoError:
            continue
        if not all(map(math.isfinite, numbers_in(found[name]))):
            raise Lost(f"{name} has a number that is not finite")
    singles: list[Any] = []
    with contextlib.suppress(LasoError):
        singles = [model.predict_single(x) for x in X]
    if singles != found.get("predict", []):
        raise Lost("one input alone is labelled otherwise than among others")
    for x, together in zip(X, found.get("confidence", []), strict=False):
        (alone,) = model.predict_confidence([x])
        if not math.isclose(alone.probability, together.probability, abs_tol=1e-6):
            raise Lost("one input alone has another confidence than among others")
    if model.training_ is not None:
        gold = [_gold(model, list(model.classes_), len(x)) for x in X]
        with contextlib.suppress(LasoError):
            model.partial_fit(X, gold)
            model.save(folder / "again", training=True)
            load_model(folder / "again")


def commands(model: str, text: str, folder: str) -> list[list[str]]:
    """Return calls of the command line for a model and a file."""
    out = f"{folder}/out"
    return [
        ["tag", model, text, "--output", out],
        ["tag", model, text, "--json", "--confidence", "--nbest", "2"],
        ["eval", model, text],
        ["inspect", model],
        ["inspect", model, "--html"],
        ["explain", model, text],
        ["average", model, model, "--model", out],
        ["freeze", model, text, "--output", out],
    ]


def run_command(arguments: list[str]) -> None:
    """Run a command; an exit, whatever its code, is an answer, and a traceback is none."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    with (
        patch.object(sys, "argv", ["laso", *arguments]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.suppress(SystemExit),
    ):
        command_line()


def outcome(data: bytes) -> str:
    """Return what happens with a file: "ok", "error" or, in capitals, what must not happen."""
    without_compiler()
    with tempfile.TemporaryDirectory() as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        folder, answer = Path(name), "ok"
        os.chdir(folder)
        (folder / "model.laso").write_bytes(data)
        write_columns(folder / "new.txt", [[("the", "D"), ("dog", "N")]])
        try:
            try:
                use(load_model(folder / "model.laso"), folder)
            except LasoError as error:
                answer = f"error: {error}"
            for arguments in commands("model.laso", "new.txt", "."):
                with contextlib.suppress(NeedsCompiling):
                    run_command(arguments)
        except NeedsCompiling:
            return "compile"
        except Lost as error:
            return f"LOST: {error}"
        except BaseException as error:
            import traceback

            where = traceback.extract_tb(error.__traceback__)[-1]
            return f"FOREIGN: {type(error).__name__}: {error} {where.filename}:{where.lineno}"
    return answer


def campaign(seconds: float, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield file, change and outcome of changes in random order, until the time is over."""
    files = [path for path in sorted(CORPUS.glob("*.laso")) if "plain" not in path.name]
    every = [(path.name, name, make) for path in files for name, make in changes(path.read_bytes())]
    for path in files:
        outcome(path.read_bytes())  # loads what the children need
    Random(seed).shuffle(every)
    end = time.monotonic() + seconds
    for file, name, make in every:
        if time.monotonic() > end:
            return
        try:
            with patch("laso.files.container.check_text"):
                data = make()
        except Exception as error:  # no file can have it
            yield file, name, f"error: {error}"
            continue
        yield file, name, in_child(lambda: outcome(data))  # noqa: B023


def main() -> None:
    """Print what must not happen, and how many changes there were."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts: dict[str, int] = {}
    for file, name, text in campaign(given.seconds, given.seed):
        what = text.split(":")[0].split(" ")[0]
        counts[what] = counts.get(what, 0) + 1
        if what not in ("ok", "error", "compile"):
            sys.stdout.write(f"{file} | {name} | {text[:300]}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{counts}\n")


if __name__ == "__main__":
    main()
