"""Taggers on CoNLL-2000 with CRFsuite's template: chosen.json and peers.json.

``tune`` chooses settings on a held-out tenth of the training data: one setting after the other
takes the value with the best held-out F while the others stay fixed; of equally good values the
first wins. ``run`` measures all systems on the test data. Each run trains in one fresh process and
decodes in another.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

from laso.data import Sentence
from laso.metrics import accuracy, chunk_scores
from studies import measure
from studies.corpus import Files, plain_read, warmup_file
from studies.measure import Failures, JobFailed, Row, Say, Settings, Trials, load, peak_mb, save
from studies.peers.systems import SYSTEMS, System, absent, import_seconds, labels_of

# Folders and files of laso that a tagger does not use.
OTHER_TASKS = (
    *("estimators/products/chunker.py", "features/lists.py", "features/schemes.py"),
    *("tasks/chunking/", "tasks/clustering/", "tasks/parsing/"),
)
MEASURES = (
    *("read_s", "features_s", "train_s", "decode_s", "tokens_per_s", "peak_mb", "model_bytes"),
    *("f", "accuracy", "import_s", "process_s", "cpu_s", "load_s"),
    *("first_call_s", "later_process_s"),
)


# --------------------------------------------------------------------------- one process


def train(job: Row) -> Row:
    """Read, make features, train and save; return times, memory and the size of the model.

    ``warm`` is a short file to train on first, so that code is loaded before the measurement.
    """
    system = SYSTEMS[job["system"]]
    import_s = import_seconds(system.module)
    model = Path(job["model"])
    if job["warm"]:
        system.learn(Path(job["warm"]), job["settings"], model)
    cpu = time.process_time()
    learned = system.learn(Path(job["train"]), job["settings"], model)
    return {
        "import_s": import_s,
        **learned._asdict(),
        "cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
        "model_bytes": model.stat().st_size,
    }


def decode(job: Row) -> Row:
    """Label the test sentences and score the predicted labels."""
    system = SYSTEMS[job["system"]]
    import_module(system.module)
    gold, inputs = split(plain_read(job["test"]))
    decoded = system.decode(Path(job["model"]), job["settings"], inputs)
    tokens = sum(map(len, inputs))
    return {
        "load_s": decoded.load_s,
        "decode_s": decoded.decode_s,
        "tokens_per_s": tokens / decoded.decode_s,
        "tokens": tokens,
        "f": chunk_scores(gold, decoded.labels).f if job["chunks"] else None,
        "accuracy": accuracy(gold, decoded.labels),
    }


def start(job: Row) -> Row:
    """Return the seconds to the first labels since the parent's time ``started``."""
    system, model = SYSTEMS[job["system"]], Path(job["model"])
    if job["first"]:
        system.learn(Path(job["train"]), job["settings"], model)
    _, inputs = split(plain_read(job["train"]))  # more than one: these have code of their own
    system.decode(model, job["settings"], inputs)
    return {"seconds": time.time() - job["started"]}


def split(sentences: list[Sentence]) -> tuple[list[list[str]], list[Sentence]]:
    """Return the labels, and the sentences without them."""
    return labels_of(sentences), [[token[:2] for token in sentence] for sentence in sentences]


# --------------------------------------------------------------------------- all of them


@dataclass(frozen=True)
class Bench:
    """The folders for temporary files and results, the progress callback, and options."""

    work: Path
    results: Path
    say: Say
    quick: bool = False
    again: bool = False
    configs: tuple[str, ...] = ()  # none: all

    @cached_property
    def failures(self) -> Failures:
        """The measurements that failed; the others still run."""
        return Failures(self.say)

    def chosen(self, system: System) -> list[str]:
        """Return the configurations of a system to measure; none if it is not installed."""
        if missing := absent(system.module):
            self.say(f"{system.name}: skipped, {missing}")
            return []
        return [name for name in system.defaults if name in self.configs or not self.configs]

    @property
    def cache(self) -> Path | None:
        """The cache of compiled code for these measurements; None if ``quick``: the user's own."""
        return None if self.quick else self.work / "cache"

    @property
    def model(self) -> Path:
        """The path of the model that was trained last."""
        return self.work / "model.bin"

    def job(self, system: System, what: str, **details: Any) -> Row:
        """Run one job in a fresh process and return its result."""
        job = {"system": system.name, "started": time.time(), **details}
        environment = {} if self.cache is None else {"LASO_CACHE": str(self.cache)}
        try:
            return measure.Processes(self.work, **environment).run(f"{__name__}:{what}", job)
        except JobFailed as error:
            raise JobFailed(f"{system.name} {what}: {error}") from error

    def measure(
        self, system: System, settings: Settings, files: Files, *, growth: bool = False
    ) -> Row:
        """Train in one process and decode in another.

        For ``growth``, labels need not be chunk tags, and the time to load code is not counted.
        """
        self.model.unlink(missing_ok=True)
        warm = warmup_file(files.train, self.work) if growth else ""
        given = {"settings": settings, "model": self.model}
        started = time.perf_counter()
        result = self.job(system, "train", train=files.train, warm=warm, **given)
        result["process_s"] = time.perf_counter() - started
        result |= self.job(system, "decode", test=files.test, chunks=not growth, **given)
        return result


def medians(runs: list[Row], names: Iterable[str]) -> Row:
    """Return the median of each measure over the runs; None if it was not measured."""
    result: Row = {}
    for name in names:
        values = [run[name] for run in runs if run.get(name) is not None]
        result[name] = statistics.median(values) if values else None
    return result


def versions(system: System) -> dict[str, str]:
    """Return the versions of Python and of a system's packages."""
    return measure.versions(system.packages, OTHER_TASKS)


# --------------------------------------------------------------------------- choosing


def tune(bench: Bench, systems: Sequence[System], files: Files) -> dict[str, Row]:
    """Choose settings for each configuration; return them with all trials.

    ``files`` are the rest of the training data and the held-out tenth.
    """
    chosen: dict[str, Row] = load(bench.results / "chosen.json") or {}
    for system in systems:
        for config in bench.chosen(system):
            with bench.failures.collect(f"{system.name} {config}"):
                tune_one(bench, system, config, files, chosen)
    return chosen


def tune_one(
    bench: Bench, system: System, config: str, files: Files, chosen: dict[str, Row]
) -> None:
    """Choose the settings of one configuration; store them in ``chosen`` and its file."""
    path, key = bench.results / "chosen.json", f"{system.name}/{config}"
    entry = chosen.get(key, {})
    if bench.again or entry.get("versions") != versions(system):
        entry = {"versions": versions(system), "trials": []}
    chosen[key] = entry

    def measured(settings: Settings) -> Row:
        result = bench.measure(system, settings, files)
        bench.say(
            f"{system.name}, {measure.format_settings(settings)}: held-out F {result['f']:.2f}, "
            f"trained in {result['train_s']:.1f} s"
        )
        return {"f": result["f"]}

    trials = Trials(entry["trials"], measured, lambda _: save(path, chosen))
    grid = system.grid[config]
    if bench.quick:
        grid = {name: values[:2] for name, values in grid.items()}
    best = measure.coordinate_search(system.defaults[config], grid, trials)
    entry |= {"settings": best, "held_out_f": trials(best)}
    save(path, chosen)
    bench.say(f"{key}: chosen {measure.format_settings(best)}")


# --------------------------------------------------------------------------- measuring


def run(
    bench: Bench, systems: Sequence[System], files: Files, *, runs: int, corpus: str
) -> list[Row]:
    """Measure each configuration ``runs`` times; earlier runs count, and each run is saved."""
    path = bench.results / "peers.json"
    rows: list[Row] = load(path) or []
    chosen = load(bench.results / "chosen.json") or {}
    for system in systems:
        for config in bench.chosen(system):
            label = f"{system.name} {config}"
            choice = chosen.get(f"{system.name}/{config}", {}).get("settings")
            conditions: Row = {
                "system": system.name,
                "config": config,
                "corpus": f"{corpus}, a slice" if bench.quick else corpus,
                "settings": choice or system.defaults[config],
                "chosen_on_held_out": bool(choice),
                "versions": versions(system),
                "machine": measure.machine(),
            }
            same = [row for row in rows if conditions.items() <= row.items() and not bench.again]
            done: list[Row] = same[0]["runs"] if same else []
            with bench.failures.collect(label):
                for n in range(len(done), runs):
                    bench.say(f"{label}: run {n + 1} of {runs}")
                    done = [*done, one_run(bench, system, conditions["settings"], files)]
                    row = conditions | medians(done, MEASURES) | {"runs": done}
                    rows = [*(old for old in rows if _name(old) != _name(row)), row]
                    rows.sort(key=_place)
                    save(path, rows)
                    bench.say(f"{label}: {SUMMARY.format(**done[-1])}")
                bench.say(f"{label}: done")
    return rows


def one_run(bench: Bench, system: System, settings: Settings, files: Files) -> Row:
    """Measure once; laso also with an empty cache, and in a later process."""
    if system.name != "laso":
        return bench.measure(system, settings, files)
    given = {"settings": settings, "train": warmup_file(files.train, bench.work)}
    times: Row = {"first_call_s": None}
    if bench.cache is not None:
        # The first call fills the cache that all later processes use.
        shutil.rmtree(bench.cache, ignore_errors=True)
        first = bench.job(system, "start", first=True, model=bench.work / "start.bin", **given)
        times["first_call_s"] = first["seconds"]
    result = bench.measure(system, settings, files)
    later = bench.job(system, "start", first=False, model=bench.model, **given)
    return result | times | {"later_process_s": later["seconds"]}


SUMMARY = (
    "F {f:.2f}, read {read_s:.2f} s, features {features_s:.2f} s, train {train_s:.2f} s, "
    "{tokens_per_s:,.0f} tokens/s, {peak_mb:.0f} MB, model {model_bytes:,} bytes"
)


def _place(row: Row) -> int:
    """Return the position of a row in the table; rows no longer measured come first."""
    names = [(s.name, config) for s in SYSTEMS.values() for config in s.defaults]
    return names.index(_name(row)) if _name(row) in names else -1


def _name(row: Row) -> tuple[str, str]:
    return row["system"], row["config"]
