"""Compiled code that reads feature lists; it belongs to no problem.

layout.py      the columns of its arrays
marshalled.py  feature lists as Python's ``marshal`` writes them, hashed to feature keys

Compilation is that of ``laso.engine.kernels``.
"""

from laso.engine import kernels
from laso.engine.text import layout, marshalled

MODULES = (*kernels.MODULES, layout, marshalled)
"""The modules that make up the compiled code."""

ENTRY_POINTS = ("read_marshalled",)
"""The functions that Python calls."""

INLINED = kernels.INLINED | {"begin_object", "copy_bytes", "int32_at", "string_at", "word_at"}
"""Functions called for each object."""
