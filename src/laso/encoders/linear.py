"""The plainest encoder that learns: one linear layer over the vectors of another encoder."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence

import numpy as np

from laso.encoders.base import (
    Array,
    Encoder,
    Progress,
    Sentence,
    dimensions_of,
    encoded,
    fingerprint_of,
    name_of,
)
from laso.errors import BadModel
from laso.files.container import read_file, write_file


class LinearEncoder:
    """A linear layer over the vectors of an encoder, learned inside the search.

    Parameters
    ----------
    encoder : Encoder
        The encoder whose vectors come in; it stays as it is.
    dimensions : int, default=None
        The number of dimensions that come out; None for as many as come in.
    rate : float, default=0.01
        The length of a step, times the gradient.
    seed : int, default=0
        The seed of the first weights: the identity, and random directions beyond it.

    Examples
    --------
    >>> import numpy as np
    >>> class Letters:
    ...     def encode(self, sentences):
    ...         return [np.array([[w == "a", w == "b"] for w in words]) for words in sentences]
    >>> encoder = LinearEncoder(Letters(), rate=0.5)
    >>> encoder.encode([["a", "b"]])[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> encoder.learn([["a"]], [np.array([[0.0, 1.0]])])
    >>> encoder.encode([["a", "b"]])[0].tolist()
    [[1.0, 0.5], [0.0, 1.0]]
    """

    def __init__(
        self,
        encoder: Encoder,
        dimensions: int | None = None,
        *,
        rate: float = 0.01,
        seed: int = 0,
    ) -> None:
        self.encoder, self.rate = encoder, rate
        width = dimensions_of(encoder)
        self.dimensions = width if dimensions is None else dimensions
        self.name = f"linear({name_of(encoder)})"
        rng = np.random.default_rng(seed)
        self.weights = rng.standard_normal((width, self.dimensions)) / np.sqrt(width)
        same = min(width, self.dimensions)
        self.weights[:, :same] = np.eye(width, same)

    @property
    def fingerprint(self) -> str:
        """A hash of the weights and of the encoder below, "" if that has none."""
        below = fingerprint_of(self.encoder)
        values = self.weights.astype("<f8").tobytes()
        return below and hashlib.sha256(below.encode() + values).hexdigest()

    def encode(
        self, sentences: Sequence[Sentence], progress: Progress | None = None
    ) -> list[Array]:
        """Return the vectors of the words of sentences."""
        below = encoded(self.encoder, sentences, progress)
        return [(vectors @ self.weights).astype(np.float32) for vectors in below]

    def learn(self, sentences: Sequence[Sentence], gradients: Sequence[Array]) -> None:
        """Take one step: of ``sum(gradients * vectors)`` by the weights, times the rate."""
        below = encoded(self.encoder, sentences)
        step = np.zeros_like(self.weights)
        for vectors, gradient in zip(below, gradients, strict=True):
            step += vectors.astype(np.float64).T @ np.asarray(gradient, np.float64)
        self.weights += self.rate * step

    def state(self) -> Array:
        """Return the weights, to ``restore`` those of the best epoch."""
        kept: Array = self.weights.copy()
        return kept

    def restore(self, state: Array) -> None:
        """Take over weights that ``state`` returned."""
        self.weights = state.copy()

    def save(self, path: str | os.PathLike[str], *, training: bool = False) -> None:
        """Write the weights, not those of the encoder below; training needs no more than these."""
        header = {"shape": list(self.weights.shape), "below": fingerprint_of(self.encoder)}
        write_file(path, header, {"weights": self.weights.ravel()})

    def load(self, path: str | os.PathLike[str]) -> LinearEncoder:
        """Read weights that were saved over the same encoder."""
        header, tensors = read_file(path)
        shape, below = header.get("shape"), fingerprint_of(self.encoder)
        weights = tensors.get("weights")
        if weights is None or shape != list(self.weights.shape) or weights.size != np.prod(shape):
            raise BadModel(
                f"found weights of shape {shape}, expected {list(self.weights.shape)}",
                file=os.fspath(path),
            )
        if header.get("below") != below:
            raise BadModel("its weights were learned over another encoder", file=os.fspath(path))
        self.weights = weights.astype(np.float64).reshape(shape)
        return self
