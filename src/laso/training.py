"""Passes over training data: ``fit`` calls a strategy once for every example and averages."""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, Self, overload

from laso.errors import BadFeature
from laso.learn import restart
from laso.problem import Node, Problem, make_node, operators
from laso.queues import MakeQueue, beam
from laso.search import predict
from laso.updates import perceptron
from laso.vectors import Linear, WeightVector
from laso.weightings import worst

if TYPE_CHECKING:
    from laso.engine.problem import CompiledProblem
    from laso.estimators import SearchEstimator
    from laso.tasks.base import Task


SAMPLE = 100  # examples at most, to measure steps
OPERATORS = 20_000  # to look at


class Rule(Protocol):
    """Protocol of the update rules: ``start`` returns the first weights, a call the next ones."""

    def start(self) -> WeightVector: ...
    def __call__(self, w: WeightVector, x: Any, sibs: Any, nodes: Any) -> WeightVector: ...


Strategy = Callable[[Problem, Any, Any, WeightVector, MakeQueue, Any], WeightVector]


@dataclass(frozen=True)
class Progress:
    """How far training has come; both engines pass it to the ``progress`` callback.

    Parameters
    ----------
    epoch, epochs : int
        The number of this epoch, from 1, and of all epochs.
    example, examples : int
        The number of examples visited in this epoch, and of all examples.
    updates : int
        The number of updates since training began.
    error_rate : float
        The fraction of this epoch's visited examples that needed an update.
    score : float, optional
        The score on held-out data, at the end of an epoch.
    objective : float, optional
        For ``lbfgs()``, the log-likelihood with its prior, per example.

    Examples
    --------
    >>> from laso import fit
    >>> from laso.examples.tagging import SENTENCES, Tagging, columns
    >>> data = [columns(line) for line in SENTENCES.splitlines()]
    >>> seen = []
    >>> model = fit(Tagging({"DT", "NN", *data[0][1], *data[1][1]}), data, progress=seen.append)
    >>> (seen[0].epoch, seen[0].example, seen[0].examples)
    (1, 1, 2)
    """

    epoch: int
    epochs: int
    example: int
    examples: int
    updates: int
    error_rate: float
    score: float | None = None
    objective: float | None = None


@dataclass(frozen=True)
class Model:
    """A problem with the weights learned for it and the queue they were learned in.

    Parameters
    ----------
    problem : Problem
        The search problem.
    w : weight vector
        The weights.
    queue : queue discipline
        How the queue is kept, for example ``beam(5)``.
    updates : int, default=0
        The number of updates of the training.
    converged : bool, default=False
        Whether the last epoch of the training needed no update.

    Examples
    --------
    >>> from laso import Linear, beam
    >>> from laso.examples.tagging import Tagging
    >>> model = Model(Tagging("ab"), Linear({"b x": 1.0}), beam(5))
    >>> model.predict(("x", "y"))
    ('b', 'a')
    """

    problem: Problem
    w: WeightVector
    queue: MakeQueue
    updates: int = 0
    converged: bool = False

    def predict(self, x: Any) -> Any:
        """Search for the output of an input.

        Parameters
        ----------
        x : object
            The input.

        Returns
        -------
        object
            The problem's ``output`` of the goal.

        Raises
        ------
        SearchFailed
            The search ends before it dequeues a goal.
        """
        return predict(self.problem, x, self.w, self.queue)

    def save(self, path: str | os.PathLike[str]) -> int:
        """Write queue and weights to a file; the problem is code and is not in it.

        A function of your own in the queue is code, too: ``load`` then needs the queue again.

        Parameters
        ----------
        path : path
            The file, which is written in one step.

        Returns
        -------
        int
            The size of the file in bytes.

        Raises
        ------
        ValueError
            The file cannot hold the model: a feature name is not text, number, truth value, None or
            a tuple of these, or the weights have a kernel.
        """
        from laso.files.reference_models import write_model

        return write_model(path, self)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        problem: Problem,
        queue: MakeQueue | None = None,
        limit: float | None = None,
    ) -> Self:
        """Read a model that ``save`` wrote; no code of the file is run.

        Parameters
        ----------
        path : path
            The file.
        problem : Problem
            The search problem that the model was trained for.
        queue : queue discipline, optional
            The queue, if it has a function of your own, which no file can hold; by default that of
            the file.
        limit : float, optional
            The largest number of bytes that the model may take in memory, as of ``load_model``.

        Returns
        -------
        Model
            A model with the weights of the saved one; they are ``Linear``.

        Raises
        ------
        BadModel
            The file is damaged or holds another kind of model.
        """
        from laso.files.reference_models import read_model

        return cls(problem, *read_model(path, limit, queue))


def visiting_order(n: int, seed: int | None, epoch: int) -> list[int]:
    """The order in which an epoch visits the examples, the same in both engines.

    Parameters
    ----------
    n : int
        The number of examples.
    seed : int or None
        The seed of the training; None keeps the order of the data.
    epoch : int
        The number of the epoch, from 1.

    Returns
    -------
    list of int
        The indices of the examples. They depend on the arguments alone, so that a training can be
        resumed.

    Examples
    --------
    >>> visiting_order(5, None, 1)
    [0, 1, 2, 3, 4]
    >>> visiting_order(5, 0, 1) == visiting_order(5, 0, 1)
    True
    """
    order = list(range(n))
    if seed is not None:
        random.Random(f"{seed}/{epoch}").shuffle(order)
    return order


@overload
def fit(problem: Problem, data: Iterable[tuple[Any, Any]], **settings: Any) -> Model: ...
@overload
def fit(
    problem: type[CompiledProblem] | Task, data: Iterable[tuple[Any, Any]], **settings: Any
) -> SearchEstimator: ...
def fit(  # type: ignore[misc]
    problem: Problem | type[CompiledProblem] | Task,
    data: Iterable[tuple[Any, Any]],
    *,
    queue: MakeQueue | None = None,
    update: Rule | None = None,
    strategy: Strategy = restart,
    epochs: int = 10,
    seed: int | None = 0,
    average: bool = True,
    progress: Callable[[Progress], None] | None = None,
    n_labels: int = 1,
    spec: Sequence[int] = (),
) -> Model | SearchEstimator:
    """Learn weights for a problem inside the search that will use them.

    A ``Problem`` is learned by the reference engine, a ``CompiledProblem`` or a ``Task`` by the
    compiled engine. Both visit the examples in the same order and make the same updates.

    Training ends early after an epoch without an update. Ctrl-C ends it too, and ``fit`` returns
    what it learned until then.

    Parameters
    ----------
    problem : Problem, type of CompiledProblem, or Task
        The search problem. Inputs and outputs of a compiled problem are integers; a task encodes
        any.
    data : iterable of (x, y)
        The inputs with their gold outputs.
    queue : queue discipline, default=beam(5)
        How the queue is kept.
    update : update rule, optional
        How the weights change after an error. By default ``perceptron(weighting=worst, margin=n)``,
        where n is the mean squared length of a gold step's features.
    strategy : callable, default=restart
        What happens after an error: ``restart``, ``early``, ``delayed``, ``standard`` or
        ``max_violation``.
    epochs : int, default=10
        The largest number of passes over the data.
    seed : int or None, default=0
        Shuffles the examples of each epoch (see ``visiting_order``); None keeps their order.
    average : bool, default=True
        Return the average of the weights after all examples, not the last weights.
    progress : callable, optional
        A function that is called with a ``Progress`` after every example.
    n_labels : int, default=1
        The number of labels of operators of a compiled problem.
    spec : sequence of int, default=()
        The constants of a compiled problem, ``x.spec``.

    Returns
    -------
    Model or SearchEstimator
        The problem with its weights and its queue; of a compiled problem or a task, the fitted
        estimator.

    Examples
    --------
    >>> from laso import beam, fit
    >>> from laso.examples.tagging import Tagging
    >>> model = fit(Tagging("ab"), [("xy", ("a", "b")), ("yx", ("b", "a"))], queue=beam(2))
    >>> model.predict("xy")
    ('a', 'b')
    """
    if not isinstance(problem, Problem):
        given = {"queue": queue, "update": update, "strategy": strategy, "epochs": epochs}
        settings = {**given, "seed": seed, "average": average}
        return _fit_compiled(problem, data, progress, n_labels=n_labels, spec=spec, **settings)
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, found {epochs}")
    examples: Sequence[tuple[Any, Any]] = list(data)
    if not examples:
        raise ValueError("there is nothing to learn from: no pair (x, y) was given")
    queue = queue or beam(5)
    rule = update or perceptron(weighting=worst, margin=mean_step_length(problem, examples))
    w = rule.start()
    converged = False
    try:
        for epoch in range(1, epochs + 1):
            wrong = 0
            at_start = w.k
            for n, i in enumerate(visiting_order(len(examples), seed, epoch), start=1):
                before = w.k
                w = strategy(problem, *examples[i], w, queue, rule)
                w.tick()
                wrong += w.k != before
                if progress is not None:
                    progress(Progress(epoch, epochs, n, len(examples), w.k - 1, wrong / n))
            converged = w.k == at_start
            if converged:
                break
    except KeyboardInterrupt:
        if w.k == 1:
            raise
    updates = w.k - 1
    return Model(problem, w.averaged() if average else w, queue, updates, converged)


def mean_step_length(problem: Problem, examples: Sequence[tuple[Any, Any]]) -> float:
    """The mean squared length of the feature vectors of gold steps; 1 if there are none.

    Parameters
    ----------
    problem : Problem
        The search problem.
    examples : sequence of (x, y)
        The training data, of which a sample is looked at.

    Returns
    -------
    float
        The mean; if all features have the value 1, it is the mean number of features of a step.

    Examples
    --------
    >>> from laso.examples.tagging import Tagging
    >>> mean_step_length(Tagging("ab"), [("xy", ("a", "b"))])
    3.0
    """

    def follow(i: int, squares: list[float], left: int) -> int:
        x, y = examples[i]
        node = make_node(problem, x, Linear(), y)
        while left > 0 and node.good and not node.is_goal:
            following = operators(problem, x, node, Linear(), y)
            left -= len(following)
            node = next((each for each in following if each.good), Node(None))
            if node.good:
                squares.append(sum(value * value for value in node.features.values()))
        return left

    return mean_of_sample(len(examples), follow)


def mean_of_sample(n: int, follow: Callable[[int, list[float], int], int]) -> float:
    """The mean of what ``follow`` measures in a sample of n examples; 1 if that is nothing.

    Parameters
    ----------
    n : int
        The number of examples.
    follow : callable
        A function of the number of an example, the list of measures to add to, and the number of
        operators that may still be looked at; it returns how many of these are left.

    Returns
    -------
    float
        The mean. The sample is drawn at random but always the same.
    """
    measures: list[float] = []
    left = OPERATORS
    for i in random.Random(0).sample(range(n), min(n, SAMPLE)):
        left = follow(i, measures, left)
        if left <= 0:
            break
    mean = sum(measures) / len(measures) if any(measures) else 1.0
    if not math.isfinite(mean):
        raise BadFeature(
            "found features with which scores overflow, expected smaller and finite values (a "
            "division by zero has none)"
        )
    return round(mean, 2)


def _fit_compiled(
    problem: type[CompiledProblem] | Task,
    data: Iterable[tuple[Any, Any]],
    progress: Callable[[Progress], None] | None,
    *,
    n_labels: int,
    spec: Sequence[int],
    **settings: Any,
) -> SearchEstimator:
    from laso.estimators import SearchEstimator
    from laso.tasks.arrays import ArrayTask
    from laso.tasks.base import Task
    from laso.updates import Likelihood

    task = problem if isinstance(problem, Task) else None
    if task is None:
        task = ArrayTask(problem, n_labels=n_labels, spec=spec)  # type: ignore[arg-type]
    if isinstance(settings["update"], Likelihood):
        settings["average"] = None
    pairs = list(data)
    X, y = [x for x, _ in pairs], [y for _, y in pairs]
    return SearchEstimator(task, **settings).fit(X, y, progress=progress)
