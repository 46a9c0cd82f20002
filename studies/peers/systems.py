"""The measured systems: python-crfsuite, Vowpal Wabbit's search, and laso's ``Tagger``.

A system has configurations; a configuration has settings (JSON values), their defaults, and a grid
of values to choose from on held-out data. Each peer is used as its documentation shows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import laso
from laso.data import Sentence
from studies.corpus import plain_read
from studies.measure import Grid, Settings, fastest
from studies.peers import template

Tag = Callable[[Any], list[str]]


class Learned(NamedTuple):
    """Seconds to read sentences, to make features from them, and to train and save a model."""

    read_s: float
    features_s: float
    train_s: float


class Decoded(NamedTuple):
    """The labels, the seconds to load the model, and those from raw tokens to labels."""

    labels: list[list[str]]
    load_s: float
    decode_s: float


class System(Protocol):
    """A program that learns to label sentences.

    ``module`` is what it imports. ``defaults`` and ``grid`` have one entry for each configuration.
    The values of a grid are sorted by their cost where it differs, since the first of two equally
    good values is chosen.
    """

    name: str
    module: str
    packages: Sequence[str]
    defaults: Mapping[str, Settings]
    grid: Mapping[str, Grid]

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Train on a column file (word, POS tag, label) and save the model in a file."""

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Label sentences of (word, POS tag); loading and the first sentence are not counted."""


# --------------------------------------------------------------------------- peers

ITERATIONS = [5, 10, 15, 20, 30, 50, 100]
LABELS = ".labels"  # the file beside Vowpal Wabbit's model with the names of its numbers


def absent(module: str) -> str:
    """Return a message if a module is not installed; empty if it is."""
    there = find_spec(module.partition(".")[0]) and find_spec(module)
    return "" if there else f"{module} is not installed"


def import_seconds(module: str) -> float:
    """Import a module and return the seconds it took."""
    started = time.perf_counter()
    import_module(module)
    return time.perf_counter() - started


def labels_of(sentences: Iterable[Sentence]) -> list[list[str]]:
    """Return the last column."""
    return [[token[-1] for token in sentence] for sentence in sentences]


def crfsuite_trainer(
    algorithm: str, items: Iterable[Any], labels: Iterable[list[str]], **params: Any
) -> Any:
    """Return python-crfsuite's trainer with all sentences, which are passed one by one."""
    import pycrfsuite

    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=params, verbose=False)
    for features, tags in zip(items, labels, strict=True):
        trainer.append(features, tags)
    return trainer


def crfsuite_tag(path: str | Path) -> Tag:
    """Return the function that tags a sentence with a model of CRFsuite."""
    import pycrfsuite

    tagger = pycrfsuite.Tagger()
    tagger.open(str(path))
    tag: Tag = tagger.tag
    return tag


class CRFsuite:
    """python-crfsuite: linear-chain models with exact search, trained online or in batch.

    It gets features as lists of strings, the form that it takes fastest.
    """

    name, module = "python-crfsuite", "pycrfsuite"
    packages: Sequence[str] = ("python-crfsuite",)
    defaults: Mapping[str, Settings] = {
        "ap": {"algorithm": "ap", "form": "lists", "max_iterations": 20},
        "pa": {"algorithm": "pa", "form": "lists", "max_iterations": 20, "c": 1.0},
        "lbfgs": {
            "algorithm": "lbfgs",
            "form": "lists",
            "max_iterations": 1000,
            "c1": 0.0,
            "c2": 1.0,
        },
    }
    grid: Mapping[str, Grid] = {
        "ap": {"max_iterations": ITERATIONS},
        "pa": {"c": [1.0, 0.1, 0.01], "max_iterations": ITERATIONS},
        "lbfgs": {"c2": [1.0, 0.3, 3.0], "c1": [0.0, 0.3], "max_iterations": [50, 100, 1000]},
    }

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Append sentence by sentence, so that Python never holds the features of all sentences."""
        options = {name: value for name, value in settings.items() if name != "form"}
        started = time.perf_counter()
        sentences = plain_read(path)
        read = time.perf_counter()
        labels = ([token[2] for token in sentence] for sentence in sentences)
        trainer = crfsuite_trainer(
            items=map(template.as_lists, sentences), labels=labels, **options
        )
        appended = time.perf_counter()
        trainer.train(str(model))
        return Learned(read - started, appended - read, time.perf_counter() - appended)

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Tag sentence by sentence."""
        started = time.perf_counter()
        tag = crfsuite_tag(model)
        tag(template.as_lists(sentences[0]))
        loaded = time.perf_counter()
        labels = [tag(template.as_lists(sentence)) for sentence in sentences]
        return Decoded(labels, loaded - started, time.perf_counter() - loaded)


class VowpalWabbit:
    """Vowpal Wabbit's ``--search_task sequence``, run in this process over a text and cache file.

    Conjunctions are written as features, since Vowpal Wabbit's own ``--interactions`` were slower
    in training and in decoding.
    """

    name, module = "vowpalwabbit", "vowpalwabbit"
    packages: Sequence[str] = ("vowpalwabbit",)
    defaults: Mapping[str, Settings] = {
        "sequence": {
            "search_history_length": 1,
            "search_rollin": "policy",
            "search_rollout": "none",
            "learning_rate": 0.5,
            "bit_precision": 22,
            "passes": 3,
        }
    }
    grid: Mapping[str, Grid] = {
        "sequence": {
            "search_history_length": [1, 2, 3],
            "search_rollin": ["policy", "ref", "mix_per_roll"],
            "search_rollout": ["none", "ref", "mix_per_roll", "policy"],
            "learning_rate": [0.5, 0.1, 0.25, 1.0, 2.0],
            "bit_precision": [22, 20, 24, 26],
            "passes": [1, 2, 3, 4, 6, 8, 12],
        }
    }

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Write the features as text, then train; parsing the text is part of training."""
        started = time.perf_counter()
        sentences = plain_read(path)
        read = time.perf_counter()
        labels = sorted({token[2] for sentence in sentences for token in sentence})
        numbers = {label: str(n) for n, label in enumerate(labels, start=1)}
        text, cache = model.with_suffix(".txt"), model.with_suffix(".cache")
        with text.open("w", encoding="utf-8") as file:
            for sentence in sentences:
                for token, line in zip(sentence, template.as_text(sentence), strict=True):
                    file.write(f"{numbers[token[2]]} {line}\n")
                file.write("\n")
        Path(f"{model}{LABELS}").write_text("\n".join(labels), encoding="utf-8")
        wrote = time.perf_counter()
        arguments = ["--search", str(len(labels)), "--search_task", "sequence"]
        for name, value in settings.items():
            arguments += [f"--{name}", str(value)]
        run_vw(
            *arguments,
            *("--data", str(text), "--cache_file", str(cache), "--kill_cache", "--holdout_off"),
            *("--final_regressor", str(model), "--predict_only_model"),
        )
        trained = time.perf_counter()
        for used in (text, cache):
            used.unlink(missing_ok=True)
        return Learned(read - started, wrote - read, trained - wrote)

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Write text, predict into a file and read it; the time to load the model is subtracted.

        Predicting sentence by sentence with a loaded model is slower.
        """
        text, predictions = model.with_suffix(".test.txt"), model.with_suffix(".predictions")
        names = Path(f"{model}{LABELS}").read_text(encoding="utf-8").split("\n")
        by_number = {str(n): label for n, label in enumerate(names, start=1)}
        loading = ("--testonly", "--initial_regressor", str(model))
        load_s = fastest(lambda: run_vw(*loading), 5)
        started = time.perf_counter()
        with text.open("w", encoding="utf-8") as file:
            for sentence in sentences:
                file.write("\n".join(template.as_text(sentence)))
                file.write("\n\n")
        run_vw(*loading, "--data", str(text), "--predictions", str(predictions))
        lines = predictions.read_text(encoding="utf-8").split("\n")
        labels = [[by_number[n] for n in line.split()] for line in lines if line]
        done = time.perf_counter()
        for path in (text, predictions):
            path.unlink()
        return Decoded(labels, load_s, done - started - load_s)


def run_vw(*arguments: str) -> None:
    """Run Vowpal Wabbit once with command-line arguments."""
    import vowpalwabbit

    vowpalwabbit.Workspace(arg_list=[*arguments, "--quiet"]).finish()


# --------------------------------------------------------------------------- laso

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

    name, module = "laso", "laso.estimators"
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

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Pass the file to ``fit``, as users would."""
        started = time.perf_counter()
        tagger = laso.Tagger(**parameters(settings)).fit(path)
        tagger.save(model)
        seconds = time.perf_counter() - started
        read_s, features_s = tagger.seconds_["read"], tagger.seconds_["features"]
        return Learned(read_s, features_s, seconds - read_s - features_s)

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Predict all sentences in one call, in one thread."""
        started = time.perf_counter()
        tagger = laso.Tagger.load(model)
        tagger.predict(sentences[:1])
        loaded = time.perf_counter()
        labels = tagger.predict(sentences)
        return Decoded(labels, loaded - started, time.perf_counter() - loaded)


def parameters(settings: Settings) -> dict[str, Any]:
    """Return the estimator's parameters for the settings, with one thread."""
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


SYSTEMS: dict[str, System] = {
    system.name: system for system in (CRFsuite(), VowpalWabbit(), Laso())
}
