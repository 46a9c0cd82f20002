"""Machine code for the compiled engine: all that touches the insides of Numba and LLVM.

    sources.py         fingerprints: hashes of all that compiled code depends on
    method_checks.py   mistakes in a user's problem that can be seen before it is compiled
    dispatch.py        Kernels: the entry points for one problem, loaded or compiled on demand
    lowering.py        the engine, typed and lowered by Numba once for all problems
    linking.py         a problem's methods, linked into the engine and optimised with it
    packed.py          large tuples of arrays as one pointer
    parts.py           code of single functions, linked once
    compile_errors.py  compilation errors in terms of the user's methods
    load.py            object code into memory, by llvmlite
    calls.py           the calling convention
    waiting.py         calls that Ctrl-C can end
    cache.py           files and folders of the cache
    trust.py           which of them nobody else can have written
    bounds_checks.py   which method of a problem leaves the bounds of an array

Only ``lowering``, ``linking``, ``packed``, ``parts`` and ``compile_errors`` import Numba, and only
compilation imports them. A process that finds its code in the cache loads it by llvmlite. Where
Numba's JIT is off (NUMBA_DISABLE_JIT=1), the kernels run as plain Python.
"""

from laso.engine.native.cache import cache_root
from laso.engine.native.dispatch import (
    PLAIN,
    Kernels,
    Variant,
    compiled,
    fingerprint,
    on_compile,
    text_kernels,
)
from laso.engine.native.method_checks import CompileError

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
