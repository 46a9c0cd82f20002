"""How probable whole chunks are where labels of single tokens mark them.

A chunk is in an output if the tags of its tokens say so, whatever the others are: the probability
is that of all outputs that agree with a partial annotation. The lattice sums over them; of a beam
those count that it holds at its end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from laso.engine.lattice.exact import ExactMachine
from laso.engine.layout import Array, Dataset, WeightTable
from laso.engine.machine import all_of
from laso.engine.weights.row_layouts import densified
from laso.errors import Unreachable
from laso.estimators.capabilities.confidence import Confidence, Part, softmax
from laso.estimators.capabilities.nbest import ALL, nbest_paths, path_outputs
from laso.features.encoder import take_inputs
from laso.features.schemes import OUTSIDE, chunks_of, split_tag

if TYPE_CHECKING:
    from laso.estimators.prediction import Predictor

Chunk: TypeAlias = tuple[str, int, int]
TagsOf: TypeAlias = Callable[[Any], Sequence[str]]
"""From an answer to its tags."""


def in_chunks(
    model: Predictor, inputs: Any, dataset: Dataset, temperature: float, tags_of: TagsOf
) -> list[Confidence]:
    """The output of each input, and how probable each chunk of it is."""
    engine = model.engine(dataset)
    if isinstance(engine, ExactMachine):
        return _of_lattice(model, engine, inputs, dataset, temperature)
    paths = nbest_paths(model, dataset, ALL)
    outputs = path_outputs(model, inputs, dataset, paths)
    result = []
    for first, end in pairwise([0, *np.cumsum(paths.counts).tolist()]):
        shares = softmax(paths.scores[first:end] / temperature)
        chunks = [set(inside(tags_of(output))) for output in outputs[first:end]]
        parts = []
        for chunk in inside(tags_of(outputs[first])):
            has = np.array([chunk in predicted for predicted in chunks])
            parts.append(Part(*chunk, min(1.0, float(shares[has].sum()))))
        result.append(Confidence(outputs[first], float(shares[0]), parts))
    return result


def inside(tags: Sequence[str]) -> list[Chunk]:
    """The chunks of a sentence, without the words outside."""
    return [chunk for chunk in chunks_of(tags) if chunk[0] != OUTSIDE]


def _of_lattice(
    model: Predictor, engine: ExactMachine, inputs: Any, dataset: Dataset, temperature: float
) -> list[Confidence]:
    weights = densified(model.weights_)
    table = weights._replace(v=weights.v / np.float32(temperature))
    steps, ends, scores = engine.decode(dataset, all_of(dataset), table)
    labels = [split_tag(label) for label in model.task_.classes]
    result = []
    for i, output in enumerate(model.task_.decode_all(inputs, steps, ends)):
        one = take_inputs(dataset, np.array([i]))
        parts = []
        for chunk in inside(output):
            ways = patterns(labels, chunk, len(output))
            probability = sum(_probability(engine, one, table, way) for way in ways)
            parts.append(Part(*chunk, min(1.0, probability)))
        log_z = engine.marginals(one, np.array([0]), table).log_z[0]
        result.append(Confidence(output, min(1.0, float(np.exp(scores[i] - log_z))), parts))
    return result


def patterns(labels: Sequence[tuple[str, str]], chunk: Chunk, n: int) -> Iterator[dict[int, Array]]:
    """The ways in which tags say that there is a chunk: which labels some tokens may have.

    ``labels`` are marks and types. No tags are in two of them. I may begin a chunk where none of
    its type goes on, and a chunk without a mark for its end must not go on.
    """
    kind, start, end = chunk

    def of(marks: str) -> Array:
        return np.array([mark in marks and label_kind == kind for mark, label_kind in labels])

    for begin, stop in product("BI", "IE"):
        flags_at = {i: of("I") for i in range(start + 1, end - 1)}
        if end == start + 1:
            flags_at[start] = of({"BI": "B", "BE": "S", "II": "I", "IE": "E"}[begin + stop])
        else:
            flags_at[start], flags_at[end - 1] = of(begin), of(stop)
        if begin == "I" and start > 0:
            flags_at[start - 1] = ~of("BI")
        if stop == "I" and end < n:
            flags_at[end] = ~of("IE")
        if all(flags.any() for flags in flags_at.values()):
            yield flags_at


def _probability(
    engine: ExactMachine, one: Dataset, table: WeightTable, pattern: dict[int, Array]
) -> float:
    """The part of all outputs of an input that fit a pattern."""
    outputs = np.full(len(one.items), -1, np.int32)
    for number, i in enumerate(pattern):
        outputs[i] = -2 - number  # sets of good labels stand at the end of spec
    sets = np.concatenate(list(pattern.values())).astype(np.int64)
    asked = one._replace(spec=np.concatenate([one.spec, sets]), outputs=outputs)
    try:
        return float(np.exp(engine.log_likelihood(asked, np.array([0]), table)[0]))
    except Unreachable:
        return 0.0
