"""Sequence labelling: one label a token."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from laso.data.table import Column, Data
from laso.engine.layout import Array, Corpus
from laso.engine.machine import all_of
from laso.estimators.base import SequenceEstimator
from laso.estimators.weights import ClassWeight, check_siblings
from laso.features import encode
from laso.features.encode import Encoder
from laso.features.templates import LABEL, Template, default_templates
from laso.learn import laso
from laso.metrics import accuracy, chunk_scores
from laso.model_file import stored_rows
from laso.queues import MakeQueue
from laso.tasks import tagging
from laso.training import Rule, Strategy

Labels = list[list[str]]


class Tagger(SequenceEstimator):
    """Labels the tokens of sentences; the weights are learned inside the search that labels.

    templates    which features there are (see laso.features.templates); None: a general set
    columns      names of the input columns; None: w, pos, then numbers
    queue        the width of the beam, or beam(5), bounded_best_first(5), exact() ...
    update       perceptron(), alma(), passive_aggressive(); None: perceptron(). With exact() also
                 adagrad(), sgd(), lbfgs(), which make a conditional random field
    strategy     laso, early, standard or max_violation
    constraints  "BIO", "IOBES", or for each label those that may follow it (None: both ends)
    epochs       passes over the data, at most
    seed         of the order of the sentences and of those held out; None: as they come
    held_out     the fraction of the sentences to score each epoch on: the best epoch counts
    patience     stop after so many epochs without a better score
    average      average the weights over all examples seen; None: unless likelihood is climbed
    class_weight what it costs to miss a label, as in {"O": 0.5} (1 for the others), or "balanced":
                 updates after such errors are so many times longer
    hash_bits    bound memory: cut keys to so many bits; 0: keep all
    threads      for decoding; None: all cores
    dtype        of the weights, "float32" or "float64"

    The score is chunk F if the labels are BIO or IOBES, else the tokens that are right. Tokens
    without a known label count only in the search, and then the score is that of tokens.
    """

    task = "tagging"

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
        average: bool | None = None,
        class_weight: ClassWeight = None,
        hash_bits: int = 0,
        threads: int | None = None,
        dtype: str = "float32",
    ):
        super().__init__(
            columns=columns,
            queue=queue,
            update=update,
            strategy=strategy,
            epochs=epochs,
            seed=seed,
            held_out=held_out,
            patience=patience,
            average=average,
            class_weight=class_weight,
            hash_bits=hash_bits,
            threads=threads,
            dtype=dtype,
        )
        self.templates = templates
        self.constraints = constraints

    def predict_marginals(self, X: Any) -> list[list[dict[str, float]]]:
        """The probability of each label of each token, with ``queue=exact()``.

        A labelling is as probable as exp(its score), among all that are allowed: what adagrad(),
        sgd() and lbfgs() learn. Other updates learn scores that say little as probabilities.
        """
        machine, corpus = self._exactly("predict_marginals", X)
        found = machine.label_probabilities(
            corpus, all_of(corpus), self.weights_, threads=self._threads(corpus)
        )
        labels = self.encoder_.labels
        tokens = [dict(zip(labels, row, strict=True)) for row in found.tolist()]
        return [tokens[a:b] for a, b in pairwise(corpus.starts.tolist())]

    def predict_marginals_single(self, x: Any) -> list[dict[str, float]]:
        """The probability of each label of each token of one sentence, with ``queue=exact()``."""
        return self.predict_marginals([x])[0]

    @property
    def attributes_(self) -> list[str]:
        """The features of tokens that have a weight, as far as they can be named."""
        return list(dict.fromkeys(name for name, _ in self.state_features_))

    @property
    def state_features_(self) -> dict[tuple[str, str], float]:
        """The weights of (feature, label), for features that do not look at labels."""
        return {
            (name, label): weight
            for name, label, weight in self._named_weights()
            if not name.startswith(f"{LABEL}[")
        }

    @property
    def transition_features_(self) -> dict[tuple[str, str], float]:
        """The weights of (label, label after it)."""
        return {
            (name.removeprefix(f"{LABEL}[-1]="), label): weight
            for name, label, weight in self._named_weights()
            if name.startswith(f"{LABEL}[-1]=") and " | " not in name and "(none)" not in name
        }

    def _named_weights(self) -> Iterator[tuple[str, str, float]]:
        from laso.features.names import Namer

        self._must_have("weights_")
        keys, rows = stored_rows(self.weights_)
        names = Namer(self.encoder_).of_keys(keys)
        for key, row in zip(keys.tolist(), rows.tolist(), strict=True):
            if key in names:
                for label in np.flatnonzero(self.weights_.v[row]).tolist():
                    weight = float(self.weights_.v[row, label])
                    yield names[key], self.encoder_.labels[label], weight

    def _problem(self, weighted: bool) -> type[tagging.Tagging]:
        return tagging.WeightedTagging if weighted else tagging.Tagging

    def _step(self, group: int, label: int) -> tuple[str, int]:
        return str(self.classes_[label]), 1

    def _checks(self) -> list[tuple[str, bool, str]]:
        known = self.constraints in (None, "BIO", "IOBES") or isinstance(self.constraints, Mapping)
        return [*super()._checks(), ("constraints", known, "None, 'BIO', 'IOBES' or a table")]

    def _templates(self, names: tuple[str, ...]) -> str | Sequence[str | Template]:
        return default_templates(names) if self.templates is None else self.templates

    def _encoder(
        self,
        templates: tuple[Template, ...],
        names: tuple[str, ...],
        labels: tuple[str, ...],
        width: int,
    ) -> Encoder:
        return Encoder(templates, names, labels, self._constraints(labels), width)

    def _constraints(self, labels: Sequence[str]) -> tagging.Constraints | None:
        if self.constraints is None:
            return None
        return tagging.constraints(labels, self.constraints)

    def _corpus(self, data: Data, answers: Column | None) -> Corpus:
        if answers is None:
            return self.encoder_.corpus(data)
        numbers = encode.label_numbers(answers, self.encoder_.labels, data.lengths)
        if self._has_siblings:
            known = numbers >= 0
            check_siblings(np.where(known, 1, len(self.classes_)), known, data.lengths)
        return self.encoder_.corpus(data, numbers)

    def _found(self, steps: Array, ends: Array) -> Labels:
        labels = self.classes_[steps[:, 1]].tolist()
        return [labels[a:b] for a, b in pairwise([0, *ends.tolist()])]

    def _quality(self, wanted: Sequence[Sequence[str | None]], found: Labels) -> float:
        return quality(wanted, found)


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
