"""Drive the compiled engine: make and grow its arrays, learn from examples, decode inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, Corpus, Options, Out, Run, Table
from laso.engine.native import Kernels, compiled
from laso.engine.problem import CompiledProblem, is_factored
from laso.errors import SearchFailed, Unreachable

SOME = 10_000  # rows to work on at a time


def new_table(
    n_labels: int, *, margin: float = 0.0, dtype: Any = np.float32, hash_bits: int = 0
) -> Table:
    """An empty weight table; ``margin`` is that of the options it will learn with."""
    return Table(
        np.zeros((1 << 12, 2), np.int64),
        np.zeros((1 << 10, n_labels), dtype),
        np.zeros((1 << 10, n_labels), dtype),
        np.full(1 << 10, -1, np.int64),
        np.array([0, 1, 0, hash_bits], np.int64),
        np.array([1.0, 0.0, 0.0, margin]),
    )


def grown_table(table: Table, extra: int) -> Table:
    """The table with room for so many more rows; its weights grow where they are.

    There must be no views of the weights but those of the table.
    """
    rows = int(table.ints[at.ROWS])
    need = rows + extra
    slots, v, u, mark = table.slots, table.v, table.u, table.mark
    if need > len(v):
        # In place: most of the memory of learning is here, and there must not be two of it.
        capacity, before = max(need, len(v) * 5 // 4), len(mark)
        v, u, mark = (_lengthened(array, capacity) for array in (v, u, mark))
        mark[before:] = -1
    if 2 * need > len(slots):
        capacity = 1 << (2 * need - 1).bit_length()
        slots = placed(table.slots[table.slots[:, 1] != 0], capacity)
    return table._replace(slots=slots, v=v, u=u, mark=mark)


def without_empty_rows(table: Table) -> Table:
    """The table without rows that have no weight in it and none in the average.

    An update makes a row for every feature it looks at, also where good and bad nodes cancel out.
    """
    rows = int(table.ints[at.ROWS])
    used: Array = np.logical_or(table.v[:rows].any(axis=1), table.u[:rows].any(axis=1))
    numbers = np.cumsum(used)  # the new number of a row, plus 1
    kept = int(numbers[-1]) if rows else 0
    entries = table.slots[table.slots[:, 1] != 0]
    entries = entries[used[entries[:, 1] - 1]]
    entries[:, 1] = numbers[entries[:, 1] - 1]
    for weights in (table.v, table.u):
        weights[:kept] = weights[:rows][used]
        weights[kept:rows] = 0
    table.ints[at.ROWS] = kept
    return table._replace(slots=placed(entries, len(table.slots)))


def _lengthened(array: Array, length: int) -> Array:
    if not array.flags.owndata:  # it is part of a file, say
        return longer(array, length)
    array.resize((length, *array.shape[1:]), refcheck=False)
    return array


def placed(entries: Array, capacity: int) -> Array:
    """Entries (key, row + 1) in an open-addressing table; a vectorised round for each collision."""
    slots = np.zeros((capacity, 2), np.int64)
    where = entries[:, 0] & (capacity - 1)
    while len(entries):
        free = slots[where, 1] == 0
        slots[where[free]] = entries[free]  # of several with one place, the last one stays
        lost = ~free | (slots[where, 1] != entries[:, 1])
        entries, where = entries[lost], (where[lost] + 1) & (capacity - 1)
    return slots


def longer(array: Array, length: int) -> Array:
    """An array with zeros after it, to that length."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def sizes(corpus: Corpus, order: Array) -> Array:
    """The number of items of each input named."""
    return corpus.starts[order + 1] - corpus.starts[order] if len(order) else order


def parts(order: Array, threads: int) -> list[Array]:
    """An order cut into one part for each thread, at least one."""
    parts = [part for part in np.array_split(order, max(1, threads)) if len(part)]
    return parts or [order]


def mapped(function: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
    """The results for all parts, in one thread each."""
    if len(parts) == 1:
        return [function(parts[0])]
    with ThreadPoolExecutor(len(parts)) as pool:
        return list(pool.map(function, parts))


@dataclass(frozen=True)
class Machine:
    """The compiled engine for one problem and one choice of queue, update and strategy."""

    problem: type[CompiledProblem]
    options: Options

    @property
    def kernels(self) -> Kernels:
        """The entry points."""
        return compiled(self.problem)

    def new_run(self, corpus: Corpus, order: Array, table: Table) -> Run:
        """Working space for the largest of the inputs named."""
        most = np.ones(at.LIMITS, np.int64)
        self.kernels("largest", corpus, order, most, np.zeros(at.LIMITS, np.int64))
        width = self.options.width
        rounds = int(most[at.STEPS]) + 2
        nodes = 2 * rounds * (width + 1) + 16
        n_labels, dtype = table.v.shape[1], table.v.dtype
        others = most[at.OTHERS] + 1 if is_factored(self.problem) else 0
        run = Run(
            np.zeros((nodes, most[at.STATE_SIZE]), np.int32),
            np.zeros((nodes, 9), np.int64),
            np.zeros((nodes, 4), np.float64),
            np.zeros((rounds + 2, at.FIRST + width), np.int64),
            np.zeros(most[at.MAX_GROUPS], np.int32),
            Out(np.zeros(most[at.MAX_FEATURES], np.int64), np.ones(most[at.MAX_FEATURES])),
            np.zeros(most[at.MAX_FEATURES], np.int64),
            np.zeros(n_labels, dtype),
            np.zeros((most[at.CELLS] + others, n_labels), dtype),
            np.zeros(most[at.CELLS] + others),
            np.zeros(most[at.CELLS], np.int64),
            np.zeros(most[at.CELLS], np.int64),
            np.zeros((others, 2), np.int64),
            np.zeros((most[at.CELLS] + 1, 2), np.int64),
            np.zeros(at.META, np.int64),
            np.zeros((1 << 10, 3), np.int64),
            np.zeros(1 << 10, np.float64),
            np.zeros((5, 2 * (rounds + width) + 64), np.int64),
            np.zeros((2, 2 * (rounds + width) + 64)),
        )
        run.meta[at.PENDING] = -1
        return run

    def learn(self, corpus: Corpus, order: Array, table: Table, run: Run) -> tuple[Table, Run, int]:
        """Learn from the examples named, in turn; the table and run as grown, and the errors."""
        kernels = compiled(self.problem, full=self.options.strategy >= at.STANDARD)
        wrong = 0
        while len(order):
            done, errors, status = kernels("learn_many", corpus, order, table, run, self.options)
            wrong += errors
            order = order[done:]
            if status == at.MORE_ROWS:
                table = without_empty_rows(table)
                table = grown_table(table, max(len(run.delta), int(table.ints[at.ROWS]) // 4))
            elif status in (at.MORE_NODES, at.MORE_ENTRIES, at.MORE_SCRATCH):
                run = grown_run(run, status)
            elif status != at.DONE:
                run.meta[at.PENDING] = -1  # so that it can go on with other examples
                raise failure(status, f"example {int(order[0])}")
        return table, run, wrong

    def decode(
        self, corpus: Corpus, order: Array, table: Table, *, threads: int = 1
    ) -> tuple[Array, Array, Array]:
        """The operators (group, label) found for the inputs named, where each ends, the scores."""
        found = mapped(lambda part: self._decode(corpus, part, table), parts(order, threads))
        shifts = np.cumsum([0, *(len(steps) for steps, _, _ in found)])
        return (
            np.concatenate([steps for steps, _, _ in found]),
            np.concatenate([e + s for (_, e, _), s in zip(found, shifts[:-1], strict=True)]),
            np.concatenate([scores for _, _, scores in found]),
        )

    def _decode(self, corpus: Corpus, order: Array, table: Table) -> tuple[Array, Array, Array]:
        run = self.new_run(corpus, order, table)
        steps = np.zeros((int(sizes(corpus, order).sum()) + 16, 2), np.int32)
        ends = np.zeros(len(order), np.int64)
        scores = np.zeros(len(order))
        first = 0
        while first < len(order):
            begin = int(ends[first - 1]) if first else 0
            done, status = self.kernels(
                "decode_many",
                corpus,
                order[first:],
                table,
                run,
                self.options,
                steps[begin:],
                Out(ends[first:], scores[first:]),
            )
            ends[first : first + done] += begin
            first += done
            if status == at.MORE_ENTRIES:
                steps = longer(steps, 2 * len(steps))
            elif status == at.MORE_NODES:
                run = grown_run(run, status)
            elif status != at.DONE:
                raise failure(status, f"input {int(order[first])}")
        return steps[: ends[-1] if len(ends) else 0], ends, scores


def grown_run(run: Run, status: int) -> Run:
    """Working space with more of what was asked for."""
    if status == at.MORE_NODES:
        n = 2 * len(run.ints)
        return run._replace(
            states=longer(run.states, n), ints=longer(run.ints, n), reals=longer(run.reals, n)
        )
    if status == at.MORE_SCRATCH:
        n = 2 * run.scratch.shape[1]
        return run._replace(
            scratch=np.zeros((5, n), np.int64), weights=np.zeros((2, n), np.float64)
        )
    n = 2 * len(run.delta)
    return run._replace(delta=longer(run.delta, n), values=longer(run.values, n))


def failure(status: int, what: str) -> Exception:
    """The error that a call ended with."""
    if status == at.UNREACHABLE:
        return Unreachable(
            f"{what}: its output cannot be reached: at some y-good state no allowed step is y-good"
        )
    return SearchFailed(f"{what}: the queue ran empty before a goal was dequeued")


def warm(problem: type[CompiledProblem], options: Options, *, dtype: Any = np.float32) -> None:
    """Compile (or load) what learning and decoding need, by calling it on nothing."""
    machine = Machine(problem, options)
    nothing, longs = np.zeros(0, np.int64), np.zeros(1, np.int64)
    corpus = Corpus(
        np.zeros((0, 1), np.int32),
        longs,
        nothing,
        np.zeros(0, np.float32),
        nothing,
        np.zeros(0, np.int32),
        longs,
    )
    table = new_table(1, dtype=dtype)
    run = machine.new_run(corpus, nothing, table)
    kernels = compiled(problem, full=options.strategy >= at.STANDARD)
    kernels("learn_many", corpus, nothing, table, run, options)
    results = Out(nothing, np.zeros(0))
    steps = np.zeros((0, 2), np.int32)
    machine.kernels("decode_many", corpus, nothing, table, run, options, steps, results)


def default_threads() -> int:
    """As many threads as this process may use cores."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def all_of(corpus: Corpus) -> Array:
    """The numbers of all inputs of a corpus."""
    return np.arange(len(corpus.starts) - 1)


def averaged(table: Table) -> Table:
    """The averaged weights, as a table that only scores."""
    return _scoring(table, int(table.ints[at.TICKS]))


def current(table: Table) -> Table:
    """The weights as they are, not averaged, as a table that only scores."""
    return _scoring(table, 0)


def _scoring(table: Table, ticks: int) -> Table:
    """The weights averaged over so many examples; 0: as they are."""
    rows = int(table.ints[at.ROWS])
    v = np.empty((rows, table.v.shape[1]), table.v.dtype)
    for first in range(0, rows, SOME):  # in parts, since float64 takes twice the room
        part = slice(first, min(first + SOME, rows))
        weights = table.v[part].astype(np.float64)
        if ticks:
            v[part] = (table.reals[at.SCALES] * weights - table.u[part]) / ticks
        else:
            v[part] = table.reals[at.SCALE] * weights
    return table._replace(
        v=v, u=table.u[:0], mark=table.mark[:0], reals=np.array([1.0, 0.0, 0.0, 0.0])
    )


def as_names(table: Table) -> dict[tuple[int, int], float]:
    """The weights as the reference engine names them: by (key, label)."""
    scale = float(table.reals[at.SCALE])
    return {
        (int(key), label): scale * float(weight)
        for key, row in table.slots[table.slots[:, 1] != 0]
        for label, weight in enumerate(table.v[row - 1])
        if weight
    }
