"""The parser of CRFsuite's own logs, where python-crfsuite has it."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from laso.crfsuite.log import ACCURACIES, AVERAGES, LabelScore, TrainingRecord

__all__ = ["LabelScore", "TrainLogParser"]

_HEAD = re.compile(r"\*{5} (?:Iteration|Epoch) #(\d+) \*{5}")
_LABEL = re.compile(r"\s{4}(.+): \((\d+), (\d+), (\d+)\) \((\S+), (\S+), (\S+)\)")
_NUMBERS: dict[str, tuple[str, type]] = {
    "Loss": ("loss", float),
    "Feature norm": ("feature_norm", float),
    "Feature L2-norm": ("feature_norm", float),
    "Error norm": ("error_norm", float),
    "Active features": ("active_features", int),
    "Line search trials": ("linesearch_trials", int),
    "Line search step": ("linesearch_step", float),
    "Seconds required for this iteration": ("time", float),
}


class TrainLogParser(TrainingRecord):
    """Parses the log of a training of CRFsuite, line by line, into the same attributes."""

    _stage = "start"

    def feed(self, line: str) -> str | None:
        """Parse one line; return the event that it completes, if any."""
        name, _, value = line.rstrip("\n").partition(": ")
        event: str | None = getattr(self, f"_in_{self._stage}")(line, name, value)
        self.log.append(line)
        if event is not None:  # two events end before the line that tells of them
            self.ended(event, len(self.log) - (event in ("prepared", "optimization_end")))
        return event

    def _in_start(self, line: str, name: str, value: str) -> str | None:
        if line.startswith("Feature generation"):
            self._stage = "features"
        return None if self.log else "start"

    def _in_features(self, line: str, name: str, value: str) -> str | None:
        if line == "." or line.isdecimal():
            self.featgen_percent += 2
            return "featgen_progress"
        if name == "Number of features":
            self.featgen_num_features = int(value)
        if name != "Seconds required":
            return None
        self.featgen_seconds = float(value)
        self._stage = "optimization"
        return "featgen_end"

    def _in_optimization(self, line: str, name: str, value: str) -> str | None:
        head = _HEAD.match(line)
        if head is not None:
            self._stage = "iteration"
            self.iterations.append({"num": int(head[1]), "scores": {}})
            return "prepared" if len(self.iterations) == 1 else None
        if name == "Total seconds required for training":
            self.training_seconds = float(value)
        if line.startswith("Storing the model"):
            self._stage = "storing"
            return "optimization_end"
        failed = "terminated with error" in line and not self.iterations
        return "prepare_error" if failed else None

    def _in_iteration(self, line: str, name: str, value: str) -> str | None:
        info: dict[str, Any] = self.last_iteration
        label = _LABEL.match(line)
        accuracy = {text: key for key, text in ACCURACIES.items()}.get(name)
        if line == "\n":
            self._stage = "optimization"
            return "iteration"
        if label is not None:
            ratios = (None if each.startswith("*") else float(each) for each in label.groups()[4:])
            info["scores"][label[1]] = LabelScore(*map(int, label.groups()[1:4]), *ratios)
        elif name in _NUMBERS:
            key, cast = _NUMBERS[name]
            info[key] = cast(value)
        elif name.startswith("Macro-average"):
            info |= zip(AVERAGES, map(float, value.strip("()").split(", ")), strict=True)
        elif accuracy is not None:
            right, total = map(int, value.partition(" (")[0].split(" / "))
            info[accuracy] = Fraction(right, max(1, total))
            info[f"{accuracy}_float"] = float(info[accuracy])
        return None

    def _in_storing(self, line: str, name: str, value: str) -> str | None:
        if name == "Seconds required":
            self.storing_seconds = float(value)
        return "end" if line == "\n" else None
