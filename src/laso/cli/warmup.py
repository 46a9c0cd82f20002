"""``laso warmup``: compile ahead of time, so that the first real call need not."""

from __future__ import annotations

import inspect
import time
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from laso.engine.problem import CompiledProblem

BUILT_IN = {"tag": "tagging", "chunk": "chunking", "joint": "joint", "cluster": "clustering"}
DEFAULT = ("tag", "chunk")


def run(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(
            help="tag, chunk, joint, cluster, or tasks and compiled problems of your own as "
            "module:Class; by default tag and chunk."
        ),
    ] = None,
) -> None:
    """Compile the engine for some tasks ahead of time, into the cache."""
    from laso import beam, perceptron, standard
    from laso.engine.machine import warm
    from laso.engine.native import cache_root
    from laso.engine.options import options_for
    from laso.learn import restart

    problems = {name: problem_of(name) for name in tasks or DEFAULT}
    for name, problem in problems.items():
        for strategy in (restart, standard):
            began = time.perf_counter()
            warm(problem, options_for(problem, beam(1), perceptron(), strategy))
            took = time.perf_counter() - began
            typer.echo(f"{name}, strategy {strategy.__name__}: ready after {took:.1f} s")
    typer.echo(f"cache: {cache_root()}")


def problem_of(name: str) -> type[CompiledProblem]:
    """Return the problem of a built-in task, or of a task or problem named as module:Class."""
    from laso.cli import own
    from laso.engine.problem import CompiledProblem
    from laso.tasks import task_type
    from laso.tasks.base import Task

    if name in BUILT_IN:
        return task_type(BUILT_IN[name]).problem
    if not own.is_own(name):
        raise typer.BadParameter(f"found {name!r}, expected {', '.join(BUILT_IN)} or module:Class")
    named = own.named_object(name)
    if isinstance(named, Task) or (inspect.isclass(named) and issubclass(named, Task)):
        named = getattr(named, "problem", None)
    if inspect.isclass(named) and issubclass(named, CompiledProblem):
        return named
    raise typer.BadParameter(f"{name}: found {named!r}, expected a CompiledProblem or a Task")
