"""What every estimator over sentences does alike, whatever it finds in them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np

from laso.calibration import Reliability, reliability
from laso.data.table import Columns, Data, Features, locating
from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import Machine, all_of, new_table
from laso.engine.nbest import beam_nbest
from laso.engine.passes import Plan, Report, Training, train
from laso.errors import BadData, InputError
from laso.estimators import storage
from laso.estimators.chunk_confidence import TagsOf, in_chunks
from laso.estimators.confidence import (
    TEMPERATURE,
    Confidence,
    confidences,
    fitted_temperature,
    judged,
)
from laso.estimators.runs import Checkpoint, Examples, Size, held_out
from laso.estimators.store import Source, stored
from laso.estimators.tables import moved, wider, with_bias
from laso.estimators.task import Task, by_sentence, is_weighted, whole
from laso.estimators.weights import BALANCED, costed, weighed
from laso.features import encode
from laso.features.inputs import read_input
from laso.features.templates import BIAS, LABEL, parse_templates
from laso.model_file import packed, read_file, reading, write_file
from laso.updates import Lbfgs, Likelihood

__all__ = ["SequenceEstimator", "by_sentence", "is_weighted", "whole"]

USUAL_NAMES = ("w", "pos")

Progress = Callable[[Report], None]


class SequenceEstimator(Task):
    """Learns by search to give sentences an answer; what the answer is, is said by a ``Task``."""

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
        read, to make features, and to train. ``checkpoint`` is where the run is saved meanwhile.
        """
        self._check()
        self.seconds_ = {}
        with self._clock("read"):
            data, answers = self._read(X, y)
        with self._clock("features"):
            with locating(data):
                self._begin(data, self._labels(data, answers), answers)
            examples = self._examples(data, answers, dev)
            del data, answers
            self.fingerprint_ = examples.fingerprint
        with self._clock("train"):
            return self._learn(examples, self._epochs, progress, checkpoint)

    def fit_stream(
        self,
        source: Source,
        *,
        store: str | os.PathLike[str],
        dev: Any = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """Learn from more sentences than memory holds, with the result that ``fit`` would have.

        ``source`` is a column file, or a function that gives the sentences anew. They are encoded
        once, into files in the folder ``store``, and learned from there.
        """
        self._check()
        if self.held_out is not None:
            raise ValueError("held_out needs all sentences at once: use dev, or fit")
        examples = self._with_dev(*stored(self, source, Path(store)), dev)
        self.fingerprint_ = examples.fingerprint
        return self._learn(examples, self._epochs, progress, checkpoint)

    def resume_stream(
        self,
        source: Source,
        *,
        store: str | os.PathLike[str],
        epochs: int,
        dev: Any = None,
        progress: Progress | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> Self:
        """``resume`` for ``fit_stream``."""
        self._check()
        self._state()
        examples = self._with_dev(*stored(self, source, Path(store), anew=False), dev)
        return self._go_on(examples, epochs, progress, checkpoint)

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

        ``lbfgs()`` goes on from the weights alone, without the steps it has in memory, so that it
        comes to the same maximum by another way.
        """
        self._check()
        self._state()
        data, answers = self._read(X, y)
        return self._go_on(self._examples(data, answers, dev), epochs, progress, checkpoint)

    def _go_on(
        self,
        examples: Examples,
        epochs: int,
        progress: Progress | None,
        checkpoint: Checkpoint | None,
    ) -> Self:
        if examples.fingerprint != self.fingerprint_:
            raise ValueError("resume needs the data of fit; for other data there is partial_fit")
        if Plan(patience=self.patience).is_over(self._state()):
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
        """One pass over these sentences, whose labels, words and features may be new.

        ``classes`` are labels to come, at the first call: a label that is known from the
        beginning is learned to be avoided, too.
        """
        self._check()
        if isinstance(self._rule(), Lbfgs):
            raise ValueError("lbfgs() needs all data at once, for fit; here use adagrad() or sgd()")
        if self.class_weight == BALANCED:
            raise ValueError("class_weight='balanced' needs all data at once: give the weights")
        data, answers = self._read(X, y)
        with locating(data):
            found = self._labels(data, answers)
            if not hasattr(self, "weights_"):
                labels = {*found, *(classes if classes is not None else ())}
                self._begin(data, sorted(labels), answers)
            training = self._state()
            new = [label for label in found if label not in self.encoder_.labels]
            self._widen(new, data, answers)
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
        counts = self._counts(data, answers) if self.class_weight == BALANCED else ()
        self.class_weight_ = weighed(self.class_weight, self.encoder_.labels, counts)
        self.encoder_.grow(data)
        self.classes_ = np.array(self.encoder_.labels, dtype=object)
        margin = self._margin()
        table = new_table(len(labels), margin=margin, dtype=self.dtype, hash_bits=self.hash_bits)
        self.training_ = Training(table)

    def _widen(self, new: list[str], data: Data, answers: Any) -> None:
        """Make room for new labels, behind the old ones."""
        facts = self._wider(self._facts(data, answers))
        if not new and facts == self.facts_:
            return
        old, training = self.encoder_, self._state()
        before, self.facts_ = self.facts_, facts
        encoder = self._encoder(old.templates, old.names, (*old.labels, *new), old.width)
        if not self._keeps(old, encoder):
            self.facts_ = before
            raise BadData(
                f"found the labels {', '.join(new)}, which learning has not seen; expected none, "
                "for the order of the labels would change"
            )
        self.encoder_ = encoder
        encoder.taught_by(old)
        self.classes_ = np.array(encoder.labels, dtype=object)
        places = [encoder.labels.index(label) for label in old.labels]
        training.table = wider(training.table, places, len(encoder.labels))
        if training.best is not None:
            self.weights_ = training.best = wider(training.best, places, len(encoder.labels))
        if training.squares is not None:
            training.squares = moved(training.squares, places, len(encoder.labels))

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
        with locating(data):
            corpus = self._corpus(data, answers)
        weighted = is_weighted(data)
        if dev is not None or self.held_out is None:
            return self._with_dev(corpus, weighted, dev)
        n = len(data.lengths)
        chosen = held_out(n, self.held_out, self.seed)
        wanted = self._wanted(data, answers)
        return Examples(
            encode.taken(corpus, np.delete(np.arange(n), chosen)),
            weighted,
            encode.taken(corpus, np.array(chosen)),
            [wanted[i] for i in chosen],
        )

    def _with_dev(self, corpus: Corpus, weighted: bool, dev: Any) -> Examples:
        if dev is None:
            return Examples(corpus, weighted)
        try:
            data, answers = self._read(*(dev if isinstance(dev, tuple) else (dev, None)))
            with locating(data):
                held = self._corpus(self._inputs(data), None)
                weighted |= is_weighted(data)
                return Examples(corpus, weighted, held, self._wanted(data, answers))
        except InputError as error:
            # Its sentences are not those of X.
            raise error if error.file is not None else error.at(file="dev") from None

    @property
    def _epochs(self) -> int:
        """How many there are at most; of ``lbfgs()`` they are its iterations."""
        update = self._rule()
        return update.iterations if isinstance(update, Lbfgs) else self.epochs

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
        place = self._problem(False).costs
        corpus = costed(examples.train, place, self.encoder_.labels, self.class_weight_)
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
        """The ``n`` best answers for each sentence with their scores.

        With ``queue=exact()`` these are the best of all, else those that the beam holds at its end.
        """
        self._must_have("weights_")
        data = read_input(X)
        machine, corpus = self._machine(is_weighted(data)), self._corpus(self._inputs(data), None)
        order, threads = all_of(corpus), self._threads(corpus)
        if isinstance(machine, ExactMachine):
            found = machine.nbest(corpus, order, self.weights_, n, threads=threads)
        else:
            found = beam_nbest(machine, corpus, order, self.weights_, n, threads=threads)
        answers = self._found(found.steps, found.ends)
        paths = list(zip(found.scores.tolist(), answers, strict=True))
        return [paths[a:b] for a, b in pairwise([0, *np.cumsum(found.counts).tolist()])]

    def predict_confidence(self, X: Any, *, chunks: bool | str = False) -> list[Confidence]:
        """What is found in each sentence, how probable it is, and how probable its parts are.

        Exact from the lattice with ``queue=exact()``, else from the outputs that the beam holds.
        After ``calibrate`` the probabilities are what they say. With ``chunks`` the parts are whole
        chunks that the labels mark; where there are several layers, it names one.
        """
        self._must_have("weights_")
        data = read_input(X)
        corpus = self._corpus(self._inputs(data), None)
        temperature = float(self.notes_.get(TEMPERATURE, 1.0))
        if chunks:
            tags_of = self._tags_of(chunks)
            return self._in_chunks(corpus, is_weighted(data), temperature, tags_of)
        return confidences(self, corpus, is_weighted(data), temperature)

    def predict_forced(self, X: Any, *, known: Any = None, banned: Any = None) -> list[Any]:
        """What is found in each sentence if some of it is known, or banned.

        ``known`` has for each sentence None, or a label or None for each token, or spans (label,
        start, end). ``banned`` has for each sentence None, labels that are banned in all of it, or
        such labels for each token.
        """
        from laso.estimators.forced import forced

        self._must_have("weights_")
        sentences = list(X)
        facts = [
            [None] * len(sentences) if some is None else list(some) for some in (known, banned)
        ]
        rows = zip(sentences, *facts, strict=True)
        return [forced(self, x, some, never)[0] for x, some, never in rows]

    def _in_chunks(
        self, corpus: Corpus, weighted: bool, temperature: float, tags_of: TagsOf
    ) -> list[Confidence]:
        return in_chunks(self, corpus, weighted, temperature, tags_of)

    def calibrate(self, X: Any, y: Any = None) -> Self:
        """Choose the temperature of ``predict_confidence`` on sentences not learned from."""
        self._must_have("weights_")
        data, answers = self._read(X, y)
        corpus = self._corpus(self._inputs(data), None)
        wanted = self._wanted(data, answers)
        self.notes_[TEMPERATURE] = fitted_temperature(self, corpus, is_weighted(data), wanted)
        return self

    def reliability(self, X: Any, y: Any = None) -> Reliability:
        """How often parts of each probability are right, and the expected calibration error."""
        data, answers = self._read(X, y)
        corpus = self._corpus(self._inputs(data), None)
        temperature = float(self.notes_.get(TEMPERATURE, 1.0))
        found = confidences(self, corpus, is_weighted(data), temperature)
        return reliability(*judged(self, found, self._wanted(data, answers)))

    def _exactly(self, name: str, X: Any) -> tuple[ExactMachine, Corpus]:
        self._must_have("weights_")
        data = read_input(X)
        machine = self._machine(is_weighted(data))
        if not isinstance(machine, ExactMachine):
            raise ValueError(f"{name} needs exact search: queue=exact(), found {self.queue!r}")
        return machine, self._corpus(self._inputs(data), None)

    def _predicted(self, data: Data) -> list[Any]:
        with locating(data):
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

    def biased(self, bias: Mapping[str, float]) -> Self:
        """A copy that finds some labels more often, or less: so much is added to their score.

        For labels that mark chunks, less for O finds more chunks, of which more are wrong.
        """
        self._must_have("weights_")
        made = copy(self)
        made.training_ = None
        made.weights_ = with_bias(self.weights_, self._constants(), self._amounts(bias))
        return made

    def _amounts(self, bias: Mapping[str, float]) -> Array:
        amounts = np.zeros(len(self.encoder_.labels))
        for label, amount in bias.items():
            if label not in self.encoder_.labels:
                expected = ", ".join(self.encoder_.labels)
                raise ValueError(f"found a bias for {label!r}, expected one of {expected}")
            amounts[self.encoder_.labels.index(label)] = amount
        return amounts

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
