"""Speed where users feel it: rows {key, system, config, value, f} in results/speed.json.

Each function of MEASURES measures one key and returns its rows. A figure is the median or the
fastest of several runs, one at a time. Rows of keys that are not measured stay.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from studies import measure
from studies.measure import ROOT, Row, Say
from studies.speed import structures, tokens
from studies.speed.tokens import row

RUNS = 5
LASO = "laso"

LEARN = """
from laso import Chunker, Tagger
from laso.data import load_bundled
sentences = load_bundled()[0][:50]
X = [[token[:2] for token in s] for s in sentences]
y = [[token[2] for token in s] for s in sentences]
model = {name}(epochs=1).fit(X, y)
model.predict(X[:1])
"""
SAVE = LEARN + "import sys; model.save(sys.argv[1])"
LABEL = """
import sys
from laso import load_model
load_model(sys.argv[1]).predict([[("the", "DT"), ("cat", "NN"), ("sleeps", "VBZ")]])
"""
DECODE = """
import numpy as np
from laso import beam, make_dataset, perceptron
from laso.engine.machine import Machine, all_of, new_table
from laso.engine.options import options_for
from laso.examples.segmentation import Words
data = make_dataset([[[1], [2], [3]], [[2], [1]]], [[2, 0, 1], [2, 0]])
machine = Machine(Words, options_for(Words, beam(2), perceptron()))
machine.decode(data, all_of(data), new_table(1))
"""
LEARN_LARGE = """
import random, sys
from laso import Tagger
draw = random.Random(1)
words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=9)) for _ in range(60_000)]
X = [[draw.choice(words) for _ in range(20)] for _ in range(int(sys.argv[3]))]
y = [[draw.choice("ABCDEFGHIJ") for _ in x] for x in X]
model = Tagger(epochs=1).fit(X, y)
model.save(sys.argv[1])
model.save(sys.argv[2], compress=False)
"""
LOAD = """
import sys, time
from laso import load_model
options = {{{options}}}
load_model(sys.argv[1], **options)
times = []
for _ in range(9):
    began = time.perf_counter()
    load_model(sys.argv[1], **options)
    times.append(time.perf_counter() - began)
print(1000 * sorted(times)[4])
"""


def seconds(program: Sequence[str], environment: dict[str, str]) -> float:
    """Return the time of a process, from its start to its end.

    It finds bytecode, as after an installation, once a process before has written it.
    """
    everything = {**os.environ, **environment}
    everything.pop("PYTHONDONTWRITEBYTECODE", None)
    began = time.perf_counter()
    subprocess.run(program, env=everything, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def python(text: str, *arguments: str) -> list[str]:
    """Return the command that runs a program."""
    return [sys.executable, "-c", text, *arguments]


def installed(work: Path) -> Path:
    """Build a wheel, install it alone into a folder, and return that: for PYTHONPATH."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--wheel-dir", str(work)]
    subprocess.run([*wheel, str(ROOT)], check=True)
    site = work / "site"
    (file,) = work.glob("laso-*.whl")
    subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(file)], check=True)
    return site


def first_label(work: Path) -> list[Row]:
    """From the start of the first process after an installation to its first label."""
    site = installed(work)
    (file,) = work.glob("laso-*.whl")
    mb = file.stat().st_size / 1e6
    rows = []
    for name in ("Tagger", "Chunker"):
        times = []
        for i in range(RUNS):
            environment = {"PYTHONPATH": str(site), "LASO_CACHE": str(work / f"empty-{name}-{i}")}
            times.append(seconds(python(LEARN.format(name=name)), environment))
        value = statistics.median(times)
        config = f"{name}, learn from 50 sentences and label"
        rows.append(row("first_label_s", LASO, config, value, wheel_mb=round(mb, 2)))
    return rows


def own_first_decode(work: Path) -> list[Row]:
    """From the start of a process with an empty cache to the first decode of an own problem."""
    environment = {"PYTHONPYCACHEPREFIX": str(work / "bytecode")}
    times = []
    for i in range(RUNS - 1):
        environment["LASO_CACHE"] = str(work / f"own-{i}")
        times.append(seconds(python(DECODE), environment))
    value = statistics.median(times[1:])  # the first one has written bytecode
    return [row("own_first_decode_s", LASO, "laso.examples.segmentation", value)]


def start(work: Path) -> list[Row]:
    """From the start of a process to its first label, and a command from start to end."""
    model, text = str(work / "model.laso"), work / "text.txt"
    text.write_text("the DT\ncat NN\nsleeps VBZ\n\n")
    subprocess.run(python(SAVE.format(name="Tagger"), model), check=True)
    programs = {
        "from Python": python(LABEL, model),
        "laso tag": [str(Path(sys.executable).with_name("laso")), "tag", model, str(text)],
    }
    rows = []
    for config, program in programs.items():
        environment = {"PYTHONPYCACHEPREFIX": str(work / "bytecode")}
        seconds(program, environment)  # fills the caches
        times = [seconds(program, environment) for _ in range(2 * RUNS)]
        rows.append(row("start_s", LASO, config, statistics.median(times)))
    return rows


def load(work: Path) -> list[Row]:
    """The time to load a model of 10 MB or more, whose file the system has in memory."""
    usual, plain = str(work / "large.laso"), str(work / "plain.laso")
    subprocess.run(python(LEARN_LARGE, usual, plain, "6000"), check=True)
    files = {
        "Tagger": (usual, ""),
        "Tagger, compress=False": (plain, ""),
        "Tagger, compress=False, mmap=True": (plain, '"mmap": True'),
    }
    rows = []
    for config, (file, options) in files.items():
        program = python(LOAD.format(options=options), file)
        found = subprocess.run(program, check=True, capture_output=True, text=True)
        mb = round(Path(file).stat().st_size / 1e6, 2)
        rows.append(row("load_ms", LASO, config, float(found.stdout), model_mb=mb))
    return rows


MEASURES: dict[str, Callable[[Path], list[Row]]] = {
    "first_label_s": first_label,
    "own_first_decode_s": own_first_decode,
    "start_s": start,
    "load_ms": load,
    **tokens.MEASURES,
    **structures.MEASURES,
}
UNITS = ("s", "ms")  # how keys end
PEER = tokens.PEER
MEANINGS = {
    "first_label_s": "first label after an installation",
    "own_first_decode_s": "first decode of an own problem, compiled",
    "start_s": "process start to first label, warm",
    "load_ms": "load a model",
    **tokens.MEANINGS,
    **structures.MEANINGS,
}


def run(results: Path, keys: Sequence[str], say: Say) -> Path:
    """Measure the keys, all by default; return the file, in which other rows stay."""
    file = results / "speed.json"
    rows: list[Row] = measure.load(file) or []
    for key in keys or MEASURES:
        with tempfile.TemporaryDirectory(prefix="laso-speed-") as work:
            measured = MEASURES[key](Path(work))
        for one in measured:
            say(f"{key}, {one['config']}: {one['value']:.3f}")
        rows = in_order([one for one in rows if one["key"] != key] + measured)
        measure.save(file, rows)
    measure.write(results / "speed.md", table(rows))
    return file


def in_order(rows: Sequence[Row]) -> list[Row]:
    """Return the rows in the order of MEANINGS; those of a key stay as they are."""
    keys = list(MEANINGS)
    return sorted(rows, key=lambda one: keys.index(one["key"]) if one["key"] in keys else len(keys))


def table(rows: Sequence[Row]) -> str:
    """Return the rows as a table of Markdown, with the ratio to python-crfsuite where it is there.

    A ratio above 1 is to the advantage of the row's system.
    """
    head = ("what", "system", "configuration", "value", "F", "times python-crfsuite")
    lines = [f"| {' | '.join(head)} |", "|---|---|---|---:|---:|---:|"]
    for one in rows:
        ending = one["key"].rpartition("_")[2]
        unit = f" {ending}" if ending in UNITS and not one["key"].endswith("_per_s") else ""
        shown = f"{one['value']:,.0f}" if one["value"] >= 100 else f"{one['value']:.3g}"
        cells: tuple[str, ...] = (
            MEANINGS.get(one["key"], str(one["key"])),
            one["system"],
            one["config"],
            shown + unit,
            "" if one["f"] is None else f"{one['f']:.2f}",
            _ratio(one, rows),
        )
        lines.append(f"| {' | '.join(cells)} |")
    return f"# Speed\n\n{NOTES}\n\n" + "\n".join(lines) + "\n"


def _ratio(one: Row, rows: Sequence[Row]) -> str:
    """Return how many times as fast as python-crfsuite a row is; empty if there is no such row."""
    peers = [r for r in rows if (r["key"], r["system"]) == (one["key"], PEER)]
    same = [r for r in peers if r["config"] == one["config"]] or peers[:1]
    if not same or one["system"] == PEER or one["key"].endswith("_mb"):
        return ""
    ratio = one["value"] / same[0]["value"]
    return f"{ratio if one['key'].endswith('_per_s') else 1 / ratio:.1f}"


NOTES = """\
Made by `python -m studies speed`, one measurement after the other, each with the peers of its
key in the same run. Tokens are those of CoNLL-2000's test data unless a line names another corpus,
from raw words to labels on one thread; training is from the file to the saved model. F is that of
the labels; for layers of UD English EWT it is the share of words with all labels right. From file
to file, the fastest of up to five processes counts, all systems in turn. Keys were measured at
different hours on a shared machine, so compare within a key."""
