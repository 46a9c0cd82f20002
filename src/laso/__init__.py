"""Learning as search optimization (Daume & Marcu, ICML 2005).

Describe a search problem, choose how the queue is kept, and learn the weights inside that search:

    Problem                what a search problem is
    search, predict        Figure 1
    learn, fit             Figure 2, and passes over data
    beam, greedy, ...      queue disciplines
    perceptron, alma, ...  updates
"""

from laso.errors import BadData, BadFeature, LasoError, MissingData, SearchFailed, Unreachable
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
    alma,
    loss_proportional,
    passive_aggressive,
    perceptron,
    uniform,
    worst,
)
from laso.vectors import Linear, linear_kernel, polynomial_kernel, rbf_kernel

__version__ = "0.1.0"

__all__ = [
    "BadData",
    "BadFeature",
    "LasoError",
    "Linear",
    "MissingData",
    "Model",
    "Node",
    "Problem",
    "Progress",
    "SearchFailed",
    "Unreachable",
    "a_star",
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
    "learn",
    "linear_kernel",
    "loss_proportional",
    "max_violation",
    "memory",
    "passive_aggressive",
    "perceptron",
    "polynomial_kernel",
    "predict",
    "rbf_kernel",
    "search",
    "siblings",
    "standard",
    "uniform",
    "worst",
]
