"""Dropout: learning from examples without some of their features, each time without others."""

from __future__ import annotations

from dataclasses import dataclass

from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.layout import Array, Dataset, Run, WeightTable
from laso.engine.machine import Machine


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

    def for_round(self, visited: int, order: Array) -> WithDropout:
        """Return the learner of one shard in one round, whose own count of visits starts at 0."""
        first = int(order[0]) if len(order) else 0
        seed = int(mix(mix(self.seed, visited + 1), first + 1))
        return WithDropout(self.machine, self.rate, seed)

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
