"""The entry points of the engine for one problem, each loaded or compiled when first called."""

from __future__ import annotations

import contextlib
import inspect
import logging
import os
import types
from collections.abc import Callable, Iterator
from typing import Any
from weakref import WeakSet

from laso.engine import hashing, layout
from laso.engine.native import cache, calls, load, waiting
from laso.engine.native.method_checks import check_methods
from laso.engine.native.sources import (
    PLAIN,
    Variant,
    engine_fingerprint,
    fingerprint,
    has_checked_methods,
)
from laso.engine.problem import NAMES, CompiledProblem, flags_of, is_foreign
from laso.engine.thresholds import SHORT_WORK
from laso.locks import cached_property, shared_lock

__all__ = ["PLAIN", "Kernels", "Variant", "compiled", "fingerprint", "on_compile", "text_kernels"]

log = logging.getLogger("laso.engine")

KEEPING = ("learn_many", "learn_exact_many")  # what they learned until Ctrl-C is kept

Listener = Callable[[type[CompiledProblem], str], object]

_lock = shared_lock()
_compiled: dict[tuple[type[CompiledProblem], Variant], Kernels] = {}
_listeners: list[Listener] = []
_announced: WeakSet[type[CompiledProblem]] = WeakSet()


def work_of(run: layout.Run | None, items: int, *, exact: bool) -> int:
    """Returns about how many labels are scored in a search over so many items."""
    if run is None:
        return items
    labels = len(run.sums)
    return items * len(run.groups) * labels * (labels if exact else len(run.best_scores))


class Kernels:
    """The compiled entry points for one problem.

    Loading and compiling take a lock; calls take none.
    """

    def __init__(self, problem: type[CompiledProblem], variant: Variant) -> None:
        if not variant.text and is_foreign(problem):
            check_methods(problem)
        self.problem, self.variant = problem, variant
        self._loaded: dict[tuple[str, str], calls.Function] = {}

    @cached_property
    def _plain(self) -> dict[str, Any] | None:
        """The entry points as plain Python where Numba's JIT is off, else None."""
        return plain_engine(self.problem, self.variant) if _is_set("NUMBA_DISABLE_JIT") else None

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Calls an entry point."""
        if self._plain:
            return self._plain[name](*arguments)
        signature, numbers = calls.described(arguments)
        function = self._loaded.get((name, signature)) or self._load(name, signature, arguments)
        run = next((each for each in arguments if isinstance(each, layout.Run)), None)

        def call() -> Any:
            return waiting.entered(lambda: function(numbers), None if run is None else run.meta)

        try:
            if waiting.in_main_thread() and not self._is_short(run, arguments):
                (result,) = waiting.results_of([call])
            else:
                result = call()
        except IndexError as error:  # where bounds are checked
            from laso.engine.checking.own_problems import locate

            locate(self.problem, error, name, arguments)
        if run is not None and result[-1] == layout.STOPPED and name not in KEEPING:
            raise KeyboardInterrupt
        return result

    def _is_short(self, run: layout.Run | None, arguments: tuple[Any, ...]) -> bool:
        """Returns whether a call takes no time in which somebody could press Ctrl-C."""
        if self.variant.text:
            return True
        if is_foreign(self.problem) or not isinstance(arguments[0], layout.Dataset):
            return False
        return work_of(run, len(arguments[0].items), exact=self.variant.exact) < SHORT_WORK

    def prepared(self, name: str, *arguments: Any) -> calls.Prepared | None:
        """Returns a call of an entry point, to be made many times; None for plain Python.

        The contents of the arrays may change between calls.
        """
        if self._plain:
            return None
        signature, numbers = calls.described(arguments)
        function = self._loaded.get((name, signature)) or self._load(name, signature, arguments)
        return calls.Prepared(function, numbers, arguments)

    def _load(self, name: str, signature: str, arguments: tuple[Any, ...]) -> calls.Function:
        """Returns an entry point from the cache, compiled if it is missing there."""
        with _lock:
            if (name, signature) not in self._loaded:
                of_sources = fingerprint(self.problem, self.variant, name)
                code = cache.found_or_made(
                    f"{self.problem.__name__}.{name}-{of_sources}",
                    signature,
                    lambda: self._compile(name, signature, arguments),
                )
                try:
                    function = load.loaded(*code)
                except load.Unsupported:  # what the cache has does not fit this system
                    function = load.loaded(*self._compile(name, signature, arguments))
                self._loaded[name, signature] = function
        return self._loaded[name, signature]

    def _compile(self, name: str, signature: str, arguments: tuple[Any, ...]) -> tuple[str, bytes]:
        from laso.engine.native import linking

        symbol, module = self.linked(name, signature, arguments)
        return symbol, linking.object_code(module)

    def linked(self, name: str, signature: str, arguments: tuple[Any, ...]) -> tuple[str, Any]:
        """Returns the symbol of an entry point, and an LLVM module of it and of the problem.

        A user's methods are compiled first, one by one, so that mistakes are found before the
        engine is lowered, which takes longer.
        """
        from laso.engine.native import compile_errors, linking, lowering

        lowering.check_version()
        if not self.variant.text:  # which takes a second
            _announce(self.problem, name)
        with compile_errors.explaining(self.problem):
            methods = None if self.variant.text else self._methods
            if methods and is_foreign(self.problem):
                for method in NAMES:
                    methods.code(method)
            symbol, engine = cache.found_or_made(
                f"engine.{name}-{engine_fingerprint(self.variant, name)}",
                signature,
                lambda: lowering.lowered(
                    lowering.engine(self.variant.package, checked=self.variant.checked)[name],
                    arguments,
                ),
            )
            return symbol, linking.linked(engine, symbol, methods)

    @cached_property
    def _methods(self) -> Any:
        """The problem's methods, compiled by Numba when they are asked for."""
        from laso.engine.native.linking import Methods

        checked = has_checked_methods(self.problem, self.variant)
        return Methods(self.problem, full=self.variant.full, checked=checked)


def plain_engine(problem: type[CompiledProblem], variant: Variant) -> dict[str, Any]:
    """Returns the kernels as plain Python functions, with the methods of a problem."""
    flags = flags_of(problem, full=variant.full)
    space: dict[str, Any] = {}
    for module in variant.package.MODULES:
        space |= layout.plain(vars(module))
    functions = {
        name: types.FunctionType(value.__code__, space, name)
        for name, value in space.items()
        if inspect.isfunction(value) and value not in hashing.OVERLOADED
    }
    space |= functions
    space |= {name: getattr(problem, name) for name in NAMES}
    space |= {name: lambda value=value: value for name, value in flags.items()}
    return space


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
    kernels_of = _compiled.get(key)  # no lock: most calls end here
    if kernels_of is None:
        with _lock:
            if key not in _compiled:
                _compiled[key] = Kernels(*key)
            kernels_of = _compiled[key]
    return kernels_of


def is_loaded(problem: type[CompiledProblem]) -> bool:
    """Returns whether compiled code of a problem is in memory, so that all methods compile."""
    return any(each.problem is problem and each._loaded for each in [*_compiled.values()])


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
    """Says what takes seconds: to those who listen, else once for each problem on the screen."""
    is_heard = bool(_listeners) or problem in _announced
    _announced.add(problem)
    log.log(
        logging.INFO if is_heard else logging.WARNING,  # a warning is shown without any set-up
        "compiling %s (%s) for this computer, once: the next time it is in the cache",
        problem.__name__,
        entry,
    )
    for listener in [*_listeners]:
        listener(problem, entry)


def _is_set(variable: str, *, default: bool = False) -> bool:
    value = os.environ.get(variable, "")
    return default if value == "" else value != "0"
