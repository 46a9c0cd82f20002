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
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.queues import MakeQueue, beam
from laso.tasks import displays
from laso.tasks.batches import BatchTask, Operator
from laso.training import Rule
from laso.updates import perceptron
from laso.weightings import worst

Decision = tuple[str, int, int]
"""A part of an output: its name, its first item, and the item after its last."""


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
    step_length_ : float
        The mean squared length of the features of gold steps, which an estimator measures in a
        sample of the training data if the update is the task's default.

    Examples
    --------
    >>> from laso.examples.segmentation import Segmentation
    >>> task = Segmentation()  # a subclass of Task of 20 lines
    >>> task.items("acat"), task.gold("acat", ["a", "cat"])
    (['a', 'c', 'a', 't'], [1, 3, 0, 0])
    >>> task.decode("acat", [(1, 0), (3, 0)])
    ['a', 'cat']
    """

    name: ClassVar[str] = ""
    problem: type[CompiledProblem]
    labels: Sequence[str] | None = None
    step_length_: float

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

    measures_steps: ClassVar[bool] = True
    """Whether the default update depends on ``step_length_``."""

    many_paths: ClassVar[bool] = False
    """Whether several paths may lead to one output, which n-best lists and confidences merge."""

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

    def path_decisions(self, steps: Sequence[Operator]) -> list[Decision | None]:
        """Return what each step of a path decides: (name, first item, end), or None for nothing.

        Confidences add up the paths that decide the same. By default a step is about the items that
        follow those of the steps before.
        """
        decided: list[Decision | None] = []
        first = 0
        for group, label in steps:
            name, length = self.describe(group, label)
            decided.append((name, first, first + length))
            first += length
        return decided

    def step_items(
        self, state: Sequence[int], operator: Operator, position: int
    ) -> tuple[Sequence[Any], int, int]:
        """Return the names under which a step may be banned, the first item it is about, the end.

        ``position`` is the number of items that the steps before have covered.
        """
        name, length = self.describe(*operator)
        return [name], position, position + length

    def words(self, x: Any) -> list[str]:
        """Return a word for each item of an input, for explanations; by default, the items."""
        firsts = (item[0] if isinstance(item, tuple) and item else item for item in self.items(x))
        return [str(first) for first in firsts]

    def step_text(
        self, state: Sequence[int], operator: Operator, words: Sequence[str]
    ) -> str | None:
        """Return what a step says of the words, for explanations; None: word and name say it."""
        return None

    display = displays.steps
    """Returns the ``Display`` of an output, given the task, an input, the output and its decisions.

    By default it has the steps under the names of ``describe``.
    """

    def known_gold(self, inputs: Any, known: Any) -> Dataset | None:
        """Return one input with an output of which only ``known`` is known, to learn from.

        ``predict_forced`` then takes steps that are good for it. None: it compares the names of
        steps.
        """
        return None

    def evaluation(self, gold: Sequence[Any], predicted: Sequence[Any]) -> Any:
        """Return the evaluation that the command line writes; it has score, as_json and str."""
        from laso.metrics.evaluation import Score

        return Score(len(gold), self.score(gold, predicted))

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
        """Return the default update rule: the perceptron against the best wrong node.

        Its margin is the squared length of a step's features, which is their number if all are 1.
        A perceptron's update changes the score of a step by about as much.
        """
        return perceptron(weighting=worst, margin=getattr(self, "step_length_", 1.0))

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
