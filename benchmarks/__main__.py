"""``python -m benchmarks COMMAND``; ``--help`` lists the commands."""

from __future__ import annotations

import argparse
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from benchmarks import (
    columns,
    corpus,
    defaults,
    defaults_report,
    growth,
    joint,
    likelihood,
    parsing,
    profile,
    rare_chunks,
    report,
    run,
    scale,
    single,
    speed,
    tune,
)
from benchmarks.jobs import Bench
from benchmarks.parsers import SYSTEMS as PARSERS
from benchmarks.systems import all_systems
from laso.errors import LasoError

HERE = Path(__file__).parent
COMMANDS = {
    "tune": "choose settings on a held-out tenth of the training data (chosen.json)",
    "run": "measure all systems on the test data (peers.json)",
    "growth": "measure how time and memory grow (growth.json)",
    "joint": "two layers of labels at once (joint.json), which is not part of all",
    "single": "one sentence at a time, and memory (single.json), which is not part of all",
    "likelihood": "L-BFGS at equal settings (likelihood.json), which is not part of all",
    "defaults": "learners on several corpora (defaults.json), which is not part of all",
    "scale": "more workers (scale.json), which is not part of all",
    "speed": "first label, start, loading (speed.json), which is not part of all",
    "parsing": "dependency parsers (parsing.json), which is not part of all",
    "profile": "where the time of a token goes (profile.json), which is not part of all",
    "report": "make the report and the plots from the JSON files",
    "all": "all of these, one after the other",
}


def main(arguments: list[str] | None = None) -> int:
    """Run a command; finished measurements are kept and not repeated."""
    options = parser().parse_args(arguments)
    if options.command == "parsing":
        return parse_trees(options)
    systems = all_systems()
    if options.systems:
        unknown = [name for name in options.systems if name not in systems]
        if unknown:
            say(f"unknown system {unknown[0]!r}: there are {', '.join(systems)}")
            return 2
        systems = {name: systems[name] for name in options.systems}
    configs = [config for system in systems.values() for config in system.defaults]
    unknown = [name for name in options.configs if name not in configs]
    if unknown:
        say(f"unknown configuration {unknown[0]!r}: there are {', '.join(configs)}")
        return 2
    results = options.results or HERE / "results" / ("quick" if options.quick else "")
    steps = ["tune", "run", "growth", "report"] if options.command == "all" else [options.command]
    try:
        with tempfile.TemporaryDirectory(prefix="laso-benchmarks-") as folder:
            bench = Bench(
                Path(folder),
                results.resolve(),
                say,
                quick=options.quick,
                again=options.again,
                configs=tuple(options.configs),
            )
            for step in steps:
                if step == "report":
                    for path in report.write(bench.results):
                        say(f"wrote {path}")
                elif step == "defaults":
                    defaults.run(say)
                    columns.run(say, defaults.RESULTS)
                    rare_chunks.run(say, defaults.RESULTS)
                    say(f"wrote {defaults_report.report()}")
                elif step == "speed":
                    say(f"wrote {speed.run(bench.results, options.keys, say)}")
                elif step == "profile":
                    say(f"wrote {profile.run(bench.results, say)}")
                elif step == "scale":
                    made = scale.run(bench.results, say, part=options.part, again=options.again)
                    say(f"wrote {made}")
                elif step == "growth":
                    growth.growth(bench, systems, options.corpus)
                elif step == "single":
                    files = corpus.files(options.corpus, bench.work, quick=options.quick)
                    say(f"wrote {single.run(files, bench.work, bench.results, say)}")
                elif step == "likelihood":
                    files = corpus.files(options.corpus, bench.work, quick=options.quick)
                    say(f"wrote {likelihood.run(files, bench.work, bench.results, say)}")
                elif step == "joint":
                    files = corpus.files(options.corpus, bench.work, quick=options.quick)
                    few = corpus.warmup_file(files.train, bench.work)
                    say(f"wrote {joint.run(files, few, bench.work, bench.results, say)}")
                else:
                    files = corpus.files(options.corpus, bench.work, quick=options.quick)
                    if step == "tune":
                        held_out = corpus.held_out(files, bench.work)
                        tune.tune(bench, list(systems.values()), held_out)
                    else:
                        runs = options.runs or (1 if options.quick else 3)
                        run.run(
                            bench, list(systems.values()), files, runs=runs, corpus=options.corpus
                        )
    except KeyboardInterrupt:
        say("interrupted: what was finished is kept, and the same command goes on from there")
        return 130
    except LasoError as error:
        say(str(error))
        return 1
    if bench.failures:
        say(f"failed: {', '.join(bench.failures)}")
    return 1 if bench.failures else 0


def parse_trees(options: argparse.Namespace) -> int:
    """Measure parsers, which have systems of their own; models are kept in the folder ``work``."""
    only = options.systems or []
    unknown = [name for name in only if name not in PARSERS]
    if unknown:
        say(f"unknown system {unknown[0]!r}: there are {', '.join(PARSERS)}")
        return 2
    results = (options.results or HERE / "results").resolve()
    work = options.work or Path(tempfile.gettempdir(), "laso-parsing")
    chosen = parsing.Chosen(only, options.configs, options.tags)
    say(f"wrote {parsing.run(work.resolve(), results, say, chosen, again=options.decode)}")
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = "\n".join(f"{name}: {text}" for name, text in COMMANDS.items())
    made.formatter_class = argparse.RawDescriptionHelpFormatter
    made.epilog = commands
    made.add_argument("command", choices=COMMANDS)
    made.add_argument("--quick", action="store_true", help="a small slice of the data, one run")
    made.add_argument("--again", action="store_true", help="measure again what is finished")
    made.add_argument("--runs", type=int, help="runs of each configuration (3; 1 if --quick)")
    made.add_argument("--systems", nargs="+", metavar="NAME", help="only these systems")
    made.add_argument("--configs", nargs="+", default=[], metavar="NAME", help="only these")
    made.add_argument(
        "--keys", nargs="+", default=[], choices=speed.MEASURES, help="of speed: only these"
    )
    made.add_argument(
        "--part", choices=scale.PARTS, help="of scale: scores, or times, which need a quiet machine"
    )
    made.add_argument("--corpus", default="conll2000", choices=["conll2000", "bundled"])
    made.add_argument("--results", type=Path, metavar="FOLDER", help="where the results are kept")
    made.add_argument("--work", type=Path, metavar="FOLDER", help="of parsing: where models stay")
    made.add_argument(
        "--tags", nargs="+", default=[], choices=parsing.TAGS, help="of parsing: only these tags"
    )
    made.add_argument("--decode", action="store_true", help="of parsing: only decode once more")
    return made


def say(line: str) -> None:
    """Print a line of progress, with the time of day."""
    print(f"{datetime.now():%H:%M:%S} {line}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
