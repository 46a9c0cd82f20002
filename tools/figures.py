"""Put the reports of experiments and benchmarks into the documents, between their markers.

``<!-- figures table1 -->``, up to ``<!-- end -->``, gets the text of results/table1.md of either
below its title; links are changed to lead there. README.md gets a short table of the benchmarks in
place of their report. A place whose report is not there stays as it is.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = [ROOT / name / "results" for name in ("experiments", "benchmarks")]
SHORT = {  # the rows of the short table, and what they are called there
    ("python-crfsuite", "ap"): "python-crfsuite, averaged perceptron",
    ("python-crfsuite", "pa"): "python-crfsuite, passive-aggressive",
    ("python-crfsuite", "lbfgs"): "python-crfsuite, L-BFGS",
    ("vowpalwabbit", "sequence"): "Vowpal Wabbit, `--search_task sequence`",
    ("laso", "beam 1"): "laso, greedy",
    ("laso", "beam 5"): "laso, beam of 5",
    ("laso", "exact likelihood"): "laso, exact search, likelihood",
}
COLUMNS = ("", "F", "training s", "tokens/s", "peak MB", "model MB")
FAST = {
    ("columns_tokens_per_s", "Tagger, beam 5"): "from columns in Python, `Tagger` with a beam of 5",
    ("columns_tokens_per_s", "Tagger, greedy"): "the same, greedy",
    ("file_tokens_per_s", "Tagger, beam 5, --jobs 1"): "from file to file, beam of 5",
    ("file_tokens_per_s", "Tagger, greedy, --jobs 1"): "the same, greedy",
    ("dicts_tokens_per_s", "lists of strings, raw"): "from lists of features, exact search",
    ("joint_tokens_per_s", "JointTagger, LaSOa_10"): "tags and chunks jointly, beam of 10",
}
PEERS = {"python-crfsuite": "python-crfsuite", "crfs": "crfs", "vowpalwabbit": "Vowpal Wabbit"}
PLACE = re.compile(r"(<!-- figures (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def figures(report: Path, document: Path) -> str:
    """The report as a part of the document: one level of headings down, its links relative."""
    _, _, text = report.read_text(encoding="utf-8").partition("\n\n")
    folder = Path(os.path.relpath(report.parent, document.parent)).as_posix()
    text = re.sub(r"\]\(([\w.-]+)\)", rf"]({folder}/\1)", text)
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def short_peers(rows: Sequence[dict[str, Any]]) -> str:
    """The benchmarks as README.md shows them: every peer, and three configurations of laso."""
    measured = {(row["system"], row["config"]): row for row in rows}
    lines = [COLUMNS, ("---", *["---:"] * (len(COLUMNS) - 1))]
    for key, name in SHORT.items():
        if key in measured:
            row = measured[key]
            total = row["read_s"] + row["features_s"] + row["train_s"]
            speed, size = row["tokens_per_s"], row["model_bytes"] / 1e6
            numbers = (f"{row['f']:.2f}", f"{total:.1f}", f"{speed:,.0f}", f"{row['peak_mb']:.0f}")
            lines.append((name, *numbers, f"{size:.1f}"))
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    shown = [measured[key] for key in SHORT if key in measured]
    runs = " or ".join(sorted({str(len(row["runs"])) for row in shown}))
    chosen = all(row["chosen_on_held_out"] for row in shown)
    settings = "settings chosen on held-out data" if chosen else "some settings are defaults"
    calls = [row["first_call_s"] for row in rows if row.get("first_call_s")]
    first = (
        ", without the compilation at laso's first run ("
        f"up to {max(calls):.0f} s until the first labels)"
        if calls
        else ""
    )
    return (
        f"Chunking of {shown[0]['corpus']} with CRFsuite's template on one thread of "
        f"{shown[0]['machine']['cpu']}; {settings}; median of {runs} runs. Training is from the "
        f"file to the saved model{first}. The [report](benchmarks/results/report.md) has all "
        "configurations and conditions.\n\n"
        f"{table}\n"
    )


def short_speed(rows: Sequence[dict[str, Any]]) -> str:
    """Tokens per second of laso and its peers as README.md shows them."""
    lines = [("tokens per second", "laso", *PEERS.values()), ("---", *["---:"] * (1 + len(PEERS)))]
    for (key, config), name in FAST.items():
        of_key = [row for row in rows if row["key"] == key]
        values = [r["value"] for r in of_key if (r["system"], r["config"]) == ("laso", config)]
        for peer in PEERS:
            theirs = [row for row in of_key if row["system"] == peer]
            same = [row for row in theirs if row["config"] == config] or theirs
            values.append(same[0]["value"] if same else None)
        lines.append((name, *("" if value is None else f"{value:,.0f}" for value in values)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


SHORTER = {"peers": short_peers, "speed": short_speed}  # in README.md


def main() -> None:
    """Fill every place in the documents whose report is there."""
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = document.read_text(encoding="utf-8")

        def filled(place: re.Match[str], document: Path = document) -> str:
            for folder in RESULTS:
                report = folder / f"{place[2]}.md"
                if report.exists() and document.name == "README.md" and place[2] in SHORTER:
                    rows = json.loads(report.with_suffix(".json").read_text(encoding="utf-8"))
                    return place[1] + SHORTER[place[2]](rows) + place[3]
                if report.exists():
                    return place[1] + figures(report, document) + place[3]
            return place[0]

        new = PLACE.sub(filled, old)
        if new != old:
            document.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
