"""What an estimator asks of a task, for many inputs at once.

``BatchTask`` answers by the methods for one input, which ``Task`` declares. A task overrides these
methods for speed, or for other kinds of data; the tasks over sentences do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from laso.engine.dataset import make_dataset
from laso.engine.layout import Array, Dataset
from laso.engine.problem import CompiledProblem, is_dense
from laso.errors import BadData, BadModel, listed, quoted
from laso.features.dense import Dense, Vectors, given_vectors
from laso.features.encoder import pack_strings, unpack_strings
from laso.tasks.vocabulary import Vocabulary

Operator = tuple[int, int]
"""A step of the search: (group, label)."""


class Ambiguity(NamedTuple):
    """How many choices partially known outputs leave for each item, and which items are known."""

    choices: Array
    known: Array
    lengths: Array


class BatchTask:
    """Base class of ``Task``: reads, encodes and decodes many inputs at once."""

    problem: type[CompiledProblem]
    labels: Sequence[str] | None
    learns_vectors = True  # whether updates can tell an encoder where vectors should move
    dense: Dense | None = None
    """Where the dense vectors of items come from, which the estimator sets; None: not set yet."""

    if TYPE_CHECKING:  # what Task declares

        def items(self, x: Any) -> Sequence[Any]: ...
        def gold(self, x: Any, y: Any) -> Sequence[Any]: ...
        def decode(self, x: Any, steps: Sequence[Operator]) -> Any: ...
        def words(self, x: Any) -> list[str]: ...
        def constants(self) -> Sequence[int]: ...
        def state(self) -> dict[str, Any]: ...
        def restore(self, state: dict[str, Any]) -> None: ...

    # ------------------------------------------------------------------ reading and encoding

    def read(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return inputs and gold outputs of what the user passed to ``fit`` or ``score``."""
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
        """Return the inputs of what the user passed to ``predict``."""
        if X is None or isinstance(X, (str, bytes)) or not isinstance(X, Iterable):
            raise BadData(f"found {quoted(X)} for X, expected a list of inputs")
        return list(X)

    def list_kinds(self) -> int:
        """Return the types of tokens whose feature lists compiled code may read; 0: of none.

        They are flags of ``laso.engine.text.layout``. The outputs are then the labels of tokens.
        """
        return 0

    def take(self, inputs: Any, chosen: Sequence[int]) -> Any:
        """Return some of the inputs."""
        return [inputs[i] for i in chosen]

    def observe(self, parts: Iterable[tuple[Any, Any]], *, classes: Sequence[str] = ()) -> None:
        """Learn what must be known before anything is encoded, such as the labels.

        ``parts`` are (inputs, outputs) of all training data, piece by piece. ``partial_fit`` calls
        it again for later data, whose new labels follow the old ones.
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
        """The labels of operators, by their numbers."""
        return tuple(getattr(self, "labels_", ()) if self.labels is None else self.labels)

    def encode(self, inputs: Any, outputs: Any = None) -> Dataset:
        """Return inputs as arrays; with outputs, to learn from: new strings are numbered."""
        learning = outputs is not None
        number = self.vocabulary_.number
        tables = [number(self.items(x), grow=learning, example=i) for i, x in enumerate(inputs)]
        gold = None
        if learning:
            pairs = zip(inputs, outputs, strict=True)
            gold = [self._gold_numbers(self.gold(x, y), i) for i, (x, y) in enumerate(pairs)]
        return make_dataset(tables, gold, spec=self.constants())

    def arrays(self, inputs: Any, outputs: Any = None) -> Dataset:
        """Return what ``encode`` returns, with the dense vectors of items, if they have any."""
        dataset = self.encode(inputs, outputs)
        return self.with_vectors(dataset, inputs, learning=outputs is not None)

    def with_vectors(self, dataset: Dataset, inputs: Any, *, learning: bool = False) -> Dataset:
        """Return encoded inputs with the dense vectors of their items."""
        if self.dense is None:
            return dataset
        given, lengths = self.given_vectors(inputs), np.diff(dataset.starts)
        vectors = self.dense.of_inputs(
            given, lambda: self.sentences(inputs), lengths, learning=learning
        )
        dataset = dataset._replace(vectors=vectors)
        problem = self.problem_for(dataset)
        if vectors.shape[1] and not is_dense(problem):
            raise ValueError(
                f"found inputs with vectors, expected {problem.__name__} to have a method vectors, "
                "which says which items' vectors a block has"
            )
        return dataset

    def describe_vector(self, number: int) -> str:
        """Return the name of the vectors that have the weights of this number (see ``vectors``)."""
        return f"vector {number}"

    @property
    def has_vectors(self) -> bool:
        """Whether items have dense vectors, as far as training has told."""
        return self.dense is not None and bool(self.dense.size)

    def given_vectors(self, inputs: Any) -> Vectors | None:
        """Return the vectors that inputs have of their own, a row for each item; None: none."""
        return given_vectors(inputs)

    def sentences(self, inputs: Any) -> Sequence[Sequence[str]]:
        """Return the words of each input, one for each item, which an encoder reads."""
        return [self.words(x) for x in inputs]

    def _gold_numbers(self, gold: Sequence[Any], example: int) -> list[int]:
        numbers: dict[Any, int] = {label: i for i, label in enumerate(self.classes)}
        numbers[None] = -1
        label_numbers = []
        for each in gold:
            if isinstance(each, str) or each is None:
                if each not in numbers:
                    raise BadData(
                        f"found the label {quoted(each)}, which training has not seen; expected "
                        f"one of {listed(self.classes)}",
                        sentence=example + 1,
                    )
                label_numbers.append(numbers[each])
            else:
                label_numbers.append(int(each))
        return label_numbers

    def problem_for(self, dataset: Dataset) -> type[CompiledProblem]:
        """Return the problem for this dataset; by default ``problem``."""
        return self.problem

    def ambiguity(self, inputs: Any, outputs: Any) -> Ambiguity | None:
        """Return how many ways partially known outputs leave open; None: all is known."""
        return None

    def decode_all(self, inputs: Any, steps: Array, ends: Array) -> list[Any]:
        """Return the outputs of all inputs: the steps of input i end at ``ends[i]``."""
        paths = split_steps(steps, ends)
        return [self.decode(x, path) for x, path in zip(inputs, paths, strict=True)]

    def gold_outputs(self, inputs: Any, outputs: Any) -> list[Any]:
        """Return the outputs that ``read`` returned in the form that ``predict`` has."""
        return list(outputs)

    def tags_of(self, layer: bool | str) -> Any:
        """Return a function from an output to the tags that mark chunks in it, in a layer."""
        raise ValueError(f"the outputs of {type(self).__name__} have no tags that mark chunks")

    def shift_pool(self, items: Array, offset: int) -> Array:
        """Shift the indices of items into the pool by ``offset``, to join parts of data."""
        return items

    def joint_constants(self, longest: int, most: int) -> Array:
        """Return constants that fit parts of data encoded one by one.

        ``longest`` is the number of items of the longest input, ``most`` the largest number of
        features that an item has of its own.
        """
        return np.asarray(self.constants(), np.int64)

    def longest_step(self, name: str) -> int:
        """Return the largest number of items that a step of this name is about; 0: no such step.

        None of the names is refused by default.
        """
        return 1 << 30

    # ------------------------------------------------------------------ files

    def pack(self, keys: Array | None) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what was learned, as JSON and as arrays.

        ``keys`` are those of the features that have weights; None if they are cut to few bits.
        """
        strings = {
            f"vocabulary.{i}": pack_strings(list(known))
            for i, known in enumerate(self.vocabulary_.columns)
        }
        header = {"labels": list(self.classes), "columns": len(strings), "state": self.state()}
        return header, strings

    def pack_plain(
        self, header: dict[str, Any], tensors: dict[str, Array]
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Return what ``pack`` returned in a form for files without compression, which load faster.

        By default it stays as it is; ``unpack`` reads both.
        """
        return header, tensors

    def unpack(self, header: dict[str, Any], tensors: dict[str, Array]) -> None:
        """Take over what ``pack`` returned, from a file that may hold anything."""
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

    def keep_resources(self, old: BatchTask) -> None:
        """Use what an older task of the same estimator has instead of reading files again."""

    def add_names(self, other: BatchTask) -> None:
        """Take over the names of features that another task of the same data knows."""

    def copied(self) -> Self:
        """Return a copy that may learn more while this one predicts in other threads."""
        return deepcopy(self)

    def new(self) -> Self:
        """Return a copy that has learned nothing: without the attributes that end in ``_``."""
        unfitted = copy(self)
        for name in [name for name in vars(unfitted) if name.endswith("_")]:
            delattr(unfitted, name)
        return unfitted


def split_steps(steps: Array, ends: Array) -> Iterator[list[Operator]]:
    """The steps of each path as a list of (group, label)."""
    pairs: list[Operator] = list(map(tuple, steps.tolist()))
    first = 0
    for end in ends.tolist():
        yield pairs[first:end]
        first = end
