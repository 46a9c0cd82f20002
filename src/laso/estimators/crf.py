"""sklearn-crfsuite's ``CRF`` on the compiled engine: change the import, keep the program.

    from laso import CRF  # was: from sklearn_crfsuite import CRF

Tokens are dicts or lists of features. There are weights for a feature with a label, and for two
labels that follow each other; learning and labelling are exact.
"""

from __future__ import annotations

import math
from typing import Any, Self

from laso.estimators.tagger import Tagger
from laso.learn import standard
from laso.metrics import accuracy
from laso.params import check_parameters
from laso.queues import exact
from laso.tasks.base import Task
from laso.training import Rule
from laso.updates import lbfgs, passive_aggressive, perceptron, sgd

ALGORITHMS = ("lbfgs", "l2sgd", "ap", "pa")
ITERATIONS = {"lbfgs": 200, "l2sgd": 50, "ap": 20, "pa": 20}


class CRF(Tagger):
    """A conditional random field with the parameters and the calls of sklearn-crfsuite.

    The score is token accuracy, as it is there. Whatever else ``Tagger`` has works too.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa"}, default="lbfgs"
        Likelihood by L-BFGS or by stochastic gradients, averaged perceptron, passive-aggressive.
    all_possible_states, all_possible_transitions : bool, default=False
        Also learn weights for features and labels that never occur together.
    c1 : float, default=0.0
        The L1 prior of lbfgs.
    c2 : float, default=1.0
        The L2 prior of lbfgs and l2sgd.
    max_iterations : int, default=None
        None: 200 for lbfgs, 50 for l2sgd, 20 for the others.
    num_memories, epsilon : int, float, default=6, 1e-5
        The memory and the stopping criterion of lbfgs.
    period, delta : int, float, default=10, 1e-5
        lbfgs also stops when the objective has improved by less than the fraction ``delta`` in
        ``period`` iterations.
    c : float, default=1.0
        The aggressiveness of pa.
    seed, threads : int, default=0, None
        As of ``SearchEstimator``.
    """

    def __init__(
        self,
        *,
        algorithm: str = "lbfgs",
        all_possible_states: bool = False,
        all_possible_transitions: bool = False,
        c1: float = 0.0,
        c2: float = 1.0,
        max_iterations: int | None = None,
        num_memories: int = 6,
        epsilon: float = 1e-5,
        period: int = 10,
        delta: float = 1e-5,
        c: float = 1.0,
        seed: int | None = 0,
        threads: int | None = None,
    ):
        super().__init__(
            features=("label[-1]",),
            start_features=False,
            queue=exact(),
            strategy=standard,
            seed=seed,
            threads=threads,
        )
        self.algorithm = algorithm
        self.all_possible_states = all_possible_states
        self.all_possible_transitions = all_possible_transitions
        self.c1 = c1
        self.c2 = c2
        self.max_iterations = max_iterations
        self.num_memories = num_memories
        self.epsilon = epsilon
        self.period = period
        self.delta = delta
        self.c = c

    def fit(
        self, X: Any, y: Any = None, X_dev: Any = None, y_dev: Any = None, **options: Any
    ) -> Self:
        """Learn from sentences; on those of ``X_dev`` and ``y_dev`` each iteration is scored."""
        self.epochs = self._iterations
        if X_dev is not None:
            options["dev"] = (X_dev, y_dev)
        return super().fit(X, y, **options)

    def measure(self, gold: list[Any], predicted: list[Any]) -> float:
        """Return token accuracy, from 0 to 1."""
        return accuracy(gold, predicted) / 100

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""
        known = ("algorithm", self.algorithm in ALGORITHMS, f"one of {', '.join(ALGORITHMS)}")
        check_parameters(
            self, [known, ("c1", self.c1 >= 0, "at least 0"), ("c2", self.c2 >= 0, "at least 0")]
        )
        super().validate()

    @property
    def _iterations(self) -> int:
        return self.max_iterations or ITERATIONS.get(self.algorithm, 1)

    def update_rule(self, task: Task) -> Rule:
        """Return the update rule of the algorithm."""
        variance = 1.0 / (2.0 * self.c2) if self.c2 else math.inf
        if self.algorithm == "lbfgs":
            return lbfgs(
                variance=variance,
                l1=self.c1,
                support="lattice" if self.all_possible_states else "pairs",
                transitions="lattice" if self.all_possible_transitions else "pairs",
                iterations=self._iterations,
                tolerance=self.epsilon,
                period=self.period,
                delta=self.delta,
                memory=self.num_memories,
            )
        if self.algorithm == "l2sgd":
            return sgd(variance=variance)
        return perceptron() if self.algorithm == "ap" else passive_aggressive(C=self.c)
