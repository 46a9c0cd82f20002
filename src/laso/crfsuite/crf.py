"""sklearn-crfsuite's ``CRF`` on the compiled engine.

Tokens are dicts or lists of features. There are weights for a feature with a label, and for two
labels that follow each other; learning and labelling are exact.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import numpy as np

from laso.arow import arow
from laso.crfsuite.fitting import Events, Stopping, in_turn
from laso.crfsuite.log import LinePerIteration, TrainingLog, TrainingRecord
from laso.crfsuite.parameters import LINE_SEARCHES, PARAMETERS, algorithm_named, parameters_of
from laso.crfsuite.tagger import Tagger as CRFsuiteTagger
from laso.data.table import Features
from laso.engine.layout import Array
from laso.estimators.products.tagger import Tagger
from laso.estimators.publishing import TRANSIENT
from laso.features.frequency import Frequencies, frequencies
from laso.features.inputs import read_attributes, read_labels
from laso.learn import standard
from laso.metrics import accuracy
from laso.params import check_parameters, is_whole
from laso.queues import exact
from laso.tasks.base import Task
from laso.tasks.tagging.attributes import AttributeTask
from laso.training import Rule
from laso.updates import lbfgs, passive_aggressive, perceptron, sgd

BY_FIELD = {each.field: each for each in PARAMETERS}
CHOICES: dict[str, tuple[Any, ...]] = {"linesearch": LINE_SEARCHES, "pa_type": (0, 1, 2)}
WITH_EFFECT: dict[str, tuple[Any, ...]] = {  # the only values that do what they say
    "linesearch": ("MoreThuente",),
    "max_linesearch": (20,),
    **dict.fromkeys((name for name in BY_FIELD if name.startswith("calibration")), ()),
    "pa_type": (0, 1),
    "error_sensitive": (False,),
}


def _after_fit(value: Callable[[Any], Any]) -> property:
    """Return a property that is None before ``fit``, as those of sklearn-crfsuite are."""
    return property(lambda crf: value(crf) if crf._is_fitted() else None)


class CRF(Tagger):
    """A conditional random field with the parameters and the calls of sklearn-crfsuite.

    None stands for CRFsuite's default, which the descriptions name. A parameter that has no effect
    is named by a ``UserWarning``. The score is token accuracy. Whatever else ``Tagger`` has works
    too.

    Parameters
    ----------
    algorithm : {"lbfgs", "l2sgd", "ap", "pa", "arow"}, default=None
        Likelihood by L-BFGS (the default) or by stochastic gradients, averaged perceptron,
        passive-aggressive, adaptive regularization of weights.
    min_freq : float, default=None
        Leave out attributes that occur less often than this with every label; 0.
    all_possible_states, all_possible_transitions : bool, default=None
        For lbfgs: also learn weights for attributes and labels that never occur together, and for
        labels that never follow each other; False. The other algorithms do so in any case.
    c1, c2 : float, default=None
        The coefficients of the L1 and L2 priors; 0 and 1. For lbfgs; l2sgd has c2.
    max_iterations : int, default=None
        The largest number of iterations; unlimited for lbfgs, 1000 for l2sgd, 100 for the others.
    num_memories : int, default=None
        The number of steps that lbfgs remembers; 6.
    epsilon : float, default=None
        The stopping criterion: for lbfgs the size of the gradient, 1e-5; for the others but
        l2sgd the fraction of sentences that need an update, 0.
    period, delta : int, float, default=None
        lbfgs and l2sgd stop when the log-likelihood improves by less than the fraction delta (1e-5,
        1e-6) in a period (10) of iterations.
    linesearch, max_linesearch : str, int, default=None
        The line search of lbfgs, "MoreThuente", and the largest number of its trials, 20.
    calibration_eta, calibration_rate : float, default=None
        Without effect: the learning rate of l2sgd is not calibrated.
    calibration_samples, calibration_candidates, calibration_max_trials : int, default=None
        Without effect, too.
    pa_type : {0, 1}, default=None
        PA without slack variables, or PA-I, the default.
    c : float, default=None
        The aggressiveness of pa; 1.
    error_sensitive : bool, default=None
        Without effect: the margin of pa is 1 for any number of wrong labels.
    averaging : bool, default=None
        Average the weights of pa; True.
    variance, gamma : float, default=None
        The first variance of each weight of arow, and its trade-off of loss and change; 1.
    verbose : bool, default=False
        Print a line for each iteration.
    model_filename : path, default=None
        ``fit`` writes the model there. If the file exists, ``predict`` needs no ``fit``.
    keep_tempfiles : bool, default=False
        Without effect: there are no temporary files.
    trainer_cls : type, default=None
        A ``laso.crfsuite.Trainer``, whose methods receive the log.
    seed, threads, shards, mixing, n_jobs
        As of ``SearchEstimator``.

    Attributes
    ----------
    classes_ : list of str
        The labels. This and the following attributes are None before ``fit``.
    tagger_ : laso.crfsuite.Tagger
        The model with the calls of python-crfsuite.
    state_features_, transition_features_ : dict
        The weights of (attribute, label), and of (label, label after it).
    attributes_, num_attributes_ : list of str, int
        The attributes that have weights, and their number.
    size_ : int
        The size of the model's file in bytes.
    training_log_ : TrainingRecord
        The log of the training; its ``iterations`` are dicts.

    Examples
    --------
    >>> from laso import CRF
    >>> X = [[{"w": "the"}, {"w": "cat", "len": 3}], [{"w": "a"}, {"w": "dog", "len": 3}]]
    >>> crf = CRF("lbfgs", c2=0.1).fit(X, [["DET", "NOUN"], ["DET", "NOUN"]])
    >>> crf.predict_single([{"w": "the"}, {"w": "dog"}])
    ['DET', 'NOUN']
    """

    unsaved: ClassVar[dict[str, Any]] = {
        "verbose": False,
        "model_filename": None,
        "trainer_cls": None,
        "n_jobs": None,
    }
    training_log_: TrainingRecord | Any = None
    _tagger: CRFsuiteTagger

    def __init__(
        self,
        algorithm: str | None = None,
        min_freq: float | None = None,
        all_possible_states: bool | None = None,
        all_possible_transitions: bool | None = None,
        c1: float | None = None,
        c2: float | None = None,
        max_iterations: int | None = None,
        num_memories: int | None = None,
        epsilon: float | None = None,
        period: int | None = None,
        delta: float | None = None,
        linesearch: str | None = None,
        max_linesearch: int | None = None,
        calibration_eta: float | None = None,
        calibration_rate: float | None = None,
        calibration_samples: int | None = None,
        calibration_candidates: int | None = None,
        calibration_max_trials: int | None = None,
        pa_type: int | None = None,
        c: float | None = None,
        error_sensitive: bool | None = None,
        averaging: bool | None = None,
        variance: float | None = None,
        gamma: float | None = None,
        verbose: bool = False,
        model_filename: str | os.PathLike[str] | None = None,
        keep_tempfiles: bool = False,
        trainer_cls: Callable[..., TrainingLog] | None = None,
        *,
        seed: int | None = 0,
        threads: int | None = None,
        shards: int | None = None,
        mixing: str = "changed",
        n_jobs: int | None = None,
    ):
        given = dict(locals())
        super().__init__(
            features=("label[-1]",),
            start_features=False,
            queue=exact(),
            strategy=standard,
            seed=seed,
            threads=threads,
            shards=shards,
            mixing=mixing,
            n_jobs=n_jobs,
        )
        self.algorithm = algorithm
        for name in BY_FIELD:
            setattr(self, name, given[name])
        self.verbose = verbose
        self.model_filename = model_filename
        self.keep_tempfiles = keep_tempfiles
        self.trainer_cls = trainer_cls

    # ------------------------------------------------------------------ parameters

    @property
    def method(self) -> str:
        """The short name of the algorithm."""
        return algorithm_named("lbfgs" if self.algorithm is None else self.algorithm)

    def parameter(self, name: str) -> Any:
        """Return the value of a parameter: the one given, or CRFsuite's default."""
        given, known = getattr(self, name), BY_FIELD[name]
        return known.defaults.get(self.method) if given is None else known.cast(given)

    def without_effect(self) -> list[str]:
        """Return the names of the given parameters that have no effect."""
        known = {each.field for each in parameters_of(self.method).values()}
        given = {name: getattr(self, name) for name in BY_FIELD if getattr(self, name) is not None}
        names = ["keep_tempfiles"] if self.keep_tempfiles else []
        return names + [
            name
            for name, value in given.items()
            if name not in known or value not in WITH_EFFECT.get(name, (value,))
        ]

    def validate(self) -> None:
        """Raise ValueError if a parameter makes no sense."""
        algorithm_named(self.method)
        check_parameters(self, (self._check(name) for name in BY_FIELD))
        super().validate()

    def _check(self, name: str) -> tuple[str, bool, str]:
        """Return a parameter's name, whether its value makes sense, and what would."""
        value, kind = getattr(self, name), BY_FIELD[name].cast
        if name in CHOICES:
            expected = ", ".join(map(repr, CHOICES[name]))
            return name, value is None or value in CHOICES[name], f"None or one of {expected}"
        if kind is int:
            return name, value is None or is_whole(value, 1), "None or from 1 up"
        if name in ("c", "variance", "gamma"):
            return name, value is None or value > 0, "None or above 0"
        return name, value is None or value >= 0, "None or from 0 up"

    def make_task(self) -> Task:
        """Return the task, without anything learned."""
        return AttributeTask(features=self.features, start_features=self.start_features)

    def update_rule(self, task: Task) -> Rule:
        """Return the update rule of the algorithm."""
        if self.method == "lbfgs":
            return lbfgs(
                variance=self._variance,
                l1=self.parameter("c1"),
                support=self._support("all_possible_states"),
                transitions=self._support("all_possible_transitions"),
                iterations=self.parameter("max_iterations"),
                tolerance=self.parameter("epsilon"),
                period=self.parameter("period"),
                delta=self.parameter("delta"),
                memory=self.parameter("num_memories"),
            )
        if self.method == "l2sgd":
            return sgd(variance=self._variance)
        if self.method == "ap":
            return perceptron()
        if self.method == "arow":
            return arow(variance=self.parameter("variance"), gamma=self.parameter("gamma"))
        return passive_aggressive(
            C=math.inf if self.parameter("pa_type") == 0 else self.parameter("c")
        )

    def has_default_update(self) -> bool:
        """Return False: each algorithm has an update of its own."""
        return False

    def dropout_rate(self) -> float:
        """Return 0: CRFsuite learns from all features."""
        return 0.0

    def averages(self) -> bool:
        """Return whether the weights are averaged over all examples seen."""
        return {"ap": True, "pa": bool(self.parameter("averaging"))}.get(self.method, False)

    @property
    def _variance(self) -> float:
        c2 = self.parameter("c2")
        return 1.0 / (2.0 * c2) if c2 else math.inf

    def _support(self, name: str) -> str:
        return "lattice" if self.parameter(name) else "pairs"

    # ------------------------------------------------------------------ learning

    def fit(
        self,
        X: Any,
        y: Any = None,
        X_dev: Any = None,
        y_dev: Any = None,
        *,
        log: TrainingLog | None = None,
        **options: Any,
    ) -> Self:
        """Learn from sentences and their labels.

        Parameters
        ----------
        X, y : lists of sentences and of their labels
        X_dev, y_dev : lists, default=None
            Sentences that are labelled after each iteration; the log has their scores. They have no
            influence on the weights, unlike ``dev`` of ``SearchEstimator.fit``.
        log : TrainingLog, default=None
            What receives the log; None: a ``trainer_cls``, or lines for each iteration.
        **options
            As of ``SearchEstimator.fit``.
        """
        if (X_dev is None) != (y_dev is None):
            raise ValueError("X_dev and y_dev belong together: found only one of them")
        self.validate()
        unused = self.without_effect()
        if unused:
            values = ", ".join(f"{name}={getattr(self, name)!r}" for name in unused)
            warnings.warn(f"no effect with algorithm={self.method!r}: {values}", stacklevel=2)
        log = self._new_log() if log is None else log
        with self.learning() as draft:
            draft.epochs = draft.parameter("max_iterations")
            events = Events(draft, log, None if X_dev is None else (X_dev, y_dev))
            data, counts = draft._frequent(read_attributes(X), y)
            events.begin(counts, len(data.lengths))
            after = [events.after_epoch, Stopping(draft).after_epoch, options.get("after_epoch")]
            options["after_epoch"] = in_turn(filter(None, after))
            draft.learn_anew(data, y, **options)
            events.end()
            draft.training_log_ = log.logparser
        return self

    def _frequent(self, data: Features, y: Any) -> tuple[Features, Frequencies]:
        """Return the data without rare attributes, and the frequencies of the others."""
        labels, least = read_labels(y, data.lengths), self.parameter("min_freq")
        if least:
            data = frequencies(data, labels).frequent(data, least)
        return data, frequencies(data, labels)

    def _new_log(self) -> TrainingLog:
        if self.trainer_cls is None:
            return LinePerIteration(verbose=self.verbose)
        given = {each.name: getattr(self, each.field) for each in PARAMETERS}
        given = {name: value for name, value in given.items() if value is not None}
        return self.trainer_cls(algorithm=self.algorithm, params=given, verbose=self.verbose)

    # ------------------------------------------------------------------ predicting

    def require(self, learned: str) -> None:
        """Raise NotFittedError before ``fit``, unless ``model_filename`` has a model."""
        self._is_fitted()
        super().require(learned)

    def _is_fitted(self) -> bool:
        """Return whether there is a model; before ``fit``, one of ``model_filename`` is loaded."""
        path = self.model_filename
        if not hasattr(self, "task_") and path is not None and os.path.exists(path):
            loaded = type(self).load(path)
            new = vars(loaded).keys() - vars(CRF()).keys() - TRANSIENT
            vars(self).update({name: vars(loaded)[name] for name in new})
        return hasattr(self, "weights_")

    def snapshot(self) -> Self:
        """Return the model as it is now; before ``fit``, that of ``model_filename``."""
        self._is_fitted()
        return super().snapshot()

    def predict(self, X: Any) -> Array:  # type: ignore[override]
        """Return the labels of each sentence, as an array of objects like sklearn-crfsuite's.

        It has one row for each sentence if all are equally long, else it is an array of lists.
        """
        return np.array(super().predict(X), dtype=object)

    def predict_single(self, x: Any) -> list[str]:
        """Return the labels of one sentence."""
        labels: list[str] = super().predict_single(x)
        return labels

    def measure(self, gold: list[Any], predicted: list[Any]) -> float:
        """Return token accuracy, from 0 to 1."""
        return accuracy(gold, predicted) / 100

    # ------------------------------------------------------------------ what was learned

    @property
    def classes_(self) -> list[str] | Any:
        """The labels; None before ``fit``."""
        return list(self._classes) if self._is_fitted() else None

    @classes_.setter
    def classes_(self, labels: Iterable[str]) -> None:
        self._classes = list(labels)

    @property
    def tagger_(self) -> CRFsuiteTagger | Any:
        """The model with the calls of python-crfsuite; None before ``fit``."""
        if self._is_fitted() and ("_tagger" not in vars(self) or not self._tagger.is_of(self)):
            self._tagger = CRFsuiteTagger(self.snapshot())
        return self._tagger if self._is_fitted() else None

    size_: Any = _after_fit(lambda crf: crf.file_size())
    state_features_: Any = _after_fit(Tagger.state_features_.__get__)
    transition_features_: Any = _after_fit(Tagger.transition_features_.__get__)
    attributes_: Any = _after_fit(Tagger.attributes_.__get__)
    num_attributes_: Any = _after_fit(lambda crf: len(crf.attributes_))
