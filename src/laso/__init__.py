"""Learning as search optimization (Daume & Marcu, ICML 2005).

Describe a search problem, choose how the queue is kept, and learn the weights inside that search:

    Problem                what a search problem is
    search, predict        Figure 1
    learn, fit             Figure 2, and passes over data
    beam, greedy, ...      queue disciplines
    perceptron, alma, ...  updates
    Tagger, Chunker        scikit-learn estimators for labels and chunks of sentences, compiled
    JointTagger            one for several layers of labels at once
    Parser                 one for dependency trees
    Clusterer              one for clusters: coreference, record linkage
    CRF                    the one of sklearn-crfsuite, on the same engine
    load_model             any of them from a file
    average_models         the mean of several of them
    Task, SearchEstimator  a task of your own, and the estimator that learns it
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from laso.arow import arow
from laso.errors import (
    BadData,
    BadFeature,
    BadModel,
    BadProblem,
    BadTemplate,
    LasoError,
    MissingData,
    OutOfMemory,
    SearchFailed,
    Unreachable,
    WorkerLost,
)
from laso.learn import (
    best_siblings,
    delayed,
    early,
    learn,
    max_violation,
    restart,
    siblings,
    standard,
)
from laso.problem import Node, Problem
from laso.queues import (
    a_star,
    beam,
    best_first,
    bounded_best_first,
    breadth_first,
    closed_set,
    depth,
    depth_first,
    exact,
    greedy,
    hill_climbing,
    only_good,
    own_key,
    own_signature,
)
from laso.search import predict, search
from laso.training import Model, Progress, fit
from laso.updates import (
    adagrad,
    alma,
    lbfgs,
    passive_aggressive,
    perceptron,
    sgd,
)
from laso.vectors import Linear, linear_kernel, polynomial_kernel, rbf_kernel
from laso.weightings import loss_proportional, uniform, worst

if TYPE_CHECKING:
    from laso.engine.costs import cost_of
    from laso.engine.dataset import make_dataset
    from laso.engine.hashing import mix
    from laso.engine.layout import (
        BLOCKS,
        CHAIN,
        FACTORS,
        FEATURES_OF_STATE,
        FORM,
        KEY_OF_GROUP,
        MAX_FEATURES,
        MAX_GROUPS,
        MAX_LABELS,
        PARTIAL_STATES,
        SAME_LABEL,
        SEGMENTS,
        STATE_SIZE,
        STEPS,
        VECTORS,
        Dataset,
    )
    from laso.engine.problem import CompiledProblem
    from laso.estimators import (
        CRF,
        Checkpoint,
        Chunker,
        Clusterer,
        JointTagger,
        Parser,
        SearchEstimator,
        Tagger,
        average_models,
        load_model,
    )
    from laso.features.dense import with_vectors
    from laso.tasks.arrays import ArrayTask
    from laso.tasks.base import Step, Task

__version__ = "0.1.0"

__all__ = [
    "ArrayTask",
    "BLOCKS",
    "BadData",
    "BadFeature",
    "BadModel",
    "BadProblem",
    "BadTemplate",
    "CHAIN",
    "CRF",
    "Checkpoint",
    "Chunker",
    "Clusterer",
    "CompiledProblem",
    "Dataset",
    "FACTORS",
    "FEATURES_OF_STATE",
    "FORM",
    "JointTagger",
    "KEY_OF_GROUP",
    "LasoError",
    "Linear",
    "MAX_FEATURES",
    "MAX_GROUPS",
    "MAX_LABELS",
    "MissingData",
    "Model",
    "Node",
    "OutOfMemory",
    "PARTIAL_STATES",
    "Parser",
    "Problem",
    "Progress",
    "SAME_LABEL",
    "SEGMENTS",
    "STATE_SIZE",
    "STEPS",
    "SearchEstimator",
    "SearchFailed",
    "Step",
    "Tagger",
    "Task",
    "Unreachable",
    "VECTORS",
    "WorkerLost",
    "a_star",
    "adagrad",
    "alma",
    "arow",
    "average_models",
    "beam",
    "best_first",
    "best_siblings",
    "bounded_best_first",
    "breadth_first",
    "closed_set",
    "cost_of",
    "depth",
    "depth_first",
    "delayed",
    "early",
    "exact",
    "fit",
    "greedy",
    "hill_climbing",
    "lbfgs",
    "learn",
    "linear_kernel",
    "load_model",
    "loss_proportional",
    "make_dataset",
    "max_violation",
    "mix",
    "only_good",
    "own_key",
    "own_signature",
    "passive_aggressive",
    "perceptron",
    "polynomial_kernel",
    "predict",
    "rbf_kernel",
    "restart",
    "search",
    "sgd",
    "siblings",
    "standard",
    "uniform",
    "with_vectors",
    "worst",
]


_LATER = {
    "laso.engine.costs": ("cost_of",),
    "laso.engine.hashing": ("mix",),
    "laso.engine.dataset": ("make_dataset",),
    "laso.engine.layout": (
        "BLOCKS",
        "CHAIN",
        "Dataset",
        "FACTORS",
        "FEATURES_OF_STATE",
        "FORM",
        "KEY_OF_GROUP",
        "MAX_FEATURES",
        "MAX_GROUPS",
        "MAX_LABELS",
        "PARTIAL_STATES",
        "SAME_LABEL",
        "SEGMENTS",
        "STATE_SIZE",
        "STEPS",
        "VECTORS",
    ),
    "laso.engine.problem": ("CompiledProblem",),
    "laso.estimators": (
        "CRF",
        "Checkpoint",
        "Chunker",
        "Clusterer",
        "JointTagger",
        "Parser",
        "SearchEstimator",
        "Tagger",
        "Task",
        "average_models",
        "load_model",
    ),
    "laso.features.dense": ("with_vectors",),
    "laso.tasks.arrays": ("ArrayTask",),
    "laso.tasks.base": ("Step", "Task"),
}


def __getattr__(name: str) -> Any:
    """What needs NumPy, imported when it is first used."""
    for module, names in _LATER.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
