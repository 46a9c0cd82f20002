"""The lines of a text with their numbers, whatever line ending the text has."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import TextIOBase
from itertools import chain
from typing import IO, TypeAlias

from laso.errors import BadData
from laso.files.opening import open_input

BOM = "\ufeff"

# Files converted twice end their lines in "\r\r\n"; that is one end of line, not an empty line.
LINE_END = re.compile("\r*\n|\r")


@dataclass(frozen=True)
class Resumed:
    """The rest of a file of which other code has read some lines.

    Parameters
    ----------
    name : str
        The name of the file, for errors.
    parts : tuple of iterables of bytes
        The lines that follow, one iterable after the other.
    lines, offset : int
        How many lines and bytes were read.
    columns, first : int
        The number of columns, and the line that has defined it; 0: none has.
    """

    name: str
    parts: tuple[Iterable[bytes], ...]
    lines: int
    offset: int
    columns: int = 0
    first: int = 0

    def __iter__(self) -> Iterator[bytes]:
        return chain.from_iterable(self.parts)


Source: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str] | Resumed


def name_of(source: Source) -> str:
    """Return the name of a source, for errors."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "<input>"))


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield the lines without their ends, and their numbers from 1; the text must be UTF-8."""
    if isinstance(source, (str, os.PathLike)):
        with open_input(source) as file:
            yield from numbered_lines(file)
        return
    number = source.lines if isinstance(source, Resumed) else 0
    for text in _ended_by_line_feeds(source):
        if not number:
            text = text.removeprefix(BOM)
        # Nearly every text is one line; the regular expression costs more than to look.
        for line in LINE_END.split(text) if "\r" in text or "\n" in text else (text,):
            number += 1
            yield number, line


def _ended_by_line_feeds(source: IO[bytes] | IO[str] | Resumed) -> Iterator[str]:
    name, number, offset = name_of(source), 1, 0
    if isinstance(source, Resumed):
        number, offset = source.lines + 1, source.offset
    try:
        # A text file may have cut its lines in two: at a carriage return before a line feed.
        for line in (source.read(),) if isinstance(source, TextIOBase) else source:
            text = line.decode("utf-8") if isinstance(line, bytes) else line
            yield text.removesuffix("\n").rstrip("\r")
            number += 1 + text.rstrip("\r\n").count("\r")
            offset += len(line)
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        number += len(re.findall(LINE_END.pattern.encode(), before))
        raise BadData(
            f"found the byte 0x{error.object[error.start]:02x} at byte {offset + error.start} of "
            f"the file, expected UTF-8 text ({error.reason})",
            file=name,
            line=number,
        ) from error
