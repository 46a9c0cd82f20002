"""What every estimator over sentences does alike, whatever it finds in them."""

from __future__ import annotations

import os
import random
import re
import time
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Corpus, Options, Table
from laso.engine.machine import Machine, all_of, default_threads, new_table
from laso.engine.options import is_exact, options_for
from laso.engine.passes import Plan, Report, Training, train
from laso.engine.problem import CompiledProblem
from laso.errors import BadData
from laso.estimators import storage
from laso.features import encode
from laso.features.encode import Encoder
from laso.features.inputs import Column, Columns, Data, Factor, Features, labels_of, read_input
from laso.features.templates import BIAS, LABEL, Template, parse_templates
from laso.learn import laso
from laso.model_file import packed, read_file, reading, write_file
from laso.params import Estimator
from laso.queues import MakeQueue, beam
from laso.training import Rule, Strategy
from laso.updates import Lbfgs, Likelihood, perceptron

USUAL_NAMES = ("w", "pos")
FEW_TOKENS = 2000  # for fewer, threads cost more than they bring

Progress = Callable[[Report], None]


@dataclass
class Checkpoint:
    """Where a run is saved as it goes on, after an epoch, at most once in so many seconds.

    A run that was killed goes on from there by ``load`` and ``resume``.
    """

    path: str | os.PathLike[str]
    seconds: float = 30.0
    notes: dict[str, Any] = field(default_factory=dict)  # to be saved with it
    saved: float = field(default_factory=time.monotonic)  # when it was last saved

    def is_due(self) -> bool:
        """Has enough time passed? Then it begins again."""
        now = time.monotonic()
        due = now - self.saved >= self.seconds
        if due:
            self.saved = now
        return due


class Size(NamedTuple):
    """How large a model is in memory."""

    features: int  # keys that have a row of weights
    weights: int  # weights that are not zero
    bytes: int


@dataclass(frozen=True)
class Examples:
    """Encoded sentences with their answers, and others with the answers wanted to score them on."""

    train: Corpus
    weighted: bool
    held_out: Corpus | None = None
    wanted: Sequence[Any] = ()

    @property
    def fingerprint(self) -> int:
        """Tells whether two sets of examples are the same."""
        crc = 0
        for array in (self.train.starts, self.train.items, self.train.outputs, self.train.pool):
            crc = zlib.crc32(np.ascontiguousarray(array).data, crc)
        return crc


class SequenceEstimator(Estimator):
    """Learns by search to give sentences an answer: labels, chunks ...

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
    _facts(data, answers)           what else of the data the encoder must know, as JSON; it is in
                                    ``facts_`` before the encoder is made, and in the model file
    _wanted(data, answers)          answers in the form that ``_found`` has
    _beam(width)                    the queue that a number stands for
    _step(group, label)             what an operator is called, and how many tokens it is about
    _rule()                         the update, if None was given too
    """

    task: ClassVar[str]

    encoder_: Encoder
    facts_: dict[str, Any]
    classes_: Array
    weights_: Table
    training_: Training | None
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

    def _facts(self, data: Data, answers: Any) -> dict[str, Any]:
        return {}

    def _wanted(self, data: Data, answers: Any) -> list[Any]:
        return by_sentence(answers, data.lengths)

    def _beam(self, width: int) -> MakeQueue:
        return beam(width)

    def _step(self, group: int, label: int) -> tuple[str, int]:
        return str(self.classes_[label]), 1

    def _rule(self) -> Rule:
        return perceptron() if self.update is None else self.update

    # ----------------------------------------------------------------------- learning

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        dev: Any = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Learn from sentences ``X`` and their labels ``y``, or from X alone: labels come last.

        A label may be None where it is not known; where many are, ``strategy`` must be standard
        or max_violation. ``dev`` is (X, y) to score each epoch on, in place of ``held_out``.
        Ctrl-C ends learning and keeps what was learned. ``seconds_`` tells how long it took to
        read, to make features, and to train. ``checkpoint`` is where the run is saved meanwhile
        (not with ``lbfgs()``).
        """
        self._check()
        self.seconds_ = {}
        with self._clock("read"):
            data, answers = self._read(X, y)
        with self._clock("features"):
            self._begin(data, self._labels(data, answers), answers)
            examples = self._examples(data, answers, dev)
            del data, answers
            self.fingerprint_ = examples.fingerprint
        with self._clock("train"):
            update = self._rule()
            epochs = update.iterations if isinstance(update, Lbfgs) else self.epochs
            return self._learn(examples, epochs, progress, checkpoint)

    def resume(
        self,
        X: Any,
        y: Any = None,
        *,
        epochs: int,
        dev: Any = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Go on to ``epochs`` in all, on the data of ``fit``, as if it had not stopped before.

        ``lbfgs()`` goes on from the weights alone, without the steps it has in memory.
        """
        self._check()
        training = self._state()
        data, answers = self._read(X, y)
        examples = self._examples(data, answers, dev)
        if examples.fingerprint != self.fingerprint_:
            raise ValueError("resume needs the data of fit; for other data there is partial_fit")
        if Plan(patience=self.patience).is_over(training):
            return self
        return self._learn(examples, epochs, progress, checkpoint)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        classes: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Self:
        """One pass over these sentences; ``classes`` are all labels to come, at the first call."""
        self._check()
        if isinstance(self._rule(), Lbfgs):
            raise ValueError("lbfgs() needs all data at once, for fit; here use adagrad() or sgd()")
        data, answers = self._read(X, y)
        if not hasattr(self, "weights_"):
            found = self._labels(data, answers)
            self._begin(data, sorted({*found, *(classes if classes is not None else ())}), answers)
        training = self._state()
        self.encoder_.grow(data)
        examples = Examples(self._corpus(data, answers), is_weighted(data))
        self.fingerprint_ = examples.fingerprint
        training.converged = False
        return self._learn(examples, training.epoch + 1, progress)

    @contextmanager
    def _clock(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.seconds_[stage] = time.perf_counter() - started

    def _check(self) -> None:
        for name, good, expected in self._checks():
            if not good:
                raise ValueError(f"{name} must be {expected}, found {getattr(self, name)!r}")
        self._margin()

    @property
    def _is_exact(self) -> bool:
        return not isinstance(self.queue, int) and is_exact(self.queue)

    def _options(self) -> Options:
        queue = self._beam(self.queue) if isinstance(self.queue, int) else self.queue
        return options_for(self._problem(False), queue, self._rule(), self.strategy)

    def _machine(self, weighted: bool) -> Machine | ExactMachine:
        problem = self._problem(weighted)
        if self._is_exact:
            return ExactMachine(problem, self._rule(), expected=self.strategy is laso)
        return Machine(problem, self._options())

    def _margin(self) -> float:
        """What learning begins with; to ask for it is to check queue, update and strategy."""
        return self._machine(False).options.margin

    def _threads(self, corpus: Corpus) -> int:
        if len(corpus.items) < FEW_TOKENS:
            return 1
        return default_threads() if self.threads is None else self.threads

    def _state(self) -> Training:
        """The training to go on with."""
        self._must_have("encoder_")
        if self.training_ is None:
            raise ValueError(
                "the state of the training is not there to go on from: the model was saved "
                "without it (save(path, training=True) keeps it)"
            )
        return self.training_

    def _begin(self, data: Data, labels: list[str], answers: Any) -> None:
        """Start anew, with the words of the data."""
        if not labels:
            raise BadData("found no label that is known, expected at least one")
        names = self._names(len(data.columns) if isinstance(data, Columns) else 0)
        # If learning fails, nothing old is taken for its result.
        self.__dict__.pop("weights_", None)
        templates = parse_templates(self._templates(names))
        width = data.width if isinstance(data, Features) else -1
        self.facts_ = self._facts(data, answers)
        self.notes_ = {}
        self.encoder_ = self._encoder(templates, names, tuple(labels), width)
        self.encoder_.grow(data)
        self.classes_ = np.array(labels, dtype=object)
        margin = self._margin()
        table = new_table(len(labels), margin=margin, dtype=self.dtype, hash_bits=self.hash_bits)
        self.training_ = Training(table)

    def _names(self, n: int) -> tuple[str, ...]:
        if self.columns is None or not n:
            return tuple(USUAL_NAMES[i] if i < len(USUAL_NAMES) else str(i) for i in range(n))
        names = tuple(self.columns)
        if len(names) != n:
            raise ValueError(f"columns has {len(names)} names, but the data has {n} columns")
        for name in names:
            usual = re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII)
            if not (usual or name == str(names.index(name))) or name in (LABEL, BIAS):
                raise ValueError(f"found the column name {name!r}, expected letters, digits and _")
        if len(set(names)) < n:
            raise ValueError(f"columns has a name twice: {', '.join(names)}")
        return names

    def _examples(self, data: Data, answers: Any, dev: Any) -> Examples:
        corpus = self._corpus(data, answers)
        weighted = is_weighted(data)
        if dev is not None:
            dev_data, dev_answers = self._read(*(dev if isinstance(dev, tuple) else (dev, None)))
            return Examples(
                corpus,
                weighted or is_weighted(dev_data),
                self._corpus(self._inputs(dev_data), None),
                self._wanted(dev_data, dev_answers),
            )
        if self.held_out is None:
            return Examples(corpus, weighted)
        n = len(data.lengths)
        chosen = held_out(n, self.held_out, self.seed)
        wanted = self._wanted(data, answers)
        return Examples(
            encode.taken(corpus, np.delete(np.arange(n), chosen)),
            weighted,
            encode.taken(corpus, np.array(chosen)),
            [wanted[i] for i in chosen],
        )

    def _learn(
        self,
        examples: Examples,
        epochs: int,
        progress: Progress | None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        training = self._state()
        training.interrupted = False
        machine = self._machine(examples.weighted)

        def score(table: Table) -> float:
            assert examples.held_out is not None
            return self._quality(examples.wanted, self._answers(machine, examples.held_out, table))

        average = self.average
        if average is None:
            average = not isinstance(self._rule(), Likelihood)

        def after(training: Training) -> None:
            if checkpoint is not None and checkpoint.is_due():
                best = plan.kept(training.table) if training.best is None else training.best
                self.weights_ = packed(best)
                self._report(training)
                self.notes_ |= checkpoint.notes
                self.save(checkpoint.path, training=True)

        plan = Plan(
            epochs=epochs, seed=self.seed, patience=self.patience, average=average, after=after
        )
        scored = score if examples.held_out is not None else None
        corpus = examples.train
        if isinstance(machine, ExactMachine):
            threads = self._threads(corpus)
            machine.fit(corpus, training, plan, threads=threads, score=scored, progress=progress)
        else:
            train(machine, corpus, training, plan, score=scored, progress=progress)
        assert training.best is not None
        self.weights_ = training.best = packed(training.best)
        self._report(training)
        return self

    def _report(self, training: Training) -> None:
        """Set what users look at."""
        self.n_iter_ = training.epoch
        self.best_epoch_ = training.best_epoch
        self.scores_ = list(training.scores)
        self.converged_ = training.converged
        self.interrupted_ = training.interrupted

    # ----------------------------------------------------------------------- answering

    def predict(self, X: Any) -> list[Any]:
        """What is found in each sentence; a column of labels in ``X`` is not looked at."""
        self._must_have("weights_")
        return self._predicted(read_input(X))

    def predict_single(self, x: Any) -> Any:
        """What is found in one sentence."""
        return self.predict([x])[0]

    def score(self, X: Any, y: Any = None) -> float:
        """How good predictions for ``X`` are, from 0 to 1; without ``y`` its last column is it."""
        self._must_have("weights_")
        data, answers = self._read(X, y)
        return self._quality(self._wanted(data, answers), self._predicted(data))

    def predict_nbest(self, X: Any, n: int) -> list[list[tuple[float, Any]]]:
        """The ``n`` best answers for each sentence with their scores, with ``queue=exact()``."""
        machine, corpus = self._exactly("predict_nbest", X)
        found = machine.nbest(
            corpus, all_of(corpus), self.weights_, n, threads=self._threads(corpus)
        )
        answers = self._found(found.steps, found.ends)
        paths = list(zip(found.scores.tolist(), answers, strict=True))
        return [paths[a:b] for a, b in pairwise([0, *np.cumsum(found.counts).tolist()])]

    def _exactly(self, name: str, X: Any) -> tuple[ExactMachine, Corpus]:
        self._must_have("weights_")
        data = read_input(X)
        machine = self._machine(is_weighted(data))
        if not isinstance(machine, ExactMachine):
            raise ValueError(f"{name} needs exact search: queue=exact(), found {self.queue!r}")
        return machine, self._corpus(self._inputs(data), None)

    def _predicted(self, data: Data) -> list[Any]:
        corpus = self._corpus(self._inputs(data), None)
        return self._answers(self._machine(is_weighted(data)), corpus, self.weights_)

    def _answers(self, machine: Machine | ExactMachine, corpus: Corpus, table: Table) -> list[Any]:
        threads = self._threads(corpus)
        steps, ends, _ = machine.decode(corpus, all_of(corpus), table, threads=threads)
        return self._found(steps, ends)

    def _inputs(self, data: Data) -> Data:
        if isinstance(data, Columns) and len(data.columns) == len(self.encoder_.names) + 1:
            return data.split()[0]
        return data

    # ----------------------------------------------------------------------- files

    @property
    def size_(self) -> Size:
        """How large the model is in memory; ``save`` tells how large it is on disk."""
        self._must_have("weights_")
        table = self.weights_
        return Size(
            len(table.v), int(np.count_nonzero(table.v)), table.slots.nbytes + table.v.nbytes
        )

    def save(
        self, path: str | os.PathLike[str], *, weights: str | None = None, training: bool = False
    ) -> int:
        """Write the model to one file, all of it or nothing; its size in bytes.

        ``weights`` may be "float32", "float16" or "int8" for a smaller file. ``training`` keeps
        what ``resume`` and ``partial_fit`` go on from.
        """
        self._must_have("weights_")
        return write_file(path, *storage.taken_apart(self, weights, training))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The model of a file; a file that is none is answered with ``BadModel``."""
        header, tensors = read_file(path, cls.task)
        with reading(path):
            return storage.put_together(cls, header, tensors)


def held_out(n: int, fraction: float, seed: int | None) -> list[int]:
    """Which of n sentences are held out: a part drawn by the seed, in their order."""
    k = max(1, round(n * fraction))
    if k >= n:
        raise ValueError(f"held_out={fraction} leaves none of {n} sentences to learn from")
    return sorted(random.Random(f"{seed}/held out").sample(range(n), k))


def by_sentence(labels: Column, lengths: Array) -> list[list[str | None]]:
    """The labels of all tokens as a list for each sentence."""
    if isinstance(labels, Factor):
        flat = np.array(labels.values, dtype=object)[labels.codes].tolist()
    else:
        flat = list(labels)
    return [flat[a:b] for a, b in pairwise([0, *np.cumsum(lengths).tolist()])]


def is_weighted(data: Data) -> bool:
    """Do features have values?"""
    return isinstance(data, Features) and data.values is not None


def whole(value: Any, least: int) -> bool:
    """A whole number, so large at least?"""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
