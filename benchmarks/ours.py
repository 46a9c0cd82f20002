"""laso itself, through its ``Tagger``: all that the harness knows of it is in this module."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.systems import Decoded, Grid, Learned, Settings
from laso.data import Sentence, read_columns

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
        "exact perceptron": {"epochs": EPOCHS},
        "exact likelihood": {"epochs": EPOCHS},
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

    def read(self, path: str | Path) -> list[Sentence]:
        """Read with laso's own reader, which checks what it reads."""
        return read_columns(path)

    def learn(self, sentences: list[Sentence], settings: Settings, model: Path) -> Learned:
        """``fit`` makes features and trains; the features are timed by encoding once more."""
        started = time.perf_counter()
        inputs = [[token[:2] for token in sentence] for sentence in sentences]
        wanted = [[token[2] for token in sentence] for sentence in sentences]
        prepared = time.perf_counter()
        tagger(settings).fit(inputs, wanted).save(model)
        return Learned(prepared - started, time.perf_counter() - prepared)

    def decode(self, model: Path, sentences: list[Sentence]) -> Decoded:
        """Predict all sentences in one call, in one thread."""
        from laso.estimators import Tagger

        started = time.perf_counter()
        loaded_tagger = Tagger.load(model)
        loaded_tagger.predict(sentences[:1])
        loaded = time.perf_counter()
        labels = loaded_tagger.predict(sentences)
        done = time.perf_counter()
        return Decoded([list(row) for row in labels], loaded - started, done - loaded)


def tagger(settings: Settings) -> Any:
    """The estimator that the settings describe, in one thread."""
    import laso
    from laso.estimators import Tagger
    from laso.features.templates import CHUNKING

    updates = {
        "perceptron": laso.perceptron(),
        "perceptron, worst, margin 1": laso.perceptron(weighting=laso.worst, margin=1.0),
        "alma": laso.alma(),
        "passive-aggressive": laso.passive_aggressive(),
        "likelihood": "likelihood",
    }
    queue = "exact" if settings["queue"] == "exact" else laso.beam(settings["queue"])
    options: dict[str, Any] = {"update": updates[settings["update"]], "epochs": settings["epochs"]}
    if "strategy" in settings:
        options["strategy"] = getattr(laso, settings["strategy"])
    return Tagger(templates=CHUNKING, queue=queue, threads=1, **options)


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that would hold it is not there
        return False
