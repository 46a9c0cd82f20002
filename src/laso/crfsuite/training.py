"""The training of ``CRF``: the events that its log is made of, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from operator import eq
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.crfsuite import log
from laso.crfsuite.parameters import parameters_of
from laso.engine.layout import WeightTable
from laso.engine.passes import Training
from laso.evaluation import evaluated
from laso.features.frequency import Frequencies
from laso.metrics import Counts

if TYPE_CHECKING:
    from laso.crfsuite.crf import CRF


class Events:
    """Tells a log what happens in a training.

    Parameters
    ----------
    model : CRF
        The estimator that is trained.
    log : log.TrainingLog
        What receives the events.
    held_out : (X, y), optional
        Sentences that are labelled after each iteration; the log has their scores.
    """

    def __init__(
        self, model: CRF, log: log.TrainingLog, held_out: tuple[Any, Any] | None = None
    ) -> None:
        self.model, self.log, self.held_out = model, log, held_out
        self.encoded: Any = None  # the held-out sentences, once the labels are known
        self.begun = self.last = time.perf_counter()
        self.examples = 0
        log.begin_log()

    def begin(self, counts: Frequencies, examples: int) -> None:
        """Tell what is known before the first iteration."""
        self.examples = examples
        model, event = self.model, self.log.event
        parameters = parameters_of(model.method).items()
        values = {name: model.parameter(each.field) for name, each in parameters}
        features = {name: values.pop(name) for name in list(values) if name.startswith("feature.")}
        group = None if self.held_out is None else self.log.holdout
        event("start", log.start_lines(group, features))
        for percent in range(0, 101, 2):
            mark = "." if percent % 10 else str(percent // 10)
            event("featgen_progress", [mark], featgen_percent=percent)
        n_features = counts.n_features(
            states=features["feature.possible_states"],
            transitions=features["feature.possible_transitions"],
        )
        self.last = time.perf_counter()
        seconds = self.last - self.begun
        event(
            "featgen_end",
            log.featgen_lines(n_features, seconds),
            featgen_num_features=n_features,
            featgen_seconds=seconds,
        )
        event("prepared", log.prepared_lines(model.method, values))

    def after_epoch(self, training: Training, weights: Callable[[], WeightTable]) -> None:
        """Tell what an iteration has brought."""
        info = {
            "num": training.epoch,
            "scores": {},
            "loss": loss_of(training, self.examples),
            "feature_norm": training.norm,
        }
        if self.model.method == "lbfgs":
            info["active_features"] = training.active
        info["time"] = time.perf_counter() - self.last
        right = {} if self.held_out is None else self._score(info, weights())
        lines = log.iteration_lines(self.model.method, info, right)
        self.log.event("iteration", lines, **info)
        self.last = time.perf_counter()

    def _score(self, info: dict[str, Any], table: WeightTable) -> dict[str, tuple[int, int]]:
        """Add the held-out scores; return the numbers of right items and instances, and of all."""
        from fractions import Fraction

        model = self.model
        if self.encoded is None:
            inputs, outputs = model.task_.read(*(self.held_out or ()))
            gold = model.task_.gold_outputs(inputs, outputs)
            self.encoded = inputs, model.task_.encode(inputs), gold
        inputs, dataset, gold = self.encoded
        predicted = model.decode(inputs, dataset, table)
        evaluation = evaluated(gold, predicted)
        counts = evaluation.labels
        scores = {label: _score_of(counts.get(label)) for label in model.task_.classes}
        info["scores"] = scores
        for name in log.AVERAGES:
            ratios = (getattr(score, name.removeprefix("avg_")) for score in scores.values())
            info[name] = sum(ratio or 0.0 for ratio in ratios) / len(scores)
        right = {
            "item_accuracy": (sum(score.match for score in scores.values()), evaluation.tokens),
            "instance_accuracy": (sum(map(eq, gold, predicted)), len(gold)),
        }
        for name, (part, whole) in right.items():
            info[name] = Fraction(part, max(1, whole))
            info[f"{name}_float"] = float(info[name])
        return right

    def end(self) -> None:
        """Tell that training is over, write the model, and tell its size."""
        model, begun = self.model, time.perf_counter()
        seconds = begun - self.begun
        lines = log.optimization_lines(model.method, model.converged_, seconds)
        self.log.event("optimization_end", lines, training_seconds=seconds)
        active = {
            "features": int(np.count_nonzero(model.weights_.v)),
            "attributes": len(model.task_.encoder_.attributes),
            "labels": len(model.task_.classes),
        }
        if model.model_filename is not None:
            model.save(model.model_filename)
        seconds = time.perf_counter() - begun
        self.log.event("end", log.end_lines(active, seconds), storing_seconds=seconds)


def _score_of(n: Counts | None) -> log.LabelScore:
    """Return the score of a label; None stands for one that no token has."""
    if n is None:
        return log.LabelScore(0, 0, 0, None, None, None)
    ratios = n.precision / 100, n.recall / 100, n.f / 100
    return log.LabelScore(n.correct, n.predicted, n.gold, *ratios)


def loss_of(training: Training, examples: int) -> float:
    """Return the loss of the last epoch: the negative log-likelihood, or the number of errors."""
    each = training.error_rate if training.objective is None else -training.objective
    return each * examples


class Stopping:
    """The stopping criteria of CRFsuite's algorithms that are not those of the updates."""

    def __init__(self, model: CRF) -> None:
        self.model = model
        self.losses: list[float] = []

    def after_epoch(self, training: Training, weights: Callable[[], WeightTable]) -> None:
        """End the training if the criterion holds."""
        if self.model.method == "lbfgs":
            return
        if self.model.method != "l2sgd":
            training.converged |= training.error_rate < self.model.parameter("epsilon")
            return
        period, loss = self.model.parameter("period"), loss_of(training, 1)
        if len(self.losses) >= period:
            improved = self.losses[-period] - loss
            training.converged |= improved < self.model.parameter("delta") * loss
        self.losses.append(loss)


def in_turn(calls: Iterable[Callable[..., None]]) -> Callable[..., None]:
    """Return a function that passes its arguments to several."""
    several = list(calls)

    def call(*given: Any) -> None:
        for each in several:
            each(*given)

    return call
