"""The forward pass of BERT in NumPy: the matrices by BLAS, the rest by compiled passes.

A batch is the pieces of several sequences, one after the other, without padding: the linear layers
see one matrix, and attention sees sequences of the same length together. So a batch costs what its
pieces cost. Weights are float32.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from laso.encoders import kernels

Array = np.ndarray[Any, Any]

PREFIXES = ("", "bert.", "model.", "0.auto_model.")


class Named(Protocol):
    """Arrays by name."""

    def __contains__(self, name: object, /) -> bool: ...
    def __getitem__(self, name: str, /) -> Array: ...


@dataclass(frozen=True)
class Layer:
    """The weights of one layer, made ready for rows of vectors on the left.

    Queries, keys and values are one matrix, in which the queries have the factor of attention.
    Keys need no bias, since it adds the same to all scores of a word. That of the values
    is in the bias of the output, since probabilities sum to 1.
    """

    qkv: Array
    query_bias: Array
    output: Array
    output_bias: Array
    scale1: Array
    shift1: Array
    up: Array
    up_bias: Array
    down: Array
    down_bias: Array
    scale2: Array
    shift2: Array


@dataclass(frozen=True)
class Shape:
    """The numbers of a BERT that its arrays do not say."""

    heads: int
    epsilon: float
    layers: int


class Bert:
    """The first ``shape.layers`` layers of a BERT.

    Parameters
    ----------
    tensors : mapping of str to arrays
        The weights, named as ``transformers`` does.
    shape : Shape
        The number of heads and of layers, and the epsilon of the normalisation.
    """

    def __init__(self, tensors: Named, shape: Shape) -> None:
        self.shape = shape
        prefix = next(
            (p for p in PREFIXES if f"{p}embeddings.word_embeddings.weight" in tensors), ""
        )

        def get(name: str) -> Array:
            return np.asarray(tensors[prefix + name], np.float32)

        self.of_pieces = get("embeddings.word_embeddings.weight")
        self.of_places = (
            get("embeddings.position_embeddings.weight")
            + get("embeddings.token_type_embeddings.weight")[0]
        )
        self.scale = get("embeddings.LayerNorm.weight")
        self.shift = get("embeddings.LayerNorm.bias")
        self.width = len(self.scale)
        self.layers = [self._layer(get, f"encoder.layer.{i}.") for i in range(shape.layers)]
        self.inner = max((layer.up.shape[1] for layer in self.layers), default=0)

    def _layer(self, get: Any, name: str) -> Layer:
        def matrix(part: str) -> tuple[Array, Array]:
            return np.ascontiguousarray(get(f"{name}{part}.weight").T), get(f"{name}{part}.bias")

        def norm(part: str) -> tuple[Array, Array]:
            return get(f"{name}{part}.LayerNorm.weight"), get(f"{name}{part}.LayerNorm.bias")

        (query, query_bias), (key, _), (value, value_bias) = (
            matrix(f"attention.self.{part}") for part in ("query", "key", "value")
        )
        factor = np.float32((self.width // self.shape.heads) ** -0.5)
        output, output_bias = matrix("attention.output.dense")
        return Layer(
            np.concatenate([query * factor, key, value], axis=1),
            query_bias * factor,
            output,
            output_bias + value_bias @ output,
            *norm("attention.output"),
            *matrix("intermediate.dense"),
            *matrix("output.dense"),
            *norm("output"),
        )

    @property
    def longest(self) -> int:
        """The number of places, which is the longest sequence of pieces."""
        return len(self.of_places)

    def forward(self, sequences: Sequence[Array], room: Room) -> Array:
        """Return the vectors of all pieces of sequences of piece numbers, sorted by length.

        The rows are in ``room``, until its next use.
        """
        lengths = np.array([len(each) for each in sequences])
        n = int(lengths.sum())
        pieces = np.concatenate(sequences)
        places = np.concatenate([np.arange(length) for length in lengths])
        x = room.x[:n]
        kernels.embed(x, pieces, places, self.of_pieces, self.of_places)
        kernels.normalise(x, self.scale, self.shift, self.shape.epsilon)
        runs = list(_runs(lengths))
        for layer in self.layers:
            self._attend(x, layer, runs, room)
            inner, y = room.inner[:n], room.y[:n]
            np.matmul(x, layer.up, out=inner)
            kernels.gelu(inner, layer.up_bias)
            np.matmul(inner, layer.down, out=y)
            kernels.add_normalised(
                x, y, layer.down_bias, layer.scale2, layer.shift2, self.shape.epsilon
            )
        return x

    def _attend(self, x: Array, layer: Layer, runs: list[tuple[int, int, int]], room: Room) -> None:
        n, heads = len(x), self.shape.heads
        qkv, y, context = room.qkv[:n], room.y[:n], room.context[:n]
        np.matmul(x, layer.qkv, out=qkv)
        kernels.add_bias(qkv, layer.query_bias)
        for first, count, length in runs:
            end = first + count * length
            parts = qkv[first:end].reshape(count, length, 3, heads, -1)
            query, key, value = (parts[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
            out = context[first:end].reshape(count, length, heads, -1).transpose(0, 2, 1, 3)
            scores = room.scores[: count * heads * length * length]
            scores = scores.reshape(count, heads, length, length)
            np.matmul(query, key.transpose(0, 1, 3, 2), out=scores)
            rows = scores.reshape(-1, length)
            kernels.softmax(rows, rows.view(np.int32), room.powers)
            np.matmul(scores, value, out=out)
        np.matmul(context, layer.output, out=y)
        kernels.add_normalised(
            x, y, layer.output_bias, layer.scale1, layer.shift1, self.shape.epsilon
        )


def _runs(lengths: Array) -> Iterator[tuple[int, int, int]]:
    """Yield the first row, the number and the length of sequences of one length."""
    row = first = 0
    while first < len(lengths):
        end = first + 1
        while end < len(lengths) and lengths[end] == lengths[first]:
            end += 1
        yield row, end - first, int(lengths[first])
        row += (end - first) * int(lengths[first])
        first = end


class Room:
    """The arrays in which one thread computes batches of at most ``pieces`` pieces."""

    def __init__(self, bert: Bert, pieces: int, longest: int) -> None:
        width = bert.width
        self.x, self.y, self.context = (np.empty((pieces, width), np.float32) for _ in range(3))
        self.qkv = np.empty((pieces, 3 * width), np.float32)
        self.inner = np.empty((pieces, bert.inner), np.float32)
        self.scores = np.empty(pieces * longest * bert.shape.heads, np.float32)
        self.powers = np.empty(longest, np.int32)
