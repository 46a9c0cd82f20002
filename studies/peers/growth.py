"""How time and memory grow with the data, beam, labels, length, templates, words: growth.json.

Each curve changes one quantity. The fitted exponent is the slope on logarithmic axes, so that an
exponent of 1 is linear growth. The number of epochs is small, since only speed is measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from laso.data import Sentence
from studies import corpus
from studies.measure import Job, Row, Settings, machine, run_missing
from studies.peers.systems import System, absent
from studies.peers.tagging import Bench, versions

EPOCHS = 3
BASE = 2000  # the number of sentences in all other curves
FACTORS = (0.25, 0.5, 1.0, 4.0)
BEAMS = (1, 2, 4, 8, 16, 32, 64)
LABELS = (10, 30, 100, 300, 1000, 3000, 10_000)
TEMPLATES = (4, 8, 16, 32, 64)
SPELLINGS = (1, 4, 16, 64)  # of each word, so that the model outgrows the processor's cache
LENGTHS = (10, 30, 100, 300, 1000)
CHEAP_LABELS = 100  # the most labels for CRFsuite, whose exact search is quadratic in them
QUICK = 3  # points of each curve
MEASURES = ("train_s", "decode_s", "peak_mb")


class Point(NamedTuple):
    """One point of a curve: ``x`` is the quantity that the curve changes."""

    curve: str
    x: float
    train: list[Sentence]
    test: list[Sentence]
    beam: int | None  # None: all systems, ours with beams of 1 and 5
    templates: int | None = None  # of ours; None: CRFsuite's template


def points(train: list[Sentence], test: list[Sentence], *, quick: bool) -> Iterator[Point]:
    """Yield all points to measure."""
    n = QUICK if quick else None
    some = train[:BASE]
    for factor in FACTORS[:n]:
        more = corpus.times(train, factor)
        yield Point("sentences", len(more), more, test, None)
    for beam in BEAMS[:n]:
        yield Point("beam", beam, some, test, beam)
    for labels in LABELS[:n]:
        first, second = (corpus.relabelled(part, labels) for part in (some, test))
        yield Point("labels", labels, first, second, None)
    for length in LENGTHS[:n]:
        first, second = (corpus.rejoined(part, length) for part in (some, test))
        yield Point("length", length, first, second, None)
    for number in TEMPLATES[:n]:
        yield Point("templates", number, some, test, None, number)
    for spellings in SPELLINGS[:n]:
        first, second = (corpus.respelled(part, spellings) for part in (train, test))
        words = len({token[0] for sentence in first for token in sentence})
        yield Point("words", words, first, second, None)


def growth(bench: Bench, systems: dict[str, System], name: str) -> list[Row]:
    """Measure all points that have no measurement yet."""
    train, test = corpus.load(name)
    if bench.quick:
        train, test = train[:100], test[:50]

    def jobs() -> Iterator[Job]:
        for point in points(train, test, quick=bench.quick):
            for system, config, settings in measured(systems, point):
                if missing := absent(system.module):
                    bench.say(f"{system.name} {config}: skipped, {missing}")
                    continue
                conditions: Row = {
                    "curve": point.curve,
                    "x": point.x,
                    "system": system.name,
                    "config": config,
                    "settings": settings,
                    "corpus": f"{name}, a slice" if bench.quick else name,
                    "versions": versions(system),
                    "machine": machine(),
                }
                yield conditions, partial(measure_point, bench, system, settings, point)

    tell = "{curve} {x:g}, {system} {config}: train {train_s:.2f} s, decode {decode_s:.2f} s"
    return run_missing(
        bench.results / "growth.json",
        jobs(),
        lambda row: bench.say(tell.format(**row)),
        again=bench.again,
        replaced=("curve", "x", "system", "config"),
        failures=bench.failures,
    )


def measure_point(bench: Bench, system: System, settings: Settings, point: Point) -> Row:
    """Return what is measured of a system at a point."""
    files = corpus.write_files(bench.work, "growth", point.train, point.test)
    if system.name == "laso":
        warm(bench, system, settings, files.train)
    return bench.measure(system, settings, files, growth=True)


def measured(systems: dict[str, System], point: Point) -> Iterator[tuple[System, str, Settings]]:
    """Yield the systems and settings to measure at a point."""
    if "laso" in systems:
        for beam in [1, 5] if point.beam is None else [point.beam]:
            settings = systems["laso"].defaults["beam 1"] | {"queue": beam, "epochs": EPOCHS}
            if point.templates is not None:
                settings |= {"templates": point.templates}
            yield systems["laso"], f"beam {beam}" if point.beam is None else "beam", settings
    peer = systems.get("python-crfsuite")
    cheap = point.curve != "labels" or point.x <= CHEAP_LABELS
    if peer is not None and cheap and point.beam is None and point.templates is None:
        yield peer, "ap", peer.defaults["ap"] | {"max_iterations": EPOCHS}


def warm(bench: Bench, system: System, settings: Settings, path: Path) -> None:
    """Fill the cache of compiled code if it is empty."""
    if bench.cache is not None and not bench.cache.exists():
        bench.say("filling the cache of compiled code")
        model = bench.work / "start.bin"
        train = corpus.warmup_file(path, bench.work)
        given = {"settings": settings, "model": model}
        bench.job(system, "start", first=True, train=train, **given)
        bench.job(system, "decode", test=path, chunks=False, **given)  # a large input needs more


def exponents(rows: list[Row]) -> list[Row]:
    """Return the fitted exponents of each curve and system, and the number of points."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["curve"], row["system"], row["config"]), []).append(row)
    result = []
    for (curve, system, config), group in groups.items():
        if len({row["x"] for row in group}) < 2:
            continue
        fitted = {name: slope([(row["x"], row[name]) for row in group]) for name in MEASURES}
        result.append(
            {"curve": curve, "system": system, "config": config, "points": len(group), **fitted}
        )
    return result


def slope(pairs: list[tuple[float, float]]) -> float:
    """Return the least-squares slope of log y over log x."""
    xs, ys = ([math.log(value) for value in column] for column in zip(*pairs, strict=True))
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return covariance / sum((x - mean_x) ** 2 for x in xs)
