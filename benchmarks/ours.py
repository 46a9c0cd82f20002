"""laso itself, through its ``Tagger``: all that the harness knows of it is in this module."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.systems import Decoded, Grid, Learned, Settings
from laso.data import Sentence

EPOCHS = [3, 5, 8, 10, 15, 20, 30]
UPDATES = ["perceptron", "perceptron, worst, margin 1", "alma", "passive-aggressive"]
STRATEGIES = ["laso", "early", "max_violation"]


class Laso:
    """laso's tagger with the same template: beams of 1 and 5, and exact search."""

    name = "laso"
    packages: Sequence[str] = ("laso", "numba", "numpy")
    defaults: Mapping[str, Settings] = {
        "beam 1": {"queue": 1, "update": "perceptron", "strategy": "laso", "epochs": 10},
        "beam 5": {"queue": 5, "update": "perceptron", "strategy": "laso", "epochs": 10},
        "exact perceptron": {"queue": "exact", "update": "perceptron", "epochs": 10},
        "exact likelihood": {"queue": "exact", "update": "likelihood", "epochs": 10},
    }
    grid: Mapping[str, Grid] = {
        "beam 1": {"update": UPDATES, "strategy": STRATEGIES, "epochs": EPOCHS},
        "beam 5": {"update": UPDATES, "strategy": STRATEGIES, "epochs": EPOCHS},
        "exact perceptron": {"update": UPDATES, "epochs": EPOCHS},
        "exact likelihood": {"rate": [0.5, 0.2], "variance": [10.0, 1.0], "epochs": EPOCHS},
    }

    def missing(self, config: str) -> str:
        """Whether this version of laso has what the configuration needs."""
        needed = ["laso.estimators", "laso.features.templates"]
        if config.startswith("exact"):
            needed.append("laso.engine.exact")
        absent = [name for name in needed if not _exists(name)]
        return f"this version of laso has no {absent[0]}" if absent else ""

    def prepare(self) -> float:
        """Import the estimator."""
        started = time.perf_counter()
        import laso.estimators  # noqa: F401

        return time.perf_counter() - started

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Hand the file to ``fit``, as its users would; its stages are timed from outside."""
        made = tagger_class(settings)(**parameters(settings))
        started = time.perf_counter()
        made.fit(path).save(model)
        seconds = time.perf_counter() - started
        read_s, features_s = made.seconds["read"], made.seconds["features"]
        return Learned(read_s, features_s, seconds - read_s - features_s)

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Predict all sentences in one call, in one thread."""
        started = time.perf_counter()
        tagger = tagger_class(settings).load(model)
        tagger.predict(sentences[:1])
        loaded = time.perf_counter()
        labels = tagger.predict(sentences)
        return Decoded(labels, loaded - started, time.perf_counter() - loaded)


def parameters(settings: Settings) -> dict[str, Any]:
    """What the settings are to the estimator, in one thread."""
    import laso
    from laso.features.templates import CHUNKING

    updates = {
        "perceptron": laso.perceptron(),
        "perceptron, worst, margin 1": laso.perceptron(weighting=laso.worst, margin=1.0),
        "alma": laso.alma(),
        "passive-aggressive": laso.passive_aggressive(),
        "likelihood": None,
    }
    result = {
        "templates": CHUNKING,
        "update": updates[settings["update"]],
        "epochs": settings["epochs"],
        "threads": 1,
    }
    if settings["queue"] != "exact":
        result |= {"queue": settings["queue"], "strategy": getattr(laso, settings["strategy"])}
    return result


def tagger_class(settings: Settings) -> Any:
    """``Tagger`` with a clock, and for exact search with the lattice in place of the beam."""
    from laso.engine.machine import all_of
    from laso.engine.passes import Plan
    from laso.estimators import Tagger
    from laso.tasks.tagging import Tagging

    class Timed(Tagger):
        """Notes the seconds spent in reading and in making features; the rest is training."""

        @property
        def seconds(self) -> dict[str, float]:
            zero = {"read": 0.0, "features": 0.0}
            found: dict[str, float] = self.__dict__.setdefault("_seconds", zero)
            return found

        def _clocked(self, name: str, method: Any, *arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return method(*arguments)
            finally:
                self.seconds[name] += time.perf_counter() - started

        def _with_labels(self, *arguments: Any) -> Any:
            return self._clocked("read", super()._with_labels, *arguments)

        def _begin(self, *arguments: Any) -> Any:
            return self._clocked("features", super()._begin, *arguments)

        def _examples(self, *arguments: Any) -> Any:
            return self._clocked("features", super()._examples, *arguments)

    if settings["queue"] != "exact":
        return Timed

    from laso.engine.exact import ExactMachine, adagrad
    from laso.updates import perceptron

    class Exact(Timed):
        """Learns and decodes with the lattice."""

        def _exact(self) -> Any:
            return ExactMachine(Tagging, self.update or perceptron())

        def _learn(self, examples: Any, epochs: int, progress: Any) -> Any:
            machine, plan = self._exact(), Plan(epochs=epochs, seed=self.seed)
            training: Any = self.training_
            if settings["update"] == "likelihood":
                given = {name: settings[name] for name in ("rate", "variance") if name in settings}
                climb = adagrad(**given)
                machine.fit_likelihood_sgd(examples.train, training, plan, climb)
            else:
                machine.fit(examples.train, training, plan)
            self._publish(training.best)
            return self

        def _decoded(self, machine: Any, corpus: Any, table: Any) -> Any:
            steps, _, _ = self._exact().decode(corpus, all_of(corpus), table)
            return steps[:, 1]

    return Exact


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that would hold it is not there
        return False
