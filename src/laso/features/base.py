"""Base features: functions of one column value, computed once for each distinct value.

A base feature turns a string into a string. In a template it follows its column after a dot, as in
``w.lower[0]``; several follow one another, as in ``w.lower.suffix3[0]``. Those that look a word up
in a list (``stem``, ``cluster6``, ``list("names")`` ...) are in lists.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from laso.features import lists

Base = Callable[[str], str]

LONGEST_AFFIX = 9


class _Characters(dict[int, str]):
    """What stands for each character, found once and remembered; for ``str.translate``."""

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


def shape(value: str) -> str:
    """The case pattern: ``McCoy-7`` is ``XxXxx-0``; letters without case are ``a``."""
    return value.translate(_CASES)


def short_shape(value: str) -> str:
    """The case pattern with runs made one: ``McCoy-77`` is ``XxXx-0``."""
    return _RUNS.sub(r"\1", shape(value))


def digits(value: str) -> str:
    """Every digit as 0: ``1,234`` is ``0,000``."""
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
# Made when they are asked for, since they need packages or files.
LISTED: dict[str, Callable[[], Base]] = {
    "stem": lists.stemmer,
    "ending": lambda: _ending(lists.stemmer()),
    "lexicon": lists.lexicon,
}
AFFIX = re.compile(f"(prefix|suffix)([1-{LONGEST_AFFIX}])")
CLUSTER = re.compile(r"cluster([1-9]|1\d|20)")
WITH_PATTERN = ("test", "match")
WITH_TEXT = (*WITH_PATTERN, "list")

EXPECTED = (
    f"one of {', '.join((*PLAIN, *LISTED))}, prefix1 to prefix{LONGEST_AFFIX}, "
    f"suffix1 to suffix{LONGEST_AFFIX}, cluster1 to cluster20, "
    'test("..."), match("...") or list("...")'
)


def _ending(stem: Base) -> Base:
    """What a stem leaves of its word: of ``runs`` that is ``s``."""

    def ending(value: str) -> str:
        same = 0
        for a, b in zip(value.lower(), stem(value), strict=False):
            if a != b:
                break
            same += 1
        return value[same:]

    return ending


def is_base(name: str) -> bool:
    """Is there a base feature of this name (that takes no text)?"""
    listed = name in PLAIN or name in LISTED
    return listed or any(kind.fullmatch(name) for kind in (AFFIX, CLUSTER))


@cache
def base_function(name: str) -> Base:
    """The function of a base feature as templates spell it, such as ``suffix3``."""
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
    for kind in WITH_TEXT:
        if name.startswith(kind + '("') and name.endswith('")'):
            return _with_text(kind, name[len(kind) + 2 : -2])
    raise ValueError(f"found the base feature {name!r}, expected {EXPECTED}")


def _with_text(kind: str, text: str) -> Base:
    if kind == "list":
        return _flag(lists.membership(text))
    search = re.compile(text).search
    if kind == "test":
        return _flag(lambda value: search(value) is not None)

    def matched(value: str) -> str:
        found = search(value)
        return found[0] if found else ""

    return matched


def computed(bases: Sequence[str], values: Sequence[str]) -> Sequence[str]:
    """The base features named, one after another, of all values."""
    for name in bases:
        values = list(map(base_function(name), values))
    return values
