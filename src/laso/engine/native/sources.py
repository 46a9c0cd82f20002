"""Fingerprints of compiled code: hashes of all that it depends on.

A fingerprint covers the functions that an entry point reaches, as the bytecode of Python has them,
so that a comment, a docstring or a function that is not called changes nothing.
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
from laso.engine.problem import NAMES, CompiledProblem, flags_of, is_foreign


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

# Modules that decide how code is lowered; only compilation imports those named by a string.
LOWERING = ("lowering", "packed", "parts")
LINKING = ("linking",)
SUPPORT = (hashing, layout, option_kinds, calls)


def engine_fingerprint(variant: Variant, entry: str) -> str:
    """Returns a hash of everything that the lowered code of an entry point depends on."""
    return _digest(_versions(), variant.checked, _reached(variant.package, entry))


def fingerprint(problem: type[CompiledProblem], variant: Variant, entry: str) -> str:
    """Returns a hash of everything that the machine code of an entry point depends on."""
    given: list[object] = [engine_fingerprint(variant, entry), _processor(), _native_code(*LINKING)]
    if not variant.text:
        given += [has_checked_methods(problem, variant), _methods(problem, variant.full)]
    return _digest(*given)


def has_checked_methods(problem: type[CompiledProblem], variant: Variant) -> bool:
    """Returns whether methods check every index: a user's own may break a promise at any input."""
    return variant.checked or is_foreign(problem)


def _digest(*values: object) -> str:
    digest = hashlib.sha256()
    for value in values:
        digest.update(value if isinstance(value, bytes) else repr(value).encode())
    return digest.hexdigest()[:16]


@functools.cache
def _versions() -> tuple[str, ...]:
    """Returns the versions of what compiles; Numba's without importing it or its metadata."""
    import llvmlite

    numba = find_spec("numba")
    file = Path(str(numba and numba.origin)).with_name("_version.py")
    numba_version = file.read_text(encoding="utf-8")
    return sys.version, numba_version, llvmlite.__version__, np.__version__


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


# --------------------------------------------------------------------------- bytecode


@functools.cache
def _reached(package: types.ModuleType, entry: str) -> bytes:
    """Returns a hash of an entry point, of all kernels it calls, and of what lays out arrays."""
    digest = hashlib.sha256()
    owner = next(module for module in package.MODULES if entry in vars(module))
    _hash_function(getattr(owner, entry), digest, set())
    digest.update(repr(sorted(package.INLINED)).encode() + _native_code(*LOWERING))
    layouts = [module for module in package.MODULES if module.__name__.endswith("layout")]
    for module in (*SUPPORT, *layouts):
        _hash_module(module.__name__, digest)
    return digest.digest()


def _methods(problem: type[CompiledProblem], full: bool) -> bytes:
    """Returns a hash of the methods of a problem, of what they call, and of its flags."""
    digest, seen = hashlib.sha256(repr(flags_of(problem, full=full)).encode()), set[int]()
    for name in NAMES:
        digest.update(name.encode())
        _hash_function(getattr(problem, name), digest, seen)
    return digest.digest()


@functools.cache
def _native_code(*names: str) -> bytes:
    """Returns a hash of modules of this folder, which need not be imported."""
    digest = hashlib.sha256()
    for name in names:
        _hash_module(f"{__package__}.{name}", digest)
    return digest.digest()


def _hash_module(name: str, digest: Any) -> None:
    spec = find_spec(name)
    loader: Any = spec and spec.loader
    pending = [loader.get_code(name)]
    while pending:
        pending += _hash_code(pending.pop(), digest)


def _hash_code(code: types.CodeType, digest: Any) -> list[types.CodeType]:
    """Hashes bytecode and constants but no text in words; returns the code of inner functions."""
    digest.update(repr((code.co_name, code.co_code, code.co_names, code.co_varnames)).encode())
    inner = []
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner.append(constant)
        elif not (isinstance(constant, str) and " " in constant):  # a docstring
            is_set = isinstance(constant, frozenset)  # without an order
            digest.update(repr(sorted(map(repr, constant)) if is_set else constant).encode())
    return inner


def plain_functions(function: Any) -> Iterator[Any]:
    """Yields a function and the plain Python functions that it calls, directly or not."""
    pending, seen = [function], set()
    while pending:
        called = pending.pop(0)
        if not inspect.isfunction(called) or called in seen or called in hashing.OVERLOADED:
            continue
        seen.add(called)
        yield called
        pending += [called.__globals__.get(name) for name in called.__code__.co_names]


def _hash_function(function: Any, digest: Any, seen: set[int]) -> None:
    """Hashes code, constants, defaults, closure, and all globals that a function names."""
    function = getattr(function, "py_func", function)
    if id(function) in seen:
        return
    seen.add(id(function))
    pending = [function.__code__]
    while pending:
        code = pending.pop()
        pending += _hash_code(code, digest)
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
