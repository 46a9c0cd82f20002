"""Dropout: learning from examples without some of their features, each time without others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.hashing import mix
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import Machine
from laso.features.encoder import take_inputs
from laso.features.inputs import mix_arrays

BITS = 53  # of a number drawn


@dataclass(frozen=True)
class WithDropout:
    """A learner that leaves out a share of the features of each example.

    The items of its datasets are ranges (first, end) of the pool. Which features are left out
    depends on the seed, the number of examples visited before, and the place in the pool, so that a
    training can be resumed.
    """

    machine: Machine
    rate: float
    seed: int

    def new_run(self, dataset: Dataset, order: Array, table: WeightTable) -> Any:
        """Return working space for the largest of the given inputs."""
        return self.machine.new_run(dataset, order, table)

    def learn(
        self, dataset: Dataset, order: Array, table: WeightTable, run: Any
    ) -> tuple[WeightTable, Any, int]:
        """Learn from the given examples in turn; return table and run as grown, and the errors."""
        drawn = mix(self.seed, int(table.ints[at.TICKS]))
        some = with_fewer_features(dataset, order, self.rate, drawn)
        return self.machine.learn(some, np.arange(len(order)), table, run)


def with_fewer_features(dataset: Dataset, chosen: Array, rate: float, seed: int) -> Dataset:
    """Return the chosen inputs without a share of the features of their items."""
    some = take_inputs(dataset, chosen)
    counts = some.items[:, 1] - some.items[:, 0]
    ends = np.cumsum(counts, dtype=np.int64)
    begins = ends - counts
    places = np.repeat(some.items[:, 0] - begins, counts) + np.arange(counts.sum())
    key = np.array([seed], np.int64).view(np.uint64)
    drawn = mix_arrays(mix_arrays(key, places.astype(np.uint64)), key)  # once is not random enough
    kept = drawn >> np.uint64(64 - BITS) >= np.uint64(rate * (1 << BITS))
    before = np.concatenate([[0], np.cumsum(kept)]).astype(np.int32)
    places = places[kept]
    return some._replace(
        items=np.stack([before[begins], before[ends]], axis=1),
        pool=some.pool[places],
        values=some.values[places] if len(some.values) else some.values,
    )
