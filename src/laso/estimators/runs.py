"""Runs of training: what they learn from, where they are saved meanwhile, how large models get."""

from __future__ import annotations

import os
import random
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from laso.engine.layout import Corpus


@dataclass
class Checkpoint:
    """Where a run is saved as it goes on, after an epoch, at most once in so many seconds.

    A run that was killed goes on from there by ``load`` and ``resume``.
    """

    path: str | os.PathLike[str]
    seconds: float = 30.0
    notes: dict[str, Any] = field(default_factory=dict)  # to be saved with it
    saved: float = field(default_factory=time.monotonic)  # when it was last saved

    def is_due(self) -> bool:
        """Has enough time passed? Then it begins again."""
        now = time.monotonic()
        due = now - self.saved >= self.seconds
        if due:
            self.saved = now
        return due


class Size(NamedTuple):
    """How large a model is in memory."""

    features: int  # keys that have a row of weights
    weights: int  # weights that are not zero
    bytes: int


@dataclass(frozen=True)
class Examples:
    """Encoded sentences with their answers, and others with the answers wanted to score them on."""

    train: Corpus
    weighted: bool
    held_out: Corpus | None = None
    wanted: Sequence[Any] = ()

    @property
    def fingerprint(self) -> int:
        """Tells whether two sets of examples are the same."""
        crc = 0
        for array in (self.train.starts, self.train.items, self.train.outputs, self.train.pool):
            crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        return crc


def held_out(n: int, fraction: float, seed: int | None) -> list[int]:
    """Which of n sentences are held out: a part drawn by the seed, in their order."""
    k = max(1, round(n * fraction))
    if k >= n:
        raise ValueError(f"held_out={fraction} leaves none of {n} sentences to learn from")
    return sorted(random.Random(f"{seed}/held out").sample(range(n), k))
