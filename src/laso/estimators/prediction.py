"""What a fitted estimator does, whatever its task: predict, score, explain, save."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from laso.data.table import locating
from laso.engine import thresholds
from laso.engine.checking.own_problems import naming_methods
from laso.engine.choose import engine_for
from laso.engine.decoder import Decoder
from laso.engine.epochs import Training
from laso.engine.lattice.exact import ExactMachine
from laso.engine.layout import Dataset, WeightTable
from laso.engine.machine import Machine, default_threads
from laso.engine.problem import CompiledProblem
from laso.errors import BadModel, listed, quoted
from laso.estimators import parallel
from laso.estimators.capabilities import confidence, nbest
from laso.estimators.capabilities.confidence import Confidence
from laso.estimators.capabilities.states import share_states
from laso.estimators.decoding import decoders_of
from laso.estimators.learning import fitting
from laso.estimators.learning.class_weights import ClassWeight
from laso.estimators.learning.tables import check_overflow, with_bias
from laso.estimators.publishing import Published, consistent
from laso.features.dense import BESIDE, is_built_in
from laso.files import estimator as stored
from laso.files.atomic import naming
from laso.files.container import file_bytes, write_file
from laso.metrics.calibration import Reliability
from laso.queues import MakeQueue, beam
from laso.tasks.base import Task
from laso.training import Rule, Strategy


class Predictor(Published):
    """Base class of the estimators: the search with learned weights, and what is told of it.

    ``SearchEstimator`` sets the attributes.
    """

    queue: int | MakeQueue | None
    update: Rule | None
    strategy: Strategy
    class_weight: ClassWeight
    threads: int | None
    dtype: str
    n_jobs: int | None

    unsaved: ClassVar[dict[str, Any]] = {}
    """What files have in place of parameters that belong to a run and not to its model."""

    task_: Task
    classes_: Any
    weights_: WeightTable
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
    traffic_: list[tuple[int, int]]

    def saved_parameters(self) -> dict[str, Any]:
        """Return the parameters as files have them."""
        parameters: dict[str, Any] = {**self.get_params(deep=False)}
        if not is_built_in(parameters.get("encoder", "minilm")):  # no file names code or folders
            parameters["encoder"] = None
        return parameters | {n: value for n, value in self.unsaved.items() if n in parameters}

    # ------------------------------------------------------------------ how it is searched

    def search_queue(self, task: Task) -> MakeQueue:
        """Return the queue that the parameter ``queue`` stands for."""
        if self.queue is None:
            return task.default_queue()
        return beam(self.queue) if isinstance(self.queue, (int, np.integer)) else self.queue

    def update_rule(self, task: Task) -> Rule:
        """Return the update rule; with class weights its steps are longer by the loss."""
        rule: Any = task.default_update() if self.update is None else self.update
        chosen: Rule = replace(rule, by_loss=True) if self._has_class_weights() else rule
        return chosen

    def _has_class_weights(self) -> bool:
        """Return whether labels have weights: those of a parameter, or of the estimator."""
        if self.class_weight is not None:
            return bool(self.class_weight)
        return self.has_default_update() and getattr(self, "class_weight_", None) is not None

    def has_default_update(self) -> bool:
        """Return whether the update is the task's, whose margin is measured on the data."""
        return self.update is None

    def engine_for(self, task: Task, problem: type[CompiledProblem]) -> Machine | ExactMachine:
        """Return the engine that searches a problem with these parameters."""
        return engine_for(problem, self.search_queue(task), self.update_rule(task), self.strategy)

    def engine(self, dataset: Dataset) -> Machine | ExactMachine:
        """Return the engine that searches a dataset of the fitted task."""
        return self.engine_for(self.task_, self.task_.problem_for(dataset))

    def threads_for(self, dataset: Dataset) -> int:
        """Return the number of threads for a dataset: one for a small one."""
        if len(dataset.items) < thresholds.THREADED_ITEMS:
            return 1
        return default_threads() if self.threads is None else int(self.threads)

    # ------------------------------------------------------------------ predicting

    def encoded(self, X: Any) -> tuple[Any, Dataset]:
        """Return inputs as the task reads them, and as arrays."""
        self.require("weights_")
        inputs = self.task_.read_inputs(X)
        with locating(inputs):
            dataset = self.task_.arrays(inputs)
            if len(dataset.values):
                check_overflow(inputs, dataset, self.decoder(dataset).largest_weight)
        return inputs, dataset

    def decoder(self, dataset: Dataset) -> Decoder:
        """Return what decodes a dataset with the present weights and parameters."""
        return decoders_of(self).for_dataset(self, dataset)

    @consistent
    def predict(self, X: Any) -> list[Any]:
        """Return the output of each input; a column of labels in ``X`` is not looked at.

        Where ``joblib.parallel_config`` chooses processes, Dask or Ray, these label many inputs.
        """
        if parallel.is_remote(self, X):
            return list(self.predict_stream(X))
        return self.decode(*self.encoded(X))

    @consistent
    def predict_stream(self, X: Iterable[Any], *, batch: int = parallel.BATCH) -> Iterator[Any]:
        """Yield the output of each input of an iterable, which may be longer than memory holds.

        ``n_jobs`` workers label ``batch`` inputs at a time.
        """
        self.require("weights_")
        return parallel.predicted_stream(self, X, batch)

    @consistent
    def predict_single(self, x: Any) -> Any:
        """Return the output of one input."""
        labels = decoders_of(self).labels_of_lists(self, x) if "weights_" in vars(self) else None
        return self.decode(*self.encoded([x]))[0] if labels is None else labels

    def decode(self, inputs: Any, dataset: Dataset, table: WeightTable | None = None) -> list[Any]:
        """Return the outputs of encoded inputs, with other weights if a table is given."""
        decoder = self.decoder(dataset) if table is None else Decoder(self.engine(dataset), table)
        steps, ends, _ = decoder.decode(dataset, threads=self.threads_for(dataset))
        return self.task_.decode_all(inputs, steps, ends)

    def apart(self, inputs: Any, outputs: Any, dataset: Dataset) -> tuple[Any, Any, Dataset]:
        """Return examples as they are searched: by default as a whole, one for each input."""
        return inputs, outputs, dataset

    @consistent
    def score(self, X: Any, y: Any = None) -> float:
        """Return how good predictions for ``X`` are, from 0 to 1.

        Without ``y`` the last columns of X hold the labels.
        """
        self.require("weights_")
        inputs, outputs = self.task_.read(X, y)
        predicted = self.decode(inputs, self.task_.arrays(inputs))
        return self.measure(self.task_.gold_outputs(inputs, outputs), predicted)

    def measure(self, gold: list[Any], predicted: list[Any]) -> float:
        """Return how good predicted outputs are, from 0 to 1; by default what the task says."""
        return self.task_.score(gold, predicted)

    @consistent
    def predict_nbest(self, X: Any, n: int) -> list[list[tuple[float, Any]]]:
        """Return the ``n`` best outputs of each input with their scores.

        With ``queue=exact()`` these are the best of all, else those that the beam holds at its end.
        """
        return nbest.nbest_outputs(self, *self.encoded(X), n)

    @consistent
    def predict_marginals(self, X: Any, *, least: float = 0.01) -> list[Any]:
        """Return the probability of each step (name, first item, end), with ``queue=exact()``.

        An output is as probable as exp(its score), among all that are allowed: what adagrad(),
        sgd() and lbfgs() learn. Other updates learn scores that say little as probabilities. Steps
        less probable than ``least`` are left out.
        """
        return confidence.marginals(self, *self.exactly("predict_marginals", X), least=least)

    def exactly(self, name: str, X: Any) -> tuple[ExactMachine, Dataset]:
        """Return the engine and the dataset of a method that needs exact search."""
        _, dataset = self.encoded(X)
        engine = self.engine(dataset)
        if not isinstance(engine, ExactMachine):
            raise ValueError(
                f"{name} needs exact search: queue=exact(), found {quoted(self.queue)}"
            )
        return engine, dataset

    @consistent
    def predict_confidence(self, X: Any, *, chunks: bool | str = False) -> list[Confidence]:
        """Return each output, how probable it is, and how probable its parts are.

        The probabilities are exact with ``queue=exact()``; otherwise they are relative to the
        outputs that the beam holds at its end. ``calibrate`` calibrates them. With ``chunks`` the
        parts are whole chunks that the labels mark; of several layers it names one.
        """
        inputs, dataset = self.encoded(X)
        if chunks:
            return confidence.chunk_confidences(self, inputs, dataset, chunks)
        return confidence.confidences(self, inputs, dataset)

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Choose the temperature of ``predict_confidence`` on examples not learned from."""
        self.require("weights_")
        with self.learning() as draft:
            temperature = confidence.fitted_temperature(draft, *draft.task_.read(X, y))
            draft.metadata_ = {**draft.metadata_, confidence.TEMPERATURE: temperature}
        return self

    @consistent
    def reliability(self, X: Any, y: Any = None) -> Reliability:
        """Return how often parts of each probability are right: the calibration error."""
        self.require("weights_")
        return confidence.reliability_of(self, *self.task_.read(X, y))

    @consistent
    def predict_forced(self, X: Any, *, known: Any = None, banned: Any = None) -> list[Any]:
        """Return the output of each input if some of its steps are known, or banned.

        Parameters
        ----------
        X : list of inputs
        known : list, default=None
            For each input None, or a label or None for each item, or spans (label, start, end). Of
            a tree, (head, label) or None for each word, where the label may be None.
        banned : list, default=None
            For each input None, labels that are banned in all of it, or such labels for each item.
            Of a tree, the labels of arcs, or for each word labels, heads and pairs of both.
        """
        from laso.estimators.capabilities.forced import forced

        self.require("weights_")
        inputs = list(X)
        given = [
            [None] * len(inputs) if parts is None else list(parts) for parts in (known, banned)
        ]
        rows = zip(inputs, *given, strict=True)
        with naming_methods(self.task_.problem):
            return [forced(self, x, parts, never)[0] for x, parts, never in rows]

    @consistent
    def explain(
        self, x: Any, *, features: int = 10, path: Sequence[tuple[int, int]] | None = None
    ) -> dict[str, Any]:
        """Return why an input gets its output: the decisions, their features, their runners-up.

        With a ``path`` (the operators of the steps to a node of ``trace``) the last of its
        decisions is explained, beside the best alternative with its features.
        """
        from laso.estimators.capabilities.explain import explained
        from laso.pictures.page import Explanation

        self.require("weights_")
        with naming_methods(self.task_.problem):
            return Explanation(explained(self, x, features=features, path=path))

    @consistent
    def trace(
        self, x: Any, y: Any = None, *, known: Any = None, banned: Any = None, pruned: int = 0
    ) -> list[dict[str, Any]]:
        """Return the events of the search for one input: each node dequeued, with the queue.

        The list also has the ``words`` of the input and the ``output`` that the search found (None:
        none), and notebooks show it as a picture.

        Parameters
        ----------
        x : input
        y : output, default=None
            The gold output; with it, each node tells whether it is y-good.
        known, banned : default=None
            What is known of the output, or banned, as for one input of ``predict_forced``.
        pruned : int, default=0
            The number of dropped nodes to tell of each round, as of ``laso.trace.trace_search``;
            nodes then also tell the items that their step is about, and what it says.
        """
        from laso.estimators.capabilities.explain import traced, traced_output
        from laso.pictures.page import Trace

        self.require("weights_")
        with naming_methods(self.task_.problem):
            events = traced(self, x, y, known=known, banned=banned, pruned=pruned)
            return Trace(events, self.task_.words(x), traced_output(self, x, events))

    @consistent
    def inspect(self, *, features: int = 10, data: Any = None) -> dict[str, Any]:
        """Return what the model is, and the top features of each label.

        With ``data``, features that only inputs can name, such as pairs of words, are named too.
        """
        from laso.estimators.capabilities.inspection import inspected

        return inspected(self, features=features, data=data)

    @consistent
    def changes_since(
        self, earlier: Predictor, *, features: int = 20, data: Any = None
    ) -> dict[str, Any]:
        """Return how many weights differ from an earlier model's, and those that differ most.

        With ``data``, features that only inputs can name are named too.
        """
        from laso.estimators.capabilities.changes import changed

        return changed(earlier, self, features=features, data=data)

    def reopen(self) -> Self:
        """Let a model that was saved without the state of its training learn more.

        ``partial_fit`` then goes on from the weights alone. Nothing changes for a model that has
        the state.
        """
        from laso.estimators.learning.reopening import training_of_weights

        self.require("weights_")
        with self.learning() as draft:
            if draft.training_ is None:
                draft.training_ = training_of_weights(draft)
        return self

    def _repr_html_(self) -> str:
        """Return the estimator as a notebook shows it: what it is, and its top features."""
        from laso.estimators.capabilities.render import as_fragment

        return as_fragment(self.inspect(features=3) if "weights_" in vars(self) else repr(self))

    def biased(self, bias: Mapping[str, float]) -> Self:
        """Return a copy that predicts some labels more often, or less often.

        ``bias`` is added to the scores of labels. For labels that mark chunks, less for O finds
        more chunks, of which more are wrong.
        """
        self.require("weights_")
        model = self.snapshot()
        amounts = np.zeros(len(model.classes_))
        for label, amount in bias.items():
            if label not in model.classes_:
                expected = listed(model.classes_)
                raise ValueError(f"found a bias for {quoted(label)}, expected one of {expected}")
            amounts[list(model.classes_).index(label)] = amount
        table = with_bias(model.weights_, list(model.task_.bias_keys()), amounts)
        return model.with_weights(table)

    def with_weights(self, table: WeightTable) -> Self:
        """Return a copy with other weights, which shares nothing that can change."""
        copied = copy(self)
        for name, value in {**vars(copied)}.items():
            if name.endswith("_") and name not in ("weights_", "training_", "task_"):
                setattr(copied, name, deepcopy(value))
        copied.weights_, copied.training_ = table, None
        copied.task_ = self.task_.copied()
        share_states(self, copied)
        return copied

    def freeze(self, X: Any, *, changed: float = 0.0) -> Self:
        """Return a smaller copy for labelling only, which labels X as this model does.

        The copy has no small weights, as far as no output of ``X`` needs them, and 16-bit weights
        if that changes none. ``save`` writes a smaller file of it, which loads faster. It cannot
        learn more.

        Parameters
        ----------
        X : list of inputs
            Inputs like those to label, such as development data.
        changed : float, default=0.0
            The fraction of the outputs of ``X`` that may change, for a still smaller model.
        """
        from laso.estimators.capabilities.freezing import frozen

        if not 0.0 <= changed < 1.0:
            raise ValueError(f"changed must be a fraction from 0 to below 1, found {changed!r}")
        self.require("weights_")
        return frozen(self.snapshot(), X, changed)

    # ------------------------------------------------------------------ files

    @property
    def size_(self) -> fitting.Size:
        """The size of the model in memory; ``save`` returns its size on disk."""
        self.require("weights_")
        return fitting.size_of(self.weights_)

    @consistent
    def save(
        self,
        path: str | os.PathLike[str],
        *,
        precision: str | None = None,
        training: bool = False,
        compress: bool = True,
    ) -> int:
        """Write the model to one file, all of it or nothing; return its size in bytes.

        ``precision`` may be "float32" or "float16" for a smaller file. ``training`` keeps
        what ``resume`` and ``partial_fit`` go on from. ``compress=False`` makes a file several
        times as large, which loads in a fraction of the time. An encoder that has learned is saved
        beside the file, under its name and ``.encoder``.
        """
        self.require("weights_")
        with naming(path):
            packed = stored.packed_model(self, precision, training, compress=compress)
            size = write_file(path, *packed, compress=compress)
            if self.task_.dense is not None:
                self.task_.dense.save(os.fspath(path) + BESIDE, training=training)
            return size

    @consistent
    def file_size(self) -> int:
        """Return the size of the model's file in bytes."""
        self.require("weights_")
        return len(file_bytes(*stored.packed_model(self, None, training=False)))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        task: Task | None = None,
        encoder: Any = None,
        limit: float | None = None,
        mmap: bool = False,
    ) -> Self:
        """Return the model of a file; any other file raises ``BadModel``.

        A model of a task of your own needs that task, a model with an encoder of your own that
        encoder. ``limit`` and ``mmap`` are as of ``load_model``.
        """
        model = stored.load(path, task, encoder=encoder, limit=limit, mmap=mmap)
        if not isinstance(model, cls):
            raise BadModel(
                f"{os.fspath(path)} cannot be loaded: found a model for {model.task_.name!r} "
                f"({type(model).__name__}), expected {cls.__name__}"
            )
        return model
