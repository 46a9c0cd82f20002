"""The one estimator: it holds a task and does everything that is not the task's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypedDict

import numpy as np

from laso.calibration import Reliability
from laso.engine.choose import engine_for
from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import Machine, all_of, default_threads
from laso.engine.options import is_exact, own_key
from laso.engine.passes import Report, Training
from laso.engine.problem import CompiledProblem
from laso.estimators import confidence, learning, nbest, serialization
from laso.estimators.class_weights import ClassWeight, check_siblings, is_class_weight
from laso.estimators.confidence import Confidence
from laso.estimators.learning import Checkpoint, Examples
from laso.estimators.streaming import Source, stored
from laso.estimators.tables import with_bias
from laso.learn import early, laso
from laso.model_file import write_file
from laso.params import Estimator
from laso.queues import MakeQueue, beam
from laso.tasks.base import Task, check_parameters, is_whole
from laso.training import Rule, Strategy

Progress = Callable[[Report], None]

FEW_ITEMS = 2000  # for fewer, threads cost more than they bring


class SearchParameters(TypedDict, total=False):
    """The parameters that all estimators have; ``SearchEstimator`` documents them."""

    queue: int | MakeQueue | None
    update: Rule | None
    strategy: Strategy
    epochs: int
    seed: int | None
    held_out: float | None
    patience: int | None
    average: bool | None
    class_weight: ClassWeight
    hash_bits: int
    threads: int | None
    dtype: str


class SearchEstimator(Estimator):
    """Learns the weights of a search inside that very search.

    Parameters
    ----------
    task : Task
        What is searched and what an output is.
    queue : int or queue, default=None
        The width of a beam, or beam(5), bounded_best_first(5), exact() ...; None: the task's
        default.
    update : update rule, default=None
        perceptron(), alma(), passive_aggressive(); with exact() also adagrad(), sgd() and lbfgs(),
        which train a conditional random field. None: the task's default.
    strategy : strategy, default=restart
        What happens after an error: restart, early, standard or max_violation.
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

    task_: Task
    classes_: Array
    weights_: Table
    training_: Training | None
    class_weight_: dict[str, float] | None
    fingerprint_: int
    metadata_: dict[str, Any]
    seconds_: dict[str, float]
    n_iter_: int
    best_epoch_: int
    scores_: list[float]
    converged_: bool
    interrupted_: bool

    def __init__(
        self,
        task: Task | None = None,
        *,
        queue: int | MakeQueue | None = None,
        update: Rule | None = None,
        strategy: Strategy = laso,
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

    def search_queue(self, task: Task) -> MakeQueue:
        """Return the queue that the parameter ``queue`` stands for."""
        if self.queue is None:
            return self._beam(task, task.default_queue())
        if isinstance(self.queue, (int, np.integer)) and not isinstance(self.queue, bool):
            return self._beam(task, beam(int(self.queue)))
        return self.queue  # type: ignore[return-value]

    def _beam(self, task: Task, queue: Any) -> MakeQueue:
        if task.problem.key is CompiledProblem.key:
            return queue  # type: ignore[no-any-return]
        return beam(queue.keywords["width"], key=own_key)

    def update_rule(self, task: Task) -> Rule:
        """Return the update rule; with class weights its steps are longer by the loss."""
        rule: Any = task.default_update() if self.update is None else self.update
        chosen: Rule = rule if self.class_weight is None else replace(rule, by_loss=True)
        return chosen

    def engine_for(self, task: Task, problem: type[CompiledProblem]) -> Machine | ExactMachine:
        """Return the engine that searches a problem with these parameters."""
        return engine_for(problem, self.search_queue(task), self.update_rule(task), self.strategy)

    def engine(self, dataset: Corpus) -> Machine | ExactMachine:
        """Return the engine that searches a dataset of the fitted task."""
        return self.engine_for(self.task_, self.task_.problem_for(dataset))

    def threads_for(self, dataset: Corpus) -> int:
        """Return the number of threads for a dataset: one for a small one."""
        if len(dataset.items) < FEW_ITEMS:
            return 1
        return default_threads() if self.threads is None else int(self.threads)

    # ------------------------------------------------------------------ learning

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        dev: Any = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
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
            task.observe([(inputs, outputs)])
            learning.begin(self, task)
            examples = self._examples(inputs, outputs, dev)
            del inputs, outputs
            self.fingerprint_ = examples.fingerprint
        with clock("train"):
            learning.train(self, examples, learning.most_epochs(self), progress, checkpoint)
        self.seconds_ = clock.seconds
        return self

    def fit_stream(
        self,
        source: Source,
        *,
        store: str | os.PathLike[str],
        dev: Any = None,
        progress: Progress | None = None,
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
        progress: Progress | None = None,
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
        progress: Progress | None = None,
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
        progress: Progress | None = None,
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

    def encode_gold(self, inputs: Any, outputs: Any) -> Corpus:
        """Return examples as arrays to learn from."""
        task = self.task_
        makes_siblings = self.strategy in (laso, early) and not is_exact(self.search_queue(task))
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

    def _with_dev(self, dataset: Corpus, dev: Any) -> Examples:
        if dev is None:
            return Examples(dataset)
        inputs, outputs = self.task_.read(*(dev if isinstance(dev, tuple) else (dev, None)))
        held = self.task_.encode(inputs)
        return Examples(dataset, held, inputs, self.task_.gold_outputs(inputs, outputs))

    # ------------------------------------------------------------------ predicting

    def _encoded(self, X: Any) -> tuple[Any, Corpus]:
        self.require("weights_")
        inputs = self.task_.read_inputs(X)
        return inputs, self.task_.encode(inputs)

    def predict(self, X: Any) -> list[Any]:
        """Return the output of each input; a column of labels in ``X`` is not looked at."""
        return self.decode(*self._encoded(X))

    def predict_single(self, x: Any) -> Any:
        """Return the output of one input."""
        return self.predict([x])[0]

    def decode(self, inputs: Any, dataset: Corpus, table: Table | None = None) -> list[Any]:
        """Return the outputs of encoded inputs, with other weights if a table is given."""
        engine, threads = self.engine(dataset), self.threads_for(dataset)
        weights = self.weights_ if table is None else table
        steps, ends, _ = engine.decode(dataset, all_of(dataset), weights, threads=threads)
        return self.task_.decode_all(inputs, steps, ends)

    def score(self, X: Any, y: Any = None) -> float:
        """Return how good predictions for ``X`` are, from 0 to 1.

        Without ``y`` the last columns of X hold the labels.
        """
        self.require("weights_")
        inputs, outputs = self.task_.read(X, y)
        predicted = self.decode(inputs, self.task_.encode(inputs))
        return self.task_.score(self.task_.gold_outputs(inputs, outputs), predicted)

    def predict_nbest(self, X: Any, n: int) -> list[list[tuple[float, Any]]]:
        """Return the ``n`` best outputs of each input with their scores.

        With ``queue=exact()`` these are the best of all, else those that the beam holds at its end.
        """
        return nbest.nbest_outputs(self, *self._encoded(X), n)

    def predict_marginals(self, X: Any, *, least: float = 0.01) -> list[Any]:
        """Return the probability of each step (name, first item, end), with ``queue=exact()``.

        An output is as probable as exp(its score), among all that are allowed: what adagrad(),
        sgd() and lbfgs() learn. Other updates learn scores that say little as probabilities. Steps
        less probable than ``least`` are left out.
        """
        return confidence.marginals(self, *self.exactly("predict_marginals", X), least=least)

    def exactly(self, name: str, X: Any) -> tuple[ExactMachine, Corpus]:
        """Return the engine and the dataset of a method that needs exact search."""
        _, dataset = self._encoded(X)
        engine = self.engine(dataset)
        if not isinstance(engine, ExactMachine):
            raise ValueError(f"{name} needs exact search: queue=exact(), found {self.queue!r}")
        return engine, dataset

    def predict_confidence(self, X: Any, *, chunks: bool | str = False) -> list[Confidence]:
        """Return each output, how probable it is, and how probable its parts are.

        The probabilities are exact with ``queue=exact()``; otherwise they are relative to the
        outputs that the beam holds at its end. ``calibrate`` calibrates them. With ``chunks`` the
        parts are whole chunks that the labels mark; of several layers it names one.
        """
        inputs, dataset = self._encoded(X)
        if chunks:
            return confidence.chunk_confidences(self, inputs, dataset, chunks)
        return confidence.confidences(self, inputs, dataset)

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Choose the temperature of ``predict_confidence`` on examples not learned from."""
        self.require("weights_")
        temperature = confidence.fitted_temperature(self, *self.task_.read(X, y))
        self.metadata_ = {**self.metadata_, confidence.TEMPERATURE: temperature}
        return self

    def reliability(self, X: Any, y: Any = None) -> Reliability:
        """Return how often parts of each probability are right: the calibration error."""
        self.require("weights_")
        return confidence.reliability_of(self, *self.task_.read(X, y))

    def predict_forced(self, X: Any, *, known: Any = None, banned: Any = None) -> list[Any]:
        """Return the output of each input if some of its steps are known, or banned.

        Parameters
        ----------
        X : list of inputs
        known : list, default=None
            For each input None, or a label or None for each item, or spans (label, start, end).
        banned : list, default=None
            For each input None, labels that are banned in all of it, or such labels for each item.
        """
        from laso.estimators.forced import forced

        self.require("weights_")
        inputs = list(X)
        given = [[None] * len(inputs) if some is None else list(some) for some in (known, banned)]
        rows = zip(inputs, *given, strict=True)
        return [forced(self, x, some, never)[0] for x, some, never in rows]

    def explain(self, x: Any, *, features: int = 10) -> dict[str, Any]:
        """Return why an input gets its output: the decisions, their features, their runners-up."""
        from laso.estimators.explain import explained

        return explained(self, x, features=features)

    def trace(self, x: Any, y: Any = None) -> list[dict[str, Any]]:
        """Return the events of the search for one input: each node dequeued, with the queue.

        With the gold output ``y``, each node tells whether it is y-good.
        """
        from laso.estimators.explain import traced

        return traced(self, x, y)

    def inspect(self, *, features: int = 10, data: Any = None) -> dict[str, Any]:
        """Return what the model is, and the top features of each label.

        With ``data``, features that only inputs can name, such as pairs of words, are named too.
        """
        from laso.estimators.inspection import inspected

        return inspected(self, features=features, data=data)

    def biased(self, bias: Mapping[str, float]) -> Self:
        """Return a copy that predicts some labels more often, or less often.

        ``bias`` is added to the scores of labels. For labels that mark chunks, less for O finds
        more chunks, of which more are wrong.
        """
        self.require("weights_")
        amounts = np.zeros(len(self.classes_))
        for label, amount in bias.items():
            if label not in self.classes_:
                expected = ", ".join(self.classes_)
                raise ValueError(f"found a bias for {label!r}, expected one of {expected}")
            amounts[list(self.classes_).index(label)] = amount
        table = with_bias(self.weights_, list(self.task_.bias_keys()), amounts)
        return self.with_weights(table)

    def with_weights(self, table: Table) -> Self:
        """Return a copy with other weights, which shares nothing that can change."""
        made = copy(self)
        for name, value in vars(self).items():
            if name.endswith("_") and name not in ("weights_", "training_"):
                setattr(made, name, deepcopy(value))
        made.weights_, made.training_ = table, None
        return made

    # ------------------------------------------------------------------ files

    @property
    def size_(self) -> learning.Size:
        """The size of the model in memory; ``save`` returns its size on disk."""
        self.require("weights_")
        return learning.size_of(self.weights_)

    def save(
        self, path: str | os.PathLike[str], *, weights: str | None = None, training: bool = False
    ) -> int:
        """Write the model to one file, all of it or nothing; return its size in bytes.

        ``weights`` may be "float32", "float16" or "int8" for a smaller file. ``training`` keeps
        what ``resume`` and ``partial_fit`` go on from.
        """
        self.require("weights_")
        return write_file(path, *serialization.packed_model(self, weights, training))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, task: Task | None = None) -> Self:
        """Return the model of a file; any other file raises ``BadModel``.

        A model of a task of your own needs that task.
        """
        made = serialization.load(path, task)
        if not isinstance(made, cls):
            raise serialization.wrong_estimator(path, made, cls)
        return made
