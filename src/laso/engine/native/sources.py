"""The modules that make up the compiled code, declared once, and their fingerprint.

Compilation and the cache both read this declaration, so that no edit of a module can leave stale
code in the cache.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import inspect
import os
import platform
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.engine import hashing, kernels, lattice, layout
from laso.engine.native import calls
from laso.engine.problem import NAMES, CompiledProblem


class Package(NamedTuple):
    """What makes up the compiled code of one engine."""

    MODULES: tuple[types.ModuleType, ...]
    ENTRY_POINTS: tuple[str, ...]
    INLINED: frozenset[str]  # called for each feature or label: a call would cost more


class Variant(NamedTuple):
    """Which engine is compiled.

    ``full`` includes the strategies that decode in full before they update, ``exact`` selects the
    lattice, and ``checked`` adds checks of array bounds.
    """

    full: bool
    exact: bool
    checked: bool

    @property
    def package(self) -> Package:
        """The declaration of the modules that make up this variant's compiled code."""
        return LATTICE if self.exact else KERNELS

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The names of the functions that Python calls."""
        return self.package.ENTRY_POINTS


PLAIN = Variant(full=False, exact=False, checked=False)

KERNELS = Package(
    MODULES=(kernels,),
    ENTRY_POINTS=("learn_many", "decode_many", "largest"),
    INLINED=frozenset(
        {
            "expand",
            "score_labels",
            "score_factors",
            "sums_at",
            "highest",
            "has_good",
            "factor_group",
            "factor_label",
            "remove_front",
            "open_round",
            "make_state",
            "new_node",
            "size",
            "find",
            "slot_of",
            "add_rows",
            "place_for",
            "bar_of",
            "insert",
            "drop_last",
            "step_to",
            "row_of",
            "add_entry",
            "count_good",
            "shortened",
        }
    ),
)
LATTICE = Package(
    MODULES=(kernels, lattice),
    ENTRY_POINTS=lattice.ENTRY_POINTS,
    INLINED=KERNELS.INLINED | lattice.INLINE,
)
SUPPORT = (hashing, layout, calls)  # not compiled as a whole, but compiled code depends on them


def fingerprint(problem: type[CompiledProblem], variant: Variant = PLAIN) -> str:
    """Returns a hash of everything that the compiled code depends on."""
    digest = hashlib.sha256()
    versions = (*map(importlib.metadata.version, ("numba", "llvmlite")), np.__version__)
    digest.update(repr((versions, _processor(), variant, problem.weighted)).encode())
    files = [module.__file__ for module in (*SUPPORT, *variant.package.MODULES)]
    for file in [*files, __file__, Path(__file__).with_name("jit.py")]:
        assert file
        digest.update(Path(file).read_bytes())
    seen: set[int] = set()
    for name in NAMES:
        _hash_function(getattr(problem, name), digest, seen)
    return digest.hexdigest()[:16]


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
