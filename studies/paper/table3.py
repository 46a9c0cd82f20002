"""Table 3 of the paper: the beam of training against the beam of decoding (section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from studies.measure import Row, table
from studies.paper import joint
from studies.paper.joint import BEAMS, LASO_A, SHOWN
from studies.report import Plan, Sample, count_text
from studies.runner import Experiment

# As printed. By the caption rows are beams of training, but the text fits only the transpose.
PAPER = (
    (93.9, 92.8, 91.9, 91.3, 90.9),
    (90.5, 94.3, 94.4, 94.1, 94.1),
    (89.6, 94.3, 94.4, 94.2, 94.2),
    (88.7, 94.2, 94.5, 94.3, 94.3),
    (88.4, 94.2, 94.4, 94.2, 94.4),
)
READINGS = {
    "the paper, as its caption reads it (rows train)": PAPER,
    "the paper, as its text reads it (columns train)": tuple(zip(*PAPER, strict=True)),
}


def evaluate(model: Any, path: Path) -> Row:
    """Return the scores with each beam of decoding, as parts of one result."""
    trained = model.queue
    parts = []
    for beam in BEAMS:
        model.set_params(queue=beam)
        parts.append(joint.evaluate(model, path) | {"train_beam": trained})
    model.set_params(queue=trained)
    return {"parts": parts}


def grid(results: list[Row], measure: str = "f") -> dict[tuple[int, int], Sample]:
    """Return a measure for each beam of training and of decoding, over seeds."""
    values_of: dict[tuple[int, int], list[float]] = {}
    for row in results:
        values_of.setdefault((row["train_beam"], row["decode_beam"]), []).append(row[measure])
    return {beams: Sample(tuple(values)) for beams, values in values_of.items()}


def beam_table(cells: Any, trained: Sequence[int] = BEAMS, decoded: Sequence[int] = BEAMS) -> str:
    """Return a table of what ``cells`` returns for a beam of training and one of decoding."""
    head = ["train \\ decode", *map(str, decoded)]
    return table(head, ([str(b), *(cells(b, c) for c in decoded)] for b in trained), left=1)


def section(results: list[Row]) -> str:
    """Return our table, both readings of the paper's, and where the matched beam wins or ties."""
    f = grid(results)
    trained, decoded = ([b for b in BEAMS if any(pair[i] == b for pair in f)] for i in (0, 1))
    counts = sorted({len(one.values) for one in f.values()})
    seeds = " or ".join(map(count_text, counts))
    parts = [f"F, rows train, columns decode; seeds: {seeds}."]
    parts.append(beam_table(lambda b, c: f[b, c].text() if (b, c) in f else "", trained, decoded))
    for description, rows in READINGS.items():
        parts += [
            f"{description}:",
            beam_table(lambda b, c, r=rows: f"{r[BEAMS.index(b)][BEAMS.index(c)]}"),
        ]
    parts += ["### Is the diagonal heavy?", diagonal(f, BEAMS), TIES]
    return "\n\n".join(parts)


def diagonal(f: dict[tuple[int, int], Sample], beams: Sequence[int]) -> str:
    """Return a table that tells whether decoding with the beam of training is best."""
    lines = []
    for b in beams:
        row = {c: f[b, c] for c in beams if (b, c) in f}
        if b in row:
            best = max(row, key=lambda c: row[c].mean)
            behind = row[best].mean - row[b].mean
            spread = max(row[best].spread or 0.0, row[b].spread or 0.0)
            tied = behind <= max(spread, DIGIT / 2)
            verdict = "wins" if best == b else "ties" if tied else "loses"
            lines.append([str(b), str(best), f"{behind:.2f}", f"{spread:.2f}", verdict])
    head = ["train", "best decode", "matched is behind by", "spread over seeds", "matched"]
    return table(head, lines, left=1)


DIGIT = 0.1  # the last digit that the paper prints
TIES = """\
A matched beam ties if it is behind by no more than the larger spread of the two, or by no more than
half of the last digit that the paper prints."""


def draw(results: list[Row], folder: Path) -> list[Path]:
    """Draw the heat maps of our table and of both readings of the paper's; return the path."""
    from studies import plots

    cells = {beams: one.mean for beams, one in grid(results).items()}
    printed = {
        description: {(b, c): rows[i][j] for i, b in enumerate(BEAMS) for j, c in enumerate(BEAMS)}
        for description, rows in READINGS.items()
    }
    return [plots.heat({"here": cells, **printed}, BEAMS, folder / "table3-heat.svg")]


HEADING = "Table 3: beams of training and of decoding"
PLAN = Plan("table3", HEADING, LASO_A, joint.NOTES, section, draw=draw)
EXPERIMENT = Experiment(
    plan=PLAN,
    rows=LASO_A,
    estimator=joint.tagger,
    evaluate=evaluate,
    shown={"train_beam": 0, "decode_beam": 0, **SHOWN},
    features=("rich",),
    epochs=joint.EPOCHS,
    patience=joint.PATIENCE,
    scored="joint accuracy",
    chosen_by="table2",
    seeds=3,
)
