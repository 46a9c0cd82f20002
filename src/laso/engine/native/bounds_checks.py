"""The method of a problem that leaves the bounds of an array, and the line where it does."""

from __future__ import annotations

import traceback

from laso.engine.native.method_checks import plain
from laso.engine.native.sources import plain_functions
from laso.engine.problem import NAMES, CompiledProblem
from laso.errors import BadProblem


class OutOfBounds(BadProblem, IndexError):
    """A problem's method reads or writes beyond the end of an array; the message names it."""


def origin(problem: type[CompiledProblem], error: Exception) -> tuple[str, str]:
    """Returns the method that raised an error, and the file and line where it did."""
    methods = {plain(getattr(problem, name)).__code__: name for name in NAMES}
    codes = {f.__code__ for name in NAMES for f in plain_functions(plain(getattr(problem, name)))}
    frames = [*traceback.walk_tb(error.__traceback__)]
    method = next((methods[f.f_code] for f, _ in frames if f.f_code in methods), "?")
    places = [f"{f.f_code.co_filename}:{line}" for f, line in frames if f.f_code in codes]
    return method, places[-1] if places else "?"
