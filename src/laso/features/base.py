"""Base features: functions of one column value, computed once for each distinct value.

A base feature maps a string to a string. In a template it follows its column after a dot, as in
``w.lower[0]``, and base features can be chained, as in ``w.lower.suffix3[0]``. Stems, clusters and
word lists (``stem``, ``cluster6``, ``list("names")`` ...) are in lists.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from laso.errors import quoted
from laso.features import lists
from laso.features.patterns import compiled_search

Base = Callable[[str], str]

LONGEST_AFFIX = 9


class _Characters(dict[int, str]):
    """A table for ``str.translate`` that computes each entry when it is first needed."""

    def __init__(self, of: Callable[[str], str]):
        self._of = of

    def __missing__(self, code: int) -> str:
        self[code] = self._of(chr(code))
        return self[code]


def _case(character: str) -> str:
    if character.isdigit():
        return "0"
    if character.isupper() or character.istitle():
        return "X"
    if character.islower():
        return "x"
    return "a" if character.isalpha() else character


_CASES = _Characters(_case)
_DIGITS = _Characters(lambda character: "0" if character.isdigit() else character)
_RUNS = re.compile(r"(.)\1+", re.DOTALL)
_BETWEEN = "\0"  # no letter and no digit, so that base features by character leave it as it is
_RUNS_BETWEEN = re.compile(rf"([^{_BETWEEN}])\1+", re.DOTALL)


def shape(value: str) -> str:
    """Return the case pattern: ``McCoy-7`` is ``XxXxx-0``; letters without case are ``a``."""
    return value.translate(_CASES)


def short_shape(value: str) -> str:
    """Return the case pattern with repeated characters merged: ``McCoy-77`` is ``XxXx-0``."""
    return _RUNS.sub(r"\1", shape(value))


def digits(value: str) -> str:
    """Replace every digit by 0: ``1,234`` is ``0,000``."""
    return value.translate(_DIGITS)


def _flag(test: Callable[[str], bool]) -> Base:
    return lambda value: "1" if test(value) else "0"


PLAIN: dict[str, Base] = {
    "lower": str.lower,
    "shape": shape,
    "shortshape": short_shape,
    "digits": digits,
    "length": lambda value: str(len(value)),
    "isupper": _flag(str.isupper),
    "islower": _flag(str.islower),
    "istitle": _flag(str.istitle),
    "isdigit": _flag(str.isdigit),
    "isalpha": _flag(str.isalpha),
    "isalnum": _flag(str.isalnum),
    "hasupper": _flag(lambda value: any(map(str.isupper, value))),
    "hasdigit": _flag(lambda value: any(map(str.isdigit, value))),
    "hashyphen": _flag(lambda value: "-" in value),
}
# Functions that return base features: packages or files are read on first use.
LISTED: dict[str, Callable[[], Base]] = {
    "stem": lists.stemmer,
    "ending": lambda: _ending(lists.stemmer()),
    "lexicon": lists.lexicon,
}
AFFIX = re.compile(f"(prefix|suffix)([1-{LONGEST_AFFIX}])")
CLUSTER = re.compile(r"cluster([1-9]|1\d|20)")
WITH_PATTERN = ("test", "match")
WITH_ARGUMENT = (*WITH_PATTERN, "list")

EXPECTED = (
    f"one of {', '.join((*PLAIN, *LISTED))}, prefix1 to prefix{LONGEST_AFFIX}, "
    f"suffix1 to suffix{LONGEST_AFFIX}, cluster1 to cluster20, "
    'test("..."), match("...") or list("...")'
)


def _ending(stem: Base) -> Base:
    """Return a base feature for the ending, the part of a word after its stem: s of runs."""

    def ending(value: str) -> str:
        same = 0
        for a, b in zip(value.lower(), stem(value), strict=False):
            if a != b:
                break
            same += 1
        return value[same:]

    return ending


def is_base(name: str) -> bool:
    """Return whether a base feature without an argument has this name."""
    listed = name in PLAIN or name in LISTED
    return listed or any(kind.fullmatch(name) for kind in (AFFIX, CLUSTER))


@cache
def base_function(name: str) -> Base:
    """Return the function of a base feature, named as in templates, such as ``suffix3``."""
    if name in PLAIN:
        return PLAIN[name]
    affix = AFFIX.fullmatch(name)
    if affix:
        n = int(affix[2])
        return (lambda value: value[:n]) if affix[1] == "prefix" else (lambda value: value[-n:])
    cluster = CLUSTER.fullmatch(name)
    if cluster:
        return lists.cluster(int(cluster[1]))
    if name in LISTED:
        return LISTED[name]()
    for kind in WITH_ARGUMENT:
        if name.startswith(kind + '("') and name.endswith('")'):
            return _with_argument(kind, name[len(kind) + 2 : -2])
    raise ValueError(f"found the base feature {quoted(name)}, expected {EXPECTED}")


def _with_argument(kind: str, text: str) -> Base:
    if kind == "list":
        return _flag(lists.membership(text))
    search = compiled_search(text)
    if kind == "test":
        return _flag(lambda value: search(value) is not None)

    def matched(value: str) -> str:
        span = search(value)
        return value[span[0] : span[1]] if span else ""

    return matched


def _affixes(affix: re.Match[str], values: Sequence[str]) -> list[str]:
    """Return the prefixes or suffixes of all values, without a call for each."""
    n = int(affix[2])
    if affix[1] == "prefix":
        return [value[:n] for value in values]
    return [value[-n:] for value in values]


# Base features by character, of many values as one text: a call for each takes ten times as long.
TOGETHER: dict[str, Base] = {
    "shape": shape,
    "shortshape": lambda text: _RUNS_BETWEEN.sub(r"\1", shape(text)),
    "digits": digits,
}


def _mapped(name: str, function: Base, values: Sequence[str]) -> list[str]:
    """Return the base feature of all values, given its name and its function of one value."""
    affix = AFFIX.fullmatch(name)
    if affix:
        return _affixes(affix, values)
    text = _BETWEEN.join(values) if name in TOGETHER else ""
    if text and text.count(_BETWEEN) == len(values) - 1:
        return TOGETHER[name](text).split(_BETWEEN)
    return list(map(function, values))


WordLists = Mapping[str, frozenset[str]]
"""The words of lists that have no name of their own, by the paths of their files."""


def apply_bases(
    bases: Sequence[str], values: Sequence[str], words: WordLists | None = None
) -> Sequence[str]:
    """Apply base features to all values, one after another.

    With ``words`` no file is read: the lists are these.
    """
    for name in bases:
        path = None if words is None else list_path(name)
        if words is None or path is None:
            function = base_function(name)
        else:
            function = _flag(words[path].__contains__)
        values = _mapped(name, function, values)
    return values


def list_path(name: str) -> str | None:
    """Return the path of the file whose words a base feature looks up; None: it reads no file."""
    if not (name.startswith('list("') and name.endswith('")')):
        return None
    path = name[len('list("') : -len('")')]
    return None if path in lists.NAMED else path
