"""Odd Python objects as input: whatever a program may hand over in place of a sentence.

Feature lists of plain strings and numbers are read by compiled code, all others by general code;
both must answer alike.
"""

from __future__ import annotations

import array
from collections import Counter, OrderedDict, UserDict
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np

from laso import CRF, LasoError, Tagger
from laso.crfsuite import ItemSequence
from laso.features import inputs

Y = [["D", "N", "V"], ["D", "N"]]
WORDS = [["the", "kettle", "boiled"], ["a", "dog"]]


class Evil(Exception):
    """The error of an object whose methods raise: it is the user's own, and passes through."""


class Text(str):
    """A subclass of str."""

    def __eq__(self, other: object) -> bool:
        raise Evil

    __hash__ = str.__hash__


class Unhashable(str):
    """A string that cannot be hashed."""

    def __hash__(self) -> int:
        raise Evil


class Table(dict[Any, Any]):
    """A subclass of dict, whose items are others than those that it has."""

    def items(self) -> Any:
        return [("other", 1.0)]


class Row(list[Any]):
    """A subclass of list with a wrong length."""

    def __len__(self) -> int:
        return 10**6


class Number(float):
    """A subclass of float."""

    def __float__(self) -> float:
        raise Evil


class Silent:
    """An object without a repr."""

    def __repr__(self) -> str:
        raise Evil


def atom(draw: Random) -> Any:
    """Return a name or a value: a string, a number, or something that is neither."""
    text = draw.choice(["w", "the", "", "a:b", "\ud800", "\x00", "x" * 70_000, "ä€😀", "w:the"])
    return draw.choice(
        [
            lambda: text,
            lambda: text,
            lambda: text,
            lambda: draw.choice([0, 1, -1, 2**31, 2**64, 10**400, -(2**31)]),
            lambda: draw.choice([0.5, -0.0, 1e-300, 1e38, 1e39, float("nan"), float("inf")]),
            lambda: draw.choice([True, False, None, ..., 1j]),
            lambda: draw.choice([b"w", bytearray(b"w"), memoryview(b"w"), array.array("b", [1])]),
            lambda: draw.choice(
                [np.str_("w"), np.float32(2), np.int64(3), np.array("w"), np.ones(2)]
            ),
            lambda: draw.choice([Decimal("1.5"), Fraction(1, 3), Number(2.0), Text("w")]),
            lambda: draw.choice([Unhashable("w"), Silent(), object(), SimpleNamespace(), len]),
            lambda: iter(["w", "v"]),
        ]
    )()


def token(draw: Random, depth: int = 0) -> Any:
    """Return a token: a string, a tuple, a dict, a list, or something odd."""
    if draw.random() < 0.1:
        return atom(draw)
    n = draw.choice([0, 1, 2, 2, 40])
    values = [value(draw, depth) for _ in range(n)]
    names = [f"f{i}" if draw.random() < 0.9 else atom(draw) for i in range(n)]
    plain = [draw.choice(["w", "the", "w:the", "\ud800"]) for _ in range(n)]
    pairs = [(a, b) for a, b in zip(names, values, strict=True) if _is_hashable(a)]
    return draw.choice(
        [
            lambda: dict(pairs),
            lambda: dict(pairs),
            lambda: {f"f{i}": draw.choice(["v", 1, 0.5, True, 0]) for i in range(n)},
            lambda: plain,
            lambda: tuple(plain[:3]),
            lambda: names,
            lambda: tuple(names),
            lambda: draw.choice(["the", "kettle", "\ud800"]),
            lambda: set(plain),
            lambda: frozenset(plain),
            lambda: draw.choice([Table, OrderedDict, UserDict, Counter])(dict(pairs[:1])),
            lambda: Row(plain),
            lambda: np.array(plain),
            lambda: (name for name in plain),
        ]
    )()


def value(draw: Random, depth: int) -> Any:
    """Return the value of a feature, sometimes nested, sometimes without an end."""
    if depth < 3 and draw.random() < 0.1:
        return token(draw, depth + 1)
    if draw.random() < 0.02:
        cycle: dict[str, Any] = {}
        cycle["a"] = cycle
        return cycle
    if draw.random() < 0.02:
        deep: Any = 1.0
        for _ in range(2000):
            deep = {"a": deep}
        return deep
    return draw.choice(["v", 1, 1.0, 0.5, True]) if draw.random() < 0.6 else atom(draw)


def sentences(draw: Random) -> Any:
    """Return sentences of tokens that are mostly of one kind, or something odd."""
    lengths = draw.choice([[3, 2], [3, 2], [1], [0], [], [50]])
    alike = draw.random() < 0.7
    again = token(draw)
    made: Any = [[again if alike else token(draw) for _ in range(n)] for n in lengths]
    if draw.random() < 0.1:
        made = draw.choice([tuple(made), iter(made), np.array(made, dtype=object), {"a": made}])
    elif draw.random() < 0.1:
        made.append(draw.choice([made, None, 5, "text", b"bytes", np.ones((2, 3)), np.ones(2)]))
    return made


def _is_hashable(name: Any) -> bool:
    try:
        hash(name)
    except (TypeError, Evil):
        return False
    return True


@cache
def models() -> tuple[Any, ...]:
    """Models of all kinds of input, to begin with."""
    attributes = [[{"w": word, "n": 2.0} for word in sentence] for sentence in WORDS]
    rows = [np.eye(3)[: len(sentence)] for sentence in WORDS]
    return (
        Tagger(epochs=1).fit(WORDS, Y),
        Tagger(epochs=1).fit(attributes, Y),
        Tagger(epochs=1).fit(rows, Y),
        CRF("ap", max_iterations=1).fit(attributes, Y),
    )


def use_objects(data: bytes, folder: Path) -> None:
    """Give odd objects to models; whoever reads them, the answer is the same."""
    errors: list[Exception] = []
    for model in models():
        one = _answer(lambda model=model: model.predict(sentences(Random(data))), errors)
        with mock.patch.object(inputs, "read_marshalled", return_value=None):
            other = _answer(lambda model=model: model.predict(sentences(Random(data))), errors)
        if one != other:
            raise AssertionError(f"{type(model).__name__}: {one[:100]} and {other[:100]}")
    for model in models()[:3:2]:
        made = Tagger(epochs=1)
        _answer(lambda made=made: made.fit(sentences(Random(data)), Y), errors)
        _answer(
            lambda model=model: [model.predict_single(x) for x in sentences(Random(data))], errors
        )
    _answer(lambda: [ItemSequence(x) for x in sentences(Random(data))], errors)
    if errors:
        raise errors[0]


def _answer(call: Any, errors: list[Exception]) -> str:
    try:
        found = call()
    except Evil:
        return "evil"
    except LasoError as error:
        errors.append(error)
        return type(error).__name__
    return repr(found.tolist() if hasattr(found, "tolist") else found)


def new_draws(data: bytes, draw: Random) -> bytes:
    """Return other bytes to draw objects with."""
    return data[:2] + draw.randbytes(6)
