"""The modules that make up the compiled code, declared once, and their fingerprint.

Compilation and the cache both read this declaration, so that no edit of a module can leave stale
code in the cache.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import os
import platform
import sys
import types
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.engine import hashing, kernels, lattice, layout, option_kinds, text
from laso.engine.native import calls
from laso.engine.problem import NAMES, CompiledProblem


class Variant(NamedTuple):
    """Which engine is compiled.

    ``full`` includes the strategies that decode in full before they update, ``exact`` selects the
    lattice, and ``checked`` adds checks of array bounds. ``text`` selects code without a problem,
    which reads features.
    """

    full: bool
    exact: bool
    checked: bool
    text: bool = False

    @property
    def package(self) -> types.ModuleType:
        """The package that declares its modules, entry points and inlined functions."""
        return text if self.text else lattice if self.exact else kernels

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The names of the functions that Python calls."""
        return tuple(self.package.ENTRY_POINTS)


PLAIN = Variant(full=False, exact=False, checked=False)

COMPILING = ("jit.py", "common.py", "packed.py", "parts.py")  # only compilation imports them
SUPPORT = (
    hashing,
    layout,
    option_kinds,
    calls,
)  # not compiled as a whole, but compiled code depends on them


def flags(problem: type[CompiledProblem]) -> tuple[bool, ...]:
    """Returns the attributes of a problem that compiled code depends on."""
    names = ("weighted", "key_of_group", "segments", "partial_states")
    return tuple(bool(getattr(problem, name)) for name in names)


def fingerprint(problem: type[CompiledProblem], variant: Variant = PLAIN) -> str:
    """Returns a hash of everything that code compiled on this machine depends on."""
    digest = hashlib.sha256()
    digest.update(repr((_versions(), _processor(), variant, *flags(problem))).encode())
    for file in _engine_files(variant):
        digest.update(Path(file).read_bytes())
    seen: set[int] = set()
    for name in NAMES:
        _hash_function(getattr(problem, name), digest, seen)
    return digest.hexdigest()[:16]


def source_fingerprint(problem: type[CompiledProblem], variant: Variant = PLAIN) -> str:
    """Returns a hash of all sources and constants, the same under every version of Python.

    It hashes whole files where ``fingerprint`` hashes bytecode, which each version has its own of.
    """
    digest = hashlib.sha256()
    digest.update(repr((tuple(variant), *flags(problem), problem.__qualname__)).encode())
    functions = [f for name in NAMES for f in plain_functions(getattr(problem, name))]
    modules = sorted({function.__module__ for function in functions})
    own = [sys.modules[name].__file__ for name in modules]
    for file in [*_engine_files(variant), *own]:
        digest.update(Path(str(file)).read_bytes())
    for name, value in sorted(
        (name, repr(value))
        for function in functions
        for name in function.__code__.co_names
        if isinstance(value := function.__globals__.get(name), int | float | str | tuple)
    ):
        digest.update(f"{name}={value};".encode())
    return digest.hexdigest()[:16]


def _engine_files(variant: Variant) -> list[str | Path]:
    """Returns the files of the engine that compiled code depends on."""
    modules = [*SUPPORT, kernels, variant.package, *variant.package.MODULES]
    files = [str(module.__file__) for module in modules]
    return [*files, __file__, *(Path(__file__).with_name(name) for name in COMPILING)]


@functools.cache
def _versions() -> tuple[str, ...]:
    """Returns the versions of what compiles; Numba's without importing it or its metadata."""
    import llvmlite

    numba = find_spec("numba")
    file = Path(str(numba and numba.origin)).with_name("_version.py")
    return file.read_text(encoding="utf-8"), llvmlite.__version__, np.__version__


@functools.cache
def _processor() -> tuple[str, ...]:
    """Returns what Numba compiles for: the processor and its features."""
    from llvmlite import binding

    settings = [
        f"{name}={os.environ.get(name)}"
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT")
    ]
    try:
        features = binding.get_host_cpu_features().flatten()
    except RuntimeError:  # LLVM does not know them on every system
        features = ""
    return (platform.machine(), *settings, binding.get_host_cpu_name(), features)


def plain_functions(function: Any) -> Iterator[Any]:
    """Yields a function and the plain Python functions that it calls, directly or not."""
    pending, seen = [function], set()
    while pending:
        found = pending.pop(0)
        if not inspect.isfunction(found) or found in seen or found in hashing.OVERLOADED:
            continue
        seen.add(found)
        yield found
        pending += [found.__globals__.get(name) for name in found.__code__.co_names]


def _hash_function(function: Any, digest: Any, seen: set[int]) -> None:
    """Hashes code, constants, defaults, closure, and all globals that a function names."""
    function = getattr(function, "py_func", function)
    if id(function) in seen:
        return
    seen.add(id(function))
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        digest.update(repr((code.co_name, code.co_code, code.co_names, code.co_varnames)).encode())
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                pending.append(constant)
            else:
                digest.update(repr(constant).encode())
        for name in code.co_names:
            for value in _values_of(name, function.__globals__, code.co_names):
                _hash_value(name, value, digest, seen)
    digest.update(repr(function.__defaults__).encode())
    for cell in function.__closure__ or ():
        _hash_value("", cell.cell_contents, digest, seen)


def _values_of(name: str, namespace: dict[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """Yields the value of a global name; for a module, its attributes among the other names."""
    value = namespace.get(name)
    if isinstance(value, types.ModuleType):
        for other in names:
            if other != name:
                yield from _values_of(other, vars(value), [n for n in names if n != name])
    else:
        yield value


def _hash_value(name: str, value: Any, digest: Any, seen: set[int]) -> None:
    if inspect.isfunction(getattr(value, "py_func", value)):
        _hash_function(value, digest, seen)
    elif isinstance(value, np.ndarray):
        digest.update(repr((name, value.dtype, value.shape)).encode() + value.tobytes())
    elif isinstance(value, int | float | str | bytes | tuple | bool | np.generic):
        digest.update(repr((name, value)).encode())
