"""Compile the engine together with a problem, and cache the result by a hash of all sources.

Numba's own cache does not notice an edit in another file. Here each combination of engine and
problem has a folder named after the hash of everything that enters it, so an edit anywhere leads
to another folder, and several processes may fill one at once (Numba renames into place).
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import logging
import os
import re
import shutil
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError

from laso.engine import hashing, kernels, lattice, layout
from laso.engine.problem import NAMES, REQUIRED, CompiledProblem
from laso.errors import LasoError

log = logging.getLogger(__name__)

ENTRIES = ("learn_many", "decode_many", "largest")
# Called for each feature or label: a call costs more than the work, since arrays travel by value.
INLINED = {
    "expand",
    "score_labels",
    "remove_front",
    "open_round",
    "make_state",
    "new_node",
    "size",
    "find",
    "add_rows",
    "place_for",
    "insert",
    "drop_last",
    "step_to",
    "row_of",
    "add_entry",
    "count_good",
    "shortened",
} | lattice.INLINE
# Wrappers for calls from Python and C, which no inner function needs, are slow to compile.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
MODULES = {kernels.__name__, lattice.__name__}
KEEP_DAYS = 60
KEEP_FOLDERS = 40

_lock = threading.RLock()
_compiled: dict[tuple[type[CompiledProblem], bool, bool], Kernels] = {}


class CompileError(LasoError):
    """A function of a problem is outside the Numba subset; the message names it and the line."""


@dataclass(frozen=True)
class Kernels:
    """The engine's entry points, compiled for one problem."""

    problem: type[CompiledProblem]
    entries: dict[str, Callable[..., Any]]
    helpers: dict[str, Callable[..., Any]]

    def __call__(self, name: str, *arguments: Any) -> Any:
        """Call an entry point; an error of compilation is put down to the function at fault."""
        try:
            return self.entries[name](*arguments)
        except NumbaError as error:
            raise CompileError(_explained(self.problem, self.helpers, error)) from error


def compiled(problem: type[CompiledProblem], *, full: bool = False, exact: bool = False) -> Kernels:
    """The engine for a problem, made once a process and compiled (or loaded) at the first call.

    ``full`` is for strategies that decode in full before they update; the others compile faster
    without that code. ``exact`` is for the lattice, which has entry points of its own.
    """
    with _lock:
        if (problem, full, exact) not in _compiled:
            _compiled[problem, full, exact] = _compile(problem, full, exact)
        return _compiled[problem, full, exact]


def _compile(problem: type[CompiledProblem], full: bool, exact: bool) -> Kernels:
    for name in REQUIRED:
        if getattr(problem, name) is getattr(CompiledProblem, name):
            raise CompileError(f"{problem.__name__} needs a static method {name}")
    checked = os.environ.get("LASO_BOUNDS_CHECK", "") not in ("", "0")
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "boundscheck": checked}
    # Kernels allocate nothing, so they do without reference counts, which cost most of the time.
    options["_nrt"] = False
    modules = (kernels, lattice) if exact else (kernels,)
    entries = lattice.ENTRY_POINTS if exact else ENTRIES
    # A function of the lattice takes the place of one of the kernels that has its name.
    namespace: dict[str, Any] = {name: v for module in modules for name, v in vars(module).items()}
    namespace["WEIGHTED"] = bool(problem.weighted)
    namespace["FULL"] = full
    helpers: dict[Any, Any] = {}
    mark = fingerprint(problem, (checked, full, exact))
    for name in NAMES:
        namespace[name] = _jitted(getattr(problem, name), options, helpers, mark)
    with _cache_folder(_folder(problem, mark)):
        for name, function in list(namespace.items()):
            if name in NAMES:
                continue
            if inspect.isfunction(function) and function.__module__ in MODULES:
                own = types.FunctionType(function.__code__, namespace, name)
                own.__qualname__ = f"{name}_{mark}"  # all code loaded shares one table of symbols
                if name in entries:
                    namespace[name] = numba.njit(own, cache=True, **options)
                else:
                    namespace[name] = numba.njit(
                        own, forceinline=name in INLINED, **INNER, **options
                    )
    return Kernels(
        problem,
        {name: namespace[name] for name in entries},
        {name: namespace[name] for name in NAMES},
    )


def _jitted(function: Any, options: dict[str, Any], made: dict[Any, Any], mark: str) -> Any:
    """A function compiled with the plain functions it calls, so that users need no decorator."""
    if function not in made:
        namespace = dict(function.__globals__)
        # The cache names the module, which must be there when it is read: a notebook's is not.
        namespace["__name__"] = kernels.__name__
        own = types.FunctionType(
            function.__code__,
            namespace,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        own.__qualname__ = f"{function.__name__}_{len(made)}_{mark}"
        made[function] = numba.njit(own, forceinline=True, **INNER, **options)
        for name in function.__code__.co_names:
            value = namespace.get(name)
            if inspect.isfunction(value) and value not in hashing.OVERLOADED:
                namespace[name] = _jitted(value, options, made, mark)
    return made[function]


def cache_root() -> Path:
    """Where compiled code is kept: LASO_CACHE, or the user's cache folder."""
    if os.environ.get("LASO_CACHE"):
        return Path(os.environ["LASO_CACHE"]) / "kernels"
    from platformdirs import user_cache_path

    return Path(user_cache_path("laso")) / "kernels"


def _folder(problem: type[CompiledProblem], mark: str) -> Path:
    root = cache_root()
    folder = root / f"{problem.__name__}-{mark}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "used").touch()
    except OSError as error:
        log.warning("cannot write the cache %s (%s): compiling for this process only", root, error)
        return Path(tempfile.mkdtemp(prefix="laso-"))
    _prune(root, folder)
    return folder


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


@contextlib.contextmanager
def _cache_folder(folder: Path) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def fingerprint(problem: type[CompiledProblem], variant: tuple[bool, ...] = ()) -> str:
    """A hash of all that the compiled code depends on."""
    digest = hashlib.sha256()
    digest.update(repr((numba.__version__, np.__version__, variant, problem.weighted)).encode())
    for module in (kernels, lattice, layout, hashing):
        digest.update(Path(inspect.getfile(module)).read_bytes())
    digest.update(Path(__file__).read_bytes())
    seen: set[int] = set()
    for name in NAMES:
        _hash_function(getattr(problem, name), digest, seen)
    return digest.hexdigest()[:16]


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


def _explained(problem: type[CompiledProblem], helpers: dict[str, Any], error: NumbaError) -> str:
    """Which function of the problem is at fault, where, and why, without Numba's internals."""
    for name, types_of in _signatures().items():
        helper = helpers[name]
        try:
            helper.compile(types_of)
        except NumbaError as own:
            return (
                f"{problem.__name__}.{name} cannot be compiled: {_reason(own)}\n"
                f"  {_place(own, helper.py_func)}"
            )
    return f"{problem.__name__} cannot be compiled: {_reason(error)}"


def _place(error: NumbaError, function: Any) -> str:
    """File and line at fault: the innermost that Numba names outside itself comes first."""
    for file, line in re.findall(r'^File "(.*)", line (\d+):', str(error), re.MULTILINE):
        path = file if file.startswith("<") else os.path.abspath(file)
        if Path(numba.__file__).parent not in Path(path).parents:
            return f"{path}:{line}"
    return f"{inspect.getsourcefile(function) or '?'}:{function.__code__.co_firstlineno}"


def _reason(error: NumbaError) -> str:
    """The head of Numba's message, which goes on with what it tried."""
    text = str(error)
    useful = []
    for line in (line.strip() for line in text.splitlines()):
        if line.startswith(("There are", 'File "', "During:", "- ", "Enable")):
            break
        if line and not line.startswith("Failed in"):
            useful.append(line)
    if "NRT required" in text or "Only accept returning of array" in text:
        useful.append("(the functions of a problem cannot make arrays, lists or dictionaries)")
    return " ".join(useful) or text


def _signatures() -> dict[str, Any]:
    """The Numba types with which the engine calls each function."""
    of = numba.typeof
    ints = np.zeros(1, np.int32)
    longs = np.zeros(1, np.int64)
    x = of(layout.Input(np.zeros((1, 1), np.int32), longs, np.zeros(1, np.float32), longs))
    out = of(layout.Out(longs, np.zeros(1)))
    state, y, i, flag = of(ints), of(ints), numba.int64, numba.boolean
    group = numba.int32
    step = (x, state, group, i)
    return {
        "limits": (x, of(longs)),
        "initial": (x, state),
        "groups": (x, state, of(ints)),
        "cell": (x, state, group),
        "shared": (x, state, group, out),
        "features": (x, state, group, out),
        "allowed": step,
        "apply": (*step, state),
        "is_goal": (x, state),
        "is_good": (x, y, state, group, i),
        "loss": (x, y, state, group, i, flag, flag),
        "key": step,
        "signature": step,
    }
