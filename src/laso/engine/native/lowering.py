"""The engine, typed and lowered by Numba once for all problems: LLVM code with open places.

Typing and lowering take most of the time of a compilation. Here they leave the methods of a problem
(``limits``, ``features``, ...) and its flags as declarations, so that the result serves every
problem; ``linking`` fills the places in.

Importing this module imports Numba, so it is imported only to compile.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import types
from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types as of
from numba.core import compiler, compiler_machinery
from numba.core.compiler_lock import global_compiler_lock
from numba.core.funcdesc import FunctionDescriptor
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from laso.engine import hashing, layout
from laso.engine.native import calls, packed, parts
from laso.engine.native.load import Unsupported
from laso.engine.problem import FLAGS, NAMES, CompiledProblem

# Wrappers for calls from Python and C, which no inner function needs, are slow to compile.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
TESTED = ((0, 61), (0, 69))  # the inner parts of Numba used here are those of these versions


def check_version() -> None:
    """Raises Unsupported for a version of Numba with which this module has not been tested."""
    first, end = TESTED
    if not first <= numba.version_info.short < end:
        low, high = (".".join(map(str, version)) for version in TESTED)
        raise Unsupported(f"found Numba {numba.__version__}, expected {low} or newer, below {high}")


def options_for(*, checked: bool) -> dict[str, Any]:
    """Returns the options with which all functions are compiled.

    Kernels allocate nothing, so they do without reference counts, which take the most time.
    """
    return {"nogil": True, "error_model": "numpy", "boundscheck": checked, "_nrt": False}


class ForKernels(compiler.CompilerBase):  # type: ignore[misc]
    """Numba's passes without those for constructs that kernels do not have.

    Kernels have no closures, with statements, array expressions or ``literally``.
    """

    LEFT_OUT = frozenset(
        {
            "with_lifting",
            "inline_closure_likes",
            "make_function_op_code_to_jit_function",
            "find_literally",
            "literal_unroll",
            "LiteralPropagation",
            "inline_overloads",
            "nopython_rewrites",
            "annotate_types",
            "dump_parfor_diagnostics",
        }
    )

    def define_pipelines(self) -> list[Any]:
        """Returns the one pipeline."""
        manager = compiler_machinery.PassManager("kernels")
        default = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        for step, purpose in default.passes:
            if step.name() not in self.LEFT_OUT:
                manager.add_pass(step, purpose)
        manager.finalize()
        return [manager]


# --------------------------------------------------------------------------- open places


def symbol_of(name: str) -> str:
    """Returns the symbol of a method or flag of a problem."""
    return f"laso.{name}"


@functools.cache
def signatures() -> dict[str, Any]:
    """Returns the Numba types with which the engine calls each method."""
    ints = np.zeros(1, np.int32)
    longs = np.zeros(1, np.int64)
    x = numba.typeof(
        layout.Input(
            np.zeros((1, 1), np.int32),
            longs,
            np.zeros(1, np.float32),
            longs,
            layout.NO_COSTS,
            layout.NO_VECTORS,
            layout.NO_VECTORS,
        )
    )
    out = numba.typeof(layout.Out(longs, np.zeros(1)))
    state, y, i, flag = numba.typeof(ints), numba.typeof(ints), numba.int64, numba.boolean
    group = i
    step = (x, state, group, i)
    return {
        "limits": (x, numba.typeof(longs)),
        "initial": (x, state),
        "groups": (x, state, numba.typeof(ints)),
        "factors": (x, state, group, i),
        "choices": (x, state, group, numba.typeof(ints)),
        "block": (x, state, group),
        "sub_block": (x, i, i),
        "block_features": (x, i, out),
        "vectors": (x, i, i),
        "features": (x, state, group, out),
        "name": (x, state, group, i),
        "allowed": step,
        "apply": (*step, state),
        "is_goal": (x, state),
        "is_good": (x, y, state, group, i),
        "loss": (x, y, state, group, i, flag, flag),
        "key": step,
        "signature": step,
    }


RESULTS = {
    "int": of.int64,
    "bool": of.boolean,
    "float": of.float64,
    "tuple[int, int]": of.UniTuple(of.int64, 2),
    "None": of.none,
}


def declared_result(name: str) -> str:
    """Returns the result type of a method as CompiledProblem declares it."""
    kind: str = getattr(CompiledProblem, name).__annotations__["return"]
    return kind


def result_of(name: str) -> Any:
    """Returns the Numba type of a method's result."""
    return RESULTS[declared_result(name)]


def _declared_method(name: str) -> Any:
    """Returns a function for kernels that calls a method of the problem to be linked later."""
    kinds, result = signatures()[name], result_of(name)
    names = [f"a{i}" for i in range(len(kinds))]
    described = FunctionDescriptor(
        native=True,
        modname=None,
        qualname=name,
        unique_name=name,
        doc="",
        typemap=None,
        restype=result,
        calltypes=None,
        args=names,
        kws=None,
        mangler=lambda *_, **__: symbol_of(name),
        argtypes=kinds,
        global_dict={},
    )

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return context.call_internal(builder, described, signature, values)

    space: dict[str, Any] = {"typed": lambda: (result(*kinds), lower)}
    exec(f"def method(context, {', '.join(names)}): return typed()", space)  # by their number
    return intrinsic(space["method"])


def _declared_flag(name: str) -> Any:
    """Returns a function for kernels: a constant of the problem to be linked later."""

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        module, byte = builder.module, ir.IntType(8)
        constant = module.globals.get(symbol_of(name))
        if constant is None:
            constant = ir.GlobalVariable(module, byte, symbol_of(name))
            constant.global_constant = True
        return builder.icmp_unsigned("!=", builder.load(constant), byte(0))

    return intrinsic(lambda context: (of.boolean(), lower))


# --------------------------------------------------------------------------- the engine


@functools.cache
def engine(package: types.ModuleType, *, checked: bool) -> dict[str, Any]:
    """Returns the functions of a package of kernels, ready to be lowered, in their namespace."""
    hashing.teach_numba()
    options = options_for(checked=checked)
    owners = {module.__name__ for module in package.MODULES}
    space: dict[str, Any] = {}
    for module in package.MODULES:
        space |= layout.plain(vars(module))
    space |= {name: _declared_method(name) for name in NAMES}
    space |= {name: _declared_flag(name) for name in FLAGS}
    for name, function in [*space.items()]:
        if not inspect.isfunction(function) or function.__module__ not in owners:
            continue
        copied = types.FunctionType(function.__code__, space, name)
        if name in package.ENTRY_POINTS:
            space[name] = numba.njit(copied, inline="always", **options)
        else:
            inner: dict[str, Any] = {"forceinline": name in package.INLINED, **INNER}
            space[name] = general(numba.njit(copied, pipeline_class=ForKernels, **inner, **options))
    return space


def general(function: Any) -> Any:
    """Lets a function be compiled once for all integers; Numba would do so for each constant."""
    call_template = function.get_call_template

    def general_template(arguments: Any, keywords: Any) -> Any:
        kinds = [of.unliteral(kind) for kind in arguments]
        kinds = [of.int64 if kind == of.int32 else kind for kind in kinds]
        return call_template(tuple(kinds), keywords)

    function.get_call_template = general_template
    return function


def _taken(kinds: tuple[Any, ...]) -> Any:
    """Returns a function for compiled code: the arguments, from the numbers that describe them."""

    @intrinsic  # type: ignore[untyped-decorator]
    def taken(_: Any, numbers: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            offset, taken = calls.FIRST, []
            for kind in kinds:
                taken.append(packed.loaded(context, builder, kind, values[0], offset))
                offset += packed.width(kind)
            return context.make_tuple(builder, signature.return_type, taken)

        return of.Tuple(kinds)(numbers), lower

    return taken


@intrinsic  # type: ignore[untyped-decorator]
def _give(_: Any, numbers: Any, results: Any) -> Any:
    """Writes the results, integers or nothing, where the caller finds them."""
    kinds = () if results == of.none else tuple(results)

    def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        given = [context.get_constant(of.int64, len(kinds))]
        for i, kind in enumerate(kinds):
            value = builder.extract_value(values[1], i)
            given.append(context.cast(builder, value, kind, of.int64))
        for i, value in enumerate(given):
            builder.store(value, builder.gep(values[0], [context.get_constant(of.intp, i)]))
        return context.get_dummy_value()

    return of.none(numbers, results), lower


def _start(entry: Any, kinds: tuple[Any, ...]) -> Any:
    """Returns a function of one pointer that calls an entry point: see ``calls``."""
    # Spelt out, since Numba inlines no call with a starred argument.
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    space = {"taken": _taken(kinds), "entry": entry, "give": _give}
    exec(f"def start(numbers):\n ({names}) = taken(numbers)\n give(numbers, entry({names}))", space)
    return space["start"]


def lowered(entry: Any, arguments: tuple[Any, ...]) -> tuple[str, bytes]:
    """Returns symbol and LLVM bitcode of an entry point for arguments of these types."""
    start = _start(entry, tuple(packed.passed(numba.typeof(argument)) for argument in arguments))
    with compiling():
        symbol, module = lowered_function(start, (of.CPointer(of.int64),), of.none)
        module.get_function(symbol).linkage = "external"
        return symbol, module.as_bitcode()


def lowered_function(function: Any, kinds: tuple[Any, ...], result: Any, **more: Any) -> Any:
    """Returns symbol and LLVM module of a function with all that it calls, not optimised."""
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    for name, value in more.items():
        setattr(flags, name, value)
    result_code = compiler.compile_extra(
        cpu_target.typing_context,
        cpu_target.target_context,
        function,
        args=kinds,
        return_type=result,
        flags=flags,
        locals={},
    )
    result_code.library.finalize()
    symbol = result_code.fndesc.llvm_func_name
    return symbol, parts.linked(result_code.library, symbol)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Takes Numba's lock, lets it make parts only, and turns the garbage collector off.

    Compilation makes millions of objects that stay.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        with global_compiler_lock, parts.only_parts():
            yield
    finally:
        if was_on:
            gc.enable()
