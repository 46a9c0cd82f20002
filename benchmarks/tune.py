"""Choose settings on a held-out tenth of the training data: results/chosen.json.

One setting after the other takes the value with the best held-out F, the others as they are; of
equally good values the first in the list. Test data are never looked at.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.corpus import Files
from benchmarks.jobs import Bench, Row, load, save, versions
from benchmarks.systems import Settings, System


def tune(bench: Bench, systems: list[System], files: Files) -> dict[str, Row]:
    """The settings chosen for each configuration, with all that was tried."""
    path = bench.results / "chosen.json"
    chosen: dict[str, Row] = load(path) or {}
    for system in systems:
        for config in system.defaults:
            key = f"{system.name}/{config}"
            missing = system.missing(config)
            if missing:
                bench.say(f"{key}: skipped, {missing}")
                continue
            entry = chosen.get(key, {})
            if bench.again or entry.get("versions") != versions(system):
                entry = {"versions": versions(system), "trials": []}
            if entry.get("settings") and _tried_all(entry, system, config):
                bench.say(f"{key}: done before")
                continue
            chosen[key] = entry

            def keep() -> None:
                save(path, chosen)

            _descend(bench, system, config, entry, files, keep)
            keep()
            bench.say(f"{key}: {entry['settings']}, held-out F {entry['held_out_f']:.2f}")
    return chosen
