"""The peers: python-crfsuite and Vowpal Wabbit's search, each used as its documentation shows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import template
from benchmarks.corpus import plain_read
from benchmarks.systems import Decoded, Grid, Learned, Settings
from laso.data import Sentence

ITERATIONS = [5, 10, 15, 20, 30, 50, 100]
LABELS = ".labels"  # the file beside Vowpal Wabbit's model with the names of its numbers


class CRFsuite:
    """python-crfsuite: linear-chain models with exact search, trained online or in batch."""

    name = "python-crfsuite"
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

    def missing(self, config: str) -> str:
        """Return a message if the package is not installed; empty if it is."""
        return "" if find_spec("pycrfsuite") else "python-crfsuite is not installed"

    def prepare(self) -> float:
        """Import the package."""
        started = time.perf_counter()
        import pycrfsuite  # noqa: F401

        return time.perf_counter() - started

    def learn(self, path: Path, settings: Settings, model: Path) -> Learned:
        """Append sentence by sentence, so that Python never holds the features of all sentences."""
        import pycrfsuite

        options = dict(settings)
        features = forms()[options.pop("form")]
        started = time.perf_counter()
        sentences = plain_read(path)
        read = time.perf_counter()
        trainer = pycrfsuite.Trainer(algorithm=options.pop("algorithm"), verbose=False)
        trainer.set_params(options)
        for sentence in sentences:
            trainer.append(features(sentence), [token[2] for token in sentence])
        appended = time.perf_counter()
        trainer.train(str(model))
        return Learned(read - started, appended - read, time.perf_counter() - appended)

    def decode(self, model: Path, settings: Settings, sentences: list[Sentence]) -> Decoded:
        """Tag sentence by sentence, with features in the same form as in training."""
        import pycrfsuite

        features = forms()[settings["form"]]
        started = time.perf_counter()
        tagger = pycrfsuite.Tagger()
        tagger.open(str(model))
        tagger.tag(features(sentences[0]))
        loaded = time.perf_counter()
        labels = [tagger.tag(features(sentence)) for sentence in sentences]
        return Decoded(labels, loaded - started, time.perf_counter() - loaded)


def forms() -> dict[str, Callable[[Sentence], Any]]:
    """Return the forms in which python-crfsuite accepts features; ``tune`` takes the fastest."""
    import pycrfsuite

    return {
        "lists": template.as_lists,
        "dicts": template.as_dicts,
        "ItemSequence of lists": lambda s: pycrfsuite.ItemSequence(template.as_lists(s)),
        "ItemSequence of dicts": lambda s: pycrfsuite.ItemSequence(template.as_dicts(s)),
    }


def time_forms(sentences: list[Sentence]) -> dict[str, float]:
    """Return the seconds to pass the sentences in each form, the best of three runs."""
    import pycrfsuite

    def seconds(features: Callable[[Sentence], Any]) -> float:
        started = time.perf_counter()
        trainer = pycrfsuite.Trainer(algorithm="ap", verbose=False)
        for sentence in sentences:
            trainer.append(features(sentence), [token[2] for token in sentence])
        return time.perf_counter() - started

    return {name: min(seconds(features) for _ in range(3)) for name, features in forms().items()}


class VowpalWabbit:
    """Vowpal Wabbit's ``--search_task sequence``, run in this process over a text and cache file.

    Conjunctions are written as features, since Vowpal Wabbit's own ``--interactions`` were slower
    in training and in decoding.
    """

    name = "vowpalwabbit"
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

    def missing(self, config: str) -> str:
        """Return a message if the package is not installed; empty if it is."""
        return "" if find_spec("vowpalwabbit") else "vowpalwabbit is not installed"

    def prepare(self) -> float:
        """Import the package."""
        started = time.perf_counter()
        import vowpalwabbit  # noqa: F401

        return time.perf_counter() - started

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
        load_s = min(_seconds(lambda: run_vw(*loading)) for _ in range(5))
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


def _seconds(action: Callable[[], None]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def run_vw(*arguments: str) -> None:
    """Run Vowpal Wabbit once with command-line arguments."""
    import vowpalwabbit

    vowpalwabbit.Workspace(arg_list=[*arguments, "--quiet"]).finish()
