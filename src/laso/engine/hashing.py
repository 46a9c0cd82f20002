"""64-bit keys for features, the same compiled and not."""

from __future__ import annotations

import numpy as np
from numba.extending import overload

_K1 = 0x9E3779B97F4A7C15
_K2 = 0xBF58476D1CE4E5B9
_MASK = (1 << 64) - 1


def mix(a: int, b: int) -> int:
    """A key for the pair (a, b); chain it for more: ``mix(mix(a, b), c)``. Order matters."""
    z = (int(a) & _MASK) ^ ((int(b) & _MASK) * _K1 & _MASK)
    z = (z ^ (z >> 32)) * _K2 & _MASK
    z ^= z >> 29
    return z - (1 << 64) if z >> 63 else z


_U1, _U2, _S1, _S2 = np.uint64(_K1), np.uint64(_K2), np.uint64(32), np.uint64(29)


@overload(mix)
def _mix(a, b):  # type: ignore[no-untyped-def]
    def mixed(a, b):  # type: ignore[no-untyped-def]
        z = np.uint64(a) ^ (np.uint64(b) * _U1)
        z = (z ^ (z >> _S1)) * _U2
        return np.int64(z ^ (z >> _S2))

    return mixed


OVERLOADED = {mix}
"""Functions that Numba compiles by their overload, not by their own code."""
