"""The reports of ``studies.speed.scale``: scale.md, scale_plan.md and the picture scale.svg."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from studies.measure import Row, table
from studies.measure import write as write_file
from studies.report import Sample

MADE = "`python -m studies scale` made this page."
BILLION = 1_000_000_000
WORKERS = (1, 2, 16, 64)  # of the plan
LABELLING = {"files": "`laso tag` of a column file", "labelling": "`predict_stream` of lists"}


def write(results: Path, rows: list[Row]) -> Path:
    """Write the reports; return the path of the main one."""
    parts = ["# More workers", MADE]
    if bars := _bars(rows):
        lines = ["| | expected | measured |", "| --- | ---: | ---: |", *bars]
        parts += ["## What was reached", "\n".join(lines)]
    for name in _corpora(rows, "epochs"):
        parts += [f"## Two threads, {name}", *_speed(rows, name)]
    for name in _corpora(rows, "learning"):
        parts += [f"## Shards and scores, {name}", *_scores(rows, name)]
    for name in _corpora(rows, "mixing"):
        parts += [f"## Ways to mix, {name}", *_mixings(rows, name)]
    if some := _of(rows, "backends"):
        parts += [f"## Backends, {some[0]['what'].partition(', ')[2]}", *_backends(some)]
    for kind, what in LABELLING.items():
        if some := _of(rows, kind):
            parts += [f"## Labelling, {what}", *_labelling(some)]
    _plan(rows, results)
    return write_file(results / "scale.md", "\n\n".join(parts) + "\n")


# --------------------------------------------------------------------------- rows


def _of(rows: list[Row], kind: str, **given: Any) -> list[Row]:
    """Return the rows of a kind of measurement, with some numbers."""
    kinds = [row for row in rows if row["what"].partition(", ")[0] == kind]
    return [row for row in kinds if all(row[name] == value for name, value in given.items())]


def _corpora(rows: list[Row], kind: str) -> list[str]:
    return list(dict.fromkeys(row["what"].partition(", ")[2] for row in _of(rows, kind)))


def _median(rows: Sequence[Row], name: str) -> float | None:
    return statistics.median(row[name] for row in rows) if rows else None


def _means(rows: list[Row], name: str) -> dict[int, list[float]]:
    """Return the scores of all seeds, by the number of shards."""
    some = _of(rows, "learning", what=f"learning, {name}")
    shards = sorted({row["shards"] for row in some})
    return {n: [row["f"] for row in some if row["shards"] == n] for n in shards}


# --------------------------------------------------------------------------- the main report


def _bars(rows: list[Row]) -> list[str]:
    """Return what was to be reached, with what was measured."""
    lines = []

    def bar(what: str, expected: str, value: float | None, form: str) -> None:
        if value is not None:
            lines.append(f"| {what} | {expected} | {value:{form}} |")

    for name in _corpora(rows, "epochs"):
        one, two = (
            _median(_of(rows, "epochs", what=f"epochs, {name}", shards=n), "epoch_s")
            for n in (1, 2)
        )
        if one and two:
            bar(f"speed-up of an epoch, 2 shards on 2 threads, {name}", "≥ 1.70", one / two, ".2f")
    for name in _corpora(rows, "learning"):
        some = _of(rows, "learning", what=f"learning, {name}")
        found = {(row["shards"], row["seed"]): row["f"] for row in some}
        for shards, expected in ((2, "≥ -0.10"), (16, "≥ -0.20")):
            seeds = [seed for n, seed in found if n == shards and (1, seed) in found]
            if seeds:
                gain = statistics.mean(found[shards, seed] - found[1, seed] for seed in seeds)
                what = f"score of {shards} shards against 1, {name}, seeds: {len(seeds)}"
                bar(what, expected, gain, "+.2f")
    by_backend = _epochs_by_backend(_of(rows, "backends"))
    threads = by_backend.pop("threading", None)
    for backend, seconds in by_backend.items():
        if threads:
            what = f"overhead of {backend} against threads"
            bar(what, "≤ 15 %", 100 * (seconds / threads - 1), "+.1f")
    for kind, what in LABELLING.items():
        some = _of(rows, kind, backend="threading")
        one, two = (_median([r for r in some if r["workers"] == n], "train_s") for n in (1, 2))
        if one and two:
            bar(f"speed-up of {what} with 2 threads", "≥ 1.80", one / two, ".2f")
    return lines


def _speed(rows: list[Row], name: str) -> list[str]:
    some = _of(rows, "epochs", what=f"epochs, {name}")
    lines = []
    for shards in sorted({row["shards"] for row in some}):
        those = [row for row in some if row["shards"] == shards]
        epoch, all_s = _median(those, "epoch_s"), _median(those, "train_s")
        lines.append([shards, those[0]["workers"], f"{epoch:.3f}", f"{all_s:.2f}"])
    return [
        f"Threads of one process; medians of {1 + max(row['number'] for row in some)} runs. An\n"
        "epoch is the median one; the first ones mix more often.",
        _table(["shards", "threads", "seconds an epoch", "seconds of all epochs"], lines),
    ]


def _table(head: list[str], lines: Iterable[Sequence[object]], *, left: int = 0) -> str:
    return table(head, ([str(cell) for cell in line] for line in lines), left=left)


def _scores(rows: list[Row], name: str) -> list[str]:
    some = _of(rows, "learning", what=f"learning, {name}")
    epochs = [n for n in (1, 2, 5, 10) if n <= max(row["epochs"] for row in some)]
    lines = []
    for shards, scores in _means(rows, name).items():
        row = next(each for each in some if each["shards"] == shards)
        shown = [f"{row['scores'][n - 1]:.2f}" for n in epochs]
        last = Sample(tuple(scores)).text()
        megabytes = f"{row['bytes'] / 1e6:.1f}"
        lines.append([shards, *shown, row["epochs"], last, len(scores), megabytes])
    head = ["shards", *(f"after {n}" for n in epochs), "epochs", "last", "seeds", "MB"]
    return [SCORES, _table(head, lines)]


SCORES = """\
The test score of seed 0 after some epochs, and that of the last epoch: the mean over
seeds, ± the standard deviation. The last column has the bytes that travel in the last
epoch if each shard has a worker of its own."""


def _mixings(rows: list[Row], name: str) -> list[str]:
    some = _of(rows, "mixing", what=f"mixing, {name}")
    some += _of(rows, "learning", what=f"learning, {name}", seed=0)
    shards = sorted({row["shards"] for row in _of(rows, "mixing")})
    lines = []
    for mixing in dict.fromkeys(row["mixing"] for row in some):
        found = {row["shards"]: row["f"] for row in some if row["mixing"] == mixing}
        lines.append([f'"{mixing}"', *(f"{found[n]:.2f}" if n in found else "" for n in shards)])
    head = ["`mixing=`", *(f"{n} shards" for n in shards)]
    return ["The test score after the last epoch, of seed 0.", _table(head, lines, left=1)]


def _epochs_by_backend(rows: list[Row]) -> dict[str, float]:
    """Return the seconds of an epoch with each backend."""
    names = dict.fromkeys(row["backend"] for row in rows)
    some = {name: [row["epoch_s"] for row in rows if row["backend"] == name] for name in names}
    return {name: statistics.median(seconds) for name, seconds in some.items()}


def _backends(rows: list[Row]) -> list[str]:
    by_backend = _epochs_by_backend(rows)
    base = next(iter(by_backend.values()))
    lines = []
    for name, seconds in by_backend.items():
        sent = next(row["bytes"] for row in rows if row["backend"] == name) / 1e6
        lines.append([name, f"{seconds:.2f}", f"{seconds / base:.2f}", f"{sent:.1f}"])
    return [
        "Two shards on two workers; the median epoch without the first, and of that the median of\n"
        f"{1 + max(row['number'] for row in rows)} runs, in which the backends take turns.",
        _table(["backend", "seconds an epoch", "against threads", "MB an epoch"], lines, left=1),
    ]


def _labelling(rows: list[Row]) -> list[str]:
    lines = []
    for backend in dict.fromkeys(row["backend"] for row in rows):
        some = [row for row in rows if row["backend"] == backend]
        base = _median([row for row in some if row["workers"] == 1], "train_s")
        for workers in sorted({row["workers"] for row in some}):
            those = [row for row in some if row["workers"] == workers]
            seconds, speed = _median(those, "train_s"), _median(those, "tokens_per_s")
            assert seconds is not None
            assert speed is not None
            against = f"{base / seconds:.2f}" if base else ""
            lines.append([backend, workers, f"{seconds:.2f}", f"{speed / 1000:.0f}", against])
    head = ["backend", "workers", "seconds", "thousand tokens a second", "against one"]
    return ["Copies of CoNLL-2000's test data; medians.", _table(head, lines, left=1)]


# --------------------------------------------------------------------------- the plan


def _plan(rows: list[Row], results: Path) -> None:
    """Write what a billion tokens would take, and the picture of scores over epochs."""
    parts = ["# A billion tokens", MADE]
    for name in _corpora(rows, "epochs"):
        one = _of(rows, "epochs", what=f"epochs, {name}", shards=1)
        two = _of(rows, "epochs", what=f"epochs, {name}", shards=2)
        if one and two:
            parts += [f"## Time and bytes, as for {name}", *_constants(one, two)]
    if _of(rows, "learning"):
        from studies import plots

        learned = {
            name: _of(rows, "learning", what=f"learning, {name}", seed=0)
            for name in _corpora(rows, "learning")
        }
        plots.shards(learned, results / "scale.svg")
        parts += [
            "## Scores over epochs",
            "The shards were learned one after the other, which gives the same weights.",
            "![Test scores over epochs for 1 to 64 shards](scale.svg)",
        ]
    write_file(results / "scale_plan.md", "\n\n".join(parts) + "\n")


def _constants(one: list[Row], two: list[Row]) -> list[str]:
    """Return the constants of one thread, and what follows for many tokens."""
    row = one[0]
    epoch, both = _median(one, "epoch_s"), _median(two, "epoch_s")
    features = _median(one, "features_s")
    assert epoch is not None
    assert both is not None
    assert features is not None
    learn, encode = epoch / row["tokens"], features / row["tokens"]
    mixing = max(0.0, both - epoch / 2)
    lines = [
        ["features, once, hours", *(f"{BILLION * encode / n / 3600:.2f}" for n in WORKERS)],
        ["an epoch, hours", *(f"{BILLION * learn / n / 3600:.2f}" for n in WORKERS)],
        ["files of each, GB"] + [f"{BILLION * row['token_bytes'] / n / 1e9:.1f}" for n in WORKERS],
    ]
    return [
        f"Measured on {row['tokens']:,} tokens with {row['rows']:,} features that have weights:\n"
        f"{1e6 * encode:.1f} µs a token for features, {1e6 * learn:.1f} µs a token and epoch to\n"
        f"learn, {row['token_bytes']:.0f} bytes a token in files, {1000 * mixing:.0f} ms to mix\n"
        f"two shards and {row['weight_bytes'] / 1e6:.0f} MB of weights. So for a billion tokens,\n"
        "with as many shards as workers:",
        _table(["workers", *map(str, WORKERS)], lines, left=1),
    ]
