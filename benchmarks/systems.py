"""The interface of a measured system, and the list of systems.

A system has configurations; a configuration has settings (JSON values), their defaults, and a grid
of values to choose from on held-out data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from laso.data import Sentence
from laso.experiments.measure import Grid, Settings

__all__ = ["Decoded", "Grid", "Learned", "Settings", "System", "all_systems"]


class Learned(NamedTuple):
    """Seconds to read sentences, to make features from them, and to train and save a model."""

    read_s: float
    features_s: float
    train_s: float


class Decoded(NamedTuple):
    """The labels, the seconds to load the model, and those from raw tokens to labels."""

    labels: list[list[str]]
    load_s: float
    decode_s: float


class System(Protocol):
    """A program that learns to label sentences.

    ``defaults`` and ``grid`` have one entry for each configuration. The values of a grid are sorted
    by their cost where it differs, since the first of two equally good values is chosen.
    """

    name: str
    packages: Sequence[str]
    defaults: Mapping[str, Settings]
    grid: Mapping[str, Grid]

    def missing(self, config: str) -> str:
        """Return why the configuration cannot be measured here; empty if it can."""

    def prepare(self) -> float:
        """Import the package and return the seconds it took."""

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Train on a column file (word, POS tag, label) and save the model in a file."""

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Label sentences of (word, POS tag); loading and the first sentence are not counted."""


def all_systems() -> dict[str, System]:
    """Return the systems by name, laso last."""
    from benchmarks.ours import Laso
    from benchmarks.peers import CRFsuite, VowpalWabbit

    systems: list[System] = [CRFsuite(), VowpalWabbit(), Laso()]
    return {system.name: system for system in systems}
