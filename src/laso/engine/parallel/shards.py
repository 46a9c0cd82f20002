"""Iterative parameter mixing (McDonald, Hall & Mann 2010): shards learn apart, weights are mixed.

In each round every shard learns from its own examples, starting from the same weights. What it has
changed is a ``Change``; ``mix`` adds the changes of all shards to the weights, in the order of the
shards. So the result depends on the number of shards, and not on where they were learned. In the
paper a round is an epoch. Here the first epochs have several, and all epochs of many shards.

The weights are scale * v, and their running sum is scales * v - u. If shard s has changed an entry
of v by d, and its own running sum is scales_s * v - u_s, then mixing adds

    m_s * d                                         to v, m_s = a_s * scale_s / sum(mu_t * scale_t)
    scales * m_s * d - a_s / mu_s * (scales_s * d - u_s)    to u, scales = old + sum(scales_t)

for each shard in turn, where mu_s is the share of the shard, and a_s its share of this weight. All
other entries stay as they are.

In the paper a_s is mu_s. But most features occur in few shards, which alone change their weights,
and are then divided by the number of all. So by default a_s is 1 / n where n shards have changed
the weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from laso.engine import layout as at
from laso.engine.dropout import WithDropout
from laso.engine.epochs import InTurn, Learner, Training
from laso.engine.lattice.exact import ExactMachine
from laso.engine.lattice.maximisation import Climber
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import Machine, grown_table, longer, with_precisions
from laso.engine.weights.bloom import without_filter
from laso.engine.weights.hash_table import insert
from laso.engine.weights.row_layouts import (
    MATRICES,
    from_triples,
    is_sparse,
    n_labels,
    no_heads,
    spread,
    triples,
)
from laso.updates import Climb

MOST_SHARDS = 4096
LONGEST_RUN = 1000  # consecutive examples of one shard: they lie together in files
FIRST_MIXES = 4  # in the first epoch, when most is learned; half as many in each epoch after it
SHARDS_A_MIX = 4  # many shards are mixed more often: once in an epoch for so many of them
MOST_MIXES = 16
FEWEST = 8  # examples that a shard learns between mixing
BLOCK = 1 << 17  # weights that are compared at a time


class Start(NamedTuple):
    """The weights that all shards start a round with."""

    keys: Array  # int64: the feature key of each row
    slots: Array
    v: Array
    heads: Array  # of sparse rows, at least one; of dense rows none
    entry_labels: Array  # of sparse rows
    ints: Array
    reals: Array
    precisions: Array  # of arow()
    squares: Array | None  # of adagrad()
    clock: float

    @property
    def nbytes(self) -> int:
        """The size of the arrays, which travel to a worker."""
        return size_of(self)


class Change(NamedTuple):
    """What a round has changed in the weights of a shard."""

    keys: Array  # int64: the feature keys of new rows, which follow those of the start
    where: Array  # the changed weights, as row * labels + label
    v: Array  # their differences from the start
    u: Array  # their part of the running sum
    precisions: Array  # their differences, of arow(); else empty
    squares: Array  # their differences, of adagrad(); else empty
    ints: Array
    reals: Array
    clock: float
    objective: float | None  # the log-likelihood's part of it, per example of all shards
    wrong: int
    n_labels: int

    @property
    def nbytes(self) -> int:
        """The size of the arrays, which travel from a worker."""
        return size_of(self)


def size_of(fields: Iterable[object]) -> int:
    """Return the bytes of those fields that are arrays."""
    return sum(each.nbytes for each in fields if isinstance(each, np.ndarray))


@dataclass(frozen=True)
class ShardLearner:
    """Learns from the examples of one shard."""

    engine: Machine | ExactMachine | WithDropout
    average: bool
    examples: int  # of all shards

    def __call__(self, dataset: Dataset, order: Array, start: Start) -> Change:
        """Return what learning from these examples in turn changes in the weights."""
        training = Training(_table(start), squares=start.squares, clock=start.clock)
        slots = training.table.slots
        learner: Learner = self.engine
        settle: Callable[[], None] = lambda: None  # noqa: E731
        if isinstance(self.engine, ExactMachine) and isinstance(self.engine.rule, Climb):
            rule = self.engine.rule
            climber = Climber(self.engine, rule, training, self.average, self.examples)
            learner, settle = climber, climber.settle
        if isinstance(self.engine, WithDropout):
            learner = self.engine.for_round(int(start.ints[at.TICKS]), order)
        wrong = 0
        for _, wrong in InTurn(learner)(dataset, order, training):  # noqa: B007
            pass
        settle()
        # Rows get other numbers only in a new hash table.
        keys, numbers = _alignment(start, training.table, moved=training.table.slots is not slots)
        penalty = self.penalty(training.table)
        return _change(start, training, keys, numbers)._replace(
            objective=None if training.objective is None else training.objective + penalty,
            wrong=wrong,
        )

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


def in_rounds(order: Array, shards: int, epoch: int) -> list[list[Array]]:
    """Return the examples of each shard in each round of an epoch; weights are mixed after each."""
    shard_of = shard_of_examples(len(order), shards)
    mixes = max(FIRST_MIXES >> min(epoch, FIRST_MIXES), -(-shards // SHARDS_A_MIX))
    mixes = max(1, min(mixes, MOST_MIXES, len(order) // (FEWEST * shards))) if shards > 1 else 1
    parts = [np.array_split(order[shard_of[order] == shard], mixes) for shard in range(shards)]
    rounds = [[part for part in orders if len(part)] for orders in zip(*parts, strict=True)]
    return [orders for orders in rounds if orders]


def start_of(training: Training, keys: Array) -> Start:
    """Return the weights of a training with these keys, for the shards to start with."""
    table = training.table
    rows = int(table.ints[at.ROWS])
    used = int(table.ints[at.USED]) if is_sparse(table) else rows
    return Start(
        keys,
        table.slots,
        table.v[:used],
        table.heads[: max(rows, 1)],
        table.entry_labels[:used],
        table.ints,
        table.reals,
        table.precisions[: used if len(table.precisions) else 0],
        None if training.squares is None else training.squares[:rows],
        training.clock,
    )


def keys_by_row(table: WeightTable, first: int = 0) -> Array:
    """Return the feature key of each row, from one on."""
    keys = np.zeros(int(table.ints[at.ROWS]) - first, np.int64)
    used = table.slots[table.slots[:, at.SLOT_ROW] > first]
    keys[used[:, at.SLOT_ROW] - 1 - first] = used[:, at.SLOT_KEY]
    return keys


def uniform(updates: Array) -> Array:
    """Mix all shards alike."""
    return np.full(len(updates), 1.0 / len(updates))


def by_updates(updates: Array) -> Array:
    """Mix each shard in proportion to its number of updates."""
    total = updates.sum()
    return updates / total if total else uniform(updates)


class Mixing(NamedTuple):
    """How shards are mixed."""

    shares: Callable[[Array], Array]  # of the shards, from their numbers of updates
    by_weight: bool = False  # each weight among the shards that have changed it


MIXINGS = {
    "changed": Mixing(uniform, by_weight=True),
    "uniform": Mixing(uniform),
    "updates": Mixing(by_updates),
}
DEFAULT = MIXINGS["changed"]


@np.errstate(over="ignore", invalid="ignore")  # the estimator looks for weights that overflow
def mix(
    training: Training, changes: Sequence[Change], learner: ShardLearner, mixing: Mixing = DEFAULT
) -> Array:
    """Add the changes of all shards to the weights of a training; return the keys of new rows.

    The squared norm of the weights must be right before; see ``likelihood.measure``.
    """
    old, rows = training.table.reals.copy(), int(training.table.ints[at.ROWS])
    generation = int(training.table.ints[at.GENERATION])
    updates = np.array([int(change.ints[at.GENERATION]) - generation for change in changes])
    reals, mu = np.stack([change.reals for change in changes]), mixing.shares(updates)
    # As differences, so that what is the same in all shards stays the same to the last bit.
    mixed = old + mu @ (reals - old)
    keys = np.unique(np.concatenate([change.keys for change in changes]))
    table = training.table = _with_rows(training.table, keys)
    table.reals[at.SCALE], table.reals[at.MARGIN] = mixed[at.SCALE], mixed[at.MARGIN]
    table.reals[at.SCALES] = scales = old[at.SCALES] + math.fsum(reals[:, at.SCALES])
    table.ints[at.GENERATION] = generation + math.ceil(float(mu @ updates) - 1e-9)
    table.ints[at.TICKS] += sum(int(change.ints[at.TICKS]) for change in changes)
    if len(changes[0].precisions):
        table = with_precisions(table)
    places = [_places(rows, keys, change) for change in changes]
    weights = _Sparse(table, places) if is_sparse(table) else _Dense(table)
    found_at = [weights.find(place) for place in places]
    counts = _counts(found_at, len(weights.v))
    changed = np.flatnonzero(counts != 0)
    before = _square(weights.v[changed])
    for where, change, share in zip(found_at, changes, mu, strict=True):
        mean_share = 1.0 / counts[where] if mixing.by_weight else share
        part = mean_share * float(change.reals[at.SCALE] / mixed[at.SCALE])
        sums = float(change.reals[at.SCALES]) * change.v - change.u
        if mixing.by_weight:
            sums *= len(changes) * mean_share
        step = part * change.v
        weights.v[where] += step
        weights.u[where] += scales * step - sums
        if len(change.precisions):
            weights.precisions[where] += change.precisions
    square = old[at.SQUARE] / old[at.SCALE] ** 2 + (_square(weights.v[changed]) - before)
    table.reals[at.SQUARE] = mixed[at.SCALE] ** 2 * max(0.0, square)
    training.table = weights.table()
    _mix_steps(training, changes, places, mu)
    if changes[0].objective is not None:
        parts = math.fsum(change.objective or 0.0 for change in changes)
        training.objective = parts - learner.penalty(training.table)
    return keys


def _square(weights: Array) -> float:
    """Return the sum of the squares of some weights."""
    return float(np.einsum("i,i->", weights, weights, dtype=np.float64))


def _places(rows: int, keys: Array, change: Change) -> Array:
    """Return where the changed weights of a shard belong in the mixture."""
    places = change.where.astype(np.int64)
    new = int(np.searchsorted(places, rows * change.n_labels))
    row, label = np.divmod(places[new:], change.n_labels)
    row = rows + np.searchsorted(keys, change.keys)[row - rows]
    places[new:] = row * change.n_labels + label
    return places


def _counts(places: Sequence[Array], length: int) -> Array:
    """Return the number of shards that have changed each weight."""
    counts = np.zeros(length, np.min_scalar_type(len(places)))
    for each in places:
        counts[each] += 1
    return counts


class _Dense:
    """The weights of dense rows, by places row * labels + label."""

    def __init__(self, table: WeightTable) -> None:
        self._table = table
        self.v, self.u = table.v.reshape(-1), table.u.reshape(-1)
        self.precisions = table.precisions.reshape(-1)

    def find(self, places: Array) -> Array:
        return places

    def table(self) -> WeightTable:
        return self._table


class _Sparse:
    """The entries of sparse rows, those of further places included."""

    def __init__(self, table: WeightTable, places: Sequence[Array]) -> None:
        self._table = table
        known, values = triples(table, np.arange(int(table.ints[at.ROWS])))
        self._places = np.unique(np.concatenate([known, *places]))
        self.v, self.u, self.precisions = (
            spread(values[name], self.find(known), len(self._places)) for name in MATRICES
        )

    def find(self, places: Array) -> Array:
        return np.searchsorted(self._places, places)

    def table(self) -> WeightTable:
        width = n_labels(self._table)
        rows, labels = np.divmod(self._places, width)
        matrices = {"v": self.v, "u": self.u}
        if len(self._table.precisions):
            matrices["precisions"] = self.precisions
        table = self._table._replace(
            **from_triples(rows, labels, matrices, int(self._table.ints[at.ROWS]), width)
        )
        table.ints[at.USED] = len(table.v)
        return table._replace(heads=longer(table.heads, len(table.mark)))


def _mix_steps(
    training: Training, changes: Sequence[Change], places: Sequence[Array], mu: Array
) -> None:
    """Mix the state of gradient steps: the clock, and the sums of squared gradients."""
    clocks = np.array([change.clock for change in changes])
    training.clock += float(mu @ (clocks - training.clock))
    if not any(len(change.squares) for change in changes):
        return
    table, known = training.table, training.squares
    empty = np.zeros((0, table.v.shape[1]), table.v.dtype)
    squares = longer(empty if known is None else known, int(table.ints[at.ROWS]))
    for place, change in zip(places, changes, strict=True):
        squares.reshape(-1)[place] += change.squares
    training.squares = squares


def _table(start: Start) -> WeightTable:
    """Return the weights as a table of its own, with an empty running sum and room for more."""
    sparse, rows = len(start.heads) > 0, len(start.keys)
    room = rows * 5 // 4 + 1024
    entries = len(start.v) * 5 // 4 + 1024
    v = longer(start.v, entries)
    reals, ints = start.reals.copy(), start.ints.copy()
    reals[at.SCALES], ints[at.TICKS] = 0.0, 0
    return WeightTable(
        slots=start.slots.copy(),
        v=v,
        u=np.zeros(v.shape, v.dtype),
        mark=np.full(room, -1, np.int64),
        ints=ints,
        reals=reals,
        precisions=longer(start.precisions, entries if len(start.precisions) else 0),
        heads=longer(start.heads, room) if sparse else no_heads(),
        entry_labels=longer(start.entry_labels, entries if sparse else 0),
    )


def _change(start: Start, training: Training, keys: Array, numbers: Array) -> Change:
    """Return how weights differ from those at the start; ``numbers`` has the places of rows."""
    table = training.table
    rows = len(start.keys) + len(keys)
    changes_of = _sparse_changes if is_sparse(table) else _dense_changes
    where, values = changes_of(start, training, numbers, rows)
    if int(where[-1] if len(where) else 0) < 2**31:
        where = where.astype(np.int32)
    none = np.zeros(0, table.v.dtype)
    return Change(
        keys,
        where,
        values["v"],
        values["u"],
        values.get("precisions", none),
        values.get("squares", none),
        table.ints,
        table.reals,
        training.clock,
        None,
        0,
        n_labels(table),
    )


def _dense_changes(
    start: Start, training: Training, numbers: Array, rows: int
) -> tuple[Array, dict[str, Array]]:
    """Return which weights of dense rows have changed, and the differences."""
    table, used = training.table, len(numbers)
    after = {"v": table.v[:used], "u": table.u[:used]}
    before: dict[str, Array] = {"v": start.v, "u": start.v[:0]}
    if len(table.precisions):
        after["precisions"] = longer(table.precisions[:used], used)
        before["precisions"] = start.precisions
    if training.squares is not None:
        after["squares"] = longer(training.squares[:used], used)
        before["squares"] = start.v[:0] if start.squares is None else start.squares
    if not (rows == used and np.array_equal(numbers, np.arange(rows))):
        after = {name: spread(array, numbers, rows) for name, array in after.items()}
    pairs = [(after[name].reshape(-1), before[name].reshape(-1)) for name in after]
    where = _differing(pairs, rows * table.v.shape[1])
    values = {}
    for name, (array, known) in zip(after, pairs, strict=True):
        values[name] = array[where]
        n = int(np.searchsorted(where, len(known)))
        values[name][:n] -= known[where[:n]]
    return where, values


def _differing(pairs: Sequence[tuple[Array, Array]], length: int) -> Array:
    """Return where any array differs from the one before, which is followed by zeros."""
    differing = [np.zeros(0, np.int64)]
    for first in range(0, length, BLOCK):  # which stays in the processor's cache
        end = min(first + BLOCK, length)
        changed = np.zeros(end - first, bool)
        for array, known in pairs:
            middle = min(max(first, len(known)), end)
            changed[: middle - first] |= array[first:middle] != known[first:middle]
            changed[middle - first :] |= array[middle:end] != 0
        differing.append(np.flatnonzero(changed) + first)
    return np.concatenate(differing)


def _entries(start: Start, rows: int) -> tuple[Array, dict[str, Array]]:
    """Return the places of the entries of so many sparse rows, and their values."""
    table = WeightTable(
        slots=start.slots,
        v=start.v,
        u=start.v[:0],
        mark=start.keys[:0],
        ints=start.ints,
        reals=start.reals,
        precisions=start.precisions,
        heads=start.heads,
        entry_labels=start.entry_labels,
    )
    return triples(table, np.arange(rows))


def _sparse_changes(
    start: Start, training: Training, numbers: Array, rows: int
) -> tuple[Array, dict[str, Array]]:
    """Return which weights of sparse rows have changed, and the differences."""
    places, before = _entries(start, len(start.keys))
    places_after, after = triples(training.table, numbers)
    union = np.union1d(places, places_after)
    values = {}
    for name, array in after.items():
        if not len(getattr(training.table, name)):
            continue
        values[name] = spread(array, np.searchsorted(union, places_after), len(union))
        if len(before[name]):
            values[name][np.searchsorted(union, places)] -= before[name]
    changed = np.logical_or.reduce([each != 0 for each in values.values()])
    return union[changed], {name: each[changed] for name, each in values.items()}


def _alignment(start: Start, table: WeightTable, *, moved: bool) -> tuple[Array, Array]:
    """Return the keys of new rows, and the number of each row if those of the start come first.

    Learning may have moved rows, since it leaves out those that are empty.
    """
    known = len(start.keys)
    if not moved:
        return keys_by_row(table, known), np.arange(int(table.ints[at.ROWS]))
    keys = keys_by_row(table)
    order = np.argsort(start.keys, kind="stable")
    place = np.searchsorted(start.keys, keys, sorter=order)
    numbers = order[np.minimum(place, known - 1)] if known else place
    is_new = start.keys[numbers] != keys if known else np.ones(len(keys), bool)
    numbers[is_new] = known + np.arange(int(is_new.sum()))
    return keys[is_new], numbers


def _with_rows(table: WeightTable, keys: Array) -> WeightTable:
    """Return the table with further rows, for new feature keys."""
    rows = int(table.ints[at.ROWS])
    table = without_filter(grown_table(table, len(keys)))
    numbers = np.arange(rows + 1, rows + len(keys) + 1)
    insert(table.slots, np.stack([keys, numbers], axis=1))
    table.ints[at.ROWS] += len(keys)
    return with_precisions(table) if len(table.precisions) else table
