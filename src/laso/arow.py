"""AROW: an update whose steps are shorter for weights that many updates have changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from laso.problem import Node
from laso.updates import TINY
from laso.values import Value
from laso.vectors import Linear, Term, WeightVector
from laso.weightings import Weighting, severity, worst


@dataclass(frozen=True, repr=False, kw_only=True)
class Arow(Value, name="arow"):
    """Adaptive regularization of weights (Crammer et al. 2009) with a diagonal covariance.

    w_i <- w_i + hinge / (gamma + sum of Sigma_j Delta_j^2) * Sigma_i Delta_i, where 1 / Sigma_i is
    1 / variance plus, for each update before, Delta_i^2 / gamma.

    Parameters
    ----------
    variance : float, default=1.0
        The first variance of each weight.
    gamma : float, default=1.0
        The trade-off of loss and change: a larger gamma makes shorter steps.
    weighting : callable, default=worst
        As in :class:`laso.updates.Perceptron`.
    margin : float, default=1.0
        As in :class:`laso.updates.PassiveAggressive`.
    by_loss : bool, default=False
        Multiply each step by the mean loss of the bad nodes.

    Examples
    --------
    >>> arow(gamma=10.0)
    arow(gamma=10.0)
    """

    variance: float = 1.0
    gamma: float = 1.0
    weighting: Weighting = worst
    margin: float = 1.0
    by_loss: bool = False

    def __post_init__(self) -> None:
        if not (0.0 < self.variance < math.inf and 0.0 < self.gamma < math.inf):
            raise ValueError(f"variance and gamma must be positive and finite, found {self}")
        if not 0.0 <= self.margin < math.inf:
            raise ValueError(f"margin must be finite and not negative, found {self.margin}")

    def start(self) -> WeightVector:
        """Return the first weights, all zero."""
        w = Linear()
        w.margin = self.margin
        return w

    def __call__(
        self, w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]
    ) -> WeightVector:
        """Change the weights, if there is anything to correct."""
        return self.step(w, self.weighting(sibs, nodes))

    def step(self, w: WeightVector, terms: Sequence[Term], errors: int = 1) -> WeightVector:
        """Return the new weights from the terms of Delta; each error adds the margin once."""
        assert isinstance(w, Linear)
        delta = w.combine(terms)
        hinge = errors * self.margin - w.dot(delta)
        if w.square(delta) > 0.0 and hinge > TINY:
            past, spread, scaled = w.precisions, self.gamma, {}
            for name, value in delta.items():
                seen = past.get(name, 0.0)
                scaled[name] = value / (1.0 / self.variance + seen / self.gamma)
                spread += value * scaled[name]
                past[name] = seen + value * value
            rate = severity(terms) if self.by_loss else 1.0
            w.add(scaled, rate * hinge / spread)
            w.k += 1
        return w


arow = Arow
