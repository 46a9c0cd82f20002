"""The n best outputs of inputs."""

from __future__ import annotations

from itertools import pairwise
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from laso.engine.beam_nbest import beam_nbest
from laso.engine.lattice.exact import ExactMachine, NBest
from laso.engine.layout import Dataset
from laso.engine.machine import all_of
from laso.errors import quoted

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

ALL = 1 << 20  # paths of a beam


def nbest_paths(model: Predictor, dataset: Dataset, n: int) -> NBest:
    """The n best paths of each input, or those that the beam holds at its end."""
    if isinstance(n, bool) or not isinstance(n, Integral):
        raise ValueError(f"n must be a whole number, found {quoted(n)}")
    engine, order, threads = model.engine(dataset), all_of(dataset), model.threads_for(dataset)
    if isinstance(engine, ExactMachine):
        return engine.nbest(dataset, order, model.weights_, n, threads=threads)
    return beam_nbest(engine, dataset, order, model.weights_, n, threads=threads)


def path_outputs(model: Predictor, inputs: Any, dataset: Dataset, paths: NBest) -> list[Any]:
    """The output of each path."""
    repeated = np.repeat(np.arange(len(dataset.starts) - 1), paths.counts)
    return model.task_.decode_all(
        model.task_.take(inputs, repeated.tolist()), paths.steps, paths.ends
    )


def nbest_outputs(
    model: Predictor, inputs: Any, dataset: Dataset, n: int
) -> list[list[tuple[float, Any]]]:
    """The n best outputs of each input with their scores, best first.

    Of several paths to one output the best counts.
    """
    many = model.task_.many_paths and n >= 1
    paths = nbest_paths(model, dataset, ALL if many else n)
    outputs = path_outputs(model, inputs, dataset, paths)
    scored = list(zip(paths.scores.tolist(), outputs, strict=True))
    by_input = [scored[a:b] for a, b in pairwise([0, *np.cumsum(paths.counts).tolist()])]
    return [distinct(ranked)[:n] for ranked in by_input] if many else by_input


def distinct(scored: list[tuple[float, Any]]) -> list[tuple[float, Any]]:
    """Keep the first of equal outputs."""
    kept: list[tuple[float, Any]] = []
    for score, output in scored:
        if all(output != known for _, known in kept):
            kept.append((score, output))
    return kept
