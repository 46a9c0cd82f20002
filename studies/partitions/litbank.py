"""Gold mentions of LitBank: every system on every fold, each in a process of its own."""

from __future__ import annotations

import csv
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from laso.data import find_corpus
from laso.data.coreference import Text, read_coreference
from studies import measure
from studies.measure import ROOT, Failures, Job, Processes, Row, Say, load, run_missing
from studies.partitions import picture, report

RESULTS = ROOT / "experiments" / "results"
SEEDS = 3
FOLDS = 10
MEASURES = {"muc": "muc", "b3": "b_cubed", "ceafe": "ceaf_e", "lea": "lea"}
TYPES, WORDS = "entity types", "words only"


@dataclass(frozen=True)
class System:
    """A row of a table: how the search learns and how wide it is; 0: nothing is learned."""

    beam: int
    strategy: str = "delayed"
    features: Sequence[str] = (TYPES,)
    seeds: int = SEEDS


SYSTEMS = {
    "head match": System(0, seeds=1),
    "greedy": System(1, "restart", features=(TYPES, WORDS)),
    "delayed 5": System(5, features=(TYPES, WORDS)),
    "LaSO 5": System(5, "restart"),
    "delayed 1": System(1),
    "delayed 10": System(10, seeds=1),
    "LaSO 10": System(10, "restart", seeds=1),
    "delayed 25": System(25, seeds=1),
    "LaSO 25": System(25, "restart", seeds=1),
}
"""At beam 1, LaSO never leaves the gold path: it is a local model, which is greedy in the test."""


def run(
    say: Say,
    *,
    results: Path = RESULTS,
    systems: Sequence[str] = (),
    again: bool = False,
    part: str = "test",
    jobs: int = 1,
) -> tuple[list[Path], Failures]:
    """Run what is missing, and write the report; return its files, and what failed.

    ``part`` "dev" scores the development parts, for choices; the report is of the test parts.
    """
    failures, path = Failures(say), results / f"litbank{'' if part == 'test' else '-' + part}.json"
    tell = "fold {fold}, {system}, {features}, seed {seed}: {conll:.2f}, {train_s:.1f} s"
    with (
        tempfile.TemporaryDirectory(prefix="laso-litbank-") as work,
        ThreadPoolExecutor(jobs) as pool,
    ):
        done = [] if again else load(path) or []
        wanted = [
            (key, pool.submit(call).result)
            for key, call in _jobs(Path(work), systems or [*SYSTEMS], part)
            if not any(key.items() <= row.items() for row in done)
        ]
        run_missing(
            path,
            wanted,
            lambda row: say(tell.format(**row)),
            again=again,
            by_line=True,
            order=_place,
            failures=failures,
        )
        story = path.with_name(f"{path.stem}-story.json")
        if part == "test" and not story.exists():
            with failures.collect("the picture"):
                measure.save(story, Processes(Path(work)).run(f"{picture.__name__}:find", {}))
    if part != "test":
        return [], failures
    return [*report.write(path), *picture.write(story)], failures


def _place(row: Row) -> tuple[int, str, int, int]:
    """Return the place of a row in the file."""
    return [*SYSTEMS].index(row["system"]), row["features"], row["fold"], row["seed"]


def _jobs(work: Path, systems: Sequence[str], part: str) -> Iterator[Job]:
    processes = Processes(work)
    for name in systems:
        for features in SYSTEMS[name].features:
            for seed in range(SYSTEMS[name].seeds):
                for fold in range(FOLDS):
                    key: Row = {"fold": fold, "system": name, "features": features, "seed": seed}
                    job = {**key, "part": part}
                    yield key, partial(processes.run, "studies.partitions.litbank:score", job)


def score(job: Row) -> Row:
    """Learn from the training part of a fold, and score another part."""
    from laso import Clusterer, beam, delayed, restart
    from laso.metrics.partitions import partition_scores

    system, typed = SYSTEMS[job["system"]], job["features"] == TYPES
    parts = read_fold(job["fold"], typed=typed)
    texts, gold = parts[job["part"]]
    seconds = 0.0
    if system.beam:
        strategy = {"delayed": delayed, "restart": restart}[system.strategy]
        model = Clusterer(
            preset="coreference", queue=beam(system.beam), strategy=strategy, seed=job["seed"]
        )
        begin = time.process_time()
        model.fit(*parts["train"])
        seconds = time.process_time() - begin
        model.predict(texts[:1])  # loads what decoding needs
        begin = time.process_time()
        predicted = model.predict(texts)
    else:
        begin = time.process_time()
        predicted = [head_matches(text) for text in texts]
    tested = time.process_time() - begin
    scores = partition_scores(gold, predicted)
    many = partition_scores(gold, predicted, singletons=False)
    return {
        **{name: getattr(scores, of).f for name, of in MEASURES.items()},
        "conll": scores.conll,
        "conll_without_singletons": many.conll,
        "documents": len(texts),
        "train_s": seconds,
        "test_s": tested,
        "versions": measure.versions(("laso", "numba", "numpy")),
        "machine": measure.machine(),
    }


def head_matches(text: Text) -> list[Any]:
    """Return clusters of equal heads, and one for each kind of pronoun."""
    from laso.tasks.clustering.coreference import mentions_of

    return [item["pronoun"] or "=" + item["head"] for item in mentions_of(text)]


Part = tuple[list[Text], list[list[str]]]


def read_fold(fold: int, *, typed: bool) -> dict[str, Part]:
    """Return the texts of each part of a fold, and the entities of their mentions."""
    folder = find_corpus("litbank_coref")
    types: dict[str, dict[tuple[int, ...], str]] = defaultdict(dict)
    for row in _rows(folder / "mentions.tsv"):
        place = tuple(int(row[name]) for name in ("sentence", "first", "last"))
        types[row["document"]][place] = row["type"]
    parts: dict[str, Part] = {}
    for row in _rows(folder / "folds.tsv"):
        if int(row["fold"]) == fold:
            [(text, ids)] = read_coreference(folder / f"{row['document']}.conll")
            if typed:
                text.types = [types[row["document"]].get(tuple(m)) for m in text.mentions]
            texts, gold = parts.setdefault(row["part"], ([], []))
            texts.append(text)
            gold.append(ids)
    return parts


def _rows(path: Path) -> Iterator[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        yield from csv.DictReader(file, delimiter="\t")
