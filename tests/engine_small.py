"""Both engines on small inputs, to be run where Numba is set up otherwise: tests/engine_small.py.

python -m tests.engine_small TASK,... STRATEGY,...
"""

from __future__ import annotations

import contextlib
import sys

from hypothesis import HealthCheck, given, settings
from hypothesis.errors import UnsatisfiedAssumption

from laso import beam, best_siblings, perceptron, restart
from tests.engine_inputs import TASKS, Task
from tests.engine_twins import STRATEGIES, Twins, some_of_each, tolerance_of


def compare(task: Task, strategies: list[str]) -> None:
    """Every queue with these strategies, on a few corpora, from the smallest arrays on."""
    chosen = some_of_each(task, [s for s in STRATEGIES if s.__name__ in strategies])

    @settings(
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=4,
        suppress_health_check=list(HealthCheck),
    )
    @given(task.corpora)
    def same(corpus):
        for i, choice in enumerate(chosen):
            # What is too close to compare is passed over, not the whole corpus.
            with contextlib.suppress(UnsatisfiedAssumption):
                tolerance = tolerance_of(task, *choice[1:])
                Twins(task, corpus, *choice, tolerance=tolerance).compare(small=True)
                if i % 3 == 0:
                    Twins(task, corpus, *choice, tolerance=1e-9, sparse=True).compare(small=True)
        few = (beam(3), perceptron(), best_siblings(1, restart))
        with contextlib.suppress(UnsatisfiedAssumption):
            Twins(task, corpus, *few, tolerance=1e-9).compare()
        Twins(task, corpus, *chosen[0], tolerance=1e-9).compare(hash_bits=3)
        Twins(task, corpus, *chosen[0], tolerance=1e-9, dropout=0.4).compare()

    same()


if __name__ == "__main__":
    names, strategies = (argument.split(",") for argument in sys.argv[1:])
    tasks = {str(task): task for task in TASKS}
    for name in names:
        compare(tasks[name], strategies)
