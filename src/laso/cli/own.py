"""Tasks of the user's own on the command line: ``--task my_module:MyTask``.

The task reads the files (``Task.read_file``) and writes the outputs (``Task.write_output``).
"""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from laso.errors import BadData

if TYPE_CHECKING:
    from laso.cli.settings import Settings
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task


def is_own(task: str | None) -> bool:
    """Whether a task is named as module:Class."""
    return task is not None and ":" in task


def load_task(name: str) -> Task:
    """The task of a module, which may be in the current folder."""
    from laso.tasks.base import Task

    module, _, cls = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found = getattr(importlib.import_module(module), cls)
    except (ImportError, AttributeError, ValueError) as error:
        raise typer.BadParameter(f"--task {name}: {error}") from None
    made = found() if inspect.isclass(found) else found
    if not isinstance(made, Task):
        raise typer.BadParameter(
            f"--task {name}: found {found!r}, expected a subclass of laso.Task"
        )
    return made


def read(task: Task, files: Sequence[str], *, labelled: bool) -> tuple[list[Any], list[Any]]:
    """The inputs, and the outputs if the files have them, of all files."""
    X: list[Any] = []
    y: list[Any] = []
    for name in files:
        inputs, outputs = task.read_file(name, labelled=labelled)
        if labelled and (outputs is None or len(outputs) != len(inputs)):
            raise BadData(f"{name}: found {len(inputs)} inputs, expected as many outputs")
        X += inputs
        y += outputs if outputs is not None else []
    return X, y


def estimator(task: Task, settings: Settings, *, epochs: int, patience: int | None) -> Any:
    """The estimator to train."""
    from laso.cli.settings import parameters_of
    from laso.estimators import SearchEstimator

    given = {"epochs": epochs, "patience": patience, **parameters_of(settings)}
    try:
        made = SearchEstimator(task, **given)
        made.validate()
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    return made


def tag(model: SearchEstimator, files: Sequence[str], out: Any) -> None:
    """Write the output of each input of the files."""
    for name in files:
        X, _ = read(model.task_, [name], labelled=False)
        for x, y in zip(X, model.predict(X), strict=True):
            out.write((model.task_.write_output(x, y) + "\n").encode())
        out.flush()
