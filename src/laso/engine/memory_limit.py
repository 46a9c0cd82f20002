"""Checks that arrays fit into memory before they are made.

Linux promises more memory than there is, and ends the process when it is used. A long input must be
an error instead, which names it.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

from laso.errors import OutOfMemory

SMALL = 1 << 28  # bytes for which nobody asks
MEMORY = Path("/proc/meminfo")
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


def memory_left() -> float:
    """Return the bytes that this process can still use, as far as the system tells."""
    return min(_of_machine(), _of_group())


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


def _of_group() -> float:
    try:
        limit = (GROUP / "memory.max").read_text(encoding="ascii")
        return max(0.0, int(limit) - int((GROUP / "memory.current").read_text(encoding="ascii")))
    except (OSError, ValueError):  # no group, or no limit
        return math.inf
