"""laso itself, through its ``Tagger``: the only module of the harness that depends on it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.systems import Decoded, Grid, Learned, Settings
from laso.data import Sentence

EPOCHS = [3, 4, 5, 6, 8, 10, 15]
UPDATES = [
    "perceptron",
    "perceptron, worst, margin 1",
    "perceptron, worst, margin 3",
    "alma 0.9",
    "alma 0.5",
    "passive-aggressive 0.02",
]
STRATEGIES = ["restart", "early", "max_violation"]
# Label histories beside the template's (the last label): a longer one costs a greedy search or a
# beam nothing, but squares the cost of exact search.
HISTORIES = ["", "label[-2]|label[-1]", "label[-2]|label[-1] label[-1]|pos[0]"]
BEAM: Settings = {"update": "perceptron", "strategy": "restart", "history": "", "epochs": 6}
BEAM_GRID: Grid = {
    "update": UPDATES,
    "history": HISTORIES,
    "strategy": STRATEGIES,
    "epochs": EPOCHS,
}


class Laso:
    """laso's tagger with the same template: beams of 1, 3 and 5, and exact search."""

    name = "laso"
    packages: Sequence[str] = ("laso", "numba", "numpy")
    defaults: Mapping[str, Settings] = {
        "beam 1": {"queue": 1, **BEAM},
        "beam 3": {"queue": 3, **BEAM},
        "beam 3, short": {"queue": 3, **BEAM, "update": UPDATES[1], "epochs": 4},
        "beam 5": {"queue": 5, **BEAM},
        "beam 5, short": {"queue": 5, **BEAM, "update": UPDATES[1], "epochs": 4},
        "exact perceptron": {"queue": "exact", "update": "perceptron", "epochs": 6},
        "exact likelihood": {"queue": "exact", "update": "likelihood", "epochs": 5},
    }
    grid: Mapping[str, Grid] = {
        "beam 1": BEAM_GRID,
        "beam 3": BEAM_GRID,
        "beam 3, short": {"epochs": [3, 4, 5]},
        "beam 5": BEAM_GRID,
        "beam 5, short": {"epochs": [3, 4, 5]},
        "exact perceptron": {"update": [UPDATES[0], UPDATES[4]], "epochs": [4, 6, 8, 10]},
        "exact likelihood": {
            "rate": [0.5, 0.2],
            "variance": [10.0, 1.0],
            "history": ["", "label[-1]|pos[0]"],
            "epochs": [3, 5, 8],
        },
    }

    def missing(self, config: str) -> str:
        """Return what this version of laso lacks for the configuration; empty if nothing."""
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
        """Pass the file to ``fit``, as users would."""
        from laso import Tagger

        started = time.perf_counter()
        tagger = Tagger(**parameters(settings)).fit(path)
        tagger.save(model)
        seconds = time.perf_counter() - started
        read_s, features_s = tagger.seconds_["read"], tagger.seconds_["features"]
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
    """Return the estimator's parameters for the settings, with one thread."""
    import laso
    from laso.features.templates import CHUNKING

    likelihood = {name: settings[name] for name in ("rate", "variance") if name in settings}
    kind, *rest = settings["update"].replace(",", "").split()
    if kind == "perceptron":
        margin = float(rest[-1]) if rest else 0.0
        update: Any = laso.perceptron(
            weighting=laso.worst if "worst" in rest else laso.uniform, margin=margin
        )
    elif kind == "alma":
        update = laso.alma(alpha=float(rest[0]))
    elif kind == "passive-aggressive":
        update = laso.passive_aggressive(C=float(rest[0]), weighting=laso.worst)
    else:
        update = laso.adagrad(**likelihood)
    features = [*CHUNKING, *settings.get("history", "").split()]
    if "templates" in settings:
        features = ["label[-1]", *many_templates()[: settings["templates"]]]
    return {
        "features": features,
        "queue": laso.exact() if settings["queue"] == "exact" else settings["queue"],
        "update": update,
        "strategy": getattr(laso, settings.get("strategy", "standard")),
        "epochs": settings["epochs"],
        "threads": 1,
    }


def many_templates() -> list[str]:
    """Return many templates over the two columns, for the growth with their number."""
    single = [f"{column}[{i}]" for i in (0, -1, 1, -2, 2) for column in ("w", "pos")]
    pairs = [f"{a}|{b}" for i, b in enumerate(single) for a in single[:i]]
    return [*single, *pairs, *(f"{pair}|pos[3]" for pair in pairs)]


def _exists(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package that would hold it is not there
        return False
