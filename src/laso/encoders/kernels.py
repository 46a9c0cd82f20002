"""The element-wise passes of a transformer, compiled by Numba: one pass over an array for each.

All that these functions depend on is in this file, so that Numba's cache notices every change.
Each writes its result into its first array, and lets other Python threads run meanwhile.

GELU is that of the reference, ``x * (1 + erf(x / sqrt(2))) / 2``, and ``erf`` is a quotient of
polynomials with an error below 3e-7. ``exp`` is 2**n times a polynomial with a relative error of
about 1e-7. Neither calls a library, so that the compiler makes vector instructions of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

Array = np.ndarray[Any, Any]
Kernel = TypeVar("Kernel", bound=Callable[..., None])

F = np.float32
SUMS = {"reassoc", "contract", "nsz"}  # sums in any order, as vector instructions make them
PLAIN = {"contract", "nsz"}

LOG2E, LN2_HIGH, LN2_LOW = F(1.44269504088896341), F(0.693359375), F(-2.12194440e-4)
LOWEST = F(-87.0)  # exp of less would be no normal number
HALF, ONE, EDGE = F(0.5), F(1.0), F(4.0)
ROOT = F(0.7071067811865476)


def compiled(fastmath: set[str]) -> Callable[[Kernel], Kernel]:
    """Return the decorator of all kernels; a division is no place for an error to be raised."""
    options = {"nogil": True, "error_model": "numpy", "fastmath": fastmath}

    def decorate(function: Kernel) -> Kernel:
        try:
            kernel = njit(cache=True, **options)(function)
        except RuntimeError:  # there is no folder that Numba may write to
            kernel = njit(**options)(function)
        return cast(Kernel, kernel)

    return decorate


@compiled(SUMS)
def _normalise_row(row: Array, total: F, scale: Array, shift: Array, epsilon: float) -> None:
    """Subtract the mean of a row, whose sum is known, and divide by its deviation."""
    width = len(row)
    mean = total / F(width)
    squares = F(0)
    for j in range(width):
        difference = row[j] - mean
        squares += difference * difference
    factor = ONE / np.sqrt(squares / F(width) + F(epsilon))
    for j in range(width):
        row[j] = (row[j] - mean) * factor * scale[j] + shift[j]


@compiled(SUMS)
def normalise(x: Array, scale: Array, shift: Array, epsilon: float) -> None:
    """Layer normalisation: subtract the mean of each row, and divide by its deviation."""
    n, width = x.shape
    for i in range(n):
        row = x[i]
        total = F(0)
        for j in range(width):
            total += row[j]
        _normalise_row(row, total, scale, shift, epsilon)


@compiled(SUMS)
def add_normalised(
    x: Array, y: Array, bias: Array, scale: Array, shift: Array, epsilon: float
) -> None:
    """Add ``y`` and a bias to ``x``, and normalise the rows of the sum."""
    n, width = x.shape
    for i in range(n):
        row, more = x[i], y[i]
        total = F(0)
        for j in range(width):
            value = row[j] + (more[j] + bias[j])
            row[j] = value
            total += value
        _normalise_row(row, total, scale, shift, epsilon)


@compiled(PLAIN)
def embed(out: Array, pieces: Array, places: Array, of_pieces: Array, of_places: Array) -> None:
    """Write the sum of the vectors of each piece and of its place."""
    n, width = out.shape
    for i in range(n):
        piece, place = of_pieces[pieces[i]], of_places[places[i]]
        row = out[i]
        for j in range(width):
            row[j] = piece[j] + place[j]


@compiled(PLAIN)
def add_bias(x: Array, bias: Array) -> None:
    """Add a bias to the first columns of each row."""
    n, width = len(x), len(bias)
    for i in range(n):
        row = x[i]
        for j in range(width):
            row[j] += bias[j]


@compiled(PLAIN)
def gelu(x: Array, bias: Array) -> None:
    """Add a bias, and apply the Gaussian error linear unit."""
    n, width = x.shape
    for i in range(n):
        row = x[i]
        for j in range(width):
            value = row[j] + bias[j]
            z = min(max(value * ROOT, -EDGE), EDGE)
            s = z * z
            p = s * F(-2.72614225801306e-10) + F(2.77068142495902e-08)
            p = p * s + F(-2.10102402082508e-06)
            p = p * s + F(-5.69250639462346e-05)
            p = p * s + F(-7.34990630326855e-04)
            p = p * s + F(-2.95459980854025e-03)
            p = p * s + F(-1.60960333262415e-02)
            q = s * F(-1.45660718464996e-05) + F(-2.13374055278905e-04)
            q = q * s + F(-1.68282697438203e-03)
            q = q * s + F(-7.37332916720468e-03)
            q = q * s + F(-1.42647390514189e-02)
            row[j] = HALF * value * (ONE + z * p / q)


@compiled(PLAIN)
def _exponentials(row: Array, bits: Array, powers: Array, highest: float) -> None:
    """Write exp(row - highest); ``bits`` is the same memory, as integers."""
    n = len(row)
    for j in range(n):
        x = max(row[j] - highest, LOWEST)
        z = np.floor(x * LOG2E + HALF)
        x = (x - z * LN2_HIGH) - z * LN2_LOW
        y = x * F(1.9875691500e-4) + F(1.3981999507e-3)
        y = y * x + F(8.3334519073e-3)
        y = y * x + F(4.1665795894e-2)
        y = y * x + F(1.6666665459e-1)
        y = y * x + F(5.0000001201e-1)
        row[j] = y * (x * x) + x + ONE
        powers[j] = np.int32(z)
    for j in range(n):
        bits[j] += powers[j] << np.int32(23)


@compiled(SUMS)
def softmax(x: Array, bits: Array, powers: Array) -> None:
    """Turn each row into probabilities; ``bits`` is the same memory, as integers."""
    n, width = x.shape
    for i in range(n):
        row = x[i]
        highest = row[0]
        for j in range(1, width):
            highest = max(highest, row[j])
        _exponentials(row, bits[i], powers, highest)
        total = F(0)
        for j in range(width):
            total += row[j]
        factor = ONE / total
        for j in range(width):
            row[j] *= factor


@compiled(PLAIN)
def means(out: Array, words: Array, x: Array, first: Array, counts: Array) -> None:
    """Write the mean of ``counts[i]`` rows of ``x`` from ``first[i]`` on to row ``words[i]``."""
    width = x.shape[1]
    for i in range(len(words)):
        row, begin, count = out[words[i]], first[i], counts[i]
        for j in range(width):
            row[j] = x[begin, j]
        for k in range(begin + 1, begin + count):
            for j in range(width):
                row[j] += x[k, j]
        if count > 1:
            factor = ONE / F(count)
            for j in range(width):
                row[j] *= factor
