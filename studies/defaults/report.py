"""The report of the study of defaults: scores, ranks, bars, and what each change brings."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from studies.defaults import choices, columns
from studies.defaults.learners import BASE, DEFAULT, LBFGS, RESULTS, SEEDS
from studies.measure import Row, load, table, write
from studies.report import Sample

CRFSUITE, VOWPAL = "python-crfsuite", "vowpalwabbit"
MOST_BELOW = 0.3  # how far below CRFsuite's best the default may be

Key = tuple[str, str]  # corpus and size


class Kind(NamedTuple):
    """A kind of learner, which competes with its settings that are best on held-out data."""

    name: str
    system: str
    prefixes: tuple[str, ...]

    def rows(self, rows: Iterable[Row]) -> list[Row]:
        """Return the rows of the setting with the best mean held-out score."""
        settings: dict[str, list[Row]] = {}
        for row in rows:
            if row["system"] == self.system and row["config"].startswith(self.prefixes):
                settings.setdefault(row["config"], []).append(row)
        return max(settings.values(), key=lambda some: mean(some, "heldout"), default=[])


KINDS = (
    Kind("laso", "laso", (DEFAULT,)),
    Kind("CRFsuite ap", CRFSUITE, ("ap",)),
    Kind("CRFsuite pa", CRFSUITE, ("pa",)),
    Kind("CRFsuite AROW", CRFSUITE, ("arow",)),
    Kind("CRFsuite L-BFGS", CRFSUITE, (LBFGS,)),
    Kind("Vowpal Wabbit", VOWPAL, ("sequence",)),
)
NEEDED = ("laso", "CRFsuite ap", "CRFsuite L-BFGS", "Vowpal Wabbit")  # to show a corpus at all


def mean(rows: Iterable[Row], measure: str) -> float:
    """Return the mean of a measure."""
    return statistics.mean(float(row[measure]) for row in rows)


def report(folder: Path = RESULTS) -> Path:
    """Write defaults.md from the results; return its path."""
    rows = load(folder / "defaults.json") or []
    here: dict[Key, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["corpus"], _size(row["size"]))):
        here.setdefault((row["corpus"], row["size"]), []).append(row)
    complete = {key: some for key, some in here.items() if _is_complete(some)}
    text = INTRODUCTION.format(
        scores=_scores(complete),
        ranks=_ranks(complete),
        bars="\n".join(_bars(complete)),
        variants=_variants(here),
        choices=choices.report(folder),
        columns=columns.report(folder),
        module="studies/defaults/columns.py",
        seeds=SEEDS,
        column_seeds=columns.SEEDS,
        choice_seeds=choices.SEEDS,
    )
    return write(folder / "defaults.md", text)


def _size(size: str) -> int:
    """Return a number that grows with the size."""
    return -int(size.partition("/")[2] or 1)


def _is_complete(rows: Sequence[Row]) -> bool:
    """Tell whether the default and the main peers have been measured on a corpus."""
    return all(kind.rows(rows) for kind in KINDS if kind.name in NEEDED)


def _scores(corpora: dict[Key, list[Row]]) -> str:
    """Return a table of test scores."""
    lines = []
    for key, rows in corpora.items():
        cells = []
        for kind in KINDS:
            chosen = kind.rows(rows)
            scores = Sample(tuple(row["score"] for row in chosen))
            cells.append(f"{scores.text()} ({mean(chosen, 'train_s'):.0f} s)" if chosen else "")
        lines.append([*key, *cells])
    return table(["corpus", "size", *(kind.name for kind in KINDS)], lines, left=2)


def _ranks(corpora: dict[Key, list[Row]]) -> str:
    """Return a table of mean ranks over the corpora, on test and on held-out data."""
    lines = []
    for kind in KINDS:
        cells = []
        for measure in ("score", "heldout"):
            found = [
                rank
                for rows in corpora.values()
                if (rank := _rank(rows, kind, measure)) is not None
            ]
            cells.append(f"{statistics.mean(found):.2f}" if found else "")
        lines.append([kind.name, *cells])
    return table(["", "test", "held out"], lines, left=1)


def _rank(rows: Sequence[Row], kind: Kind, measure: str) -> int | None:
    """Return the rank of a kind on a corpus, 1 for the best; None if it was not measured."""
    if not kind.rows(rows):
        return None
    own = mean(kind.rows(rows), measure)
    others = (other.rows(rows) for other in KINDS if other != kind)
    return 1 + sum(mean(other, measure) > own for other in others if other)


def _bars(corpora: dict[Key, list[Row]]) -> Iterator[str]:
    """Yield what the default has to reach, and whether it does."""
    laso, ap = KINDS[0], KINDS[1]
    for measure, where in (("score", "test"), ("heldout", "held-out")):
        below = []
        for (corpus, size), rows in corpora.items():
            theirs = [kind.rows(rows) for kind in KINDS if kind.system == CRFSUITE]
            best = max(mean(some, measure) for some in theirs if some)
            below.append((best - mean(laso.rows(rows), measure), f"{corpus} {size}"))
        worst, name = max(below, default=(0.0, "none"))
        verdict = "met" if worst <= MOST_BELOW else "**missed**"
        yield (
            f"- At most {MOST_BELOW} below CRFsuite's best on {where} data: {verdict}. The default "
            f"is furthest below, by {worst:+.2f}, on {name}."
        )
    pairs = [(laso.rows(rows), ap.rows(rows)) for rows in corpora.values()]
    ratios = [mean(ours, "train_s") / mean(theirs, "train_s") for ours, theirs in pairs]
    if ratios:
        verdict = "met" if max(ratios) <= 1.0 else "**missed**"
        yield (
            f"- At most the training time of CRFsuite's averaged perceptron: {verdict}. The "
            f"default takes from {min(ratios):.2f} to {max(ratios):.2f} of its CPU time."
        )


def _variants(corpora: dict[Key, list[Row]]) -> str:
    """Return a table of held-out scores: a base, and what each change of it brings."""
    ours = {key: [row for row in rows if row["system"] == "laso"] for key, rows in corpora.items()}
    ours = {key: rows for key, rows in ours.items() if _of(rows, BASE)}
    names = dict.fromkeys(row["config"] for rows in ours.values() for row in rows)
    base = {key: statistics.mean(_of(rows, BASE)) for key, rows in ours.items()}
    lines = [[BASE, *(f"{score:.2f}" for score in base.values()), ""]]
    for name in names:
        if name == BASE:
            continue
        gains = [
            statistics.mean(found) - base[key] if (found := _of(rows, name)) else None
            for key, rows in ours.items()
        ]
        known = [gain for gain in gains if gain is not None]
        cells = ["" if gain is None else f"{gain:+.2f}" for gain in gains]
        lines.append([name, *cells, f"{statistics.mean(known):+.2f}"])
    return table(["", *(f"{corpus} {size}" for corpus, size in ours), "mean"], lines, left=1)


def _of(rows: Iterable[Row], name: str) -> list[float]:
    return [row["heldout"] for row in rows if row["config"] == name]


INTRODUCTION = """\
# Defaults

`python -m studies defaults` made this page. All systems have the same attributes of each token:
windows of words, affixes, shapes, and windows of the other columns. Scores are chunk F, or token
accuracy for tags. A tenth of the training part is held out to choose on.

## Test scores

Scores are means of {seeds} seeds with their standard deviation; a seed permutes the training
sentences. **A score without a deviation has one seed**, so that it may differ by as much as the
others spread; L-BFGS alone does not depend on the order. It has the prior of three that is best on
held-out data, for all of CoNLL-2000 and EWT the one that is best for a quarter of them. Training
times are seconds of CPU, with the conversion of attributes. The machine did other work meanwhile.

{scores}

The mean rank of each system over these corpora and sizes, 1 for the best:

{ranks}

What the default has to reach:

{bars}

## What each change brings

Held-out scores. The first row is `Tagger(update=perceptron(weighting=worst, margin=20.0))` with 30
epochs and without dropout; the others say by how much one change of it is better or worse. The
default differs from it by its dropout, by what O costs, and in its margin, which is the number of
features of a token.

{variants}

## What O costs, and how many features are left out

Scores on development parts, which have other texts than the training parts, except for CoNLL-2000
and the bundled corpus, of which a tenth is held out: means of {choice_seeds} seeds ± their standard
deviation, of L-BFGS one run. The column O has the share of tokens that are in no chunk. In the
first table all systems have the features of the tutorial of sklearn-crfsuite; in the second the
features are those that `Tagger` and `Chunker` make of columns by default.

{choices}

## Estimators and templates for columns

Held-out scores of estimators that make the features themselves, from words or from words and tags;
of several layers of labels, the accuracy of whole tokens. The first row of a table is an estimator
with its defaults, but `Tagger` without dropout, with equal costs, and with the templates of
`{module}`. The others say by how much one change is
better or worse: the mean of up to {column_seeds} held-out parts, ± its standard error, with the CPU
seconds of training.

{columns}
"""
