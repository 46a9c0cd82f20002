"""Tasks of the user's own on the command line: ``--task my_module:MyTask``.

The task reads the files (``Task.read_file``) and writes the outputs (``Task.write_output``).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import typer

from laso.errors import BadData, InputError, LasoError

if TYPE_CHECKING:
    from laso.cli.settings import Settings
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task

STDIN = "-"
ABOUT_COLUMNS = ("format", "separator", "comment", "columns", "inputs", "label", "templates")


def is_own(task: str | None) -> bool:
    """Whether a task is named as module:Class."""
    return task is not None and ":" in task


def named_object(name: str, *, option: str = "") -> Any:
    """Return the object that module:Class names; the module may be in the current folder."""
    module, _, attribute = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise typer.BadParameter(f"{option}{name}: {error}") from error


def load_task(name: str) -> Task:
    """Return the task that module:Class names."""
    from laso.tasks.base import Task

    found = named_object(name, option="--task ")
    if isinstance(found, Task):
        return found
    if not (inspect.isclass(found) and issubclass(found, Task)):
        raise typer.BadParameter(
            f"--task {name}: found {found!r}, expected a subclass of laso.Task"
        )
    try:
        return found()
    except TypeError as error:
        raise typer.BadParameter(
            f"--task {name}: {error}; expected a class without required parameters, or a task"
        ) from error


def load(path: str | Path, task: str | None) -> SearchEstimator:
    """Return the model of a file; a model of a task of the user's own needs ``task``."""
    from laso.estimators import load_model

    if task is not None:
        if not is_own(task):
            raise typer.BadParameter(f"--task is {task!r}: expected module:Class")
        return load_model(path, task=load_task(task))
    return load_model(path)


# --------------------------------------------------------------------------- data


@dataclass(frozen=True)
class Score:
    """How good a model is by its task's own measure, from 0 to 1."""

    examples: int
    score: float

    def as_json(self) -> dict[str, Any]:
        """Return the score as JSON."""
        return {"examples": self.examples, "score": self.score}

    def __str__(self) -> str:
        return f"{counted(self.examples)}, score {self.score:.4f}"


@dataclass(frozen=True)
class Examples:
    """The inputs and outputs of files, as a task has read them."""

    task: Task
    inputs: list[Any]
    outputs: list[Any]
    files: list[tuple[str, int]]  # the name of each file and its number of examples
    crc: int = 0  # of the files' bytes

    def __len__(self) -> int:
        return len(self.inputs)

    def pairs(self) -> Iterator[tuple[Any, Any]]:
        """Yield the examples."""
        return zip(self.inputs, self.outputs, strict=True)

    def parted(self, chosen: Sequence[int]) -> tuple[Examples, Examples]:
        """Return all examples but the chosen ones, and the chosen ones."""
        out = frozenset(chosen)
        rest = [i for i in range(len(self)) if i not in out]
        return self._some(rest), self._some(sorted(out))

    def _some(self, chosen: Sequence[int]) -> Examples:
        inputs, outputs = ([all_[i] for i in chosen] for all_ in (self.inputs, self.outputs))
        return replace(self, inputs=inputs, outputs=outputs)

    def located(self, *, name: str | None = None) -> AbstractContextManager[None]:
        """Return an empty context: only the task knows the lines of its examples."""
        return nullcontext()

    def counts(self) -> dict[str, int]:
        """Return the number of examples, for reports."""
        return {"examples": len(self)}

    def checksum(self, crc: int = 0) -> int:
        """Return a checksum of the files."""
        return zlib.crc32(self.crc.to_bytes(4, "little"), crc)

    def metadata(self) -> dict[str, Any]:
        """Return what a model file must know of the files: nothing, the task reads them."""
        return {}

    def is_fully_labelled(self) -> bool:
        """Whether probabilities can be calibrated on these examples."""
        return True

    def evaluation(self, model: SearchEstimator) -> Score:
        """Return the score of a model on these examples."""
        return Score(len(self), model.score(self.inputs, self.outputs))


def read(task: Task, files: Sequence[str], *, labelled: bool = True) -> Examples:
    """Return the inputs of files, and the outputs if the files are ``labelled``."""
    X: list[Any] = []
    y: list[Any] = []
    read_files = []
    crc = 0
    for name in files:
        with _on_disk(name) as path:
            inputs, outputs = _read_one(task, path, name, labelled)
            crc = zlib.crc32(Path(path).read_bytes(), crc) if Path(path).is_file() else crc
        if labelled and (outputs is None or len(outputs) != len(inputs)):
            found = "no outputs" if outputs is None else f"{len(outputs)} outputs"
            raise BadData(f"found {found} for {counted(len(inputs), 'input')}", file=shown(name))
        X += inputs
        y += outputs if labelled and outputs is not None else []
        read_files.append((shown(name), len(inputs)))
    if labelled and not X:
        raise BadData("found no example, expected at least one", file=shown(files[0]))
    return Examples(task, X, y, read_files, crc)


def _read_one(
    task: Task, path: str, name: str, labelled: bool
) -> tuple[list[Any], list[Any] | None]:
    """Read one file; an error of the task's reader about the file's content names the file."""
    try:
        inputs, outputs = task.read_file(path, labelled=labelled)
    except InputError as error:
        raise error.at(file=shown(name)) if error.file in (None, path) else error from None
    except LasoError:
        raise
    except ValueError as error:  # also text that is not UTF-8
        raise BadData(f"{type(task).__name__}.read_file: {error}", file=shown(name)) from error
    return list(inputs), None if outputs is None else list(outputs)


@contextmanager
def _on_disk(name: str) -> Iterator[str]:
    """Return the path of a file; standard input is copied into one."""
    if name != STDIN:
        yield name
        return
    with tempfile.TemporaryDirectory(prefix="laso-") as folder:
        path = Path(folder) / "stdin"
        path.write_bytes(sys.stdin.buffer.read())
        yield str(path)


def shown(name: str) -> str:
    """Return the name of a file as messages show it."""
    return "<stdin>" if name == STDIN else name


def counted(n: int, noun: str = "example") -> str:
    """Return a number with its noun."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def check_settings(settings: Settings) -> None:
    """Refuse settings about columns: a task of the user's own reads its files itself."""
    for name in ABOUT_COLUMNS:
        if getattr(settings, name) is not None:
            raise typer.BadParameter(
                f"--{name} is for the built-in tasks: {settings.task} reads its files itself, by "
                "Task.read_file"
            )


# --------------------------------------------------------------------------- output


def tag(
    model: SearchEstimator,
    files: Sequence[str],
    out: BinaryIO,
    *,
    as_json: bool,
    confidence: bool,
    nbest: int,
) -> None:
    """Write the output of each input of the files."""
    task = model.task_
    for name in files:
        X = read(task, [name], labelled=False).inputs
        y = model.predict(X)
        if as_json:
            records = json_records(model, X, y, confidence=confidence, nbest=nbest)
            texts = [json.dumps(each, ensure_ascii=False, default=_plain) for each in records]
        else:
            texts = [task.write_output(x, each) for x, each in zip(X, y, strict=True)]
        for text in texts:
            out.write((text + "\n").encode())
        out.flush()


def json_records(
    model: SearchEstimator, X: list[Any], y: list[Any], *, confidence: bool, nbest: int
) -> list[dict[str, Any]]:
    """Return the JSON objects of inputs: input and output, probabilities, the n best outputs."""
    records: list[dict[str, Any]]
    records = [{"input": x, "output": output} for x, output in zip(X, y, strict=True)]
    if confidence:
        for record, known in zip(records, model.predict_confidence(X), strict=True):
            record["probability"] = known.probability
            record["parts"] = [
                {"label": p.label, "start": p.start, "end": p.end, "probability": p.probability}
                for p in known.parts
            ]
    if nbest:
        for record, outputs in zip(records, model.predict_nbest(X, nbest), strict=True):
            record["nbest"] = [{"score": score, "output": output} for score, output in outputs]
    return records


def _plain(value: Any) -> Any:
    """Return what JSON has no form for as something it has: arrays, sets."""
    if hasattr(value, "tolist"):
        return value.tolist()
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    raise typer.BadParameter(f"--json: found {type(value).__name__} in an output, which JSON lacks")
