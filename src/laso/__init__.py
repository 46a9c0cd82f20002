"""Learning as search optimization (Daume & Marcu, ICML 2005).

Describe a search problem, choose how the queue is kept, and learn the weights inside that search:

    Problem                what a search problem is
    search, predict        Figure 1
    learn, fit             Figure 2, and passes over data
    beam, greedy, ...      queue disciplines
    perceptron, alma, ...  updates
    Tagger, Chunker        scikit-learn estimators for labels and chunks of sentences, compiled
    JointTagger            one for several layers of labels at once
    CRF                    the one of sklearn-crfsuite, on the same engine
    load_model             any of them from a file
    mixed                  several of them in one
"""

from typing import TYPE_CHECKING, Any

from laso.errors import (
    BadData,
    BadFeature,
    BadModel,
    BadProblem,
    BadTemplate,
    LasoError,
    MissingData,
    SearchFailed,
    Unreachable,
)
from laso.learn import early, laso, learn, max_violation, siblings, standard
from laso.problem import Node, Problem
from laso.queues import (
    a_star,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    depth_first,
    exact,
    greedy,
    hill_climbing,
    memory,
)
from laso.search import predict, search
from laso.training import Model, Progress, fit
from laso.updates import (
    adagrad,
    alma,
    lbfgs,
    loss_proportional,
    passive_aggressive,
    perceptron,
    sgd,
    uniform,
    worst,
)
from laso.vectors import Linear, linear_kernel, polynomial_kernel, rbf_kernel

if TYPE_CHECKING:
    from laso.estimators import CRF, Chunker, JointTagger, Tagger, load_model, mixed

__version__ = "0.1.0"

__all__ = [
    "BadData",
    "BadFeature",
    "BadModel",
    "BadProblem",
    "BadTemplate",
    "CRF",
    "Chunker",
    "JointTagger",
    "LasoError",
    "Linear",
    "MissingData",
    "Model",
    "Node",
    "Problem",
    "Progress",
    "SearchFailed",
    "Tagger",
    "Unreachable",
    "a_star",
    "adagrad",
    "alma",
    "beam",
    "best_first",
    "bounded_best_first",
    "breadth_first",
    "depth_first",
    "early",
    "exact",
    "fit",
    "greedy",
    "hill_climbing",
    "laso",
    "lbfgs",
    "learn",
    "linear_kernel",
    "load_model",
    "loss_proportional",
    "max_violation",
    "memory",
    "mixed",
    "passive_aggressive",
    "perceptron",
    "polynomial_kernel",
    "predict",
    "rbf_kernel",
    "search",
    "sgd",
    "siblings",
    "standard",
    "uniform",
    "worst",
]


def __getattr__(name: str) -> Any:
    """The estimators, imported when first used: they need Numba and scikit-learn."""
    if name in ("CRF", "Chunker", "JointTagger", "Tagger", "load_model", "mixed"):
        from laso import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
