"""The log of a training: events, which are written as numbers and as the text of CRFsuite.

``TrainingRecord`` keeps the numbers. The functions ``..._lines`` write the text. ``TrainingLog``
receives the events with both, and calls a method for each.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

TITLES = {
    "lbfgs": "L-BFGS optimization",
    "l2sgd": "Stochastic Gradient Descent (SGD)",
    "ap": "Averaged perceptron",
    "pa": "Passive Aggressive",
    "arow": "Adaptive Regularization of Weights (AROW)",
}
AVERAGES = ("avg_precision", "avg_recall", "avg_f1")
ACCURACIES = {"item_accuracy": "Item accuracy", "instance_accuracy": "Instance accuracy"}


class LabelScore(NamedTuple):
    """The held-out score of a label: counts and ratios; the ratios of no token are None."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


class TrainingRecord:
    """The numbers of a training.

    Attributes
    ----------
    iterations : list of dict
        One for each iteration: num, loss, time, scores (of labels), and what else was logged.
    last_iteration : dict
        The last of them.
    featgen_num_features, featgen_seconds, training_seconds, storing_seconds : int, float
        The number of features, and the time of each stage.
    log : list of str
        All lines.
    events : list of (str, int, int)
        The events, with the first and the last line of each.
    """

    def __init__(self) -> None:
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    @property
    def last_iteration(self) -> dict[str, Any] | Any:
        """The last iteration; None before the first."""
        return self.iterations[-1] if self.iterations else None

    @property
    def last_log(self) -> str:
        """The lines of the last event."""
        _, first, end = self.events[-1]
        return "".join(self.log[first:end])

    def add(self, event: str, numbers: Mapping[str, Any]) -> None:
        """Keep the numbers of an event whose lines are the last ones of the log."""
        if event == "iteration":
            self.iterations.append(dict(numbers))
        else:
            vars(self).update({name: numbers[name] for name in numbers if name in vars(self)})
        self.ended(event, len(self.log))

    def ended(self, event: str, end: int) -> None:
        """Note an event whose lines end before the line ``end``."""
        self.events.append((event, self.events[-1][2] if self.events else 0, end))


# The text of each event, line by line


def start_lines(holdout: int | None, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the held-out group, if any, and the parameters of the features."""
    if holdout is not None:
        yield from (f"Holdout group: {holdout + 1}", "")
    yield from ("Feature generation", "type: CRF1d")
    for name, value in parameters.items():
        yield f"{name}: {value:{'f' if isinstance(value, float) else 'd'}}"


def featgen_lines(n_features: int, seconds: float) -> Iterator[str]:
    """Yield the number of features."""
    yield from ("", f"Number of features: {n_features}", f"Seconds required: {seconds:.3f}", "")


def prepared_lines(method: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    """Yield the algorithm and its parameters."""
    yield TITLES[method]
    for name, value in parameters.items():
        yield f"{name}: {value:f}" if isinstance(value, float) else f"{name}: {value}"
    yield ""


def iteration_lines(
    method: str, info: Mapping[str, Any], right: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    """Yield the numbers of an iteration; ``right`` has those of right items and instances."""
    kind, norm = ("Epoch", "L2-norm") if method == "l2sgd" else ("Iteration", "norm")
    yield f"***** {kind} #{info['num']} *****"
    yield from (f"Loss: {info['loss']:f}", f"Feature {norm}: {info['feature_norm']:f}")
    if "active_features" in info:
        yield f"Active features: {info['active_features']}"
    yield f"Seconds required for this iteration: {info['time']:.3f}"
    if right:
        yield "Performance by label (#match, #model, #ref) (precision, recall, F1):"
        for label, score in info["scores"].items():
            ratios = ("*" * 6 if ratio is None else f"{ratio:.4f}" for ratio in score[3:])
            yield f"    {label}: ({', '.join(map(str, score[:3]))}) ({', '.join(ratios)})"
        means = ", ".join(f"{info[name]:f}" for name in AVERAGES)
        yield f"Macro-average precision, recall, F1: ({means})"
    for name, (part, whole) in right.items():
        yield f"{ACCURACIES[name]}: {part} / {whole} ({part / max(1, whole):.4f})"
    yield ""


def optimization_lines(method: str, converged: bool, seconds: float) -> Iterator[str]:
    """Yield why the training ended, and its time."""
    reason = "the stopping criteria" if converged else "the maximum number of iterations"
    yield f"{TITLES[method].split()[0]} terminated with {reason}"
    yield from (f"Total seconds required for training: {seconds:.3f}", "")


def end_lines(active: Mapping[str, int], seconds: float) -> Iterator[str]:
    """Yield the size of the model."""
    yield "Storing the model"
    for name, number in active.items():
        yield f"Number of active {name}: {number} ({number})"
    yield from (f"Seconds required: {seconds:.3f}", "")


class TrainingLog:
    """Receives the events of a training, and calls ``on_...`` for each if it is verbose."""

    verbose: bool = True
    holdout: int = 1  # the number of the group whose scores are logged
    logparser: TrainingRecord

    def begin_log(self) -> None:
        """Start a new log."""
        self.logparser = TrainingRecord()

    def event(self, name: str, lines: Iterable[str], **numbers: Any) -> None:
        """Receive an event, with its text and its numbers.

        Each line goes to ``message``, then the method of the event is called. A ``message`` of
        one's own that keeps the lines leaves nothing to that method.
        """
        end = "" if name == "featgen_progress" else "\n"
        for line in lines:
            self.message(f"{line}{end}")
        record = self.logparser
        record.add(name, numbers)
        if self.verbose and record.last_log:
            given = {"featgen_progress": ("featgen_percent",), "iteration": ("last_iteration",)}
            details = (getattr(record, each) for each in given.get(name, ()))
            getattr(self, f"on_{name}")(record.last_log, *details)

    def message(self, message: str) -> None:
        """Receive a line of the text."""
        self.logparser.log.append(message)

    def on_event(self, log: str, *details: Any) -> None:
        """Print the text of an event."""
        sys.stdout.write(log)

    on_start: Callable[..., None] = on_event  # with the lines before the features are made
    on_featgen_progress: Callable[..., None] = on_event  # also with the per cent of the features
    on_featgen_end: Callable[..., None] = on_event  # with the number of features
    on_prepared: Callable[..., None] = on_event  # with the parameters, before the first iteration
    on_prepare_error: Callable[..., None] = on_event  # never: a training that cannot begin raises
    on_iteration: Callable[..., None] = on_event  # also with a dict of the iteration's numbers
    on_optimization_end: Callable[..., None] = on_event  # after the last iteration
    on_end: Callable[..., None] = on_event  # when the model is stored


class LinePerIteration(TrainingLog):
    """Prints one line for each iteration, and the held-out scores of the last one."""

    def __init__(self, verbose: bool) -> None:
        self.verbose = verbose

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Print nothing: laso makes the features at once."""

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Print the line."""
        parts = [
            f"Iter {info['num']:<3}",
            f"time={info['time']:<5.2f}",
            f"loss={info['loss']:<8.2f}",
        ]
        if "active_features" in info:
            parts.append(f"active={info['active_features']:<5}")
        if info["scores"]:
            parts += [f"{name[4:]}={info[name]:.3f}" for name in AVERAGES]
            accuracies = (f"{info[f'{name}_float']:.3f}" for name in ACCURACIES)
            parts.append("accuracy(token/sentence)=" + "/".join(accuracies))
        parts.append(f"feature_norm={info['feature_norm']:<8.2f}")
        self.on_event("  ".join(parts).strip() + "\n")

    def on_optimization_end(self, log: str) -> None:
        """Print the table of labels, then the lines."""
        last = self.logparser.last_iteration
        scores = last["scores"] if last is not None else {}
        if scores:
            width = max(map(len, [*scores, "label"]))
            self.on_event(f"{'label':{width}}  precision  recall     F1  support\n")
        for label, score in sorted(scores.items()):
            p, r, f = (each or 0.0 for each in (score.precision, score.recall, score.f1))
            self.on_event(f"{label:{width}}  {p:9.3f}  {r:6.3f}  {f:5.3f}  {score.ref:7}\n")
        self.on_event(log)
