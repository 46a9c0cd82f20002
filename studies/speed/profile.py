"""Where the time of a token goes: nanoseconds for each stage of labelling, for several tasks.

The stages are timed one by one on all of the test data, on one thread, as processor time: the best
of several rounds. Inside the engine they are differences between searches with other tables of
weights: one without rows has keys and search only, and one whose features share one row has no
rows from far memory. A search without weights goes straight on, so that what real scores cost it
counts as look-ups; but where factors bound scores, as those of ``JointTagger``, it can skip nothing
and takes longer than others.
"""

from __future__ import annotations

import getpass
import io
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from laso.data import Sentence
from laso.data.formats import Format
from laso.engine import layout as at
from laso.engine.machine import all_of, new_table
from laso.features.column_text import Batches, Reader, written
from laso.features.value_tables import NewValues, known_values
from studies import corpus
from studies.measure import Row, Say, save, table, write

ROUNDS = 5
SENTENCES = 2000  # to learn from
BATCH = 20_000  # tokens
FILE = ("split", "read and number", "items", "answers", "write")
COLUMNS = ("columns: read and number", "columns: items", "columns: answers")
ENGINE = ("keys and search", "look-ups and sums", "rows from memory")
STAGES = (*FILE, *ENGINE, *COLUMNS)


def estimators() -> Iterator[tuple[str, Any, Callable[[Sentence], Any], int]]:
    """Yield names, estimators, what their labels are, and the number of input columns."""
    from laso import Chunker, JointTagger, Tagger
    from laso.features.templates import CHUNKING

    def chunks(sentence: Sentence) -> Any:
        return [token[2] for token in sentence]

    def layers(sentence: Sentence) -> Any:
        return [token[1:] for token in sentence]

    given: dict[str, Any] = {"epochs": 2, "threads": 1}
    for name, queue in (("greedy", 1), ("beam 5", 5)):
        tagger = Tagger(features=CHUNKING, queue=queue, **given)
        yield f"Tagger, {name}, CRFsuite's template", tagger, chunks, 2
    yield "Tagger", Tagger(**given), chunks, 2
    yield "Chunker", Chunker(**given), chunks, 2
    yield "JointTagger", JointTagger(layers=["pos", "chunk"], **given), layers, 1


def trained(name: str, estimator: Any, label: Callable[[Sentence], Any], columns: int) -> Any:
    """Return the model of a file that an earlier run has left, or train it."""
    from laso import __version__, load_model

    folder = Path(tempfile.gettempdir()) / f"laso-profile-{getpass.getuser()}-{__version__}"
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{''.join(c if c.isalnum() else '-' for c in name)}.laso"
    if not file.exists():
        train, _ = corpus.load("conll2000")
        some = train[:SENTENCES]
        estimator.fit([inputs(s, columns) for s in some], list(map(label, some))).save(file)
    model = load_model(file)
    model.threads = 1
    return model


def inputs(sentence: Sentence, columns: int) -> list[Any]:
    """Return a sentence as an estimator takes it."""
    return [token[:columns] if columns > 1 else token[0] for token in sentence]


# --------------------------------------------------------------------------- stages


class Clock:
    """The best processor time of each stage, in nanoseconds a token."""

    def __init__(self, tokens: int) -> None:
        self.tokens = tokens
        self.best: dict[str, float] = {}

    def __call__(self, stage: str, function: Callable[[], Any]) -> Any:
        """Call a function, and note its time if it is the best of its stage."""
        began = time.process_time()
        found = function()
        nanoseconds = 1e9 * (time.process_time() - began) / self.tokens
        self.best[stage] = min(nanoseconds, self.best.get(stage, nanoseconds))
        return found


def measure(name: str, model: Any, test: list[Sentence], columns: int) -> Row:
    """Return the nanoseconds of each stage."""
    clock = Clock(sum(map(len, test)))
    text = "".join("".join(" ".join(t) + "\n" for t in s) + "\n" for s in test).encode()
    roles = np.full(len(test[0][0]), -1)
    roles[:columns] = np.arange(columns)
    reader = Reader(NewValues(known_values(model.task_.encoder_)), Format(), roles, "test")
    X = [inputs(sentence, columns) for sentence in test]
    model.predict(X[:2])
    for _ in range(ROUNDS):
        _measure_file(clock, model, reader, text)
        _measure_columns(clock, model, X)
    return {"model": name, **{stage: round(clock.best[stage], 1) for stage in STAGES}}


def _measure_file(clock: Clock, model: Any, reader: Reader, text: bytes) -> None:
    """Time what is done with a file, but for the engine."""
    task, form = model.task_, Format()
    batches = clock("split", lambda: list(Batches(io.BytesIO(text), form, BATCH)))
    parts = clock("read and number", lambda: [reader.items(batch) for batch in batches])
    clock("items", lambda: [task.encode(part) for part, _ in parts])
    coded = [_coded(model, part) for part, _ in parts]
    outputs = clock("answers", lambda: [task.coded_outputs(*one) for one in coded])
    pairs = list(zip(parts, outputs, strict=True))
    clock("write", lambda: [written(lines, *output, form=form) for (_, lines), output in pairs])


def _measure_columns(clock: Clock, model: Any, X: list[Any]) -> None:
    """Time what is done with columns in Python, and the engine."""
    task = model.task_
    data = clock("columns: read and number", lambda: task.read_inputs(X))
    dataset = clock("columns: items", lambda: task.encode(data))
    steps, ends = _engine(clock, model, dataset)
    clock("columns: answers", lambda: task.decode_all(data, steps, ends))


def _coded(model: Any, part: Any) -> tuple[Any, Any, Any]:
    """Return the arguments of ``coded_outputs``."""
    dataset = model.task_.encode(part)
    steps, ends, _ = model.engine(dataset).decode(dataset, all_of(dataset), model.weights_)
    return part, steps, ends


def _engine(clock: Clock, model: Any, dataset: Any) -> tuple[Any, Any]:
    """Time the engine with three tables; return the steps and their ends."""
    weights, engine, order = model.weights_, model.engine(dataset), all_of(dataset)
    empty = new_table(weights.v.shape[1], dtype=weights.v.dtype)
    slots = weights.slots.copy()
    slots[:, at.SLOT_ROW] = np.minimum(slots[:, at.SLOT_ROW], 1)
    clock("empty", lambda: engine.decode(dataset, order, empty))
    clock("one row", lambda: engine.decode(dataset, order, weights._replace(slots=slots)))
    steps, ends, _ = clock("all", lambda: engine.decode(dataset, order, weights))
    best = clock.best
    best["keys and search"] = best["empty"]
    best["look-ups and sums"] = max(0.0, best["one row"] - best["empty"])
    best["rows from memory"] = max(0.0, best["all"] - best["one row"])
    return steps, ends


# --------------------------------------------------------------------------- report


def run(results: Path, say: Say) -> Path:
    """Measure all models; write and return the report."""
    _, test = corpus.load("conll2000")
    rows = []
    for name, estimator, label, columns in estimators():
        model = trained(name, estimator, label, columns)
        rows.append(measure(name, model, test, columns))
        say(", ".join(f"{key} {value}" for key, value in rows[-1].items()))
    save(results / "profile.json", rows)
    return write(results / "profile.md", report(rows))


def report(rows: list[Row]) -> str:
    """Return the report: a column for each model, a line for each stage, and sums."""
    lines = [[stage, *(f"{row[stage]:.0f}" for row in rows)] for stage in STAGES]
    for name, stages in (("file to file", (*FILE, *ENGINE)), ("from columns", (*ENGINE, *COLUMNS))):
        sums = [sum(row[stage] for stage in stages) for row in rows]
        lines.append([f"{name}, all", *(f"{each:.0f}" for each in sums)])
        lines.append([f"{name}, tokens/s", *(f"{1e9 / each:,.0f}" for each in sums)])
    head = ["nanoseconds a token", *(row["model"] for row in rows)]
    return "\n".join(
        ["# Profile", "", *(__doc__ or "").splitlines()[2:], "", table(head, lines, left=1), ""]
    )
