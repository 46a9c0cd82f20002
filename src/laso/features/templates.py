"""The template language: which features a word has, in terms of columns, offsets and labels.

    w[0]                     the first column of the word itself
    w[-2..2]                 five templates, one for each word of the window
    w[-1]|w[0]               a conjunction (here, a bigram)
    w.lower.suffix3[0]       base features of a column (see base.py)
    w.test("^[A-Z]")[0]      a regular expression: does it occur? match("...") is what it matches
    w.list("places")[0]      is the word in a list (see lists.py), or in a file of your own?
    label[-1]|w[0]           labels predicted before, with or without columns
    bias                     a feature that every word has
    near: w[-3..3]           templates of one name share their features: a bag of words

Of a chunk, a place in it stands where an offset from a word does:

    w[first-1], w[last+1]    the words before and after it; its own ends are first and last
    w[each]                  each word of it, with its position
    w[any]                   each word of it, wherever it stands
    w[pair], w[triple]       two or three words that follow each other in it
    w[all]                   all its words, as one sequence
    length                   the number of its words

Columns go by name, or by number from 0. Several offsets or places go into one pair of brackets, as
in w[-1,1] or pos[each,pair,first-2..first]; in a conjunction every combination is meant.
Templates that say the same are counted once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import NoReturn

from laso.errors import BadTemplate
from laso.features.base import EXPECTED, WITH_PATTERN, WITH_TEXT, is_base

LABEL = "label"
BIAS = "bias"
LENGTH = "length"
ENDS = ("first", "last")
PLACES = (*ENDS, "each", "any", "pair", "triple", "all")
FURTHEST = 500  # offsets go so far: the engine gives values beyond a sentence's ends by distance

# What CRFsuite's example for the chunking task of CoNLL-2000 has.
CHUNKING = (
    "w[-2..2]",
    "w[-1]|w[0]",
    "w[0]|w[1]",
    "pos[-2..2]",
    "pos[-2]|pos[-1]",
    "pos[-1]|pos[0]",
    "pos[0]|pos[1]",
    "pos[1]|pos[2]",
    "pos[-2]|pos[-1]|pos[0]",
    "pos[-1]|pos[0]|pos[1]",
    "pos[0]|pos[1]|pos[2]",
    "label[-1]",
)


@dataclass(frozen=True, order=True)
class Atom:
    """The value of one column, or a label, at an offset from the word in question.

    Of a chunk, at a place in it, from whose ends there are offsets too.
    """

    column: str
    bases: tuple[str, ...]
    offset: int
    place: str = ""

    @property
    def is_column(self) -> bool:
        """Is it about the words?"""
        return self.column != LABEL and self.place != LENGTH

    @property
    def what(self) -> str:
        """The atom without its offset."""
        return ".".join((self.column, *self.bases))

    def __str__(self) -> str:
        if self.place == LENGTH:
            return LENGTH
        offset = f"{self.offset:+}" if self.place and self.offset else self.offset
        return f"{self.what}[{self.place}{offset if offset or not self.place else ''}]"


@dataclass(frozen=True, order=True)
class Template:
    """A conjunction of atoms; none make a bias."""

    atoms: tuple[Atom, ...] = ()
    name: str = ""

    @property
    def identity(self) -> str:
        """Templates of equal identity share their features."""
        if self.name:
            return f"{self.name}: " + "|".join(atom.what for atom in self.atoms)
        return str(self)

    def __str__(self) -> str:
        text = "|".join(map(str, self.atoms)) or BIAS
        return f"{self.name}: {text}" if self.name else text


def parse_templates(templates: str | Iterable[str | Template]) -> tuple[Template, ...]:
    """Templates from their texts, windows expanded; a single string has one on each line."""
    if isinstance(templates, str):
        templates = _without_comments(templates)
    found: dict[Template, None] = {}
    for template in templates:
        if isinstance(template, Template):
            found[template] = None
        elif isinstance(template, str):
            found.update(dict.fromkeys(_Parser(template).parse()))
        else:
            raise BadTemplate(f"found the template {template!r}, expected a string")
    return tuple(found)


def read_templates(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    """The templates of a file: one on each line; lines that begin with # are comments."""
    found: dict[Template, None] = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        for text in _without_comments(line):
            try:
                found.update(dict.fromkeys(parse_templates([text])))
            except BadTemplate as error:
                raise error.at(file=os.fspath(path), line=number) from None
    return tuple(found)


def default_templates(columns: Sequence[str]) -> tuple[str, ...]:
    """A sensible beginning for columns of unknown meaning, of which the first holds words."""
    if not columns:
        return (BIAS, "label[-1]", "label[-2]|label[-1]")
    word, *others = columns
    templates = [
        f"{word}[-2..2]",
        f"{word}[-1]|{word}[0]",
        f"{word}[0]|{word}[1]",
        f"{word}.lower[-1..1]",
        f"{word}.shape[-1..1]",
        f"{word}.shortshape[-1]|{word}.shortshape[0]|{word}.shortshape[1]",
        *(f"{word}.{affix}{n}[0]" for affix in ("prefix", "suffix") for n in range(1, 5)),
    ]
    for other in others:
        templates.append(f"{other}[-2..2]")
        templates += [f"{other}[{i}]|{other}[{i + 1}]" for i in range(-2, 2)]
        templates += [f"{other}[{i}]|{other}[{i + 1}]|{other}[{i + 2}]" for i in range(-2, 1)]
    templates += ["label[-1]", f"label[-1]|{word}[0]", "label[-2]|label[-1]"]
    return tuple(templates)


def _without_comments(text: str) -> list[str]:
    lines = map(str.strip, text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _text(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTemplate(
            f"{os.fspath(path)}: found the byte 0x{error.object[error.start]:02x} at byte "
            f"{error.start}, expected UTF-8 text"
        ) from error


class _Parser:
    """Recursive descent over one template; errors tell the position, counted from 1."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def parse(self) -> list[Template]:
        name = ""
        named = re.compile(r"\s*([A-Za-z_][\w-]*)\s*:").match(self.text)
        if named:
            name, self.at = named[1], named.end()
        self._skip_blanks()
        if self._match(r"bias\b(?!\s*[\[.])"):
            self._end()
            return [Template((), name)]
        windows = [self._window()]
        while self._taken("|"):
            windows.append(self._window())
        self._end()
        return [Template(atoms, name) for atoms in product(*windows)]

    def _window(self) -> list[Atom]:
        if self._match(rf"{LENGTH}\b(?!\s*[\[.])"):
            return [Atom("", (), 0, LENGTH)]
        column = self._match(r"[A-Za-z_]\w*|\d+") or self._fail("a column's name or number")
        bases = []
        while self._taken("."):
            if column == LABEL:
                self._fail("'[': a label has no base features", back=1)
            bases.append(self._base())
        self._taken("[") or self._fail("'['")
        atoms = self._range(column, tuple(bases))
        while self._taken(","):
            atoms += self._range(column, tuple(bases))
        self._taken("]") or self._fail("']'")
        return atoms

    def _range(self, column: str, bases: tuple[str, ...]) -> list[Atom]:
        self._skip_blanks()
        begin = self.at
        place, first = self._place()
        last = first
        if place in ("", *ENDS) and self._taken(".."):
            other, last = self._place()
            if other != place or last < first:
                self.at = begin
                self._fail(f"a window whose first offset is not above its last, {last}")
        if column == LABEL and (place or last >= 0):
            self.at = begin
            self._fail("an offset below 0, for only the labels before are known")
        return [Atom(column, bases, offset, place) for offset in range(first, last + 1)]

    def _place(self) -> tuple[str, int]:
        """A place in a chunk, or none, and the offset from it."""
        place = self._match(rf"({'|'.join(PLACES)})\b")
        if not place:
            return "", self._offset()
        self._skip_blanks()
        signed = place in ENDS and self.text[self.at : self.at + 1] in ("+", "-")
        return place, self._offset() if signed else 0

    def _base(self) -> str:
        begin = self.at
        name = self._match(r"\w+") or self._fail("a base feature: " + EXPECTED)
        if name in WITH_TEXT:
            is_pattern = name in WITH_PATTERN
            quoted = self._match(r'\(\s*"(?:[^"\\]|\\.)*"\s*\)') or self._fail(
                f'{"a regular expression" if is_pattern else "the name of a list"}, ("...")'
            )
            pattern = quoted[quoted.index('"') + 1 : quoted.rindex('"')]
            try:
                re.compile(pattern if is_pattern else "")
            except re.error as error:
                self.at = begin
                self._fail(f"a regular expression ({error})")
            return f'{name}("{pattern}")'
        if not is_base(name):
            self.at = begin
            self._fail("a base feature: " + EXPECTED)
        return name

    def _offset(self) -> int:
        begin = self.at
        number = self._match(r"[+-]?\d+") or self._fail(
            f"a whole number, or in a chunk {', '.join(PLACES)}"
        )
        # The length first: int() refuses thousands of digits with an error of its own.
        if len(number) > 9 or abs(int(number)) > FURTHEST:
            self.at = begin
            self._fail(f"an offset from {-FURTHEST} to {FURTHEST}")
        return int(number)

    def _skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def _match(self, pattern: str) -> str:
        self._skip_blanks()
        found = re.compile(pattern, re.ASCII | re.DOTALL).match(self.text, self.at)
        if not found:
            return ""
        self.at = found.end()
        return found[0]

    def _taken(self, mark: str) -> bool:
        return bool(self._match(re.escape(mark)))

    def _end(self) -> None:
        self._skip_blanks()
        if self.at < len(self.text):
            self._fail("'|' or the end")

    def _fail(self, expected: str, *, back: int = 0) -> NoReturn:
        self._skip_blanks()
        self.at -= back
        rest = self.text[self.at : self.at + 20]
        found = repr(rest) if rest else "the end"
        raise BadTemplate(
            f"template {self.text!r}, position {self.at + 1}: found {found}, expected {expected}"
        )


# --------------------------------------------------------------------------- other tools' files

_MACRO = re.compile(
    r"""%(?P<command>[A-Za-z]) \[ \s*
        (?P<special>[@*])? \s* (?P<row>[+-]?\d+) \s* , \s* (?P<column>\d+) \s*
        (?: , \s* "(?P<pattern>(?:[^"\\]|\\.)*)" \s* )? \]""",
    re.VERBOSE,
)


def read_crfpp(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    """The templates of a CRF++ template file; columns go by their numbers.

    A line that begins with U is a template of the word alone, with B of the previous label too.
    """
    lines = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            where = f"{os.fspath(path)}:{number}"
            if line[0] not in "UB":
                raise BadTemplate(f"{where}: found {line!r}, expected a line that begins U or B")
            lines.append((line[0], _imported(line, "x", where)))
    return _joined(lines)


def read_wapiti(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    """The templates of a Wapiti pattern file: u, b and * lines with %x, %t and %m, or capitals.

    Wapiti's regular expressions are of ASCII characters and lazy, and so are they here.
    """
    lines = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        text = line.partition("#")[0].rstrip()
        if text:
            where = f"{os.fspath(path)}:{number}"
            kind = text[0].lower()
            if kind not in "ub*":
                raise BadTemplate(f"{where}: found {text!r}, expected a line that begins u, b or *")
            lines.append((kind.upper(), _imported(text, "xtm", where)))
    return _joined(lines)


def _imported(line: str, commands: str, where: str) -> tuple[str, Template]:
    """A line's template, and what its text says apart from the offsets."""
    atoms = []
    at = 0
    said = line
    while (at := line.find("%", at)) >= 0:
        macro = _MACRO.match(line, at)
        place = f"{where}, position {at + 1}: found {line[at : at + 20]!r}"
        if macro is None or macro["command"].lower() not in commands:
            expected = " or ".join(f"%{c}[row,column{',...' * (c != 'x')}]" for c in commands)
            raise BadTemplate(f"{place}, expected {expected}")
        command = macro["command"]
        if macro["special"]:
            raise BadTemplate(f"{place}, expected an offset (rows with @ or * are not read)")
        if len(macro["row"]) > 9 or abs(int(macro["row"])) > FURTHEST:
            raise BadTemplate(f"{place}, expected a row from {-FURTHEST} to {FURTHEST}")
        if (command in "tTmM") != (macro["pattern"] is not None):
            raise BadTemplate(f"{place}, expected a regular expression with %t and %m only")
        if commands == "x" and command != "x":
            raise BadTemplate(f"{place}, expected %x[row,column]")
        bases: list[str] = []
        if command in "tTmM":
            name = "test" if command in "tT" else "match"
            bases.append(f'{name}("{_translated(macro["pattern"], place)}")')
        if command in "XM":
            bases.append("lower")
        atoms.append(Atom(str(int(macro["column"])), tuple(bases), int(macro["row"])))
        said = said.replace(macro[0], f"%{command}[{atoms[-1].what}]", 1)
        at = macro.end()
    return said, Template(tuple(atoms))


_CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": r"!-/:-@\[-`{-~",
    "s": r"\s",
    "u": "A-Z",
    "w": "A-Za-z0-9",
}


def _translated(pattern: str, place: str) -> str:
    """A regular expression of Wapiti's as one of Python's."""
    out = ["(?as)"]
    at = 0
    repeatable = False
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "^" and at == 1:
            out.append(r"\A")
        elif character == "$" and at == len(pattern):
            out.append(r"\Z")
        elif character in "*?":
            if not repeatable:
                raise BadTemplate(f"{place}, expected a character before {character!r}")
            out.append("*?" if character == "*" else "?")
            repeatable = False
            continue
        elif character == "\\" and at < len(pattern):
            mark = pattern[at]
            at += 1
            if mark.lower() in _CLASSES:
                out.append(f"[{'^' * mark.isupper()}{_CLASSES[mark.lower()]}]")
            else:
                out.append(_escaped(mark))
            repeatable = True
            continue
        else:
            out.append("." if character == "." else _escaped(character))
            repeatable = True
            continue
        repeatable = False
    return "".join(out)


def _escaped(character: str) -> str:
    return r"\x22" if character == '"' else re.escape(character)


def _joined(lines: Sequence[tuple[str, tuple[str, Template]]]) -> tuple[Template, ...]:
    """The templates of the lines, of which those that say the same at several offsets are bags."""
    offsets: dict[str, set[Template]] = {}
    for kind, (said, template) in lines:
        offsets.setdefault(kind + said, set()).add(template)
    bags = [said for said, templates in offsets.items() if len(templates) > 1]
    found: dict[Template, None] = {}
    for kind, (said, template) in lines:
        if kind + said in bags:
            template = replace(template, name=f"bag{bags.index(kind + said) + 1}")
        if kind in "U*":
            found[template] = None
        if kind in "B*":
            found[replace(template, atoms=(Atom(LABEL, (), -1), *template.atoms))] = None
    return tuple(found)
