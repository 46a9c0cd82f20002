"""encoder.md and the picture of scores against speed, from encoder.json alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from studies import measure as files
from studies.measure import Row, load, table
from studies.report import Sample
from studies.vectors import picture

NAMES = {
    "chunks": ("CoNLL-2000 chunks", "F"),
    "entities": ("WNUT17 entities", "F"),
    "tags": ("UD English EWT, UPOS", "accuracy"),
    "trees": ("UD English EWT, trees on predicted tags", "LAS"),
}
TEXT = """\
# Vectors of an encoder beside sparse features

Scores on test data in per cent: the mean over seeds, ± the standard deviation. Settings were chosen
on held-out sentences: a tenth of the training part of CoNLL-2000, the development parts of the
others (`encoder-chosen.json`). `sparse` has the default features, `frozen` the vectors of
all-MiniLM-L6-v2 beside them, `tuned` vectors that have learned inside the search. `softmax` is a
softmax over the same frozen vectors, word by word, without features and without a search.

`encode` is the time to encode the training part once, without the disk; `train` that of learning
from it then; both are those of the quickest run. Words per second count from test sentences to
outputs, encoding them anew. Rows of one seed have no deviation, and are no more than a first look.
Times are of a quiet machine for `sparse` and `frozen` on chunks (seed 0) only; other programs ran
beside all others, whose times are too long.
"""


def markdown(rows: Sequence[Row]) -> str:
    """Return the report as Markdown."""
    parts = [TEXT]
    for task in dict.fromkeys(row["task"] for row in rows):
        name, measure = NAMES[task]
        lines = []
        for system in dict.fromkeys(row["row"] for row in rows if row["task"] == task):
            same = [row for row in rows if (row["task"], row["row"]) == (task, system)]
            lines.append(
                [
                    system,
                    str(len(same)),
                    Sample(tuple(row["score"] for row in same)).text(2),
                    _least(same, "encode_s"),
                    _least(same, "train_s"),
                    f"{max(row['test_words'] / row['test_s'] for row in same):,.0f}",
                ]
            )
        head = ["system", "seeds", measure, "encode, s", "train, s", "words/s"]
        parts.append(f"## {name}\n\n{table(head, lines, left=1)}\n")
    versions = rows[-1]["versions"].items()
    machine = rows[-1]["machine"]
    parts.append(
        f"Versions: {', '.join(f'{name} {number}' for name, number in versions)}. Machine: "
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gb']} GB.\n"
    )
    return "\n".join(parts)


def _least(rows: Sequence[Row], name: str) -> str:
    """Return the least of some times: that of the quietest run."""
    times = [row[name] for row in rows if row.get(name)]
    return f"{min(times):.1f}" if times else ""


def write(path: Path) -> list[Path]:
    """Write the report beside its results."""
    rows = load(path) or []
    if not rows:
        return []
    pictures = picture.write(rows, path.with_suffix(".svg"))
    return [files.write(path.with_suffix(".md"), markdown(rows)), *pictures]
