"""The one estimator: it holds a task and does everything that is not the task's."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from laso.data.table import locating
from laso.engine.epochs import After
from laso.engine.layout import Dataset
from laso.engine.machine import Machine
from laso.engine.options import is_exact
from laso.engine.weights.row_layouts import MANY_LABELS
from laso.errors import BadModel, InputError, quoted
from laso.estimators.learning import fitting
from laso.estimators.learning.class_weights import (
    ClassWeight,
    check_siblings,
    reads_costs,
)
from laso.estimators.learning.dropout_rates import default_rate, why_no_dropout
from laso.estimators.learning.fitting import Checkpoint, Examples
from laso.estimators.learning.learned_vectors import Words, check_learning, words_to_learn
from laso.estimators.learning.streaming import Source, stored
from laso.estimators.learning.vector_scales import with_best_scale
from laso.estimators.parameters import check
from laso.estimators.prediction import Predictor
from laso.features.dense import Dense, encoder_of
from laso.learn import delayed, early, restart
from laso.queues import MakeQueue
from laso.tasks.base import Task
from laso.training import Progress, Rule, Strategy
from laso.updates import Likelihood

Report = Callable[[Progress], None]


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
        lbfgs(), which train a conditional random field. None: the task's default, mostly
        perceptron(weighting=worst, margin=n), where n is the mean number of features of a step.
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
        Average the weights over all examples seen. None: unless training is by likelihood.
    class_weight : mapping or "balanced", default=None
        What it costs to miss a label, as in {"O": 0.5} (1 for the others): updates after such
        errors are longer by that factor. None: {}, which is no weights at all, but in ``Tagger``
        with its default update {"O": 0.3} where labels mark chunks and nine tokens of ten or more
        are outside of all.
    dropout : float, default=None
        The share of the features that learning leaves out, others at each visit of an example. Only
        features that do not depend on the state of the search are left out (those of the problem's
        blocks), with queues other than exact(). None: 0, in ``Tagger`` 0.2 if possible.
    hash_bits : int, default=0
        Bound the memory by hashing features to this number of bits; 0: keep all features apart.
    threads : int, default=None
        The number of threads for decoding; None: all cores.
    dtype : {"float32", "float64"}, default="float32"
        The type of the weights.
    shards : int, default=None
        The number of parts of the data that learn apart; their weights are mixed after each epoch,
        and in the first epochs more often (iterative parameter mixing). The result depends on this
        number, and not on ``n_jobs`` or joblib's backend. None: ``n_jobs`` if that is given, else
        1, one example after the other.
    mixing : {"changed", "uniform", "updates"}, default="changed"
        How weights are mixed: each among the shards that have changed it, or those of all shards
        alike, or in proportion to their numbers of updates.
    n_jobs : int, default=None
        The number of joblib's workers that learn shards or label inputs; -1: all cores. They are
        threads, unless ``joblib.parallel_config`` chooses processes, Dask or Ray. None: the number
        that ``parallel_config`` sets, else one worker.
    encoder : encoder or str, default=None
        Computes a dense vector for each word, whose dimensions are features beside the others:
        "minilm", or an object with a method ``encode`` (see ``laso.encoders``). None: vectors that
        inputs have of their own (see ``with_vectors``), if any.
    vector_scale : float, default=None
        By what the standardised dimensions of vectors are multiplied. None: what is best after a
        few epochs on held-out data, if there are vectors and such data, else 0.1.

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
    traffic_ : list of (int, int)
        With shards: the bytes sent to and received from workers in each epoch, or each evaluation
        of ``lbfgs()``; with threads, as if each shard had a worker of its own.

    Examples
    --------
    >>> from laso import SearchEstimator
    >>> from laso.examples.segmentation import Segmentation
    >>> model = SearchEstimator(Segmentation(), queue=5)
    >>> model.fit(["thecat", "acat"], [["the", "cat"], ["a", "cat"]]).predict(["catthe"])
    [['cat', 'the']]
    """

    drops_features: ClassVar[bool] = False  # unless told otherwise
    # A file never names code to import, and says nothing of the machine.
    unsaved: ClassVar[dict[str, Any]] = {"task": None, "n_jobs": None}

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
        dropout: float | None = None,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
        shards: int | None = None,
        mixing: str = "changed",
        n_jobs: int | None = None,
        encoder: Any = None,
        vector_scale: float | None = None,
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
        self.dropout = dropout
        self.hash_bits = hash_bits
        self.threads = threads
        self.dtype = dtype
        self.shards = shards
        self.mixing = mixing
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.vector_scale = vector_scale

    # ------------------------------------------------------------------ what is searched, and how

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        if not isinstance(self.task, Task):
            raise ValueError(f"task must be a laso.Task, found {quoted(self.task)}")
        return self.task.new()

    @classmethod
    def parameters_from(cls, task: Task) -> dict[str, Any]:
        """Return the parameters that files never have, of a task that is given beside a file."""
        if "task" not in cls.parameter_names():
            raise BadModel(f"found a model of a {cls.__name__}, which has its own task")
        return {"task": task}

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""
        check(self)
        task = self.make_task()
        task.validate()
        _ = self.engine_for(task, task.problem).options  # which refuses what it does not know
        if self.class_weight and not reads_costs(task.problem):
            raise ValueError(
                f"class_weight needs a problem with costs, and {task.problem.__name__} has none: "
                "expected a loss that reads them by cost_of"
            )
        if self.dropout and (reason := self._why_no_dropout()):
            raise ValueError(
                f"dropout needs a problem with blocks and a queue other than exact(): found "
                f"{reason}"
            )

    def has_sparse_rows(self, task: Task) -> bool:
        """Return whether weight rows are sparse: labels are many, and the search has a beam."""
        engine = self.engine_for(task, task.problem)
        return isinstance(engine, Machine) and len(task.classes) >= MANY_LABELS

    # ------------------------------------------------------------------ learning

    def _why_no_dropout(self) -> str | None:
        """Return what keeps learning from leaving out features; None: nothing does."""
        task = self.make_task()
        return why_no_dropout(task.problem, self.search_queue(task))

    def measures_steps(self) -> bool:
        """Return whether a default depends on the length of steps."""
        by_update = self.task_.measures_steps and self.has_default_update()
        return by_update or self._has_default_dropout()

    def _has_default_dropout(self) -> bool:
        return self.drops_features and self.dropout is None and self._why_no_dropout() is None

    def dropout_rate(self) -> float:
        """Return the share of the features that learning leaves out."""
        if self._has_default_dropout():
            return default_rate(getattr(self.task_, "step_length_", 1.0))
        return float(self.dropout or 0.0)

    def default_class_weight(
        self, task: Task, counts: Sequence[Mapping[str, int]]
    ) -> dict[str, float] | None:
        """Return the weights of labels that occur so often if no parameter says more: none."""
        return None

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
        after_epoch: After | None = None,
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
            It is called after each epoch with the state of the training and a function that returns
            the weights that would be kept. It ends the training by setting ``converged`` of the
            state.

        Returns
        -------
        self
            Ctrl-C ends learning and keeps what was learned; an error leaves an earlier model as it
            was. ``seconds_`` has the time to read, to make features, and to train.
        """
        with self.learning() as draft:
            draft.learn_anew(X, y, dev, progress, checkpoint, after_epoch)
        return self

    def learn_anew(
        self,
        X: Any,
        y: Any,
        dev: Any = None,
        progress: Report | None = None,
        checkpoint: Checkpoint | None = None,
        after_epoch: After | None = None,
    ) -> None:
        """Do the work of ``fit``, on a draft."""
        self.validate()
        clock = fitting.Clock()
        task = self._new_task()
        with clock("read"):
            inputs, outputs = task.read(X, y)
        with clock("features"):
            with locating(inputs):
                task.observe([(inputs, outputs)])
            fitting.begin(self, task)
            examples = self._examples(inputs, outputs, dev)
            del inputs, outputs
            self.fingerprint_ = examples.fingerprint
            chosen = self.vector_scale is not None or examples.held_out is None
            if len(examples.train.vectors) and not chosen:
                examples = with_best_scale(self, examples)
        with clock("train"):
            epochs = fitting.most_epochs(self)
            fitting.train(self, examples, epochs, progress, checkpoint, after_epoch)
        fitting.end(self)
        self.seconds_ = clock.seconds

    def _new_task(self) -> Task:
        task = self.make_task()
        task.dense = Dense(encoder_of(self.encoder, self.threads), scale=self.vector_scale)
        if hasattr(self, "task_"):
            task.keep_resources(self.task_)
        return task

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
        with (
            self.learning() as draft,
            stored(draft, draft._new_task(), source, Path(store)) as dataset,
        ):
            check_learning(draft, at_once=False)
            examples = draft._with_dev(dataset, dev)
            draft.fingerprint_ = examples.fingerprint
            epochs = fitting.most_epochs(draft)
            fitting.train(draft, examples, epochs, progress, checkpoint)
            fitting.end(draft)
        return self

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
        with self.learning() as draft:
            fitting.continue_with(draft)
            examples = draft._examples(*draft.task_.read(X, y), dev)
            fitting.resume(draft, examples, epochs, progress, checkpoint)
        return self

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
        with self.learning() as draft:
            fitting.continue_with(draft)
            with stored(draft, draft.task_, source, Path(store)) as dataset:
                examples = draft._with_dev(dataset, dev)
                fitting.resume(draft, examples, epochs, progress, checkpoint)
        return self

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
        fitting.check_partial(self)
        with self.learning() as draft:
            draft._learn_more(X, y, classes, progress)
        return self

    def _learn_more(
        self, X: Any, y: Any, classes: Sequence[str] | None, progress: Report | None
    ) -> None:
        fitted = hasattr(self, "weights_")
        if fitted:
            fitting.continue_with(self)
        task = self.task_ if fitted else self._new_task()
        inputs, outputs = task.read(X, y)
        with locating(inputs):
            task.observe([(inputs, outputs)], classes=() if fitted or classes is None else classes)
        if fitted:
            fitting.widen(self)
        else:
            fitting.begin(self, task)
        words = words_to_learn(self, inputs)
        dataset = self.apart(inputs, outputs, self.encode_gold(inputs, outputs))[-1]
        examples = Examples(dataset, words=words)
        self.fingerprint_ = examples.fingerprint
        training = fitting.resumable(self)
        training.converged = False
        fitting.make_corrections_count(self, len(examples.train.starts) - 1)
        fitting.train(self, examples, training.epoch + 1, progress)

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
            return task.arrays(inputs, outputs)

    def _examples(self, inputs: Any, outputs: Any, dev: Any) -> Examples:
        inputs, outputs, dataset = self.apart(inputs, outputs, self.encode_gold(inputs, outputs))
        if dev is not None or self.held_out is None:
            return self._with_dev(dataset, dev, words_to_learn(self, inputs))
        gold = self.task_.gold_outputs(inputs, outputs)
        return fitting.with_held_out(self, dataset, inputs, gold)

    def _with_dev(self, dataset: Dataset, dev: Any, words: Words | None = None) -> Examples:
        if dev is None:
            return Examples(dataset, words=words)
        try:
            inputs, outputs = self.task_.read(*(dev if isinstance(dev, tuple) else (dev, None)))
            with locating(inputs):
                held = self.task_.arrays(inputs)
                gold = self.task_.gold_outputs(inputs, outputs)
                held_words = () if words is None else self.task_.sentences(inputs)
                return Examples(dataset, held, inputs, gold, words, held_words)
        except InputError as error:
            # Its sentences are not those of X.
            raise error if error.file is not None else error.at(file="dev") from None
