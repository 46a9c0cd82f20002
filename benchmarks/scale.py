"""Learning and labelling with more workers: scale.json and scale.md.

Each row has what was measured, joblib's backend, the numbers of shards, workers and epochs, seconds
of wall-clock time, the F or accuracy, and the bytes that travel in an epoch.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks import corpus
from laso import Tagger
from laso.data import find_corpus, read
from laso.experiments.measure import Row, load, machine, save
from laso.training import Progress

SEEDS = (0, 1, 2)
EPOCHS = 30
SIMULATED = (2, 4, 8, 16, 32, 64)
TIMES = 10  # copies of CoNLL-2000, to compare backends with
BACKENDS = ("threading", "loky", "dask", "ray")

Say = Callable[[str], None]
Data = tuple[list[Any], list[Any]]


def chunks(part: str) -> Data:
    """Return CoNLL-2000: words and tags, with chunks as labels."""
    sentences = corpus.load("conll2000")[part == "test"]
    return [[t[:-1] for t in s] for s in sentences], [[t[-1] for t in s] for s in sentences]


def tags(part: str) -> Data:
    """Return UD English EWT: words, with universal tags as labels."""
    path = find_corpus("ud_ewt") / f"en_ewt-ud-{part}.conllu"
    sentences = [block.tokens for block in read(path, format="conllu") if block.tokens]
    return [[t[1] for t in s] for s in sentences], [[t[3] for t in s] for s in sentences]


CORPORA = {"conll2000 chunks": chunks, "ewt upos": tags}


def fitted(data: Data, **given: Any) -> tuple[Tagger, list[float]]:
    """Return a fitted tagger, and the seconds of each epoch."""
    ends: list[float] = []

    def note(progress: Progress) -> None:
        if progress.example == progress.examples:
            ends.append(time.perf_counter())

    model = Tagger(**given)
    start = time.perf_counter()
    model.fit(*data, progress=note)
    first = ends[0] - (start + model.seconds_["read"] + model.seconds_["features"])
    return model, [first, *(b - a for a, b in pairwise(ends))]


def row(what: str, backend: str, workers: int, model: Tagger, **found: Any) -> Row:
    """Return a row of the results."""
    traffic = getattr(model, "traffic_", [(0, 0)])
    return {
        "what": what,
        "backend": backend,
        "shards": model.shards or 1,
        "workers": workers,
        "epochs": model.n_iter_,
        "seed": model.seed,
        "bytes": sum(traffic[-1]) if backend != "threading" else 0,
        **found,
    }


# --------------------------------------------------------------------------- what is measured


def quality(name: str) -> Iterator[Row]:
    """One shard, two on two threads, and sixteen: seconds of an epoch, and the test score."""
    train, test = CORPORA[name]("train"), CORPORA[name]("test")
    fitted(train, epochs=1)  # compiles
    for seed in SEEDS:
        for shards, workers, epochs in ((1, 1, EPOCHS), (2, 2, EPOCHS), (16, 2, EPOCHS * 13 // 10)):
            model, epoch_s = fitted(
                train, epochs=epochs, seed=seed, shards=shards, n_jobs=workers, threads=1
            )
            yield row(
                f"learning, {name}",
                "threading",
                workers,
                model,
                train_s=sum(epoch_s),
                epoch_s=statistics.median(epoch_s),
                f=100 * model.score(*test),
            )


def simulated(name: str) -> Iterator[Row]:
    """Many shards, one after the other: the score on a held-out tenth after each epoch."""
    train = CORPORA[name]("train")
    for shards in (1, *SIMULATED):
        model, epoch_s = fitted(train, epochs=EPOCHS * 13 // 10, shards=shards, held_out=0.1)
        yield row(
            f"simulation, {name}",
            "threading",
            1,
            model,
            train_s=sum(epoch_s),
            f=100 * max(model.scores_),
            scores=[round(100 * score, 3) for score in model.scores_],
            traffic=sum(model.traffic_[-1]) if shards > 1 else 0,
        )


def backends() -> Iterator[Row]:
    """Two shards on two workers of each backend, on a large corpus."""
    X, y = chunks("train")
    large = X * TIMES, y * TIMES
    for backend in BACKENDS:
        with cluster(backend):
            fitted((X[:100], y[:100]), epochs=1, shards=2, n_jobs=2)  # starts the workers
            model, epoch_s = fitted(large, epochs=4, shards=2, n_jobs=2)
        seconds = statistics.median(epoch_s[1:])
        yield row(
            f"backends, {TIMES} times conll2000", backend, 2, model, train_s=sum(epoch_s),
            epoch_s=seconds, f=None,
        )  # fmt: skip


def labelling() -> Iterator[Row]:
    """Label a large corpus with one and with two workers."""
    model, _ = fitted(chunks("train"), epochs=3, threads=1)
    many = chunks("test")[0] * TIMES
    model.predict(many[:100])
    for backend, workers in (("threading", 1), ("threading", 2), ("loky", 1), ("loky", 2)):
        with cluster(backend, workers):
            model.threads = workers if backend == "threading" else 1
            model.n_jobs = workers
            list(model.predict_stream(many[:4000]))
            start = time.perf_counter()
            found = (
                model.predict(many) if backend == "threading" else list(model.predict_stream(many))
            )
            seconds = time.perf_counter() - start
        tokens = sum(map(len, found))
        yield row("labelling", backend, workers, model, train_s=seconds, f=None,
                  tokens_per_s=tokens / seconds)  # fmt: skip


@contextmanager
def cluster(backend: str, workers: int = 2) -> Iterator[None]:
    """Give joblib a backend; clusters are local ones."""
    import joblib

    if backend == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None
            ) as made,
            Client(made),
            joblib.parallel_config(backend),
        ):
            yield
        return
    if backend == "ray":
        import ray
        from ray.util.joblib import register_ray

        register_ray()
        ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False)
    with joblib.parallel_config(backend, n_jobs=workers):
        yield
    if backend == "ray":
        ray.shutdown()


# --------------------------------------------------------------------------- results


def measures() -> dict[str, Callable[[], Iterator[Row]]]:
    """Return all measurements by name."""
    return {
        **{f"learning, {name}": partial(quality, name) for name in CORPORA},
        **{f"simulation, {name}": partial(simulated, name) for name in CORPORA},
        f"backends, {TIMES} times conll2000": backends,
        "labelling": labelling,
    }


def run(results: Path, say: Say, *, again: bool = False) -> Path:
    """Measure what is missing, and write the report."""
    path = results / "scale.json"
    rows: list[Row] = load(path) or []
    for what, measure in measures().items():
        if not again and any(each["what"] == what for each in rows):
            continue
        found = []
        for each in measure():
            found.append(each | {"machine": machine()})
            score = "" if each["f"] is None else f", {each['f']:.2f}"
            say(
                f"{what}: {each['backend']}, {each['shards']} shards, {each['workers']} workers, "
                f"{each['train_s']:.1f} s{score}"
            )
        rows = [each for each in rows if each["what"] != what] + found
        save(path, rows)
    return report(results, rows)


def report(results: Path, rows: list[Row]) -> Path:
    """Write the report."""
    text = ["# More workers", "", "`python -m benchmarks scale` made this page.", ""]
    for name in CORPORA:
        some = [each for each in rows if each["what"] == f"learning, {name}"]
        if some:
            text += [f"## Learning, {name}", "", *_learning(some), ""]
        some = [each for each in rows if each["what"] == f"simulation, {name}"]
        if some:
            text += [f"## Many shards, {name}", "", *_simulation(some), ""]
    for what, head in (("backends", "Backends"), ("labelling", "Labelling")):
        some = [each for each in rows if each["what"].startswith(what)]
        if some:
            text += [f"## {head}", "", *_times(some), ""]
    path = results / "scale.md"
    path.write_text("\n".join(text), encoding="utf-8")
    return path


def _learning(rows: list[Row]) -> list[str]:
    lines = [
        "Threads of one process. The score is the mean over seeds, ± the standard deviation.",
        "",
        "| shards | workers | epochs | seconds an epoch | speed-up | score |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    base = statistics.median(each["epoch_s"] for each in rows if each["shards"] == 1)
    for shards in sorted({each["shards"] for each in rows}):
        some = [each for each in rows if each["shards"] == shards]
        seconds = statistics.median(each["epoch_s"] for each in some)
        scores = [each["f"] for each in some]
        lines.append(
            f"| {shards} | {some[0]['workers']} | {some[0]['epochs']} | {seconds:.2f} "
            f"| {base / seconds:.2f} | {statistics.mean(scores):.2f} ± "
            f"{statistics.stdev(scores):.2f} |"
        )
    return lines


def _simulation(rows: list[Row]) -> list[str]:
    epochs = (5, 10, 20, EPOCHS, EPOCHS * 13 // 10)
    lines = [
        "The score on a held-out tenth of the training data after some epochs, one seed; shards",
        "one after the other. The last column has the bytes that would travel in the last",
        "epoch, if shards were learned by other processes.",
        "",
        f"| shards | {' | '.join(f'after {n}' for n in epochs)} | MB |",
        f"| ---: | {' | '.join('---:' for _ in epochs)} | ---: |",
    ]
    for each in rows:
        scores = each["scores"]
        shown = " | ".join(f"{scores[min(n, len(scores)) - 1]:.2f}" for n in epochs)
        lines.append(f"| {each['shards']} | {shown} | {each['traffic'] / 1e6:.1f} |")
    return lines


def _times(rows: list[Row]) -> list[str]:
    lines = ["| backend | shards | workers | seconds | against the first |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    times = [float(each.get("epoch_s") or each["train_s"]) for each in rows]
    for each, seconds in zip(rows, times, strict=True):
        lines.append(
            f"| {each['backend']} | {each['shards']} | {each['workers']} | {seconds:.2f} "
            f"| {seconds / times[0]:.2f} |"
        )
    return lines
