"""Code of single functions, which is linked when the code of an entry point is complete.

Numba links the code of a function with that of all functions it calls, then optimises it, for each
function anew. Here all of them become part of an entry point, which is optimised as a whole: so
each function is linked once. Optimising each of them before takes as long again, and the result is
slower.

Importing this module imports Numba.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from llvmlite import binding
from numba._dynfunc import make_function
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target


class Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of a function, neither optimised nor linked with what it calls."""

    _whole: Any = None  # linked, once it is asked for

    def _optimize_functions(self, module: Any) -> None:
        module.data_layout = self._codegen._data_layout

    def add_ir_module(self, module: Any) -> None:
        """Adds code, and empties what Numba made it from: cycles would keep that in memory."""
        super().add_ir_module(module)
        for function in module.functions:
            for block in function.blocks:
                block.instructions.clear()
                block.terminator = None
            function.blocks.clear()

    def finalize(self) -> None:
        """Ends the additions. Callers may discard the code after they have inlined it."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == binding.Linkage.external:
                function.linkage = "linkonce_odr"
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Returns the code for a library of another kind, which links only what it calls itself."""
        if self._whole is None:
            self._whole = self._final_module.clone()
            _link(self._whole, self)
        return self._whole


def linked(part: Part, symbol: str) -> Any:
    """Returns the code of a function that has this symbol, with all that it calls."""
    module = part._final_module
    module.get_function(symbol).linkage = "external"
    _link(module, part)
    module.verify()
    return module


def _link(module: Any, root: Part) -> None:
    """Links what a part calls, directly or not, into a module; each part once."""
    seen, pending = {root}, [*root._linking_libraries]
    while pending:
        library = pending.pop()
        if library in seen:
            continue
        seen.add(library)
        if isinstance(library, Part):
            module.link_in(library._final_module, preserve=True)
            pending += library._linking_libraries
        else:
            module.link_in(library._get_module_for_linking(), preserve=True)


@contextlib.contextmanager
def only_parts() -> Iterator[None]:
    """Lets Numba make parts, and no machine code of them."""

    def handle(library: Any, function: Any, environment: Any) -> Any:
        """Returns the object by which Numba knows a function; it cannot be called."""
        name = function.qualname
        return make_function(function.lookup_module(), name, "", 0, environment, (library,))

    context = cpu_target.target_context
    codegen = context.codegen()
    codegen._library_class = Part
    context.get_executable = handle
    try:
        yield
    finally:
        del codegen._library_class, context.get_executable
