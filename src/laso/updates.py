"""Parameter updates (section 3.4 of the paper): perceptron, approximate large margin and relatives.

An update rule is a value (see ``laso.values``). ``rule.start()`` returns the first weight vector,
and ``rule(w, x, sibs, nodes)`` is *update* of Figure 2. A weighting (see ``laso.weightings``) says
which nodes enter Delta and with what weight; ``rule.step(w, terms)`` takes the step that they
ask for. The likelihood updates are for the compiled engine, which computes their steps itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from laso.problem import Node
from laso.values import Value
from laso.vectors import Kernel, Kernelised, Linear, PNorm, Term, WeightVector
from laso.weightings import Weighting, severity, uniform, worst

MOST_STEPS = 1000  # that L-BFGS keeps in memory
TINY = 1e-12  # a hinge below it is rounding, not an error


@dataclass(frozen=True, repr=False, kw_only=True)
class Perceptron(Value, name="perceptron"):
    """Perceptron update: w <- w + Delta (Eq. 2).

    Parameters
    ----------
    weighting : callable, default=uniform
        Which nodes enter Delta, and with what weight: ``uniform``, ``loss_proportional``, ``worst``
        or a function like these.
    kernel : callable, optional
        A kernel such as ``polynomial_kernel(2)``; by default the weights are linear.
    margin : float, default=0.0
        By how much learning down-weights y-good nodes; the paper has no margin here.
    by_loss : bool, default=False
        Multiply each step by the mean loss of the bad nodes, so that costly errors are unlearned
        faster.

    Examples
    --------
    >>> perceptron()
    perceptron()
    >>> perceptron(weighting=worst, margin=1.0)
    perceptron(weighting=worst, margin=1.0)
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
        return self.step(w, self.weighting(sibs, nodes))

    def step(self, w: WeightVector, terms: Sequence[Term], errors: int = 1) -> WeightVector:
        """The new weights from the terms of Delta, which may be those of several errors."""
        w.add(w.combine(terms), severity(terms) if self.by_loss else 1.0)
        w.k += 1
        return w


@dataclass(frozen=True, repr=False, kw_only=True)
class Alma(Value, name="alma"):
    """Approximate large margin update: w <- P(w + C k^-1/2 P(Delta)).

    Learning down-weights y-good nodes by (1 - alpha) B k^-1/2. For p other than 2, B is multiplied
    and C divided by sqrt(p - 1), as in Gentile (2001).

    Parameters
    ----------
    alpha : float, default=0.9
        In (0, 1]. A *smaller* alpha asks for a *larger* margin: at least (1 - alpha) of the largest
        possible one. This is Gentile's meaning and that of the formula; a sentence of the paper
        says the opposite.
    B : float, optional
        By default sqrt(8) / alpha, which Theorem 4 needs (the paper's text has 1 / alpha).
    C : float, default=sqrt(2)
        The length of the first step.
    p : float, default=2.0
        The norm, at least 2.
    normalize_always : bool, default=False
        Scale every Delta to length one; by default only a longer one.
    weighting : callable, default=uniform
        As in :class:`Perceptron`.
    kernel : callable, optional
        As in :class:`Perceptron`; it needs p = 2.
    by_loss : bool, default=False
        As in :class:`Perceptron`.

    Examples
    --------
    >>> alma(alpha=0.8)
    alma(alpha=0.8)
    >>> alma(alpha=0.5).margin(1) > alma(alpha=0.9).margin(1)
    True
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
        """The margin in generation k: (1 - alpha) B sqrt(p - 1) k^-1/2."""
        return (1.0 - self.alpha) * self.b * math.sqrt((self.p - 1.0) / k)

    def start(self) -> WeightVector:
        return _vector(self.kernel, p=self.p, margin=self.margin(1))

    def __call__(
        self, w: WeightVector, x: Any, sibs: Sequence[Node], nodes: Sequence[Node]
    ) -> WeightVector:
        return self.step(w, self.weighting(sibs, nodes))

    def step(self, w: WeightVector, terms: Sequence[Term], errors: int = 1) -> WeightVector:
        """The new weights from the terms of Delta, which may be those of several errors."""
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


@dataclass(frozen=True, repr=False, kw_only=True)
class PassiveAggressive(Value, name="passive_aggressive"):
    """Passive-aggressive update (PA-I, Crammer et al. 2006): w <- w + tau Delta.

    tau = min(C, hinge / ||Delta||^2) is the shortest step that gives the margin.

    Parameters
    ----------
    C : float, default=1.0
        The largest tau.
    weighting : callable, default=worst
        As in :class:`Perceptron`.
    kernel : callable, optional
        As in :class:`Perceptron`.
    margin : float, default=1.0
        By how much learning down-weights y-good nodes, so that a correct output with a smaller
        margin is corrected too.
    by_loss : bool, default=False
        Multiply C by the mean loss of the bad nodes.

    Examples
    --------
    >>> passive_aggressive(C=0.1)
    passive_aggressive(C=0.1)
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
        return self.step(w, self.weighting(sibs, nodes))

    def step(self, w: WeightVector, terms: Sequence[Term], errors: int = 1) -> WeightVector:
        """The new weights from the terms of Delta; each of several errors adds the margin once."""
        delta = w.combine(terms)
        square = w.square(delta)
        hinge = errors * self.margin - w.dot(delta)
        if square > 0.0 and hinge > TINY:
            rate = self.C * severity(terms) if self.by_loss else self.C
            w.add(delta, min(rate, hinge / square))
            w.k += 1
        return w


SUPPORTS = ("rows", "pairs", "lattice")


@dataclass(frozen=True, repr=False, kw_only=True)
class Likelihood(Value):
    """Base class of the updates that maximise log p(y | x): a conditional random field.

    They need the compiled engine and ``queue=exact()``.

    Parameters
    ----------
    variance : float, default=10.0
        The variance of the Gaussian prior on each weight; ``math.inf`` for none.
    by_loss : bool, default=False
        Softmax-margin (Gimpel & Smith 2010): add the logarithm of the loss to the score of each
        step that leaves the good paths.
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
            f"{self._name}() climbs the likelihood, which the reference engine "
            "does not know: it is for compiled problems with queue=exact()"
        )


@dataclass(frozen=True, repr=False, kw_only=True)
class Climb(Likelihood):
    """Base class of the stochastic likelihood updates.

    Parameters
    ----------
    rate : float
        The learning rate.
    batch : int, default=1
        The number of examples of a step.
    support : {"rows", "lattice"}, default="rows"
        Which features have weights: those seen on good paths so far, or all on the lattice, which
        may be many times as many.
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


@dataclass(frozen=True, repr=False, kw_only=True)
class Sgd(Climb, name="sgd"):
    """Stochastic gradient ascent, step t at rate / (1 + rate * t / (variance * examples)).

    Parameters
    ----------
    variance : float, default=10.0
        The variance of the Gaussian prior on each weight; ``math.inf`` for none.
    by_loss : bool, default=False
        Softmax-margin: add the logarithm of the loss to the score of each step that leaves the
        good paths.
    rate : float, default=0.1
        The learning rate.
    batch : int, default=1
        The number of examples of a step.
    support : {"rows", "lattice"}, default="rows"
        Which features have weights: those seen on good paths so far, or all on the lattice.

    Examples
    --------
    >>> sgd(rate=0.2)
    sgd(rate=0.2)
    """


@dataclass(frozen=True, repr=False, kw_only=True)
class AdaGrad(Climb, name="adagrad"):
    """Gradient ascent with a rate for each weight: rate / sqrt(first + sum of squared gradients).

    Parameters
    ----------
    variance : float, default=10.0
        The variance of the Gaussian prior on each weight; ``math.inf`` for none.
    by_loss : bool, default=False
        Softmax-margin: add the logarithm of the loss to the score of each step that leaves the
        good paths.
    rate : float, default=0.5
        The learning rate.
    batch : int, default=1
        The number of examples of a step.
    support : {"rows", "lattice"}, default="rows"
        Which features have weights: those seen on good paths so far, or all on the lattice.
    first : float, default=1.0
        The value with which each sum of squared gradients begins.

    Examples
    --------
    >>> adagrad(variance=1.0)
    adagrad(variance=1.0)
    """

    rate: float = 0.5
    first: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.first < math.inf:
            raise ValueError(f"first must be positive and finite, found {self.first}")


@dataclass(frozen=True, repr=False, kw_only=True)
class Lbfgs(Likelihood, name="lbfgs"):
    """Maximise the likelihood of all examples by L-BFGS; nothing in it is random.

    Parameters
    ----------
    variance : float, default=10.0
        The variance of the Gaussian prior on each weight; ``math.inf`` for none.
    by_loss : bool, default=False
        Softmax-margin: add the logarithm of the loss to the score of each step that leaves the
        good paths.
    l1 : float, default=0.0
        The rate of the Laplace prior on each weight: l1 * ``|w|`` is subtracted from the
        log-likelihood, and many weights become zero. The method is then OWL-QN (Andrew & Gao 2007).
    support : {"rows", "pairs", "lattice"}, default="rows"
        Which features have weights: those seen on good paths, with all labels; only the pairs of
        feature and label seen there; or all on the lattice.
    transitions : {"rows", "pairs", "lattice"}, optional
        The support of features that look at previous decisions, such as label[-1]; by default
        that of the others.
    iterations : int, default=200
        The largest number of iterations.
    tolerance : float, default=1e-5
        Stop when the largest gradient of the objective per example is below it.
    period : int, default=10
        The number of iterations over which ``delta`` measures the improvement.
    delta : float, default=0.0
        Stop when the objective has improved by less than this fraction over the last ``period``
        iterations; 0 turns the test off.
    memory : int, default=6
        The number of past steps that approximate the Hessian.

    Examples
    --------
    >>> lbfgs(variance=math.inf)
    lbfgs(variance=float('inf'))
    >>> lbfgs(l1=0.1, support="pairs", transitions="lattice")
    lbfgs(l1=0.1, support='pairs', transitions='lattice')
    """

    l1: float = 0.0
    support: str = "rows"
    transitions: str | None = None
    iterations: int = 200
    tolerance: float = 1e-5
    period: int = 10
    delta: float = 0.0
    memory: int = 6

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.l1 < math.inf:
            raise ValueError(f"l1 must be finite and not negative, found {self.l1}")
        if self.support not in SUPPORTS:
            raise ValueError(f"support must be one of {SUPPORTS}, found {self.support!r}")
        if self.transitions not in (None, *SUPPORTS):
            raise ValueError(f"transitions must be one of {SUPPORTS}, found {self.transitions!r}")
        if self.iterations < 1 or self.memory < 1 or self.period < 1:
            raise ValueError(f"iterations, memory and period must be at least 1, found {self}")
        if self.memory > MOST_STEPS:
            raise ValueError(f"memory must be at most {MOST_STEPS}, found {self.memory}")
        if math.isnan(self.tolerance) or not 0.0 <= self.delta < math.inf:
            raise ValueError(f"tolerance and delta must be numbers, delta >= 0, found {self}")

    def has_converged(self, slope: Any, past: Sequence[float], value: float) -> bool:
        """Return whether to stop at a value and slope of the objective, after the past values."""
        if abs(slope).max(initial=0.0) <= self.tolerance:
            return True
        if len(past) < self.period or not self.delta:
            return False
        return past[-self.period] - value < self.delta * abs(value)


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
