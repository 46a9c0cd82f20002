"""The reports, made from the JSON files alone, and plots if matplotlib is installed.

Every number in them comes from a measurement; missing measurements are counted, not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from studies.measure import Row, format_settings, format_table, load, table
from studies.measure import write as write_file
from studies.peers import joint
from studies.peers.growth import MEASURES, exponents

OURS, CRFSUITE, VW = "laso", "python-crfsuite", "vowpalwabbit"
ONLINE = ("ap", "pa")
FIRST_CALL_S, LATER_PROCESS_S = 20.0, 1.5


@dataclass(frozen=True)
class Bar:
    """A target: its subject and value, the measurement, and whether it was reached (or None)."""

    what: str
    bar: str
    measured: str
    reached: bool | None = None


def total(row: Row) -> float:
    """Return the seconds from the file to the trained model."""
    return float(row["read_s"] + row["features_s"] + row["train_s"])


def bars(rows: list[Row]) -> list[Bar]:
    """Compare the measurements with the targets.

    All comparisons with a peer use one model of ours: the fastest to train of those whose F is at
    least the peer's. For CRFsuite's online algorithms, each measure is the best of any of them.
    """
    online = [row for row in rows if row["system"] == CRFSUITE and row["config"] in ONLINE]
    batch = [row for row in rows if row["system"] == CRFSUITE and row["config"] == "lbfgs"]
    vw = [row for row in rows if row["system"] == VW]
    ours = [row for row in rows if row["system"] == OURS]
    return [
        _faster("training, CRFsuite online", 5.0, ours, online),
        _faster("training, CRFsuite L-BFGS", 10.0, ours, batch),
        _speed("decoding, CRFsuite", 10.0, ours, online + batch, online),
        _smaller("peak memory in training, CRFsuite online", "peak_mb", 0.5, ours, online),
        _smaller("model on disk, CRFsuite online", "model_bytes", 0.5, ours, online),
        _smaller("model on disk, CRFsuite L-BFGS", "model_bytes", 0.5, ours, batch),
        _faster("training, Vowpal Wabbit", 1.0, ours, vw),
        _speed("decoding, Vowpal Wabbit", 1.0, ours, vw, vw),
        _below("first call ever, compilation included", "first_call_s", FIRST_CALL_S, ours),
        _below("first labels in a later process", "later_process_s", LATER_PROCESS_S, ours),
    ]


def _match(ours: list[Row], peers: list[Row]) -> Row | None:
    """Return our model that trains fastest among those with at least the best peer's F."""
    target = max(row["f"] for row in peers)
    return min((row for row in ours if row["f"] >= target), key=total, default=None)


def _compared(what: str, bar: str, ours: list[Row], peers: list[Row]) -> Row | Bar:
    """Return our model to compare, or the target with the reason why there is none."""
    if not ours or not peers:
        return Bar(what, bar, "not measured")
    row = _match(ours, peers)
    if row is None:
        f, best = max(row["f"] for row in peers), max(row["f"] for row in ours)
        return Bar(what, bar, f"no model of ours has its F ({best:.2f} against {f:.2f})", False)
    return row


def _faster(what: str, times: float, ours: list[Row], peers: list[Row]) -> Bar:
    bar = f"{_factor(times)} at no lower F"
    row = _compared(what, bar, ours, peers)
    if isinstance(row, Bar):
        return row
    peer = min(peers, key=total)
    ratio = total(peer) / total(row)
    text = f"{ratio:.2f} times ({row['config']}, {total(row):.2f} s; {peer['config']}, "
    return Bar(what, bar, f"{text}{total(peer):.2f} s)", _at_least(ratio, times))


def _speed(what: str, times: float, ours: list[Row], peers: list[Row], as_good: list[Row]) -> Bar:
    bar = f"{_factor(times)} in tokens per second"
    row = _compared(what, bar, ours, as_good)
    if isinstance(row, Bar):
        return row
    peer = max(peers, key=lambda row: float(row["tokens_per_s"]))
    ratio = row["tokens_per_s"] / peer["tokens_per_s"]
    text = f"{ratio:.2f} times ({row['config']}, {row['tokens_per_s']:,.0f}; "
    text += f"{peer['config']}, {peer['tokens_per_s']:,.0f})"
    return Bar(what, bar, text, _at_least(ratio, times))


def _smaller(what: str, name: str, part: float, ours: list[Row], peers: list[Row]) -> Bar:
    bar = f"at most {part:g} times at no lower F"
    row = _compared(what, bar, ours, peers)
    if isinstance(row, Bar):
        return row
    peer = min(peers, key=lambda row: float(row[name]))
    ratio = row[name] / peer[name]
    text = f"{ratio:.2f} times ({row['config']}, {size(name, row)}; "
    return Bar(what, bar, f"{text}{peer['config']}, {size(name, peer)})", ratio <= part)


def _below(what: str, name: str, limit: float, ours: list[Row]) -> Bar:
    bar = f"under {limit:g} s"
    known = [row for row in ours if row.get(name) is not None]
    if not known:
        return Bar(what, bar, "not measured")
    worst = max(known, key=lambda row: float(row[name]))
    return Bar(what, bar, f"{worst[name]:.2f} s ({worst['config']})", worst[name] < limit)


def _factor(times: float) -> str:
    return "faster" if times == 1.0 else f"at least {times:g} times as fast"


def _at_least(ratio: float, times: float) -> bool:
    return ratio > times if times == 1.0 else ratio >= times


def size(name: str, row: Row) -> str:
    """Return the size of memory or of a file as text."""
    return f"{row[name]:,.0f} MB" if name == "peak_mb" else f"{row[name] / 1e6:.2f} MB"


def report(peers: list[Row], growth: list[Row], chosen: dict[str, Row]) -> str:
    """Return the text of report.md."""
    parts = ["# Benchmarks", "Made by `python -m studies report` from the JSON files beside it."]
    if peers:
        parts += [_conditions(peers), "## Systems", _systems(peers)]
        parts += ["## What was asked for", *_targets(bars(peers))]
    if any(row.get("first_call_s") is not None for row in peers):
        parts += ["## Starting", _starts(peers)]
    if chosen:
        parts += ["## Settings chosen on held-out data", _choices(chosen)]
    if growth:
        parts += ["## Growth", _growth(growth)]
    return "\n\n".join(parts) + "\n"


def summary(peers: list[Row]) -> str:
    """Return the text of peers.md, which README.md includes."""
    parts = [
        "# Peers",
        "Chunking of CoNLL-2000 with CRFsuite's template, settings of all chosen on held-out data. "
        "Everything else that was measured is in the [report](report.md).",
        _systems(peers),
        *_targets(bars(peers)),
        _conditions(peers),
    ]
    return "\n\n".join(parts) + "\n"


def _conditions(rows: list[Row]) -> str:
    corpora = sorted({row["corpus"] for row in rows})
    machines = sorted({format_settings(row["machine"]) for row in rows})
    versions = sorted({f"{k} {v}" for row in rows for k, v in row["versions"].items()})
    numbers = sorted({len(row["runs"]) for row in rows})
    runs = " or ".join(map(str, numbers)) + (" run" if numbers == [1] else " runs")
    text = f"Corpus: {'; '.join(corpora)}. Machine: {'; '.join(machines)}. "
    text += f"Versions: {', '.join(versions)}. Median of {runs}, each in fresh processes."
    defaults = [_name(row) for row in rows if not row["chosen_on_held_out"]]
    if defaults:
        text += f" With default settings, not chosen on held-out data: {', '.join(defaults)}."
    return text


def _name(row: Row) -> str:
    return f"{row['system']} {row['config']}"


def _systems(rows: list[Row]) -> str:
    columns = {
        "system": "{system}",
        "configuration": "{config}",
        "F": "{f:.2f}",
        "read s": "{read_s:.2f}",
        "features s": "{features_s:.2f}",
        "train s": "{train_s:.2f}",
        "total s": "{total:.2f}",
        "tokens/s": "{tokens_per_s:,.0f}",
        "peak MB": "{peak_mb:,.0f}",
        "model MB": "{mb:.2f}",
    }
    more = ({**row, "total": total(row), "mb": row["model_bytes"] / 1e6} for row in rows)
    return format_table(more, columns)


def _targets(lines: list[Bar]) -> list[str]:
    """Return a table of the measured targets, and a line about the others."""
    measured = [line for line in lines if line.reached is not None]
    cells = [[one.what, one.bar, one.measured, "yes" if one.reached else "no"] for one in measured]
    parts = [table(["what", "bar", "measured", "reached"], cells)] if cells else []
    absent = len(lines) - len(measured)
    if absent:
        has = "has" if absent == 1 else "have"
        command = "python -m studies peers"
        parts.append(
            f"{absent} of {len(lines)} comparisons {has} no measurement. To measure: `{command}`."
        )
    return parts


def _starts(rows: list[Row]) -> str:
    columns = {
        "system": "{system}",
        "configuration": "{config}",
        "first call ever s": "{first_call_s:.2f}",
        "later process s": "{later_process_s:.2f}",
    }
    return format_table((row for row in rows if row.get("first_call_s") is not None), columns)


def _choices(chosen: dict[str, Row]) -> str:
    columns = {
        "configuration": "{key}",
        "settings": "{text}",
        "held-out F": "{held_out_f:.2f}",
        "trials": "{n}",
    }
    finished = {key: entry for key, entry in chosen.items() if "settings" in entry}
    rows = (
        {**entry, "key": key, "text": format_settings(entry["settings"]), "n": len(entry["trials"])}
        for key, entry in finished.items()
    )
    return format_table(rows, columns)


def _growth(rows: list[Row]) -> str:
    columns = {"over": "{curve}", "system": "{system} {config}", "points": "{points}"}
    columns |= {f"exponent of {name}": f"{{{name}:.2f}}" for name in MEASURES}
    return format_table(exponents(rows), columns)


def write(results: Path) -> list[Path]:
    """Write the report and its plots; return the paths of the files."""
    peers = load(results / "peers.json") or []
    growth = load(results / "growth.json") or []
    chosen = load(results / "chosen.json") or {}
    path = results / "report.md"
    text = report(peers, growth, chosen)
    written = [path]
    if find_spec("matplotlib"):
        from studies import plots

        if peers:
            written.append(plots.peers(peers, results / "peers.svg"))
        if growth:
            written.append(plots.growth(growth, results / "growth.svg"))
        for plot in written[1:]:
            text += f"\n![{plot.stem}]({plot.name})\n"
    write_file(path, text)
    if peers:
        written.append(write_file(results / "peers.md", summary(peers)))
    layers = load(results / "joint.json") or []
    if any(row["system"] == joint.LASO for row in layers):
        written.append(write_file(results / "joint.md", joint.report(layers)))
    return written
