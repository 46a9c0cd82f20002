"""Tasks that read their files themselves: the user's own, as ``my_module:MyTask``, and clusters."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb
from typing import TYPE_CHECKING, Any

import typer

import laso
from laso.errors import LasoError

if TYPE_CHECKING:
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task


PRESETS = {"cluster": None, "coref": "coreference"}  # of a Clusterer, by the names of tasks


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

    named = named_object(name, option="--task ")
    if isinstance(named, Task):
        return named
    if not (inspect.isclass(named) and issubclass(named, Task)):
        raise typer.BadParameter(
            f"--task {name}: found {named!r}, expected a subclass of laso.Task"
        )
    try:
        return named()
    except TypeError as error:
        raise typer.BadParameter(
            f"--task {name}: {error}; expected a class without required parameters, or a task"
        ) from error


def reader(task: str | None) -> Task | None:
    """Return the task of this name if it reads its files itself; None if it has columns."""
    if is_own(task):
        return load_task(str(task))
    if task not in PRESETS:
        return None
    from laso.estimators import Clusterer

    return Clusterer(preset=PRESETS[task]).make_task()


def detected(name: str) -> str | None:
    """Return "cluster" or "coref" for a file of items or of mentions; None for any other."""
    from laso.cli.examples import STDIN, head_of, opened
    from laso.data.coreference import BEGIN

    if name == STDIN:
        return None
    with opened(name) as file:
        head = head_of(file).lstrip()
    keys = set(re.findall(r'"(\w+)"\s*:', head)) if head.startswith("{") else set()
    if head.startswith(BEGIN) or {"sentences", "mentions"} <= keys:
        return "coref"
    return "cluster" if "items" in keys and "tokens" not in keys else None


def reads_files(model: SearchEstimator, task: str | None) -> bool:
    """Tell whether the task of a model reads its files itself."""
    from laso.tasks.sequences import SequenceTask

    return task is not None or not isinstance(model.task_, SequenceTask)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about parameters into usage errors.

    Errors about data pass, and so do those that the code of a user's own task raises, with their
    traceback.
    """
    try:
        yield
    except LasoError:
        raise
    except ValueError as error:
        package = str(Path(laso.__file__).parent)
        examples = str(Path(package) / "examples")
        raised_in = extract_tb(error.__traceback__)[-1].filename
        if not raised_in.startswith(package) or raised_in.startswith(examples):
            raise
        raise typer.BadParameter(str(error)) from error


def load(path: str | Path, task: str | None, encoder: str | None = None) -> SearchEstimator:
    """Return the model of a file; a model of a task of the user's own needs ``task``."""
    from laso.estimators import load_model

    given: dict[str, Any] = {}
    if encoder is not None:
        from laso.encoders import load_encoder

        with usage_errors():
            given["encoder"] = load_encoder(encoder)
    if task is not None:
        if not is_own(task):
            raise typer.BadParameter(f"--task is {task!r}: expected module:Class")
        given["task"] = load_task(task)
    model: SearchEstimator = load_model(path, **given)
    return model
