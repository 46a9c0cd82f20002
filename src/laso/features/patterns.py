r"""Regular expressions in linear time: those of RE2, in its own syntax.

A pattern may come from a model file, and Python's ``re`` takes exponential time for patterns such
as ``(a+)+$``. RE2 never backtracks: its time is linear in the text, and its memory has a bound. So
it has no lookaround and no references to groups. ``\w``, ``\d``, ``\s`` and ``\b`` know ASCII only;
``\pL``, ``\p{Lu}`` and ``\pN`` are letters, capitals and numbers of all scripts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

LONGEST = 1000  # characters of a pattern
MEMORY = 4 << 20  # bytes that RE2 may use for a pattern
SHOWN = 100  # characters of RE2's message
_SURROGATES = {code: code + 0x100000 for code in range(0xD800, 0xE000)}  # to a private plane

Search = Callable[[str], tuple[int, int] | None]
"""A function from a text to the first match in it, as (start, end)."""


@cache
def compiled_search(pattern: str) -> Search:
    """Return the search for a pattern; one that RE2 refuses raises ValueError."""
    import re2

    if len(pattern) > LONGEST:
        raise ValueError(f"found {len(pattern)} characters, expected at most {LONGEST}")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = MEMORY
    try:
        compiled: Any = re2.compile(pattern.translate(_SURROGATES), options)
    except re2.error as error:
        reason = error.args[0] if error.args else "refused by RE2"
        message = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(message[:SHOWN]) from None

    def search(value: str) -> tuple[int, int] | None:
        try:
            match = compiled.search(value)
        except UnicodeEncodeError:  # RE2 searches UTF-8, which has no surrogates
            match = compiled.search(value.translate(_SURROGATES))
        return None if match is None else match.span()

    return search
