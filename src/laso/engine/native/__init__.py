"""Machine code for the compiled engine: all that touches the insides of Numba and LLVM.

    sources.py    which modules make up the compiled code, and the fingerprint of all sources
    checks.py     mistakes in a user's problem that can be seen before it is compiled
    dispatch.py   Kernels: the entry points for one problem, loaded or compiled when first called
    jit.py        compilation by Numba into object code
    common.py     kernels that all problems of a process share
    packed.py     large tuples of arrays as one pointer
    parts.py      code of single functions, linked once
    explain.py    compilation errors in terms of the user's methods
    load.py       object code into memory, by llvmlite
    calls.py      the calling convention
    cache.py      files and folders of the cache
    trust.py      which of them nobody else can have written
    shipped.py    machine code that comes with the package
    bounds.py     which method of a problem leaves the bounds of an array

Only ``jit``, ``packed``, ``parts`` and ``explain`` import Numba, and only compilation imports them.
A process that finds its code in the package or in the cache loads it by llvmlite. ``LASO_NATIVE=0``
turns this shortcut off: then Numba runs the engine, with Numba's own cache.
"""

from laso.engine.native.cache import cache_root
from laso.engine.native.checks import CompileError
from laso.engine.native.dispatch import (
    PLAIN,
    Kernels,
    Variant,
    compiled,
    fingerprint,
    on_compile,
    text_kernels,
)

__all__ = [
    "PLAIN",
    "CompileError",
    "Kernels",
    "Variant",
    "cache_root",
    "compiled",
    "fingerprint",
    "on_compile",
    "text_kernels",
]
