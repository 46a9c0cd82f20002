"""The log of a training: events, each with its numbers and with the text of CRFsuite.

``TrainingLog`` receives them and calls a method for each; ``TrainingRecord`` keeps the numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

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
