"""The template language, which defines the features of a word by columns, offsets and labels.

    w[0]                     the column w of the current word
    w[-2..2]                 five templates, one for each word of the window
    w[-1]|w[0]               a conjunction (here, a bigram)
    w.lower.suffix3[0]       base features of a column (see base.py)
    w.test("^[A-Z]")[0]      whether a regular expression matches; match("...") is the text matched
    w.list("places")[0]      whether the word is in a list (see lists.py) or in a file of your own
    label[-1]|w[0]           labels predicted for earlier words, with or without columns
    bias                     a feature that every word has
    near: w[-3..3]           templates of one name share their features: a bag of words

Templates of a chunk have a place in the chunk instead of an offset from a word:

    w[first-1], w[last+1]    the words before and after the chunk, whose ends are first and last
    w[each]                  each word of the chunk, with its position
    w[any]                   each word of the chunk, without its position
    w[pair], w[triple]       two or three consecutive words of the chunk
    w[all]                   all words of the chunk, as one sequence
    length                   the number of words of the chunk

Columns are named, or numbered from 0. One pair of brackets may hold several offsets or places, as
in w[-1,1] or pos[each,pair,first-2..first]; a conjunction of windows stands for all combinations.
Equal templates count once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import prod
from typing import NoReturn

from laso.errors import BadTemplate, quoted
from laso.features.base import EXPECTED, WITH_ARGUMENT, WITH_PATTERN, is_base
from laso.features.lists import base_features
from laso.features.patterns import compiled_search
from laso.files.opening import open_input

LABEL = "label"
BIAS = "bias"
LENGTH = "length"
ENDS = ("first", "last")
PLACES = (*ENDS, "each", "any", "pair", "triple", "all")
SHOWN = 200  # characters of a template that an error shows
MOST_TEMPLATES = 5000
MOST_PATTERNS = 50  # different regular expressions
FURTHEST = 500  # the largest offset: the engine numbers positions outside a sentence by distance

# The features of CRFsuite's example for the chunking task of CoNLL-2000.
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
    """The value of a column, or a label, at an offset from the current word or from a chunk's end.

    Parameters
    ----------
    column : str
        The name or number of the column, or "label".
    bases : tuple of str
        The base features that are applied to the value, in order.
    offset : int
        The offset from the current word, or from the place.
    place : str, default=""
        The place in a chunk, such as "first"; empty in templates of a word.
    """

    column: str
    bases: tuple[str, ...]
    offset: int
    place: str = ""

    @property
    def is_column(self) -> bool:
        """Whether the value is that of an input column."""
        return self.column != LABEL and self.place != LENGTH

    @property
    def source(self) -> str:
        """The column with its base features, without the offset."""
        return ".".join((self.column, *self.bases))

    def __str__(self) -> str:
        if self.place == LENGTH:
            return LENGTH
        offset = f"{self.offset:+}" if self.place and self.offset else self.offset
        return f"{self.source}[{self.place}{offset if offset or not self.place else ''}]"


@dataclass(frozen=True, order=True)
class Template:
    """A conjunction of atoms; without atoms it is the bias.

    Parameters
    ----------
    atoms : tuple of Atom, default=()
        The atoms.
    name : str, default=""
        Templates of one name share their features.

    Examples
    --------
    >>> [template] = parse_templates("w.lower[0]|pos[1]")
    >>> [(atom.column, atom.bases, atom.offset) for atom in template.atoms]
    [('w', ('lower',), 0), ('pos', (), 1)]
    """

    atoms: tuple[Atom, ...] = ()
    name: str = ""

    @property
    def identity(self) -> str:
        """The text that is hashed into feature keys: templates of equal identity share features."""
        if self.name:
            return f"{self.name}: " + "|".join(atom.source for atom in self.atoms)
        return str(self)

    def __str__(self) -> str:
        text = "|".join(map(str, self.atoms)) or BIAS
        return f"{self.name}: {text}" if self.name else text


def parse_templates(templates: str | Iterable[str | Template]) -> tuple[Template, ...]:
    """Parse feature templates.

    Parameters
    ----------
    templates : str or iterable of str or Template
        The templates; a single string has one template a line, and lines that begin with ``#`` are
        comments.

    Returns
    -------
    tuple of Template
        The templates with their windows expanded, without duplicates.

    Raises
    ------
    BadTemplate
        If a template is malformed; the message has the position.

    Examples
    --------
    >>> [str(template) for template in parse_templates("w[-1..1]")]
    ['w[-1]', 'w[0]', 'w[1]']
    """
    if isinstance(templates, str):
        templates = without_comments(templates)
    unique: dict[Template, None] = {}
    for template in templates:
        if isinstance(template, Template):
            unique[template] = None
        elif isinstance(template, str):
            unique.update(dict.fromkeys(TemplateParser(template).parse()))
        else:
            raise BadTemplate(f"found the template {quoted(template)}, expected a string")
    return checked_number(unique)


def shown(template: Template) -> str:
    """Return a template as a message shows it."""
    return quoted(str(template), limit=SHOWN)


def checked_number(templates: Iterable[Template]) -> tuple[Template, ...]:
    """Return the templates, unless they or their regular expressions are too many."""
    listed_templates = tuple(templates)
    if len(listed_templates) > MOST_TEMPLATES:
        raise BadTemplate(
            f"found {len(listed_templates)} templates, expected at most {MOST_TEMPLATES}"
        )
    bases = {
        base for template in listed_templates for atom in template.atoms for base in atom.bases
    }
    patterns = sum(base.startswith(tuple(f"{name}(" for name in WITH_PATTERN)) for base in bases)
    if patterns > MOST_PATTERNS:
        raise BadTemplate(f"found {patterns} regular expressions, expected at most {MOST_PATTERNS}")
    return listed_templates


def read_templates(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    """Read templates from a file with one template a line.

    Parameters
    ----------
    path : path
        The file; lines that begin with ``#`` are comments.

    Returns
    -------
    tuple of Template
        The templates, as ``parse_templates`` returns them.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "templates.txt")
    ...     _ = file.write_text("# words\\nw[-1..1]\\n")
    ...     print(*read_templates(file))
    w[-1] w[0] w[1]
    """
    unique: dict[Template, None] = {}
    for number, line in enumerate(template_text(path).splitlines(), start=1):
        for text in without_comments(line):
            try:
                unique.update(dict.fromkeys(parse_templates([text])))
            except BadTemplate as error:
                raise error.at(file=os.fspath(path), line=number) from None
    return checked_number(unique)


def default_templates(columns: Sequence[str], resources: Sequence[str] = ()) -> tuple[str, ...]:
    """Return general templates for columns of unknown meaning.

    Parameters
    ----------
    columns : sequence of str
        The names of the columns, of which the first holds the words.
    resources : sequence of str, default=()
        Word lists, clusters and other resources for the words (see laso.features.lists).

    Returns
    -------
    tuple of str
        Windows, affixes and shapes of the words, windows of the other columns, and the labels
        before: by themselves, with the word, and with the other columns.

    Examples
    --------
    >>> default_templates(())
    ('bias', 'label[-1]', 'label[-2]|label[-1]')
    """
    if not columns:
        return (BIAS, "label[-1]", "label[-2]|label[-1]")
    word, *others = columns
    templates = [
        f"{word}[-2..2]",
        f"{word}[-1]|{word}[0]",
        f"{word}[0]|{word}[1]",
        f"{word}.lower[-1..1]",
        f"{word}.shape[-1..1]",
        *(f"{word}.{affix}{n}[0]" for affix in ("prefix", "suffix") for n in range(1, 5)),
        *(f"{word}.{affix}3[-1,1]" for affix in ("prefix", "suffix")),
        f"{word}.istitle[-1]|{word}.istitle[0]|{word}.istitle[1]",
        *(f"{word}.{has}[0]" for has in ("hashyphen", "hasdigit")),
    ]
    for resource in resources:
        templates += [f"{word}.{base}[-1..1]" for base in base_features(resource)]
    for other in others:
        templates.append(f"{other}[-2..2]")
        templates += [f"{other}[{i}]|{other}[{i + 1}]" for i in range(-2, 2)]
        templates += [f"{other}[{i}]|{other}[{i + 1}]|{other}[{i + 2}]" for i in range(-2, 1)]
        templates += [f"label[-1]|{other}[0]", f"label[-1]|{other}[0]|{other}[1]"]
        templates.append(f"label[-2]|label[-1]|{other}[0]")
    templates += ["label[-1]", f"label[-1]|{word}[0]", "label[-2]|label[-1]"]
    return tuple(templates)


def without_comments(text: str) -> list[str]:
    """Return the lines of a text that are templates."""
    lines = map(str.strip, text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def template_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a template file, which must be UTF-8."""
    try:
        with open_input(path) as file:
            return file.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadTemplate(
            f"{os.fspath(path)}: found the byte 0x{error.object[error.start]:02x} at byte "
            f"{error.start}, expected UTF-8 text"
        ) from error


class TemplateParser:
    """Recursive-descent parser of one template; errors name the position, counted from 1."""

    def __init__(self, text: str):
        self.text = text
        self.at = 0

    def parse(self) -> list[Template]:
        """Return the templates that the text stands for."""
        name = ""
        named = re.compile(r"\s*([A-Za-z_][\w-]*)\s*:").match(self.text)
        if named:
            name, self.at = named[1], named.end()
        self._skip_blanks()
        if self.match(r"bias\b(?!\s*[\[.])"):
            self._end()
            return [Template((), name)]
        windows = [self.window()]
        while self.accept("|"):
            windows.append(self.window())
        self._end()
        if prod(map(len, windows)) > MOST_TEMPLATES:
            self.at = 0
            self.fail(f"windows that stand for at most {MOST_TEMPLATES} templates")
        return [Template(atoms, name) for atoms in product(*windows)]

    def window(self) -> list[Atom]:
        """Parse an atom, or several if it is a window."""
        if self.match(rf"{LENGTH}\b(?!\s*[\[.])"):
            return [Atom("", (), 0, LENGTH)]
        column, bases = self.column({LABEL})
        atoms = self._range(column, bases)
        while self.accept(","):
            atoms += self._range(column, bases)
        self.accept("]") or self.fail("']'")
        return atoms

    def column(self, plain: Set[str]) -> tuple[str, tuple[str, ...]]:
        """Parse a column, its base features, which ``plain`` columns do not have, and a bracket."""
        column = self.match(r"[A-Za-z_]\w*|\d+") or self.fail("a column's name or number")
        bases = []
        while self.accept("."):
            if column in plain:
                self.fail(f"'[': a {column} has no base features", back=1)
            bases.append(self._base())
        self.accept("[") or self.fail("'['")
        return column, tuple(bases)

    def _range(self, column: str, bases: tuple[str, ...]) -> list[Atom]:
        self._skip_blanks()
        begin = self.at
        place, first = self._place()
        last = first
        if place in ("", *ENDS) and self.accept(".."):
            other, last = self._place()
            if other != place or last < first:
                self.at = begin
                self.fail(f"a window whose first offset is not above its last, {last}")
        if column == LABEL and (place or last >= 0):
            self.at = begin
            self.fail("an offset below 0, for only the labels before are known")
        return [Atom(column, bases, offset, place) for offset in range(first, last + 1)]

    def _place(self) -> tuple[str, int]:
        """Parse a place in a chunk, which may be missing, and the offset from it."""
        place = self.match(rf"({'|'.join(PLACES)})\b")
        if not place:
            return "", self._offset()
        self._skip_blanks()
        signed = place in ENDS and self.text[self.at : self.at + 1] in ("+", "-")
        return place, self._offset() if signed else 0

    def _base(self) -> str:
        begin = self.at
        name = self.match(r"\w+") or self.fail("a base feature: " + EXPECTED)
        if name in WITH_ARGUMENT:
            is_pattern = name in WITH_PATTERN
            argument = self.match(r'\(\s*"(?:[^"\\]|\\.)*"\s*\)') or self.fail(
                f'{"a regular expression" if is_pattern else "the name of a list"}, ("...")'
            )
            pattern = argument[argument.index('"') + 1 : argument.rindex('"')]
            try:
                if is_pattern:
                    compiled_search(pattern)
            except ValueError as error:
                self.at = begin
                self.fail(f"a regular expression of RE2 ({error})")
            return f'{name}("{pattern}")'
        if not is_base(name):
            self.at = begin
            self.fail("a base feature: " + EXPECTED)
        return name

    def _offset(self) -> int:
        begin = self.at
        number = self.match(r"[+-]?\d+") or self.fail(
            f"a whole number, or in a chunk {', '.join(PLACES)}"
        )
        # The length first: int() refuses thousands of digits with an error of its own.
        if len(number) > 9 or abs(int(number)) > FURTHEST:
            self.at = begin
            self.fail(f"an offset from {-FURTHEST} to {FURTHEST}")
        return int(number)

    def _skip_blanks(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def match(self, pattern: str) -> str:
        """Return the text that a pattern matches after blanks, and go on behind it; else ""."""
        self._skip_blanks()
        match = _compiled(pattern).match(self.text, self.at)
        if not match:
            return ""
        self.at = match.end()
        return match[0]

    def accept(self, mark: str) -> bool:
        """Return whether a mark follows, and go on behind it."""
        self._skip_blanks()
        is_there = self.text.startswith(mark, self.at)
        self.at += len(mark) * is_there
        return is_there

    def _end(self) -> None:
        self._skip_blanks()
        if self.at < len(self.text):
            self.fail("'|' or the end")

    def fail(self, expected: str, *, back: int = 0) -> NoReturn:
        """Raise the error about what is found at this position."""
        self._skip_blanks()
        self.at -= back
        rest = self.text[self.at : self.at + 20]
        given = repr(rest) if rest else "the end"
        raise BadTemplate(
            f"template {quoted(self.text, limit=SHOWN)}, position {self.at + 1}: found {given}, "
            f"expected {expected}"
        )


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Return a pattern of the syntax; ``re`` has a cache, too, which takes longer than matching."""
    return re.compile(pattern, re.ASCII | re.DOTALL)


def parse_places(
    templates: str | Iterable[str | Template], parser: type[TemplateParser]
) -> tuple[Template, ...]:
    """Parse templates without windows and names, whose atoms have places of a task.

    The parser's ``window`` parses one atom.
    """
    if isinstance(templates, str):
        templates = without_comments(templates)
    parsed = [t if isinstance(t, Template) else _in_places(t, parser) for t in templates]
    return checked_number(dict.fromkeys(parsed))


def _in_places(text: str, parser: type[TemplateParser]) -> Template:
    if not isinstance(text, str):
        raise BadTemplate(f"found the template {quoted(text)}, expected a string")
    template = parser(text).parse()[0]
    if template.name:
        raise BadTemplate(f"template {shown(template)}: found a name, expected none here")
    return template
