"""Arrays are made here if they fit into memory; else an error says what needs them.

Linux promises more memory than there is, and ends the process when it is used. A long input must be
an error instead, which names it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from laso.engine.layout import Array
from laso.errors import OutOfMemory

SMALL = 1 << 28  # bytes for which nobody asks
MEMORY = Path("/proc/meminfo")
OWN = Path("/proc/self/statm")  # the pages of this process
GROUP = Path("/sys/fs/cgroup")  # the limits of a container


def check_room(size: float, what: str, expected: str) -> None:
    """Raise OutOfMemory if ``size`` more bytes are not there; the message says what takes them."""
    if size <= SMALL:
        return
    left = memory_left()
    if size > left:
        raise OutOfMemory(
            f"{what}: found {size / 1e9:,.1f} GB to be needed, expected at most the "
            f"{left / 1e9:,.1f} GB that are left: {expected}"
        )


def new_arrays(
    shapes: Mapping[str, tuple[tuple[int, ...], Any]], what: str, expected: str
) -> dict[str, Array]:
    """Return arrays of zeros of the given shapes and types, if all of them fit into memory.

    The error names the largest, after ``what``; ``expected`` says what to change.
    """
    bytes_of = {
        name: float(np.dtype(kind).itemsize) * math.prod(map(float, shape))
        for name, (shape, kind) in shapes.items()
    }
    total, largest = sum(bytes_of.values()), max(bytes_of, key=lambda name: bytes_of[name])
    size = " x ".join(str(int(n)) for n in shapes[largest][0])
    what = f"{what}, {largest} of {size}"
    check_room(total, what, expected)
    try:
        return {name: np.zeros(shape, kind) for name, (shape, kind) in shapes.items()}
    except MemoryError as error:
        raise OutOfMemory(
            f"{what}: found {total / 1e9:,.1f} GB to be needed, which the system refuses, "
            f"expected {expected}"
        ) from error


def memory_left() -> float:
    """Return the bytes that this process can still use, as far as the system tells."""
    return min(_of_machine(), _of_group(), _of_process())


def _of_machine() -> float:
    try:
        for line in MEMORY.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows refuses what it does not have
        return math.inf


def _of_process() -> float:
    try:
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit == resource.RLIM_INFINITY:
            return math.inf
        used = int(OWN.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        return max(0.0, float(limit - used))
    except (ImportError, OSError, ValueError):  # Windows has no limits
        return math.inf


def _of_group() -> float:
    try:
        limit = (GROUP / "memory.max").read_text(encoding="ascii")
        return max(0.0, int(limit) - int((GROUP / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no group, or no limit
        return math.inf
