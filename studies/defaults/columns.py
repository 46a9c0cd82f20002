"""The second part of the study of defaults: estimators and templates for data in columns.

Each seed holds out another part of the training data, so that differences between settings are
those of several parts. Test data are not used.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from studies.defaults import data as study_data
from studies.measure import Row, Say, run_missing, table
from studies.measure import load as results

SEEDS = 3
BASE = "Tagger without dropout"  # the setting that the others are compared with
BUNDLED = "bundled chunks"
LAYERED = "bundled tags and chunks"  # several layers of labels, from words alone
LAYERED_BASE = "JointTagger"
SIZES = {  # the parts of a corpus to learn from, as divisors
    BUNDLED: 1,
    "conll2000 chunks": 4,
    "wnut17 entities": 1,
    "litbank entities": 4,
    "ewt upos": 4,
    LAYERED: 1,
}
# The corpora with a column of tags beside the words.
TAGGED = (BUNDLED, "conll2000 chunks")

Make = Callable[[int], Any]
For = Callable[[bool], Make]


class Setting(NamedTuple):
    """An estimator with its settings, and the corpora that it is for.

    ``make`` has two arguments, one after the other: whether there are tags, and the seed.
    """

    name: str
    make: For
    tagged: bool = False  # only where there is a column of tags
    chunks: bool = False  # only where labels mark chunks
    layered: bool = False  # only where there are several layers of labels

    def fits(self, corpus: str) -> bool:
        """Tell whether the setting is for a corpus."""
        if self.layered or corpus == LAYERED:
            return self.layered and corpus == LAYERED
        return not (self.tagged and corpus not in TAGGED) and not (
            self.chunks and corpus == "ewt upos"
        )


# --------------------------------------------------------------------------- settings

WORDS = (
    "w[-2..2]",
    "w[-1]|w[0]",
    "w[0]|w[1]",
    "w.lower[-1..1]",
    "w.shape[-1..1]",
    *(f"w.{affix}{n}[0]" for affix in ("prefix", "suffix") for n in range(1, 5)),
)
TAGS = (
    "pos[-2..2]",
    *(f"pos[{i}]|pos[{i + 1}]" for i in range(-2, 2)),
    *(f"pos[{i}]|pos[{i + 1}]|pos[{i + 2}]" for i in range(-2, 1)),
)
LABELS = ("label[-1]", "label[-1]|w[0]", "label[-2]|label[-1]")

WORD_CHANGES = {
    "+ shapes of three words": ["w.shortshape[-1]|w.shortshape[0]|w.shortshape[1]"],
    "+ three labels": ["label[-3]|label[-2]|label[-1]"],
}
WITH_WORDS = ["w[0]|pos[0]", "w[-1]|pos[0]", "pos[0]|w[1]", "pos[-1]|w[0]", "w[0]|pos[1]"]
FIVE = ["pos[-2]|pos[-1]|pos[0]|pos[1]|pos[2]"]
LABEL_TAGS = ["label[-1]|pos[0]", "label[-1]|pos[0]|pos[1]", "label[-2]|label[-1]|pos[0]"]
TAG_CHANGES = {
    "+ five tags": FIVE,
    "+ words with tags": WITH_WORDS,
    "+ labels and tags": LABEL_TAGS,
    "+ all of these": [*FIVE, *WITH_WORDS, *LABEL_TAGS],
}


def settings() -> Iterator[Setting]:
    """Yield the estimators, then one change of the templates of ``Tagger`` for each question."""
    from laso import Chunker, JointTagger, Tagger, perceptron, worst

    def tagger(change: Sequence[str] = (), without: str = "", **given: Any) -> For:
        def for_columns(tagged: bool) -> Make:
            kept = [*WORDS, *(TAGS if tagged else ()), *LABELS, *change]
            features = [template for template in kept if template != without]
            plain = {"dropout": 0.0, "class_weight": {}}
            return lambda seed: Tagger(features=features, seed=seed, **{**plain, **given})

        return for_columns

    def chunker(**given: Any) -> For:
        return lambda tagged: lambda seed: Chunker(seed=seed, **given)

    def joint(**given: Any) -> For:
        layers: dict[str, Any] = {"layers": ["pos", "chunk"], "constraints": {"chunk": "BIO"}}
        return lambda tagged: lambda seed: JointTagger(**layers, seed=seed, **given)

    one = perceptron(weighting=worst, margin=1.0)
    yield Setting(BASE, tagger())
    yield Setting(f"{BASE}, BIO", tagger(constraints="BIO"), chunks=True)
    yield Setting("Chunker", chunker(), chunks=True)
    yield Setting("Chunker, margin 1", chunker(update=one), chunks=True)
    yield Setting("- label and word", tagger(without="label[-1]|w[0]"))
    for name, change in TAG_CHANGES.items():
        yield Setting(name, tagger(change), tagged=True)
    for name, change in WORD_CHANGES.items():
        yield Setting(name, tagger(change))
    for rate in (0.1, 0.2, 0.3):
        yield Setting(f"dropout {rate:g}", tagger(dropout=rate))
    for patience in (3, 10):
        name = f"epochs by a held-out tenth, patience {patience}"
        yield Setting(name, tagger(held_out=0.1, patience=patience))
    yield Setting("Chunker, 20 epochs", chunker(epochs=20), chunks=True)
    yield Setting("Chunker, dropout 0.2", chunker(dropout=0.2), chunks=True)
    yield Setting(LAYERED_BASE, joint(), layered=True)
    yield Setting("JointTagger, margin 1", joint(update=one), layered=True)
    yield Setting("JointTagger, 20 epochs", joint(epochs=20), layered=True)
    yield Setting("JointTagger, dropout 0.2", joint(dropout=0.2), layered=True)


# --------------------------------------------------------------------------- running


def load(name: str, divisor: int, seed: int) -> tuple[study_data.Part, study_data.Part]:
    """Return a part to learn from, and the part that the seed holds out."""
    examples: list[Any]
    if name in (BUNDLED, LAYERED):
        from laso.data import load_bundled

        inputs = 2 if name == BUNDLED else 1
        examples = [
            (
                [token[:inputs] for token in sentence],
                [token[-1] if name == BUNDLED else token[1:] for token in sentence],
            )
            for sentence in load_bundled()[0]
        ]
    else:
        examples = list(study_data.CORPORA[name]("train"))
    held = 3 if name in (BUNDLED, LAYERED) else 10
    train, held_out = study_data.split(examples, divisor, seed=seed, held=held)
    return study_data.as_columns(train), study_data.as_columns(held_out)


def run(say: Say, folder: Path) -> None:
    """Run what is missing, and save each result as soon as it is there."""
    parts = lru_cache(1)(load)

    def measured(setting: Setting, corpus: str, divisor: int, seed: int) -> Row:
        return measure(setting.make(corpus in TAGGED), *parts(corpus, divisor, seed), seed)

    jobs = (
        (
            {"corpus": corpus, "divisor": divisor, "config": setting.name, "seed": seed},
            partial(measured, setting, corpus, divisor, seed),
        )
        for seed in range(SEEDS)
        for corpus, divisor in SIZES.items()
        for setting in settings()
        if setting.fits(corpus)
    )
    tell = "{corpus} 1/{divisor}, {config}, seed {seed}: {heldout}"
    path = folder / "columns.json"
    run_missing(path, jobs, lambda row: say(tell.format(**row)), by_line=True)


def measure(make: Make, train: study_data.Part, held_out: study_data.Part, seed: int) -> Row:
    """Return the held-out score, and the seconds of CPU that training took."""
    make(seed).set_params(epochs=1).fit(train.X[:2], train.y[:2])  # compiles
    model = make(seed)
    began = time.process_time()
    model.fit(train.X, train.y)
    seconds = time.process_time() - began
    score = model.score(held_out.X, held_out.y)
    return {"heldout": round(100 * score, 2), "train_s": round(seconds, 1)}


# --------------------------------------------------------------------------- report


def report(folder: Path) -> str:
    """Return tables: the scores of a base, and what other settings bring."""
    rows = results(folder / "columns.json") or []
    there = {row["corpus"] for row in rows}
    single = [name for name in SIZES if name in there and name != LAYERED]
    tables = [_table(rows, single, BASE)]
    if LAYERED in there:
        tables.append(_table(rows, [LAYERED], LAYERED_BASE))
    return "\n\n".join(tables)


def _table(rows: list[Row], corpora: list[str], base: str) -> str:
    cells: dict[tuple[str, str], dict[int, Row]] = {}
    for row in rows:
        cells.setdefault((row["corpus"], row["config"]), {})[row["seed"]] = row
    lines = []
    for setting in settings():
        line = [_cell(cells, corpus, setting.name, base) for corpus in corpora]
        if any(line):
            lines.append([setting.name, *line])
    sizes = [f" 1/{SIZES[name]}" if SIZES[name] > 1 else "" for name in corpora]
    head = ["", *(name + size for name, size in zip(corpora, sizes, strict=True))]
    return table(head, lines, left=1)


def _cell(cells: dict[tuple[str, str], dict[int, Row]], corpus: str, name: str, first: str) -> str:
    here, base = cells.get((corpus, name), {}), cells.get((corpus, first), {})
    seeds = sorted(here.keys() & base.keys())
    if not seeds:
        return ""
    seconds = statistics.mean(here[seed]["train_s"] for seed in seeds)
    if name == first:
        return f"{statistics.mean(here[s]['heldout'] for s in seeds):.2f} ({seconds:.0f} s)"
    gains = [here[seed]["heldout"] - base[seed]["heldout"] for seed in seeds]
    error = f" ± {statistics.stdev(gains) / len(gains) ** 0.5:.2f}" if len(gains) > 1 else ""
    return f"{statistics.mean(gains):+.2f}{error} ({seconds:.0f} s)"
