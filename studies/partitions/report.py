"""litbank.md and its picture, from litbank.json alone."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path

from studies import measure as files
from studies.measure import Row, load, table
from studies.report import Sample

TITLE = "# Coreference in novels: LitBank, gold mentions\n\n"
TEXT = """\
`Clusterer(preset="coreference")` with its defaults, but for the strategy and the width of the beam
that a row names. Each of the ten folds has 80 documents to learn from and 10 to test on; its 10
documents for development are not learned from. Scores are means over the folds, in per cent; mean
and standard deviation are over seeds of the order of the documents. Clusters of one mention count,
as they do for the reference scorer, but in the last column of scores. Seconds are those of the
processor, from documents in memory to the fitted model for each fold, and to the clusters for each
document; two folds ran at a time.

`head match` puts mentions with the same head, and pronouns of one kind, into one cluster. At beam
1, LaSO learns on the gold path only, so `greedy` is a local model with the same features.
"""
COLUMNS = {
    "muc": "MUC",
    "b3": "B-cubed",
    "ceafe": "CEAF-e",
    "lea": "LEA",
    "conll": "CoNLL F",
    "conll_without_singletons": "CoNLL F without singletons",
}
MAIN = ("head match", "greedy", "LaSO 5", "delayed 5")
BEAMS = (1, 5, 10, 25)
STRATEGIES = {"LaSO": "LaSO (restart)", "delayed": "delayed LaSO"}
LOCAL = "greedy"


def markdown(rows: Sequence[Row]) -> str:
    """Return the report as Markdown."""
    parts = [TITLE + TEXT]
    for features in dict.fromkeys(row["features"] for row in rows):
        chosen = [row for row in rows if row["features"] == features]
        lines = [
            [name, *(cell(chosen, name, column) for column in COLUMNS), *times(chosen, name)]
            for name in MAIN
            if any(row["system"] == name for row in chosen)
        ]
        head = ["", *COLUMNS.values(), "s to learn", "ms a document"]
        parts.append(f"## With {features}\n\n{table(head, lines, left=1)}\n")
    parts.append(beams([row for row in rows if row["features"] == rows[0]["features"]]))
    versions = ", ".join(f"{name} {number}" for name, number in rows[0]["versions"].items())
    machine = rows[0]["machine"]
    parts.append(
        f"Versions: {versions}. Machine: {machine['cpu']}, {machine['cores']} cores, "
        f"{machine['memory_gb']} GB.\n"
    )
    return "\n".join(parts)


def beams(rows: Sequence[Row]) -> str:
    """Return the table of strategies and widths of the beam."""
    lines, measured = [], {row["system"].rpartition(" ")[2] for row in rows}
    widths = [b for b in BEAMS if str(b) in measured]
    for key, name in STRATEGIES.items():
        systems = [LOCAL if (key, b) == ("LaSO", 1) else f"{key} {b}" for b in widths]
        lines.append([name, *(cell(rows, system, "conll") for system in systems)])
    wins = ["folds in which delayed is ahead"]
    for b in widths:
        other = LOCAL if b == 1 else f"LaSO {b}"
        both = by_fold(rows, f"delayed {b}", "conll"), by_fold(rows, other, "conll")
        shared = both[0].keys() & both[1].keys()
        ahead = sum(both[0][fold] > both[1][fold] for fold in shared)
        wins.append(f"{ahead} of {len(shared)}" if shared else "")
    seeds = {row["seed"] for row in rows}
    head = ["CoNLL F", *(f"beam {b}" for b in widths)]
    return (
        f"## Strategies and beams\n\n{table(head, [*lines, wins], left=1)}\n\n"
        f"Cells without a deviation are of one seed, the others of {len(seeds)}.\n"
    )


def by_fold(rows: Iterable[Row], system: str, measure: str) -> dict[int, float]:
    """Return the mean of a measure over seeds, for each fold."""
    values: dict[int, list[float]] = {}
    for row in rows:
        if row["system"] == system:
            values.setdefault(row["fold"], []).append(row[measure])
    return {fold: statistics.mean(found) for fold, found in values.items()}


def cell(rows: Iterable[Row], system: str, measure: str) -> str:
    """Return the mean over folds of a measure, and its deviation over seeds."""
    values: dict[int, list[float]] = {}
    for row in rows:
        if row["system"] == system:
            values.setdefault(row["seed"], []).append(row[measure])
    means = [statistics.mean(found) for found in values.values()]
    return Sample(tuple(means)).text() if means else ""


def times(rows: Iterable[Row], system: str) -> tuple[str, str]:
    """Return the mean seconds to learn a fold, and the milliseconds for a document."""
    own = [row for row in rows if row["system"] == system]
    learned = statistics.mean(row["train_s"] for row in own)
    tested = statistics.mean(row["test_s"] / row["documents"] for row in own)
    return f"{learned:.1f}", f"{1000 * tested:.0f}"


def write(path: Path) -> list[Path]:
    """Write the report beside its results."""
    rows = load(path) or []
    return [files.write(path.with_suffix(".md"), markdown(rows))] if rows else []
