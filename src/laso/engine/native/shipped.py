"""Machine code that comes with the package, for the built-in tasks with common settings.

``tools/machine_code.py`` makes it when a wheel is built: one folder for each level of processors,
in it one for each problem and fingerprint of the sources, as in the cache. Code whose fingerprint
is not that of the installed sources is never found. What made it is of no importance later: object
code needs neither Numba nor LLVM's optimiser, so that the installed versions of them do not count.
Files in the package are trusted as its Python files are.
"""

from __future__ import annotations

import functools
import platform
import sys
import zlib
from pathlib import Path
from typing import NamedTuple

from laso.engine.native.cache import file_name
from laso.engine.native.sources import Variant, source_fingerprint
from laso.engine.problem import CompiledProblem, is_foreign

FOLDER = Path(__file__).with_name("code")
COMPRESSION = 9


class Level(NamedTuple):
    """A level of processors that code is made for: LLVM's name and the features it requires."""

    name: str
    machines: tuple[str, ...]
    features: tuple[str, ...]


_V2 = ("cx16", "popcnt", "sahf", "sse3", "ssse3", "sse4.1", "sse4.2")
_V3 = (*_V2, "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave")
LEVELS = (
    Level("x86-64-v3", ("x86_64", "amd64"), _V3),
    Level("x86-64-v2", ("x86_64", "amd64"), _V2),
)
"""The levels that code is made for, the best first."""


def folder_of(level: Level) -> Path:
    """Returns the folder of the code for a level, on this operating system."""
    return FOLDER / f"{sys.platform}-{level.name}"


@functools.cache
def supported() -> tuple[Level, ...]:
    """Returns the levels whose code this processor can run, the best first."""
    from llvmlite import binding

    machine = platform.machine().lower()
    try:
        found = binding.get_host_cpu_features()
    except RuntimeError:  # LLVM does not know them on every system
        return ()
    return tuple(
        level
        for level in LEVELS
        if machine in level.machines and all(found.get(name) for name in level.features)
    )


def file_for(
    level: Level, problem: type[CompiledProblem], variant: Variant, entry: str, signature: str
) -> Path:
    """Returns the file of an entry point; it need not exist."""
    folder = folder_of(level) / f"{problem.__name__}-{source_fingerprint(problem, variant)}"
    return folder / file_name(entry, signature)


def read(
    problem: type[CompiledProblem], variant: Variant, entry: str, signature: str
) -> tuple[str, bytes] | None:
    """Returns symbol and object code of an entry point, or None if nothing fits."""
    if is_foreign(problem) or not FOLDER.is_dir():
        return None
    for level in supported():
        try:
            content = file_for(level, problem, variant, entry, signature).read_bytes()
            symbol, _, code = zlib.decompress(content).partition(b"\0")
            return symbol.decode(), code
        except (OSError, UnicodeDecodeError, zlib.error):
            continue
    return None


def save(file: Path, symbol: str, code: bytes) -> None:
    """Writes the file of an entry point, compressed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(zlib.compress(symbol.encode() + b"\0" + code, COMPRESSION))
