"""What a task must say so that an estimator can learn it."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from laso.data.table import Column, Data, Factor, Features
from laso.engine.exact import ExactMachine
from laso.engine.hashing import mix
from laso.engine.layout import Array, Corpus, Options, Table
from laso.engine.machine import Machine, default_threads
from laso.engine.options import is_exact, options_for
from laso.engine.passes import Training
from laso.engine.problem import CompiledProblem
from laso.errors import BadData
from laso.estimators.weights import ClassWeight, counted, is_class_weight
from laso.features import encode
from laso.features.encode import Encoder
from laso.features.inputs import labels_of, read_input, string_keys
from laso.features.templates import BIAS, LABEL, Template
from laso.learn import early, laso
from laso.params import Estimator
from laso.queues import MakeQueue, beam
from laso.training import Rule, Strategy
from laso.updates import perceptron, worst

WITH_MARGIN = perceptron(weighting=worst, margin=1.0)  # the update of some tasks by default
FEW_TOKENS = 2000  # for fewer, threads cost more than they bring


class Task(Estimator):
    """What an estimator over sentences learns to find in them: labels, chunks ...

    A task is a subclass. Its ``__init__`` names all parameters, those here and its own, hands the
    former on and stores the latter. What it must say (*answers* are what the user handed in as
    labels, in whatever form ``_read`` gives them, *labels* are those of operators):

    task                            its name in a model file
    _problem(weighted)              the compiled problem; ``weighted``: features have values
    _templates(names)               which features there are, for columns of these names
    _encoder(templates, names, labels, width)
                                    makes the encoder, for learning and for a file loaded
    _corpus(data, answers)          data as arrays, with the answers as outputs (one number a token,
                                    so that some sentences can be held out), or without, if None
    _found(steps, ends)             decoded operators (group, label) as ``predict`` returns them:
                                    those of answer i end at ends[i]
    _quality(wanted, found)         how good the answers found are, from 0 to 1

    and what it may say otherwise than it is said here:

    _checks()                       parameters: (name, is it good, what is expected)
    _read(X, y)                     data and answers; here, the labels of the tokens
    _labels(data, answers)          the labels that occur, sorted
    _counts(data, answers)          how often each label occurs, for each layer of labels
    _facts(data, answers)           what else of the data the encoder must know, as JSON; it is in
                                    ``facts_`` before the encoder is made, and in the model file
    _wanted(data, answers)          answers in the form that ``_found`` has
    _beam(width)                    the queue that a number stands for
    _step(group, label)             what an operator is called, and how many tokens it is about
    _decisions(answer)              the steps of an answer: (name, first token, end)
    _tags_of(chunks)                from an answer to the tags that mark chunks, in a layer named
    _longest(name)                  the most tokens a step of that name is about; 0: there is none
    _constants()                    keys of which every step has exactly one, for ``biased``
    _wider(facts)                   facts of old and new data together
    _keeps(old, new)                do weights mean what they did, with an encoder of more labels?
    _rule()                         the update, if None was given too
    """

    task: ClassVar[str]

    encoder_: Encoder
    facts_: dict[str, Any]
    classes_: Array
    weights_: Table
    training_: Training | None
    class_weight_: dict[str, float] | None
    fingerprint_: int
    notes_: dict[str, Any]
    seconds_: dict[str, float]

    def __init__(
        self,
        *,
        columns: Sequence[str] | None = None,
        queue: int | MakeQueue = 5,
        update: Rule | None = None,
        strategy: Strategy = laso,
        epochs: int = 10,
        seed: int | None = 0,
        held_out: float | None = None,
        patience: int | None = None,
        average: bool | None = None,
        class_weight: ClassWeight = None,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
    ):
        self.columns = columns
        self.queue = queue
        self.update = update
        self.strategy = strategy
        self.epochs = epochs
        self.seed = seed
        self.held_out = held_out
        self.patience = patience
        self.average = average
        self.class_weight = class_weight
        self.hash_bits = hash_bits
        self.threads = threads
        self.dtype = dtype

    # ----------------------------------------------------------------------- what a task says

    @abstractmethod
    def _problem(self, weighted: bool) -> type[CompiledProblem]: ...

    @abstractmethod
    def _templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]: ...

    @abstractmethod
    def _encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> Encoder: ...

    @abstractmethod
    def _corpus(self, data: Data, answers: Any) -> Corpus: ...

    @abstractmethod
    def _found(self, steps: Array, ends: Array) -> list[Any]: ...

    @abstractmethod
    def _quality(self, wanted: Sequence[Any], found: list[Any]) -> float: ...

    def _checks(self) -> list[tuple[str, bool, str]]:
        return [
            ("epochs", whole(self.epochs, 1), "a whole number from 1 up"),
            ("patience", self.patience is None or whole(self.patience, 1), "None or from 1 up"),
            ("threads", self.threads is None or whole(self.threads, 1), "None or from 1 up"),
            (
                "held_out",
                self.held_out is None or 0 < self.held_out < 1,
                "None or a fraction between 0 and 1",
            ),
            (
                "class_weight",
                is_class_weight(self.class_weight),
                "None, 'balanced', or a table of weights above 0",
            ),
            ("hash_bits", whole(self.hash_bits, 0) and self.hash_bits <= 62, "0 to 62"),
            ("dtype", str(self.dtype) in ("float32", "float64"), "'float32' or 'float64'"),
        ]

    def _read(self, X: Any, y: Any) -> tuple[Data, Any]:
        data = read_input(X)
        if not data.lengths.sum():
            raise BadData("found no token to learn from, expected at least one")
        if y is not None:
            return data, labels_of(y, data.lengths)
        if isinstance(data, Features) or len(data.columns) < 2:
            raise BadData("found no labels: expected y, or tuples whose last column is the label")
        return data.split()

    def _labels(self, data: Data, answers: Any) -> list[str]:
        return encode.distinct_labels(answers, data.lengths)

    def _counts(self, data: Data, answers: Any) -> list[Counter[str]]:
        return [counted(answers)]

    def _facts(self, data: Data, answers: Any) -> dict[str, Any]:
        return {}

    def _wanted(self, data: Data, answers: Any) -> list[Any]:
        return by_sentence(answers, data.lengths)

    def _beam(self, width: int) -> MakeQueue:
        return beam(width)

    def _step(self, group: int, label: int) -> tuple[str, int]:
        found = self._found(np.array([[group, label]], np.int32), np.array([1]))
        return spoken(found[0][0]), 1

    def _decisions(self, answer: Any) -> set[tuple[str, int, int]]:
        return {(spoken(label), i, i + 1) for i, label in enumerate(answer)}

    def _tags_of(self, chunks: bool | str) -> Callable[[Any], Sequence[str]]:
        if chunks is not True:
            raise ValueError(f"chunks must be False or True, found {chunks!r}")
        return lambda answer: answer

    def _longest(self, name: str) -> int:
        return int(name in self.encoder_.labels)

    def _constants(self) -> list[int]:
        names = [str(template) for template in self.encoder_.templates]
        if BIAS in names:
            return [int(string_keys([BIAS])[0])]
        before = f"{LABEL}[-1]"  # there is always one, even at the beginning
        root, n = int(string_keys([before])[0]), len(self.encoder_.labels)
        return [mix(root, label) for label in range(-1, n)] if before in names else []

    def _wider(self, facts: dict[str, Any]) -> dict[str, Any]:
        return {**facts, **self.facts_}

    def _keeps(self, old: Encoder, new: Encoder) -> bool:
        return new.labels[: len(old.labels)] == old.labels

    def _rule(self) -> Rule:
        return perceptron() if self.update is None else self.update

    # ----------------------------------------------------------------------- how it is searched

    def _check(self) -> None:
        for name, good, expected in self._checks():
            if not good:
                raise ValueError(f"{name} must be {expected}, found {getattr(self, name)!r}")
        self._margin()

    @property
    def _is_exact(self) -> bool:
        return not isinstance(self.queue, int) and is_exact(self.queue)

    @property
    def _has_siblings(self) -> bool:
        """Are all good siblings made after an error?"""
        return self.strategy in (laso, early) and not self._is_exact

    def _weighed_rule(self) -> Rule:
        """The update, whose steps are as long as class weights say if there are any."""
        rule: Any = self._rule()
        weighed: Rule = rule if self.class_weight is None else replace(rule, by_loss=True)
        return weighed

    def _options(self) -> Options:
        queue = self._beam(self.queue) if isinstance(self.queue, int) else self.queue
        return options_for(self._problem(False), queue, self._weighed_rule(), self.strategy)

    def _machine(self, weighted: bool) -> Machine | ExactMachine:
        problem = self._problem(weighted)
        if self._is_exact:
            return ExactMachine(problem, self._weighed_rule(), expected=self.strategy is laso)
        return Machine(problem, self._options())

    def _margin(self) -> float:
        """What learning begins with; to ask for it is to check queue, update and strategy."""
        return self._machine(False).options.margin

    def _threads(self, corpus: Corpus) -> int:
        if len(corpus.items) < FEW_TOKENS:
            return 1
        return default_threads() if self.threads is None else self.threads


def chosen_features(
    features: str | Sequence[str | Template],
    resources: Sequence[str],
    sets: Mapping[str, Callable[..., list[str]]],
    *names: Sequence[str],
) -> str | Sequence[str | Template]:
    """The templates of a feature set for columns of these names, or the user's own."""
    if isinstance(features, str) and features in sets:
        return sets[features](*names, resources)
    if resources:
        raise ValueError(
            f"resources={resources!r} are for the features {' and '.join(sets)} only, "
            f"found features={features!r}"
        )
    return features


def spoken(label: Any) -> str:
    """A label, or the labels of several layers, as one text."""
    return label if isinstance(label, str) else "/".join(map(str, label))


def one_by_one(labels: Column) -> list[str | None]:
    """The labels of all tokens as one list."""
    if isinstance(labels, Factor):
        return list(np.array(labels.values, dtype=object)[labels.codes].tolist())
    return list(labels)


def by_sentence(labels: Column, lengths: Array) -> list[list[str | None]]:
    """The labels of all tokens as a list for each sentence."""
    flat = one_by_one(labels)
    return [flat[a:b] for a, b in pairwise([0, *np.cumsum(lengths).tolist()])]


def is_weighted(data: Data) -> bool:
    """Do features have values?"""
    return isinstance(data, Features) and data.values is not None


def whole(value: Any, least: int) -> bool:
    """A whole number, so large at least?"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
