"""Data larger than memory: encoded once, part by part, to files that are mapped into memory.

The sentences are read twice, first for their labels. What is learned is the same as in memory.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from laso.data.reading import read
from laso.data.table import Features, locating, table_of
from laso.engine.layout import Array, Corpus
from laso.errors import BadData, InputError
from laso.estimators.weights import BALANCED, weighed

if TYPE_CHECKING:
    from laso.estimators.base import SequenceEstimator

SOME = 2000  # sentences in memory at a time
KINDS = {"items": np.int32, "outputs": np.int32, "pool": np.int64, "values": np.float32}

Source: TypeAlias = str | os.PathLike[str] | Callable[[], Iterable[Any]]
"""A column file, or a function that gives sentences anew: lists of tokens whose label is last."""


def pieces(source: Source) -> Iterator[tuple[Any, Any]]:
    """Yield X and y of some sentences at a time; those of a file are columns with positions."""
    if isinstance(source, (str, os.PathLike)):
        blocks = (block for block in read(source) if block.tokens)
        while piece := list(islice(blocks, SOME)):
            yield table_of(piece), None
        return
    sentences = iter(source())
    while some := list(islice(sentences, SOME)):
        pairs = all(isinstance(each, tuple) and len(each) == 2 for each in some)
        yield ([x for x, _ in some], [y for _, y in some]) if pairs else (some, None)


def stored(
    model: SequenceEstimator, source: Source, folder: Path, *, anew: bool = True
) -> tuple[Corpus, bool]:
    """Encode sentences to a folder: the corpus, mapped, and whether its features have values.

    Unless learning begins ``anew``, the model knows their labels and words.
    """
    if anew:
        _look(model, source)
    encoder = model.encoder_
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: (folder / name).open("wb") for name in KINDS}
    lengths: list[Array] = []
    outputs: list[Array] = []  # how long they are
    shape, pool, most, weighted = (0, 1), 0, 0, False
    try:
        for data, answers in _read(model, source):
            if anew:
                encoder.grow(data)
            with counted_after(sum(map(len, lengths))), locating(data):
                corpus = model._corpus(data, answers)
            plain = encoder.spec_for(int(data.lengths.max(initial=1)), None)
            if len(corpus.spec) != len(plain):
                raise BadData("found unknown labels that constraints narrow: expected all known")
            items = encoder.moved(corpus.items, pool)
            weighted |= isinstance(data, Features) and data.values is not None
            if isinstance(data, Features):
                most = max(most, int(data.counts.max(initial=0)))
            values = corpus.values
            if isinstance(data, Features) and data.values is None:
                values = np.ones(len(corpus.pool), np.float32)  # another part may have values
            for name, array in zip(
                KINDS, (items, corpus.outputs, corpus.pool, values), strict=True
            ):
                files[name].write(np.ascontiguousarray(array, KINDS[name]).tobytes())
            lengths.append(data.lengths)
            outputs.append(np.diff(corpus.output_starts))
            shape = (shape[0] + len(items), items.shape[1])
            pool += len(corpus.pool)
    finally:
        for file in files.values():
            file.close()
    all_lengths = np.concatenate(lengths)
    starts, output_starts = (
        np.concatenate([[0], np.cumsum(np.concatenate(each))]).astype(np.int64)
        for each in (lengths, outputs)
    )
    spec = encoder.spec_for(int(all_lengths.max(initial=1)), most if not encoder.names else None)
    mapped = {name: _mapped(folder / name, kind) for name, kind in KINDS.items()}
    return (
        Corpus(
            mapped["items"].reshape(shape),
            starts,
            mapped["pool"],
            mapped["values"],
            spec,
            mapped["outputs"],
            output_starts,
        ),
        weighted,
    )


def _read(model: SequenceEstimator, source: Source) -> Iterator[tuple[Any, Any]]:
    before = 0
    for X, y in pieces(source):
        with counted_after(before), locating(X):
            found = model._read(X, y)
        yield found
        before += len(X)


@contextmanager
def counted_after(before: int) -> Iterator[None]:
    """Errors raised inside count sentences from the first of all pieces, not of this one."""
    try:
        yield
    except InputError as error:
        if error.sentence is None:
            raise
        raise error.at(sentence=before + error.sentence) from None


def _look(model: SequenceEstimator, source: Source) -> None:
    """Find the labels and what else must be known before anything is encoded."""
    labels: set[str] = set()
    counts: list[Counter[str]] = []
    first: tuple[Any, Any] | None = None
    facts: dict[str, Any] = {}
    for data, answers in _read(model, source):
        labels.update(model._labels(data, answers))
        if model.class_weight == BALANCED:
            more = model._counts(data, answers)
            counts = [a + b for a, b in zip(counts, more, strict=True)] if counts else more
        found = model._facts(data, answers)
        if first is None:
            first, facts = (data, answers), found
        model.facts_ = facts
        facts = model._wider(found)
    if first is None:
        raise BadData("found no sentence to learn from, expected at least one")
    model._begin(first[0], sorted(labels), first[1])
    model.facts_ = facts
    made = model.encoder_
    model.encoder_ = model._encoder(made.templates, made.names, made.labels, made.width)
    model.class_weight_ = weighed(model.class_weight, made.labels, counts)


def _mapped(path: Path, kind: Any) -> Array:
    """The array of a file; what is not used need not be in memory."""
    if not path.stat().st_size:
        return np.zeros(0, kind)
    # Not "r": compiled code takes arrays that may be written to; nothing ever is.
    return np.asarray(np.memmap(path, kind, mode="c"))
