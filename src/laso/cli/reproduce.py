"""``laso reproduce``: run an experiment of the paper, or the part of it that is missing."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from laso.experiments import EXPERIMENTS

if TYPE_CHECKING:
    from rich.console import Console

    from laso.experiments.runner import Experiment, Request

LISTS = ("names", "places", "abbreviations", "stop-words")


def run(
    experiment: Annotated[str, typer.Argument(help=f"One of: {', '.join(EXPERIMENTS)}.")],
    rows: Annotated[
        str, typer.Option(help="Only these rows, comma-separated.", metavar="NAMES")
    ] = "",
    features: Annotated[str, typer.Option(help="The feature set: paper or rich.")] = "",
    resources: Annotated[
        str,
        typer.Option(
            help="Word lists and other resources, comma-separated: clusters, lexicon, names, "
            "places, abbreviations, stop-words, files of your own; lists means names, places, "
            "abbreviations and stop-words, all means all but files.",
            metavar="NAMES",
        ),
    ] = "",
    seeds: Annotated[
        int | None, typer.Option(min=1, help="The number of seeds, from 0 up; by default a few.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Use this seed only.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="The number of parallel processes.")] = 1,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Use a slice of the corpus, two epochs, fewer trials."),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Run again what is finished.")] = False,
    only_report: Annotated[
        bool, typer.Option("--report", help="Only write the report, from the results so far.")
    ] = False,
    corpus: Annotated[
        str, typer.Option(help="conll2000 or bundled; by default that of the experiment.")
    ] = "",
    results: Annotated[
        Path | None,
        typer.Option(help="The folder of the results; by default experiments/results."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write the results as JSON; progress goes to stderr.")
    ] = False,
) -> None:
    """Run an experiment of the paper, and compare its results with the paper's.

    Settings are first chosen on a tenth of the training data, unless an earlier run has chosen
    them. Every result is saved when it is finished: after Ctrl-C the same command resumes there.
    """
    from rich.console import Console

    from laso.experiments.runner import Lab, Request
    from laso.experiments.runner import experiment as named

    if experiment not in EXPERIMENTS:
        raise typer.BadParameter(f"{experiment!r}: expected {', '.join(EXPERIMENTS)}")
    chosen = named(experiment)
    request = Request(
        rows=_rows(chosen, rows),
        features=_one_of("--features", features or chosen.features[0], chosen.features),
        resources=_resources(resources),
        seeds=tuple(range(seeds or chosen.seeds)) if seed is None else (seed,),
        corpus=_one_of("--corpus", corpus or chosen.corpora[0], chosen.corpora),
        quick=quick,
        again=again,
    )
    errors = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    with tempfile.TemporaryDirectory(prefix="laso-") as work, Bar(errors) as bar:
        folder = (results or default_folder(request)).resolve()
        lab = Lab(chosen, folder, Path(work), bar, jobs=jobs)
        try:
            answered = lab.results_of(request) if only_report else lab.run(request)
            files = lab.write_report()
        except KeyboardInterrupt:
            errors.print("interrupted: finished results are saved, the same command resumes")
            raise typer.Exit(130) from None
    if as_json:
        typer.echo(json.dumps(answered, indent=1, ensure_ascii=False))
    else:
        console = Console(highlight=False, soft_wrap=True, markup=False)
        say(console, answered, chosen.shown, files)
    if lab.failures:
        errors.print(f"failed: {', '.join(lab.failures)}")
        raise typer.Exit(1)


class Bar:
    """Shows on a terminal what is going on and how long it may last; elsewhere what has ended."""

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
        self._bar = Progress(
            *columns, console=console, transient=True, disable=not console.is_terminal
        )
        self._console = console
        self._task = self._bar.add_task("starting", total=None)

    def __enter__(self) -> Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def begin(self, label: str) -> None:
        """A job begins."""
        if self._console.is_terminal:
            self._console.print(f"  {label} ...")

    def end(self, line: str, done: int, total: int, left_s: float | None) -> None:
        """A job ended."""
        left = "" if left_s is None else f", about {duration(left_s)} left"
        text = f"{done} of {total}{left}"
        self._bar.update(self._task, completed=done, total=total, description=text)
        self._console.print(f"  {line}" if self._console.is_terminal else f"{line} ({text})")

    def fail(self, line: str) -> None:
        """A job failed."""
        self._console.print(line)


def duration(seconds: float) -> str:
    """A length of time in the unit that suits it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def default_folder(request: Request) -> Path:
    """Below the working folder; what is not the real experiment has folders of its own."""
    folder = Path("experiments", "results")
    if request.corpus == "bundled":
        folder /= request.corpus
    return folder / "quick" if request.quick else folder


def say(
    console: Console, results: list[dict[str, Any]], shown: Mapping[str, int], files: list[Path]
) -> None:
    """The results in short, and where the report is."""
    console.print(f"{'row':<14}{'seed':>5}" + "".join(f"{name:>12}" for name in shown))
    for row in results:
        figures = "".join(f"{row[name]:12.{digits}f}" for name, digits in shown.items())
        console.print(f"{row['row']:<14}{row['seed']:>5}{figures}")
    for path in files:
        console.print(f"wrote {path}")


def _rows(experiment: Experiment, text: str) -> tuple[str, ...]:
    names = _names(text)
    for name in names:
        _one_of("--rows", name, tuple(experiment.rows))
    return tuple(row for row in experiment.rows if row in names or not names)


def _resources(text: str) -> tuple[str, ...]:
    from laso.features.lists import RESOURCES

    short = {"lists": LISTS, "all": tuple(RESOURCES)}
    names = [each for name in _names(text) for each in short.get(name, (name,))]
    for name in names:
        if not Path(name).is_file():
            _one_of("--resources", name, (*RESOURCES, *short, "a file"))
    return tuple(sorted(set(names)))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _one_of(option: str, name: str, known: tuple[str, ...]) -> str:
    if name not in known:
        raise typer.BadParameter(f"{option}: found {name!r}, expected {', '.join(known)}")
    return name
