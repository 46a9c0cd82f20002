"""Dropout: learning from examples without some of their features, each time without others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.layout import Array, Dataset, Run, WeightTable
from laso.engine.machine import Machine
from laso.engine.options import is_exact
from laso.engine.problem import CompiledProblem
from laso.queues import MakeQueue


@dataclass(frozen=True)
class WithDropout:
    """A learner that leaves out a share of the features of each example.

    Only the features of blocks are left out, which do not depend on the state of the search. Which
    ones depends on the seed, the number of examples visited before, the block, and the place of the
    feature in its block, so that a training can be resumed.
    """

    machine: Machine
    rate: float
    seed: int

    def new_run(self, dataset: Dataset, order: Array, table: WeightTable) -> Run:
        """Return working space for the largest of the given inputs."""
        run = self.machine.new_run(dataset, order, table)
        run.meta[at.DROPOUT] = round(self.rate * at.DROPOUT_SCALE)
        run.meta[at.DROPOUT_SEED] = mix(self.seed, 1)  # not 0, from which only zeros are drawn
        return run

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, run: Run
    ) -> tuple[WeightTable, Run, int]:
        """Learn from the given examples in turn; return table and run as grown, and the errors."""
        return self.machine.learn(dataset, order, table, run)


def is_rate(value: Any) -> bool:
    """Return whether a value can be the parameter ``dropout``."""
    return value is None or (isinstance(value, (int, float)) and 0 <= value < 1)


def why_no_dropout(problem: type[CompiledProblem], queue: MakeQueue, shards: int) -> str | None:
    """Return what makes dropout impossible; None: nothing does."""
    if problem.block is CompiledProblem.block:
        return f"{problem.__name__} without blocks"
    if is_exact(queue):
        return repr(queue)
    return None if shards == 1 else f"{shards} shards"
