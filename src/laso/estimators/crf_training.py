"""The training of ``CRF``: its log as CRFsuite writes it, and when it stops."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import WeightTable
from laso.engine.passes import Training
from laso.estimators.crf_log import TrainingLog
from laso.estimators.crf_parameters import parameters_of
from laso.evaluation import evaluated
from laso.features.frequency import Frequencies

if TYPE_CHECKING:
    from laso.estimators.crf import CRF

TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "ap": "Averaged perceptron",
    "pa": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}


class LogWriter:
    """Writes the log of a training line by line, in the form of CRFsuite's.

    Parameters
    ----------
    model : CRF
        The estimator that is trained.
    log : TrainingLog
        What receives the lines.
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

    def lines(self, *lines: str) -> None:
        """Send lines, each with its end."""
        for line in lines:
            self.log.message(f"{line}\n")

    def begin(self, counts: Frequencies, examples: int) -> None:
        """Write what is known before the first iteration."""
        self.examples = examples
        if self.held_out is not None:
            self.lines(f"Holdout group: {self.log.holdout + 1}", "")
        model = self.model
        states = model.parameter("all_possible_states")
        transitions = model.parameter("all_possible_transitions")
        n_features = counts.n_features(states=states, transitions=transitions)
        self.lines(
            "Feature generation",
            "type: CRF1d",
            f"feature.minfreq: {model.parameter('min_freq'):f}",
            f"feature.possible_states: {states:d}",
            f"feature.possible_transitions: {transitions:d}",
        )
        for percent in range(0, 101, 2):
            self.log.message("." if percent % 10 else str(percent // 10))
        seconds = time.perf_counter() - self.begun
        self.lines("", f"Number of features: {n_features}", f"Seconds required: {seconds:.3f}", "")
        self.lines(TITLES[model.method])
        for name, each in parameters_of(model.method).items():
            if not name.startswith("feature."):
                value = model.parameter(each.field)
                self.lines(f"{name}: {value:f}" if isinstance(value, float) else f"{name}: {value}")
        self.lines("")
        self.last = time.perf_counter()

    def after_epoch(self, training: Training, table: WeightTable) -> None:
        """Write what an iteration has brought."""
        now = time.perf_counter()
        by_epochs = self.model.method == "l2sgd"
        weights = table.v[: int(table.ints[at.ROWS])]
        norm = float(np.linalg.norm(weights.astype(np.float64)))
        self.lines(
            f"***** {'Epoch' if by_epochs else 'Iteration'} #{training.epoch} *****",
            f"Loss: {loss_of(training, self.examples):f}",
            f"Feature {'L2-' if by_epochs else ''}norm: {norm:f}",
        )
        if self.model.method == "lbfgs":
            self.lines(f"Active features: {np.count_nonzero(weights)}")
        self.lines(f"Seconds required for this iteration: {now - self.last:.3f}")
        if self.held_out is not None:
            self.lines(*self._scores(table))
        self.lines("")
        self.last = time.perf_counter()

    def _scores(self, table: WeightTable) -> Iterable[str]:
        model = self.model
        if self.encoded is None:
            inputs, outputs = model.task_.read(*(self.held_out or ()))
            gold = model.task_.gold_outputs(inputs, outputs)
            self.encoded = inputs, model.task_.encode(inputs), gold
        inputs, dataset, gold = self.encoded
        predicted = model.decode(inputs, dataset, table)
        found = evaluated(gold, predicted)
        yield "Performance by label (#match, #model, #ref) (precision, recall, F1):"
        ratios = []
        for label in model.task_.classes:
            n = found.labels.get(label)
            if n is None:
                ratios.append((0.0, 0.0, 0.0))
                yield f"    {label}: (0, 0, 0) (******, ******, ******)"
                continue
            ratios.append((n.precision / 100, n.recall / 100, n.f / 100))
            shown = ", ".join(f"{each:.4f}" for each in ratios[-1])
            yield f"    {label}: ({n.correct}, {n.predicted}, {n.gold}) ({shown})"
        means = ", ".join(f"{sum(each) / len(ratios):f}" for each in zip(*ratios, strict=True))
        yield f"Macro-average precision, recall, F1: ({means})"
        right = sum(n.correct for n in found.labels.values())
        whole = sum(a == b for a, b in zip(gold, predicted, strict=True))
        yield f"Item accuracy: {_fraction(right, found.tokens)}"
        yield f"Instance accuracy: {_fraction(whole, len(gold))}"

    def end(self) -> None:
        """Write that training is over, and what is stored."""
        model, begun = self.model, time.perf_counter()
        ended = "the stopping criteria" if model.converged_ else "the maximum number of iterations"
        self.lines(f"{TITLES[model.method].split()[0]} terminated with {ended}")
        self.lines(f"Total seconds required for training: {begun - self.begun:.3f}", "")
        n_features = np.count_nonzero(model.weights_.v)
        n_attributes, n_labels = len(model.task_.encoder_.attributes), len(model.task_.classes)
        self.lines("Storing the model")
        for name, number in (
            ("features", n_features),
            ("attributes", n_attributes),
            ("labels", n_labels),
        ):
            self.lines(f"Number of active {name}: {number} ({number})")
        if model.model_filename is not None:
            model.save(model.model_filename)
        self.lines(f"Seconds required: {time.perf_counter() - begun:.3f}", "")


def loss_of(training: Training, examples: int) -> float:
    """Return the loss of the last epoch: the negative log-likelihood, or the number of errors."""
    each = training.error_rate if training.objective is None else -training.objective
    return each * examples


def _fraction(part: int, whole: int) -> str:
    return f"{part} / {whole} ({part / max(1, whole):.4f})"


class Stopping:
    """The stopping criteria of CRFsuite's algorithms that are not those of the updates."""

    def __init__(self, model: CRF) -> None:
        self.model = model
        self.losses: list[float] = []

    def after_epoch(self, training: Training, table: WeightTable) -> None:
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
