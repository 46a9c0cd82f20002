"""Put the reports of experiments into the documents, between their markers.

``<!-- figures table1 -->``, up to ``<!-- end -->``, gets what experiments/results/table1.md says
below its title; links to plots are made to lead there.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
PLACE = re.compile(r"(<!-- figures (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def figures(report: Path, document: Path) -> str:
    """The report as a part of the document: one level of headings down, its links relative."""
    _, _, text = report.read_text(encoding="utf-8").partition("\n\n")
    folder = Path(os.path.relpath(report.parent, document.parent)).as_posix()
    text = re.sub(r"\]\(([\w.-]+)\)", rf"]({folder}/\1)", text)
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def main() -> None:
    """Fill every place in the documents whose report is there."""
    for document in sorted((ROOT / "docs").rglob("*.md")):
        old = document.read_text(encoding="utf-8")

        def filled(place: re.Match[str], document: Path = document) -> str:
            report = RESULTS / f"{place[2]}.md"
            if not report.exists():
                sys.exit(f"{document.name} wants {report.name}: run laso reproduce {place[2]}")
            return place[1] + figures(report, document) + place[3]

        new = PLACE.sub(filled, old)
        if new != old:
            document.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
