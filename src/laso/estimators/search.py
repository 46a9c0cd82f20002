"""The one estimator: it holds a task and does everything that is not the task's."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict

from laso.data.table import locating
from laso.engine.layout import Dataset
from laso.engine.options import is_exact
from laso.errors import InputError
from laso.estimators import learning
from laso.estimators.class_weights import ClassWeight, check_siblings, is_class_weight
from laso.estimators.learning import AfterEpoch, Checkpoint, Examples
from laso.estimators.prediction import Predictor
from laso.estimators.streaming import Source, stored
from laso.learn import delayed, early, restart
from laso.params import check_parameters, is_whole
from laso.queues import MakeQueue
from laso.tasks.base import Task
from laso.training import Progress, Rule, Strategy
from laso.updates import Likelihood

Report = Callable[[Progress], None]


class CommonParameters(TypedDict, total=False):
    """The parameters with one default in all estimators; ``SearchEstimator`` documents them."""

    queue: int | MakeQueue | None
    update: Rule | None
    strategy: Strategy
    seed: int | None
    held_out: float | None
    patience: int | None
    average: bool | None
    class_weight: ClassWeight
    hash_bits: int
    threads: int | None
    dtype: str


class SearchParameters(CommonParameters, total=False):
    """All parameters of ``SearchEstimator`` but its task."""

    epochs: int


class SearchEstimator(Predictor):
    """Learns the weights of a search inside that very search.

    Parameters
    ----------
    task : Task
        What is searched and what an output is.
    queue : int or queue, default=None
        The width of a beam, or beam(5), bounded_best_first(5), exact() ...; None: the task's
        default.
    update : update rule, default=None
        perceptron(), alma(), passive_aggressive(), arow(); with exact() also adagrad(), sgd() and
        lbfgs(), which train a conditional random field. None: the task's default.
    strategy : strategy, default=restart
        What happens after an error: restart, early, delayed, standard or max_violation.
    epochs : int, default=10
        The largest number of passes over the data.
    seed : int, default=0
        The seed of the order of the examples and of the held-out part; None: as they come.
    held_out : float, default=None
        The fraction of the examples to score each epoch on; the weights of the best epoch are kept.
    patience : int, default=None
        Stop after this number of epochs without a better score.
    average : bool, default=None
        Average the weights over all examples seen. None: average, except when training by
        likelihood.
    class_weight : mapping or "balanced", default=None
        What it costs to miss a label, as in {"O": 0.5} (1 for the others): updates after such
        errors are longer by that factor.
    hash_bits : int, default=0
        Bound the memory by hashing features to this number of bits; 0: keep all features apart.
    threads : int, default=None
        The number of threads for decoding; None: all cores.
    dtype : {"float32", "float64"}, default="float32"
        The type of the weights.

    Attributes
    ----------
    task_ : Task
        The task with what it has learned from the data: labels, vocabularies.
    classes_ : ndarray of str
        The labels of operators.
    weights_ : WeightTable
        The weights.
    scores_, best_epoch_, n_iter_, converged_, interrupted_
        The held-out score of each epoch, the epoch whose weights are kept, the number of epochs,
        whether the last one made no update, and whether Ctrl-C ended training.
    metadata_ : dict
        What else is known of the model: the temperature of ``calibrate``, the data's file names.
    """

    unsaved: ClassVar[dict[str, Any]] = {"task": None}  # a file never names code to import

    def __init__(
        self,
        task: Task | None = None,
        *,
        queue: int | MakeQueue | None = None,
        update: Rule | None = None,
        strategy: Strategy = restart,
        epochs: int = 10,
        seed: int | None = 0,
        held_out: float | None = None,
        patience: int | None = None,
        average: bool | None = None,
        class_weight: ClassWeight = None,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
    ) -> None:
        self.task = task
        self.queue = queue
        self.update = update
        self.strategy = strategy
        self.epochs = epochs
        self.seed = seed
        self.held_out = held_out
        self.patience = patience
        self.average = average
        self.class_weight = class_weight
        self.hash_bits = hash_bits
        self.threads = threads
        self.dtype = dtype

    # ------------------------------------------------------------------ what is searched, and how

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        if not isinstance(self.task, Task):
            raise ValueError(f"task must be a laso.Task, found {self.task!r}")
        return self.task.new()

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""
        optional = {name: getattr(self, name) for name in ("patience", "threads")}
        weights = "None, 'balanced', or a table of weights above 0"
        fraction = self.held_out is None or 0 < self.held_out < 1
        check_parameters(
            self,
            [
                ("epochs", is_whole(self.epochs, 1), "a whole number from 1 up"),
                *(
                    (name, value is None or is_whole(value, 1), "None or from 1 up")
                    for name, value in optional.items()
                ),
                ("held_out", fraction, "None or a fraction between 0 and 1"),
                ("class_weight", is_class_weight(self.class_weight), weights),
                ("hash_bits", is_whole(self.hash_bits, 0) and self.hash_bits <= 62, "0 to 62"),
                ("dtype", str(self.dtype) in ("float32", "float64"), "'float32' or 'float64'"),
            ],
        )
        task = self.make_task()
        task.validate()
        self.engine_for(task, task.problem)
        if self.class_weight is not None and task.problem.costs < 0:
            raise ValueError(
                f"class_weight needs a problem with costs, and {task.problem.__name__} has none: "
                "expected an attribute costs, and a loss that reads them by cost_of"
            )

    # ------------------------------------------------------------------ learning

    def averages(self) -> bool:
        """Return whether the weights are averaged over all examples seen."""
        if self.average is None:
            return not isinstance(self.update_rule(self.task_), Likelihood)
        return self.average

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        dev: Any = None,
        progress: Report | None = None,
        checkpoint: Checkpoint | None = None,
        after_epoch: AfterEpoch | None = None,
    ) -> Self:
        """Learn from inputs and outputs.

        Parameters
        ----------
        X : list of inputs, or path
            For the tasks over sentences: sentences, or the path of a column file.
        y : list of outputs, default=None
            None: the last columns of X hold the labels. A label may be None where it is not known;
            where many are, use ``strategy=max_violation``.
        dev : (X, y), default=None
            Data to score each epoch on, in place of ``held_out``.
        progress : callable, default=None
            It is called with a ``Progress`` after every few examples.
        checkpoint : Checkpoint, default=None
            Where the run is saved meanwhile.
        after_epoch : callable, default=None
            It is called after each epoch with the state of the training and the weights that would
            be kept. It ends the training by setting ``converged`` of the state.

        Returns
        -------
        self
            Ctrl-C ends learning and keeps what was learned. ``seconds_`` has the time to read, to
            make features, and to train.
        """
        self.validate()
        self.__dict__.pop("weights_", None)  # if learning fails, nothing old is its result
        clock = learning.Clock()
        task = self.make_task()
        with clock("read"):
            inputs, outputs = task.read(X, y)
        with clock("features"):
            with locating(inputs):
                task.observe([(inputs, outputs)])
            learning.begin(self, task)
            examples = self._examples(inputs, outputs, dev)
            del inputs, outputs
            self.fingerprint_ = examples.fingerprint
        with clock("train"):
            epochs = learning.most_epochs(self)
            learning.train(self, examples, epochs, progress, checkpoint, after_epoch)
        self.seconds_ = clock.seconds
        return self

    def fit_stream(
        self,
        source: Source,
        *,
        store: str | os.PathLike[str],
        dev: Any = None,
        progress: Report | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Learn from more examples than memory holds, with the result that ``fit`` would have.

        ``source`` is a column file, or a function that returns the examples anew. They are encoded
        once, into files in the folder ``store``, and learned from there.
        """
        self.validate()
        if self.held_out is not None:
            raise ValueError("held_out needs all examples at once: use dev, or fit")
        self.__dict__.pop("weights_", None)
        dataset = stored(self, self.make_task(), source, Path(store))
        examples = self._with_dev(dataset, dev)
        self.fingerprint_ = examples.fingerprint
        return learning.train(self, examples, learning.most_epochs(self), progress, checkpoint)

    def resume(
        self,
        X: Any,
        y: Any = None,
        *,
        epochs: int,
        dev: Any = None,
        progress: Report | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Go on to ``epochs`` in all, on the data of ``fit``, as if it had not stopped before.

        ``lbfgs()`` goes on from the weights alone, without the steps it has in memory, so that it
        comes to the same maximum by another way.
        """
        self.validate()
        learning.resumable(self)
        examples = self._examples(*self.task_.read(X, y), dev)
        return learning.resume(self, examples, epochs, progress, checkpoint)

    def resume_stream(
        self,
        source: Source,
        *,
        store: str | os.PathLike[str],
        epochs: int,
        dev: Any = None,
        progress: Report | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Go on as ``resume`` does, with the data of ``fit_stream``."""
        self.validate()
        learning.resumable(self)
        dataset = stored(self, self.task_, source, Path(store))
        examples = self._with_dev(dataset, dev)
        return learning.resume(self, examples, epochs, progress, checkpoint)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        classes: Sequence[str] | None = None,
        progress: Report | None = None,
    ) -> Self:
        """Make one pass over these examples, whose labels, words and features may be new.

        ``classes`` are labels to come, at the first call: a label that is known from the beginning
        is learned to be avoided, too.
        """
        self.validate()
        learning.check_partial(self)
        fitted = hasattr(self, "weights_")
        if fitted:
            learning.resumable(self)
        task = self.task_ if fitted else self.make_task()
        inputs, outputs = task.read(X, y)
        with locating(inputs):
            task.observe([(inputs, outputs)], classes=() if fitted or classes is None else classes)
        if fitted:
            learning.widen(self)
        else:
            learning.begin(self, task)
        examples = Examples(self.encode_gold(inputs, outputs))
        self.fingerprint_ = examples.fingerprint
        training = learning.resumable(self)
        training.converged = False
        return learning.train(self, examples, training.epoch + 1, progress)

    def encode_gold(self, inputs: Any, outputs: Any) -> Dataset:
        """Return examples as arrays to learn from."""
        task = self.task_
        makes_siblings = self.strategy in (restart, early, delayed) and not is_exact(
            self.search_queue(task)
        )
        with locating(inputs):
            ambiguity = task.ambiguity(inputs, outputs) if makes_siblings else None
            if ambiguity is not None:
                check_siblings(ambiguity)
            return task.encode(inputs, outputs)

    def _examples(self, inputs: Any, outputs: Any, dev: Any) -> Examples:
        dataset = self.encode_gold(inputs, outputs)
        if dev is not None or self.held_out is None:
            return self._with_dev(dataset, dev)
        gold = self.task_.gold_outputs(inputs, outputs)
        return learning.with_held_out(self, dataset, inputs, gold)

    def _with_dev(self, dataset: Dataset, dev: Any) -> Examples:
        if dev is None:
            return Examples(dataset)
        try:
            inputs, outputs = self.task_.read(*(dev if isinstance(dev, tuple) else (dev, None)))
            with locating(inputs):
                held = self.task_.encode(inputs)
                return Examples(dataset, held, inputs, self.task_.gold_outputs(inputs, outputs))
        except InputError as error:
            # Its sentences are not those of X.
            raise error if error.file is not None else error.at(file="dev") from None
