"""The inputs that users pass, converted to columns or feature lists.

A sentence is a list of tokens, and a token is one of

    a string                             one column, the word
    a tuple of strings                   several columns
    a dict, or a list or set of strings  a feature list, in the formats of python-crfsuite
    a row of a matrix                    the sentence is a 2-D array or a SciPy sparse matrix

``read_attributes`` reads feature lists only, in all formats of python-crfsuite: a tuple is then a
list of features, too.

No Python code runs per token: ``laso.features.feature_lists`` reads feature lists of strings and
numbers, and for the others look-ups run in ``map``, everything else in NumPy.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from numbers import Real
from typing import Any

import numpy as np

from laso.data.reading import contents
from laso.data.table import Array, Columns, Data, Features, columns_of, position
from laso.engine.text.layout import AS_DICT, AS_LIST, AS_TUPLE
from laso.errors import BadData, BadFeature, InputError, quoted
from laso.features.dense import given_vectors
from laso.features.feature_lists import read_marshalled
from laso.features.keys import mix_arrays, string_keys
from laso.features.reading import read_column_file

TOGETHER = 50  # sentences of an iterator in memory at a time
KINDS: dict[type, int] = {dict: AS_DICT, list: AS_LIST, tuple: AS_TUPLE}

# --------------------------------------------------------------------------- feature keys

LARGEST = float(np.finfo(np.float32).max)  # values are stored as 32-bit floats
DEEPEST = 50  # dicts and lists in dicts


# --------------------------------------------------------------------------- what users pass


def read_input(X: Any, *, named: bool = True) -> Data:
    """Convert what the user passed: the path of a column file, or sentences.

    Columns and feature lists are returned as they are. The names of features are kept if ``named``.
    Sentences may have dense vectors (see ``with_vectors``).
    """
    if type(X) is not list:
        if isinstance(X, (Columns, Features)):
            return X
        if isinstance(X, (str, os.PathLike)):
            return read_column_file(*contents(X))
    sentences = X if isinstance(X, list) else _listed(X)
    vectors, data = given_vectors(sentences), _read_sentences(sentences, named=named)
    return data if vectors is None else replace(data, vectors=vectors)


def _read_sentences(sentences: list[Any], *, named: bool) -> Data:
    features = _read_usual(sentences, AS_DICT | AS_LIST, named=named)
    if features is not None:
        return features
    first = next((s for i, s in enumerate(sentences, start=1) if _length(s, i)), None)
    if _is_matrix(first):
        return _complete(_from_matrices(sentences))
    tokens, lengths = _tokens(sentences)
    kind = _kind_of(tokens, lengths)
    if kind is str:
        return Columns(lengths, [tokens])
    if kind is tuple:
        return _from_tuples(tokens, lengths)
    if kind is dict:
        return _complete(_from_dicts(tokens, lengths))
    if kind is list:
        return _complete(_from_lists(tokens, lengths))
    return Columns(lengths, [])


def read_attributes(X: Any, *, named: bool = True) -> Features:
    """Convert sentences of feature lists, as python-crfsuite takes them.

    A token is a dict, or any other iterable of feature names; a sentence may be any iterable of
    tokens. The names and string values may be bytes. The names of features are kept if ``named``.
    """
    if type(X) is not list:  # each of these checks takes long for the list of a short sentence
        if isinstance(X, Features):
            return X
        if isinstance(X, (str, os.PathLike, Columns)):
            raise BadData(
                f"found {quoted(X)} for X, expected sentences whose tokens are feature lists"
            )
        if isinstance(X, Iterator):
            return _read_in_parts(X, named=named)
    sentences = X if type(X) is list else _listed(X)
    features = _read_usual(sentences, AS_DICT | AS_LIST | AS_TUPLE, named=named)
    if features is not None:
        return features
    sentences = [list(s) if isinstance(s, Iterator) else s for s in sentences]
    first = next((s for i, s in enumerate(sentences, start=1) if _length(s, i)), None)
    if _is_matrix(first):
        return _complete(_from_matrices(sentences))
    tokens, lengths = _tokens(sentences)
    kinds = set(map(type, tokens))
    wrong = {kind for kind in kinds if issubclass(kind, (str, bytes)) or not _iterates(kind)}
    if wrong or (np.ndarray in kinds and not all(map(_is_iterable, tokens))):
        i = next(i for i, t in enumerate(tokens) if type(t) in wrong or not _is_iterable(t))
        raise BadData(
            f"found the token {quoted(tokens[i])}, expected a dict or a list of features",
            **position(lengths, i),
        )
    if kinds <= {dict}:
        return _complete(_from_dicts(tokens, lengths))
    if any(issubclass(kind, Mapping) for kind in kinds):
        return _complete(_from_nested(tokens, lengths))
    return _complete(_from_lists([list(map(_as_text, token)) for token in tokens], lengths))


def _complete(data: Features) -> Features:
    """Return feature lists that compiled code may read: as many as was said before.

    A list that another thread changes meanwhile, or a class of one's own, may have another length.
    """
    if int(data.counts.sum()) != len(data.keys):
        raise _changed()
    return data


def _changed() -> BadData:
    return BadData("found another number of elements than len says, expected them to stay equal")


def _read_usual(sentences: list[Any], kinds: int, *, named: bool) -> Features | None:
    """Return feature lists of strings and numbers; None if there may be something else."""
    for sentence in sentences:
        if type(sentence) in (list, tuple) and sentence:
            if not KINDS.get(type(sentence[0]), 0) & kinds:
                return None
            break
    else:
        return None
    return read_marshalled(sentences, kinds, named=named)


def _read_in_parts(X: Iterator[Any], *, named: bool) -> Features:
    """Return what ``read_attributes`` returns; few sentences are in memory at a time."""
    lengths, counts, keys = _Growing(np.int64), _Growing(np.int64), _Growing(np.int64)
    values: _Growing | None = None
    names: dict[str, None] = {}
    widths: set[int] = set()
    while sentences := list(islice(X, TOGETHER)):
        try:
            part = read_attributes(sentences, named=named)
        except InputError as error:
            if error.sentence is None:
                raise
            raise error.at(sentence=lengths.n + error.sentence) from None
        names |= dict.fromkeys(part.names)
        widths |= {part.width} if len(part.counts) else set()
        if values is None and part.values is not None:
            values = _Growing(np.float32)
            values.append(np.ones(keys.n, np.float32))
        if values is not None:
            plain = part.values is None
            values.append(np.ones(len(part.keys), np.float32) if plain else part.values)
        for whole, more in ((lengths, part.lengths), (counts, part.counts), (keys, part.keys)):
            whole.append(more)
    if len(widths) > 1:
        raise BadData(
            "found matrices and feature lists, or other widths, expected the same for all"
        )
    reals = None if values is None else values.whole()
    width = widths.pop() if widths else -1
    return Features(lengths.whole(), counts.whole(), keys.whole(), reals, width, list(names))


class _Growing:
    """An array that grows in place, so that it is never in memory twice."""

    def __init__(self, dtype: Any) -> None:
        self.n, self.array = 0, np.empty(0, dtype)

    def append(self, part: Any) -> None:
        """Copy an array to the end."""
        end = self.n + len(part)
        if end > len(self.array):
            self.array.resize(max(end, len(self.array) * 9 // 8), refcheck=False)
        self.array[self.n : end] = part
        self.n = end

    def whole(self) -> Array:
        """Return the array, to which nothing may be added later."""
        self.array.resize(self.n, refcheck=False)
        return self.array


def token_features(token: Any) -> dict[str, float]:
    """Return the features of one token as ``read_attributes`` reads them; zeros are kept."""
    if isinstance(token, (str, bytes)) or not _is_iterable(token):
        raise BadData(f"found the token {quoted(token)}, expected a dict or a list of features")
    features: dict[str, float] = {}
    for name, value in _nested(token, "", dict):
        features[name] = features.get(name, 0.0) + value
    return features


def _iterates(kind: type) -> bool:
    return hasattr(kind, "__iter__")


def _is_iterable(token: Any) -> bool:
    """Return whether a token has elements; an array without dimensions has none."""
    return _iterates(type(token)) and getattr(token, "ndim", 1) != 0


def _as_text(name: Any) -> Any:
    """Return the text of bytes, and anything else as it is."""
    return name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name


def _tokens(sentences: list[Any]) -> tuple[list[Any], Array]:
    """Return all tokens, and the length of each sentence."""
    if {str, bytes} & set(map(type, sentences)):
        i = next(i for i, s in enumerate(sentences) if isinstance(s, (str, bytes)))
        raise _no_sentence(sentences[i], i + 1)
    sentences = [s.tolist() if isinstance(s, np.ndarray) else s for s in sentences]
    try:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    except TypeError:
        for i, sentence in enumerate(sentences, start=1):
            _length(sentence, i)
        raise
    tokens = list(chain.from_iterable(sentences))
    if len(tokens) != int(lengths.sum()):
        raise _changed()
    return tokens, lengths


def _listed(X: Any) -> list[Any]:
    if X is None or isinstance(X, (bytes, Mapping)) or not isinstance(X, Iterable):
        raise BadData(f"found {quoted(X)} for X, expected a list of sentences or a file's path")
    _refuse_frame(X)
    return list(X)


def _refuse_frame(given: Any) -> None:
    if hasattr(given, "itertuples"):
        raise BadData("found a DataFrame, expected sentences: see laso.data.from_frame")


def _length(sentence: Any, number: int) -> int:
    if hasattr(sentence, "shape") and sentence.shape:
        _refuse_frame(sentence)
        return int(sentence.shape[0])
    try:
        return len(sentence)
    except TypeError:
        raise _no_sentence(sentence, number) from None


def _no_sentence(found: Any, number: int) -> BadData:
    return BadData(
        f"found the sentence {quoted(found)}, expected a list of tokens", sentence=number
    )


def _is_matrix(sentence: Any) -> bool:
    if hasattr(sentence, "tocsr"):
        return True
    return isinstance(sentence, np.ndarray) and sentence.ndim == 2 and sentence.dtype.kind in "biuf"


def _kind_of(tokens: list[Any], lengths: Array) -> type | None:
    """Return the type that all tokens have: str, tuple, dict or list (of feature strings)."""
    families: dict[type, type] = {str: str, tuple: tuple, dict: dict, list: list}
    families |= {set: list, frozenset: list}
    of_kind = {
        kind: next((f for t, f in families.items() if issubclass(kind, t)), None)
        for kind in set(map(type, tokens))
    }
    if not of_kind:
        return None
    family = of_kind[type(tokens[0])]
    if family is None or set(of_kind.values()) != {family}:
        i = next(i for i, t in enumerate(tokens) if family is None or of_kind[type(t)] != family)
        expected = (
            "a string, a tuple, a dict or a list" if family is None else f"a {family.__name__}"
        )
        raise BadData(
            f"found the token {quoted(tokens[i])}, expected {expected}"
            + ("" if family is None else " like the first token"),
            **position(lengths, i),
        )
    return family


def _from_tuples(tokens: list[tuple[Any, ...]], lengths: Array) -> Columns:
    width = len(tokens[0])
    if set(map(len, tokens)) != {width} or not width:
        i = next(i for i, token in enumerate(tokens) if len(token) != width or not width)
        raise BadData(
            f"found {len(tokens[i])} columns, expected "
            + (f"{width} as in the first token" if width else "at least 1"),
            **position(lengths, i),
        )
    return Columns(lengths, columns_of(tokens, width))


def _from_lists(tokens: list[Any], lengths: Array) -> Features:
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    names = list(chain.from_iterable(tokens))
    bad = {kind for kind in set(map(type, names)) if not issubclass(kind, str)}
    if bad:
        i = next(i for i, name in enumerate(names) if type(name) in bad)
        token = int(np.searchsorted(np.cumsum(counts), i, side="right"))
        raise BadData(
            f"found the feature {quoted(names[i])}, expected a string (columns are given as a "
            "tuple)",
            **position(lengths, token),
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
    values = np.array([feature[1] for feature in flat if feature], np.float32)
    data = _without_zeros(lengths, counts, _keys_of(names)[codes], values[codes])
    return replace(data, names=list(dict.fromkeys(names)))


def _one_feature(name: Any, value: Any) -> tuple[str, float] | None:
    """Return the feature of a pair and its value; None if the value is nested or invalid."""
    name, value = _as_text(name), _as_text(value)
    if not isinstance(name, str):
        return None
    if isinstance(value, str):
        return name + ":" + value, 1.0
    if isinstance(value, (Real, np.bool_)):
        try:
            real = float(value)
        except OverflowError:  # an integer of hundreds of digits
            return None
        return (name, real) if abs(real) <= LARGEST else None
    return None


def _from_nested(tokens: list[Any], lengths: Array) -> Features:
    """Convert one feature at a time: nested values are allowed, and errors have positions."""
    names: list[str] = []
    reals: list[float] = []
    counts = []
    for i, token in enumerate(tokens):
        before = len(names)
        for name, real in _nested(token, "", partial(position, lengths, i)):
            names.append(name)
            reals.append(real)
        counts.append(len(names) - before)
    values = np.array(reals, np.float32)
    data = _without_zeros(lengths, np.array(counts, np.int64), _keys_of(names), values)
    return replace(data, names=list(dict.fromkeys(names)))


def _nested(
    value: Any, prefix: str, where: Callable[[], Any], depth: int = 0
) -> Iterable[tuple[str, float]]:
    """Yield the features of a token, or of a nested value; ``where`` returns its position."""
    if depth > DEEPEST:
        raise BadData(
            f"found values inside values, more than {DEEPEST} deep, expected fewer", **where()
        )
    if isinstance(value, Mapping):
        items: Iterable[tuple[Any, Any]] = value.items()
    else:
        items = ((name, True) for name in value)
    for given, inner in items:
        name = _as_text(given)
        if not isinstance(name, str):
            raise BadData(f"found the feature name {quoted(name)}, expected a string", **where())
        if isinstance(inner, (Mapping, list, tuple, Set)):
            yield from _nested(inner, f"{prefix}{name}:", where, depth + 1)
            continue
        feature = _one_feature(prefix + name, inner)
        if feature is None:
            what = f"found {quoted(inner)} for the feature {quoted(prefix + name)}, expected"
            if isinstance(inner, Real):
                raise BadFeature(f"{what} a finite number up to {LARGEST:.1e}", **where())
            raise BadData(f"{what} a string, bool or number, or a list or dict of them", **where())
        yield feature


def _without_zeros(lengths: Array, counts: Array, keys: Array, values: Array) -> Features:
    """Return features with values; features of value 0 are removed."""
    kept = values != 0
    if not kept.all():
        before = np.concatenate([[0], np.cumsum(kept)])
        ends = np.cumsum(counts)
        counts = before[ends] - before[ends - counts]
        keys, values = keys[kept], values[kept]
    return Features(lengths, counts, keys, None if (values == 1).all() else values)


def _from_matrices(sentences: list[Any]) -> Features:
    lengths = np.array([_length(s, i) for i, s in enumerate(sentences, start=1)], np.int64)
    width = max(s.shape[1] for s in sentences if hasattr(s, "shape") and len(s.shape) == 2)
    counts, columns, values = [], [], []
    for number, sentence in enumerate(sentences, start=1):
        if not lengths[number - 1]:
            continue
        if not _is_matrix(sentence) or sentence.shape[1] != width:
            found = f"{sentence.shape[1]} columns" if _is_matrix(sentence) else quoted(sentence)
            raise BadData(f"found {found}, expected a matrix of {width} columns", sentence=number)
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
        _check_values(values[-1], counts[-1], number)
    numbers = np.concatenate([np.zeros(0, np.int64), *columns]).astype(np.uint64)
    base = string_keys(["matrix"]).view(np.uint64)
    data = _without_zeros(
        lengths,
        np.concatenate([np.zeros(0, np.int64), *counts]).astype(np.int64),
        mix_arrays(np.repeat(base, len(numbers)), numbers).view(np.int64),
        np.concatenate([np.zeros(0, np.float32), *values]).astype(np.float32),
    )
    return Features(data.lengths, data.counts, data.keys, data.values, width)


def _check_values(values: Array, counts: Array, sentence: int) -> None:
    """Raise BadFeature at the first value of a matrix that is not finite as a 32-bit float."""
    if values.dtype.kind not in "biuf":
        raise BadFeature(f"found values of {values.dtype}, expected numbers", sentence=sentence)
    bad = ~(np.abs(values.astype(np.float64)) <= LARGEST)
    if bad.any():
        i = int(np.argmax(bad))
        found = "NaN or infinity" if not np.isfinite(values[i]) else quoted(values[i].item())
        token = int(np.searchsorted(np.cumsum(counts), i, side="right")) + 1
        raise BadFeature(
            f"found {found}, expected finite numbers up to {LARGEST:.1e}",
            sentence=sentence,
            token=token,
        )


def read_labels(y: Any, lengths: Array) -> Sequence[Any]:
    """Concatenate the labels of all sentences; each must have one label per token."""
    sentences = y if isinstance(y, list) else _listed(y)
    if len(sentences) != len(lengths):
        raise BadData(f"found labels for {len(sentences)} sentences, expected {len(lengths)}")
    sentences = [s.tolist() if isinstance(s, np.ndarray) else s for s in sentences]
    for number, (sentence, n) in enumerate(zip(sentences, lengths.tolist(), strict=True), start=1):
        no_list = isinstance(sentence, str) or not hasattr(sentence, "__len__")
        if no_list or len(sentence) != n:
            found = quoted(sentence) if no_list else f"{len(sentence)} labels"
            raise BadData(f"found {found}, expected {n} labels, one a token", sentence=number)
    labels = list(chain.from_iterable(sentences))
    if len(labels) != int(lengths.sum()):
        raise _changed()
    return labels
