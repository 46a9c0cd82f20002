"""Train and predict with a compiled problem.

model = fit(MyProblem, [(items, y), ...], n_labels=3, queue=beam(5))
steps = model.predict([items, ...])      # for each input its operators (group, label)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import Machine, all_of, default_threads, new_table
from laso.engine.options import is_exact, options_for
from laso.engine.passes import Plan, Report, Training, train
from laso.engine.problem import CompiledProblem
from laso.errors import BadData
from laso.learn import laso
from laso.queues import MakeQueue, beam
from laso.training import Rule, Strategy
from laso.updates import perceptron


def make_dataset(
    inputs: Iterable[Any],
    outputs: Iterable[Any] | None = None,
    *,
    spec: Sequence[int] | Array = (),
    pool: Any = (),
    values: Any = (),
) -> Dataset:
    """Join inputs (tables of integers, one row per item) and outputs (rows of integers) to arrays.

    The problem's methods receive ``spec``, ``pool`` and ``values`` unchanged.
    """
    tables = [_table(x, i) for i, x in enumerate(inputs)]
    gold = [np.asarray(y, np.int32).reshape(-1) for y in (outputs if outputs is not None else ())]
    if outputs is not None and len(gold) != len(tables):
        raise BadData(f"found {len(tables)} inputs but {len(gold)} outputs")
    columns = {x.shape[1] for x in tables}
    if len(columns) > 1:
        raise BadData(f"all inputs need equally many columns, found {sorted(columns)}")
    return Dataset(
        items=_joined(tables, np.zeros((0, columns.pop() if columns else 1), np.int32)),
        starts=_starts(tables),
        pool=np.ascontiguousarray(pool, np.int64),
        values=np.ascontiguousarray(values, np.float32),
        spec=np.ascontiguousarray(spec, np.int64),
        outputs=_joined(gold, np.zeros(0, np.int32)),
        output_starts=_starts(gold if outputs is not None else tables[:0]),
    )


def _table(x: Any, i: int) -> Array:
    table = np.asarray(x)
    if table.size and not np.issubdtype(table.dtype, np.integer):
        raise BadData(f"input {i} must be a table of integers, found {table.dtype}")
    if table.ndim == 1:
        table = table.reshape(-1, 1)
    if table.ndim != 2:
        raise BadData(f"input {i} must have one row for each item, found {table.ndim} dimensions")
    return np.asarray(table, np.int32)


def _joined(arrays: list[Array], empty: Array) -> Array:
    return np.ascontiguousarray(np.concatenate(arrays)) if arrays else empty


def _starts(arrays: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum([len(a) for a in arrays], dtype=np.int64)]).astype(
        np.int64
    )


@dataclass(frozen=True)
class CompiledModel:
    """A compiled problem with its weights, and the engine that they were trained in."""

    machine: Machine | ExactMachine
    training: Training
    spec: Array

    @property
    def table(self) -> WeightTable:
        """The weights that prediction uses (see ``Plan.average``)."""
        assert self.training.best is not None
        return self.training.best

    def predict(
        self, inputs: Iterable[Any], *, pool: Any = (), values: Any = (), threads: int | None = None
    ) -> list[Array]:
        """Return the predicted operators (group, label) of each input, one row per step."""
        dataset = make_dataset(inputs, spec=self.spec, pool=pool, values=values)
        steps, ends, _ = self.machine.decode(
            dataset, all_of(dataset), self.table, threads=threads or default_threads()
        )
        return np.split(steps, ends[:-1]) if len(ends) else []


def machine_for(
    problem: type[CompiledProblem],
    *,
    queue: MakeQueue | None = None,
    update: Rule | None = None,
    strategy: Strategy = laso,
) -> Machine | ExactMachine:
    """Return the engine for a problem; ``exact()`` needs a problem with a signature.

    With ``exact()`` the strategy ``laso`` compares expectations over the lattice, the others
    compare the best paths.
    """
    queue, update = queue or beam(5), update or perceptron()
    if is_exact(queue):
        return ExactMachine(problem, update, expected=strategy is laso)
    return Machine(problem, options_for(problem, queue, update, strategy))


def fit(
    problem: type[CompiledProblem],
    data: Iterable[tuple[Any, Any]],
    *,
    n_labels: int,
    spec: Sequence[int] | Array = (),
    pool: Any = (),
    values: Any = (),
    queue: MakeQueue | None = None,
    update: Rule | None = None,
    strategy: Strategy = laso,
    plan: Plan | None = None,
    progress: Callable[[Report], None] | None = None,
) -> CompiledModel:
    """Train a compiled problem on pairs (input, output)."""
    pairs = list(data)
    if not pairs:
        raise ValueError("there is nothing to learn from: no pair (x, y) was given")
    dataset = make_dataset(
        (x for x, _ in pairs), [y for _, y in pairs], spec=spec, pool=pool, values=values
    )
    machine = machine_for(problem, queue=queue, update=update, strategy=strategy)
    training = Training(new_table(n_labels, margin=machine.options.margin))
    if isinstance(machine, ExactMachine):
        machine.fit(dataset, training, plan or Plan(), progress=progress)
    else:
        train(machine, dataset, training, plan or Plan(), progress=progress)
    return CompiledModel(machine, training, dataset.spec)
