"""How probable outputs and their parts are: exact from the lattice, approximate from the beam.

An output is as probable as exp(score / temperature), among all outputs of the lattice, or among
those that the beam holds at its end. The temperature is fitted on held-out examples, so that of
the decisions given a probability of 0.8 about 80 in 100 are right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from laso.engine.lattice.exact import ExactMachine, Marginals
from laso.engine.layout import Array, Dataset
from laso.engine.machine import all_of
from laso.engine.reference import gold_path, input_of, output_of
from laso.engine.weights.row_layouts import densified
from laso.estimators.capabilities.nbest import ALL, nbest_paths, path_outputs
from laso.metrics.calibration import Reliability, reliability
from laso.tasks.base import Decision

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

TEMPERATURE = "temperature"  # its key in the metadata of a model
RANGE = (-3.0, 7.0)  # of the logarithm of temperatures
TRIES = 16
LEAST = 1e-6  # the least probability that counts in fitting

Placed = tuple[int, int, int]
"""A step with the item at which it begins: (first, group, label)."""


class Part(NamedTuple):
    """A decision of an output: items ``start`` up to ``end`` have the label."""

    label: str
    start: int
    end: int
    probability: float


class Confidence(NamedTuple):
    """An output, how probable it is as a whole, and how probable its decisions are."""

    output: Any
    probability: float
    parts: list[Part]


def temperature_of(model: Predictor) -> float:
    """The temperature that ``calibrate`` fitted, or 1."""
    return float(model.metadata_.get(TEMPERATURE, 1.0))


def confidences(model: Predictor, inputs: Any, dataset: Dataset) -> list[Confidence]:
    """The output of each input, with probabilities."""
    return _by_temperature(model, inputs, dataset)(temperature_of(model))


def chunk_confidences(
    model: Predictor, inputs: Any, dataset: Dataset, layer: bool | str
) -> list[Confidence]:
    """The output of each input, with the probabilities of the chunks that it marks."""
    from laso.estimators.capabilities.chunk_confidence import in_chunks
    from laso.features.schemes import OUTSIDE

    if model.task_.steps_are_chunks:
        by_token = confidences(model, inputs, dataset)
        return [c._replace(parts=[p for p in c.parts if p.label != OUTSIDE]) for c in by_token]
    tags_of = model.task_.tags_of(layer)
    return in_chunks(model, inputs, dataset, temperature_of(model), tags_of)


def marginals(
    model: Predictor, engine: ExactMachine, dataset: Dataset, *, least: float
) -> list[dict[tuple[str, int, int], float]]:
    """The probability of each step (name, first item, end) of each input, if not below least."""
    task, result = model.task_, []
    for i in all_of(dataset):  # one at a time: the steps of an input are many
        edges = engine.marginals(dataset, np.array([i]), model.weights_)
        columns = [edges.start, edges.key, edges.group, edges.label]
        steps, which = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
        sums = np.bincount(which.ravel(), edges.probability, len(steps))
        likely = np.flatnonzero(sums >= least)
        one: dict[tuple[str, int, int], float] = {}
        for (start, end, group, label), p in zip(steps[likely].tolist(), sums[likely], strict=True):
            name = (task.describe(group, label).name, start, end)
            one[name] = one.get(name, 0.0) + float(p)
        result.append(one)
    return result


def _by_temperature(
    model: Predictor, inputs: Any, dataset: Dataset
) -> Callable[[float], list[Confidence]]:
    """The same as a function of the temperature; the search of a beam does not depend on it."""
    engine = model.engine(dataset)
    if isinstance(engine, ExactMachine):
        return lambda temperature: _of_lattice(model, engine, inputs, dataset, temperature)
    nbest = nbest_paths(model, dataset, ALL)
    outputs = path_outputs(model, inputs, dataset, nbest)
    begins = pairwise([0, *nbest.ends.tolist()])
    paths = [_decided(model, nbest.steps[begin:end]) for begin, end in begins]
    bounds = list(pairwise([0, *np.cumsum(nbest.counts).tolist()]))

    def at_temperature(temperature: float) -> list[Confidence]:
        result = []
        for first, end in bounds:
            shares = softmax(nbest.scores[first:end] / temperature)
            sums: dict[Decision, float] = {}
            for path, share in zip(paths[first:end], shares.tolist(), strict=True):
                for decision in path:
                    sums[decision] = sums.get(decision, 0.0) + share
            parts = [
                Part(name, start, stop, min(1.0, sums[name, start, stop]))
                for name, start, stop in paths[first]
            ]
            whole = float(shares[0])
            if model.task_.many_paths:
                same = [i for i in range(first, end) if outputs[i] == outputs[first]]
                whole = min(1.0, float(sum(shares[i - first] for i in same)))
            result.append(Confidence(outputs[first], whole, parts))
        return result

    return at_temperature


def _of_lattice(
    model: Predictor, engine: ExactMachine, inputs: Any, dataset: Dataset, temperature: float
) -> list[Confidence]:
    weights = densified(model.weights_)
    table = weights._replace(v=weights.v / np.float32(temperature))
    order = all_of(dataset)
    steps, ends, scores = engine.decode(dataset, order, table)
    outputs = model.task_.decode_all(inputs, steps, ends)
    result = []
    for i, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
        edges = engine.marginals(dataset, order[i : i + 1], table)
        probabilities = _along(edges, steps[begin:end])
        whole = float(np.exp(scores[i] - edges.log_z[0]))
        parts = _parts(model, _placed(model, steps[begin:end]), probabilities)
        result.append(Confidence(outputs[i], min(1.0, whole), parts))
    return result


def _along(edges: Marginals, path: Array) -> list[float]:
    """The probability of each step of a path, found by the key at which it begins."""
    sums: dict[Placed, float] = {}
    after: dict[Placed, int] = {}
    columns = (edges.start, edges.group, edges.label, edges.key, edges.probability)
    for start, group, label, key, p in zip(*(c.tolist() for c in columns), strict=True):
        sums[start, group, label] = sums.get((start, group, label), 0.0) + p
        after[start, group, label] = key
    probabilities, at = [], 0
    for group, label in path.tolist():
        probabilities.append(sums[at, group, label])
        at = after[at, group, label]
    return probabilities


def _decided(model: Predictor, steps: Array) -> list[Decision]:
    """What the steps of a path decide, in the order of the items."""
    decisions = model.task_.path_decisions([(group, label) for group, label in steps.tolist()])
    return sorted((each for each in decisions if each is not None), key=lambda each: each[1])


def _placed(model: Predictor, steps: Array) -> list[Placed]:
    """The steps of a path with the items at which they begin."""
    placed, first = [], 0
    for group, label in steps.tolist():
        placed.append((first, group, label))
        first += model.task_.describe(group, label).length
    return placed


def _parts(model: Predictor, path: Sequence[Placed], probabilities: Sequence[float]) -> list[Part]:
    parts = []
    for (start, group, label), probability in zip(path, probabilities, strict=True):
        name, n = model.task_.describe(group, label)
        parts.append(Part(name, start, start + n, min(1.0, probability)))
    return parts


def softmax(scores: Array) -> Array:
    """Scores as probabilities."""
    shares = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())


# --------------------------------------------------------------------------- calibration


def reliability_of(model: Predictor, inputs: Any, outputs: Any) -> Reliability:
    """How often decisions of each probability are right."""
    predicted = confidences(model, inputs, model.task_.encode(inputs))
    return reliability(*_judged(predicted, gold_decisions(model, inputs, outputs)))


def fitted_temperature(model: Predictor, inputs: Any, outputs: Any) -> float:
    """The temperature at which the decisions are most likely to be as right as they are."""
    from scipy.optimize import minimize_scalar

    by_temperature = _by_temperature(model, inputs, model.task_.encode(inputs))
    gold = gold_decisions(model, inputs, outputs)

    def cost(log: float) -> float:
        probability, right = _judged(by_temperature(float(np.exp(log))), gold)
        p = np.clip(probability, LEAST, 1 - LEAST)
        return float(-np.mean(np.where(right, np.log(p), np.log(1 - p)))) if len(p) else 0.0

    minimum = minimize_scalar(cost, bounds=RANGE, method="bounded", options={"maxiter": TRIES})
    return float(np.exp(minimum.x))


def gold_decisions(model: Predictor, inputs: Any, outputs: Any) -> list[set[tuple[str, int, int]]]:
    """The steps of each gold output as (name, first item, end)."""
    task = model.task_
    gold = task.gold_outputs(inputs, outputs)
    known = [task.decisions(y) for y in gold]
    if None not in known:
        return [each for each in known if each is not None]
    dataset = task.encode(inputs, outputs)
    problem, result = task.problem_for(dataset), []
    for i in range(len(gold)):
        path = gold_path(problem, input_of(dataset, i), output_of(dataset, i), len(task.classes))
        placed = _placed(model, np.array(path, np.int32).reshape(-1, 2))
        parts = _parts(model, placed, [1.0] * len(placed))
        result.append({(part.label, part.start, part.end) for part in parts})
    return result


def _judged(
    predicted: Sequence[Confidence], gold: Sequence[set[tuple[str, int, int]]]
) -> tuple[Array, Array]:
    """The probability of each decision, and whether it is right."""
    probabilities: list[float] = []
    right: list[bool] = []
    for confidence, true in zip(predicted, gold, strict=True):
        for part in confidence.parts:
            probabilities.append(part.probability)
            right.append((part.label, part.start, part.end) in true)
    return np.array(probabilities), np.array(right, bool)
