"""Compile the engine together with a problem, and cache the result by a hash of all sources.

Each combination of engine and problem has a folder named after the hash of everything that enters
it, so an edit anywhere leads to another folder, and several processes may fill one at once (files
are renamed into place). Where ``native`` can run the code, a folder has an object file for each
entry point and types of arguments, and Numba is imported only to make one. Elsewhere Numba keeps
its own cache there.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import inspect
import itertools
import logging
import os
import platform
import shutil
import tempfile
import threading
import time
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from laso.engine import hashing, kernels, lattice, layout, native
from laso.engine.problem import NAMES, REQUIRED, CompiledProblem
from laso.errors import LasoError

log = logging.getLogger(__name__)

KEEP_DAYS = 60
KEEP_FOLDERS = 40

_lock = threading.RLock()
_compiled: dict[tuple[type[CompiledProblem], Variant], Kernels] = {}


class CompileError(LasoError):
    """A function of a problem is outside the Numba subset; the message names it and the line."""


class Variant(NamedTuple):
    """Which engine: see ``compiled``; ``checked`` is for the bounds of arrays."""

    full: bool
    exact: bool
    checked: bool

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of its entry points."""
        names: tuple[str, ...] = self.package.ENTRY_POINTS
        return names

    @property
    def package(self) -> types.ModuleType:
        """The package that declares what makes up its compiled code."""
        return lattice if self.exact else kernels


PLAIN = Variant(full=False, exact=False, checked=False)


class Kernels:
    """The engine's entry points for one problem, each loaded or compiled when first called."""

    def __init__(self, problem: type[CompiledProblem], variant: Variant) -> None:
        for name in REQUIRED:
            if getattr(problem, name) is getattr(CompiledProblem, name):
                raise CompileError(f"{problem.__name__} needs a static method {name}")
        self.problem, self.variant = problem, variant
        self.entries = variant.entries
        self.mark = fingerprint(problem, variant)
        self.folder = _folder(problem, self.mark)
        self.is_native = (
            native.possible() and not variant.checked and not _is_set("NUMBA_DISABLE_JIT")
        )
        self._loaded: dict[tuple[str, str], native.Function] = {}
        self._engines: dict[bool, Any] = {}

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Call an entry point."""
        if self.is_native:
            signature, numbers = native.described(arguments)
            function = self._loaded.get((name, signature)) or self._load(name, signature, arguments)
            if function:
                return function(numbers)
        with self._numba(cached=True) as engine:
            return engine.entries[name](*arguments)

    def _load(
        self, name: str, signature: str, arguments: tuple[Any, ...]
    ) -> native.Function | None:
        """An entry point from the cache, or compiled into it; None if only Numba can run it."""
        file = self.folder / native.file_name(name, signature)
        with _lock:
            try:
                if (name, signature) not in self._loaded:
                    found = native.read(file) or self._compile(name, arguments, file)
                    self._loaded[name, signature] = native.linked(*found)
            except native.Unsupported as error:
                log.debug("%s runs by Numba: %s", self.problem.__name__, error)
                self.is_native = False
        return self._loaded.get((name, signature))

    def _compile(self, name: str, arguments: tuple[Any, ...], file: Path) -> tuple[str, bytes]:
        from numba.core.errors import NumbaError

        from laso.engine.jit import object_code

        with self._numba(cached=False) as engine:
            try:
                found = object_code(engine.entries[name], arguments)
            except NumbaError:
                raise
            except Exception as error:  # a version of Numba whose inner parts differ
                raise native.Unsupported(f"no object code: {error!r}") from error
        try:
            native.save(file, *found)
        except OSError as error:
            _warn(file.parent, error.strerror)
        return found

    @contextlib.contextmanager
    def _numba(self, *, cached: bool) -> Iterator[Any]:
        """Numba's functions; an error of compilation is put down to the function at fault."""
        from numba.core.errors import NumbaError

        from laso.engine import jit

        with _lock:
            if cached not in self._engines:
                folder = _writable(self.folder) if cached else None
                self._engines[cached] = jit.Engine(self.problem, self.variant, self.mark, folder)
        engine = self._engines[cached]
        try:
            yield engine
        except NumbaError as error:
            raise CompileError(jit.explained(self.problem, engine, error)) from error


def compiled(problem: type[CompiledProblem], *, full: bool = False, exact: bool = False) -> Kernels:
    """The engine for a problem, made once a process and compiled (or loaded) at the first call.

    ``full`` is for strategies that decode in full before they update; the others compile faster
    without that code. ``exact`` is for the lattice, which has entry points of its own.
    """
    with _lock:
        variant = Variant(full, exact, _is_set("LASO_BOUNDS_CHECK"))
        if (problem, variant) not in _compiled:
            _compiled[problem, variant] = Kernels(problem, variant)
        return _compiled[problem, variant]


def _is_set(variable: str) -> bool:
    return os.environ.get(variable, "") not in ("", "0")


# --------------------------------------------------------------------------- the cache


def cache_root() -> Path:
    """Where compiled code is kept: LASO_CACHE, or the user's cache folder."""
    if os.environ.get("LASO_CACHE"):
        return Path(os.environ["LASO_CACHE"]) / "kernels"
    from platformdirs import user_cache_path

    return Path(user_cache_path("laso")) / "kernels"


def _folder(problem: type[CompiledProblem], mark: str) -> Path:
    """The folder for a problem, made if it can be: one that is only read will do as well."""
    root = cache_root()
    folder = root / f"{problem.__name__}-{mark}"
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "used").touch()
        _prune(root, folder)
    return folder


def _writable(folder: Path) -> Path:
    """A folder, or one for this process only if it cannot be written."""
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        _warn(folder, error.strerror)
        folder = Path(tempfile.mkdtemp(prefix="laso-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@functools.cache
def _warn(folder: Path, reason: str) -> None:
    """Say once what happens to each entry point."""
    log.warning("cannot write the cache %s (%s): compiling for this process only", folder, reason)


def _prune(root: Path, current: Path) -> None:
    """Remove folders that nobody has used for long, and the oldest beyond a number."""
    with contextlib.suppress(OSError):
        ages = sorted(
            (
                (time.time() - (folder / "used").stat().st_mtime, folder)
                for folder in root.iterdir()
                if (folder / "used").exists() and folder != current
            ),
            key=lambda pair: pair[0],
        )
        for n, (age, folder) in enumerate(ages):
            if age > KEEP_DAYS * 86400 or n >= KEEP_FOLDERS:
                shutil.rmtree(folder, ignore_errors=True)


def fingerprint(problem: type[CompiledProblem], variant: Variant = PLAIN) -> str:
    """A hash of all that the compiled code depends on."""
    digest = hashlib.sha256()
    versions = importlib.metadata.version("numba"), np.__version__
    digest.update(repr((versions, _processor(), variant, problem.weighted)).encode())
    for name in ("compile", "jit", "native"):
        digest.update(Path(__file__).with_name(f"{name}.py").read_bytes())
    for module in (hashing, layout, kernels, variant.package, *variant.package.MODULES):
        digest.update(Path(module.__file__).read_bytes())
    seen: set[int] = set()
    for name in NAMES:
        _hash_function(getattr(problem, name), digest, seen)
    return digest.hexdigest()[:16]


@functools.cache
def _processor() -> tuple[str, ...]:
    """What the code is compiled for, without asking LLVM: the processor and what it can do."""
    told = [
        f"{name}={os.environ.get(name)}"
        for name in ("NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT")
    ]
    try:
        with open("/proc/cpuinfo") as lines:
            first = [*itertools.takewhile(str.strip, lines)]  # as far as the next processor
    except OSError:
        first = [platform.processor()]
    kept = [
        line
        for line in first
        if line.startswith(("cpu family", "model", "flags", "Features", "CPU"))
    ]
    return (platform.machine(), *told, *kept)


def _hash_function(function: Any, digest: Any, seen: set[int]) -> None:
    """Code, constants, defaults, closure, and whatever globals a function names, all the way."""
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
            for value in _meant(name, function.__globals__, code.co_names):
                _hash_value(name, value, digest, seen)
    digest.update(repr(function.__defaults__).encode())
    for cell in function.__closure__ or ():
        _hash_value("", cell.cell_contents, digest, seen)


def _meant(name: str, namespace: dict[str, Any], names: Sequence[str]) -> Iterator[Any]:
    """What a name may mean; of a module, what the other names mean in it."""
    value = namespace.get(name)
    if isinstance(value, types.ModuleType):
        for other in names:
            if other != name:
                yield from _meant(other, vars(value), [n for n in names if n != name])
    else:
        yield value


def _hash_value(name: str, value: Any, digest: Any, seen: set[int]) -> None:
    if inspect.isfunction(getattr(value, "py_func", value)):
        _hash_function(value, digest, seen)
    elif isinstance(value, np.ndarray):
        digest.update(repr((name, value.dtype, value.shape)).encode() + value.tobytes())
    elif isinstance(value, int | float | str | bytes | tuple | bool | np.generic):
        digest.update(repr((name, value)).encode())
