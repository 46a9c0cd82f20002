"""Column files: one token a line, its columns apart by blanks, an empty line after a sentence.

The format of CoNLL-2000 and of most tagged corpora since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, TextIO, TypeAlias

from laso.errors import BadData

Token: TypeAlias = tuple[str, ...]
Sentence: TypeAlias = list[Token]
Source: TypeAlias = str | os.PathLike[str] | IO[bytes] | IO[str]

BOM = "\ufeff"

# Files converted twice end their lines in "\r\r\n"; that is one end of line, not an empty line.
LINE_END = re.compile("\r*\n|\r")

# Not str.split(): a no-break space belongs to the word it is in.
BLANKS = re.compile("[ \t]+")


def read_columns(
    path_or_file: Source,
    *,
    columns: int | None = None,
    separator: str | None = None,
    comment: str | None = None,
) -> list[Sentence]:
    """The sentences of a column file: lists of tokens, each a tuple of its columns.

    ``columns`` is how many there must be (by default, as many as in the first line).
    ``separator`` is what stands between them (by default, any number of spaces and tabs).
    Lines that begin with ``comment`` are left out; by default there are no comments, for a
    word may begin with any character. The text must be UTF-8.
    """
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    if separator is not None and not separator:
        raise ValueError("separator must not be empty")
    name, text = _name_and_text(path_or_file)
    expected = "" if columns is None else " as asked for"
    sentences: list[Sentence] = []
    sentence: Sentence = []
    for number, line in enumerate(LINE_END.split(text.removeprefix(BOM)), start=1):
        if comment and line.startswith(comment):
            continue
        token = _split(line, separator)
        if not token:
            if sentence:
                sentences.append(sentence)
                sentence = []
            continue
        if columns is None:
            columns, expected = len(token), f" as in line {number}"
        if len(token) != columns:
            raise BadData(
                f"{name}:{number}: found {_counted(len(token))} in {line!r}, "
                f"expected {columns}{expected}"
            )
        if "" in token:
            raise BadData(
                f"{name}:{number}: found nothing in column {token.index('') + 1} of {line!r}, "
                f"expected {columns} columns that are not empty"
            )
        sentence.append(token)
    if sentence:
        sentences.append(sentence)
    if not sentences:
        raise BadData(f"{name}:1: found no token in the file, expected one token a line")
    return sentences


def write_columns(
    path_or_file: str | os.PathLike[str] | TextIO,
    sentences: Iterable[Sequence[Sequence[str]]],
    *,
    separator: str = " ",
) -> None:
    """Write sentences so that ``read_columns`` reads the same ones; nothing if it could not."""
    if separator not in (" ", "\t"):
        raise ValueError(f"separator must be a space or a tab, not {separator!r}")
    width = 0
    blocks = []
    for number, sentence in enumerate(sentences, start=1):
        if not sentence:
            raise BadData(f"sentence {number}: found no token, expected at least one")
        for place, token in enumerate(sentence, start=1):
            width = width or len(token)
            if len(token) != width or not width:
                raise BadData(
                    f"sentence {number}, token {place}: found {_counted(len(token))}, "
                    f"expected {width or 'at least 1'}"
                )
            for column in token:
                if not _writable(column, separator):
                    raise BadData(
                        f"sentence {number}, token {place}: found the column {column!r}, "
                        "expected text without separators, ends of lines or blanks at its ends"
                    )
        blocks.append("".join(separator.join(token) + "\n" for token in sentence))
    if not blocks:
        raise BadData("found no sentence to write, expected at least one")
    text = "\n".join(blocks)
    if isinstance(path_or_file, (str, os.PathLike)):
        # Not write_text: it would end lines as the platform does.
        Path(path_or_file).write_bytes(text.encode("utf-8"))
    else:
        path_or_file.write(text)


def _name_and_text(source: Source) -> tuple[str, str]:
    """What to call the source in an error, and its text."""
    if isinstance(source, (str, os.PathLike)):
        name, data = os.fspath(source), Path(source).read_bytes()
        return name, _decode(name, data)
    name = str(getattr(source, "name", "<input>"))
    try:
        content = source.read()
    except UnicodeDecodeError as error:  # a text file opened by the caller
        raise _not_utf8(name, error) from error
    return name, content if isinstance(content, str) else _decode(name, content)


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(name, error) from error


def _not_utf8(name: str, error: UnicodeDecodeError) -> BadData:
    before = error.object[: error.start]
    line = len(re.findall(LINE_END.pattern.encode(), before)) + 1
    return BadData(
        f"{name}:{line}: found the byte 0x{error.object[error.start]:02x} at byte "
        f"{error.start} of the file, expected UTF-8 text ({error.reason})"
    )


def _split(line: str, separator: str | None) -> Token:
    """The columns of a line; none if it is blank."""
    stripped = line.strip(" \t")
    if not stripped:
        return ()
    if separator is None:
        return tuple(BLANKS.split(stripped))
    # Trailing spaces are noise, but a trailing tab between tabs is an empty column.
    return tuple(line.rstrip(" ").split(separator))


def _writable(column: str, separator: str) -> bool:
    return bool(
        column
        and column == column.strip(" \t")
        and not column.startswith(BOM)
        and not any(mark in column for mark in (separator, "\t", "\r", "\n"))
    )


def _counted(n: int) -> str:
    return f"{n} column" if n == 1 else f"{n} columns"
