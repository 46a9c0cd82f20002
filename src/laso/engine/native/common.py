"""Kernels that call no method of a problem, which all problems of a process share.

A second problem does not compile them again: so it compiles in less time, and takes less memory.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

_made: dict[tuple[Any, ...], Any] = {}


def globals_of(function: Callable[..., Any]) -> set[str]:
    """Returns the names of the globals that a function reads, attributes not included."""
    return {step.argval for step in dis.get_instructions(function) if step.opname == "LOAD_GLOBAL"}


class Common:
    """The kernels that a problem may share with others.

    Parameters
    ----------
    functions : Mapping[str, Callable]
        All kernels, by name.
    space : Mapping[str, object]
        The globals of the kernels; those of ``constants`` may differ between problems.
    constants : Iterable[str]
    own : Iterable[str]
        The globals that are a problem's own. Kernels that read them, directly or not, are too.
    """

    def __init__(
        self,
        functions: Mapping[str, Any],
        space: Mapping[str, Any],
        *,
        constants: Iterable[str],
        own: Iterable[str],
    ) -> None:
        self.functions, self.space = functions, space
        self.constants, self.own = frozenset(constants), frozenset(own)
        self._reached: dict[str, frozenset[str]] = {}

    def reached(self, name: str) -> frozenset[str]:
        """Returns all globals on which a kernel depends, directly or by those it calls."""
        if name not in self._reached:
            self._reached[name] = frozenset()  # kernels do not call themselves
            direct = globals_of(self.functions[name])
            below = [self.reached(called) for called in direct & {*self.functions}]
            self._reached[name] = frozenset(direct).union(*below)
        return self._reached[name]

    def is_common(self, name: str) -> bool:
        """Returns whether a kernel is the same for all problems with the same constants."""
        return not self.reached(name) & self.own

    def made(self, name: str, given: tuple[Any, ...], make: Callable[[str, Any], Any]) -> Any:
        """Returns a common kernel as ``make`` makes it, once for each of its constants.

        ``make`` gets the name and the function, and depends on ``given`` and nothing else.
        """
        function = self.functions[name]
        values = [(n, self.space[n]) for n in sorted(self.reached(name) & self.constants)]
        key = (function, *values, *given)
        if key not in _made:
            read = globals_of(function)
            space = {n: self.space[n] for n in read | {"__name__"} if n in self.space}
            for called in read & {*self.functions}:
                space[called] = self.made(called, given, make)
            _made[key] = make(name, types.FunctionType(function.__code__, space, name))
        return _made[key]
