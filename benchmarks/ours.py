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
        """Hand the file to ``fit``, as its users would."""
        from laso import Tagger

        started = time.perf_counter()
        made = Tagger(**parameters(settings)).fit(path)
        made.save(model)
        seconds = time.perf_counter() - started
        read_s, features_s = made.seconds_["read"], made.seconds_["features"]
        return Learned(read_s, features_s, seconds - read_s - features_s)

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Predict all sentences in one call, in one thread."""
        from laso import Tagger

        started = time.perf_counter()
        tagger = Tagger.load(model)
        tagger.predict(sentences[:1])
        loaded = time.perf_counter()
        labels = tagger.predict(sentences)
        return Decoded(labels, loaded - started, time.perf_counter() - loaded)


def parameters(settings: Settings) -> dict[str, Any]:
    """What the settings are to the estimator, in one thread."""
    import laso
    from laso.features.templates import CHUNKING

    climb = {name: settings[name] for name in ("rate", "variance") if name in settings}
    updates = {
        "perceptron": laso.perceptron(),
        "perceptron, worst, margin 1": laso.perceptron(weighting=laso.worst, margin=1.0),
        "alma": laso.alma(),
        "passive-aggressive": laso.passive_aggressive(),
        "likelihood": laso.adagrad(**climb),
    }
    return {
        "templates": CHUNKING,
        "queue": laso.exact() if settings["queue"] == "exact" else settings["queue"],
        "update": updates[settings["update"]],
        "strategy": getattr(laso, settings.get("strategy", "standard")),
        "epochs": settings["epochs"],
        "threads": 1,
    }


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that would hold it is not there
        return False
