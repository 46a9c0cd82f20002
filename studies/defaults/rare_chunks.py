"""What O should cost where chunks are rare: part of ``python -m studies defaults``.

Held-out data are of two kinds. A random tenth of the sentences shares most names with the rest;
other books and newer texts do not.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from pathlib import Path

from studies.defaults import data as study_data
from studies.defaults.data import CORPORA, Example, Part, as_part
from studies.measure import Row, Say, load, run_missing, table

SEEDS = 3
WEIGHTS = (1.0, 0.5, 0.3)
EVERY = 2  # of the larger corpora, every second sentence is learned from


def names(part: str) -> Iterator[Example]:
    """Yield UD English EWT with runs of proper nouns as chunks."""
    for tokens, tags in CORPORA["ewt upos"](part):
        pairs = zip(tags, ["", *tags], strict=False)
        marks = {True: "I-NAME", False: "B-NAME"}
        yield tokens, [marks[before == "PROPN"] if t == "PROPN" else "O" for t, before in pairs]


def random_tenth() -> tuple[Part, Part]:
    """Return WNUT17, with a random tenth of its training part held out."""
    data = study_data.load("wnut17 entities")
    return data.train, data.held_out


def other_texts(read: Callable[[str], Iterator[Example]], step: int = 1) -> tuple[Part, Part]:
    """Return the training part of a corpus, and its development part."""
    return as_part(list(read("train"))[::step]), as_part(list(read("dev")))


CASES: dict[str, Callable[[], tuple[Part, Part]]] = {
    "wnut17 entities, a random tenth": random_tenth,
    "wnut17 entities, newer texts": lambda: other_texts(CORPORA["wnut17 entities"]),
    "ewt names": lambda: other_texts(names, EVERY),
    "litbank entities, other books": lambda: other_texts(CORPORA["litbank entities"], EVERY),
}


def run(say: Say, folder: Path) -> None:
    """Run what is missing, and save each result as soon as it is there."""
    from laso import Tagger
    from laso.tasks.tagging.task import TaggingTask

    parts = lru_cache(1)(lambda name: CASES[name]())

    def measured(name: str, weight: float, seed: int) -> Row:
        train, held_out = parts(name)
        model = Tagger(class_weight={"O": weight}, seed=seed).fit(train.X, train.y)
        score = TaggingTask().score(held_out.y, model.predict(held_out.X))
        labels = [label for y in train.y for label in y]
        inside = round(1 - labels.count("O") / len(labels), 3)
        return {"inside": inside, "heldout": round(100 * score, 2)}

    jobs = (
        ({"corpus": name, "weight": weight, "seed": seed}, partial(measured, name, weight, seed))
        for name in CASES
        for weight in WEIGHTS
        for seed in range(SEEDS)
    )
    tell = "{corpus}, O costs {weight:g}, seed {seed}: {heldout}"
    path = folder / "rare_chunks.json"
    run_missing(path, jobs, lambda row: say(tell.format(**row)), by_line=True)


def report(folder: Path) -> str:
    """Return a table of held-out scores: means over seeds, and what lower weights bring."""
    rows = load(folder / "rare_chunks.json") or []
    lines = []
    for name in CASES:
        some = [row for row in rows if row["corpus"] == name]
        scores = {w: [row["heldout"] for row in some if row["weight"] == w] for w in WEIGHTS}
        if not all(scores.values()):
            continue
        base = statistics.mean(scores[1.0])
        cells = [
            f"{statistics.mean(found) - (base if w < 1 else 0):{'+' if w < 1 else ''}.2f}"
            + (f" ± {statistics.stdev(found):.2f}" if len(found) > 1 else "")
            for w, found in scores.items()
        ]
        lines.append([name, f"{100 * some[0]['inside']:.0f} %", *cells])
    return table(["held out", "in chunks", *(f"O costs {w:g}" for w in WEIGHTS)], lines, left=1)
