"""Estimators with scikit-learn's conventions, on the compiled engine.

``__init__`` only stores, ``fit`` checks and returns the estimator, and what was learned ends in _.
"""

from __future__ import annotations

import math
import os
import random
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from laso import model_file
from laso.engine import layout as at
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import Machine, all_of, averaged, default_threads, new_table
from laso.engine.options import options_for
from laso.engine.passes import Plan, Report, Training, train
from laso.errors import BadData, BadModel
from laso.features import encode
from laso.features.encode import Encoder
from laso.features.inputs import Column, Columns, Data, Factor, Features, labels_of, read_input
from laso.features.templates import BIAS, LABEL, Template, default_templates, parse_templates
from laso.learn import early, laso
from laso.metrics import accuracy, chunk_scores
from laso.params import Estimator
from laso.queues import MakeQueue, beam
from laso.tasks import tagging
from laso.training import Rule, Strategy
from laso.updates import perceptron

USUAL_NAMES = ("w", "pos")
FEW_TOKENS = 2000  # for fewer, threads cost more than they bring
MOST_PATHS = 10_000  # siblings that a sentence with unknown labels may have
TASK = "tagging"

Labels = list[list[str]]
Progress = Callable[[Report], None]


class Size(NamedTuple):
    """How large a model is in memory."""

    features: int  # keys that have a row of weights
    weights: int  # weights that are not zero
    bytes: int


@dataclass(frozen=True)
class Examples:
    """Encoded sentences with their labels, and others with the labels wanted to score them on."""

    train: Corpus
    weighted: bool
    held_out: Corpus | None = None
    wanted: Sequence[Sequence[str | None]] = ()

    @property
    def fingerprint(self) -> int:
        """Tells whether two sets of examples are the same."""
        crc = 0
        for array in (self.train.starts, self.train.items, self.train.outputs, self.train.pool):
            crc = zlib.crc32(array.tobytes(), crc)
        return crc


class Tagger(Estimator):
    """Labels the tokens of sentences; the weights are learned inside the search that labels.

    templates    which features there are (see laso.features.templates); None: a general set
    columns      names of the input columns; None: w, pos, then numbers
    queue        the width of the beam, or beam(5), bounded_best_first(5) ...
    update       perceptron(), alma(), passive_aggressive(); None: perceptron()
    strategy     laso, early, standard or max_violation
    constraints  "BIO", "IOBES", or for each label those that may follow it (None: both ends)
    epochs       passes over the data, at most
    seed         of the order of the sentences and of those held out; None: as they come
    held_out     the fraction of the sentences to score each epoch on: the best epoch counts
    patience     stop after so many epochs without a better score
    average      average the weights over all examples seen
    hash_bits    bound memory: cut keys to so many bits; 0: keep all
    threads      for decoding; None: all cores
    dtype        of the weights, "float32" or "float64"
    """

    def __init__(
        self,
        *,
        templates: str | Sequence[str | Template] | None = None,
        columns: Sequence[str] | None = None,
        queue: int | MakeQueue = 5,
        update: Rule | None = None,
        strategy: Strategy = laso,
        constraints: str | Mapping[str | None, Sequence[str | None]] | None = None,
        epochs: int = 10,
        seed: int | None = 0,
        held_out: float | None = None,
        patience: int | None = None,
        average: bool = True,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
    ):
        self.templates = templates
        self.columns = columns
        self.queue = queue
        self.update = update
        self.strategy = strategy
        self.constraints = constraints
        self.epochs = epochs
        self.seed = seed
        self.held_out = held_out
        self.patience = patience
        self.average = average
        self.hash_bits = hash_bits
        self.threads = threads
        self.dtype = dtype

    # ----------------------------------------------------------------------- learning

    def fit(
        self, X: Any, y: Any = None, *, dev: Any = None, progress: Progress | None = None
    ) -> Tagger:
        """Learn from sentences ``X`` and their labels ``y``, or from X alone: labels come last.

        A label may be None where it is not known; where many are, ``strategy`` must be standard
        or max_violation. ``dev`` is (X, y) to score each epoch on, in place of ``held_out``.
        Ctrl-C ends learning and keeps what was learned.
        """
        self._check()
        data, labels = self._with_labels(X, y)
        self._begin(data, encode.distinct_labels(labels, data.lengths))
        examples = self._examples(data, labels, dev)
        self.fingerprint_ = examples.fingerprint
        return self._learn(examples, self.epochs, progress)

    def resume(
        self,
        X: Any,
        y: Any = None,
        *,
        epochs: int,
        dev: Any = None,
        progress: Progress | None = None,
    ) -> Tagger:
        """Go on to ``epochs`` in all, on the data of ``fit``, as if it had not stopped before."""
        self._check()
        training = self._state()
        data, labels = self._with_labels(X, y)
        examples = self._examples(data, labels, dev)
        if examples.fingerprint != self.fingerprint_:
            raise ValueError("resume needs the data of fit; for other data there is partial_fit")
        waited = training.epoch - training.best_epoch
        if training.scores and self.patience is not None and waited >= self.patience:
            return self
        return self._learn(examples, epochs, progress)

    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        classes: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> Tagger:
        """One pass over these sentences; ``classes`` are all labels to come, at the first call."""
        self._check()
        data, labels = self._with_labels(X, y)
        if not hasattr(self, "weights_"):
            found = encode.distinct_labels(labels, data.lengths)
            self._begin(data, sorted({*found, *(classes if classes is not None else ())}))
        training = self._state()
        self.encoder_.grow(data)
        examples = Examples(self._corpus(data, labels), _is_weighted(data))
        self.fingerprint_ = examples.fingerprint
        training.converged = False
        return self._learn(examples, training.epoch + 1, progress)

    def _check(self) -> None:
        for name, good, expected in (
            ("epochs", _whole(self.epochs, 1), "a whole number from 1 up"),
            ("patience", self.patience is None or _whole(self.patience, 1), "None or from 1 up"),
            ("threads", self.threads is None or _whole(self.threads, 1), "None or from 1 up"),
            (
                "held_out",
                self.held_out is None or 0 < self.held_out < 1,
                "None or a fraction between 0 and 1",
            ),
            ("hash_bits", _whole(self.hash_bits, 0) and self.hash_bits <= 62, "0 to 62"),
            ("dtype", str(self.dtype) in ("float32", "float64"), "'float32' or 'float64'"),
            (
                "constraints",
                self.constraints in (None, "BIO", "IOBES") or isinstance(self.constraints, Mapping),
                "None, 'BIO', 'IOBES' or a table",
            ),
        ):
            if not good:
                raise ValueError(f"{name} must be {expected}, found {getattr(self, name)!r}")
        self._options()

    def _options(self) -> at.Options:
        queue = beam(self.queue) if isinstance(self.queue, int) else self.queue
        update = perceptron() if self.update is None else self.update
        return options_for(tagging.Tagging, queue, update, self.strategy)

    def _state(self) -> Training:
        """The training to go on with."""
        self._must_have("encoder_")
        if self.training_ is None:
            raise ValueError(
                "the state of the training is not there to go on from: the model was saved "
                "without it (save(path, training=True) keeps it)"
            )
        return self.training_

    def _with_labels(self, X: Any, y: Any) -> tuple[Data, Column]:
        data = read_input(X)
        if not data.lengths.sum():
            raise BadData("found no token to learn from, expected at least one")
        if y is not None:
            return data, labels_of(y, data.lengths)
        if isinstance(data, Features) or len(data.columns) < 2:
            raise BadData("found no labels: expected y, or tuples whose last column is the label")
        return data.split()

    def _begin(self, data: Data, labels: list[str]) -> None:
        if not labels:
            raise BadData("found no label that is known, expected at least one")
        n = len(data.columns) if isinstance(data, Columns) else 0
        names = self._names(n)
        self.__dict__.pop(
            "weights_", None
        )  # if learning fails, nothing old is taken for its result
        templates = default_templates(names) if self.templates is None else self.templates
        self.encoder_ = Encoder(
            parse_templates(templates),
            names,
            tuple(labels),
            self._constraints(labels),
            data.width if isinstance(data, Features) else -1,
        )
        self.encoder_.grow(data)
        self.classes_ = np.array(labels, dtype=object)
        options = self._options()
        table = new_table(
            len(labels), margin=options.margin, dtype=self.dtype, hash_bits=self.hash_bits
        )
        self.training_: Training | None = Training(table)

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

    def _constraints(self, labels: Sequence[str]) -> tagging.Constraints | None:
        if self.constraints is None:
            return None
        if isinstance(self.constraints, str):
            return (tagging.bio if self.constraints == "BIO" else tagging.iobes)(labels)
        return tagging.table(labels, self.constraints)

    def _corpus(self, data: Data, labels: Column) -> Corpus:
        numbers = encode.label_numbers(labels, self.encoder_.labels, data.lengths)
        if self.strategy in (laso, early):
            self._check_paths(numbers, data.lengths)
        return self.encoder_.corpus(data, numbers)

    def _check_paths(self, numbers: Array, lengths: Array) -> None:
        """Good siblings are all that agree with the labels known: with few known, too many."""
        if (numbers >= 0).all():
            return
        for i, labels in enumerate(np.split(numbers, np.cumsum(lengths)[:-1])):
            known = np.flatnonzero(labels >= 0)
            unknown = int((labels[: known[-1]] < 0).sum()) if len(known) else 0
            if unknown * math.log(len(self.classes_)) > math.log(MOST_PATHS):
                raise ValueError(
                    f"sentence {i + 1}: {unknown} labels before a known one are not known, which "
                    f"leaves {len(self.classes_)} to the power of {unknown} good siblings; "
                    "strategy=max_violation compares with the best of them only"
                )

    def _examples(self, data: Data, labels: Column, dev: Any) -> Examples:
        corpus = self._corpus(data, labels)
        weighted = _is_weighted(data)
        if dev is not None:
            dev_data, dev_labels = self._with_labels(
                *(dev if isinstance(dev, tuple) else (dev, None))
            )
            return Examples(
                corpus,
                weighted or _is_weighted(dev_data),
                self.encoder_.corpus(self._inputs(dev_data)),
                by_sentence(dev_labels, dev_data.lengths),
            )
        if self.held_out is None:
            return Examples(corpus, weighted)
        n = len(data.lengths)
        k = max(1, round(n * self.held_out))
        if k >= n:
            raise ValueError(f"held_out={self.held_out} leaves none of {n} sentences to learn from")
        chosen = sorted(random.Random(f"{self.seed}/held out").sample(range(n), k))
        sentences = by_sentence(labels, data.lengths)
        return Examples(
            encode.taken(corpus, np.delete(np.arange(n), chosen)),
            weighted,
            encode.taken(corpus, np.array(chosen)),
            [sentences[i] for i in chosen],
        )

    def _learn(self, examples: Examples, epochs: int, progress: Progress | None) -> Tagger:
        training = self._state()
        training.interrupted = False
        machine = self._machine(examples.weighted)
        best: list[Table] = []

        def score(average: Table) -> float:
            assert examples.held_out is not None
            table = average if self.average else current(training.table)
            value = quality(examples.wanted, self._labelled(machine, examples.held_out, table))
            if value > training.best_score:
                best[:] = [table]
            return value

        plan = Plan(epochs=epochs, seed=self.seed, patience=self.patience)
        scored = examples.held_out is not None
        train(
            machine,
            examples.train,
            training,
            plan,
            score=score if scored else None,
            progress=progress,
        )
        if best:
            training.best = best[0]
        elif not scored or training.best is None:
            training.best = (averaged if self.average else current)(training.table)
            training.best_epoch = training.epoch
        self._publish(training.best)
        return self

    def _publish(self, best: Table) -> None:
        """Set what users look at."""
        self.weights_ = model_file.packed(best)
        self._report(self._state())

    def _report(self, training: Training) -> None:
        self.n_iter_ = training.epoch
        self.best_epoch_ = training.best_epoch
        self.scores_ = list(training.scores)
        self.converged_ = training.converged
        self.interrupted_ = training.interrupted

    # ----------------------------------------------------------------------- labelling

    def predict(self, X: Any) -> Labels:
        """The labels found for each sentence; a column of labels in ``X`` is not looked at."""
        self._must_have("weights_")
        return self._predicted(read_input(X))

    def predict_single(self, x: Any) -> list[str]:
        """The labels found for one sentence."""
        return self.predict([x])[0]

    def score(self, X: Any, y: Any = None) -> float:
        """From 0 to 1: chunk F if the labels are BIO or IOBES, else the tokens that are right.

        Without ``y`` the labels are the last column of ``X``. Tokens without a known label count
        only in the search, and then the score is that of tokens.
        """
        self._must_have("weights_")
        data, labels = self._with_labels(X, y)
        return quality(by_sentence(labels, data.lengths), self._predicted(data))

    def _predicted(self, data: Data) -> Labels:
        corpus = self.encoder_.corpus(self._inputs(data))
        return self._labelled(self._machine(_is_weighted(data)), corpus, self.weights_)

    def _labelled(self, machine: Machine, corpus: Corpus, table: Table) -> Labels:
        labels = self.classes_[self._decoded(machine, corpus, table)].tolist()
        return [labels[a:b] for a, b in pairwise(corpus.starts.tolist())]

    def _inputs(self, data: Data) -> Data:
        if isinstance(data, Columns) and len(data.columns) == len(self.encoder_.names) + 1:
            return data.split()[0]
        return data

    def _machine(self, weighted: bool) -> Machine:
        problem = tagging.WeightedTagging if weighted else tagging.Tagging
        return Machine(problem, self._options())

    def _decoded(self, machine: Machine, corpus: Corpus, table: Table) -> Array:
        threads = default_threads() if self.threads is None else self.threads
        if len(corpus.items) < FEW_TOKENS:
            threads = 1
        steps, _, _ = machine.decode(corpus, all_of(corpus), table, threads=threads)
        return np.asarray(steps[:, 1])

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
        encoder = self.encoder_
        tensors: dict[str, Array] = {}
        if training:
            if weights is not None:
                raise ValueError(
                    f"training goes on from all of a weight, found weights={weights!r}"
                )
            tensors |= model_file.pack_learning(self._state().table)
        tensors |= model_file.pack_weights(self.weights_, weights)
        for column, values in encoder.vocabularies.items():
            tensors[f"values.{column}"] = encode.packed_strings(list(values))
        header = {
            "task": TASK,
            "parameters": self._parameters(),
            "labels": list(encoder.labels),
            "columns": list(encoder.names),
            "width": encoder.width,
            "templates": [str(template) for template in encoder.templates],
            "base features": [view.checksum() for view in encoder.views.values()],
            "bits": int(self.weights_.ints[at.BITS]),
            "history": {
                "epoch": self.n_iter_,
                "best_epoch": self.best_epoch_,
                "scores": self.scores_,
                "converged": self.converged_,
                "interrupted": self.interrupted_,
                "fingerprint": self.fingerprint_,
            },
            "training": training,
        }
        return model_file.write_file(path, header, tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Tagger:
        """The model of a file; a file that is none is answered with ``BadModel``."""
        header, tensors = model_file.read_file(path, TASK)
        with model_file.reading(path):
            return cls._from_file(header, tensors)

    def _parameters(self) -> dict[str, Any]:
        parameters = self.get_params(deep=False)
        for name in ("templates", "columns"):
            given = parameters[name]
            if given is not None and not isinstance(given, str):
                parameters[name] = list(map(str, given))
        if isinstance(parameters["constraints"], Mapping):
            parameters["constraints"] = [[k, list(v)] for k, v in self.constraints.items()]  # type: ignore[union-attr]
        parameters["dtype"] = str(parameters["dtype"])
        return {name: model_file.described(value) for name, value in parameters.items()}

    @classmethod
    def _from_file(cls, header: dict[str, Any], tensors: dict[str, Array]) -> Tagger:
        parameters = {name: model_file.restored(v) for name, v in header["parameters"].items()}
        if isinstance(parameters["constraints"], list):
            parameters["constraints"] = dict(parameters["constraints"])
        tagger = cls(**parameters)
        tagger._check()
        labels = _strings(header["labels"])
        names = _strings(header["columns"])
        encoder = Encoder(
            parse_templates(_strings(header["templates"])),
            tuple(names),
            tuple(labels),
            tagger._constraints(labels),
            _number(header["width"], -1),
        )
        for column in encoder.vocabularies:
            values = encode.unpacked_strings(tensors[f"values.{column}"])
            encoder.learn_values(column, values)
            if len(encoder.vocabularies[column]) != len(values):
                raise BadModel("found a column value twice")
        if [view.checksum() for view in encoder.views.values()] != header["base features"]:
            raise BadModel(
                "its base features come out otherwise here, perhaps because another version of "
                "Python knows other characters"
            )
        tagger.encoder_ = encoder
        tagger.classes_ = np.array(labels, dtype=object)
        bits = _number(header["bits"], 0)
        table = model_file.unpack_weights(tensors, len(labels), np.dtype(tagger.dtype), bits)
        tagger.weights_ = table
        history = header["history"]
        scores = [float(score) for score in history["scores"]]
        training = Training(
            table,
            epoch=_number(history["epoch"], 0),
            best_epoch=_number(history["best_epoch"], 0),
            best_score=max(scores, default=-np.inf),
            best=table,
            scores=scores,
            converged=bool(history["converged"]),
            interrupted=bool(history["interrupted"]),
        )
        tagger.fingerprint_ = _number(history["fingerprint"], 0)
        tagger._report(training)
        tagger.training_ = None
        if header["training"]:
            kind = np.dtype(tagger.dtype)
            training.table = model_file.unpack_learning(tensors, len(labels), kind)
            tagger.training_ = training
        return tagger


def current(table: Table) -> Table:
    """The weights as they are, not averaged, as a table that only scores."""
    return table._replace(
        v=(table.reals[at.SCALE] * table.v.astype(np.float64)).astype(table.v.dtype),
        u=table.u[:0],
        mark=table.mark[:0],
        reals=np.array([1.0, 0, 0, 0]),
    )


def by_sentence(labels: Column, lengths: Array) -> list[list[str | None]]:
    """The labels of all tokens as a list for each sentence."""
    if isinstance(labels, Factor):
        flat = np.array(labels.values, dtype=object)[labels.codes].tolist()
    else:
        flat = list(labels)
    return [flat[a:b] for a, b in pairwise([0, *np.cumsum(lengths).tolist()])]


_BIO = re.compile("O|[BI](-.+)?", re.DOTALL)
_IOBES = re.compile("O|[BIES](-.+)?", re.DOTALL)


def quality(wanted: Sequence[Sequence[str | None]], found: Labels) -> float:
    """From 0 to 1: chunk F if the labels wanted are BIO or IOBES, else the tokens that are right.

    Tokens for which None is wanted are passed over.
    """
    kinds = {label for sentence in wanted for label in sentence}
    if None in kinds:
        pairs = [
            (label, guess)
            for sentence, guesses in zip(wanted, found, strict=True)
            for label, guess in zip(sentence, guesses, strict=True)
            if label is not None
        ]
        return sum(label == guess for label, guess in pairs) / max(1, len(pairs))
    known: list[list[str]] = [[str(label) for label in sentence] for sentence in wanted]
    kinds |= {label for sentence in found for label in sentence}
    marks = {str(label)[0] for label in kinds if label}
    if marks - {"O"}:
        if all(_BIO.fullmatch(str(label)) for label in kinds):
            return chunk_scores(known, found).f / 100
        if all(_IOBES.fullmatch(str(label)) for label in kinds):
            return chunk_scores(_as_bio(known), _as_bio(found)).f / 100
    return accuracy(known, found) / 100


def _as_bio(sentences: Labels) -> Labels:
    marks = {"S": "B", "E": "I"}
    return [[marks.get(tag[:1], tag[:1]) + tag[1:] for tag in tags] for tags in sentences]


def _is_weighted(data: Data) -> bool:
    return isinstance(data, Features) and data.values is not None


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _strings(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BadModel(f"found {str(value)[:60]!r}, expected a list of strings")
    if len(set(value)) < len(value):
        raise BadModel("found a name twice")
    return value


def _number(value: Any, least: int) -> int:
    if type(value) is not int or value < least:
        raise BadModel(f"found {str(value)[:60]!r}, expected a number from {least} up")
    return value
