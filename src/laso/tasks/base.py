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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from laso.data import read_columns
from laso.engine.dataset import make_dataset
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.encoder import pack_strings, unpack_strings
from laso.queues import MakeQueue, beam
from laso.tasks.vocabulary import Vocabulary
from laso.training import Rule
from laso.updates import perceptron

Operator = tuple[int, int]
"""A step of the search: (group, label)."""


class Step(NamedTuple):
    """The name of a step, and the number of items that it covers."""

    name: str
    length: int = 1


class Ambiguity(NamedTuple):
    """The number of possible labels of each item in partially known outputs; which are known."""

    choices: Array
    known: Array
    lengths: Array


class Task:
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

    # ------------------------------------------------------------------ for many inputs at once
    # The estimator calls these. Override them for speed, or for other kinds of data.

    def read(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return inputs and gold outputs from the arguments of ``fit`` or ``score``."""
        inputs = self.read_inputs(X)
        if y is None:
            raise BadData("found no outputs to learn from, expected y beside X")
        outputs = list(y)
        if len(outputs) != len(inputs):
            raise BadData(f"found {len(outputs)} outputs for {len(inputs)} inputs")
        if not inputs:
            raise BadData("found no example to learn from, expected at least one")
        return inputs, outputs

    def read_inputs(self, X: Any) -> Any:
        """Return inputs from the argument of ``predict``."""
        if X is None or isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
            raise BadData(f"found {quoted(X)} for X, expected a list of inputs")
        return list(X)

    def take(self, inputs: Any, chosen: Sequence[int]) -> Any:
        """Return the chosen inputs."""
        return [inputs[i] for i in chosen]

    def observe(self, parts: Iterable[tuple[Any, Any]], *, classes: Sequence[str] = ()) -> None:
        """Learn what encoding needs, such as the labels.

        ``parts`` are (inputs, outputs) of all training data, in pieces. ``partial_fit`` calls it
        again for later data, whose new labels follow the old ones.
        """
        counts: Counter[str] = Counter()
        for inputs, outputs in parts:
            for x, y in zip(inputs, outputs, strict=True):
                counts.update(each for each in self.gold(x, y) if isinstance(each, str))
        if self.labels is None:
            known: tuple[str, ...] = getattr(self, "labels_", ())
            self.labels_ = (*known, *sorted({*counts, *classes} - set(known)))
        self.label_counts_ = [counts]
        if not hasattr(self, "vocabulary_"):
            self.vocabulary_ = Vocabulary()

    @property
    def classes(self) -> tuple[str, ...]:
        """The labels of operators, in the order of their numbers."""
        return tuple(getattr(self, "labels_", ()) if self.labels is None else self.labels)

    def encode(self, inputs: Any, outputs: Any = None) -> Dataset:
        """Return inputs as arrays; with outputs, for training, new strings get numbers."""
        learning = outputs is not None
        number = self.vocabulary_.number
        tables = [number(self.items(x), grow=learning, example=i) for i, x in enumerate(inputs)]
        gold = None
        if learning:
            pairs = zip(inputs, outputs, strict=True)
            gold = [self._gold_numbers(self.gold(x, y), i) for i, (x, y) in enumerate(pairs)]
        return make_dataset(tables, gold, spec=self.constants())

    def _gold_numbers(self, gold: Sequence[Any], example: int) -> list[int]:
        numbers: dict[Any, int] = {label: i for i, label in enumerate(self.classes)}
        numbers[None] = -1
        encoded = []
        for each in gold:
            if isinstance(each, str) or each is None:
                if each not in numbers:
                    raise BadData(
                        f"found the label {quoted(each)}, which training has not seen; expected "
                        f"one of {listed(self.classes)}",
                        sentence=example + 1,
                    )
                encoded.append(numbers[each])
            else:
                encoded.append(int(each))
        return encoded

    def problem_for(self, dataset: Dataset) -> type[CompiledProblem]:
        """Return the problem for this dataset; by default ``problem``."""
        return self.problem

    def ambiguity(self, inputs: Any, outputs: Any) -> Ambiguity | None:
        """Return the ambiguity of partially known outputs; None: all outputs are known."""
        return None

    def decode_all(self, inputs: Any, steps: Array, ends: Array) -> list[Any]:
        """Return the outputs of all inputs: the steps of input i end at ``ends[i]``."""
        paths = split_steps(steps, ends)
        return [self.decode(x, path) for x, path in zip(inputs, paths, strict=True)]

    def gold_outputs(self, inputs: Any, outputs: Any) -> list[Any]:
        """Return the gold outputs of ``read`` in the form of predicted outputs."""
        return list(outputs)

    def tags_of(self, layer: bool | str) -> Any:
        """Return a function from an output to the chunk tags of a layer."""
        raise ValueError(f"the outputs of {type(self).__name__} have no tags that mark chunks")

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift the pool indices in items by ``offset``, to concatenate pieces of data."""
        return items

    def joint_constants(self, longest: int, most: int) -> Array:
        """Return the constants for pieces of data that were encoded one by one.

        ``longest`` is the number of items of the longest input, ``most`` the length of the longest
        feature list of an item.
        """
        return np.asarray(self.constants(), np.int64)

    def longest_step(self, name: str) -> int:
        """Return the largest number of items that a step of this name covers; 0: no such step.

        By default every name is accepted.
        """
        return 1 << 30

    # ------------------------------------------------------------------ files

    def pack(self, keys: Array | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what the task has learned, as JSON and as arrays, for the model file.

        ``keys`` are the feature keys that have weights; None if keys are hashed to fewer bits.
        """
        strings = {
            f"vocabulary.{i}": pack_strings(list(known))
            for i, known in enumerate(self.vocabulary_.columns)
        }
        header = {"labels": list(self.classes), "columns": len(strings), "state": self.state()}
        return header, strings

    def unpack(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Restore what ``pack`` returned; the file may contain anything."""
        labels = header["labels"]
        if not isinstance(labels, list) or not all(isinstance(each, str) for each in labels):
            raise BadModel(f"found {quoted(labels)}, expected a list of labels")
        if self.labels is None:
            self.labels_ = tuple(labels)
        elif list(self.labels) != labels:
            raise BadModel(
                f"found the labels {', '.join(labels)}, expected those of the task, "
                f"{', '.join(self.labels)}"
            )
        self.vocabulary_ = Vocabulary()
        for i in range(int(header["columns"])):
            values = unpack_strings(tensors[f"vocabulary.{i}"])
            self.vocabulary_.columns.append({value: n for n, value in enumerate(values)})
        self.restore(header["state"])

    def add_names(self, other: Task) -> None:
        """Copy the feature names that another task for the same data knows."""

    def new(self) -> Self:
        """Return an unfitted copy, without the attributes that end in ``_``."""
        task = copy(self)
        for name in [name for name in vars(task) if name.endswith("_")]:
            delattr(task, name)
        return task


def split_steps(steps: Array, ends: Array) -> Iterator[list[Operator]]:
    """Yield the steps of each path as a list of (group, label)."""
    pairs: list[Operator] = list(map(tuple, steps.tolist()))
    first = 0
    for end in ends.tolist():
        yield pairs[first:end]
        first = end


def check_parameters(task: Any, checks: Iterable[tuple[str, bool, str]]) -> None:
    """Raise ValueError for the first invalid parameter; checks are (name, is valid, expected)."""
    for name, good, expected in checks:
        if not good:
            raise ValueError(f"{name} must be {expected}, found {getattr(task, name)!r}")


def is_whole(value: Any, least: int) -> bool:
    """Return whether a value is an integer and at least ``least``."""
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    return whole and bool(value >= least)
