"""Template files of other tools: CRF++ and Wapiti."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from laso.errors import BadTemplate, quoted
from laso.features.templates import FURTHEST, LABEL, Atom, Template, template_text

_MACRO = re.compile(
    r"""%(?P<command>[A-Za-z]) \[ \s*
        (?P<special>[@*])? \s* (?P<row>[+-]?\d+) \s* , \s* (?P<column>\d+) \s*
        (?: , \s* "(?P<pattern>(?:[^"\\]|\\.)*)" \s* )? \]""",
    re.VERBOSE,
)


def read_crfpp(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    """Read a template file of CRF++; columns are named by their numbers.

    Parameters
    ----------
    path : path
        The file. A line that begins with U becomes a template without labels, a line that begins
        with B a conjunction with the previous label.

    Returns
    -------
    tuple of Template
        The templates.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "template")
    ...     _ = file.write_text("U01:%x[0,0]/%x[0,1]\\nB\\n")
    ...     print(*read_crfpp(file))
    0[0]|1[0] label[-1]
    """
    lines = []
    for where, line in _lines(path):
        if line.strip() and not line.startswith("#"):
            if line[0] not in "UB":
                raise BadTemplate(
                    f"{where}: found {quoted(line)}, expected a line that begins U or B"
                )
            lines.append((line[0], _parse_macros(line, "x", where)))
    return _merge_bags(lines)


def read_wapiti(path: str | os.PathLike[str]) -> tuple[Template, ...]:
    """Read a pattern file of Wapiti: u, b and * lines with %x, %t and %m, or capitals.

    Parameters
    ----------
    path : path
        The file. Its regular expressions are matched as Wapiti does: ASCII classes, lazy.

    Returns
    -------
    tuple of Template
        The templates.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "patterns")
    ...     _ = file.write_text("u:word=%x[0,0]\\nb\\n")
    ...     print(*read_wapiti(file))
    0[0] label[-1]
    """
    lines = []
    for where, line in _lines(path):
        text = line.partition("#")[0].rstrip()
        if text:
            kind = text[0].lower()
            if kind not in "ub*":
                raise BadTemplate(
                    f"{where}: found {quoted(text)}, expected a line that begins u, b or *"
                )
            lines.append((kind.upper(), _parse_macros(text, "xtm", where)))
    return _merge_bags(lines)


def _lines(path: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a file, each with its position as text."""
    for number, line in enumerate(template_text(path).splitlines(), start=1):
        yield f"{os.fspath(path)}:{number}", line


def _parse_macros(line: str, commands: str, where: str) -> tuple[str, Template]:
    """Return the text of a line without its offsets, and its template."""
    atoms = []
    at = 0
    pattern = line
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
            bases.append(f'{name}("{translate_regex(macro["pattern"], place)}")')
        if command in "XM":
            bases.append("lower")
        atoms.append(Atom(str(int(macro["column"])), tuple(bases), int(macro["row"])))
        pattern = pattern.replace(macro[0], f"%{command}[{atoms[-1].source}]", 1)
        at = macro.end()
    return pattern, Template(tuple(atoms))


_CLASSES = {
    "a": "A-Za-z",
    "d": "0-9",
    "l": "a-z",
    "p": r"!-/:-@\[-`{-~",
    "s": r"\t-\r ",
    "u": "A-Z",
    "w": "A-Za-z0-9",
}


def translate_regex(pattern: str, place: str) -> str:
    """Translate a regular expression of Wapiti into one of RE2."""
    out = ["(?s)"]
    at = 0
    repeatable = False
    while at < len(pattern):
        character = pattern[at]
        at += 1
        if character == "^" and at == 1:
            out.append(r"\A")
        elif character == "$" and at == len(pattern):
            out.append(r"\z")
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


def _merge_bags(lines: Sequence[tuple[str, tuple[str, Template]]]) -> tuple[Template, ...]:
    """Return the templates; lines that differ only in their offsets become a bag of one name."""
    offsets: dict[str, set[Template]] = {}
    for kind, (pattern, template) in lines:
        offsets.setdefault(kind + pattern, set()).add(template)
    bags = [pattern for pattern, templates in offsets.items() if len(templates) > 1]
    unique: dict[Template, None] = {}
    for kind, (pattern, template) in lines:
        if kind + pattern in bags:
            template = replace(template, name=f"bag{bags.index(kind + pattern) + 1}")
        if kind in "U*":
            unique[template] = None
        if kind in "B*":
            unique[replace(template, atoms=(Atom(LABEL, (), -1), *template.atoms))] = None
    return tuple(unique)
