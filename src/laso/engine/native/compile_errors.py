"""Explains Numba's errors in terms of the user's methods: which one, where, why, and the remedy."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba

from laso.engine import layout
from laso.engine.native.linking import ERRORS, Methods
from laso.engine.native.method_checks import (
    CATCHES,
    CompileError,
    Construct,
    constructs,
    place_of,
    place_of_global,
)
from laso.engine.problem import NAMES, CompiledProblem

REMEDY = (
    "The functions of a problem work on numbers, tuples and the arrays that are passed to them; "
    "prepare anything else when the input is encoded."
)
REMEDIES = {
    "NameError": "Define or import the name in the file of the problem.",
    "Unknown attribute": f"An input x has the arrays {', '.join(layout.Input._fields)}. {REMEDY}",
    "No implementation": "Check the types: indices, labels and keys are integers. " + REMEDY,
}


@contextlib.contextmanager
def explaining(problem: type[CompiledProblem]) -> Iterator[None]:
    """Turns Numba's errors into CompileError: which method is at fault, where, why, what to do."""
    try:
        yield
    except ERRORS as error:
        general = f"{problem.__name__} cannot be compiled: {_reason(error)}\n  {REMEDY}"
        raise CompileError(mistake_in(problem) or general) from error


def mistake_in(problem: type[CompiledProblem]) -> str | None:
    """Returns what is wrong with the first method that cannot be compiled; None if all can."""
    if numba.config.DISABLE_JIT:
        return None
    methods = Methods(problem)
    for name in NAMES:
        try:
            methods.code(name)
        except CompileError as own:
            return str(own)
        except ERRORS as own:
            method = methods.functions[name].py_func
            return f"{problem.__name__}.{name} cannot be compiled: {_details(own, method)}"
    return None


def _details(error: Exception, method: Any) -> str:
    """Returns the reason, the place and the remedy."""
    place, construct = _place(error, method), _unsupported(error, method)
    if construct:
        place = f"{construct.file}:{construct.line}"
        return f"it {construct.what}, which compiled code cannot do\n  {place}\n  {REMEDY}"
    remedy = next((text for head, text in REMEDIES.items() if head in _plain(error)), REMEDY)
    return f"{_reason(error)}\n  {place}\n  {remedy}"


def _unsupported(error: Exception, method: Any) -> Construct | None:
    """Returns the unsupported construct that an error is about, if it is about one.

    It is in the line that Numba names. If memory would have to be allocated, or where Numba names
    no line, it is the first one of all.
    """
    all_constructs = [*constructs(method)]
    if "exception_match" in _plain(error):  # Numba catches all exceptions or none
        return next((c for c in all_constructs if c.what == CATCHES), None)
    at_place = [c for c in all_constructs if f"{c.file}:{c.line}" == _place(error, method)]
    if not at_place and (_allocates(error) or not _lines(error)):
        at_place = all_constructs
    return at_place[0] if at_place else None


def _allocates(error: Exception) -> bool:
    text = _plain(error)
    return "NRT required" in text or "Only accept returning of array" in text


def _lines(error: Exception) -> list[str]:
    """Returns the places that Numba names outside itself, the innermost first."""
    places = []
    for file, line in re.findall(r'^File "(.*)", line (\d+):', _plain(error), re.MULTILINE):
        path = file if file.startswith("<") else os.path.abspath(file)
        if Path(numba.__file__).parent not in Path(path).parents:
            places.append(f"{path}:{line}")
    return places


def _place(error: Exception, method: Any) -> str:
    """Returns file and line at fault, or those of the method if Numba names none."""
    unknown = re.search(r"name '(\w+)' is not defined", _plain(error))
    place = place_of_global(method, unknown[1]) if unknown else None
    return place or next(iter(_lines(error)), place_of(method))


def _plain(error: Exception) -> str:
    """Returns Numba's message without colours, which it has where colorama is installed."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _reason(error: Exception) -> str:
    """Returns the head of Numba's message, in plainer words; the rest lists what Numba tried."""
    text = _plain(error)
    useful = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith(("There are", 'File "', "During:", "- ", "Enable")):
            break
        if line and not line.startswith("Failed in"):
            useful.append(line)
    if _allocates(error):
        useful.append("(the functions of a problem cannot make arrays, lists or dictionaries)")
    reason = " ".join(useful) or text
    reason = re.sub(r"No implementation .* found for signature: >>> ", "wrong types: ", reason)
    reason = re.sub(r"Literal\[\w+\]\((.*?)\)", r"\1", reason)
    return re.sub(r"of type (\w+)\(array.*\)", r"of \1", reason)
