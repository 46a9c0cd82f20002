"""What the keys of features were mixed from: a problem that runs uncompiled and takes notes."""

from __future__ import annotations

from types import FunctionType
from typing import Any

from laso.engine.hashing import mix
from laso.engine.problem import NAMES, CompiledProblem

Origins = dict[int, tuple[int, int]]


def recorded(problem: type[CompiledProblem]) -> tuple[type[CompiledProblem], Origins]:
    """The problem with a ``mix`` that notes, and the notes: for each key what it was mixed from."""
    origins: Origins = {}
    known: dict[int, dict[str, Any]] = {}

    def noting(a: int, b: int) -> int:
        key = mix(a, b)
        origins[key] = (int(a), int(b))
        return key

    def again(function: FunctionType) -> FunctionType:
        """The function among globals in which mix is another."""
        around = function.__globals__
        if id(around) not in known:
            new = known[id(around)] = dict(around)
            for name, thing in around.items():
                if thing is mix:
                    new[name] = noting
                elif isinstance(thing, FunctionType) and _may_mix(thing, around):
                    new[name] = again(thing)
        return FunctionType(
            function.__code__, known[id(around)], function.__name__, function.__defaults__
        )

    functions = {name: staticmethod(again(getattr(problem, name))) for name in NAMES}
    return type(problem.__name__, (problem,), functions), origins


def _may_mix(function: FunctionType, around: dict[str, Any]) -> bool:
    """Return whether a function of these globals may call ``mix``, or one that does."""
    names = function.__globals__
    return names is around or any(value is mix for value in names.values())


def numbers_of(key: int, origins: Origins) -> list[int]:
    """The numbers that a key was mixed from, in their order."""
    numbers: list[int] = []
    while key in origins:
        key, value = origins[key]
        numbers.insert(0, value)
    return [key, *numbers]
