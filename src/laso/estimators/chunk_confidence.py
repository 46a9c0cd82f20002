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

from laso.engine.exact import ExactMachine
from laso.engine.layout import Array, Corpus, Table
from laso.engine.machine import all_of
from laso.engine.nbest import beam_nbest
from laso.errors import Unreachable
from laso.estimators.confidence import ALL, Confidence, Part, softmax
from laso.features.encode import taken
from laso.features.schemes import OUTSIDE, chunks_of, marked

if TYPE_CHECKING:
    from laso.estimators.base import SequenceEstimator

Chunk: TypeAlias = tuple[str, int, int]
TagsOf: TypeAlias = Callable[[Any], Sequence[str]]
"""From an answer to its tags."""


def in_chunks(
    model: SequenceEstimator, corpus: Corpus, weighted: bool, temperature: float, tags_of: TagsOf
) -> list[Confidence]:
    """What is found in each input, and how probable each chunk of it is."""
    machine = model._machine(weighted)
    if isinstance(machine, ExactMachine):
        return _of_lattice(model, machine, corpus, temperature)
    threads = model._threads(corpus)
    found = beam_nbest(machine, corpus, all_of(corpus), model.weights_, ALL, threads=threads)
    answers = model._found(found.steps, found.ends)
    result = []
    for first, end in pairwise([0, *np.cumsum(found.counts).tolist()]):
        shares = softmax(found.scores[first:end] / temperature)
        chunks = [set(inside(tags_of(answer))) for answer in answers[first:end]]
        parts = []
        for chunk in inside(tags_of(answers[first])):
            has = np.array([chunk in some for some in chunks])
            parts.append(Part(*chunk, min(1.0, float(shares[has].sum()))))
        result.append(Confidence(answers[first], float(shares[0]), parts))
    return result


def inside(tags: Sequence[str]) -> list[Chunk]:
    """The chunks of a sentence, without the words outside."""
    return [chunk for chunk in chunks_of(tags) if chunk[0] != OUTSIDE]


def _of_lattice(
    model: SequenceEstimator, machine: ExactMachine, corpus: Corpus, temperature: float
) -> list[Confidence]:
    table = model.weights_._replace(v=model.weights_.v / np.float32(temperature))
    steps, ends, scores = machine.decode(corpus, all_of(corpus), table)
    labels = [marked(label) for label in model.encoder_.labels]
    result = []
    for i, answer in enumerate(model._found(steps, ends)):
        one = taken(corpus, np.array([i]))
        parts = []
        for chunk in inside(answer):
            ways = patterns(labels, chunk, len(answer))
            probability = sum(_probability(machine, one, table, way) for way in ways)
            parts.append(Part(*chunk, min(1.0, probability)))
        log_z = machine.marginals(one, np.array([0]), table).log_z[0]
        result.append(Confidence(answer, min(1.0, float(np.exp(scores[i] - log_z))), parts))
    return result


def patterns(labels: Sequence[tuple[str, str]], chunk: Chunk, n: int) -> Iterator[dict[int, Array]]:
    """The ways in which tags say that there is a chunk: which labels some tokens may have.

    ``labels`` are marks and types. No tags are in two of them. I may begin a chunk where none of
    its type goes on, and a chunk without a mark for its end must not go on.
    """
    kind, start, end = chunk

    def of(marks: str) -> Array:
        return np.array([mark in marks and own == kind for mark, own in labels])

    for begin, stop in product("BI", "IE"):
        found = {i: of("I") for i in range(start + 1, end - 1)}
        if end == start + 1:
            found[start] = of({"BI": "B", "BE": "S", "II": "I", "IE": "E"}[begin + stop])
        else:
            found[start], found[end - 1] = of(begin), of(stop)
        if begin == "I" and start > 0:
            found[start - 1] = ~of("BI")
        if stop == "I" and end < n:
            found[end] = ~of("IE")
        if all(flags.any() for flags in found.values()):
            yield found


def _probability(
    machine: ExactMachine, one: Corpus, table: Table, pattern: dict[int, Array]
) -> float:
    """The part of all outputs of an input that fit a pattern."""
    outputs = np.full(len(one.items), -1, np.int32)
    for number, i in enumerate(pattern):
        outputs[i] = -2 - number  # sets of good labels stand at the end of spec
    sets = np.concatenate(list(pattern.values())).astype(np.int64)
    asked = one._replace(spec=np.concatenate([one.spec, sets]), outputs=outputs)
    try:
        return float(np.exp(machine.log_likelihood(asked, np.array([0]), table)[0]))
    except Unreachable:
        return 0.0
