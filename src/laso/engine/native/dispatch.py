"""The entry points of the engine for one problem, each loaded or compiled when first called."""

from __future__ import annotations

import contextlib
import functools
import logging
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from laso.engine.native import cache, calls, load, shipped
from laso.engine.native.checks import CompileError, check_methods
from laso.engine.native.sources import PLAIN, Variant, fingerprint
from laso.engine.problem import CompiledProblem, is_foreign
from laso.locks import cached_property, shared_lock

__all__ = ["PLAIN", "Kernels", "Variant", "compiled", "fingerprint", "on_compile", "text_kernels"]

log = logging.getLogger("laso.engine")

Listener = Callable[[type[CompiledProblem], str], object]

_lock = shared_lock()
_compiled: dict[tuple[type[CompiledProblem], Variant], Kernels] = {}
_listeners: list[Listener] = []


class Kernels:
    """The compiled entry points for one problem.

    Loading and compiling take a lock; calls take none.
    """

    def __init__(self, problem: type[CompiledProblem], variant: Variant) -> None:
        if not variant.text and is_foreign(problem):
            check_methods(problem)
        self.problem, self.variant = problem, variant
        self.is_native = (
            _is_set("LASO_NATIVE", default=True)
            and not variant.checked
            and not _is_set("NUMBA_DISABLE_JIT")
        )
        self._loaded: dict[tuple[str, str], calls.Function] = {}
        self._prepared: set[tuple[str, str]] = set()
        self._engines: dict[bool, Any] = {}

    @cached_property
    def fingerprint(self) -> str:
        """The hash of everything that code compiled here depends on."""
        return fingerprint(self.problem, self.variant)

    @cached_property
    def folder(self) -> Path:
        """The folder of the cache."""
        return cache.folder_for(self.problem.__name__, self.fingerprint)

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Calls an entry point."""
        signature, numbers = calls.described(arguments)
        if self.is_native:
            function = self._loaded.get((name, signature)) or self._load(name, signature, arguments)
            if function:
                return function(numbers)
        return self._call_numba(name, signature, arguments)

    def prepared(self, name: str, *arguments: Any) -> calls.Prepared | None:
        """Returns a call of an entry point, to be made many times; None if only Numba can run it.

        The contents of the arrays may change between calls.
        """
        if not self.is_native:
            return None
        signature, numbers = calls.described(arguments)
        function = self._loaded.get((name, signature)) or self._load(name, signature, arguments)
        return calls.Prepared(function, numbers, arguments) if function else None

    def _load(self, name: str, signature: str, arguments: tuple[Any, ...]) -> calls.Function | None:
        """Returns an entry point, shipped, cached or compiled; None if only Numba can run it."""
        with _lock:
            try:
                if (name, signature) not in self._loaded:
                    found = shipped.read(self.problem, self.variant, name, signature)
                    if found is None:
                        file = self.folder / cache.file_name(name, signature)
                        found = cache.read(file) or self._compile(name, arguments, file)
                    self._loaded[name, signature] = load.loaded(*found)
            except load.Unsupported as error:
                _warn_unsupported(str(error))
                self.is_native = False
        return self._loaded.get((name, signature))

    def _compile(self, name: str, arguments: tuple[Any, ...], file: Path) -> tuple[str, bytes]:
        from laso.engine.native import jit

        with self._numba(cached=False) as engine:
            try:
                jit.check_version()
                _announce(self.problem, name)
                found = jit.object_code(engine.entries[name], arguments, check=engine.check)
            except (load.Unsupported, CompileError, *jit.ERRORS):
                raise
            except Exception as error:  # a version of Numba whose inner parts differ
                raise load.Unsupported(f"Numba made no object code: {error!r}") from error
        cache.keep(file, *found)
        return found

    def _call_numba(self, name: str, signature: str, arguments: tuple[Any, ...]) -> Any:
        """Calls an entry point by Numba, with Numba's own cache."""
        with self._numba(cached=True) as engine:
            if (name, signature) not in self._prepared:
                with _lock:
                    engine.prepare(name, arguments, lambda: _announce(self.problem, name))
                self._prepared.add((name, signature))
            try:
                return engine.entries[name](*arguments)
            except IndexError as error:
                from laso.engine.checks import locate

                locate(self.problem, error, name, arguments)

    @contextlib.contextmanager
    def _numba(self, *, cached: bool) -> Iterator[Any]:
        """Gives Numba's functions; explains its errors in terms of the problem's methods."""
        from laso.engine.native import explain, jit

        with _lock:
            if cached not in self._engines:
                folder = cache.writable(self.folder) if cached else None
                self._engines[cached] = jit.Engine(
                    self.problem, self.variant, self.fingerprint, folder=folder
                )
        engine = self._engines[cached]
        try:
            yield engine
        except jit.ERRORS as error:
            raise CompileError(explain.explained(self.problem, engine, error)) from error


def compiled(problem: type[CompiledProblem], *, full: bool = False, exact: bool = False) -> Kernels:
    """Returns the engine for a problem; its entry points are compiled or loaded when first called.

    Parameters
    ----------
    problem : type[CompiledProblem]
        The problem whose static methods are compiled into the engine.
    full : bool, default=False
        Include the strategies that decode in full before they update. Without them the engine
        compiles faster.
    exact : bool, default=False
        Select the lattice of exact search, which has entry points of its own.
    """
    return _kernels(problem, Variant(full, exact, _is_set("LASO_BOUNDS_CHECK")))


def text_kernels() -> Kernels:
    """Returns the code that reads features, which belongs to no problem."""
    return _kernels(CompiledProblem, Variant(False, False, _is_set("LASO_BOUNDS_CHECK"), text=True))


def _kernels(*key: Any) -> Kernels:
    found = _compiled.get(key)  # no lock: most calls end here
    if found is None:
        with _lock:
            if key not in _compiled:
                _compiled[key] = Kernels(*key)
            found = _compiled[key]
    return found


@contextlib.contextmanager
def on_compile(callback: Listener) -> Iterator[None]:
    """Calls ``callback(problem, entry_point)`` before each compilation, inside a with statement.

    Code that is loaded from the cache is not compiled, and not announced.
    """
    _listeners.append(callback)
    try:
        yield
    finally:
        _listeners.remove(callback)


def _announce(problem: type[CompiledProblem], entry: str) -> None:
    log.info("compiling %s (%s), once: the cache keeps the result", problem.__name__, entry)
    for listener in [*_listeners]:
        listener(problem, entry)


@functools.cache
def _warn_unsupported(reason: str) -> None:
    """Logs each reason once."""
    log.warning(
        "Numba runs the compiled engine, which starts more slowly: %s "
        "(LASO_NATIVE=0 asks for this without a warning)",
        reason,
    )


def _is_set(variable: str, *, default: bool = False) -> bool:
    value = os.environ.get(variable, "")
    return default if value == "" else value != "0"
