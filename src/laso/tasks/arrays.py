"""The task of a compiled problem whose inputs are integer arrays and whose outputs are steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laso.engine.dataset import make_dataset
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.tasks.base import Task
from laso.tasks.batches import Operator


class ArrayTask(Task):
    """Searches a compiled problem over integer inputs; an output is the list of its steps.

    Parameters
    ----------
    problem : type of CompiledProblem
        The problem.
    n_labels : int, default=1
        The number of labels of operators.
    spec : sequence of int, default=()
        The problem's constants, ``x.spec``.
    pool, values : sequences, default=()
        Arrays that all inputs share, ``x.pool`` and ``x.values``.
    """

    name = "arrays"

    def __init__(
        self,
        problem: type[CompiledProblem],
        *,
        n_labels: int = 1,
        spec: Sequence[int] | Array = (),
        pool: Any = (),
        values: Any = (),
    ) -> None:
        if not (isinstance(problem, type) and issubclass(problem, CompiledProblem)):
            raise ValueError(f"problem must be a subclass of CompiledProblem, found {problem!r}")
        self.problem = problem
        self.n_labels = n_labels
        self.spec = spec
        self.pool = pool
        self.values = values

    @property
    def classes(self) -> tuple[str, ...]:
        """The numbers of the labels, as text."""
        return tuple(map(str, range(self.n_labels)))

    def items(self, x: Any) -> Sequence[Any]:
        """Return the rows of an input."""
        return list(x)

    def gold(self, x: Any, y: Any) -> Sequence[Any]:
        """Return the output unchanged."""
        return list(y)

    def encode(self, inputs: Any, outputs: Any = None) -> Dataset:
        """Return integer inputs and outputs as arrays."""
        return make_dataset(inputs, outputs, spec=self.spec, pool=self.pool, values=self.values)

    def decode(self, x: Any, steps: Sequence[Operator]) -> list[Operator]:
        """Return the steps (group, label)."""
        return list(steps)
