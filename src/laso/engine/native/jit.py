"""Compiles the engine together with a problem, by Numba, into object code.

Importing this module imports Numba, so it is imported only to compile.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import inspect
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numba
import numpy as np
from llvmlite import binding
from numba import types as of
from numba.core import compiler, compiler_machinery, event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from laso.engine import hashing, layout
from laso.engine.native import calls, packed, parts
from laso.engine.native.checks import CompileError, place_of
from laso.engine.native.common import Common
from laso.engine.native.load import Unsupported
from laso.engine.native.sources import Variant
from laso.engine.problem import (
    NAMES,
    CompiledProblem,
    has_fingerprints,
    has_segments,
    is_capped,
    is_factored,
    is_foreign,
    is_grouped,
    is_narrowed,
    is_shared,
)

# Wrappers for calls from Python and C, which no inner function needs, are slow to compile.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
# Not only a NumbaError: unsupported bytecode raises an error of its own.
ERRORS = (NumbaError, UnsupportedBytecodeError)
TESTED = ((0, 61), (0, 69))  # the inner parts of Numba used here are those of these versions


def check_version() -> None:
    """Raises Unsupported for a version of Numba with which this module has not been tested."""
    first, end = TESTED
    if not first <= numba.version_info.short < end:
        raise Unsupported(f"Numba {numba.__version__} has not been tested with this version")


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


def constants_of(problem: type[CompiledProblem], variant: Variant) -> dict[str, bool]:
    """Returns the constants in kernels by which they leave out what a problem does not need."""
    weighted, segments = bool(problem.weighted), has_segments(problem)
    return {
        "WEIGHTED": weighted,
        "FULL": variant.full,
        "FACTORED": is_factored(problem),
        "GROUPED": is_grouped(problem) and not weighted,
        "NARROWED": is_narrowed(problem),
        "KEPT": has_fingerprints(problem),
        "SHARED": is_shared(problem) and not weighted,
        "SEGMENTS": segments,
        "KEY_OF_GROUP": bool(problem.key_of_group),
        "WHOLE": not problem.partial_states and not segments,
        "CAPPED": is_capped(problem),
    }


class Engine:
    """The engine for a problem, which Numba compiles function by function as they are called.

    Parameters
    ----------
    problem : type[CompiledProblem]
    variant : Variant
    fingerprint : str
        The hash of all sources; it becomes part of the names of the compiled functions.
    folder : Path, optional
        Where Numba keeps its own cache; by default it keeps none.
    """

    def __init__(
        self,
        problem: type[CompiledProblem],
        variant: Variant,
        fingerprint: str,
        *,
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
        constants = constants_of(problem, variant)
        space |= constants
        made: dict[Any, Any] = {}
        for name in NAMES:
            space[name] = _jitted(getattr(problem, name), options, made, fingerprint)
        functions = {
            name: value
            for name, value in space.items()
            if inspect.isfunction(value) and value.__module__ in owners and name not in NAMES
        }
        common = Common(functions, {**space}, constants=constants, own=NAMES)

        def kernel(name: str, function: Any) -> Any:
            inner: dict[str, Any] = {"forceinline": name in package.INLINED, **INNER}
            return _general(numba.njit(function, pipeline_class=ForKernels, **inner, **options))

        with _cache_in(folder):
            for name, function in functions.items():
                own = types.FunctionType(function.__code__, space, name)
                # All code that Numba loads shares one table of symbols.
                own.__qualname__ = f"{name}_{fingerprint}"
                if name in variant.entry_points:
                    how: dict[str, Any] = {"cache": True} if folder else {"inline": "always"}
                    space[name] = numba.njit(own, **how, **options)
                elif folder or not common.is_common(name):
                    space[name] = kernel(name, own)
                else:
                    space[name] = common.made(name, (package, variant.checked), kernel)
        self.problem = problem
        self._checked = False
        self.entries = {name: space[name] for name in variant.entry_points}
        self.helpers = {name: space[name] for name in NAMES}

    def prepare(
        self, name: str, arguments: tuple[Any, ...], announce: Callable[[], object]
    ) -> None:
        """Loads an entry point from Numba's cache, or checks the problem and compiles it."""
        entry, check = self.entries[name], self.check
        if numba.config.DISABLE_JIT:
            return

        class Compiling(event.Listener):  # type: ignore[misc]
            def on_start(self, happening: Any) -> None:
                if happening.data["dispatcher"] is entry:
                    announce()
                    check()

            def on_end(self, happening: Any) -> None:
                pass

        with event.install_listener("numba:compile", Compiling()):
            entry.compile(tuple(numba.typeof(argument) for argument in arguments))

    def check(self) -> None:
        """Compiles the methods of a user's problem one by one.

        So mistakes are found before the engine is compiled, which takes much longer. The engine
        uses the methods as compiled here, wherever it calls them with the same types.
        """
        if not self._checked and is_foreign(self.problem):
            for name in NAMES:
                self.compile_method(name)
        self._checked = True

    def compile_method(self, name: str) -> None:
        """Compiles a method as the engine calls it, and checks the type that it returns."""
        method, types_of = self.helpers[name], signatures()[name]
        method.compile(types_of)
        result = method.overloads[types_of].signature.return_type
        check_return(self.problem, name, method, result)


@functools.cache
def signatures() -> dict[str, Any]:
    """Returns the Numba types with which the engine calls each method."""
    ints = np.zeros(1, np.int32)
    longs = np.zeros(1, np.int64)
    x = numba.typeof(
        layout.Input(np.zeros((1, 1), np.int32), longs, np.zeros(1, np.float32), longs)
    )
    out = numba.typeof(layout.Out(longs, np.zeros(1)))
    state, y, i, flag = numba.typeof(ints), numba.typeof(ints), numba.int64, numba.boolean
    group = i
    step = (x, state, group, i)
    return {
        "limits": (x, numba.typeof(longs)),
        "initial": (x, state),
        "groups": (x, state, numba.typeof(ints)),
        "labels": (x, i),
        "factors": (x, state, group, i),
        "n_choices": (x, state, group),
        "choice": (x, state, group, i),
        "block": (x, state, group),
        "sub_block": (x, i, i),
        "content": (x, i),
        "block_features": (x, i, out),
        "features": (x, state, group, out),
        "features_of_state": (x,),
        "fingerprint": (x, state, group),
        "allowed": step,
        "apply": (*step, state),
        "is_goal": (x, state),
        "is_good": (x, y, state, group, i),
        "loss": (x, y, state, group, i, flag, flag),
        "key": step,
        "signature": step,
    }


def _is_integer(kind: Any) -> bool:
    return isinstance(kind, of.Integer | of.Boolean)


def _is_number(kind: Any) -> bool:
    return isinstance(kind, of.Number | of.Boolean)


def _is_pair(kind: Any) -> bool:
    return isinstance(kind, of.BaseTuple) and len(kind) == 2 and all(map(_is_integer, kind))


# What the engine accepts from a method, by the type that CompiledProblem's own method declares.
RETURNS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "int": (_is_integer, "an integer"),
    "bool": (_is_number, "True or False"),
    "float": (_is_number, "a number"),
    "tuple[int, int]": (_is_pair, "two integers"),
    "None": (lambda _: True, ""),
}


def check_return(problem: type[CompiledProblem], name: str, helper: Any, kind: Any) -> None:
    """Raises CompileError if the engine cannot use what a method returns."""
    expected, text = RETURNS[getattr(CompiledProblem, name).__annotations__["return"]]
    if expected(kind):
        return
    if isinstance(kind, of.NoneType | of.Optional):
        found = "returns None" if isinstance(kind, of.NoneType) else "returns None on some paths"
        remedy = f"End every path through it with a return of {text}."
    else:
        found = f"returns {_named(kind)}"
        remedy = f"Return {text}, for example by int(...)."
        if text != "an integer":
            remedy = f"Return {text}."
    raise CompileError(
        f"{problem.__name__}.{name} cannot be compiled: it {found}, not {text}\n"
        f"  {place_of(helper)}\n  {remedy}"
    )


def _named(kind: Any) -> str:
    if isinstance(kind, of.Float):
        return "a float"
    if isinstance(kind, of.UnicodeType | of.StringLiteral):
        return "text"
    if isinstance(kind, of.BaseTuple):
        return f"a tuple of {len(kind)}"
    return f"a value of type {kind}"


@contextlib.contextmanager
def _cache_in(folder: Path | None) -> Iterator[None]:
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(folder or before)
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def _jitted(function: Any, options: dict[str, Any], made: dict[Any, Any], mark: str) -> Any:
    """Compiles a function with the plain functions it calls, so that users need no decorator."""
    if function not in made:
        namespace = layout.plain(function.__globals__)
        # The cache names the module, which must be there when it is read: a notebook's is not.
        namespace["__name__"] = calls.__name__
        own = types.FunctionType(
            function.__code__,
            namespace,
            function.__name__,
            function.__defaults__,
            function.__closure__,
        )
        own.__qualname__ = f"{function.__name__}_{len(made)}_{mark}"
        made[function] = _general(numba.njit(own, forceinline=True, **INNER, **options))
        for name in function.__code__.co_names:
            value = namespace.get(name)
            if inspect.isfunction(value) and value not in hashing.OVERLOADED:
                namespace[name] = _jitted(value, options, made, mark)
    return made[function]


def _general(function: Any) -> Any:
    """Lets a function be compiled once for all integers; Numba would do so for each constant."""
    if numba.config.DISABLE_JIT:
        return function
    call_template = function.get_call_template

    def general(arguments: Any, keywords: Any) -> Any:
        kinds = [of.unliteral(kind) for kind in arguments]
        kinds = [of.int64 if kind == of.int32 else kind for kind in kinds]
        return call_template(tuple(kinds), keywords)

    function.get_call_template = general
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


def _start(entry: Any, kinds: tuple[Any, ...]) -> Any:
    """Returns a function of one pointer that calls an entry point: see ``calls``."""
    # Spelt out, since Numba inlines no call with a starred argument.
    names = "".join(f"a{i}, " for i in range(len(kinds)))
    space = {"taken": _taken(kinds), "entry": entry, "give": _give}
    exec(f"def start(numbers):\n ({names}) = taken(numbers)\n give(numbers, entry({names}))", space)
    return space["start"]


def object_code(
    entry: Any, arguments: tuple[Any, ...], *, check: Callable[[], object] = lambda: None
) -> tuple[str, bytes]:
    """Compiles an entry point for arguments of these types; returns its symbol and object code.

    ``check`` is called first, and what it compiles can become part of the entry point.
    """
    symbol, module = _linked(entry, arguments, check)
    return symbol, _emitted(module, cpu_target.target_context.codegen()._tm)


def object_codes(
    entry: Any, arguments: tuple[Any, ...], processors: Sequence[str]
) -> tuple[str, list[bytes]]:
    """Compiles an entry point as ``object_code`` does, for several processors of this system."""
    symbol, module = _linked(entry, arguments, lambda: None)
    target = binding.Target.from_triple(binding.get_process_triple())
    options: dict[str, Any] = {"opt": numba.config.OPT}
    cpu_target.target_context.codegen()._customize_tm_options(options)
    codes = []
    for name in processors:
        options |= {"cpu": name, "features": ""}
        machine = target.create_target_machine(**options)
        codes.append(_emitted(module.clone(), machine))
    return symbol, codes


def _linked(entry: Any, arguments: tuple[Any, ...], check: Callable[[], object]) -> tuple[str, Any]:
    """Returns the symbol of an entry point and a module of all its code, not optimised."""
    start = _start(entry, tuple(packed.passed(numba.typeof(argument)) for argument in arguments))
    flags = compiler.Flags()
    flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    flags.error_model = "numpy"
    with global_compiler_lock, _without_collection(), parts.only_parts():
        check()
        made = compiler.compile_extra(
            cpu_target.typing_context,
            cpu_target.target_context,
            start,
            args=(of.CPointer(of.int64),),
            return_type=of.none,
            flags=flags,
            locals={},
        )
        made.library.finalize()
        symbol = made.fndesc.llvm_func_name
        return symbol, parts.linked(made.library, symbol)


def _emitted(module: Any, machine: Any) -> bytes:
    """Optimises a module for a processor, and returns its object code."""
    codegen = cpu_target.target_context.codegen()
    before = codegen._tm
    with global_compiler_lock:
        codegen._tm = machine
        try:
            # Numba optimises twice, first in search of reference counts to remove: there are none.
            passes, builder = codegen._module_pass_manager()
        finally:
            codegen._tm = before
        passes.run(module, builder)
        module.verify()
        code: bytes = machine.emit_object(module)
    return code


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Turns the garbage collector off: compilation makes millions of objects that stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
