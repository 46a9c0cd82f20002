"""Estimators with scikit-learn's conventions, on the compiled engine.

search.py      SearchEstimator: fit, predict, save and all else, for any task
learning.py    examples, epochs, checkpoints, going on later
tagger.py chunker.py joint.py parser.py clusterer.py
               short parameter lists over it
nbest.py confidence.py forced.py explain.py inspection.py averaging.py streaming.py
               one capability a file, for every task

``__init__`` only stores, ``fit`` validates and returns the estimator, and what was learned ends
in _.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

from laso.problem import Problem
from laso.queues import MakeQueue
from laso.tasks.base import Task
from laso.training import Model

if TYPE_CHECKING:
    from laso.crfsuite.crf import CRF
    from laso.estimators.learning.averaging import average_models
    from laso.estimators.learning.fitting import Checkpoint, Size
    from laso.estimators.products.chunker import Chunker
    from laso.estimators.products.clusterer import Clusterer
    from laso.estimators.products.joint import JointTagger
    from laso.estimators.products.parser import Parser
    from laso.estimators.products.tagger import Tagger
    from laso.estimators.search import SearchEstimator

__all__ = [
    "CRF",
    "Checkpoint",
    "Chunker",
    "Clusterer",
    "JointTagger",
    "Parser",
    "SearchEstimator",
    "Size",
    "Tagger",
    "average_models",
    "load_model",
]

ESTIMATORS = {  # those that a file may name, and their modules: only the named one is imported
    "SearchEstimator": "laso.estimators.search",
    "Tagger": "laso.estimators.products.tagger",
    "Chunker": "laso.estimators.products.chunker",
    "JointTagger": "laso.estimators.products.joint",
    "Parser": "laso.estimators.products.parser",
    "Clusterer": "laso.estimators.products.clusterer",
    "CRF": "laso.crfsuite.crf",
}
_LATER = {
    **ESTIMATORS,
    "Checkpoint": "laso.estimators.learning.fitting",
    "Size": "laso.estimators.learning.fitting",
    "average_models": "laso.estimators.learning.averaging",
}


def __getattr__(name: str) -> Any:
    """Each estimator is imported when it is first used: to label needs one of them."""
    if name in _LATER:
        return getattr(import_module(_LATER[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@overload
def load_model(
    path: str | os.PathLike[str],
    *,
    problem: Problem,
    queue: MakeQueue | None = None,
    limit: float | None = None,
) -> Model: ...
@overload
def load_model(
    path: str | os.PathLike[str],
    *,
    task: Task | None = None,
    encoder: Any = None,
    limit: float | None = None,
    mmap: bool = False,
) -> "SearchEstimator": ...
def load_model(
    path: str | os.PathLike[str],
    *,
    task: Task | None = None,
    problem: Problem | None = None,
    queue: MakeQueue | None = None,
    encoder: Any = None,
    limit: float | None = None,
    mmap: bool = False,
) -> "SearchEstimator | Model":
    """Return the model of a file, whatever its task; any other file raises ``BadModel``.

    Parameters
    ----------
    path : path
        A file that ``save`` has written.
    task : Task, default=None
        The task, for a model of a task of your own: a file never names code to import.
    problem : Problem, default=None
        The problem, for a ``Model`` that ``laso.fit`` has learned in the reference engine.
    queue : queue discipline, default=None
        The queue of a ``Model``, if it has a function of your own.
    encoder : encoder, default=None
        The encoder of the model's dense vectors, unless it is a built-in one, which the file names.
    limit : float, default=None
        The largest number of bytes that the model may take in memory, ``math.inf`` for any. None:
        ``LASO_LOAD_LIMIT``, or 64 times the size of the file and at least 256 MB.
    mmap : bool, default=False
        Map the file into memory instead of reading it, so that all processes share its memory. It
        must be a file of ``save(path, compress=False)`` that nobody changes while it is in use: a
        new file in its place does no harm, but one that is cut short ends the process.

    Examples
    --------
    >>> import tempfile
    >>> from laso import Tagger, load_model
    >>> tagger = Tagger(epochs=1).fit([["a", "dog"]], [["DET", "NOUN"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = tagger.save(f"{folder}/tagger.laso")
    ...     load_model(f"{folder}/tagger.laso").predict([["a", "dog"]])
    [['DET', 'NOUN']]
    """
    if problem is not None:
        return Model.load(path, problem=problem, queue=queue, limit=limit)
    from laso.files.estimator import load

    return load(path, task, encoder=encoder, limit=limit, mmap=mmap)
