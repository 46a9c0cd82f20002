"""The study behind the defaults: learners on several corpora, with equal attributes for all.

    python -m studies defaults

Each corpus has a tenth of its training part held out, on which settings are compared. The default
of ``Tagger`` and the peers are also scored on the test part. A result is saved as soon as it is
there, and the same command goes on where it was.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from studies.defaults import data as study_data
from studies.defaults.data import Data, Part
from studies.measure import ROOT, Job, Row, Say, load, run_missing
from studies.peers.systems import crfsuite_tag, crfsuite_trainer, run_vw

RESULTS = ROOT / "experiments" / "results"
SEEDS = 3
DEFAULT = "default"  # the configuration of Tagger without parameters
LBFGS = "lbfgs"  # how the names of its configurations begin
BASE = "margin 20"  # the variant that the others differ from in one point
SIZES = {  # the parts of a corpus to learn from, as divisors
    "conll2000 chunks": (16, 4, 1),
    "wnut17 entities": (1,),
    "litbank entities": (1,),
    "ewt upos": (16, 4, 1),
    "ewt xpos": (4,),
}
LARGE = {("conll2000 chunks", 1), ("ewt upos", 1)}  # where only the default and the peers are run
SMALLER = "1/4"  # the part of a large corpus on which the prior of L-BFGS is chosen

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


def tagger(
    prepare: Callable[[Part], Part] | None = None,
    finish: Callable[[Any], Any] | None = None,
    after_epoch: Callable[[Any, Any], None] | None = None,
    **settings: Any,
) -> Run:
    """Return a run of ``Tagger`` with these settings.

    ``prepare`` changes the data to learn from, ``after_epoch`` the training, ``finish`` the model.
    """

    def run(data: Data, seed: int) -> tuple[list[Labels], float]:
        from laso import Tagger

        Tagger(**{**settings, "epochs": 1}).fit(data.train.X[:2], data.train.y[:2])  # compiles
        model: Any = Tagger(**settings, seed=seed)
        began = time.process_time()
        train = data.train if prepare is None else prepare(data.train)
        model.fit(train.X, train.y, after_epoch=after_epoch)
        model = model if finish is None else finish(model)
        seconds = time.process_time() - began
        return [model.predict(part.X) for part in (data.held_out, data.test)], seconds

    return run


def truncated(model: Any, part: float = 0.5) -> Any:
    """Return a copy of a model without a part of its weights, the smallest."""
    import numpy as np

    table = model.weights_
    sizes = np.abs(table.v)
    bound = np.quantile(sizes[sizes > 0], part)
    return model.with_weights(table._replace(v=np.where(sizes > bound, table.v, 0)))


def averaging_from(first: int) -> Callable[[Any, Any], None]:
    """Return what makes training average the weights of the epochs after the first ones only."""
    from laso.engine import layout as at

    def after_epoch(training: Any, weights: Any) -> None:
        if training.epoch == first:  # subtracts the sum of the weights so far
            table = training.table
            table.u[:] = table.reals[at.SCALES] * table.v
            table.ints[at.TICKS] = 0

    return after_epoch


def variants() -> Iterator[Config]:
    """Yield one variant for each question about a learner."""
    import laso
    from laso import alma, passive_aggressive, perceptron

    base = perceptron(weighting=laso.worst, margin=20.0)

    def config(name: str, **settings: Any) -> Config:
        common = {"update": base, "epochs": 30, "dropout": 0.0}
        return Config("laso", name, tagger(**{**common, **settings}))

    yield Config("laso", DEFAULT, tagger(), default=True, seeds=SEEDS)
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
    for gamma in (1.0, 10.0, 100.0):
        yield config(f"AROW, gamma {gamma:g}", update=laso.arow(gamma=gamma))
    for strategy in (laso.early, laso.max_violation, laso.standard, laso.delayed):
        yield config(f"strategy {strategy!r}", strategy=strategy)._replace(seeds=SEEDS)
    for beam in (1, 10):
        yield config(f"beam {beam}", queue=beam)
    yield config("one label of history", features=("bias", "label[-1]"))
    for epochs in (10, 60):
        yield config(f"{epochs} epochs", epochs=epochs)
    yield config("epochs by held-out tenth", held_out=0.1)
    yield config("no averaging", average=False)
    yield config("averaging from the eleventh epoch on", after_epoch=averaging_from(10))
    yield config("attributes of two tokens or more", prepare=partial(study_data.frequent, least=2))
    for rate in (0.1, 0.2, 0.3):
        yield config(f"dropout {rate:g}", dropout=rate)
    yield config("without the smaller half of the weights", finish=truncated)
    exactly = {"queue": laso.exact(), "features": ("bias", "label[-1]"), "epochs": 20}
    yield config("exact, AdaGrad", **exactly, update=laso.adagrad(), strategy=laso.standard)


# --------------------------------------------------------------------------- peers


def crfsuite(algorithm: str, **settings: Any) -> Run:
    """Return a run of python-crfsuite."""

    def run(data: Data, seed: int) -> tuple[list[Labels], float]:
        import pycrfsuite  # noqa: F401 (loaded before the measurement)

        X, y = ordered(data.train, seed)
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "model"))
            began = time.process_time()
            crfsuite_trainer(algorithm, X, y, **settings).train(path)
            seconds = time.process_time() - began
            tag = crfsuite_tag(path)
            return [[tag(x) for x in p.X] for p in (data.held_out, data.test)], seconds

    return run


def vowpal_wabbit(data: Data, seed: int) -> tuple[list[Labels], float]:
    """Run Vowpal Wabbit's search with the settings of the benchmarks."""
    names = sorted({label for labels in data.train.y for label in labels})
    numbers = {label: str(n) for n, label in enumerate(names, start=1)}
    with tempfile.TemporaryDirectory() as folder:
        text, model = Path(folder, "train.txt"), str(Path(folder, "model"))
        _write(text, ordered(data.train, seed), numbers)
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


def ordered(part: Part, seed: int) -> Part:
    """Return the sentences in the order of a seed; 0 leaves them as they are."""
    if not seed:
        return part
    order = list(range(len(part.X)))
    random.Random(seed).shuffle(order)
    return Part([part.X[i] for i in order], [part.y[i] for i in order])


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
    """Yield the peers, online learners with the training sentences in the order of each seed.

    The best of the L-BFGS with three priors on held-out data counts.
    """
    for algorithm, seeds in (("ap", SEEDS), ("pa", SEEDS), ("arow", 1)):
        yield Config("python-crfsuite", algorithm, crfsuite(algorithm), seeds=seeds)
    for c1, c2 in ((0.0, 1.0), (0.1, 0.1), (0.0, 0.1)):
        run = crfsuite("lbfgs", c1=c1, c2=c2, max_iterations=200)
        yield Config("python-crfsuite", f"{LBFGS} c1={c1:g} c2={c2:g}", run)
    yield Config("vowpalwabbit", "sequence", vowpal_wabbit, seeds=SEEDS)


# --------------------------------------------------------------------------- running


def jobs(
    only: Iterable[str] = (), found: Callable[[], list[Row]] = list
) -> Iterator[tuple[str, int, Config, int]]:
    """Yield corpus, divisor, configuration and seed of each job, small data first.

    The default and the peers come first, then the variants of the default. On large corpora, of
    the priors of L-BFGS only the one that is best on a quarter is used; ``found`` returns the
    results so far.
    """
    default, *others = variants()
    sizes = [(name, divisor) for name, divisors in SIZES.items() for divisor in divisors]
    sizes = sorted(sizes, key=lambda size: -size[1])
    for configs, left_out in (([default, *peers()], set()), (others, LARGE)):
        for name, divisor in sizes:
            if (name, divisor) in left_out or (only and name not in only):
                continue
            for config in configs:
                if (name, divisor) in LARGE and is_passed_over(config, name, found()):
                    continue
                for seed in range(config.seeds):
                    yield name, divisor, config, seed


def is_passed_over(config: Config, corpus: str, results: Iterable[Row]) -> bool:
    """Tell whether another prior of L-BFGS was better on held-out data of the smaller part."""
    priors = {
        row["config"]: row["heldout"]
        for row in results
        if (row["corpus"], row["size"]) == (corpus, SMALLER) and row["config"].startswith(LBFGS)
    }
    return config.name in priors and priors[config.name] < max(priors.values())


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


def run(say: Say, *, only: Iterable[str] = (), folder: Path = RESULTS) -> None:
    """Run what is missing; the result of a finished job is never computed again."""
    from laso.tasks.tagging.task import TaggingTask

    path = folder / "defaults.json"
    score, load_data = TaggingTask().score, lru_cache(1)(study_data.load)

    def measured(name: str, divisor: int, config: Config, seed: int) -> Row:
        data = load_data(name, divisor)
        (held_out, test), seconds = config.run(data, seed)
        row: Row = {"heldout": round(100 * score(data.held_out.y, held_out), 2)}
        if config.default or config.system != "laso":
            row["score"] = round(100 * score(data.test.y, test), 2)
        return {**row, "train_s": round(seconds, 1)}

    def all_jobs() -> Iterator[Job]:
        for job in jobs(only, lambda: load(path) or []):
            yield identity(*job), partial(measured, *job)

    tell = "{corpus} {size}, {system} {config}, seed {seed}: {heldout}"
    run_missing(path, all_jobs(), lambda row: say(tell.format(**row)), by_line=True)
