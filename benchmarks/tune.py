"""Choose settings on a held-out tenth of the training data: results/chosen.json.

One setting after the other takes the value with the best held-out F while the others stay fixed; of
equally good values the first wins. Test data are not used.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.corpus import Files
from benchmarks.jobs import Bench, versions
from benchmarks.systems import Settings, System
from laso.experiments.measure import Row, coordinate_search, format_settings, load, save

FORMS = "python-crfsuite/forms"


def tune(bench: Bench, systems: list[System], files: Files) -> dict[str, Row]:
    """Choose settings for each configuration; return them with all trials.

    ``files`` are the rest of the training data and the held-out tenth.
    """
    chosen: dict[str, Row] = load(bench.results / "chosen.json") or {}
    for system in systems:
        for config in bench.chosen(system):
            with bench.collect_failure(f"{system.name} {config}"):
                tune_one(bench, system, config, files, chosen)
    return chosen


def tune_one(
    bench: Bench, system: System, config: str, files: Files, chosen: dict[str, Row]
) -> None:
    """Choose the settings of one configuration; store them in ``chosen`` and its file."""
    path, key = bench.results / "chosen.json", f"{system.name}/{config}"
    start = dict(system.defaults[config])
    if "form" in start:
        start["form"] = fastest_form(bench, system, files, chosen)
    entry = chosen.get(key, {})
    if bench.again or entry.get("versions") != versions(system):
        entry = {"versions": versions(system), "trials": []}
    chosen[key] = entry
    trials = Trials(bench, system, files, entry["trials"], lambda: save(path, chosen))
    grid = system.grid[config]
    if bench.quick:
        grid = {name: values[:2] for name, values in grid.items()}
    best = coordinate_search(start, grid, trials)
    entry |= {"settings": best, "held_out_f": trials(best)}
    save(path, chosen)
    bench.say(f"{key}: chosen {format_settings(best)}")


class Trials:
    """Computes the held-out F of settings; trials are cached and saved."""

    def __init__(
        self,
        bench: Bench,
        system: System,
        files: Files,
        done: list[Row],
        keep: Callable[[], None],
    ) -> None:
        self._bench, self._system, self._files = bench, system, files
        self._done, self._keep = done, keep

    def __call__(self, settings: Settings) -> float:
        """Return the held-out F of settings, from the cache if possible."""
        for trial in self._done:
            if trial["settings"] == settings:
                return float(trial["f"])
        result = self._bench.measure(self._system, settings, self._files)
        trial = {"settings": settings, "f": result["f"]}
        self._done.append(trial)
        self._keep()
        self._bench.say(
            f"{self._system.name}, {format_settings(settings)}: "
            f"held-out F {trial['f']:.2f}, trained in {result['train_s']:.1f} s"
        )
        return float(trial["f"])


def fastest_form(bench: Bench, system: System, files: Files, chosen: dict[str, Row]) -> str:
    """Return the fastest form to pass features in, by the times stored in ``chosen``."""
    if FORMS not in chosen:
        chosen[FORMS] = bench.job(system, "forms", train=files.train)
        bench.say(f"{system.name}: seconds to pass features: {chosen[FORMS]}")
    return min(chosen[FORMS], key=lambda form: float(chosen[FORMS][form]))
