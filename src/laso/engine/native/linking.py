"""A problem linked into the lowered engine: its methods and flags fill the open places.

Only the methods of a problem are typed and lowered here. LLVM then optimises the whole, so that
methods are inlined into the kernels, and what a problem does not use disappears.

Importing this module imports Numba, so it is imported only to compile.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any

import numba
from llvmlite import binding
from numba import types as of
from numba.core.compiler_lock import global_compiler_lock
from numba.core.errors import NumbaError, UnsupportedBytecodeError
from numba.core.registry import cpu_target

from laso.engine import hashing, layout
from laso.engine.native.lowering import (
    INNER,
    compiling,
    declared_result,
    general,
    lowered_function,
    options_for,
    result_of,
    signatures,
    symbol_of,
)
from laso.engine.native.method_checks import CompileError, place_of
from laso.engine.problem import NAMES, CompiledProblem, flags_of

# Not only a NumbaError: unsupported bytecode raises an error of its own.
ERRORS = (NumbaError, UnsupportedBytecodeError)


class Methods:
    """The methods of a problem as LLVM code, each compiled when it is first asked for."""

    def __init__(
        self, problem: type[CompiledProblem], *, full: bool = False, checked: bool = False
    ) -> None:
        hashing.teach_numba()
        self.problem, self.flags = problem, flags_of(problem, full=full)
        self._options = options_for(checked=checked)
        self._jitted: dict[Any, Any] = {}
        self._codes: dict[str, bytes] = {}
        self.functions = {name: self._jit(getattr(problem, name)) for name in NAMES}

    def code(self, name: str) -> bytes:
        """Returns the bitcode of a method; raises CompileError if its result is of a wrong type."""
        if name not in self._codes:
            method, kinds = self.functions[name], signatures()[name]
            with compiling():
                method.compile(kinds)
                result = method.overloads[kinds].signature.return_type
                check_result(self.problem, name, method, result)
                symbol, module = lowered_function(
                    _caller(method, len(kinds)), kinds, result_of(name), forceinline=True
                )
                function = module.get_function(symbol)
                function.name, function.linkage = symbol_of(name), "external"
                self._codes[name] = module.as_bitcode()
        return self._codes[name]

    def _jit(self, function: Any) -> Any:
        """Compiles a function with the plain functions it calls: users need no decorator."""
        if function not in self._jitted:
            namespace = layout.plain(function.__globals__)
            copied = types.FunctionType(
                function.__code__,
                namespace,
                function.__name__,
                function.__defaults__,
                function.__closure__,
            )
            jitted = general(numba.njit(copied, forceinline=True, **INNER, **self._options))
            self._jitted[function] = jitted
            for name in function.__code__.co_names:
                value = namespace.get(name)
                if inspect.isfunction(value) and value not in hashing.OVERLOADED:
                    namespace[name] = self._jit(value)
        return self._jitted[function]


def _caller(method: Any, n: int) -> Any:
    """Returns a function of n arguments that calls a method; its result can have another type."""
    names = ", ".join(f"a{i}" for i in range(n))
    space = {"method": method}
    exec(f"def call({names}): return method({names})", space)
    return space["call"]


def linked(engine: bytes, symbol: str, methods: Methods | None) -> Any:
    """Returns a module of an entry point's lowered code and of the methods that it calls."""
    module = binding.parse_bitcode(engine)
    if methods is None:
        return module
    open_places = {f.name for f in module.functions if f.is_declaration}
    called = [name for name in NAMES if symbol_of(name) in open_places]
    for name in called:
        module.link_in(binding.parse_bitcode(methods.code(name)))
    constants = "\n".join(
        f'@"{symbol_of(name)}" = constant i8 {int(value)}' for name, value in methods.flags.items()
    )
    module.link_in(binding.parse_assembly(constants))
    for function in module.functions:
        if not function.is_declaration and function.name != symbol:
            function.linkage = "internal"
    for variable in module.global_variables:
        if variable.name.startswith(symbol_of("")):
            variable.linkage = "internal"
    return module


def object_code(module: Any) -> bytes:
    """Optimises a module for this processor, and returns its object code."""
    codegen = cpu_target.target_context.codegen()
    with global_compiler_lock:
        # Numba optimises twice, first in search of reference counts to remove: there are none.
        passes, builder = codegen._module_pass_manager()
        passes.run(module, builder)
        module.verify()
        code: bytes = codegen._tm.emit_object(module)
    return code


# --------------------------------------------------------------------------- results of methods


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


def check_result(problem: type[CompiledProblem], name: str, method: Any, kind: Any) -> None:
    """Raises CompileError if the engine cannot use what a method returns."""
    is_expected, expected = RETURNS[declared_result(name)]
    if is_expected(kind):
        return
    if isinstance(kind, of.NoneType | of.Optional):
        given = "returns None" if isinstance(kind, of.NoneType) else "returns None on some paths"
        remedy = f"End every path through it with a return of {expected}."
    else:
        given = f"returns {_named(kind)}"
        remedy = f"Return {expected}, for example by int(...)."
        if expected != "an integer":
            remedy = f"Return {expected}."
    raise CompileError(
        f"{problem.__name__}.{name} cannot be compiled: it {given}, not {expected}\n"
        f"  {place_of(method)}\n  {remedy}"
    )


def _named(kind: Any) -> str:
    if isinstance(kind, of.Float):
        return "a float"
    if isinstance(kind, of.UnicodeType | of.StringLiteral):
        return "text"
    if isinstance(kind, of.BaseTuple):
        return f"a tuple of {len(kind)}"
    return f"a value of type {kind}"
