"""How sure a model is of what it finds: exact from the lattice, approximate from the beam.

An output is as probable as exp(score / temperature), among all outputs of the lattice, or among
those that the beam holds at its end. The temperature is chosen on held-out sentences, so that of
the decisions given a probability of 0.8 about 80 in 100 are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Corpus
from laso.engine.machine import all_of
from laso.engine.nbest import beam_nbest

if TYPE_CHECKING:
    from laso.estimators.base import SequenceEstimator

ALL = 1 << 20  # of a beam
TEMPERATURE = "temperature"  # its key in the notes of a model
RANGE = (-3.0, 7.0)  # of the logarithm of temperatures
TRIES = 16
LEAST = 1e-6  # the least probability that counts in choosing


class Part(NamedTuple):
    """A decision of an answer: tokens ``start`` up to ``end`` have the label."""

    label: str
    start: int
    end: int
    probability: float


class Confidence(NamedTuple):
    """An answer, how probable it is as a whole, and how probable its decisions are."""

    answer: Any
    probability: float
    parts: list[Part]


def confidences(
    model: SequenceEstimator, corpus: Corpus, weighted: bool, temperature: float
) -> list[Confidence]:
    """What is found in each input, with probabilities."""
    return _by_temperature(model, corpus, weighted)(temperature)


def _by_temperature(
    model: SequenceEstimator, corpus: Corpus, weighted: bool
) -> Callable[[float], list[Confidence]]:
    """The same as a function of the temperature; the search of a beam does not depend on it."""
    machine = model._machine(weighted)
    if isinstance(machine, ExactMachine):
        return lambda temperature: _of_lattice(model, machine, corpus, temperature)
    threads = model._threads(corpus)
    found = beam_nbest(machine, corpus, all_of(corpus), model.weights_, ALL, threads=threads)
    answers = model._found(found.steps, found.ends)
    begins = pairwise([0, *found.ends.tolist()])
    paths = [_placed(model, found.steps[begin:end]) for begin, end in begins]
    bounds = list(pairwise([0, *np.cumsum(found.counts).tolist()]))

    def at_temperature(temperature: float) -> list[Confidence]:
        result = []
        for first, end in bounds:
            shares = softmax(found.scores[first:end] / temperature)
            sums: dict[tuple[int, int, int], float] = {}
            for path, share in zip(paths[first:end], shares.tolist(), strict=True):
                for step in path:
                    sums[step] = sums.get(step, 0.0) + share
            parts = _parts(model, paths[first], sums)
            result.append(Confidence(answers[first], float(shares[0]), parts))
        return result

    return at_temperature


def _of_lattice(
    model: SequenceEstimator, machine: ExactMachine, corpus: Corpus, temperature: float
) -> list[Confidence]:
    table = model.weights_._replace(v=model.weights_.v / np.float32(temperature))
    order = all_of(corpus)
    steps, ends, scores = machine.decode(corpus, order, table)
    answers = model._found(steps, ends)
    result = []
    for i, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        edges = machine.marginals(corpus, order[i : i + 1], table)
        sums: dict[tuple[int, int, int], float] = {}
        columns = (edges.start, edges.group, edges.label, edges.probability)
        for start, group, label, p in zip(*(c.tolist() for c in columns), strict=True):
            sums[start, group, label] = sums.get((start, group, label), 0.0) + p
        path = _placed(model, steps[begin:end])
        whole = float(np.exp(scores[i] - edges.log_z[0]))
        result.append(Confidence(answers[i], min(1.0, whole), _parts(model, path, sums)))
    return result


def _placed(model: SequenceEstimator, steps: Array) -> list[tuple[int, int, int]]:
    """The steps of a path with the tokens at which they begin."""
    placed, first = [], 0
    for group, label in steps.tolist():
        placed.append((first, group, label))
        first += model._step(group, label)[1]
    return placed


def _parts(
    model: SequenceEstimator,
    path: Sequence[tuple[int, int, int]],
    sums: dict[tuple[int, int, int], float],
) -> list[Part]:
    parts = []
    for step in path:
        start, group, label = step
        name, n = model._step(group, label)
        parts.append(Part(name, start, start + n, min(1.0, sums[step])))
    return parts


def softmax(scores: Array) -> Array:
    """Scores as probabilities."""
    shares = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())


def fitted_temperature(
    model: SequenceEstimator, corpus: Corpus, weighted: bool, wanted: Sequence[Any]
) -> float:
    """The temperature at which the decisions are most likely to be as right as they are."""

    found_at = _by_temperature(model, corpus, weighted)

    def cost(log: float) -> float:
        probability, right = judged(model, found_at(float(np.exp(log))), wanted)
        p = np.clip(probability, LEAST, 1 - LEAST)
        return float(-np.mean(np.where(right, np.log(p), np.log(1 - p)))) if len(p) else 0.0

    low, high = RANGE
    ratio = (5**0.5 - 1) / 2  # golden section
    a, b = high - ratio * (high - low), low + ratio * (high - low)
    at_a, at_b = cost(a), cost(b)
    for _ in range(TRIES):
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - ratio * (high - low)
            at_a = cost(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + ratio * (high - low)
            at_b = cost(b)
    return float(np.exp((low + high) / 2))


def judged(
    model: SequenceEstimator, found: Sequence[Confidence], wanted: Sequence[Any]
) -> tuple[Array, Array]:
    """The probability of each decision, and whether it is right."""
    probabilities: list[float] = []
    right: list[bool] = []
    for confidence, answer in zip(found, wanted, strict=True):
        true = model._decisions(answer)
        for part in confidence.parts:
            probabilities.append(part.probability)
            right.append((part.label, part.start, part.end) in true)
    return np.array(probabilities), np.array(right, bool)
