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
from laso.tasks.base import Decision, Task

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

TEMPERATURE = "temperature"  # its key in the metadata of a model
RANGE = (-3.0, 7.0)  # of the logarithm of temperatures
TRIES = 16
LEAST = 1e-6  # the least probability that counts in fitting


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
) -> list[dict[Decision, float]]:
    """The decisions (name, first item, end) of each input that are as probable as ``least``."""
    result = []
    for i in all_of(dataset):  # one at a time: the steps of an input are many
        edges = engine.marginals(dataset, np.array([i]), model.weights_)
        sums = sorted(_decision_probabilities(model.task_, edges).items(), key=lambda s: s[0][1:])
        result.append({decision: p for decision, p in sums if p >= least})
    return result


def _decision_probabilities(task: Task, edges: Marginals) -> dict[Decision, float]:
    """The probability of each decision: of all paths through a lattice on which it is taken.

    Given its node, the next step does not depend on the steps before, so a place (the items that
    are covered) is as probable as the paths to it. A task of its own path_decisions is asked about
    one path to each node.
    """
    by_describe = type(task).path_decisions is Task.path_decisions
    nodes = np.bincount(edges.source, edges.probability).tolist() if len(edges.source) else []
    columns = (edges.source, edges.target, edges.group, edges.label, edges.probability)
    places: dict[int, dict[Any, float]] = {0: {0 if by_describe else (): 1.0}}
    sums: dict[Decision, float] = {}
    for source, target, group, label, p in zip(*(c.tolist() for c in columns), strict=True):
        share = p / nodes[source] if nodes[source] else 0.0
        after = places.setdefault(target, {})
        for place, probability in places[source].items():
            decision: Decision | None
            if by_describe:
                name, length = task.describe(group, label)
                decision = (name, place, place + length)
                reached: Any = place + length
            else:
                path = (*place, (group, label))
                decision = task.path_decisions(path)[-1]
                reached = next(iter(after), path)
            after[reached] = after.get(reached, 0.0) + probability * share
            if decision is not None:
                sums[decision] = sums.get(decision, 0.0) + probability * share
    return {decision: min(1.0, p) for decision, p in sums.items()}


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
        sums = _decision_probabilities(model.task_, edges)
        whole = float(np.exp(scores[i] - edges.log_z[0]))
        parts = [Part(*each, sums[each]) for each in _decided(model, steps[begin:end])]
        result.append(Confidence(outputs[i], min(1.0, whole), parts))
    return result


def _decided(model: Predictor, steps: Array) -> list[Decision]:
    """What the steps of a path decide, in the order of the items."""
    decisions = model.task_.path_decisions([(group, label) for group, label in steps.tolist()])
    return sorted((each for each in decisions if each is not None), key=lambda each: each[1])


def softmax(scores: Array) -> Array:
    """Scores as probabilities."""
    shares = np.exp(scores - scores.max())
    return np.asarray(shares / shares.sum())


# --------------------------------------------------------------------------- calibration


def reliability_of(model: Predictor, inputs: Any, outputs: Any) -> Reliability:
    """How often decisions of each probability are right."""
    inputs, outputs, dataset = model.apart(inputs, outputs, model.task_.arrays(inputs))
    predicted = confidences(model, inputs, dataset)
    return reliability(*_judged(predicted, gold_decisions(model, inputs, outputs)))


def fitted_temperature(model: Predictor, inputs: Any, outputs: Any) -> float:
    """The temperature at which the decisions are most likely to be as right as they are."""
    from scipy.optimize import minimize_scalar

    inputs, outputs, dataset = model.apart(inputs, outputs, model.task_.arrays(inputs))
    by_temperature = _by_temperature(model, inputs, dataset)
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
    dataset = task.arrays(inputs, outputs)
    problem, result = task.problem_for(dataset), []
    for i in range(len(gold)):
        path = gold_path(problem, input_of(dataset, i), output_of(dataset, i), len(task.classes))
        result.append(set(_decided(model, np.array(path, np.int32).reshape(-1, 2))))
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
