"""Iterative parameter mixing (McDonald, Hall & Mann 2010): shards learn apart, weights are mixed.

In each epoch every shard learns from its own examples, starting from the same weights. What it has
changed is a ``Change``; ``mix`` adds the changes of all shards to the weights, in the order of the
shards. So the result depends on the number of shards, and not on where they were learned.

The weights are scale * v, and their running sum is scales * v - u. If shard s has changed an entry
of v by d, and its own running sum is scales_s * v - u_s, then mixing adds

    m_s * d                               to v, where m_s = mu_s * scale_s / sum(mu_t * scale_t)
    (scales * m_s - scales_s) * d + u_s   to u, where scales = its old value + sum(scales_t)

for each shard in turn. All other entries stay as they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from laso.engine import layout as at
from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.likelihood import Climber, measure
from laso.engine.machine import Machine, grown_table, insert, longer, used_slots, with_precisions
from laso.engine.passes import InTurn, Learner, Training
from laso.engine.rows import no_heads
from laso.updates import Climb

MOST_SHARDS = 100_000
LONGEST_RUN = 1000  # consecutive examples of one shard: they lie together in files


class Start(NamedTuple):
    """The weights that all shards start an epoch with."""

    keys: Array  # int64: the feature key of each row
    slots: Array
    v: Array
    ints: Array
    reals: Array
    precisions: Array  # of arow()
    squares: Array | None  # of adagrad()
    clock: float


class Change(NamedTuple):
    """What an epoch has changed in the weights of a shard."""

    keys: Array  # int64: the feature keys of new rows, which follow those of the start
    where: Array  # int64: the changed weights, as row * labels + label
    v: Array  # their differences from the start
    u: Array  # their part of the running sum
    precisions: Array  # differences, all weights of arow(); else empty
    squares: Array  # differences, all weights of adagrad(); else empty
    ints: Array
    reals: Array
    clock: float
    objective: float | None  # the log-likelihood's part of it, per example of all shards
    wrong: int
    n_labels: int

    @property
    def nbytes(self) -> int:
        """The size of the arrays, which travel from a worker."""
        return sum(each.nbytes for each in self if isinstance(each, np.ndarray))


@dataclass(frozen=True)
class ShardLearner:
    """Learns from the examples of one shard."""

    engine: Machine | ExactMachine
    average: bool
    examples: int  # of all shards

    def __call__(self, dataset: Dataset, order: Array, start: Start) -> Change:
        """Return what learning from these examples in turn changes in the weights."""
        training = Training(_table(start), squares=start.squares, clock=start.clock)
        learner: Learner = self.engine
        settle: Callable[[], None] = lambda: None  # noqa: E731
        if isinstance(self.engine, ExactMachine) and isinstance(self.engine.rule, Climb):
            rule = self.engine.rule
            climber = Climber(self.engine, rule, training, self.average, self.examples)
            learner, settle = climber, climber.settle
        wrong = 0
        for _, wrong in InTurn(learner)(dataset, order, training):  # noqa: B007
            pass
        settle()
        return _change(start, training, wrong, self.penalty(training.table))

    def penalty(self, table: WeightTable) -> float:
        """Return the prior's part of the objective, per example."""
        rule = getattr(self.engine, "rule", None)
        if not isinstance(rule, Climb):
            return 0.0
        return float(table.reals[at.SQUARE]) / (2.0 * rule.variance * max(1, self.examples))


def shard_of_examples(n: int, shards: int) -> Array:
    """Return the shard of each of n examples.

    Runs of consecutive examples go to the shards in turn: short ones, so that all shards are alike
    even if the examples are sorted, but long ones in large data, so that each reads its own pages.
    """
    run = min(LONGEST_RUN, max(1, n // (64 * shards)))
    return (np.arange(n) // run) % shards


def start_of(training: Training) -> Start:
    """Return the weights of a training, for the shards to start with."""
    table = training.table
    rows = int(table.ints[at.ROWS])
    precisions = table.precisions[: rows if len(table.precisions) else 0]
    squares = None if training.squares is None else training.squares[:rows]
    return Start(
        keys_by_row(table),
        table.slots,
        table.v[:rows],
        table.ints,
        table.reals,
        precisions,
        squares,
        training.clock,
    )


def keys_by_row(table: WeightTable) -> Array:
    """Return the feature key of each row."""
    keys = np.zeros(int(table.ints[at.ROWS]), np.int64)
    used = used_slots(table)
    keys[used[:, at.SLOT_ROW] - 1] = used[:, at.SLOT_KEY]
    return keys


def uniform(updates: Array) -> Array:
    """Mix all shards alike."""
    return np.full(len(updates), 1.0 / len(updates))


def by_updates(updates: Array) -> Array:
    """Mix each shard in proportion to its number of updates."""
    total = updates.sum()
    return updates / total if total else uniform(updates)


Mixing = Callable[[Array], Array]
MIXINGS: dict[str, Mixing] = {"uniform": uniform, "updates": by_updates}


def mix(
    training: Training, changes: Sequence[Change], learner: ShardLearner, mixing: Mixing = uniform
) -> None:
    """Add the changes of all shards to the weights of a training."""
    old, rows = training.table.reals.copy(), int(training.table.ints[at.ROWS])
    generation = int(training.table.ints[at.GENERATION])
    updates = np.array([int(change.ints[at.GENERATION]) - generation for change in changes])
    reals, mu = np.stack([change.reals for change in changes]), mixing(updates)
    # As differences, so that what is the same in all shards stays the same to the last bit.
    mixed = old + mu @ (reals - old)
    keys = np.unique(np.concatenate([change.keys for change in changes]))
    table = training.table = _with_rows(training.table, keys)
    table.reals[at.SCALE], table.reals[at.MARGIN] = mixed[at.SCALE], mixed[at.MARGIN]
    table.reals[at.SCALES] = scales = old[at.SCALES] + math.fsum(reals[:, at.SCALES])
    table.ints[at.GENERATION] = generation + math.ceil(float(mu @ updates) - 1e-9)
    table.ints[at.TICKS] += sum(int(change.ints[at.TICKS]) for change in changes)
    places = [Places(rows, keys, change) for change in changes]
    for place, change, share in zip(places, changes, mu, strict=True):
        part = float(share * change.reals[at.SCALE] / mixed[at.SCALE])
        sums = float(scales * part - change.reals[at.SCALES]) * change.v + change.u
        table.v.reshape(-1)[place.weights] += part * change.v
        table.u.reshape(-1)[place.weights] += sums
        if len(change.precisions):
            table = training.table = with_precisions(table)
            table.precisions[place.rows] += change.precisions
    measure(table)
    _mix_steps(training, changes, places, mu)
    if changes[0].objective is not None:
        training.objective = math.fsum(c.objective or 0.0 for c in changes) - learner.penalty(table)


class Places:
    """Where the changes of a shard belong in the mixture."""

    def __init__(self, rows: int, keys: Array, change: Change) -> None:
        self.rows = np.concatenate([np.arange(rows), rows + np.searchsorted(keys, change.keys)])
        n_labels = change.n_labels
        row, label = np.divmod(change.where, n_labels)
        self.weights = self.rows[row] * n_labels + label


def _mix_steps(
    training: Training, changes: Sequence[Change], places: Sequence[Places], mu: Array
) -> None:
    """Mix the state of gradient steps: the clock, and the sums of squared gradients."""
    clocks = np.array([change.clock for change in changes])
    training.clock += float(mu @ (clocks - training.clock))
    if not len(changes[0].squares):
        return
    known, rows = training.squares, int(training.table.ints[at.ROWS])
    squares = longer(changes[0].squares[:0] if known is None else known, rows)
    for place, change in zip(places, changes, strict=True):
        squares[place.rows] += change.squares
    training.squares = squares


def _table(start: Start) -> WeightTable:
    """Return the weights as a table of its own, with an empty running sum."""
    rows, n_labels = start.v.shape
    v = np.zeros((rows * 5 // 4 + 1024, n_labels), start.v.dtype)  # with room for new features
    v[:rows] = start.v
    reals, ints = start.reals.copy(), start.ints.copy()
    reals[at.SCALES], ints[at.TICKS] = 0.0, 0
    return WeightTable(
        slots=start.slots.copy(),
        v=v,
        u=np.zeros(v.shape, v.dtype),
        mark=np.full(len(v), -1, np.int64),
        ints=ints,
        reals=reals,
        precisions=longer(start.precisions, len(v) if len(start.precisions) else 0),
        heads=no_heads(),
    )


def _change(start: Start, training: Training, wrong: int, penalty: float) -> Change:
    """Return how the weights of a training differ from those it has started with."""
    table, known = training.table, len(start.keys)
    keys, aligned = _alignment(start, table)
    v, u = aligned(table.v), aligned(table.u)
    changed = u != 0
    changed[:known] |= v[:known] != start.v
    changed[known:] |= v[known:] != 0
    where = np.flatnonzero(changed)
    differences = v.reshape(-1)[where]
    old = int(np.searchsorted(where, start.v.size))
    differences[:old] -= start.v.reshape(-1)[where[:old]]
    none = np.zeros((0, v.shape[1]), v.dtype)
    precisions = squares = none
    if len(table.precisions):
        precisions = aligned(longer(table.precisions, len(table.v))).copy()
        precisions[: len(start.precisions)] -= start.precisions
    if training.squares is not None:
        squares = aligned(longer(training.squares, len(table.v)))
        if start.squares is not None:
            squares[: len(start.squares)] -= start.squares
    return Change(
        keys[known:],
        where,
        differences,
        u.reshape(-1)[where],
        precisions,
        squares,
        table.ints,
        table.reals,
        training.clock,
        None if training.objective is None else training.objective + penalty,
        wrong,
        v.shape[1],
    )


def _alignment(start: Start, table: WeightTable) -> tuple[Array, Callable[[Array], Array]]:
    """Return the keys of all rows, those of the start first, and a function that orders rows so.

    Learning may have left out rows of the start that were empty.
    """
    keys, known = keys_by_row(table), len(start.keys)
    if len(keys) >= known and np.array_equal(keys[:known], start.keys):
        return keys, lambda array: array[: len(keys)]
    order = np.argsort(keys, kind="stable")
    place = np.searchsorted(keys, start.keys, sorter=order)
    found = order[np.minimum(place, len(keys) - 1)]
    kept = keys[found] == start.keys
    is_new = np.ones(len(keys), bool)
    is_new[found[kept]] = False
    new = np.flatnonzero(is_new)

    def aligned(array: Array) -> Array:
        rows = np.zeros((known + len(new), *array.shape[1:]), array.dtype)
        rows[:known][kept] = array[found[kept]]
        rows[known:] = array[new]
        return rows

    return np.concatenate([start.keys, keys[new]]), aligned


def _with_rows(table: WeightTable, keys: Array) -> WeightTable:
    """Return the table with further rows, for new feature keys."""
    rows = int(table.ints[at.ROWS])
    table = grown_table(table, len(keys))
    numbers = np.arange(rows + 1, rows + len(keys) + 1)
    insert(table.slots, np.stack([keys, numbers], axis=1))
    table.ints[at.ROWS] += len(keys)
    return with_precisions(table) if len(table.precisions) else table
