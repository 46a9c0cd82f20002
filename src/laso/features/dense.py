"""Dense vectors of items, beside their sparse features: where they come from, and their scale.

An encoder computes them, or they are given with each input (``with_vectors``). Each dimension is
standardised by its mean and deviation in the training data, then multiplied by one scale, which
says how fast the weights of vectors are learned beside those of sparse features.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from laso.engine.layout import NO_VECTORS, Array
from laso.errors import BadData, BadFeature, BadModel

SCALE = 0.1
SCALES = (0.05, 0.1, 0.2, 0.4)  # to choose from on held-out data
LARGEST = 100.0  # scale
BESIDE = ".encoder"  # behind the name of a model file: the encoder that has learned with it
BUILT_IN = re.compile("minilm(:[1-6])?")  # names of encoders that model files may have
SMALLEST = 1e-6  # deviation of a dimension that varies

Progress = Callable[[int, int], object]
Vectors = list[Array]
"""A matrix for each input, with a row for each of its items."""


# --------------------------------------------------------------------------- inputs with vectors


class _List(list[Any]):
    vectors: Array


class _Tuple(tuple[Any, ...]):
    vectors: Array


class _Text(str):
    vectors: Array


_CARRIERS: dict[type, Any] = {list: _List, tuple: _Tuple, str: _Text}


def with_vectors(x: Any, vectors: Any) -> Any:
    """Return an input with a dense vector for each of its items, for all methods that take inputs.

    Parameters
    ----------
    x : list, tuple or str
        An input, such as the tokens of a sentence. An object of a class of your own may simply have
        an attribute ``vectors``.
    vectors : array of shape (n_items, n_dimensions)
        A row for each item.

    Examples
    --------
    >>> import numpy as np
    >>> from laso import Tagger, with_vectors
    >>> X = [with_vectors(["a", "dog"], np.eye(2)), with_vectors(["the", "cat"], np.eye(2))]
    >>> y = [["DET", "NOUN"], ["DET", "NOUN"]]
    >>> tagger = Tagger(epochs=3).fit(X, y)
    >>> tagger.predict([with_vectors(["this", "zebra"], np.eye(2))])
    [['DET', 'NOUN']]
    """
    for kind, carrier in _CARRIERS.items():
        if isinstance(x, kind):
            carried = carrier(x)
            carried.vectors = np.asarray(vectors)
            return carried
    found = type(x).__name__
    raise TypeError(f"found an input of type {found}, expected a list, a tuple or a string")


def given_vectors(inputs: Any) -> Vectors | None:
    """Return the vectors that inputs have of their own; None if they have none."""
    if not isinstance(inputs, Iterable) or isinstance(inputs, (str, bytes)):
        return None
    vectors = [getattr(x, "vectors", None) for x in inputs]
    missing = [i for i, each in enumerate(vectors) if each is None]
    if len(missing) == len(vectors):
        return None
    if missing:
        raise BadData("found no vectors, expected them as with others", sentence=missing[0] + 1)
    return [np.asarray(each) for each in vectors]


def joined(vectors: Vectors, lengths: Array) -> Array:
    """Return the vectors of all items as one matrix; inputs have these numbers of items."""
    matrices = [np.asarray(each) for each in vectors]
    if len(matrices) != len(lengths):
        raise BadData(f"found vectors for {len(matrices)} inputs, expected {len(lengths)}")
    size = next((each.shape[1] for each in matrices if each.ndim == 2 and len(each)), 0)
    for i, (matrix, n) in enumerate(zip(matrices, lengths.tolist(), strict=True), start=1):
        if n == 0 and matrix.size == 0:
            continue
        if matrix.shape != (n, size) or matrix.dtype.kind not in "fiu" or not size:
            found = f"vectors of shape {matrix.shape} and type {matrix.dtype}"
            expected = f"numbers of shape {(n, size or 'any')}, a row for each item"
            raise BadData(f"found {found}, expected {expected}", sentence=i)
        if not np.isfinite(matrix).all():
            raise BadFeature(
                "found a vector with a number that is not finite, expected none", sentence=i
            )
    parts = [np.asarray(each, np.float32) for each in matrices if len(each)]
    return np.concatenate(parts) if parts else np.zeros((0, size), np.float32)


# --------------------------------------------------------------------------- what a model keeps


class Dense:
    """The dense vectors of a model: the encoder, and what standardises its vectors.

    ``size`` is the number of dimensions; 0: the model was trained without vectors; None: it is not
    trained yet.
    """

    def __init__(self, encoder: Any = None, *, scale: float | None = None) -> None:
        self.encoder = encoder  # or its name, until it is needed
        self.name = _name_of(encoder)
        self.scale = SCALE if scale is None else float(scale)
        self.size: int | None = None
        self.mean = self.deviation = np.zeros(0, np.float32)
        self._fingerprint = ""

    def expect(self, name: str, fingerprint: str) -> None:
        """Refuse vectors of any other encoder than the one that a model was trained with."""
        if self.encoder is not None and not _is_name(self.encoder):
            _check_fingerprint(self.encoder, name, fingerprint)
        self.name, self._fingerprint = name, fingerprint

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the encoder as it is now; of one that is not loaded, the file's."""
        return str(getattr(self.encoder, "fingerprint", self._fingerprint))

    def resolved(self) -> Any:
        """Return the encoder; a built-in one of a model file is loaded when it is first needed."""
        if _is_name(self.encoder):
            encoder = encoder_of(self.encoder)
            _check_fingerprint(encoder, self.name, self.fingerprint)
            self.encoder = encoder
        return self.encoder

    def __deepcopy__(self, memo: dict[int, Any]) -> Dense:
        """Return a copy that has the same encoder."""
        return copy(self)

    @property
    def learns(self) -> bool:
        """Whether the encoder learns with the weights."""
        return callable(getattr(self.encoder, "learn", None))

    @contextmanager
    def training(self) -> Iterator[None]:
        """Tell the encoder that it learns inside the block, if it wants to know."""
        train = getattr(self.encoder, "train", lambda mode: None)
        train(True)
        try:
            yield
        finally:
            train(False)

    def save(self, path: str, *, training: bool) -> None:
        """Save an encoder that learns, if it can be saved."""
        if self.learns and hasattr(self.encoder, "save"):
            self.encoder.save(path, training=training)

    def of_words(self, sentences: Sequence[Sequence[str]], lengths: Array) -> Array:
        """Return the standardised vectors of sentences of these lengths."""
        return self.of_inputs(None, lambda: sentences, lengths, learning=False)

    def learn(self, sentences: Sequence[Sequence[str]], moves: Array) -> None:
        """Let the encoder learn, given where the standardised vectors of all items should move."""
        gradients = moves * (np.float32(self.scale) / self.deviation)
        ends = np.cumsum([len(sentence) for sentence in sentences])
        self.encoder.learn(sentences, np.split(gradients, ends[:-1]))

    def of_inputs(
        self,
        given: Vectors | None,
        words: Callable[[], Sequence[Sequence[str]]],
        lengths: Array,
        *,
        learning: bool,
    ) -> Array:
        """Return the standardised vectors of all items, given those of the inputs or their words.

        ``learning`` for the first time chooses what standardises them.
        """
        raw = None
        if given is not None:
            raw = joined(given, lengths)
        elif self.encoder is not None and self.size != 0:
            raw = joined(encoded(self.resolved(), words()), lengths)
        if self.size is None and learning:
            self._learn(raw)
        if raw is None and self.size and lengths.sum():
            hint = f", or encoder= beside the model: that of {self.name}" if self.name else ""
            raise BadData(
                f"found inputs without vectors, expected vectors of {self.size} dimensions, as in "
                f"training{hint}"
            )
        if raw is None or not len(raw):
            return np.zeros((0, self.size or 0), np.float32) if self.size else NO_VECTORS
        if raw.shape[1] != self.size:
            kind = f"vectors of {self.size} dimensions" if self.size else "inputs without vectors"
            raise BadData(
                f"found vectors of {raw.shape[1]} dimensions, expected {kind}, as in training"
            )
        raw -= self.mean
        raw *= np.float32(self.scale) / self.deviation
        return raw

    def _learn(self, raw: Array | None) -> None:
        """Choose what standardises vectors like these."""
        self.size = 0 if raw is None else raw.shape[1]
        if raw is not None and len(raw):
            self.mean = raw.mean(axis=0, dtype=np.float64).astype(np.float32)
            deviation = raw.std(axis=0, dtype=np.float64)
            varies = deviation > SMALLEST
            self.deviation = np.where(varies, deviation, 1.0).astype(np.float32)


_shown: Progress | None = None


@contextmanager
def on_encode(show: Progress) -> Iterator[None]:
    """Call a function with numbers of words, done and of all, while sentences are encoded."""
    global _shown
    before, _shown = _shown, show
    try:
        yield
    finally:
        _shown = before


def encoded(encoder: Any, sentences: Sequence[Sequence[str]]) -> Vectors:
    """Return the vectors that an encoder gives for sentences, and show how far it has come."""
    from laso.encoders import base

    return base.encoded(encoder, sentences, _shown)


def encoder_of(encoder: Any, threads: int | None = None) -> Any:
    """Return the encoder that a parameter stands for: an object with ``encode``, or a name."""
    if _is_name(encoder):
        from laso.encoders import load_encoder

        return load_encoder(encoder, threads=threads)
    return encoder


def is_encoder(value: Any) -> bool:
    """Return whether the parameter ``encoder`` may have this value."""
    if isinstance(value, type):
        return False
    return value is None or _is_name(value) or callable(getattr(value, "encode", None))


def is_built_in(encoder: Any) -> bool:
    """Return whether this is the name of a built-in encoder, which files may have."""
    return isinstance(encoder, str) and BUILT_IN.fullmatch(encoder) is not None


def is_scale(value: Any) -> bool:
    """Return whether the parameter ``vector_scale`` may have this value."""
    return value is None or (
        isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= LARGEST
    )


def _is_name(encoder: Any) -> bool:
    return isinstance(encoder, (str, os.PathLike))


def _name_of(encoder: Any) -> str:
    """Return the name that a model file has for an encoder; no path, since no file names one."""
    if encoder is None:
        return ""
    if _is_name(encoder):
        return encoder if is_built_in(encoder) else ""
    from laso.encoders import base

    return base.name_of(encoder)


def _check_fingerprint(encoder: Any, name: str, expected: str) -> None:
    from laso.encoders import base

    found = base.fingerprint_of(encoder)
    if expected and found and found != expected:
        raise BadModel(
            f"found the encoder {_name_of(encoder)} with the fingerprint {found[:12]}, expected "
            f"{expected[:12]}, that of {name}, whose vectors the model was trained with"
        )
