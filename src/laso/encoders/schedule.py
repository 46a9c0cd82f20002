"""How fast an encoder is fine-tuned."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """How fast a ``TorchEncoder`` learns.

    Attributes
    ----------
    rate : float
        The rate of the last layer; that of each layer below is ``layer_decay`` times as large.
    layer_decay : float
        See ``rate``.
    warmup : int
        The number of steps in which the rate grows from 0 to its full size.
    steps : int
        The number of steps after which the rate has fallen to 0; 0 for a rate that stays.
    sentences : int
        The number of sentences whose gradients are added up for a step.
    dropout : float
        The share of the numbers that training leaves out.
    weight_decay : float
        The share of the matrices, times the rate, that a step takes away.
    longest : float
        The norm to which the gradient of a step is cut.
    """

    rate: float = 1e-4
    layer_decay: float = 0.8
    warmup: int = 50
    steps: int = 0
    sentences: int = 16
    dropout: float = 0.1
    weight_decay: float = 0.01
    longest: float = float("inf")

    def factor(self, step: int) -> float:
        """Return the factor of all rates at a step, counted from 0.

        Examples
        --------
        >>> schedule = Schedule(warmup=4, steps=12)
        >>> [schedule.factor(step) for step in (0, 3, 4, 8, 12, 13)]
        [0.25, 1.0, 1.0, 0.5, 0.0, 0.0]
        """
        if step < self.warmup:
            return (step + 1) / self.warmup
        if not self.steps:
            return 1.0
        return max(0.0, (self.steps - step) / max(1, self.steps - self.warmup))
