"""Sentences whose labels nothing but dense vectors tells, and encoders of them."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from laso import with_vectors
from laso.engine.layout import Array

SIZE = 3


class Words:
    """An encoder that has a vector for each word, drawn by its letters, and learns if asked."""

    name, dimensions, fingerprint = "words", SIZE, "00ff" * 16

    def __init__(self, *, hidden: int = 0) -> None:
        self.rows: dict[str, Array] = {}
        self.calls, self.hidden = 0, hidden

    def encode(self, sentences: Sequence[Sequence[str]]) -> list[Array]:
        self.calls += len(sentences)
        return [np.array([self.row(word) for word in each], np.float32) for each in sentences]

    def row(self, word: str) -> Array:
        if word not in self.rows:
            self.rows[word] = np.random.default_rng([*word.encode()]).normal(size=SIZE)
        return self.rows[word]


class Learner(Words):
    """The same as an encoder that learns."""

    rate = 0.05

    def learn(self, sentences: Sequence[Sequence[str]], gradients: Sequence[Array]) -> None:
        for sentence, rows in zip(sentences, gradients, strict=True):
            for word, row in zip(sentence, rows, strict=True):
                self.rows[word] = self.row(word) + self.rate * row

    def state(self) -> Any:
        return deepcopy(self.rows)

    def restore(self, state: Any) -> None:
        self.rows = deepcopy(state)


def classes(n: int, length: int = 5, words: int = 40) -> tuple[list[list[str]], list[list[str]]]:
    """Sentences of words, each with a label of its own that nothing but its vector tells."""
    random = np.random.default_rng(0)
    known = {f"w{i}": "ABC"[random.integers(3)] for i in range(words)}
    X = [[f"w{i}" for i in random.integers(words, size=length)] for _ in range(n)]
    return X, [[known[word] for word in x] for x in X]


def told(X: list[list[str]], y: list[list[str]], shift: int = 0) -> list[Any]:
    """The sentences with vectors that tell the label of the word so many places before."""
    table = dict(zip("ABC", np.eye(3), strict=True))
    rows = [np.array([table[label] for label in labels]) for labels in y]
    return [with_vectors(x, np.roll(row, shift, axis=0)) for x, row in zip(X, rows, strict=True)]


def chunks(y: list[list[str]]) -> list[list[str]]:
    return [[f"B-{label}" for label in labels] for labels in y]


NO_WORDS: dict[str, Any] = {"features": ["label[-1]"], "epochs": 5}
