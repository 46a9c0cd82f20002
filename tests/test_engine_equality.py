"""The compiled engine equals the reference engine: nodes, updates, weights, averages, outputs."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from laso import early, laso, max_violation, standard
from tests.engine_inputs import TASKS, Task
from tests.engine_twins import QUEUES, UPDATES, WEIGHTINGS, Twins

few = settings(
    deadline=None,
    derandomize=True,
    max_examples=2,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize("strategy", [laso, early, standard, max_violation])
@pytest.mark.parametrize(
    ("task", "queue"),
    [(task, queue) for task in TASKS for queue in QUEUES if task.keyed or "key" not in queue],
    ids=repr,
)
def test_every_queue_update_weighting_and_strategy(task: Task, queue: str, strategy):
    @few
    @given(corpora=st.lists(task.corpora, min_size=len(UPDATES), max_size=len(UPDATES)))
    def same(corpora):
        for update, corpus in zip(UPDATES, corpora, strict=True):
            for weighting in WEIGHTINGS:
                Twins(task, corpus, QUEUES[queue], update(weighting), strategy).compare()

    same()
