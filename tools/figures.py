"""Put the reports of experiments and benchmarks into the documents, between their markers.

``<!-- figures table1 -->``, up to ``<!-- end -->``, gets what results/table1.md of either says
below its title; links are made to lead there. A place whose report is not there stays as it is.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = [ROOT / name / "results" for name in ("experiments", "benchmarks")]
PLACE = re.compile(r"(<!-- figures (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def figures(report: Path, document: Path) -> str:
    """The report as a part of the document: one level of headings down, its links relative."""
    _, _, text = report.read_text(encoding="utf-8").partition("\n\n")
    folder = Path(os.path.relpath(report.parent, document.parent)).as_posix()
    text = re.sub(r"\]\(([\w.-]+)\)", rf"]({folder}/\1)", text)
    return re.sub(r"^#", "##", text, flags=re.MULTILINE)


def main() -> None:
    """Fill every place in the documents whose report is there."""
    for document in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        old = document.read_text(encoding="utf-8")

        def filled(place: re.Match[str], document: Path = document) -> str:
            for folder in RESULTS:
                report = folder / f"{place[2]}.md"
                if report.exists():
                    return place[1] + figures(report, document) + place[3]
            return place[0]

        new = PLACE.sub(filled, old)
        if new != old:
            document.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
