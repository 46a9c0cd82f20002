"""Learning and labelling with more workers: scale.json, scale.md and scale.svg.

Each row has what was measured, joblib's backend, the numbers of shards, workers and epochs, seconds
of wall-clock time, the F or accuracy, and the bytes that travel in an epoch. The part ``quality``
measures scores, which do not depend on the machine; the part ``time`` needs a quiet one.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from laso import Tagger
from laso.cli.settings import Settings
from laso.cli.tag import Extras, tag
from laso.engine import layout as at
from laso.engine.parallel.workers import Workers
from laso.training import Progress
from studies.defaults import data as study_data
from studies.measure import Row, Say, load, machine, run_missing
from studies.speed import scale_report

SEEDS = (0, 1, 2)
EPOCHS = 10  # of one shard, as by default; shards have MORE times as many
MORE = 1.3
SEEDED = (1, 2, 16)  # shards that are learned with all seeds
SIMULATED = (1, 2, 4, 8, 16, 32, 64)  # of the first corpus
RUNS = 3  # of each measurement of time
TIMES = 10  # copies of CoNLL-2000, to compare backends with
FEW_EPOCHS = 6  # on these copies
BACKENDS = ("threading", "loky", "dask", "ray")

Data = tuple[list[Any], list[Any]]


class Case(NamedTuple):
    """What one row measures; its name and these numbers tell it from all others."""

    what: str
    backend: str = "threading"
    shards: int = 1
    workers: int = 1
    epochs: int = EPOCHS
    seed: int = 0
    mixing: str = "changed"
    number: int = 0  # of the run


def examples(name: str, part: str) -> Data:
    """Return inputs and labels of a corpus of the study of defaults."""
    return study_data.as_columns(list(study_data.CORPORA[name](part)))


CORPORA = {name: partial(examples, name) for name in ("conll2000 chunks", "ewt upos")}
chunks = CORPORA["conll2000 chunks"]


def fitted(data: Data, case: Case, dev: Data | None = None) -> tuple[Tagger, list[float]]:
    """Return a fitted tagger, and the seconds of each epoch."""
    ends: list[float] = []

    def note(progress: Progress) -> None:
        if progress.example == progress.examples and progress.score is None:
            ends.append(time.perf_counter())

    model = Tagger(
        epochs=case.epochs,
        shards=case.shards,
        seed=case.seed,
        mixing=case.mixing,
        n_jobs=case.workers,
        threads=1,
    )
    start = time.perf_counter()
    model.fit(*data, dev=dev, progress=note)
    first = ends[0] - (start + model.seconds_["read"] + model.seconds_["features"])
    return model, [first, *(b - a for a, b in pairwise(ends))]


def more_epochs(shards: int) -> int:
    """Return the number of epochs of so many shards."""
    return EPOCHS if shards == 1 else int(EPOCHS * MORE)


# --------------------------------------------------------------------------- what is measured


def scored(case: Case) -> Row:
    """Return the test score after each epoch; nothing is chosen by it."""
    read_part = CORPORA[case.what.partition(", ")[2]]
    model, _ = fitted(read_part("train"), case, dev=read_part("test"))
    scores = [round(100 * score, 3) for score in model.scores_]
    traffic = getattr(model, "traffic_", [(0, 0)])
    return {"train_s": None, "f": scores[-1], "scores": scores, "bytes": sum(traffic[-1])}


def timed(case: Case) -> Row:
    """Return the seconds of an epoch in threads."""
    train = CORPORA[case.what.partition(", ")[2]]("train")
    fitted((train[0][:100], train[1][:100]), case._replace(epochs=1))  # loads machine code
    model, epoch_s = fitted(train, case)
    return {
        "train_s": sum(epoch_s),
        "epoch_s": statistics.median(epoch_s),
        "features_s": model.seconds_["features"],
        "tokens": sum(map(len, train[0])),
        "rows": int(model.weights_.ints[at.ROWS]),
        "weight_bytes": model.size_.bytes,
        "token_bytes": token_bytes(model, train),
        "f": None,
        "bytes": 0,
    }


def token_bytes(model: Tagger, data: Data) -> float:
    """Return the bytes that a token has in files of encoded examples."""
    some = data[0][:1000], data[1][:1000]
    encoded = model.encode_gold(*model.task_.read(*some))
    return sum(array.nbytes for array in encoded) / sum(map(len, some[0]))


def on_backend(case: Case) -> Row:
    """Return the seconds of an epoch with workers of a backend, on a large corpus."""
    X, y = chunks("train")
    with cluster(case.backend, case.workers):
        fitted((X[:100], y[:100]), case._replace(epochs=1))  # starts the workers
        model, epoch_s = fitted((X * TIMES, y * TIMES), case)
    return {
        "train_s": sum(epoch_s),
        "epoch_s": statistics.median(epoch_s[1:]),
        "f": None,
        "bytes": 0 if case.backend == "threading" else sum(model.traffic_[-1]),
    }


def labelled(case: Case) -> Row:
    """Return the seconds to label a large corpus."""
    model, _ = fitted(chunks("train"), Case("", epochs=3))
    many = chunks("test")[0] * 2 * TIMES
    with cluster(case.backend, case.workers):
        model.n_jobs = case.workers
        with Workers(case.workers) as workers:  # starts them
            list(workers.run(len, [((),)] * case.workers))
        list(model.predict_stream(many[:4000]))
        start = time.perf_counter()
        found = list(model.predict_stream(many))
        seconds = time.perf_counter() - start
    tokens = sum(map(len, found))
    return {"train_s": seconds, "f": None, "bytes": 0, "tokens_per_s": tokens / seconds}


def tagged(case: Case) -> Row:
    """Return the seconds that ``laso tag --jobs`` takes for a large column file."""
    X, y = chunks("train")
    sentences = [[(*t, label) for t, label in zip(*s, strict=True)] for s in zip(X, y, strict=True)]
    model = Tagger(epochs=3, threads=1).fit(sentences)
    model.threads = case.workers
    blocks = ["".join(" ".join(t) + "\n" for t in s) + "\n" for s in chunks("test")[0]]
    with tempfile.TemporaryDirectory(prefix="laso-scale-") as folder:
        path = Path(folder, "large.txt")
        for copies in (1, 2 * TIMES):  # first a small file, for what is loaded once
            path.write_text("".join(blocks) * copies, encoding="utf-8")
            with Path(folder, "labelled.txt").open("wb") as out:
                start = time.perf_counter()
                tag(model, [str(path)], out, Settings(), to=None, extras=Extras())
                seconds = time.perf_counter() - start
    tokens = 2 * TIMES * sum(block.count("\n") - 1 for block in blocks)
    return {"train_s": seconds, "f": None, "bytes": 0, "tokens_per_s": tokens / seconds}


@contextmanager
def cluster(backend: str, workers: int = 2) -> Iterator[None]:
    """Give joblib a backend; clusters are local ones."""
    import joblib

    if backend == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
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
        try:
            with joblib.parallel_config(backend, n_jobs=workers):
                yield
        finally:
            ray.shutdown()
        return
    with joblib.parallel_config(backend, n_jobs=workers):
        yield


def quality() -> dict[Case, Callable[[Case], Row]]:
    """Return what measures scores: shards one after the other, and ways to mix them."""
    name = next(iter(CORPORA))
    cases = [
        Case(f"learning, {each}", shards=shards, epochs=more_epochs(shards), seed=seed)
        for some, seeds, corpora in ((SEEDED, SEEDS, CORPORA), (SIMULATED, SEEDS[:1], [name]))
        for seed in seeds
        for each in corpora
        for shards in some
    ]
    cases += [
        Case(f"mixing, {name}", shards=shards, epochs=more_epochs(shards), mixing=mixing)
        for mixing in ("uniform", "updates")
        for shards in SEEDED[1:]
    ]
    return dict.fromkeys(cases, scored)


def times() -> dict[Case, Callable[[Case], Row]]:
    """Return what measures seconds: epochs of one shard and of two, backends, labelling."""
    epochs = [
        Case(f"epochs, {name}", shards=shards, workers=shards, number=number)
        for name in CORPORA
        for number in range(RUNS)
        for shards in (1, 2)
    ]
    what = f"backends, {TIMES} times conll2000"
    backends = [  # one after the other, so that a slow hour is one for all of them
        Case(what, backend, shards=2, workers=2, epochs=FEW_EPOCHS, number=number)
        for number in range(RUNS)
        for backend in BACKENDS
    ]
    labelling = [
        Case("labelling", backend, workers=workers, number=number)
        for backend in BACKENDS[:2]
        for number in range(RUNS)
        for workers in (1, 2)
    ]
    files = [
        Case("files", workers=workers, number=number)
        for number in range(RUNS)
        for workers in (1, 2)
    ]
    return {
        **dict.fromkeys(epochs, timed),
        **dict.fromkeys(backends, on_backend),
        **dict.fromkeys(files, tagged),
        **dict.fromkeys(labelling, labelled),
    }


PARTS = {"quality": quality, "time": times}


# --------------------------------------------------------------------------- results


def run(results: Path, say: Say, *, part: str | None = None, again: bool = False) -> Path:
    """Measure what is missing, of one part or of all, and write the report after each row."""
    path = results / "scale.json"

    def measured(case: Case, measure: Callable[[Case], Row]) -> Row:
        say(f"{case} ...")
        return {**measure(case), "machine": machine()}

    def tell(row: Row) -> None:
        shown = row["f"] if row["train_s"] is None else round(row["train_s"], 2)
        say(f"{row['what']}, {row['backend']}, {row['shards']} shards: {shown}")
        scale_report.write(results, load(path))

    for name, cases in PARTS.items():
        if part in (None, name):
            jobs = [(case._asdict(), partial(measured, case, f)) for case, f in cases().items()]
            run_missing(path, jobs, tell, again=again)
    return scale_report.write(results, load(path) or [])
