"""Which kinds of templates a parser needs: each is left out once, on development data.

``python -m benchmarks.parsing_kinds`` trains a greedy parser on a part of UD English EWT for each
kind and saves results/parsing_kinds.json; rows that are there are not repeated.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

from benchmarks.parsers import COLUMNS, XPOS, las, read_trees, trees_of
from benchmarks.parsing import gold_files
from laso import Parser
from laso.experiments import measure
from laso.experiments.measure import Row
from laso.tasks.parsing.templates import cluster_templates, default_templates
from laso.values import parse

RESULTS = Path(__file__).parent / "results" / "parsing_kinds.json"
EPOCHS, PART, DEV = 5, 5, 700  # every fifth sentence; the first sentences of the development data
UPDATE = "passive_aggressive(weighting=worst)"
KINDS = {
    "the other column of tags": r"(^|\|)pos\[",
    "words of children": r"^w\[\w+\.",
    "labels of children": r"label\[",
    "second children": r"\.[lr]2\]",
    "distances": r"distance\[",
    "three or more tags": r"^xpos[^|]*\|xpos[^|]*\|xpos",
    "pairs of words": r"^w\[s.*w\[",
    "children of s1": r"\[s1\.",
    "s2 and b2": r"\[[sb]2",
}
"""Kinds of the default templates, as regular expressions."""
SIDES = {"left": ("s0", "s1", "b0"), "right": ("s0", "s1")}
MORE = {
    "valencies": [f"{c}[{e}]|{s}s[{e}]" for s in SIDES for e in SIDES[s] for c in ("w", "xpos")],
    "sets of labels": [
        f"{c}[{e}]|{s}set[{e}]" for s in SIDES for e in SIDES[s] for c in ("w", "xpos")
    ],
    "clusters": cluster_templates("w"),
    "affixes": [f"w.{base}[{e}]" for base in ("suffix3", "prefix2", "shape") for e in ("s0", "b0")],
}
"""Kinds that the default set does not have."""


def feature_sets() -> dict[str, list[str]]:
    """Return the templates of each row."""
    usual = default_templates(COLUMNS, XPOS)
    sets = {"default": usual}
    for name, pattern in KINDS.items():
        sets[f"without {name}"] = [t for t in usual if not re.search(pattern, t)]
    return sets | {f"with {name}": [*usual, *more] for name, more in MORE.items()}


def main() -> None:
    """Measure what is not there yet."""
    rows: list[Row] = measure.load(RESULTS) or []
    files = gold_files()
    train, dev = read_trees(files["train"])[::PART], read_trees(files["dev"])[:DEV]
    columns = [[[token[:3] for token in s] for s in some] for some in (train, dev)]
    for name, templates in feature_sets().items():
        if any(row["features"] == name for row in rows):
            continue
        began = time.process_time()
        model = Parser(queue=1, update=parse(UPDATE), epochs=EPOCHS, features=templates, threads=1)
        model.fit(columns[0], trees_of(train))
        seconds = time.process_time() - began
        score = las(dev, model.predict(columns[1]))
        rows.append({"features": name, "templates": len(templates), "las": score, "cpu_s": seconds})
        measure.save(RESULTS, rows)
        sys.stderr.write(f"{name} ({len(templates)}): LAS {score:.2f}\n")


if __name__ == "__main__":
    main()
