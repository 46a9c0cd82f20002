"""Helpers of reports: means and deviations over seeds, and whether results support claims."""

from __future__ import annotations

import math
import shlex
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from laso.files.atomic import write_text
from studies.measure import Row, format_settings, resource_names, table

SHOWN, NOT_SHOWN, NOT_MEASURED = "shown", "not shown", "not measured"
FEWEST = 3  # seeds of a score that can be published without a mark


@dataclass(frozen=True)
class Sample:
    """The values of a measure over seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The arithmetic mean."""
        return statistics.mean(self.values)

    @property
    def spread(self) -> float | None:
        """The standard deviation, if there are at least two seeds."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def text(self, digits: int = 2) -> str:
        """Return mean and standard deviation as text."""
        spread = "" if self.spread is None else f" ± {self.spread:.{digits}f}"
        return f"{self.mean:,.{digits}f}{spread}"


def sample(results: Iterable[Row], row: str, measure: str) -> Sample | None:
    """Return a measure of a row over its seeds; None if it was not measured."""
    values = tuple(float(one[measure]) for one in results if one["row"] == row)
    return Sample(values) if values else None


def seed_count(results: Iterable[Row], row: str) -> str:
    """Return the number of seeds of a row as text, with a mark if they are too few."""
    return count_text(len({one["seed"] for one in results if one["row"] == row}))


def count_text(n: int) -> str:
    """Return a number of runs as text, with a mark if they are too few to tell a mean."""
    return str(n) if n >= FEWEST else f"**{n}**"


def preliminary(results: list[Row]) -> str:
    """Return a warning about rows with too few seeds; empty if there are none."""
    rows = dict.fromkeys(one["row"] for one in results)
    few = [row for row in rows if seed_count(results, row).startswith("*")]
    if not few:
        return ""
    return (
        f"**Fewer than {FEWEST} seeds, so that the scores are preliminary:** {', '.join(few)}. "
        "Another seed may change them by more than they differ from others."
    )


def sample_texts(results: list[Row], row: str, measures: Iterable[str]) -> list[str]:
    """Return measures of a row as text, without those that were not measured."""
    samples = (sample(results, row, measure) for measure in measures)
    return [one.text() for one in samples if one is not None]


def score_table(results: list[Row], rows: Iterable[str], columns: Mapping[str, str]) -> str:
    """Return a table with a line for each measured row; ``columns`` has the heads of measures."""
    found = {row: sample_texts(results, row, columns) for row in rows}
    lines = [[row, seed_count(results, row), *texts] for row, texts in found.items() if texts]
    return table(["", "seeds", *columns.values()], lines, left=1)


def mean(results: Iterable[Row], row: str, measure: str) -> float | None:
    """Return the mean of a measure of a row; None if it was not measured."""
    values = sample(results, row, measure)
    return None if values is None else values.mean


def harmonic(precision: float, recall: float) -> float:
    """Return F, the harmonic mean of precision and recall."""
    return 2 * precision * recall / (precision + recall)


@dataclass(frozen=True)
class Contrast:
    """A weighted sum of rows' means that is above zero if a claim is true.

    The terms ``{"a": 1, "b": -1}`` state that a is above b.
    """

    description: str
    terms: Mapping[str, float]
    measure: str = "f"


@dataclass(frozen=True)
class Verdict:
    """The verdict of the results on a contrast."""

    mark: str
    numbers: str


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, as contrasts that must all be above zero."""

    text: str
    contrasts: Sequence[Contrast]


def judge(contrast: Contrast, results: list[Row]) -> Verdict:
    """Return the verdict: shown if the sum exceeds twice its standard error over seeds.

    One seed has no standard error and shows nothing.
    """
    samples = {row: sample(results, row, contrast.measure) for row in contrast.terms}
    known = {row: one for row, one in samples.items() if one is not None}
    if len(known) < len(samples):
        absent = ", ".join(row for row in samples if row not in known)
        return Verdict(NOT_MEASURED, f"no result for {absent}")
    numbers = "; ".join(f"{row} {one.text()}" for row, one in known.items())
    value = sum(factor * known[row].mean for row, factor in contrast.terms.items())
    numbers = f"{value:+,.2f} ({numbers})"
    variance = 0.0
    for row, factor in contrast.terms.items():
        spread = known[row].spread
        if spread is None:
            return Verdict(NOT_SHOWN, f"{numbers}; one seed tells no spread")
        variance += factor**2 * spread**2 / len(known[row].values)
    return Verdict(SHOWN if value > 2 * math.sqrt(variance) else NOT_SHOWN, numbers)


def mark(verdicts: Iterable[Verdict]) -> str:
    """Return the mark of a claim: shown if all its contrasts are."""
    marks = {verdict.mark for verdict in verdicts}
    for one in (NOT_SHOWN, NOT_MEASURED):
        if one in marks:
            return one
    return SHOWN


def claims(claims: Sequence[Claim], results: list[Row]) -> str:
    """Return a table of claims and a table of their contrasts.

    Contrasts without a measurement are left out, and so are claims without any other contrast. The
    text is empty if nothing is left.
    """
    pairs = []
    for claim in claims:
        verdicts = [judge(one, results) for one in claim.contrasts]
        if any(verdict.mark != NOT_MEASURED for verdict in verdicts):
            pairs.append((claim, verdicts))
    if not pairs:
        return ""
    summary = table(
        ["claim", "by the numbers"], ([claim.text, mark(verdicts)] for claim, verdicts in pairs)
    )
    details = table(
        ["in detail", "measure", "difference", "by the numbers"],
        (
            [contrast.description, contrast.measure, verdict.numbers, verdict.mark]
            for claim, verdicts in pairs
            for contrast, verdict in zip(claim.contrasts, verdicts, strict=True)
            if verdict.mark != NOT_MEASURED
        ),
        left=4,
    )
    return f"{summary}\n\n{details}"


@dataclass(frozen=True)
class Plan:
    """The plan of an experiment's report: NAME.md.

    ``notes`` precede the sections, of which each has the results that share features and resources.
    ``claims`` are judged after each section, under the heading ``whose``. ``by_seed`` tells whether
    scores are means over seeds, of which there may be too few. ``scored`` is the held-out score in
    the table of chosen settings; if it is empty, there is no such table. ``draw`` makes plots in a
    folder, if matplotlib is installed; ``above_plots`` precedes them.
    """

    name: str
    heading: str
    rows: Iterable[str]
    notes: str
    section: Callable[[list[Row]], str] = field(default=lambda rows: "")
    claims: Sequence[Claim] = ()
    whose: str = "Claims of the paper"
    by_seed: bool = True
    scored: str = ""
    draw: Callable[[list[Row], Path], list[Path]] | None = None
    above_plots: str = ""

    def text(self, results: list[Row], chosen: dict[str, Row]) -> str:
        """Return the report: conditions, then sections and claims, then the chosen settings."""
        parts = [
            f"# {self.heading}",
            f"Made by `python -m studies {self.name} --report` from the JSON files beside it.",
        ]
        if not results:
            return "\n\n".join([*parts, NOTHING]) + "\n"
        parts += [conditions(results), self.notes]
        for group, rows in groups(results).items():
            judgement = claims(self.claims, rows)
            parts += [f"## {title(group)}", self.section(rows), unmeasured(self, rows)]
            parts.append(preliminary(rows) if self.by_seed else "")
            parts += [f"### {self.whose}", judgement] if judgement else []
        if self.scored:
            parts += [CHOSEN, choices(chosen, self.scored)]
        return "\n\n".join(filter(None, parts)) + "\n"

    def write(self, results: list[Row], chosen: dict[str, Row], folder: Path) -> list[Path]:
        """Write the report and its plots; return the paths of all files."""
        text, plots = self.text(results, chosen), list[Path]()
        if self.draw and results and find_spec("matplotlib"):
            plots = self.draw(results, folder)
            text += self.above_plots
        return write_report(folder / f"{self.name}.md", text, plots)

    def write_held_out(
        self, results: list[Row], chosen: dict[str, Row], folder: Path
    ) -> list[Path]:
        """Write the report of an experiment on held-out data only; return its path."""
        made_by = f"Made by `python -m studies {self.name} --report` from chosen.json beside it."
        parts = [f"# {self.heading}", made_by, self.notes]
        finished = [entry for entry in chosen.values() if "settings" in entry]
        for group, entries in groups(finished).items():
            by_row = {entry["row"]: entry for entry in entries}
            lines = [_curve(by_row[row]) for row in self.rows if row in by_row]
            after = [f"after {n}" for n in EPOCHS_SHOWN]
            head = ["variant", *after, "best", "after epoch", "train s"]
            parts += [f"## {title(group)}", table(*without_empty(head, lines), left=1)]
            parts.append(unmeasured(self, entries))
        if not finished:
            parts.append(NOTHING)
        return write_report(folder / f"{self.name}.md", "\n\n".join(filter(None, parts)) + "\n")


def unmeasured(plan: Plan, results: list[Row]) -> str:
    """Return the number of planned rows without a result, and the command that measures them.

    The results are those of one set of features and resources. The text is empty if all rows have
    a result.
    """
    planned = list(plan.rows)
    there = {row["row"] for row in results}
    absent = [row for row in planned if row not in there]
    if not absent:
        return ""
    features, resources, corpus = (results[0][key] for key in ("features", "resources", "corpus"))
    command = ["python", "-m", "studies", plan.name, "--features", features]
    if resources:
        command += ["--resources", ",".join(resources)]
    if corpus.startswith("bundled"):
        command += ["--corpus", "bundled"]
    if corpus.endswith(", a slice"):
        command.append("--quick")
    command += ["--rows", ",".join(absent)]
    has = "has" if len(absent) == 1 else "have"
    return (
        f"{len(absent)} of {len(planned)} planned rows {has} no measurement with these features "
        f"and resources. To measure: `{shlex.join(command)}`."
    )


NOTHING = "Nothing was measured yet."
CHOSEN = "## Settings chosen on held-out data"


def groups(results: list[Row]) -> dict[tuple[str, tuple[str, ...]], list[Row]]:
    """Group the results by features and resources."""
    grouped: dict[tuple[str, tuple[str, ...]], list[Row]] = {}
    for row in results:
        grouped.setdefault((row["features"], tuple(row["resources"])), []).append(row)
    return grouped


def title(group: tuple[str, tuple[str, ...]]) -> str:
    """Return the heading of a group."""
    features, resources = group
    return f"Features {features}, {resource_names(resources)}"


def conditions(results: list[Row]) -> str:
    """Return the conditions of the measurements: corpus, machine, versions, processes."""
    corpora = sorted({row["corpus"] for row in results})
    machines = sorted({format_settings(row["machine"]) for row in results})
    versions = sorted({f"{k} {v}" for row in results for k, v in row["versions"].items()})
    at_a_time = " or ".join(map(str, sorted({row["jobs"] for row in results})))
    text = f"Corpus: {'; '.join(corpora)}. Machine: {'; '.join(machines)}. "
    text += f"Versions: {', '.join(versions)}. "
    text += f"Each job in a fresh process with one thread, {at_a_time} at a time."
    if len({row["versions"]["laso"] for row in results}) > 1:
        text += " **These results are not all of the same version of laso.**"
    return text


def choices(chosen: dict[str, Row], scored: str = "F") -> str:
    """Return a table of the settings chosen on held-out data."""
    return table(
        ["row, features, resources", "settings", f"held-out {scored}", "trials"],
        (
            [
                name,
                format_settings(entry["settings"]),
                f"{entry['f']:.2f}",
                str(len(entry["trials"])),
            ]
            for name, entry in chosen.items()
            if "settings" in entry
        ),
    )


EPOCHS_SHOWN = (1, 3, 5, 10)


def without_empty(head: list[str], lines: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return head and lines of a table without its empty columns."""
    kept = [i for i in range(len(head)) if not lines or any(line[i] for line in lines)]
    return [head[i] for i in kept], [[line[i] for i in kept] for line in lines]


def _curve(entry: Row) -> list[str]:
    curve = entry["held_out"]
    seconds = sum(trial["train_s"] for trial in entry["trials"])
    at = [f"{curve[n - 1]:.2f}" if n <= len(curve) else "" for n in EPOCHS_SHOWN]
    epochs = entry["settings"]["epochs"]
    return [entry["row"], *at, f"{entry['f']:.2f}", str(epochs), f"{seconds:.0f}"]


def draw_training(results: list[Row], folder: Path, *, name: str, scored: str = "F") -> list[Path]:
    """Draw F over training time, and the held-out score over epochs; return the paths."""
    from studies import plots

    curves = plots.curves(results, folder / f"{name}-curves.svg", scored)
    return [plots.times(results, folder / f"{name}-time.svg"), curves]


def write_report(path: Path, text: str, plots: Sequence[Path] = ()) -> list[Path]:
    """Write a report followed by its plots; return the paths of all files."""
    shown = "".join(f"\n![{plot.stem}]({plot.name})\n" for plot in plots)
    write_text(path, text + shown)
    return [path, *plots]
