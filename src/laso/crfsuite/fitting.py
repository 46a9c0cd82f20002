"""The training of ``CRF``: the events that its log is made of, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from operator import eq
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.crfsuite.log import ACCURACIES, AVERAGES, LabelScore, TrainingLog
from laso.crfsuite.parameters import parameters_of
from laso.engine.epochs import Training
from laso.engine.layout import WeightTable
from laso.features.frequency import Frequencies
from laso.metrics import Counts
from laso.metrics.evaluation import evaluated

if TYPE_CHECKING:
    from laso.crfsuite.crf import CRF


TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "ap": "Averaged perceptron",
    "pa": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}


class Events:
    """Tells a log what happens in a training, as numbers and as the lines of CRFsuite.

    Parameters
    ----------
    model : CRF
        The estimator that is trained.
    log : TrainingLog
        What receives the events.
    held_out : (X, y), optional
        Sentences that are labelled after each iteration; the log has their scores.
    """

    def __init__(
        self, model: CRF, log: TrainingLog, held_out: tuple[Any, Any] | None = None
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
        known = parameters_of(model.method).items()
        values = {name: model.parameter(each.field) for name, each in known}
        generation = [_shown(name, value) for name, value in values.items() if "feature." in name]
        group = [] if self.held_out is None else [f"Holdout group: {self.log.holdout + 1}", ""]
        event("start", [*group, "Feature generation", "type: CRF1d", *generation])
        for percent in range(0, 101, 2):
            mark = "." if percent % 10 else str(percent // 10)
            event("featgen_progress", [mark], featgen_percent=percent)
        numbers = {
            "featgen_num_features": counts.n_features(
                states=values["feature.possible_states"],
                transitions=values["feature.possible_transitions"],
            ),
            "featgen_seconds": time.perf_counter() - self.begun,
        }
        n_features, seconds = numbers.values()
        lines = [f"Number of features: {n_features}", f"Seconds required: {seconds:.3f}"]
        event("featgen_end", ["", *lines, ""], **numbers)
        optimization = [_shown(name, values[name]) for name in values if "feature." not in name]
        event("prepared", [TITLES[model.method], *optimization, ""])
        self.last = time.perf_counter()

    def after_epoch(self, training: Training, weights: Callable[[], WeightTable]) -> None:
        """Tell what an iteration has brought."""
        by_epochs = self.model.method == "l2sgd"
        loss, norm = loss_of(training, self.examples), training.norm
        info = {"num": training.epoch, "scores": {}, "loss": loss, "feature_norm": norm}
        lines = [
            f"***** {'Epoch' if by_epochs else 'Iteration'} #{training.epoch} *****",
            f"Loss: {loss:f}",
            f"Feature {'L2-' if by_epochs else ''}norm: {norm:f}",
        ]
        if self.model.method == "lbfgs":
            info["active_features"] = training.active
            lines.append(f"Active features: {training.active}")
        info["time"] = time.perf_counter() - self.last
        lines.append(f"Seconds required for this iteration: {info['time']:.3f}")
        if self.held_out is not None:
            lines += self._score(info, weights())
        self.log.event("iteration", [*lines, ""], **info)
        self.last = time.perf_counter()

    def _score(self, info: dict[str, Any], table: WeightTable) -> Iterator[str]:
        """Add the scores of the held-out sentences to an iteration, and yield their lines."""
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
        yield "Performance by label (#match, #model, #ref) (precision, recall, F1):"
        for label, score in scores.items():
            shown = ("*" * 6 if ratio is None else f"{ratio:.4f}" for ratio in score[3:])
            yield f"    {label}: ({', '.join(map(str, score[:3]))}) ({', '.join(shown)})"
        for name in AVERAGES:
            ratios = (getattr(score, name.removeprefix("avg_")) for score in scores.values())
            info[name] = sum(ratio or 0.0 for ratio in ratios) / len(scores)
        means = ", ".join(f"{info[name]:f}" for name in AVERAGES)
        yield f"Macro-average precision, recall, F1: ({means})"
        matches = sum(score.match for score in scores.values())
        whole = sum(map(eq, gold, predicted))
        for (name, title), right, total in zip(
            ACCURACIES.items(), (matches, whole), (evaluation.tokens, len(gold)), strict=True
        ):
            info[name] = Fraction(right, max(1, total))
            info[f"{name}_float"] = float(info[name])
            yield f"{title}: {right} / {total} ({float(info[name]):.4f})"

    def end(self) -> None:
        """Tell that training is over, write the model, and tell its size."""
        model, begun = self.model, time.perf_counter()
        seconds = begun - self.begun
        reason = "the stopping criteria" if model.converged_ else "the maximum number of iterations"
        lines = [
            f"{TITLES[model.method].split()[0]} terminated with {reason}",
            f"Total seconds required for training: {seconds:.3f}",
        ]
        self.log.event("optimization_end", [*lines, ""], training_seconds=seconds)
        active = {
            "features": np.count_nonzero(model.weights_.v),
            "attributes": len(model.task_.encoder_.attributes),
            "labels": len(model.task_.classes),
        }
        if model.model_filename is not None:
            model.save(model.model_filename)
        lines = [f"Number of active {name}: {n} ({n})" for name, n in active.items()]
        seconds = time.perf_counter() - begun
        lines = ["Storing the model", *lines, f"Seconds required: {seconds:.3f}", ""]
        self.log.event("end", lines, storing_seconds=seconds)


def _shown(name: str, value: Any) -> str:
    """Return the line of a parameter."""
    if isinstance(value, str):
        return f"{name}: {value}"
    return f"{name}: {value:f}" if isinstance(value, float) else f"{name}: {value:d}"


def _score_of(n: Counts | None) -> LabelScore:
    """Return the score of a label; None stands for one that no token has."""
    if n is None:
        return LabelScore(0, 0, 0, None, None, None)
    ratios = n.precision / 100, n.recall / 100, n.f / 100
    return LabelScore(n.correct, n.predicted, n.gold, *ratios)


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
