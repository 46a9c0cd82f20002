"""Mistakes in a user's problem that can be seen before it is compiled."""

from __future__ import annotations

import dis
import inspect
import linecache
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

from laso.engine.native.sources import plain_functions
from laso.engine.problem import NAMES, REQUIRED, CompiledProblem
from laso.errors import LasoError

CATCHES = "catches exceptions by type"
# What an instruction shows that compiled code cannot do, by its name in one version of Python or
# another. A comprehension or lambda is a function of its own in some versions.
CONSTRUCTS = {
    "FORMAT_VALUE": "formats text",
    "FORMAT_SIMPLE": "formats text",
    "FORMAT_WITH_SPEC": "formats text",
    "BUILD_STRING": "formats text",
    "BUILD_LIST": "makes a list",
    "LIST_APPEND": "makes a list",
    "BUILD_MAP": "makes a dictionary",
    "BUILD_CONST_KEY_MAP": "makes a dictionary",
    "MAP_ADD": "makes a dictionary",
    "BUILD_SET": "makes a set",
    "SET_ADD": "makes a set",
    "BEFORE_WITH": "has a with statement",
    "CHECK_EXC_MATCH": CATCHES,
    "YIELD_VALUE": "has a generator",
    "MAKE_FUNCTION": "defines a function",
    "IMPORT_NAME": "imports a module",
}
NESTED = {
    "<listcomp>": "makes a list",
    "<dictcomp>": "makes a dictionary",
    "<setcomp>": "makes a set",
    "<genexpr>": "has a generator",
}


class CompileError(LasoError):
    """A problem cannot be compiled; the message names the method, file and line, and the remedy."""


class Construct(NamedTuple):
    """A construct of Python that compiled code does not support, and its place."""

    what: str
    file: str
    line: int


def check_methods(problem: type[CompiledProblem]) -> None:
    """Raises CompileError for mistakes that need no compiler to be found."""
    for name in REQUIRED:
        if getattr(problem, name) is getattr(CompiledProblem, name):
            raise CompileError(f"{problem.__name__} needs a static method {name}")
    for name in NAMES:
        method = inspect.getattr_static(problem, name)
        if method is getattr(CompiledProblem, name):  # the default, taken back in a class body
            continue
        if not isinstance(method, staticmethod):
            raise CompileError(
                f"{problem.__name__}.{name} is not a static method\n  {place_of(method)}\n"
                f"  Write @staticmethod above it, and no self among its parameters: the functions "
                "of a problem take all they need as arguments."
            )
        function = plain(method.__func__)
        _check_parameters(problem, name, function)
        _check_comparisons(problem, name, function)


def plain(function: Any) -> Any:
    """Returns the Python function behind one that is already decorated by Numba."""
    return getattr(function, "py_func", function)


def place_of(function: Any) -> str:
    """Returns the file and line of a function's ``def``."""
    function = plain(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    if code is None:
        return "?"
    line = code.co_firstlineno  # of the first decorator, if there is one
    while linecache.getline(code.co_filename, line).strip().startswith("@"):
        line += 1
    return f"{_path(code.co_filename)}:{line}"


def _path(file: str) -> str:
    return file if file.startswith("<") else os.path.abspath(file)


def _check_parameters(problem: type[CompiledProblem], name: str, function: Any) -> None:
    expected = [*inspect.signature(getattr(CompiledProblem, name)).parameters]
    signature = inspect.signature(function)
    try:
        signature.bind(*expected)
    except TypeError:
        raise CompileError(
            f"{problem.__name__}.{name} has the parameters ({', '.join(signature.parameters)}), "
            f"but is called with ({', '.join(expected)})\n  {place_of(function)}\n"
            f"  Write def {name}({', '.join(expected)}), also if some are not needed."
        ) from None


def _check_comparisons(problem: type[CompiledProblem], name: str, method: Any) -> None:
    """Refuses comparisons with text, which Numba compiles to False without a word."""
    for function in plain_functions(method):
        steps = [*_instructions(function)]
        for i, (step, line) in enumerate(steps):
            if step.opname == "COMPARE_OP":
                for operand, _ in steps[max(0, i - 2) : i]:
                    if operand.opname == "LOAD_CONST" and isinstance(operand.argval, str):
                        raise CompileError(
                            f"{problem.__name__}.{name} cannot be compiled: it compares with the "
                            f"text {operand.argval!r}\n"
                            f"  {_path(function.__code__.co_filename)}:{line}\n"
                            "  Inputs and states hold numbers: give each text a number when the "
                            "input is encoded, and compare numbers."
                        )


def _instructions(function: Any) -> Iterator[tuple[dis.Instruction, int]]:
    """Yields a function's instructions, each with its line."""
    line = function.__code__.co_firstlineno
    for step in dis.get_instructions(function):
        line = step.starts_line or line
        yield step, line


def constructs(method: Any) -> Iterator[Construct]:
    """Yields what a method, or a function that it calls, has that compiled code cannot do."""
    for function in plain_functions(method):
        for step, line in _instructions(function):
            nested = NESTED.get(getattr(step.argval, "co_name", ""))
            if step.opname in CONSTRUCTS or nested:
                file = _path(function.__code__.co_filename)
                yield Construct(nested or CONSTRUCTS[step.opname], file, line)


def place_of_global(method: Any, name: str) -> str | None:
    """Returns the file and line where a method, or a function that it calls, reads a global."""
    for function in plain_functions(method):
        for step, line in _instructions(function):
            if step.opname == "LOAD_GLOBAL" and step.argval == name:
                return f"{_path(function.__code__.co_filename)}:{line}"
    return None
