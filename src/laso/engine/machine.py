"""Drive the compiled engine: make and grow its arrays, learn from examples, decode inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine import option_kinds as kinds
from laso.engine.checking.own_problems import check_inputs, is_needed
from laso.engine.failures import failure
from laso.engine.layout import Array, Dataset, Out, Run, WeightTable
from laso.engine.memory_limit import check_room, new_arrays
from laso.engine.native import Kernels, compiled
from laso.engine.native.waiting import results_of
from laso.engine.option_kinds import Options
from laso.engine.problem import CompiledProblem, has_named_factors, is_factored
from laso.engine.weights.bloom import filtered, without_filter
from laso.engine.weights.empty_rows import has_empty_rows, without_empty_rows
from laso.engine.weights.hash_table import placed, used_slots
from laso.engine.weights.row_layouts import (
    ROWS_AT_A_TIME,
    dense_rows,
    grown_entries,
    is_sparse,
    n_labels,
    new_rows,
)
from laso.engine.workspace import (
    KeptCaps,
    bundle_shapes,
    capped,
    named_rows,
    note_capped,
    with_bundles,
    with_segments,
    with_shared,
)

MOST_TRIES = 10  # to make room for an update, each with twice the room of the one before

# --------------------------------------------------------------------------- the weight table


def new_table(
    labels: int,
    *,
    margin: float = 0.0,
    dtype: Any = np.float32,
    hash_bits: int = 0,
    sparse: bool = False,
) -> WeightTable:
    """Return an empty weight table; ``margin`` is that of the options it will learn with."""
    check_weights(0 if sparse else labels, 1 << 10, 2 * np.dtype(dtype).itemsize)
    table = WeightTable(
        slots=np.zeros((1 << 12, len(at.SlotColumn)), np.int64),
        mark=np.full(1 << 10, -1, np.int64),
        ints=np.zeros(len(at.TableInt), np.int64),
        reals=np.zeros(len(at.TableReal)),
        **new_rows(1 << 10, labels, dtype, sparse=sparse),
    )
    table.ints[at.GENERATION], table.ints[at.BITS] = 1, hash_bits
    table.ints[at.LABELS] = labels
    table.reals[at.SCALE], table.reals[at.MARGIN] = 1.0, margin
    return table


def grown_table(table: WeightTable, extra: int, *, moves: int | None = None) -> WeightTable:
    """Return the table with room for ``extra`` more rows; its weights grow in place.

    There must be no views of the weights but those of the table. So many sparse rows as ``moves``,
    by default all new ones, may move before the table must grow again.
    """
    rows = int(table.ints[at.ROWS])
    need = rows + extra
    slots = table.slots
    if need > len(table.mark):
        more = max(need, len(table.mark) * 5 // 4) - len(table.mark)
        check_weights(0 if is_sparse(table) else n_labels(table), more, 2 * table.v.itemsize)
        # In place: most of the memory of learning is here, and there must not be two of it.
        capacity, before = max(need, len(table.mark) * 5 // 4), len(table.mark)
        names = ("heads", "mark") if is_sparse(table) else ("v", "u", "mark")
        table = table._replace(**{n: _lengthened(getattr(table, n), capacity) for n in names})
        table.mark[before:] = -1
    if 2 * need > len(slots):
        capacity = 1 << (2 * need - 1).bit_length()
        slots = placed(used_slots(table), capacity)
    table = table._replace(slots=slots)
    return grown_entries(table, extra if moves is None else moves) if is_sparse(table) else table


def check_weights(labels: int, rows: int, item: int) -> None:
    """Raise OutOfMemory if there is no room for so many more dense rows; ``item`` is in bytes."""
    check_room(
        float(rows) * labels * item,
        f"{rows} rows of {labels} labels",
        "fewer labels or features, hash_bits, or a beam, whose rows for many labels are sparse",
    )


def prepared(table: WeightTable, options: Options) -> WeightTable:
    """Return the table with room for all that the update of the options needs."""
    return with_precisions(table) if options.update == kinds.AROW else table


def with_precisions(table: WeightTable) -> WeightTable:
    """Return the table with room for the precision of each weight."""
    if len(table.precisions) == len(table.v):
        return table
    return table._replace(precisions=longer(table.precisions, len(table.v)))


def _lengthened(array: Array, length: int) -> Array:
    if not array.flags.owndata:  # it is part of a file, say
        return longer(array, length)
    array.resize((length, *array.shape[1:]), refcheck=False)
    return array


def longer(array: Array, length: int) -> Array:
    """Return the array padded with zeros to a length."""
    longer = np.zeros((length, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def averaged(table: WeightTable) -> WeightTable:
    """Return the averaged weights, as a table for scoring only."""
    return _scoring(table, int(table.ints[at.TICKS]))


def current(table: WeightTable) -> WeightTable:
    """Return the present weights, not averaged, as a table for scoring only."""
    return _scoring(table, 0)


def _scoring(table: WeightTable, ticks: int) -> WeightTable:
    """Return the weights averaged over so many examples; 0: the present weights."""
    rows = int(table.ints[at.USED if is_sparse(table) else at.ROWS])
    v = np.empty((rows, table.v.shape[1]), table.v.dtype)
    for first in range(0, rows, ROWS_AT_A_TIME):  # in parts, since float64 takes twice the room
        part = slice(first, min(first + ROWS_AT_A_TIME, rows))
        weights = table.v[part].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):  # learning refuses what is not finite
            if ticks:
                v[part] = (table.reals[at.SCALES] * weights - table.u[part]) / ticks
            else:
                v[part] = table.reals[at.SCALE] * weights
    reals = np.zeros(len(at.TableReal))
    reals[at.SCALE] = 1.0
    none, heads = table.precisions[:0], table.heads
    if is_sparse(table):  # learning moves sparse rows, so that their heads change
        heads = heads[: max(1, int(table.ints[at.ROWS]))].copy()
    named = table.entry_labels[: rows if is_sparse(table) else 0].copy()
    table = without_filter(table)._replace(heads=heads, entry_labels=named)
    return table._replace(v=v, u=table.u[:0], mark=table.mark[:0], reals=reals, precisions=none)


def as_names(table: WeightTable) -> dict[tuple[int, int], float]:
    """Return the weights under the names of the reference engine: (key, label)."""
    scale = float(table.reals[at.SCALE])
    return {
        (int(key), label): scale * float(weight)
        for key, row in used_slots(table)
        for label, weight in enumerate(dense_rows(table, int(row) - 1))
        if weight
    }


# --------------------------------------------------------------------------- inputs


def sizes(dataset: Dataset, order: Array) -> Array:
    """Return the number of items of each given input."""
    return dataset.starts[order + 1] - dataset.starts[order] if len(order) else order


def parts(order: Array, threads: int) -> list[Array]:
    """Split an order into one part per thread, at least one."""
    parts = [part for part in np.array_split(order, max(1, threads)) if len(part)]
    return parts or [order]


def mapped(function: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
    """Return the results for all parts, each computed in a thread of its own."""
    if len(parts) == 1:
        return [function(parts[0])]
    threads = min(len(parts), 2 * default_threads())
    groups = [parts[i::threads] for i in range(threads)]
    found = results_of([partial(_each, function, group) for group in groups])
    return [found[i % threads][i // threads] for i in range(len(parts))]


def _each(function: Callable[[Any], Any], parts: list[Any]) -> list[Any]:
    return [function(part) for part in parts]


def default_threads() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def all_of(dataset: Dataset) -> Array:
    """Return the numbers of all inputs of a dataset."""
    return np.arange(len(dataset.starts) - 1)


# --------------------------------------------------------------------------- working space


SMALLER = "shorter inputs, fewer labels or layers, or a narrower beam"


def new_run(
    most: Array, table: WeightTable, problem: type[CompiledProblem], *, width: int, what: str
) -> Run:
    """Return working space for inputs within the limits ``most``; ``what`` names the largest."""
    limits = [int(limit) for limit in most]
    rounds, n_groups, blocks = limits[at.STEPS] + 1, limits[at.MAX_GROUPS], limits[at.BLOCKS]
    nodes = 2 * rounds * (width + 1) + 16
    check_nodes(nodes, limits[at.STATE_SIZE], what)
    features = limits[at.MAX_FEATURES] + at.SLACK
    labels, dtype = n_labels(table), table.v.dtype
    scratch = max(2 * (rounds + width) + 64, labels)
    factors = limits[at.FACTORS] + 1 if is_factored(problem) else 0
    if has_named_factors(problem):
        features = factors * limits[at.MAX_FEATURES] + at.SLACK
    long, real, int32 = np.int64, np.float64, np.int32
    kinds_of: dict[str, tuple[tuple[int, ...], Any]] = {
        "states": ((nodes, limits[at.STATE_SIZE]), int32),
        "ints": ((nodes, len(at.NodeColumn)), long),
        "reals": ((nodes, len(at.NodeReal)), real),
        "limits": ((len(at.Limit),), long),
        "agenda": ((rounds + at.EXTRA_LISTS, at.FIRST + width), long),
        "groups": ((n_groups + at.SLACK,), int32),
        "choices": ((labels + at.SLACK,), int32),
        "noted": ((width, at.FIRST_NOTED + 2 * at.MOST_NOTED), long),
        "noted_sums": ((width, at.MOST_NOTED), dtype),
        "group_bounds": ((n_groups + at.SLACK,), real),
        "best_scores": ((width,), real),
        "keys": ((features,), long),
        "feature_values": ((features,), real),
        "rows": ((features,), long),
        "caps": ((1,), np.uint8),
        "expanded": ((0, at.FIRST_EXPANDED), long),
        "sums": ((labels,), dtype),
        "block_owners": ((blocks,), long),
        "factor_rows": ((factors, len(at.FactorColumn)), long),
        "waiting": ((factors, len(at.WaitingColumn)), long),
        "block_stack": ((blocks + 1, len(at.StackColumn)), long),
        "meta": ((len(at.RunMeta),), long),
        "delta": ((1 << 10, len(at.DeltaColumn)), long),
        "values": ((1 << 10,), real),
        "compared": ((len(at.Side), scratch), long),
        "coefficients": ((len(at.Side), scratch), real),
        "scratch": ((len(at.ScratchRow), scratch), long),
        "losses": ((len(at.LossColumn),), real),
        **bundle_shapes(0, labels, dtype),
    }
    arrays = new_arrays(kinds_of, what, SMALLER)
    out = Out(arrays.pop("keys"), arrays.pop("feature_values"))
    out.values.fill(1.0)
    run = Run(out=out, **arrays)
    run.meta[at.PENDING], run.meta[at.MOST_FEATURES] = -1, most[at.MAX_FEATURES]
    return with_bundles(run, blocks + factors, named_rows(problem, factors), what)


def check_nodes(n: int, size: int, what: str) -> None:
    """Raise OutOfMemory if there is no room for n nodes with states of a size."""
    of_node = 4.0 * size + 8.0 * (len(at.NodeColumn) + len(at.NodeReal))
    check_room(n * of_node, f"{what}, {n} nodes", "shorter inputs, or a narrower beam")


def grown_run(run: Run, status: int, what: str = "an input") -> Run:
    """Return working space with more of what was asked for at the input that ``what`` names."""
    if status == at.MORE_NODES:
        n = 2 * len(run.ints)
        check_nodes(n, run.states.shape[1], what)
        return run._replace(
            states=longer(run.states, n), ints=longer(run.ints, n), reals=longer(run.reals, n)
        )
    if status == at.MORE_SCRATCH:
        n = 2 * run.scratch.shape[1]
        return run._replace(
            compared=np.zeros((len(at.Side), n), np.int64),
            coefficients=np.zeros((len(at.Side), n)),
            scratch=np.zeros((len(at.ScratchRow), n), np.int64),
        )
    n = 2 * len(run.delta)
    return run._replace(delta=longer(run.delta, n), values=longer(run.values, n))


# --------------------------------------------------------------------------- the engine


@dataclass(frozen=True)
class Machine:
    """The compiled engine for one problem and one choice of queue, update and strategy."""

    problem: type[CompiledProblem]
    options: Options

    @property
    def kernels(self) -> Kernels:
        """The entry points for decoding."""
        return compiled(self.problem)

    @property
    def learning_kernels(self) -> Kernels:
        """The entry points for learning."""
        return compiled(self.problem, full=self.options.strategy >= kinds.STANDARD)

    def check(self, dataset: Dataset, order: Array, table: WeightTable, *, learning: bool) -> None:
        """Run a user's own problem uncompiled on some of these inputs (see ``checks``)."""
        if is_needed(self.problem):
            n = n_labels(table)
            check_inputs(self.problem, self.largest, dataset, order, n, learning=learning)

    def largest(self, dataset: Dataset, order: Array) -> Array:
        """Return the largest limits of the given inputs."""
        limits = np.ones(len(at.Limit), np.int64)
        self.kernels("largest", dataset, order, limits, np.zeros(len(at.Limit), np.int64))
        return limits

    def new_run(self, dataset: Dataset, order: Array, table: WeightTable) -> Run:
        """Return working space for the largest of the given inputs."""
        self.check(dataset, order, table, learning=False)
        limits = self.largest(dataset, order)
        longest = order[np.argmax(sizes(dataset, order))] if len(order) else 0
        width = self.options.width
        run = new_run(limits, table, self.problem, width=width, what=f"input {longest + 1}")
        return with_segments(self.problem, self.options, run, int(limits[at.FORM]))

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, run: Run
    ) -> tuple[WeightTable, Run, int]:
        """Learn from the given examples in turn; return table and run as grown, and the errors."""
        self.check(dataset, order, table, learning=True)
        wrong, tries = 0, 0
        while len(order):
            items = int(sizes(dataset, order).sum())
            table = filtered(self.problem, prepared(table, self.options), items)
            run = capped(self.problem, run, table)
            done, errors, status = self.learning_kernels(
                "learn_many", dataset, order, table, run, self.options
            )
            wrong += errors
            order = order[done:]
            tries = 0 if done else tries
            if status == at.MORE_ROWS:
                if has_empty_rows(table):
                    table = without_empty_rows(table)
                extra = max(len(run.delta), int(table.ints[at.ROWS]) // 4)
                # As many as one step adds; but an update begins anew, if it is delayed even the
                # example, without the rows that it had added: then it needs room for more steps.
                moves = int(run.meta[at.MOST_FEATURES] + at.SLACK) << min(tries, MOST_TRIES)
                tries += 1
                table = grown_table(table, extra, moves=moves)
            elif status in (at.MORE_NODES, at.MORE_ENTRIES, at.MORE_SCRATCH):
                run = grown_run(run, status, f"example {int(order[0]) + 1}")
            elif status == at.STOPPED:
                run.meta[at.PENDING] = -1
                break
            elif status != at.DONE:
                run.meta[at.PENDING] = -1  # so that it can go on with other examples
                raise failure(status, dataset, int(order[0]), self.problem, run)
            note_capped(run, table)
        return table, run, wrong

    def decode(
        self,
        dataset: Dataset,
        order: Array,
        table: WeightTable,
        *,
        threads: int = 1,
        kept: KeptCaps | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return the predicted operators (group, label) of the inputs, their ends, the scores.

        ``kept`` keeps bounds on the weights for the next call.
        """
        kept = KeptCaps() if kept is None else kept
        decoded = mapped(
            lambda part: self._decode(dataset, part, table, kept), parts(order, threads)
        )
        shifts = np.cumsum([0, *(len(steps) for steps, _, _ in decoded)])
        return (
            np.concatenate([steps for steps, _, _ in decoded]),
            np.concatenate([e + s for (_, e, _), s in zip(decoded, shifts[:-1], strict=True)]),
            np.concatenate([scores for _, _, scores in decoded]),
        )

    def _decode(
        self, dataset: Dataset, order: Array, table: WeightTable, kept: KeptCaps
    ) -> tuple[Array, Array, Array]:
        run, items = self.new_run(dataset, order, table), int(sizes(dataset, order).sum())
        table = filtered(self.problem, table, items)
        run = with_shared(self.problem, run, table, items, kept)
        steps = np.zeros((items + 16, len(at.StepColumn)), np.int32)
        ends, scores = np.zeros(len(order), np.int64), np.zeros(len(order))
        first = 0
        while first < len(order):
            begin = int(ends[first - 1]) if first else 0
            done, status = self.kernels(
                "decode_many",
                dataset,
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
                run = grown_run(run, status, f"input {int(order[first]) + 1}")
            elif status != at.DONE:
                raise failure(status, dataset, int(order[first]), self.problem, run)
        if len(run.caps) > 1 and not run.meta[at.CAPS_WANTED]:
            kept.of = table.v, run.caps
        return steps[: ends[-1] if len(ends) else 0], ends, scores


def warm(problem: type[CompiledProblem], options: Options, *, dtype: Any = np.float32) -> None:
    """Compile (or load) what learning and decoding need, by calls without inputs."""
    machine = Machine(problem, options)
    nothing, longs = np.zeros(0, np.int64), np.zeros(1, np.int64)
    dataset = Dataset(
        items=np.zeros((0, 1), np.int32),
        starts=longs,
        pool=nothing,
        values=np.zeros(0, np.float32),
        spec=nothing,
        outputs=np.zeros(0, np.int32),
        output_starts=longs,
    )
    table = new_table(1, dtype=dtype)
    run = machine.new_run(dataset, nothing, table)
    machine.learning_kernels("learn_many", dataset, nothing, table, run, options)
    results = Out(nothing, np.zeros(0))
    steps = np.zeros((0, len(at.StepColumn)), np.int32)
    machine.kernels("decode_many", dataset, nothing, table, run, options, steps, results)
