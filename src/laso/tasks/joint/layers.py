"""The layers of a joint problem, their constraints, and its templates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple

import numpy as np

from laso.engine.layout import Array
from laso.errors import OutOfMemory
from laso.tasks.constraints import Constraints

MOST_FLAGS = 1 << 27  # of combinations of labels, of which constraints between layers leave some
MOST_PREFIXES = 1 << 20  # combinations that are allowed, of each of which every step is a group


class JointTemplate(NamedTuple):
    """A template: the layers whose current labels it connects, and its atoms.

    ``atoms`` are (column, offset), ``history`` are previous labels (layer, offset below 0).
    """

    key: int
    layers: frozenset[int]
    atoms: Sequence[tuple[int, int]]
    history: Sequence[tuple[int, int]] = ()


class Pair(NamedTuple):
    """The allowed pairs of labels of two layers, of which the first precedes the second."""

    first: int
    second: int
    table: Array  # flags of the shape (labels of the first, labels of the second)


@dataclass(frozen=True)
class Layers:
    """The layers: their numbers of labels, and the constraints within and between them."""

    sizes: Sequence[int]
    constraints: dict[int, Constraints] = field(default_factory=dict)
    pairs: Sequence[Pair] = ()

    def prefixes(self) -> list[int]:
        """Return the allowed label combinations of all layers but the first, as numbers."""
        _check(prod(self.sizes[1:]), MOST_FLAGS)
        good = np.ones(self.sizes[1:], bool)
        for pair in self.pairs:
            if pair.first > 0:
                shape = [1] * good.ndim
                shape[pair.first - 1], shape[pair.second - 1] = pair.table.shape
                good &= pair.table.astype(bool).reshape(shape)
        _check(int(np.count_nonzero(good)), MOST_PREFIXES)
        return [int(number) for number in np.flatnonzero(good)]

    def pack(self, labels: Sequence[Array] | Array) -> Array:
        """Return the labels of each word in all layers as one number, as in outputs."""
        number = np.zeros(len(labels[0]), np.int64)
        for size, label in zip(self.sizes[1:], labels[1:], strict=True):
            number = number * size + label
        return number * self.sizes[0] + labels[0]

    def unpack(self, steps: Array, first_group: int) -> list[Array]:
        """Return the labels in each layer of operators (group, label)."""
        prefix = steps[:, 0].astype(np.int64) - first_group
        labels = [steps[:, 1].astype(np.int64)]
        for size in reversed(self.sizes[1:]):
            labels.insert(1, prefix % size)
            prefix = prefix // size
        return labels


def _check(n: int, most: int) -> None:
    """Raise OutOfMemory if layers have too many combinations of labels."""
    if n > most:
        raise OutOfMemory(
            f"found {n:,} combinations of the labels of all layers but the first, expected at most "
            f"{most:,}: fewer layers or labels, or pairs='observed'"
        )
