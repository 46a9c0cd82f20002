"""A compiled problem in the reference engine, uncompiled: the specification of the compiled one.

``Reference(problem)`` is an ordinary ``laso.Problem`` whose inputs are ``Input`` objects and whose
operators are pairs (group, label). Feature names are pairs (key, label), as in
``machine.as_names``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.kernels.promises import write_defaults
from laso.engine.kernels.weight_table import drop_features, write_vector
from laso.engine.layout import Array, Dataset, Input, Out
from laso.engine.options import own_key
from laso.engine.problem import CompiledProblem
from laso.errors import BadProblem, out_of_reach, quoted
from laso.problem import CompiledState, Node, Problem
from laso.queues import MakeQueue, exact

Operator = tuple[int, int]


@dataclass(frozen=True)
class State(CompiledState):
    """A state with the key, the signature and the operator of the step into it."""

    row: tuple[int, ...]
    key: int = 0
    signature: int = 0
    step: Operator | None = None
    before: tuple[int, ...] = ()
    position: int = 0  # items that the steps so far are about, where a task tells


class Reference(Problem):
    """Runs the methods of a compiled problem as plain Python, one step at a time.

    ``dropout`` is the share of the features of blocks to leave out, of DROPOUT_SCALE, and a number
    drawn for this visit of the example.
    """

    def __init__(self, problem: type[CompiledProblem], n_labels: int, *, hash_bits: int = 0):
        self.problem = problem
        self.n_labels = n_labels
        self.hash_bits = hash_bits
        self.dropout = (0, 0)
        self._last: tuple[Input, Array] | None = None  # an input, and its limits
        self.vector_weights: dict[int, int] = {}  # the weights' numbers of keys of vectors seen

    def _limits(self, x: Input) -> Array:
        if self._last is None or self._last[0] is not x:
            self._last = x, limits_of(self.problem, x, self.n_labels)
        return self._last[1]

    def _row(self, state: State) -> Array:
        return np.array(state.row, np.int32)

    def initial(self, x: Input) -> State:
        row = np.zeros(self._limits(x)[at.STATE_SIZE], np.int32)
        self.problem.initial(x, row)
        return State(tuple(row.tolist()))

    def operators(self, x: Input, state: State) -> Iterator[Operator]:
        row = self._row(state)
        limits = self._limits(x)
        groups = np.zeros(limits[at.MAX_GROUPS], np.int32)
        for i in range(self.problem.groups(x, row, groups)):
            for label in range(limits[at.MAX_LABELS]):
                if self.problem.allowed(x, row, int(groups[i]), label):
                    yield int(groups[i]), label

    def apply(self, x: Input, state: State, operator: Operator) -> State:
        row = self._row(state)
        new = np.zeros_like(row)
        self.problem.apply(x, row, *operator, new)
        return State(
            tuple(new.tolist()),
            int(self.problem.key(x, row, *operator)),
            int(self.problem.signature(x, row, *operator)),
            operator,
            state.row,
        )

    def is_goal(self, x: Input, state: State) -> bool:
        return bool(self.problem.is_goal(x, self._row(state)))

    def features(self, x: Input, state: State, operator: Operator) -> dict[Any, float]:
        row = self._row(state)
        vector: dict[Any, float] = {}

        def add(features: Iterable[tuple[int, float]], label: int) -> None:
            for key, value in features:
                if self.hash_bits:
                    key &= (1 << self.hash_bits) - 1
                vector[key, label] = vector.get((key, label), 0.0) + value

        for group, label in self.factors_of(x, row, operator):
            for block in self.blocks_of(x, int(self.problem.block(x, row, group))):
                add(self.of_block(x, block), label)
            add(self.own_features(x, row, group), label)
        return vector

    def own_features(self, x: Input, row: Array, group: int) -> Iterator[tuple[int, float]]:
        """Yield key and value of the features of a group that are in no block."""
        out = self._out(x)
        return _pairs(out, self.problem.features(x, row, group, out))

    def of_block(self, x: Input, block: int) -> Iterator[tuple[int, float]]:
        """Yield key and value of the features of a block, then those of its dense vectors."""
        out = self._out(x)
        yield from _pairs(out, self._block_features(x, block, out))
        for vector_row, weights in self._vectors(x, block):
            dimensions = vector_buffer(x)
            n = write_vector(x.vectors[vector_row], weights, dimensions, 0)
            if int(dimensions.keys[0]) not in self.vector_weights:
                keys = dimensions.keys[:n].tolist()
                self.vector_weights |= dict.fromkeys(keys, int(weights))
            yield from _pairs(dimensions, n)

    def _out(self, x: Input) -> Out:
        return Out(*(np.ones(self._limits(x)[at.MAX_FEATURES], t) for t in (np.int64, np.float64)))

    def _block_features(self, x: Input, block: int, out: Out) -> int:
        n, (share, visit) = self.problem.block_features(x, block, out), self.dropout
        if not share:
            return n
        return drop_features(out, n, mix(visit, block), share)

    def _vectors(self, x: Input, block: int) -> Iterator[tuple[int, int]]:
        """Yield row and weights of the dense vectors of a block that exist."""
        for i in range(self._limits(x)[at.VECTORS] + 1):
            row, weights = self.problem.vectors(x, block, i)
            if weights < 0:
                return
            if 0 <= row < len(x.vectors):
                yield int(row), int(weights)
        raise self._endless("vectors")

    def factors_of(self, x: Input, row: Array, operator: Operator) -> Iterator[Operator]:
        """Yield group and label of the factors of a step, whose own are the first."""
        yield operator
        for i in range(at.MOST_FACTORS + 1):
            group, label = self.problem.factors(x, row, operator[0], i)
            if group < 0:
                return
            yield int(group), operator[1] if label == at.SAME_LABEL else int(label)
        raise self._endless("factors")

    def blocks_of(self, x: Input, block: int) -> Iterator[int]:
        """Yield the sub-blocks of a block, all the way down, then the block."""
        stack, visited = [(block, 0)] if block >= 0 else [], 0
        while stack:
            block, i = stack.pop()
            below = int(self.problem.sub_block(x, block, i))
            visited += 1
            if below < 0:
                yield block
            elif below >= block or i >= block or visited > at.MOST_VISITED:
                raise self._endless("sub_block")
            else:
                stack += [(block, i + 1), (below, 0)]

    def _endless(self, method: str) -> BadProblem:
        return BadProblem(
            f"{self.problem.__name__}.{method} has not returned -1, expected fewer calls until then"
        )

    def is_good(self, x: Input, y: Array, node: Node) -> bool:
        state: State = node.state
        if state.step is None:
            return True
        return bool(self.problem.is_good(x, y, np.array(state.before, np.int32), *state.step))

    def loss(self, x: Input, y: Array, node: Node) -> float:
        state: State = node.state
        assert node.parent is not None
        assert state.step is not None
        before = np.array(state.before, np.int32)
        was_good, good = bool(node.parent.good), bool(node.good)
        return float(self.problem.loss(x, y, before, *state.step, was_good, good))


def _pairs(out: Out, n: int) -> Iterator[tuple[int, float]]:
    """Return the first n keys of a buffer with their values."""
    return zip(out.keys[:n].tolist(), out.values[:n].tolist(), strict=True)


def vector_buffer(x: Input) -> Out:
    """Return a buffer for one dense vector of an input."""
    size = x.vectors.shape[1]
    return Out(np.zeros(size, np.int64), np.zeros(size))


def limits_of(problem: type[CompiledProblem], x: Input, n_labels: int) -> Array:
    """Return the limits of an input; rows of weights have so many labels."""
    limits = np.zeros(len(at.Limit), np.int64)
    write_defaults(x, n_labels, limits)
    problem.limits(x, limits)
    limits[: at.MAX_LABELS] = np.maximum(limits[: at.MAX_LABELS], 1)
    return limits


def input_of(dataset: Dataset, i: int) -> Input:
    """Return input i of a dataset."""
    part = slice(dataset.starts[i], dataset.starts[i + 1])
    items, vectors = dataset.items[part], dataset.vectors[part]
    return Input(items, dataset.pool, dataset.values, dataset.spec, dataset.costs, vectors)


def output_of(dataset: Dataset, i: int) -> Array:
    """Return output i of a dataset."""
    return dataset.outputs[dataset.output_starts[i] : dataset.output_starts[i + 1]]


def gold_path(problem: type[CompiledProblem], x: Input, y: Array, n_labels: int) -> list[Operator]:
    """The first path of y-good steps to a goal; as far as there is one."""
    reference = Reference(problem, n_labels)
    state, path = reference.initial(x), []
    while not reference.is_goal(x, state):
        row = np.array(state.row, np.int32)
        good = (step for step in reference.operators(x, state) if problem.is_good(x, y, row, *step))
        step = next(good, None)
        if step is None:
            break
        path.append(step)
        state = reference.apply(x, state, step)
    return path


def dead_end(problem: type[CompiledProblem], x: Input, y: Array, n_labels: int) -> str:
    """Return why learning finds no path to an output."""
    reference = Reference(problem, n_labels)
    state = reference.initial(x)
    for step in gold_path(problem, x, y, n_labels):
        state = reference.apply(x, state, step)
    if not reference.is_goal(x, state):
        return out_of_reach(y.tolist(), state.row, len(list(reference.operators(x, state))))
    return (
        f"the output {quoted(y.tolist())} can be reached, but the search has joined a state on its "
        "path with another: states of equal signature and key must have the same future"
    )


def exact_queue(keyed: bool) -> MakeQueue:
    """Return the reference engine's exact search by signature."""
    return exact(lambda state: state.signature, key=own_key if keyed else None)
