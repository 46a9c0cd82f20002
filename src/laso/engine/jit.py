"""What Numba does: compile the engine with a problem, turn it into object code, explain errors.

Importing this module imports Numba. ``compile`` does so only when something must be compiled.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba import types as of
from numba._dynfunc import make_function
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError
from numba.core.registry import cpu_target
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from laso.engine import hashing, kernels, layout, native
from laso.engine.problem import NAMES, CompiledProblem, is_factored

if TYPE_CHECKING:
    from laso.engine.compile import Variant

# Wrappers for calls from Python and C, which no inner function needs, are slow to compile.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class Engine:
    """The engine for a problem, which Numba compiles function by function as they are called.

    ``mark`` is its hash. What is compiled is kept in ``folder``, if there is one.
    """

    def __init__(
        self,
        problem: type[CompiledProblem],
        variant: Variant,
        mark: str,
        folder: Path | None = None,
    ) -> None:
        hashing.teach_numba()
        options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
        options["boundscheck"] = variant.checked
        # Kernels allocate nothing, so they do without reference counts, which take the most time.
        options["_nrt"] = False
        package = variant.package
        owners = {module.__name__ for module in package.MODULES}
        space: dict[str, Any] = {}
        for module in package.MODULES:
            space |= layout.plain(vars(module))
        space["WEIGHTED"] = bool(problem.weighted)
        space["FULL"] = variant.full
        space["FACTORED"] = is_factored(problem)
        made: dict[Any, Any] = {}
        for name in NAMES:
            space[name] = _jitted(getattr(problem, name), options, made, mark)
        with _cache_in(folder):
            for name, function in list(space.items()):
                if name in NAMES:
                    continue
                if inspect.isfunction(function) and function.__module__ in owners:
                    own = types.FunctionType(function.__code__, space, name)
                    own.__qualname__ = f"{name}_{mark}"  # all code loaded has one table of symbols
                    if name not in variant.entries:
                        inner = {"forceinline": name in package.INLINED, **INNER}
                        space[name] = numba.njit(own, **inner, **options)
                    elif folder:
                        space[name] = numba.njit(own, cache=True, **options)
                    else:
                        space[name] = numba.njit(own, inline="always", **options)
        self.entries = {name: space[name] for name in variant.entries}
        self.helpers = {name: space[name] for name in NAMES}


@contextlib.contextmanager
def _cache_in(folder: Path | None) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or before)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def _jitted(function: Any, options: dict[str, Any], made: dict[Any, Any], mark: str) -> Any:
    """A function compiled with the plain functions it calls, so that users need no decorator."""
    if function not in made:
        namespace = layout.plain(function.__globals__)
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


def object_code(entry: Any, arguments: tuple[Any, ...]) -> tuple[str, bytes]:
    """An entry point for arguments of these types as ``native`` calls it: symbol and object."""
    kinds = tuple(numba.typeof(argument) for argument in arguments)

    @intrinsic  # type: ignore[untyped-decorator]
    def taken(_: Any, numbers: Any) -> Any:
        """The arguments, from the numbers that describe them."""

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            index = itertools.count(native.FIRST)

            def number() -> Any:
                where = context.get_constant(of.intp, next(index))
                return builder.load(builder.gep(values[0], [where]))

            def value(kind: Any) -> Any:
                if isinstance(kind, of.BaseTuple):
                    return context.make_tuple(builder, kind, [value(part) for part in kind.types])
                if isinstance(kind, of.Array):
                    made = context.make_array(kind)(context, builder)
                    data = builder.inttoptr(number(), made.data.type)
                    shape = [number() for _ in range(kind.ndim)]
                    strides = [number() for _ in range(kind.ndim)]
                    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
                    populate_array(made, data, shape, strides, size, None)
                    return made._getvalue()
                if isinstance(kind, of.Float):
                    bits = builder.bitcast(number(), context.get_value_type(of.float64))
                    return context.cast(builder, bits, of.float64, kind)
                return context.cast(builder, number(), of.int64, kind)

            return context.make_tuple(builder, signature.return_type, [value(k) for k in kinds])

        return of.Tuple(kinds)(numbers), lower

    @intrinsic  # type: ignore[untyped-decorator]
    def give(_: Any, numbers: Any, results: Any) -> Any:
        """Write integers, or nothing, where the caller finds them."""
        parts = () if results == of.none else tuple(results)

        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = [context.get_constant(of.int64, len(parts))]
            for i, part in enumerate(parts):
                value = builder.extract_value(values[1], i)
                found.append(context.cast(builder, value, part, of.int64))
            for i, value in enumerate(found):
                builder.store(value, builder.gep(values[0], [context.get_constant(of.intp, i)]))
            return context.get_dummy_value()

        return of.none(numbers, results), lower

    # Spelt out, since Numba inlines no call with a starred argument.
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    space = {"taken": taken, "entry": entry, "give": give}
    exec(f"def start(numbers):\n ({names}) = taken(numbers)\n give(numbers, entry({names}))", space)
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    with global_compiler_lock:
        with _only_linked():
            made = compiler.compile_extra(
                cpu_target.typing_context,
                cpu_target.target_context,
                space["start"],
                args=(of.CPointer(of.int64),),
                return_type=of.none,
                flags=flags,
                locals={},
            )
        made.library.enable_object_caching()
        # Numba optimises twice, first in search of reference counts to remove: there are none.
        made.library._optimize_final_module = lambda: _optimise(made.library)
        made.library.finalize()
    _, _, (code, _) = made.library.serialize_using_object_code()
    return made.fndesc.llvm_func_name, code


@contextlib.contextmanager
def _only_linked() -> Iterator[None]:
    """Meanwhile Numba neither optimises functions as a whole nor makes machine code of them.

    All of them become part of one, which is optimised when it is complete. To do so with each part
    before takes as long again, and what comes out is slower.
    """

    def finished(library: Any) -> None:
        library._finalized = True

    def handle(library: Any, function: Any, environment: Any) -> Any:
        """What Numba knows a function by; it cannot be called."""
        name = function.qualname
        return make_function(function.lookup_module(), name, "", 0, environment, (library,))

    context = cpu_target.target_context
    changed = {"_optimize_final_module": lambda _: None, "_finalize_final_module": finished}
    before = {name: getattr(JITCodeLibrary, name) for name in changed}
    for name, function in changed.items():
        setattr(JITCodeLibrary, name, function)
    context.get_executable = handle
    try:
        yield
    finally:
        for name, function in before.items():
            setattr(JITCodeLibrary, name, function)
        del context.get_executable


def _optimise(library: Any) -> None:
    passes, builder = library._codegen._module_pass_manager()
    passes.run(library._final_module, builder)


def explained(problem: type[CompiledProblem], engine: Engine, error: NumbaError) -> str:
    """Which function of the problem is at fault, where, and why, without Numba's internals."""
    for name, types_of in _signatures().items():
        helper = engine.helpers[name]
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
    for file, line in re.findall(r'^File "(.*)", line (\d+):', _plain(error), re.MULTILINE):
        path = file if file.startswith("<") else os.path.abspath(file)
        if Path(numba.__file__).parent not in Path(path).parents:
            return f"{path}:{line}"
    return f"{inspect.getsourcefile(function) or '?'}:{function.__code__.co_firstlineno}"


def _plain(error: NumbaError) -> str:
    """Numba's message without colours, which it has where colorama is installed."""
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _reason(error: NumbaError) -> str:
    """The head of Numba's message, which goes on with what it tried."""
    text = _plain(error)
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
        "labels": (x, i),
        "factors": (x, state, group, i),
        "block": (x, state, group),
        "sub_block": (x, i, i),
        "block_features": (x, i, out),
        "features": (x, state, group, out),
        "allowed": step,
        "apply": (*step, state),
        "is_goal": (x, state),
        "is_good": (x, y, state, group, i),
        "loss": (x, y, state, group, i, flag, flag),
        "key": step,
        "signature": step,
    }
