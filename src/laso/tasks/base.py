"""The interface of a task, which defines the search problem and the form of its outputs.

    class Segmentation(Task):
        name = "segmentation"
        problem = Segments                   # a CompiledProblem
        labels = ("word",)

        def items(self, x): return list(x)   # strings are numbered by the library
        def gold(self, x, y): ...            # y as the numbers that Segments.is_good reads
        def decode(self, x, steps): ...      # from steps (group, label) to an output

    model = SearchEstimator(Segmentation()).fit(X, y)

An estimator calls its task; a task never calls back.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from laso.data import read_columns
from laso.engine.layout import Array
from laso.engine.problem import CompiledProblem
from laso.queues import MakeQueue, beam
from laso.tasks.batches import BatchTask, Operator
from laso.training import Rule
from laso.updates import perceptron


class Step(NamedTuple):
    """The name of a step, and the number of items that it covers."""

    name: str
    length: int = 1


class Task(BatchTask):
    """Defines a search problem, its inputs and its outputs; an estimator does everything else.

    A task is a subclass that overrides the required methods. ``__init__`` stores parameters under
    their names; attributes learned from data end in ``_``.

    Attributes
    ----------
    name : str
        The task's name in model files.
    problem : type of CompiledProblem
        The search problem.
    labels : sequence of str, or None
        The names of the labels of operators, by their numbers. None: the strings that ``gold``
        returns for the training data, sorted.
    """

    name: ClassVar[str] = ""
    problem: type[CompiledProblem]
    labels: Sequence[str] | None = None

    # ------------------------------------------------------------------ required

    def items(self, x: Any) -> Sequence[Any]:
        """Return the rows of one input: strings, integers, or tuples of them.

        The library numbers strings, column by column; a string that training never saw is -1.
        The problem finds the numbers in ``x.items``.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method items(x)")

    def gold(self, x: Any, y: Any) -> Sequence[Any]:
        """Return the gold output of one input as integers and labels, as ``is_good`` reads it.

        A label (a string) becomes its number, None becomes -1.
        """
        raise NotImplementedError(f"{type(self).__name__} needs a method gold(x, y)")

    def decode(self, x: Any, steps: Sequence[Operator]) -> Any:
        """Return the output of one input, given the steps (group, label) of the search."""
        raise NotImplementedError(f"{type(self).__name__} needs a method decode(x, steps)")

    # ------------------------------------------------------------------ optional

    steps_are_chunks: ClassVar[bool] = False
    """Whether a step is a labelled chunk of items."""

    def constants(self) -> Sequence[int]:
        """Return the problem's constants, ``x.spec``."""
        return ()

    def score(self, gold: Sequence[Any], predicted: Sequence[Any]) -> float:
        """Return a score from 0 to 1; by default, the fraction of correct outputs."""
        pairs = list(zip(gold, predicted, strict=True))
        return sum(bool(a == b) for a, b in pairs) / max(1, len(pairs))

    def describe(self, group: int, label: int) -> Step:
        """Return the name of a step, and the number of items that it covers.

        Explanations, forced outputs and confidences use these names.
        """
        name = self.classes[label]
        return Step(f"{name} {group}" if group else name)

    def describe_feature(self, numbers: Sequence[int], items: Array) -> str | None:
        """Return the name of the feature whose key ``mix`` hashed from these numbers, in order.

        ``items`` are the encoded rows that the step covers. None: the feature has no name.
        """
        return None

    def feature_names(self, keys: Array) -> dict[int, str]:
        """Return the names of those feature keys that can be named without an input."""
        return {}

    def decisions(self, y: Any) -> set[tuple[str, int, int]] | None:
        """Return the steps of a gold output as (name, first item, end).

        None: calibration follows y-good steps to find them.
        """
        return None

    def read_file(self, path: str, *, labelled: bool) -> tuple[list[Any], list[Any] | None]:
        """Return the inputs of a file, and the outputs if it is ``labelled``, for the command line.

        By default a file has one token a line, with columns separated by blanks, the label last,
        and an empty line after each sentence.
        """
        sentences = read_columns(path)
        if not labelled:
            return [[t[0] if len(t) == 1 else t for t in s] for s in sentences], None
        X = [[t[0] if len(t) == 2 else t[:-1] for t in s] for s in sentences]
        return X, [[t[-1] for t in s] for s in sentences]

    def write_output(self, x: Any, y: Any) -> str:
        """Return an output as the command line writes it.

        By default, one line with token and label for each token if tokens have labels, else JSON.
        """
        if isinstance(y, list) and isinstance(x, list) and len(x) == len(y) and x:
            rows = [
                [*(t if isinstance(t, tuple) else (t,)), each] for t, each in zip(x, y, strict=True)
            ]
            return "".join("\t".join(map(str, row)) + "\n" for row in rows)
        return json.dumps(y, ensure_ascii=False)

    def default_queue(self) -> MakeQueue:
        """Return the default queue."""
        return beam(5)

    def default_update(self) -> Rule:
        """Return the default update rule."""
        return perceptron()

    def bias_keys(self) -> Sequence[int]:
        """Return feature keys of which every step has exactly one, for ``biased``."""
        return ()

    def state(self) -> dict[str, Any]:
        """Return further state for the model file, as JSON."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore what ``state`` returned; the file may contain anything."""

    def validate(self) -> None:
        """Raise ValueError if a parameter is invalid."""
