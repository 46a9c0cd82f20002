"""Loads object code into memory by llvmlite, without Numba.

LLVM's JIT linker reads the object files of every platform that Numba supports. Importing llvmlite
costs far less time and memory than importing Numba, and nothing is compiled here.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import platform
import sys
from typing import Any

from laso.engine.native.calls import Function, function_at
from laso.errors import LasoError
from laso.locks import adopt

# The object code may call these functions of the C library. They are passed to the linker by
# address: whether it finds them by itself depends on how the interpreter was built.
MEMORY = ("memcpy", "memmove", "memset", "memcmp", "__chkstk")
MATHS = (
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign"),
    *("cos", "cosh", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "floor", "fmod", "hypot"),
    *("lgamma", "log", "log10", "log1p", "log2", "nearbyint", "pow", "rint", "round", "sin"),
    *("sinh", "sqrt", "tan", "tanh", "tgamma", "trunc"),
)
LIBRARIES: dict[str, tuple[str | None, ...]] = {
    "linux": (None, "libm.so.6"),
    "win32": ("ucrtbase", "vcruntime140", "ntdll"),
}

_numbers = itertools.count()


class Unsupported(LasoError):
    """Machine code cannot be made or loaded here; the message gives the reason."""


def loaded(symbol: str, code: bytes) -> Function:
    """Returns the function of this name in object code, ready to be called."""
    from llvmlite import binding

    builder = binding.JITLibraryBuilder().add_object_img(code).export_symbol(symbol)
    for name, address in _c_functions().items():
        builder.import_symbol(name, address)
    try:
        library = builder.add_current_process().link(_linker(), f"laso{next(_numbers)}")
    except RuntimeError as error:
        raise Unsupported(f"LLVM cannot load the object code: {str(error).strip()}") from error
    return function_at(library[symbol], keep_alive=library)


@functools.cache
def _linker() -> Any:
    """Returns LLVM's JIT, which links objects one by one; it lives as long as the process."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    _let_forks_wait(binding.ffi)
    # LLVM's older linker may place code and data too far apart for the relocations of ARM.
    is_arm = platform.machine().lower() in ("arm64", "aarch64")
    try:
        machine = binding.Target.from_default_triple().create_target_machine(jit=True)
        return binding.create_lljit_compiler(machine, use_jit_link=is_arm, suppress_errors=True)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise Unsupported(f"LLVM's JIT cannot be started: {error}") from error


def _let_forks_wait(ffi: Any) -> None:
    """Adopts the lock of llvmlite: a fork while it removes code would leave it to the child."""
    lock = getattr(getattr(ffi.lib, "_lock", None), "_lock", None)
    if lock is not None:
        adopt(lock)


@functools.cache
def _c_functions() -> dict[str, int]:
    """Returns the addresses of those functions of the C library that this system has."""
    addresses: dict[str, int] = {}
    for library in _c_libraries():
        for name in (*MEMORY, *MATHS, *(f"{name}f" for name in MATHS)):
            function = getattr(library, name, None)
            address = ctypes.cast(function, ctypes.c_void_p).value if function else None
            if address:
                addresses.setdefault(name, address)
    return addresses


def _c_libraries() -> list[ctypes.CDLL]:
    libraries = []
    for name in LIBRARIES.get(sys.platform, (None,)):
        try:
            libraries.append(ctypes.CDLL(name))
        except OSError:  # some systems keep all functions in one library
            continue
    return libraries
