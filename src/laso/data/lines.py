"""The lines of a text, one at a time, whatever they end in; errors name file and line."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from io import TextIOBase
from pathlib import Path
from typing import IO, TypeAlias

from laso.errors import BadData

Source: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]

BOM = "\ufeff"

# Files converted twice end their lines in "\r\r\n"; that is one end of line, not an empty line.
LINE_END = re.compile("\r*\n|\r")


def name_of(source: Source) -> str:
    """What to call the source in an error."""
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    return str(getattr(source, "name", "<input>"))


def numbered_lines(source: Source) -> Iterator[tuple[int, str]]:
    """The lines without their ends, counted from 1; the text must be UTF-8."""
    if isinstance(source, (str, os.PathLike)):
        with Path(source).open("rb") as file:
            yield from numbered_lines(file)
        return
    number = 0
    for text in _ended_by_line_feeds(source):
        for line in LINE_END.split(text if number else text.removeprefix(BOM)):
            number += 1
            yield number, line


def _ended_by_line_feeds(source: IO[bytes] | IO[str]) -> Iterator[str]:
    name, number, offset = name_of(source), 1, 0
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
            f"{name}:{number}: found the byte 0x{error.object[error.start]:02x} at byte "
            f"{offset + error.start} of the file, expected UTF-8 text ({error.reason})"
        ) from error
