"""The log of a training as CRFsuite writes it: written line by line, and parsed again.

``TrainLogParser`` reads such lines, also those of CRFsuite itself. ``TrainingLog`` receives them
and calls a method for each event.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import Any, NamedTuple


class LabelScore(NamedTuple):
    """The held-out score of a label: counts and ratios; the ratios of no token are None."""

    match: int
    model: int
    ref: int
    precision: float | None
    recall: float | None
    f1: float | None


_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}")
_NUMBERS: dict[str, tuple[str, Callable[[str], float]]] = {
    "Loss": ("loss", float),
    "Feature norm": ("feature_norm", float),
    "Feature L2-norm": ("feature_norm", float),
    "Error norm": ("error_norm", float),
    "Active features": ("active_features", int),
    "Line search trials": ("linesearch_trials", int),
    "Line search step": ("linesearch_step", float),
    "Seconds required for this iteration": ("time", float),
}
_ACCURACIES = {"Item accuracy": "item_accuracy", "Instance accuracy": "instance_accuracy"}
_AVERAGES = ("avg_precision", "avg_recall", "avg_f1")
_LABEL = re.compile(r"\s{4}(.+): \((\d+), (\d+), (\d+)\) \((\S+), (\S+), (\S+)\)")


class TrainLogParser:
    """Parses the log of a training, line by line.

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
        self.state: str | None = None
        self.featgen_percent = -2
        self.featgen_num_features: int | None = None
        self.featgen_seconds: float | None = None
        self.training_seconds: float | None = None
        self.storing_seconds: float | None = None
        self.iterations: list[dict[str, Any]] = []
        self.last_iteration: dict[str, Any] | Any = None  # None before the first
        self.log: list[str] = []
        self.events: list[tuple[str, int, int]] = []

    @property
    def last_log(self) -> str:
        """The lines of the last event."""
        _, first, end = self.events[-1]
        return "".join(self.log[first:end])

    def feed(self, line: str) -> str | None:
        """Parse one line; return the event that it completes, if any."""
        self.log.append(line)
        event = self._event(line)
        if event is not None:
            first = self.events[-1][2] if self.events else 0
            begins_next = event in ("prepared", "optimization_end")
            self.events.append((event, first, len(self.log) - begins_next))
        return event

    def _event(self, line: str) -> str | None:
        if self.state is None or self.state == "STARTING":
            event = "start" if self.state is None else None
            self.state = "FEATGEN" if line.startswith("Feature generation") else "STARTING"
            return event
        return {
            "FEATGEN": self._in_features,
            "AFTER_FEATGEN": self._before_iterations,
            "ITERATION": self._in_iteration,
            "AFTER_ITERATION": self._between_iterations,
            "STORING": self._in_storing,
        }[self.state](line)

    def _in_features(self, line: str) -> str | None:
        name, value = _pair(line)
        if line == "." or line.isdecimal():
            self.featgen_percent += 2
            return "featgen_progress"
        if name == "Number of features":
            self.featgen_num_features = int(value)
        if name == "Seconds required":
            self.featgen_seconds = float(value)
            self.state = "AFTER_FEATGEN"
            return "featgen_end"
        return None

    def _before_iterations(self, line: str) -> str | None:
        if self._begins_iteration(line):
            return "prepared"
        if "terminated with error" in line:
            self.state = "AFTER_ITERATION"
            return "prepare_error"
        return None

    def _begins_iteration(self, line: str) -> bool:
        head = _HEAD.match(line)
        if head is not None:
            self.state = "ITERATION"
            self.last_iteration = {"num": int(head[1]), "scores": {}}
            self.iterations.append(self.last_iteration)
        return head is not None

    def _in_iteration(self, line: str) -> str | None:
        found = self.last_iteration
        if line == "\n":
            self.state = "AFTER_ITERATION"
            return "iteration"
        name, value = _pair(line)
        label = _LABEL.match(line)
        if label is not None:
            counts = map(int, label.groups()[1:4])
            ratios = (None if each.startswith("*") else float(each) for each in label.groups()[4:])
            found["scores"][label[1]] = LabelScore(*counts, *ratios)
        elif name in _NUMBERS:
            key, cast = _NUMBERS[name]
            found[key] = cast(value)
        elif name.startswith("Macro-average"):
            means = map(float, value.strip("()").split(", "))
            found |= dict(zip(_AVERAGES, means, strict=True))
        elif name in _ACCURACIES:
            from fractions import Fraction

            right, _, all_of = value.partition(" (")[0].partition(" / ")
            ratio = Fraction(int(right), max(1, int(all_of)))
            found[_ACCURACIES[name]] = ratio
            found[f"{_ACCURACIES[name]}_float"] = float(ratio)
        return None

    def _between_iterations(self, line: str) -> str | None:
        name, value = _pair(line)
        if name == "Total seconds required for training":
            self.training_seconds = float(value)
        if line.startswith("Storing the model"):
            self.state = "STORING"
            return "optimization_end"
        self._begins_iteration(line)
        return None

    def _in_storing(self, line: str) -> str | None:
        name, value = _pair(line)
        if name == "Seconds required":
            self.storing_seconds = float(value)
        return "end" if line == "\n" else None


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.rstrip("\n").partition(": ")
    return name, value


class TrainingLog:
    """Receives the lines of a log, and calls ``on_...`` for each event if it is verbose."""

    verbose: bool = True
    holdout: int = 1  # the number of the group whose scores are logged
    logparser: TrainLogParser | None = None

    def begin_log(self) -> None:
        """Start a new log."""
        self.logparser = TrainLogParser()

    def message(self, message: str) -> None:
        """Receive a line."""
        assert self.logparser is not None
        parser = self.logparser
        event = parser.feed(message)
        if not self.verbose or event is None:
            return
        arguments: list[Any] = [parser.last_log]
        if event == "featgen_progress":
            arguments.append(parser.featgen_percent)
        if event == "iteration":
            arguments.append(parser.last_iteration)
        getattr(self, f"on_{event}")(*arguments)

    def show(self, text: str) -> None:
        """Write text to the standard output."""
        sys.stdout.write(text)

    def on_start(self, log: str) -> None:
        """Called with the lines before the features are made."""
        self.show(log)

    def on_featgen_progress(self, log: str, percent: int) -> None:
        """Called while the features are made."""
        self.show(log)

    def on_featgen_end(self, log: str) -> None:
        """Called with the number of features."""
        self.show(log)

    def on_prepared(self, log: str) -> None:
        """Called with the parameters of the algorithm, before the first iteration."""
        self.show(log)

    def on_prepare_error(self, log: str) -> None:
        """Called if training ends before its first iteration."""
        self.show(log)

    def on_iteration(self, log: str, info: dict[str, Any]) -> None:
        """Called after each iteration."""
        self.show(log)

    def on_optimization_end(self, log: str) -> None:
        """Called after the last iteration."""
        self.show(log)

    def on_end(self, log: str) -> None:
        """Called when the model is stored."""
        self.show(log)


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
        if "avg_precision" in info:
            parts += [f"{name[4:]}={info[name]:.3f}" for name in _AVERAGES]
            accuracies = (info[f"{name}_float"] for name in _ACCURACIES.values())
            parts.append("accuracy(token/sentence)=" + "/".join(f"{a:.3f}" for a in accuracies))
        parts.append(f"feature_norm={info['feature_norm']:<8.2f}")
        self.show("  ".join(parts).strip() + "\n")

    def on_optimization_end(self, log: str) -> None:
        """Print the table of labels, then the lines."""
        assert self.logparser is not None
        last = self.logparser.last_iteration
        scores = last["scores"] if last is not None else {}
        if scores:
            width = max(map(len, [*scores, "label"]))
            self.show(f"{'label':{width}}  precision  recall     F1  support\n")
        for label, score in sorted(scores.items()):
            p, r, f = (each or 0.0 for each in (score.precision, score.recall, score.f1))
            self.show(f"{label:{width}}  {p:9.3f}  {r:6.3f}  {f:5.3f}  {score.ref:7}\n")
        self.show(log)
