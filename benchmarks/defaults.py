"""The study behind the defaults: learners on several corpora, with equal attributes for all.

    python -m benchmarks defaults

Each corpus has a tenth of its training part held out, on which settings are compared. The default
of ``Tagger`` and the peers are also scored on the test part. A result is saved as soon as it is
there, and the same command goes on where it was.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import study_data
from benchmarks.peers import run_vw
from benchmarks.study_data import Data, Part
from laso.experiments.measure import table

RESULTS = Path(__file__).parents[1] / "experiments" / "results"
SEEDS = 3
BASE = "margin 20"  # the variant that the others differ from in one point
SIZES = {  # the parts of a corpus to learn from, as divisors
    "conll2000 chunks": (16, 4, 1),
    "wnut17 entities": (1,),
    "litbank entities": (1,),
    "ewt upos": (16, 4, 1),
    "ewt xpos": (4,),
}
LARGE = {("conll2000 chunks", 1), ("ewt upos", 1)}  # where only the default and the peers are run

Row = dict[str, Any]
Labels = list[list[str]]
Run = Callable[[Data, int], tuple[list[Labels], float]]
"""A system: the labels of the held-out and of the test part, and the seconds of training."""


class Config(NamedTuple):
    """A system with its settings."""

    system: str
    name: str
    run: Run
    default: bool = False
    seeds: int = 1


# --------------------------------------------------------------------------- laso


def tagger(**settings: Any) -> Run:
    """Return a run of ``Tagger`` with these settings."""

    def run(data: Data, seed: int) -> tuple[list[Labels], float]:
        from laso import Tagger

        Tagger(**{**settings, "epochs": 1}).fit(data.train.X[:2], data.train.y[:2])  # compiles
        model = Tagger(**settings, seed=seed)
        began = time.process_time()
        model.fit(data.train.X, data.train.y)
        seconds = time.process_time() - began
        return [model.predict(part.X) for part in (data.held_out, data.test)], seconds

    return run


def variants() -> Iterator[Config]:
    """Yield one variant for each question about a learner."""
    import laso
    from laso import alma, passive_aggressive, perceptron

    base = perceptron(weighting=laso.worst, margin=20.0)

    def config(name: str, **settings: Any) -> Config:
        return Config("laso", name, tagger(**{"update": base, "epochs": 30, **settings}))

    yield Config("laso", "default", tagger(), default=True, seeds=SEEDS)
    yield config(BASE)._replace(seeds=SEEDS)
    yield config("weighting uniform", update=perceptron(margin=20.0))
    yield config(
        "weighting loss-proportional",
        update=perceptron(weighting=laso.loss_proportional, margin=20.0),
    )
    for margin in (0.0, 1.0, 5.0, 50.0):
        yield config(f"margin {margin:g}", update=perceptron(weighting=laso.worst, margin=margin))
    yield config(
        "steps as long as the loss",
        update=perceptron(weighting=laso.worst, margin=20.0, by_loss=True),
    )
    yield config("passive-aggressive", update=passive_aggressive())
    yield config("passive-aggressive, C 0.01", update=passive_aggressive(C=0.01))
    yield config("ALMA", update=alma())
    for strategy in (laso.early, laso.max_violation, laso.standard, laso.delayed):
        yield config(f"strategy {strategy!r}", strategy=strategy)
    for beam in (1, 10):
        yield config(f"beam {beam}", queue=beam)
    yield config("one label of history", features=("bias", "label[-1]"))
    for epochs in (10, 60):
        yield config(f"{epochs} epochs", epochs=epochs)
    yield config("epochs by held-out tenth", held_out=0.1)
    yield config("no averaging", average=False)
    exactly = {"queue": laso.exact(), "features": ("bias", "label[-1]"), "epochs": 20}
    yield config("exact, AdaGrad", **exactly, update=laso.adagrad(), strategy=laso.standard)


# --------------------------------------------------------------------------- peers


def crfsuite(algorithm: str, **settings: Any) -> Run:
    """Return a run of python-crfsuite."""

    def run(data: Data, seed: int) -> tuple[list[Labels], float]:
        import pycrfsuite

        trainer = pycrfsuite.Trainer(algorithm=algorithm, verbose=False)
        trainer.set_params(settings)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model"))
            began = time.process_time()
            for x, y in zip(data.train.X, data.train.y, strict=True):
                trainer.append(x, y)
            trainer.train(path)
            seconds = time.process_time() - began
            model = pycrfsuite.Tagger()
            model.open(path)
            return [[model.tag(x) for x in p.X] for p in (data.held_out, data.test)], seconds

    return run


def vowpal_wabbit(data: Data, seed: int) -> tuple[list[Labels], float]:
    """Run Vowpal Wabbit's search with the settings of the benchmarks."""
    names = sorted({label for labels in data.train.y for label in labels})
    numbers = {label: str(n) for n, label in enumerate(names, start=1)}
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder, "train.txt"), str(Path(folder, "model"))
        _write(text, data.train, numbers)
        began = time.process_time()
        run_vw(
            *("--search", str(len(names)), "--search_task", "sequence"),
            *("--search_history_length", "1", "--search_rollout", "none", "--passes", "4"),
            *("--bit_precision", "24", "--random_seed", str(seed), "--holdout_off"),
            *("--data", str(text), "--cache_file", f"{text}.cache", "--kill_cache"),
            *("--final_regressor", model, "--predict_only_model"),
        )
        seconds = time.process_time() - began
        found = []
        for part in (data.held_out, data.test):
            predictions = Path(folder, "predictions")
            _write(text, part, {})
            run_vw(
                *("--testonly", "--initial_regressor", model, "--data", str(text)),
                *("--predictions", str(predictions)),
            )
            lines = [line for line in predictions.read_text().split("\n") if line]
            found.append([[names[int(n) - 1] for n in line.split()] for line in lines])
    return found, seconds


def _write(path: Path, part: Part, numbers: dict[str, str]) -> None:
    """Write sentences as Vowpal Wabbit reads them; without numbers there are no labels."""
    clean = str.maketrans({" ": "_", "|": "!", ":": ";", "\t": "_"})
    with path.open("w", encoding="utf-8") as file:
        for x, y in zip(part.X, part.y, strict=True):
            for token, label in zip(x, y, strict=True):
                written = " ".join(attribute.translate(clean) for attribute in token)
                file.write(f"{numbers.get(label, '')} | {written}\n")
            file.write("\n")


def peers() -> Iterator[Config]:
    """Yield the peers; L-BFGS with three priors, of which the best on held-out data counts."""
    for algorithm in ("ap", "pa", "arow"):
        yield Config("python-crfsuite", algorithm, crfsuite(algorithm))
    for c1, c2 in ((0.0, 1.0), (0.1, 0.1), (0.0, 0.1)):
        run = crfsuite("lbfgs", c1=c1, c2=c2, max_iterations=200)
        yield Config("python-crfsuite", f"lbfgs c1={c1:g} c2={c2:g}", run)
    yield Config("vowpalwabbit", "sequence", vowpal_wabbit)


# --------------------------------------------------------------------------- running


def jobs(only: Iterable[str] = ()) -> Iterator[tuple[str, int, Config, int]]:
    """Yield corpus, divisor, configuration and seed of each job, small data first.

    The default and the peers come first, then the variants of the default.
    """
    default, *others = variants()
    sizes = [(name, divisor) for name, divisors in SIZES.items() for divisor in divisors]
    sizes = sorted(sizes, key=lambda size: -size[1])
    for configs, left_out in (([default, *peers()], set()), (others, LARGE)):
        for name, divisor in sizes:
            for config in configs:
                for seed in range(config.seeds):
                    if (name, divisor) not in left_out and (not only or name in only):
                        yield name, divisor, config, seed


def identity(name: str, divisor: int, config: Config, seed: int) -> Row:
    """Return the fields that identify a result."""
    size = f"1/{divisor}" if divisor > 1 else "all"
    return {
        "corpus": name,
        "size": size,
        "system": config.system,
        "config": config.name,
        "default": config.default,
        "seed": seed,
    }


def run(say: Callable[[str], object], *, only: Iterable[str] = (), folder: Path = RESULTS) -> None:
    """Run what is missing; the result of a finished job is never computed again."""
    from laso.tasks.tagging.task import TaggingTask

    path = folder / "defaults.json"
    loaded: tuple[tuple[str, int], Data] | None = None
    for name, divisor, config, seed in jobs(only):
        row = identity(name, divisor, config, seed)
        results = load(path)
        if any(row.items() <= result.items() for result in results):
            continue
        if loaded is None or loaded[0] != (name, divisor):
            loaded = ((name, divisor), study_data.load(name, divisor))
        data = loaded[1]
        (held_out, test), seconds = config.run(data, seed)
        row["heldout"] = round(100 * TaggingTask().score(data.held_out.y, held_out), 2)
        if config.default or config.system != "laso":
            row["score"] = round(100 * TaggingTask().score(data.test.y, test), 2)
        row["train_s"] = round(seconds, 1)
        path.write_text(_listed([*load(path), row]), encoding="utf-8")
        say(f"{name} {row['size']}, {config.system} {config.name}, seed {seed}: {row['heldout']}")


def load(path: Path) -> list[Row]:
    """Return the results so far."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def _listed(rows: list[Row]) -> str:
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    return f"[\n{lines}\n]\n"


# --------------------------------------------------------------------------- report


def report(folder: Path = RESULTS) -> Path:
    """Write defaults.md from the results; return its path."""
    rows = load(folder / "defaults.json")
    corpora = list(dict.fromkeys((row["corpus"], row["size"]) for row in rows))
    corpora = [key for key in sorted(corpora) if _is_complete(rows, key)]
    text = INTRODUCTION.format(
        finals=_finals(rows, corpora), variants=_variants(rows, corpora), seeds=SEEDS
    )
    path = folder / "defaults.md"
    path.write_text(text, encoding="utf-8")
    return path


def _is_complete(rows: list[Row], key: tuple[str, str]) -> bool:
    """Tell whether the default and all peers have been measured on a corpus."""
    found = {row["config"] for row in rows if (row["corpus"], row["size"]) == key}
    return {"default", *(config.name for config in peers())} <= found


def _finals(rows: list[Row], corpora: list[tuple[str, str]]) -> str:
    """Return a table of test scores: the default and each peer at its best on held-out data."""
    lines = []
    for corpus, size in corpora:
        here = [row for row in rows if (row["corpus"], row["size"]) == (corpus, size)]
        cells = [corpus, size]
        for chosen in _systems(here):
            scores = [row["score"] for row in chosen]
            spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
            seconds = statistics.mean(row["train_s"] for row in chosen) if chosen else 0.0
            mean = statistics.mean(scores) if scores else None
            cells.append("" if mean is None else f"{mean:.2f}{spread} ({seconds:.0f} s)")
        lines.append(cells)
    head = ["corpus", "size", "laso", "crfsuite online", "crfsuite L-BFGS", "Vowpal Wabbit"]
    return table(head, lines, left=2)


def _systems(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield the default's rows, then the best of each kind of peer on held-out data."""
    yield [row for row in rows if row["default"]]
    crf = [row for row in rows if row["system"] == "python-crfsuite"]
    batch = [row for row in crf if row["config"].startswith("lbfgs")]
    online = [row for row in crf if row not in batch]
    others = [row for row in rows if row["system"] == "vowpalwabbit"]
    for some in (online, batch, others):
        yield sorted(some, key=lambda row: -float(row["heldout"]))[:1]


def _variants(rows: list[Row], corpora: list[tuple[str, str]]) -> str:
    """Return a table of held-out scores: a base, and what each change of it brings."""
    ours = [row for row in rows if row["system"] == "laso"]
    names = [name for name in dict.fromkeys(row["config"] for row in ours) if name != BASE]
    shown = [key for key in corpora if _of(ours, key, BASE)]
    base = {key: statistics.mean(_of(ours, key, BASE)) for key in shown}
    lines = [[BASE, *(f"{base[key]:.2f}" for key in shown), ""]]
    for name in names:
        gains = [
            statistics.mean(found) - base[key] if (found := _of(ours, key, name)) else None
            for key in shown
        ]
        known = [gain for gain in gains if gain is not None]
        cells = ["" if gain is None else f"{gain:+.2f}" for gain in gains]
        lines.append([name, *cells, f"{statistics.mean(known):+.2f}"])
    return table(["", *(f"{corpus} {size}" for corpus, size in shown), "mean"], lines, left=1)


def _of(rows: list[Row], key: tuple[str, str], name: str) -> list[float]:
    return [
        row["heldout"]
        for row in rows
        if (row["corpus"], row["size"], row["config"]) == (*key, name)
    ]


INTRODUCTION = """\
# Defaults

`python -m benchmarks defaults` made this page. All systems have the same attributes of each token:
windows of words, affixes, shapes, and windows of the other columns. Scores are chunk F, or token
accuracy for tags. A tenth of the training part is held out to choose on.

## Test scores

The default of `Tagger` is the mean of {seeds} seeds with its standard deviation. Of each kind of
peer the row has the settings with the best held-out score: python-crfsuite's ap, pa and arow, its
L-BFGS with three priors. Training times are seconds of CPU, with the conversion of attributes.

{finals}

## What each change brings

Held-out scores. The first row is `Tagger(update=perceptron(weighting=worst, margin=20.0))` with 30
epochs; the others say by how much one change of it is better or worse. The default differs from it
in its margin, which is the number of features of a token.

{variants}
"""
