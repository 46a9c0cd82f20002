"""The operations that must survive a fault at each of their calls, and what must hold after it."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from laso import Checkpoint, LasoError, Model, Parser, Tagger, load_model
from laso.data import load_bundled, write_columns
from laso.engine.layout import Dataset
from laso.engine.machine import as_names
from laso.engine.native import cache as code_cache
from laso.engine.native import trust
from laso.engine.parallel.array_files import in_files
from laso.examples import tagging
from laso.files.atomic import PATTERN, temporary_folder
from laso.files.container import file_bytes
from laso.files.estimator import packed_model
from tests.faults.injection import KINDS, failing

TRAIN, TEST = load_bundled()
SMALL = TRAIN[:12]
X = [[token[:2] for token in sentence] for sentence in TEST[:8]]
CODE = ("symbol", b"code" * 1000)


@cache
def models() -> tuple[Tagger, Tagger]:
    """An old model and a new one, which differ."""
    return Tagger(epochs=1).fit(SMALL), Tagger(epochs=2).fit(TRAIN[12:24])


@dataclass(frozen=True)
class Operation:
    """Something that writes or reads files of a folder.

    ``check(folder, failed)`` raises AssertionError unless all is well, whether it failed or not.
    ``never_fails``: a fault is no error, since the result does not depend on the files.
    """

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path], Any]
    check: Callable[[Path, bool], None]
    kinds: tuple[str, ...] = KINDS
    never_fails: bool = False


# --------------------------------------------------------------------------- model files


@cache
def _old_file() -> bytes:
    model = models()[0]
    return file_bytes(*packed_model(model, None, training=True))


def _save_old(folder: Path) -> None:
    (folder / "model.laso").write_bytes(_old_file())


def _is_a_model(folder: Path, failed: bool) -> None:
    found = load_model(folder / "model.laso")
    assert found.predict(X) == models()[not failed].predict(X)


def _save_small(folder: Path) -> None:
    tagging.train().save(folder / "model.laso")


def _is_small(folder: Path, failed: bool) -> None:
    model = tagging.train()
    found: Any = Model.load(folder / "model.laso", problem=model.problem).w
    expected: Any = model.w
    assert found.weights == expected.weights


def _load(folder: Path) -> None:
    load_model(folder / "model.laso")


@cache
def parsers() -> tuple[Parser, Parser]:
    """An old parser and a new one, with the sparse rows of many labels, which differ."""
    words = [[str(i) for i in range(40)]]
    trees = [[(0, "root"), *[(i, f"l{i}") for i in range(1, 40)]]]
    more = [[(0, "root"), *[(i, f"m{i}") for i in range(1, 40)]]]
    old, new = (Parser(features=["w[s0]", "w[b0]"], queue=1, epochs=2) for _ in range(2))
    return old.fit(words * 2, trees + more), new.fit(words * 2, more + trees)


@cache
def _old_parser() -> bytes:
    return file_bytes(*packed_model(parsers()[0], None, training=True))


def _save_old_parser(folder: Path) -> None:
    (folder / "model.laso").write_bytes(_old_parser())


def _is_a_parser(folder: Path, failed: bool) -> None:
    found = load_model(folder / "model.laso")
    assert as_names(found.weights_) == as_names(parsers()[not failed].weights_)


# --------------------------------------------------------------------------- training


def _train(folder: Path) -> None:
    model = Tagger(epochs=2, patience=5)
    model.fit(SMALL, checkpoint=Checkpoint(folder / "run.laso", seconds=0.0))
    assert as_names(model.weights_) == as_names(_trained().weights_)


@cache
def _trained() -> Tagger:
    return Tagger(epochs=2, patience=5).fit(SMALL)


def _can_resume(folder: Path, failed: bool) -> None:
    if (folder / "run.laso").exists():
        found = load_model(folder / "run.laso").resume(SMALL, epochs=2)
        assert as_names(found.weights_) == as_names(_trained().weights_)


def _stream(folder: Path) -> None:
    found = Tagger(epochs=2, patience=5).fit_stream(lambda: SMALL, store=folder / "a" / "b")
    assert as_names(found.weights_) == as_names(_trained().weights_)


def _encode(folder: Path) -> None:
    from laso.estimators.learning.streaming import stored

    model = Tagger()
    with stored(model, model.make_task(), lambda: SMALL, folder / "a" / "b"):
        pass


def _share(folder: Path) -> None:
    with temporary_folder(folder) as inside:
        found = in_files(_dataset(), inside).opened()
    assert all(np.array_equal(a, b) for a, b in zip(found, _dataset(), strict=True))


@cache
def _dataset() -> Dataset:
    model = models()[0]
    return model.encoded(X)[1]


def _is_empty(folder: Path, failed: bool) -> None:
    assert not [each for each in folder.rglob("*") if each.is_file()]


# --------------------------------------------------------------------------- compiled code


def _keep_code(folder: Path) -> None:
    with mock.patch.dict("os.environ", LASO_CACHE=str(folder / "cache")):
        made = code_cache.folder_for("Problem-0123")
        code_cache.keep(made / "entry", *CODE)


def _is_code(folder: Path, failed: bool) -> None:
    for file in folder.rglob("entry"):
        assert code_cache.read(file) == CODE


def _make_key(folder: Path) -> None:
    places = {"XDG_CONFIG_HOME": str(folder / "config"), "XDG_CACHE_HOME": str(folder / "cache")}
    with mock.patch.dict("os.environ", places):
        trust.key.cache_clear()
        try:
            assert len(trust.key()) == trust.KEY_SIZE
        finally:
            trust.key.cache_clear()


def _is_key(folder: Path, failed: bool) -> None:
    for file in filter(Path.is_file, folder.rglob("*")):
        assert file.name == trust.KEY_NAME
        assert len(file.read_bytes()) == trust.KEY_SIZE


# --------------------------------------------------------------------------- the command line


def _write_sentences(folder: Path) -> None:
    models()[0].save(folder / "model.laso")
    write_columns(folder / "in.txt", X)
    (folder / "out.txt").write_bytes(b"old\n")


def _tag(folder: Path) -> None:
    from laso.cli.tag import run

    with contextlib.redirect_stdout(io.StringIO()):
        run(folder / "model.laso", [str(folder / "in.txt")], output=folder / "out.txt")


def _is_tagged(folder: Path, failed: bool) -> None:
    text = (folder / "out.txt").read_text(encoding="utf-8")
    if failed:
        assert text == "old\n"
    else:
        labels = [line.split()[-1] for line in text.splitlines() if line]
        assert labels == [label for some in models()[0].predict(X) for label in some]
    _is_a_model(folder, True)


def _write_again(folder: Path) -> None:
    write_columns(folder / "in.txt", X)


def _is_written(folder: Path, failed: bool) -> None:
    if (folder / "in.txt").exists():
        write_columns(folder / "twin.txt", X)
        assert (folder / "in.txt").read_bytes() == (folder / "twin.txt").read_bytes()


def _nothing(folder: Path) -> None:
    pass


OPERATIONS = (
    Operation(
        "save a model",
        _save_old,
        lambda folder: models()[1].save(folder / "model.laso"),
        _is_a_model,
    ),
    Operation(
        "save a model with its training",
        _save_old,
        lambda folder: models()[1].save(folder / "model.laso", training=True),
        _is_a_model,
    ),
    Operation(
        "save a parser with its training",
        _save_old_parser,
        lambda folder: parsers()[1].save(folder / "model.laso", training=True),
        _is_a_parser,
    ),
    Operation("load a parser", _save_old_parser, _load, lambda f, _: _is_a_parser(f, True)),
    Operation("save a plain model", _save_small, _save_small, _is_small),
    Operation("load a model", _save_old, _load, lambda folder, _: _is_a_model(folder, True)),
    Operation("checkpoints", _nothing, _train, _can_resume, ("files",), never_fails=True),
    Operation("encode data to files", _nothing, _encode, _is_empty, ("memory",)),
    Operation("learn from files", _nothing, _stream, _is_empty, ("files",)),
    Operation("data of shards", _nothing, _share, _is_empty, ("files",)),
    Operation("keep compiled code", _nothing, _keep_code, _is_code, ("files",), never_fails=True),
    Operation("make a key", _nothing, _make_key, _is_key, ("files",), never_fails=True),
    Operation("laso tag --output", _write_sentences, _tag, _is_tagged, ("files",)),
    Operation("write columns", _nothing, _write_again, _is_written, ("files",)),
)


def survive(operation: Operation, folder: Path, kind: str) -> int:
    """Lets each call fail in turn until the operation succeeds; returns the number of faults."""
    models()  # outside of the faults
    _trained()
    _old_file()
    _old_parser()
    _dataset()
    with mock.patch.object(logging.getLogger("laso.engine"), "disabled", True):
        return _survived(operation, folder, kind)


def _survived(operation: Operation, folder: Path, kind: str) -> int:
    for n in count(1):
        place = folder / f"{kind}-{n}"
        place.mkdir()
        operation.prepare(place)
        error: BaseException | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of checkpoints
            with failing(place, n, kind) as fault:
                try:
                    operation.run(place)
                except Exception as found:
                    error = found
        what = f"{operation.name}, fault {n}: {fault.calls[-1:]}"
        if error is not None:
            assert fault.happened, f"{what}: {error!r}"
            assert not operation.never_fails, f"{what}: {error!r}"
            assert isinstance(error, (LasoError, OSError)), f"{what}: {error!r}"
            assert str(place) in str(error), f"{what}: the error names no file: {error!r}"
        assert not [each for each in place.rglob("*") if PATTERN.fullmatch(each.name)], what
        operation.check(place, error is not None)
        operation.run(place)
        operation.check(place, False)
        if not fault.happened:
            return n - 1
    raise AssertionError("there is no last call")
