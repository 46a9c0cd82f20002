"""Compiled code that reads feature lists and columns; it belongs to no problem.

layout.py      the columns of its arrays
marshalled.py  feature lists as Python's ``marshal`` writes them, hashed to feature keys
lexicon.py     the numbers of the values of columns, by their bytes
cells.py       columns as Python's ``marshal`` writes them
column_lines.py       columns in the lines of a file, and labels written behind them

Compilation is that of ``laso.engine.kernels``.
"""

from laso.engine import kernels
from laso.engine.text import cells, column_lines, layout, lexicon, marshalled

MODULES = (*kernels.MODULES, layout, marshalled, lexicon, cells, column_lines)
"""The modules that make up the compiled code."""

ENTRY_POINTS = (
    "read_marshalled",
    "read_cells",
    "gather_numbers",
    "find_batch",
    "read_lines",
    "write_lines",
)
"""The functions that Python calls."""

INLINED = kernels.INLINED | {
    "begin_object",
    "copy_bytes",
    "int32_at",
    "is_blank",
    "is_same",
    "string_at",
    "word_at",
}
"""Functions called for each object."""
