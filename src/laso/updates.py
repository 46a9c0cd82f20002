"""Parameter updates (section 3.4 of the paper): perceptron, approximate large margin and relatives.

An update rule is a small frozen object. ``rule.start()`` gives the first weight vector, and
``rule(w, x, sibs, nodes)`` is *update* of Figure 2. What enters Delta, and how much, is a
weighting; where w lives (primal, general norm, kernel) is the vector's own business. Likelihood is
for the compiled engine alone, which makes its steps itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from laso.problem import Node
from laso.vectors import Kernel, Kernelised, Linear, PNorm, Term, WeightVector

TINY = 1e-12  # a hinge below it is rounding, not an error

Weighting = Callable[[Sequence[Node], Sequence[Node]], list[Term]]


def uniform(sibs: Sequence[Node], nodes: Sequence[Node]) -> list[Term]:
    """Eq. 2: every good sibling alike, every node of the queue alike."""
    return _equally(sibs, 1.0) + _equally(nodes, -1.0)


def loss_proportional(sibs: Sequence[Node], nodes: Sequence[Node]) -> list[Term]:
    """The nodes of the queue in proportion to the loss of their paths (Crammer & Singer 2003)."""
    total = sum(node.loss for node in nodes)
    if total <= 0.0:
        return uniform(sibs, nodes)
    return _equally(sibs, 1.0) + [(node, -node.loss / total) for node in nodes if node.loss]


def worst(sibs: Sequence[Node], nodes: Sequence[Node]) -> list[Term]:
    """Only the highest bad node of the queue (Crammer & Singer's max update).

    It is set against the highest good sibling, since one good node in the queue is all LaSO needs.
    """
    bad = [node for node in nodes if not node.good] or list(nodes)
    return [(max(sibs, key=_score), 1.0), (max(bad, key=_score), -1.0)]


def severity(terms: Sequence[Term]) -> float:
    """The mean loss of the bad nodes of an update, by how much each counts; 1 without any."""
    bad = [(node.loss, weight) for node, weight in terms if weight < 0.0 and not node.good]
    mass = sum(weight for _, weight in bad)
    return sum(loss * weight for loss, weight in bad) / mass if mass else 1.0


@dataclass(frozen=True, kw_only=True)
class Perceptron:
    """w <- w + Delta (Eq. 2).

    ``margin`` down-weights y-good nodes by a constant while learning; the paper has none here.
    ``by_loss``, here and in the other rules, makes the step of an update longer by the loss of the
    bad nodes (see ``severity``), so that what costs more is unlearned faster.
    """

    weighting: Weighting = uniform
    kernel: Kernel | None = None
    margin: float = 0.0
    by_loss: bool = False

    def __post_init__(self) -> None:
        if not 0.0 <= self.margin < math.inf:
            raise ValueError(f"margin must be finite and not negative, found {self.margin}")

    def start(self) -> WeightVector:
        return _vector(self.kernel, margin=self.margin)

    def __call__(
        self, w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]
    ) -> WeightVector:
        terms = self.weighting(sibs, nodes)
        w.add(w.combine(terms), severity(terms) if self.by_loss else 1.0)
        w.k += 1
        return w


@dataclass(frozen=True, kw_only=True)
class Alma:
    """w <- P(w + C k^-1/2 P(Delta)), good nodes down-weighted by (1 - alpha) B k^-1/2.

    ``alpha`` in (0, 1] has Gentile's meaning, which is the formula's: a *smaller* alpha asks for a
    *larger* margin, at least (1 - alpha) of the largest there is; the paper's sentence says the
    opposite. ``B`` defaults to sqrt(8) / alpha, which Theorem 4 needs (the paper's text has
    1 / alpha). For p other than 2, B is multiplied and C divided by sqrt(p - 1), as in Gentile.
    """

    alpha: float = 0.9
    B: float | None = None
    C: float = math.sqrt(2.0)
    p: float = 2.0
    normalize_always: bool = False
    weighting: Weighting = uniform
    kernel: Kernel | None = None
    by_loss: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha <= 1.0:
            raise ValueError(f"alpha must be above 0 and at most 1, found {self.alpha}")
        if not (0.0 < self.b < math.inf and 0.0 < self.C < math.inf):
            raise ValueError(f"B and C must be positive, found B={self.b}, C={self.C}")
        if not 2.0 <= self.p < math.inf:
            raise ValueError(f"p must be at least 2 and finite, found {self.p}")
        if self.kernel is not None and self.p != 2.0:
            raise ValueError(
                f"a kernel needs p = 2, found p = {self.p}: the update works in kernel space or "
                "with another norm, but not both (section 5 of the paper)"
            )

    @property
    def b(self) -> float:
        """B, or its default."""
        return math.sqrt(8.0) / self.alpha if self.B is None else self.B

    def margin(self, k: int) -> float:
        """(1 - alpha) B sqrt(p - 1) k^-1/2: what a good node must be better by."""
        return (1.0 - self.alpha) * self.b * math.sqrt((self.p - 1.0) / k)

    def start(self) -> WeightVector:
        return _vector(self.kernel, p=self.p, margin=self.margin(1))

    def __call__(
        self, w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]
    ) -> WeightVector:
        terms = self.weighting(sibs, nodes)
        delta = w.combine(terms)
        size = w.size(delta)
        if not self.normalize_always:
            size = max(1.0, size)
        if size > 0.0:
            rate = self.C * severity(terms) if self.by_loss else self.C
            w.add(delta, rate / math.sqrt((self.p - 1.0) * w.k) / size)
            w.project()
        w.k += 1
        w.margin = self.margin(w.k)
        return w


@dataclass(frozen=True, kw_only=True)
class PassiveAggressive:
    """w <- w + tau Delta, tau = min(C, hinge / ||Delta||^2) (PA-I, Crammer et al. 2006).

    Good nodes are down-weighted by 1, so that a correct answer with a margin below 1 is corrected.
    """

    C: float = 1.0
    weighting: Weighting = worst
    kernel: Kernel | None = None
    margin: float = 1.0
    by_loss: bool = False

    def __post_init__(self) -> None:
        if not (self.C > 0.0 and 0.0 <= self.margin < math.inf):
            raise ValueError(f"needs C > 0 and margin >= 0, found C={self.C}, margin={self.margin}")

    def start(self) -> WeightVector:
        return _vector(self.kernel, margin=self.margin)

    def __call__(
        self, w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]
    ) -> WeightVector:
        terms = self.weighting(sibs, nodes)
        delta = w.combine(terms)
        square = w.square(delta)
        hinge = self.margin - w.dot(delta)
        if square > 0.0 and hinge > TINY:
            rate = self.C * severity(terms) if self.by_loss else self.C
            w.add(delta, min(rate, hinge / square))
            w.k += 1
        return w


SUPPORTS = ("rows", "pairs", "lattice")


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """Climbs log p(y | x), paths weighted by exp(score): with exact search a random field.

    Only the compiled engine has it, with ``queue=exact()``. ``variance`` is that of the Gaussian
    prior on each weight (``math.inf``: none). ``by_loss`` makes a path as many times heavier as its
    steps off the good paths cost (softmax-margin, Gimpel & Smith 2010, with costs log loss).
    """

    variance: float = 10.0
    by_loss: bool = False

    def __post_init__(self) -> None:
        if not self.variance > 0.0:
            raise ValueError(f"the variance must be positive, found {self.variance}")

    def start(self) -> WeightVector:
        raise self._refusal()

    def __call__(
        self, w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]
    ) -> WeightVector:
        raise self._refusal()

    def _refusal(self) -> ValueError:
        return ValueError(
            f"{type(self).__name__.lower()}() climbs the likelihood, which the reference engine "
            "does not know: it is for compiled problems with queue=exact()"
        )


@dataclass(frozen=True, kw_only=True)
class Climb(Likelihood):
    """Goes up a step for every ``batch`` examples; ``rate`` is how far.

    ``support`` says which weights there are: whole ``"rows"`` of the features seen on good paths so
    far, or the rows of all features on the ``"lattice"``, which may be many times as many.
    """

    rate: float = 0.1
    batch: int = 1
    support: str = "rows"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.support not in ("rows", "lattice"):
            raise ValueError(f"support must be 'rows' or 'lattice', found {self.support!r}")
        if not 0.0 < self.rate < math.inf:
            raise ValueError(f"the rate must be positive and finite, found {self.rate}")
        if self.batch < 1:
            raise ValueError(f"a batch has at least one example, found batch={self.batch}")

    def prior(self, examples: int) -> float:
        """How hard the prior pulls in one step."""
        return 1.0 / (self.variance * max(1, examples))


@dataclass(frozen=True, kw_only=True)
class Sgd(Climb):
    """Stochastic gradient ascent, step t at rate / (1 + rate * t / (variance * examples))."""


@dataclass(frozen=True, kw_only=True)
class AdaGrad(Climb):
    """Each weight has a rate of its own, rate / sqrt(first + its squared slopes so far)."""

    rate: float = 0.5
    first: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.first < math.inf:
            raise ValueError(f"first must be positive and finite, found {self.first}")


@dataclass(frozen=True, kw_only=True)
class Lbfgs(Likelihood):
    """Goes to the maximum of the likelihood of all examples; nothing in it is random.

    ``support`` says which weights there are: whole ``"rows"`` of the features seen on good paths,
    only the ``"pairs"`` of feature and label seen there, or the rows of all features on the
    ``"lattice"``. It ends after so many ``iterations``, or when the largest slope of the objective
    per example is below ``tolerance``. ``memory`` is how many steps back it looks.
    """

    support: str = "rows"
    iterations: int = 200
    tolerance: float = 1e-5
    memory: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.support not in SUPPORTS:
            raise ValueError(f"support must be one of {SUPPORTS}, found {self.support!r}")
        if self.iterations < 1 or self.memory < 1:
            raise ValueError(f"iterations and memory must be at least 1, found {self}")


perceptron = Perceptron
alma = Alma
passive_aggressive = PassiveAggressive
adagrad = AdaGrad
sgd = Sgd
lbfgs = Lbfgs


def _vector(kernel: Kernel | None, *, p: float = 2.0, margin: float) -> WeightVector:
    w: WeightVector
    if kernel is not None:
        w = Kernelised(kernel)
    else:
        w = Linear() if p == 2.0 else PNorm(p)
    w.margin = margin
    return w


def _equally(nodes: Sequence[Node], total: float) -> list[Term]:
    return [(node, total / len(nodes)) for node in nodes]


def _score(node: Node) -> float:
    return node.score
