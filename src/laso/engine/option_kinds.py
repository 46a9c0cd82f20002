"""Queue, update and strategy of the compiled engine as numbers, in the order that kernels know."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Options(NamedTuple):
    """Queue, update and strategy as numbers."""

    kind: int  # QueueKind
    keyed: int  # rounds by the problem's key instead of depth
    width: int
    update: int  # UpdateKind
    weighting: int  # Weighting
    strategy: int  # Strategy
    normalize_always: int
    alpha: float
    b: float
    c: float
    margin: float
    by_loss: int = 0  # scale each update by the loss of the bad nodes
    siblings: int = 64  # the largest number of good siblings


class QueueKind(IntEnum):
    """How the agenda is kept."""

    ROUNDS = 0
    RANKED = 1


class UpdateKind(IntEnum):
    """Update rules."""

    PERCEPTRON = 0
    ALMA = 1
    PASSIVE_AGGRESSIVE = 2
    AROW = 3


class Weighting(IntEnum):
    """How the bad nodes share an update."""

    UNIFORM = 0
    LOSS_PROPORTIONAL = 1
    WORST = 2


class Strategy(IntEnum):
    """What follows an error; the last two are for the lattice."""

    RESTART = 0
    EARLY = 1
    DELAYED = 2
    STANDARD = 3
    MAX_VIOLATION = 4
    EXPECTED = 5  # LaSO with an infinite beam
    EXPECTED_GOLD = 6  # the same with weights for the features of good paths only


ROUNDS, RANKED = QueueKind
PERCEPTRON, ALMA, PASSIVE_AGGRESSIVE, AROW = UpdateKind
UNIFORM, LOSS_PROPORTIONAL, WORST = Weighting
RESTART, EARLY, DELAYED, STANDARD, MAX_VIOLATION, EXPECTED, EXPECTED_GOLD = Strategy
