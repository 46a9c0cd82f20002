"""``python -m studies STUDY``: run a study, or the part of it that is missing.

Finished results are kept and not repeated: after Ctrl-C the same command resumes.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from laso.errors import LasoError, MissingData
from laso.features.lists import RESOURCES
from studies import EXPERIMENTS, corpus
from studies.defaults import choices, columns, learners
from studies.defaults import report as defaults_report
from studies.linkage import run as linkage
from studies.linkage.data import DATASETS as TABLES
from studies.linkage.systems import SYSTEMS as LINKERS
from studies.measure import ROOT, Row
from studies.partitions import litbank
from studies.peers import growth, joint, likelihood, parsing, report, single, tagging
from studies.peers.parsers import SYSTEMS as PARSERS
from studies.peers.systems import SYSTEMS
from studies.runner import Experiment, Lab, Request, experiment
from studies.speed import encoding, profile, scale, speed
from studies.vectors import run as vectors
from studies.vectors.systems import TASKS as VECTOR_TASKS

Options = argparse.Namespace
CORPORA = ("conll2000", "bundled")
LISTS = ("names", "places", "abbreviations", "stop-words")
PEERS = {
    "tune": "choose settings on a held-out tenth of the training data (chosen.json)",
    "peers": "measure all systems on the test data (peers.json)",
    "growth": "measure how time and memory grow (growth.json)",
    "report": "make the report and the plots from these files",
    "bench": "these four, one after the other",
}
CRFSUITE = {
    "joint": (joint.run, "two layers of labels at once (joint.json)"),
    "single": (single.run, "one sentence at a time, and memory (single.json)"),
    "likelihood": (likelihood.run, "L-BFGS at equal settings (likelihood.json)"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run a study and return the exit code."""
    options = parser().parse_args(arguments)
    try:
        failures = options.run(options)
    except KeyboardInterrupt:
        print("interrupted: finished results are saved, the same command resumes", file=sys.stderr)
        return 130
    except (ArgumentTypeError, LasoError) as error:
        print(f"studies: {error}", file=sys.stderr)
        return {ArgumentTypeError: 2, MissingData: 5}.get(type(error), 1)
    if failures:
        say(f"failed: {', '.join(failures)}")
    return 1 if failures else 0


def say(line: str) -> None:
    """Print a line of progress, with the time of day."""
    print(f"{datetime.now():%H:%M:%S} {line}", file=sys.stderr, flush=True)


def one_of(option: str, name: str, known: Iterable[str]) -> str:
    """Return a name that is known; raise ArgumentTypeError otherwise."""
    if name not in (names := [*known]):
        raise ArgumentTypeError(f"{option}: found {name!r}, expected {', '.join(names)}")
    return name


# --------------------------------------------------------------------------- the paper


def run_experiment(options: Options) -> list[str]:
    """Run an experiment of the paper, and compare its results with the paper's."""
    chosen = experiment(options.study)
    seeds = options.seeds or chosen.seeds
    request = Request(
        rows=rows_of(chosen, options.rows),
        features=one_of("--features", options.features or chosen.features[0], chosen.features),
        resources=resources_of(options.resources),
        seeds=(options.seed,) if options.seed is not None else tuple(range(seeds)),
        corpus=one_of("--corpus", options.corpus or chosen.corpora[0], chosen.corpora),
        quick=options.quick,
        again=options.again,
    )
    with tempfile.TemporaryDirectory(prefix="laso-studies-") as work:
        folder = (options.results or default_folder(request)).resolve()
        lab = Lab(chosen, folder, Path(work), say, jobs=options.jobs)
        answered = lab.results_of(request) if options.report else lab.run(request)
        files = lab.write_report()
    if options.json:
        print(json.dumps(answered, indent=1, ensure_ascii=False))
    else:
        show(chosen, answered, files)
    return lab.failures


def show(experiment: Experiment, results: list[Row], files: list[Path]) -> None:
    """Print the results in short, and where the report is."""
    shown = experiment.shown
    print(f"{'row':<14}{'seed':>5}" + "".join(f"{name:>12}" for name in shown))
    for row in results:
        figures = "".join(f"{row[name]:12.{digits}f}" for name, digits in shown.items())
        print(f"{row['row']:<14}{row['seed']:>5}{figures}")
    for path in files:
        print(f"wrote {path}")


def default_folder(request: Request) -> Path:
    """Return the folder of results; what is not the real experiment has folders of its own."""
    folder = ROOT / "experiments" / "results"
    if request.corpus == "bundled":
        folder /= request.corpus
    return folder / "quick" if request.quick else folder


def rows_of(experiment: Experiment, names: Sequence[str]) -> tuple[str, ...]:
    """Return the named rows of an experiment, or all of them, in the order of the table."""
    for name in names:
        one_of("--rows", name, experiment.rows)
    return tuple(row for row in experiment.rows if row in names or not names)


def resources_of(names: Sequence[str]) -> tuple[str, ...]:
    """Return the resources of these names, of which some are short for several."""
    short = {"lists": LISTS, "all": tuple(RESOURCES)}
    found = [each for name in names for each in short.get(name, (name,))]
    for name in found:
        if not Path(name).is_file():
            one_of("--resources", name, (*RESOURCES, *short, "a file"))
    return tuple(sorted(set(found)))


def names_in(text: str) -> list[str]:
    """Return the names of a comma-separated text."""
    return [name.strip() for name in text.split(",") if name.strip()]


def positive(text: str) -> int:
    """Return a number of one or more."""
    if int(text) < 1:
        raise ValueError
    return int(text)


# --------------------------------------------------------------------------- peers and speed


@contextmanager
def opened(options: Options) -> Iterator[tagging.Bench]:
    """Yield a bench with a folder for temporary files."""
    given: Row = {"quick": False, "again": False, "configs": []} | vars(options)
    results = ROOT / "benchmarks" / "results" / ("quick" if given["quick"] else "")
    with tempfile.TemporaryDirectory(prefix="laso-studies-") as work:
        yield tagging.Bench(
            Path(work),
            (options.results or results).resolve(),
            say,
            quick=given["quick"],
            again=given["again"],
            configs=tuple(given["configs"]),
        )


def data_of(options: Options) -> str:
    """Return the name of the corpus of taggers."""
    return one_of("--corpus", options.corpus or CORPORA[0], CORPORA)


def run_peers(options: Options) -> list[str]:
    """Measure taggers on CoNLL-2000."""
    systems = {one_of("--systems", s, SYSTEMS): SYSTEMS[s] for s in options.systems or SYSTEMS}
    for name in options.configs:
        one_of("--configs", name, (config for s in systems.values() for config in s.defaults))
    name, some = data_of(options), [*systems.values()]
    with opened(options) as bench:
        for step in [*PEERS][:-1] if options.study == "bench" else [options.study]:
            if step == "report":
                for path in report.write(bench.results):
                    say(f"wrote {path}")
            elif step == "growth":
                growth.growth(bench, systems, name)
            else:
                files = corpus.files(name, bench.work, quick=options.quick)
                if step == "tune":
                    tagging.tune(bench, some, corpus.held_out(files, bench.work))
                else:
                    runs = options.runs or (1 if options.quick else 3)
                    tagging.run(bench, some, files, runs=runs, corpus=name)
        return bench.failures


def run_crfsuite(options: Options) -> None:
    """Compare an estimator with CRFsuite."""
    run, _ = CRFSUITE[options.study]
    with opened(options) as bench:
        files = corpus.files(data_of(options), bench.work, quick=options.quick)
        say(f"wrote {run(files, bench.work, bench.results, say)}")


def run_parsers(options: Options) -> None:
    """Measure parsers; models are kept in the folder ``work``."""
    only = [one_of("--systems", name, PARSERS) for name in options.systems]
    corpus = one_of("--corpus", options.corpus or parsing.EWT, (parsing.EWT, parsing.IMST))
    chosen = parsing.Chosen(only, options.configs, options.tags, corpus)
    work = (options.work or Path(tempfile.gettempdir(), "laso-parsing")).resolve()
    with opened(options) as bench:
        say(f"wrote {parsing.run(work, bench.results, say, chosen, again=options.decode)}")


def run_linkage(options: Options) -> list[str]:
    """Measure record linkage."""
    systems = [one_of("--systems", name, LINKERS) for name in options.systems]
    tables = [] if options.corpus is None else [one_of("--corpus", options.corpus, TABLES)]
    folder = (options.results or linkage.RESULTS).resolve()
    chosen = {"systems": systems, "datasets": tables, "again": options.again}
    files, failures = linkage.run(say, results=folder, **chosen)
    for path in files:
        say(f"wrote {path}")
    return failures


def run_litbank(options: Options) -> list[str]:
    """Score coreference on the folds of LitBank."""
    systems = [one_of("--systems", name, litbank.SYSTEMS) for name in options.systems]
    files, failures = litbank.run(
        say,
        results=(options.results or litbank.RESULTS).resolve(),
        systems=systems,
        again=options.again,
        part=options.of,
        jobs=options.jobs,
    )
    for path in files:
        say(f"wrote {path}")
    return failures


def run_vectors(options: Options) -> list[str]:
    """Score vectors of an encoder beside sparse features."""
    tasks = [] if options.corpus is None else [one_of("--corpus", options.corpus, VECTOR_TASKS)]
    files, failures = vectors.run(
        say,
        results=(options.results or vectors.RESULTS).resolve(),
        tasks=tasks,
        rows=options.rows,
        seeds=() if options.seed is None else (options.seed,),
        again=options.again,
    )
    for path in files:
        say(f"wrote {path}")
    return failures


def run_defaults(options: Options) -> None:
    """Run the three parts of the study of defaults."""
    learners.run(say)
    columns.run(say, learners.RESULTS)
    choices.run(say, learners.RESULTS)
    say(f"wrote {defaults_report.report()}")


def run_speed(options: Options) -> None:
    """Measure speed, a profile, the encoder, or more workers."""
    with opened(options) as bench:
        if options.study == "speed":
            path = speed.run(bench.results, options.keys, say)
        elif options.study == "profile":
            path = profile.run(bench.results, say)
        elif options.study == "encoding":
            path = encoding.run(bench.results, say)
        else:
            path = scale.run(bench.results, say, part=options.part, again=options.again)
    say(f"wrote {path}")


# --------------------------------------------------------------------------- options

FLAG: Row = {"action": "store_true"}
SOME: Row = {"nargs": "+", "default": [], "metavar": "NAME", "help": "only these"}
LISTED: Row = {"type": names_in, "default": [], "metavar": "NAMES"}
FOLDER: Row = {"type": Path, "metavar": "FOLDER"}
OPTIONS: dict[str, Row] = {
    "--results": {**FOLDER, "help": "where the results are kept"},
    "--quick": {**FLAG, "help": "a small slice of the data, few epochs, trials and runs"},
    "--again": {**FLAG, "help": "measure again what is finished"},
    "--corpus": {"help": "a corpus of the study; by default its first"},
    "--rows": {**LISTED, "help": "only these rows, comma-separated"},
    "--features": {"help": "the feature set: paper or rich"},
    "--resources": {**LISTED, "help": f"{', '.join(RESOURCES)}, files, lists or all"},
    "--seeds": {"type": positive, "help": "the number of seeds, from 0 up; by default a few"},
    "--seed": {"type": int, "help": "use this seed only"},
    "--jobs": {"type": positive, "default": 1, "help": "the number of parallel processes"},
    "--report": {**FLAG, "help": "only write the report, from the results so far"},
    "--json": {**FLAG, "help": "print the results as JSON; progress goes to stderr"},
    "--runs": {"type": positive, "help": "runs of each configuration (3; 1 if --quick)"},
    "--systems": SOME,
    "--configs": SOME,
    "--tags": {**SOME, "choices": parsing.TAGS},
    "--of": {"choices": ("test", "dev"), "default": "test", "help": "the parts that are scored"},
    "--work": {**FOLDER, "help": "where models stay"},
    "--decode": {**FLAG, "help": "only decode once more"},
    "--keys": {**SOME, "choices": [*speed.MEASURES]},
    "--part": {"choices": scale.PARTS, "help": "scores, or times, which need a quiet machine"},
}
EXPERIMENT_OPTIONS = "--results --quick --again --corpus --rows --features --resources --seeds "
EXPERIMENT_OPTIONS += "--seed --jobs --report --json"
PEERS_OPTIONS = "--results --quick --again --corpus --runs --systems --configs"
PARSERS_OPTIONS = "--corpus --results --systems --configs --tags --work --decode"


def studies() -> Iterator[tuple[str, Callable[[Options], object], str, str]]:
    """Yield names of studies, the functions that run them, what they are, and their options."""
    for name in EXPERIMENTS:
        yield name, run_experiment, experiment(name).plan.heading, EXPERIMENT_OPTIONS
    for name, text in PEERS.items():
        yield name, run_peers, text, PEERS_OPTIONS
    for name, (_, text) in CRFSUITE.items():
        yield name, run_crfsuite, text, "--results --quick --corpus"
    yield "parsers", run_parsers, "dependency parsers (parsing.json)", PARSERS_OPTIONS
    text = "record linkage beside splink, dedupe and recordlinkage (linkage.json)"
    yield "linkage", run_linkage, text, "--results --again --corpus --systems"
    text = "coreference on the folds of LitBank (litbank.json)"
    yield "litbank", run_litbank, text, "--results --again --jobs --systems --of"
    text = "vectors of an encoder beside sparse features (encoder.json)"
    yield "vectors", run_vectors, text, "--results --again --corpus --rows --seed"
    yield "defaults", run_defaults, "learners on several corpora (defaults.json)", ""
    text = "first label, start, loading, tokens per second (speed.json)"
    yield "speed", run_speed, text, "--results --keys"
    text = "where the time of a token goes (profile.json)"
    yield "profile", run_speed, text, "--results"
    text = "words per second of the built-in encoder (encoding.json)"
    yield "encoding", run_speed, text, "--results"
    yield "scale", run_speed, "more workers (scale.json)", "--results --again --part"


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m studies", description=__doc__)
    commands = made.add_subparsers(dest="study", required=True, metavar="STUDY")
    for name, run, text, options in studies():
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        for option in options.split():
            command.add_argument(option, **OPTIONS[option])
    return made


if __name__ == "__main__":
    sys.exit(main())
