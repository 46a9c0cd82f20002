"""Regular expressions in linear time, with the values that Python's ``re`` gives.

A pattern may come from a model file, and Python's ``re`` takes exponential time for patterns such
as ``(a+)+$``. So a pattern is parsed by Python, and written anew for RE2, whose time is linear in
the text: each set of characters (``\\w``, ``[^a-z]``, ``(?i)k``) becomes the list of those
characters that Python itself finds in it. What RE2 lacks (lookaround, references to groups,
``\\b``) stays with ``re`` as long as nothing in the pattern repeats without a bound, so that few
ways to match exist. All other patterns are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from typing import Any, NamedTuple

LONGEST = 1000  # characters of a pattern
LARGEST = 200_000  # characters of a pattern as RE2 has it
MEMORY = 4 << 20  # bytes that RE2 may use for a pattern
MOST_WAYS = 1000  # ways to match that re may have to try at one position
MOST_REPEATS = 1000  # of RE2
_SURROGATES = {code: code + 0x100000 for code in range(0xD800, 0xE000)}  # to a private plane
_parser: Any = re._parser  # type: ignore[attr-defined]  # the one parser of Python's syntax

Search = Callable[[str], tuple[int, int] | None]
"""A function from a text to the first match in it, as (start, end)."""


class Untranslatable(ValueError):
    """RE2 has nothing that is equal to a part of the pattern."""


@cache
def compiled_search(pattern: str, *, exists: bool = False) -> Search:
    """Return the search for a pattern; a pattern that may take too long raises ValueError.

    With ``exists`` it is enough to know whether a match exists, not where it is.
    """
    if len(pattern) > LONGEST:
        raise ValueError(f"found {len(pattern)} characters, expected at most {LONGEST}")
    try:
        re.compile(pattern)  # it finds what the parser alone does not
        return _compiled(pattern, exists)
    except (OverflowError, RecursionError) as error:
        raise ValueError(f"too large or too deeply nested ({error})") from None


def _compiled(pattern: str, exists: bool) -> Search:
    tree = _parser.parse(pattern)
    try:
        text = _sequence(tree, _Context(tree.state.flags, exists))
    except Untranslatable as error:
        if _ways(tree) > MOST_WAYS:
            raise ValueError(f"{error} beside so many repetitions takes unbounded time") from None
        return partial(_span, re.compile(pattern).search)
    return partial(_search, _linear(text))


def _span(search: Callable[[str], Any], value: str) -> tuple[int, int] | None:
    match = search(value)
    return None if match is None else match.span()


def _search(search: Callable[[str], Any], value: str) -> tuple[int, int] | None:
    try:
        match = search(value)
    except UnicodeEncodeError:  # RE2 searches UTF-8, which has no surrogates
        match = search(value.translate(_SURROGATES))
    if match is None:
        return None
    start, end = match.span()
    # Every group is a $, which has consumed the line feed that it stands before.
    groups = len(match.groups()) if end > start else 0
    return start, end - any(b > a for a, b in map(match.span, range(1, groups + 1)))


def _linear(text: str) -> Callable[[str], Any]:
    import re2

    if len(text) > LARGEST:
        raise ValueError("too large: it has too many sets of characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        search: Callable[[str], Any] = re2.compile(text, options).search
    except re2.error as error:
        reason = error.args[0] if error.args else "refused by RE2"
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"too large for RE2 ({shown[:60]})") from None
    return search


# --------------------------------------------------------------------------- translation


class _Context(NamedTuple):
    """What the translation of a part depends on."""

    flags: int
    exists: bool
    last: bool = True  # whether nothing follows the part


def _sequence(items: Any, context: _Context) -> str:
    parts = list(items)
    last = [context.last and i == len(parts) - 1 for i in range(len(parts))]
    return "".join(
        _one(str(kind), given, context._replace(last=is_last))
        for (kind, given), is_last in zip(parts, last, strict=True)
    )


def _one(kind: str, given: Any, context: _Context) -> str:
    """Return one part of a parsed pattern in the syntax of RE2."""
    flags = context.flags
    if kind in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
        members = tuple(given) if kind == "IN" else given
        return _set(kind, members, flags & (re.I | re.A | re.S))
    if kind == "BRANCH":
        return f"(?:{'|'.join(_sequence(each, context) for each in given[1])})"
    if kind == "SUBPATTERN":
        _, added, removed, inside = given
        return f"(?:{_sequence(inside, context._replace(flags=(flags | added) & ~removed))})"
    if kind in ("MAX_REPEAT", "MIN_REPEAT"):
        return _repeat(kind, given, context)
    if kind == "AT":
        return _place(str(given), context)
    names = {"GROUPREF": "a reference to a group", "GROUPREF_EXISTS": "a condition"}
    names |= {"ASSERT": "lookaround", "ASSERT_NOT": "lookaround"}
    raise Untranslatable(names.get(kind, kind.lower().replace("_", " ")))


def _repeat(kind: str, given: Any, context: _Context) -> str:
    least, most, inside = given
    unbounded = most == _parser.MAXREPEAT
    if least > MOST_REPEATS or (not unbounded and most > MOST_REPEATS):
        raise ValueError(f"found a repetition of {least} to {most}, expected up to {MOST_REPEATS}")
    if _may_be_empty(inside) and not context.exists:
        # The engines end a repetition of nothing at different places.
        raise Untranslatable("a repetition of what may be empty")
    times = f"{{{least},{'' if unbounded else most}}}"
    lazy = "?" if kind == "MIN_REPEAT" else ""
    return f"(?:{_sequence(inside, context._replace(last=False))}){times}{lazy}"


def _may_be_empty(items: Any) -> bool:
    return bool(items.getwidth()[0] == 0)


def _place(place: str, context: _Context) -> str:
    flags = context.flags
    if place == "AT_BEGINNING_STRING" or (place == "AT_BEGINNING" and not flags & re.M):
        return r"\A"
    if place == "AT_END_STRING":
        return r"\z"
    if place == "AT_BEGINNING":
        return "(?m:^)"
    if place == "AT_END" and flags & re.M:
        return "(?m:$)"
    if place == "AT_END":  # also before a line feed at the end, unlike RE2's
        if not context.last:
            raise Untranslatable("$ before other parts")
        return r"(\n?)\z"
    raise Untranslatable("the border of a word")


# --------------------------------------------------------------------------- sets of characters

Ranges = tuple[tuple[int, int], ...]
LAST = 0x10FFFF


def _character(kind: str, given: Any, flags: int) -> Ranges:
    """Return the characters that a part of a pattern matches, as ranges."""
    if kind == "ANY":
        return ((0, LAST),) if flags & re.S else ((0, 9), (11, LAST))
    if kind in ("LITERAL", "NOT_LITERAL"):
        members, negated = [("LITERAL", given)], kind == "NOT_LITERAL"
    else:
        negated = bool(given) and str(given[0][0]) == "NEGATE"
        members = given[1:] if negated else given
    found = [each for member in members for each in _member(member, flags)]
    ranges = _merged(found)
    if flags & re.I:
        shown = "".join(_text(member) for member in members)
        ranges = _in_either_case(ranges, re.compile(f"[{shown}]", flags & (re.I | re.A)))
    return _complement(ranges) if negated else ranges


def _member(member: tuple[Any, Any], flags: int) -> Ranges:
    kind, given = str(member[0]), member[1]
    if kind == "LITERAL":
        return ((given, given),)
    return (given,) if kind == "RANGE" else _category(_text(member), flags & re.A)


def _text(member: tuple[Any, Any]) -> str:
    """Return a member of a set as Python writes it."""
    kind, given = str(member[0]), member[1]
    if kind == "LITERAL":
        return f"\\U{given:08x}"
    if kind == "RANGE":
        return f"\\U{given[0]:08x}-\\U{given[1]:08x}"
    name = str(given).removeprefix("CATEGORY_")
    letter = {"DIGIT": "d", "SPACE": "s", "WORD": "w"}[name.removeprefix("NOT_")]
    return "\\" + (letter.upper() if name.startswith("NOT_") else letter)


@cache
def _category(text: str, flags: int) -> Ranges:
    """Return what Python finds in a category such as ``\\w``."""
    everything = "".join(map(chr, range(LAST + 1)))
    found = (match.span() for match in re.compile(f"{text}+", flags).finditer(everything))
    return tuple((a, b - 1) for a, b in found)


@cache
def _cased() -> str:
    return "".join(c for c in map(chr, range(LAST + 1)) if c.lower() != c or c.upper() != c)


def _in_either_case(ranges: Ranges, pattern: re.Pattern[str]) -> Ranges:
    """Return the ranges with all characters that differ from one of them in their case."""
    more = [(ord(c), ord(c)) for c in pattern.findall(_cased())]
    return _merged([*ranges, *more])


def _merged(ranges: Sequence[tuple[int, int]]) -> Ranges:
    merged: list[tuple[int, int]] = []
    for a, b in sorted(ranges):
        if merged and a <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(b, merged[-1][1]))
        else:
            merged.append((a, b))
    return tuple(merged)


def _complement(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for a, b in ranges for edge in (a, b)), LAST + 1]
    gaps = zip(edges[::2], edges[1::2], strict=True)
    return tuple((a + 1, b - 1) for a, b in gaps if a + 1 <= b - 1)


@lru_cache(1000)
def _set(kind: str, given: Any, flags: int) -> str:
    """Return the characters that a part of a pattern matches, as RE2 writes them."""
    ranges = _character(kind, given, flags)
    shown = [part for a, b in ranges for part in _without_surrogates(a, b)]
    if not shown:
        return r"[^\x{0}-\x{10ffff}]"
    return "[" + "".join(f"\\x{{{a:x}}}-\\x{{{b:x}}}" for a, b in shown) + "]"


def _without_surrogates(first: int, last: int) -> Sequence[tuple[int, int]]:
    parts = [(first, min(last, 0xD7FF)), (max(first, 0xE000), last)]
    return [(a, b) for a, b in parts if a <= b]


# --------------------------------------------------------------------------- patterns for re


def _ways(items: Any) -> int:
    """Return a bound on the ways in which ``re`` may match a pattern at one position."""
    ways = 1
    for kind, given in items:
        ways = min(ways * _ways_of(str(kind), given), MOST_WAYS + 1)
    return ways


def _ways_of(kind: str, given: Any) -> int:
    if kind == "BRANCH":
        return sum(map(_ways, given[1]))
    if kind == "SUBPATTERN":
        return _ways(given[3])
    if kind in ("ASSERT", "ASSERT_NOT"):
        return _ways(given[1])
    if kind == "ATOMIC_GROUP":
        return _ways(given)
    if kind == "GROUPREF_EXISTS":
        return sum(_ways(each) for each in given[1:] if each is not None)
    if kind in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
        least, most, inside = given
        if most > MOST_REPEATS:
            return MOST_WAYS + 1
        ways = _ways(inside)
        return int(most - least + 1) * (1 if ways == 1 else min(ways**most, MOST_WAYS + 1))
    return 1
