"""Weight vectors in three representations: primal, dual for a general norm, and kernel.

All have the same operations, so that every update rule is written once:

    g(node)            the path component, w . Phi(x, node)
    combine(terms)     Delta = sum of c * Phi(x, n) over terms (n, c), in the representation
    dot(delta)         w . Delta
    size(delta)        the norm of Delta (2-norm, or p-norm of PNorm); square(delta), its square
    add(delta, step)   w <- w + step * Delta
    project()          w <- w / max(1, ||w||)
    tick()             adds the current vector to the average, once for each example
    averaged()         the average of the vectors at all ticks, as a new vector

A vector also has the paper's generation number ``k`` and the ``margin``, which training subtracts
from the scores of y-good nodes; update rules set both.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from laso.problem import Node, Vector
from laso.values import Value

Term = tuple[Node, float]
Kernel = Callable[[Mapping[Any, float], Mapping[Any, float]], float]


class WeightVector(Protocol):
    """The operations that update rules use."""

    k: int
    margin: float

    def g(self, node: Node) -> float: ...
    def combine(self, terms: Sequence[Term]) -> Any: ...
    def dot(self, delta: Any) -> float: ...
    def size(self, delta: Any) -> float: ...
    def square(self, delta: Any) -> float: ...
    def norm(self) -> float: ...
    def add(self, delta: Any, step: float) -> None: ...
    def project(self) -> None: ...
    def tick(self) -> None: ...
    def averaged(self) -> WeightVector: ...


class ScaledSum:
    """A sparse vector scale * v and the running sum of its past values, with sparse operations.

    The sum over ticks is S * v - u, where S is the sum of the scales at all ticks, and adding dv to
    v adds S * dv to u. So neither ``shrink`` nor ``tick`` touches the entries.
    """

    def __init__(self, start: Mapping[Any, float] = {}):
        self.v: Vector = dict(start)
        self.u: Vector = {}
        self.scale = 1.0
        self.scales = 0.0
        self.ticks = 0

    def get(self, name: Hashable) -> float:
        return self.scale * self.v.get(name, 0.0)

    def items(self) -> Vector:
        return {name: self.scale * value for name, value in self.v.items()}

    def add(self, delta: Mapping[Any, float], step: float) -> None:
        for name, value in delta.items():
            dv = step * value / self.scale
            self.v[name] = self.v.get(name, 0.0) + dv
            self.u[name] = self.u.get(name, 0.0) + self.scales * dv

    def shrink(self, factor: float) -> None:
        self.scale *= factor
        if self.scale < 1e-3:
            self._rescale()

    def _rescale(self) -> None:
        """Set the scale to 1 and keep vector and sum, before the scale underflows."""
        self.u = {name: -total for name, total in self._sum().items()}
        self.v = self.items()
        self.scale, self.scales = 1.0, 0.0

    def _sum(self) -> Vector:
        return {name: self.scales * value - self.u.get(name, 0.0) for name, value in self.v.items()}

    def tick(self) -> None:
        self.scales += self.scale
        self.ticks += 1

    def average(self) -> Vector:
        if not self.ticks:
            return self.items()
        return {name: total / self.ticks for name, total in self._sum().items()}


class Linear:
    """Linear weights: one weight for each feature name (the primal form).

    Parameters
    ----------
    weights : mapping, default={}
        The initial weights by feature name; all others are zero.
    k : int, default=1
        The generation number of the paper: 1 + the number of updates.

    Examples
    --------
    >>> Linear({"bias": 0.5}).weights
    {'bias': 0.5}
    """

    def __init__(self, weights: Mapping[Any, float] = {}, *, k: int = 1):
        self._w = ScaledSum(weights)
        self._square = math.fsum(value * value for value in weights.values())
        self.k = k
        self.margin = 0.0
        self.precisions: Vector = {}  # sums of squared entries of Delta, for arow()

    @property
    def weights(self) -> Vector:
        """The weights by feature name."""
        return self._w.items()

    def g(self, node: Node) -> float:
        if node.parent is None:
            return 0.0
        v = self._w.v
        step = 0.0
        for name, value in node.features.items():
            step += v.get(name, 0.0) * value
        return node.parent.g + self._w.scale * step

    def combine(self, terms: Sequence[Term]) -> Vector:
        return combined(terms)

    def dot(self, delta: Vector) -> float:
        total = 0.0  # a loop, since the compiled engine must round as this does
        for name, value in delta.items():
            total += self._w.get(name) * value
        return total

    def square(self, delta: Vector) -> float:
        total = 0.0
        for value in delta.values():
            total += value * value
        return total

    def size(self, delta: Vector) -> float:
        return math.sqrt(self.square(delta))

    def norm(self) -> float:
        return math.sqrt(max(0.0, self._square))

    def add(self, delta: Vector, step: float) -> None:
        self._square += step * (2.0 * self.dot(delta) + step * self.square(delta))
        self._w.add(delta, step)

    def project(self) -> None:
        if self._square > 1.0:
            self._w.shrink(1.0 / self.norm())
            self._square = 1.0

    def tick(self) -> None:
        self._w.tick()

    def averaged(self) -> Linear:
        return Linear(self._w.average(), k=self.k)


class PNorm:
    """Weights for a general norm in dual form (Gentile 2001): it stores theta, w = link(theta).

    The link is the gradient of half the squared p-norm; it maps the p-ball of theta onto the
    q-ball of w, so that the projection of w is a scaling of theta.

    Parameters
    ----------
    p : float
        The norm's exponent, at least 2.
    """

    def __init__(self, p: float):
        self.p = p
        self.k = 1
        self.margin = 0.0
        self._theta: Vector = {}
        self._norm = 0.0
        self._sum: Vector = {}
        self._ticks = 0
        self._unsummed = 0

    @property
    def weights(self) -> Vector:
        """The weights by feature name."""
        return {name: self._link(value) for name, value in self._theta.items()}

    def _link(self, theta: float) -> float:
        if not self._norm:
            return 0.0
        size: float = abs(theta / self._norm) ** (self.p - 1.0) * self._norm
        return math.copysign(size, theta)

    def g(self, node: Node) -> float:
        if node.parent is None:
            return 0.0
        return node.parent.g + self.dot(node.features)

    def combine(self, terms: Sequence[Term]) -> Vector:
        return combined(terms)

    def dot(self, delta: Vector) -> float:
        theta = self._theta
        return sum(self._link(theta.get(name, 0.0)) * value for name, value in delta.items())

    def square(self, delta: Vector) -> float:
        return self.size(delta) ** 2

    def size(self, delta: Vector) -> float:
        largest = max(map(abs, delta.values()), default=0.0)
        if not largest:
            return 0.0
        ratios = (abs(value) / largest for value in delta.values())
        return float(largest * sum(ratio**self.p for ratio in ratios) ** (1.0 / self.p))

    def norm(self) -> float:
        """Return the q-norm of w, which is the p-norm of theta."""
        return self._norm

    def add(self, delta: Vector, step: float) -> None:
        self._settle()
        for name, value in delta.items():
            self._theta[name] = self._theta.get(name, 0.0) + step * value
        self._norm = self.size(self._theta)

    def project(self) -> None:
        if self._norm > 1.0:
            self._settle()
            self._theta = {name: value / self._norm for name, value in self._theta.items()}
            self._norm = 1.0

    def tick(self) -> None:
        self._ticks += 1
        self._unsummed += 1

    def _settle(self) -> None:
        """Add the current w to the sum, once for every tick since the last change."""
        if self._unsummed:
            for name, value in self.weights.items():
                self._sum[name] = self._sum.get(name, 0.0) + self._unsummed * value
            self._unsummed = 0

    def averaged(self) -> Linear:
        self._settle()
        if not self._ticks:
            return Linear(self.weights, k=self.k)
        return Linear({name: value / self._ticks for name, value in self._sum.items()}, k=self.k)


class Kernelised:
    """Weights in kernel form: a linear combination of the feature vectors Phi of paths.

    Parameters
    ----------
    kernel : callable
        The kernel of two feature vectors.
    support : sequence of dict, default=()
        The initial support vectors.
    coefficients : mapping, default={}
        Their coefficients, by index.
    k : int, default=1
        The generation number of the paper: 1 + the number of updates.
    """

    def __init__(
        self,
        kernel: Kernel,
        support: Sequence[Vector] = (),
        coefficients: Mapping[Any, float] = {},
        *,
        k: int = 1,
    ):
        self.kernel = kernel
        self.support = list(support)
        self.k = k
        self.margin = 0.0
        self._a = ScaledSum(coefficients)
        self._square = self.square(list(zip(self.support, self.coefficients, strict=True)))

    @property
    def coefficients(self) -> list[float]:
        """The coefficient of each support vector."""
        return [self._a.get(i) for i in range(len(self.support))]

    def _value(self, phi: Vector) -> float:
        pairs = zip(self.coefficients, self.support, strict=True)
        return sum(a * self.kernel(known, phi) for a, known in pairs)

    def g(self, node: Node) -> float:
        return self._value(node.phi())

    def combine(self, terms: Sequence[Term]) -> list[tuple[Vector, float]]:
        return [(node.phi(), c) for node, c in terms]

    def dot(self, delta: list[tuple[Vector, float]]) -> float:
        return sum(c * self._value(phi) for phi, c in delta)

    def square(self, delta: list[tuple[Vector, float]]) -> float:
        return max(0.0, sum(c * d * self.kernel(a, b) for a, c in delta for b, d in delta))

    def size(self, delta: list[tuple[Vector, float]]) -> float:
        return math.sqrt(self.square(delta))

    def norm(self) -> float:
        return math.sqrt(max(0.0, self._square))

    def add(self, delta: list[tuple[Vector, float]], step: float) -> None:
        self._square += step * (2.0 * self.dot(delta) + step * self.square(delta))
        first = len(self.support)
        self.support += [phi for phi, _ in delta]
        self._a.add({first + i: c for i, (_, c) in enumerate(delta)}, step)

    def project(self) -> None:
        if self._square > 1.0:
            self._a.shrink(1.0 / self.norm())
            self._square = 1.0

    def tick(self) -> None:
        self._a.tick()

    def averaged(self) -> Kernelised:
        return Kernelised(self.kernel, self.support, self._a.average(), k=self.k)


@dataclass(frozen=True, repr=False)
class LinearKernel(Value, name="linear_kernel"):
    """K(a, b) = a . b

    Examples
    --------
    >>> linear_kernel()({"f": 2.0}, {"f": 3.0, "g": 1.0})
    6.0
    """

    def __call__(self, a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
        return _dot(a, b)


@dataclass(frozen=True, repr=False)
class PolynomialKernel(Value, name="polynomial_kernel"):
    """K(a, b) = (a . b + constant) ** degree

    Parameters
    ----------
    degree : int
        The degree, at least 1.
    constant : float, default=1.0
        Not negative; above zero, the kernel has all products of up to ``degree`` features.

    Examples
    --------
    >>> polynomial_kernel(2)
    polynomial_kernel(2)
    >>> polynomial_kernel(2)({"f": 2.0}, {"f": 3.0})
    49.0
    """

    degree: int
    constant: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        degree, constant = self.degree, self.constant
        if not 1 <= degree < math.inf or degree != int(degree) or not 0 <= constant < math.inf:
            raise ValueError(
                f"a polynomial kernel needs a whole degree >= 1 and a constant >= 0, found "
                f"{degree}, {constant}"
            )

    def __call__(self, a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
        return float((_dot(a, b) + self.constant) ** self.degree)


@dataclass(frozen=True, repr=False)
class RBFKernel(Value, name="rbf_kernel"):
    """K(a, b) = exp(-gamma * ||a - b||^2)

    Parameters
    ----------
    gamma : float, default=1.0
        Above zero; a larger one makes narrower peaks.

    Examples
    --------
    >>> rbf_kernel(0.5)
    rbf_kernel(0.5)
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.gamma < math.inf:
            raise ValueError(f"an RBF kernel needs gamma > 0, found {self.gamma}")

    def __call__(self, a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
        return math.exp(-self.gamma * (_dot(a, a) - 2.0 * _dot(a, b) + _dot(b, b)))


linear_kernel = LinearKernel
polynomial_kernel = PolynomialKernel
rbf_kernel = RBFKernel


def combined(terms: Iterable[Term]) -> Vector:
    """Return the sum of c * Phi(x, n) over terms (n, c), without zeros.

    If the coefficients c sum to zero, the steps that all paths share cancel and are skipped.
    """
    terms = list(terms)
    balanced = abs(math.fsum(c for _, c in terms)) < 1e-9
    steps: dict[Node, float] = {}
    shared: Counter[Node] = Counter()
    for node, c in terms:
        for step in node.path:
            steps[step] = steps.get(step, 0.0) + c
            shared[step] += 1
    total: Vector = {}
    for step, c in steps.items():
        if shared[step] < len(terms) or not balanced:
            for name, value in step.features.items():
                total[name] = total.get(name, 0.0) + c * value
    return {name: value for name, value in total.items() if value}


def _dot(a: Mapping[Any, float], b: Mapping[Any, float]) -> float:
    if len(a) > len(b):
        a, b = b, a
    return sum(value * b.get(name, 0.0) for name, value in a.items())
