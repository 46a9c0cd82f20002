"""Make the machine code that a wheel carries: built-in tasks with common settings.

    python tools/machine_code.py [folder]

It runs the estimators on a few sentences of the bundled corpus, and compiles every entry point that
they call for all levels of processors. The build hook (hatch_build.py) runs it for a wheel.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from laso import (
    CRF,
    Chunker,
    JointTagger,
    Parser,
    Tagger,
    adagrad,
    exact,
    greedy,
    lbfgs,
    standard,
)
from laso.cli.column_files import ColumnFile
from laso.data import load_bundled
from laso.data.formats import ColumnRoles, Format
from laso.engine.native import dispatch, jit, load, shipped


class ForWheel(dispatch.Kernels):
    """Compiles entry points for all levels of processors into the folder of shipped code."""

    def _compile(self, name: str, arguments: tuple[Any, ...], file: Path) -> tuple[str, bytes]:
        jit.check_version()
        signature, _ = dispatch.calls.described(arguments)
        with self._numba(cached=False) as engine:
            symbol, codes = jit.object_codes(
                engine.entries[name], arguments, [level.name for level in shipped.LEVELS]
            )
        for level, code in zip(shipped.LEVELS, codes, strict=True):
            shipped.save(
                shipped.file_for(level, self.problem, self.variant, name, signature), symbol, code
            )
        print(f"{self.problem.__name__}.{name}: {', '.join(f'{len(c):,}' for c in codes)} bytes")
        return symbol, codes[shipped.LEVELS.index(shipped.supported()[0])]

    def _call_numba(self, name: str, signature: str, arguments: tuple[Any, ...]) -> Any:
        raise load.Unsupported(f"{self.problem.__name__}.{name} has no object code")


def estimators() -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    """Yields the common settings, and what their labels are made of."""
    chunks, layers = (lambda token: token[2]), (lambda token: (token[1], token[2]))
    for settings in (
        {},
        {"queue": greedy()},
        {"strategy": standard},
        {"queue": exact()},
        {"queue": exact(), "update": adagrad()},
        {"queue": exact(), "update": lbfgs()},
    ):
        yield Tagger(epochs=1, **settings), chunks
        yield Chunker(epochs=1, **settings), chunks
    yield CRF(algorithm="lbfgs", max_iterations=1), chunks
    yield CRF(algorithm="ap", max_iterations=1), chunks
    for settings in ({}, {"queue": greedy()}, {"strategy": standard}):
        yield JointTagger(layers=("pos", "chunk"), epochs=1, **settings), layers
    yield Parser(epochs=1), chunks
    yield Parser(epochs=1, queue=greedy()), chunks


def label_columns(estimator: Tagger, sentences: list[Any]) -> None:
    """Calls the code that reads columns: of Python, and of a file."""
    columns = [[token[:2] for token in s] for s in sentences]
    many = 100 * columns  # so that a lexicon pays
    estimator.predict(many)
    text = "".join("".join(" ".join(token) + "\n" for token in s) + "\n" for s in many)
    file = io.BufferedReader(io.BytesIO(text.encode()))
    roles = ColumnRoles(("1", "2"), (), 2)
    for _ in ColumnFile(estimator, file, Format(), roles, 1000).texts():
        pass


def main(folder: Path) -> None:
    """Writes the code into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    if not shipped.supported():
        print("no machine code is made for this processor")
        return
    shipped.FOLDER = folder
    dispatch.Kernels = ForWheel  # type: ignore[misc]
    sentences = load_bundled()[0][:4]
    for estimator, label in estimators():
        columns = [[token[:2] for token in s] for s in sentences]
        if isinstance(estimator, JointTagger):
            columns = [[token[:1] for token in s] for s in sentences]
        labels: Any = [[label(token) for token in s] for s in sentences]
        if isinstance(estimator, Parser):  # each word hangs on the one before
            labels = [[*enumerate(names)] for names in labels]
        if isinstance(estimator, CRF):
            columns = [[{"w": token[0]} for token in s] for s in columns]
        estimator.fit(columns, labels)
        estimator.predict(columns)
        estimator.predict_single(columns[0])
        if isinstance(estimator, Tagger) and estimator.queue is None:
            label_columns(estimator, sentences)
        if not isinstance(estimator, (JointTagger, Parser)) and estimator.queue == exact():
            estimator.predict_marginals(columns)
            # What chains fall back on: the lattice's best paths and marginals.
            estimator.predict_nbest(columns, 2)
            estimator.predict_confidence(columns)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as empty:
        os.environ["LASO_CACHE"] = empty
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else shipped.FOLDER)
