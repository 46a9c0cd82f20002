"""Sentences of any kind as columns or lists of features: what users hand in.

A sentence is a list of tokens, and a token is one of

    a string                             one column, the word
    a tuple of strings                   several columns
    a dict, or a list or set of strings  features of its own, as python-crfsuite takes them
    a row of a matrix                    the sentence is a 2-D array or a SciPy sparse matrix

Nothing is done for each token in Python: look-ups run in ``map``, everything else in NumPy.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from numbers import Real
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from laso.data.columns import read_columns
from laso.data.lines import BOM
from laso.engine.layout import Array
from laso.errors import BadData, BadFeature

# --------------------------------------------------------------------------- keys of strings

_K1, _K2 = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)
_S1, _S2 = np.uint64(32), np.uint64(29)
_TAILS = np.array([(1 << 8 * n) - 1 for n in range(9)], np.uint64)


def mixed(a: Array, b: Array) -> Array:
    """``laso.engine.hashing.mix`` of arrays of uint64."""
    z = a ^ (b * _K1)
    z = (z ^ (z >> _S1)) * _K2
    return np.asarray(z ^ (z >> _S2))


def string_keys(strings: Sequence[str]) -> Array:
    """A 64-bit key for each string: its length and its UTF-8 bytes, eight at a time, mixed."""
    encoded = list(map(str.encode, strings, repeat("utf-8"), repeat("surrogatepass")))
    lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
    buffer = b"".join(encoded) + bytes(8)
    words = np.ndarray((len(buffer) - 7,), "<u8", buffer, strides=(1,))
    starts = np.cumsum(lengths) - lengths
    keys = mixed(np.zeros(len(encoded), np.uint64), lengths.astype(np.uint64))
    left = np.flatnonzero(lengths > 0)
    at = 0
    while len(left):
        tails = _TAILS[np.minimum(lengths[left] - at, 8)]
        keys[left] = mixed(keys[left], words[starts[left] + at].astype(np.uint64) & tails)
        at += 8
        left = left[lengths[left] > at]
    return keys.view(np.int64)


# --------------------------------------------------------------------------- what users hand in


@dataclass(frozen=True)
class Factor:
    """A column as the numbers of its distinct values."""

    codes: Array  # int32
    values: list[str]


Column: TypeAlias = Sequence[Any] | Factor


@dataclass(frozen=True)
class Columns:
    """Sentences whose tokens have columns."""

    lengths: Array
    columns: list[Column]

    def split(self) -> tuple[Columns, Column]:
        """The columns without the last, and the last."""
        return Columns(self.lengths, self.columns[:-1]), self.columns[-1]


@dataclass(frozen=True)
class Features:
    """Sentences whose tokens have features of their own."""

    lengths: Array
    counts: Array  # features of each token
    keys: Array  # int64
    values: Array | None  # float32; None if all are 1
    width: int = -1  # of a matrix
    names: Sequence[str] = ()  # the distinct features, unless they are columns of a matrix


Data: TypeAlias = Columns | Features


def read_input(X: Any) -> Data:
    """Look at what the user handed in: a path to a column file, or sentences."""
    if isinstance(X, (str, os.PathLike)):
        return read_column_file(X)
    sentences = X if isinstance(X, list) else _listed(X)
    first = next((s for s in sentences if _length(s)), None)
    if _is_matrix(first):
        return _from_matrices(sentences)
    if str in map(type, sentences):
        first = next(s for s in sentences if isinstance(s, str))
        raise BadData(f"found the sentence {short(first)}, expected a list of tokens")
    sentences = [s.tolist() if isinstance(s, np.ndarray) else s for s in sentences]
    lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    tokens = list(chain.from_iterable(sentences))
    kind = _kind_of(tokens, lengths)
    if kind is str:
        return Columns(lengths, [tokens])
    if kind is tuple:
        return _from_tuples(tokens, lengths)
    if kind is dict:
        return _from_dicts(tokens, lengths)
    if kind is list:
        return _from_lists(tokens, lengths)
    return Columns(lengths, [])


def _listed(X: Any) -> list[Any]:
    if X is None or isinstance(X, (bytes, Mapping)) or not isinstance(X, Iterable):
        raise BadData(f"found {short(X)} for X, expected a list of sentences or a file's path")
    return list(X)


def _length(sentence: Any) -> int:
    if hasattr(sentence, "shape") and sentence.shape:
        return int(sentence.shape[0])
    try:
        return len(sentence)
    except TypeError:
        raise BadData(f"found the sentence {short(sentence)}, expected a list of tokens") from None


def _is_matrix(sentence: Any) -> bool:
    if hasattr(sentence, "tocsr"):
        return True
    return isinstance(sentence, np.ndarray) and sentence.ndim == 2 and sentence.dtype.kind in "biuf"


def _kind_of(tokens: list[Any], lengths: Array) -> type | None:
    """str, tuple, dict or list (of feature strings): what all tokens are."""
    families: dict[type, type] = {str: str, tuple: tuple, dict: dict, list: list}
    families |= {set: list, frozenset: list}
    kinds = set(map(type, tokens))
    found = {
        kind: next((f for t, f in families.items() if issubclass(kind, t)), None) for kind in kinds
    }
    if not found:
        return None
    wanted = found[type(tokens[0])]
    if wanted is None or set(found.values()) != {wanted}:
        i = next(
            i for i, t in enumerate(tokens) if found[type(t)] is None or found[type(t)] != wanted
        )
        expected = (
            "a string, a tuple, a dict or a list" if wanted is None else f"a {wanted.__name__}"
        )
        raise BadData(
            f"{place(lengths, i)}: found the token {short(tokens[i])}, expected {expected}"
            + ("" if wanted is None else " like the first token")
        )
    return wanted


def place(lengths: Array, token: int) -> str:
    """Where a token is, for an error: sentences and tokens are counted from 1."""
    ends = np.cumsum(lengths)
    sentence = int(np.searchsorted(ends, token, side="right"))
    return f"sentence {sentence + 1}, token {token - int(ends[sentence] - lengths[sentence]) + 1}"


def short(value: Any) -> str:
    """A value as an error shows it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _from_tuples(tokens: list[tuple[Any, ...]], lengths: Array) -> Columns:
    try:
        codes, distinct = numbered(tokens)
    except TypeError:  # not all can be told apart, so something else than strings is in a column
        codes, distinct = np.arange(len(tokens), dtype=np.int32), tokens
    width = len(tokens[0])
    if set(map(len, distinct)) != {width} or not width:
        i = next(i for i, token in enumerate(tokens) if len(token) != width or not width)
        raise BadData(
            f"{place(lengths, i)}: found {len(tokens[i])} columns, expected "
            + (f"{width} as in the first token" if width else "at least 1")
        )
    columns: list[Column] = []
    for j in range(width):
        values = list(map(itemgetter(j), distinct))
        if set(map(type, values)) == {str}:
            numbers, names = numbered(values)
            columns.append(Factor(numbers[codes], names))
        else:
            columns.append(list(map(itemgetter(j), tokens)))
    return Columns(lengths, columns)


def numbered(values: Sequence[Any]) -> tuple[Array, list[Any]]:
    """Numbers for values, and the distinct ones in the order of their numbers."""
    number: defaultdict[Any, int] = defaultdict(count().__next__)
    codes = np.fromiter(map(number.__getitem__, values), np.int32, len(values))
    return codes, list(number)


def _from_lists(tokens: list[Any], lengths: Array) -> Features:
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    names = list(chain.from_iterable(tokens))
    bad = {kind for kind in set(map(type, names)) if not issubclass(kind, str)}
    if bad:
        i = next(i for i, name in enumerate(names) if type(name) in bad)
        token = int(np.searchsorted(np.cumsum(counts), i, side="right"))
        raise BadData(
            f"{place(lengths, token)}: found the feature {short(names[i])}, expected a string "
            "(columns are given as a tuple)"
        )
    return Features(lengths, counts, _keys_of(names), None, names=list(dict.fromkeys(names)))


def _keys_of(names: list[str]) -> Array:
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    codes = np.fromiter(map(number.__getitem__, names), np.int64, len(names))
    return np.asarray(string_keys(list(number))[codes])


def _from_dicts(tokens: list[dict[str, Any]], lengths: Array) -> Features:
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    pairs = list(chain.from_iterable(map(dict.items, tokens)))
    try:
        number = {pair: i for i, pair in enumerate(dict.fromkeys(pairs))}
    except TypeError:  # a list or dict as value
        number = {}
    flat = [_one_feature(*pair) for pair in number]
    if pairs and (not number or None in flat):
        return _from_nested(tokens, lengths)
    codes = np.fromiter(map(number.__getitem__, pairs), np.int64, len(pairs))
    names = [feature[0] for feature in flat if feature]
    weights = np.array([feature[1] for feature in flat if feature], np.float32)
    data = _weighted(lengths, counts, _keys_of(names)[codes], weights[codes])
    return replace(data, names=list(dict.fromkeys(names)))


def _one_feature(name: Any, value: Any) -> tuple[str, float] | None:
    """The feature of a pair, None if it is nested or wrong."""
    if not isinstance(name, str):
        return None
    if isinstance(value, str):
        return f"{name}:{value}", 1.0
    if isinstance(value, (Real, np.bool_)):
        weight = float(value)
        return (name, weight) if np.isfinite(weight) else None
    return None


def _from_nested(tokens: list[dict[str, Any]], lengths: Array) -> Features:
    """Feature by feature, with nested values and precise errors."""
    names: list[str] = []
    weights: list[float] = []
    counts = []
    for i, token in enumerate(tokens):
        before = len(names)
        for name, weight in _nested(token, "", lengths, i):
            names.append(name)
            weights.append(weight)
        counts.append(len(names) - before)
    values = np.array(weights, np.float32)
    data = _weighted(lengths, np.array(counts, np.int64), _keys_of(names), values)
    return replace(data, names=list(dict.fromkeys(names)))


def _nested(value: Any, prefix: str, lengths: Array, i: int) -> Iterable[tuple[str, float]]:
    if isinstance(value, Mapping):
        items: Iterable[tuple[Any, Any]] = value.items()
    else:
        items = ((name, True) for name in value)
    for name, inner in items:
        if not isinstance(name, str):
            raise BadData(
                f"{place(lengths, i)}: found the feature name {short(name)}, expected a string"
            )
        if isinstance(inner, (Mapping, list, tuple, set, frozenset)):
            yield from _nested(inner, f"{prefix}{name}:", lengths, i)
            continue
        feature = _one_feature(prefix + name, inner)
        if feature is None:
            what = f"{place(lengths, i)}: found {short(inner)} for the feature {prefix + name!r}"
            if isinstance(inner, Real):
                raise BadFeature(f"{what}, expected a finite number")
            raise BadData(f"{what}, expected a string, bool or number, or a list or dict of them")
        yield feature


def _weighted(lengths: Array, counts: Array, keys: Array, weights: Array) -> Features:
    """Features with weights; those of weight 0 are left out."""
    kept = weights != 0
    if not kept.all():
        before = np.concatenate([[0], np.cumsum(kept)])
        ends = np.cumsum(counts)
        counts = before[ends] - before[ends - counts]
        keys, weights = keys[kept], weights[kept]
    return Features(lengths, counts, keys, None if (weights == 1).all() else weights)


def _from_matrices(sentences: list[Any]) -> Features:
    lengths = np.array([_length(s) for s in sentences], np.int64)
    width = max(s.shape[1] for s in sentences if hasattr(s, "shape") and len(s.shape) == 2)
    counts, columns, values = [], [], []
    for number, sentence in enumerate(sentences, start=1):
        if not _length(sentence):
            continue
        if not _is_matrix(sentence) or sentence.shape[1] != width:
            found = f"{sentence.shape[1]} columns" if _is_matrix(sentence) else short(sentence)
            raise BadData(f"sentence {number}: found {found}, expected a matrix of {width} columns")
        if hasattr(sentence, "tocsr"):
            rows = sentence.tocsr()
            counts.append(np.diff(rows.indptr))
            columns.append(rows.indices)
            values.append(rows.data)
        else:
            of_row, of_column = np.nonzero(sentence)
            counts.append(np.bincount(of_row, minlength=len(sentence)))
            columns.append(of_column)
            values.append(sentence[of_row, of_column])
        if not np.isfinite(values[-1]).all():
            raise BadFeature(f"sentence {number}: found NaN or infinity, expected finite numbers")
    numbers = np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.uint64)
    base = string_keys(["matrix"]).view(np.uint64)
    data = _weighted(
        lengths,
        np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.int64),
        mixed(np.repeat(base, len(numbers)), numbers).view(np.int64),
        np.concatenate([np.zeros(0, np.float32), *values]).astype(np.float32),
    )
    return Features(data.lengths, data.counts, data.keys, data.values, width)


def labels_of(y: Any, lengths: Array) -> Sequence[Any]:
    """The labels of all tokens, end to end; each sentence must have as many as tokens."""
    sentences = y if isinstance(y, list) else _listed(y)
    if len(sentences) != len(lengths):
        raise BadData(f"found labels for {len(sentences)} sentences, expected {len(lengths)}")
    sentences = [s.tolist() if isinstance(s, np.ndarray) else s for s in sentences]
    for number, (sentence, n) in enumerate(zip(sentences, lengths.tolist(), strict=True), start=1):
        if isinstance(sentence, str) or len(sentence) != n:
            found = short(sentence) if isinstance(sentence, str) else f"{len(sentence)} labels"
            raise BadData(f"sentence {number}: found {found}, expected {n} labels, one a token")
    return list(chain.from_iterable(sentences))


# --------------------------------------------------------------------------- column files

PIECE = 1 << 18  # bytes of a file to cut into tokens at a time


def read_column_file(path: str | os.PathLike[str]) -> Columns:
    """A column file straight to numbers; whatever is unusual is read by ``read_columns``."""
    columns = _plain_columns(Path(path).read_bytes())
    if columns is not None:
        return columns
    data = read_input(read_columns(path))
    assert isinstance(data, Columns)
    return data


def _plain_columns(data: bytes) -> Columns | None:
    """The columns of a plain file: single blanks, the same columns everywhere, valid UTF-8."""
    if any(mark in data for mark in (b"\r", b"\v", b"\f")) or data.startswith(BOM.encode()):
        return None
    try:
        if not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError:
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    new_line = text == 10
    blank = (text == 32) | (text == 9)
    apart = blank | new_line
    if blank[0] or (blank[1:] & apart[:-1]).any() or (blank[:-1] & apart[1:]).any():
        return None
    ends = np.flatnonzero(new_line)
    starts = np.concatenate([[0], ends[:-1] + 1])
    empty = ends == starts
    begins, ends = starts[~empty], ends[~empty]
    blanks = np.flatnonzero(blank)
    n = len(ends)
    if not n or len(blanks) % n:
        return None
    width = len(blanks) // n + 1
    between = blanks.reshape(n, width - 1)
    if width > 1 and not ((between[:, 0] > begins) & (between[:, -1] < ends)).all():
        return None
    sentence = np.cumsum(empty)[~empty]
    firsts = np.flatnonzero(np.diff(sentence, prepend=-1))
    lengths = np.diff(firsts, append=n)
    return Columns(lengths, _factors(data, width))


def _factors(data: bytes, width: int) -> list[Column]:
    """The columns of a plain file, read in pieces: few of its tokens are strings at a time."""
    numbers: list[dict[bytes, int]] = [{} for _ in range(width)]
    codes: list[list[Array]] = [[] for _ in range(width)]
    first = 0
    while first < len(data):
        end = data.index(b"\n", min(first + PIECE, len(data) - 1)) + 1
        tokens = data[first:end].split()
        for j, number in enumerate(numbers):
            column = tokens[j::width]
            for value in dict.fromkeys(column):
                number.setdefault(value, len(number))
            codes[j].append(np.fromiter(map(number.__getitem__, column), np.int32, len(column)))
        first = end
    return [
        Factor(np.concatenate(parts), [value.decode("utf-8") for value in number])
        for parts, number in zip(codes, numbers, strict=True)
    ]
