"""The reports of ``benchmarks.scale``: scale.md, scale_plan.md and the picture scale.svg."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from laso.experiments.measure import Row
from laso.experiments.plots import COLOURS, MARKERS, WIDTH, pyplot, save_figure

MADE = "`python -m benchmarks scale` made this page."
BILLION = 1_000_000_000
WORKERS = (1, 2, 16, 64)  # of the plan
LABELLING = {"files": "`laso tag` of a column file", "labelling": "`predict_stream` of lists"}


def write(results: Path, rows: list[Row]) -> Path:
    """Write the reports; return the path of the main one."""
    text = ["# More workers", "", MADE, ""]
    if bars := _bars(rows):
        text += [
            "## What was reached",
            "",
            "| | expected | measured |",
            "| --- | ---: | ---: |",
            *bars,
            "",
        ]
    for name in _corpora(rows, "epochs"):
        text += [f"## Two threads, {name}", "", *_speed(rows, name), ""]
    for name in _corpora(rows, "learning"):
        text += [f"## Shards and scores, {name}", "", *_scores(rows, name), ""]
    for name in _corpora(rows, "mixing"):
        text += [f"## Ways to mix, {name}", "", *_mixings(rows, name), ""]
    if some := _of(rows, "backends"):
        text += [f"## Backends, {some[0]['what'].partition(', ')[2]}", "", *_backends(some), ""]
    for kind, what in LABELLING.items():
        if some := _of(rows, kind):
            text += [f"## Labelling, {what}", "", *_labelling(some), ""]
    path = results / "scale.md"
    path.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")
    _plan(rows, results)
    return path


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
    lines = [
        f"Threads of one process; medians of {1 + max(row['number'] for row in some)} runs. An",
        "epoch is the median one; the first ones mix more often.",
        "",
        "| shards | threads | seconds an epoch | seconds of all epochs |",
        "| ---: | ---: | ---: | ---: |",
    ]
    for shards in sorted({row["shards"] for row in some}):
        those = [row for row in some if row["shards"] == shards]
        epoch, all_s = _median(those, "epoch_s"), _median(those, "train_s")
        lines.append(f"| {shards} | {those[0]['workers']} | {epoch:.3f} | {all_s:.2f} |")
    return lines


def _scores(rows: list[Row], name: str) -> list[str]:
    some = _of(rows, "learning", what=f"learning, {name}")
    epochs = [n for n in (1, 2, 5, 10) if n <= max(row["epochs"] for row in some)]
    lines = [
        "The test score of seed 0 after some epochs, and that of the last epoch: the mean over",
        "seeds, ± the standard deviation. The last column has the bytes that travel in the last",
        "epoch if each shard has a worker of its own.",
        "",
        f"| shards | {' | '.join(f'after {n}' for n in epochs)} | epochs | last | seeds | MB |",
        f"| ---: | {' | '.join('---:' for _ in epochs)} | ---: | ---: | ---: | ---: |",
    ]
    for shards, scores in _means(rows, name).items():
        row = next(each for each in some if each["shards"] == shards)
        shown = " | ".join(f"{row['scores'][n - 1]:.2f}" for n in epochs)
        spread = f" ± {statistics.stdev(scores):.2f}" if len(scores) > 1 else ""
        lines.append(
            f"| {shards} | {shown} | {row['epochs']} | {statistics.mean(scores):.2f}{spread} "
            f"| {len(scores)} | {row['bytes'] / 1e6:.1f} |"
        )
    return lines


def _mixings(rows: list[Row], name: str) -> list[str]:
    some = _of(rows, "mixing", what=f"mixing, {name}")
    some += _of(rows, "learning", what=f"learning, {name}", seed=0)
    shards = sorted({row["shards"] for row in _of(rows, "mixing")})
    lines = [
        "The test score after the last epoch, of seed 0.",
        "",
        f"| `mixing=` | {' | '.join(f'{n} shards' for n in shards)} |",
        f"| --- | {' | '.join('---:' for _ in shards)} |",
    ]
    for mixing in dict.fromkeys(row["mixing"] for row in some):
        found = {row["shards"]: row["f"] for row in some if row["mixing"] == mixing}
        shown = " | ".join(f"{found[n]:.2f}" if n in found else "" for n in shards)
        lines.append(f'| "{mixing}" | {shown} |')
    return lines


def _epochs_by_backend(rows: list[Row]) -> dict[str, float]:
    """Return the seconds of an epoch with each backend."""
    names = dict.fromkeys(row["backend"] for row in rows)
    some = {name: [row["epoch_s"] for row in rows if row["backend"] == name] for name in names}
    return {name: statistics.median(seconds) for name, seconds in some.items()}


def _backends(rows: list[Row]) -> list[str]:
    lines = [
        "Two shards on two workers; the median epoch without the first, and of that the median of",
        f"{1 + max(row['number'] for row in rows)} runs, in which the backends take turns.",
        "",
        "| backend | seconds an epoch | against threads | MB an epoch |",
        "| --- | ---: | ---: | ---: |",
    ]
    by_backend = _epochs_by_backend(rows)
    base = next(iter(by_backend.values()))
    for name, seconds in by_backend.items():
        sent = next(row["bytes"] for row in rows if row["backend"] == name) / 1e6
        lines.append(f"| {name} | {seconds:.2f} | {seconds / base:.2f} | {sent:.1f} |")
    return lines


def _labelling(rows: list[Row]) -> list[str]:
    lines = [
        "Copies of CoNLL-2000's test data; medians.",
        "",
        "| backend | workers | seconds | thousand tokens a second | against one |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    for backend in dict.fromkeys(row["backend"] for row in rows):
        some = [row for row in rows if row["backend"] == backend]
        base = _median([row for row in some if row["workers"] == 1], "train_s")
        for workers in sorted({row["workers"] for row in some}):
            those = [row for row in some if row["workers"] == workers]
            seconds, speed = _median(those, "train_s"), _median(those, "tokens_per_s")
            assert seconds is not None
            assert speed is not None
            against = f"{base / seconds:.2f}" if base else ""
            lines.append(
                f"| {backend} | {workers} | {seconds:.2f} | {speed / 1000:.0f} | {against} |"
            )
    return lines


# --------------------------------------------------------------------------- the plan


def _plan(rows: list[Row], results: Path) -> None:
    """Write what a billion tokens would take, and the picture of scores over epochs."""
    text = ["# A billion tokens", "", MADE, ""]
    for name in _corpora(rows, "epochs"):
        one = _of(rows, "epochs", what=f"epochs, {name}", shards=1)
        two = _of(rows, "epochs", what=f"epochs, {name}", shards=2)
        if one and two:
            text += [f"## Time and bytes, as for {name}", "", *_constants(one, two), ""]
    if _of(rows, "learning"):
        _picture(rows, results / "scale.svg")
        text += [
            "## Scores over epochs",
            "",
            "The shards were learned one after the other, which gives the same weights.",
            "",
            "![Test scores over epochs for 1 to 64 shards](scale.svg)",
            "",
        ]
    path = results / "scale_plan.md"
    path.write_text("\n".join(text).rstrip() + "\n", encoding="utf-8")


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
    cells: list[tuple[str, Callable[[int], str]]] = [
        ("features, once, hours", lambda n: f"{BILLION * encode / n / 3600:.2f}"),
        ("an epoch, hours", lambda n: f"{BILLION * learn / n / 3600:.2f}"),
        ("files of each, GB", lambda n: f"{BILLION * row['token_bytes'] / n / 1e9:.1f}"),
    ]
    return [
        f"Measured on {row['tokens']:,} tokens with {row['rows']:,} features that have weights:",
        f"{1e6 * encode:.1f} µs a token for features, {1e6 * learn:.1f} µs a token and epoch to",
        f"learn, {row['token_bytes']:.0f} bytes a token in files, {1000 * mixing:.0f} ms to mix",
        f"two shards and {row['weight_bytes'] / 1e6:.0f} MB of weights. So for a billion tokens,",
        "with as many shards as workers:",
        "",
        f"| workers | {' | '.join(str(n) for n in WORKERS)} |",
        f"| --- | {' | '.join('---:' for _ in WORKERS)} |",
        *(f"| {what} | {' | '.join(map(shown, WORKERS))} |" for what, shown in cells),
    ]


def _picture(rows: list[Row], path: Path) -> Path:
    """Plot the test score over the epochs, a line for each number of shards."""
    names = _corpora(rows, "learning")
    figure, axes = pyplot.subplots(
        1, len(names), figsize=(WIDTH, 4.2), layout="constrained", squeeze=False
    )
    lines: dict[str, Any] = {}
    for axis, name in zip(axes[0], names, strict=True):
        some = _of(rows, "learning", what=f"learning, {name}", seed=0)
        for row in sorted(some, key=lambda row: row["shards"]):
            number = row["shards"].bit_length() - 1
            label = "1 shard" if row["shards"] == 1 else f"{row['shards']} shards"
            (lines[label],) = axis.plot(
                range(1, len(row["scores"]) + 1),
                row["scores"],
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
            )
        scores = [score for row in some for score in row["scores"]] or [100.0]
        axis.set_ylim(max(min(scores), max(scores) - 4.0) - 0.2, max(scores) + 0.2)
        axis.set(xlabel="epochs", ylabel="test score")
        axis.set_title(name)
        axis.grid(alpha=0.25)
    figure.legend(lines.values(), lines, loc="outside lower center", ncols=len(lines))
    return save_figure(figure, path)
