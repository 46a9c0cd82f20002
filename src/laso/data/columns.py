"""Column files: one token a line, its columns apart by blanks, an empty line after a sentence.

The format of CoNLL-2000 and of most tagged corpora since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from laso.data.lines import BOM, Source, name_of, numbered_lines
from laso.errors import BadData

Token: TypeAlias = tuple[str, ...]
Sentence: TypeAlias = list[Token]

# Not str.split(): a no-break space belongs to the word it is in.
BLANKS = re.compile("[ \t]+")


@dataclass
class Block:
    """A sentence as it stands in a file."""

    tokens: list[tuple[Any, ...]] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # the number of each token's line
    lines: dict[int, str] = field(default_factory=dict)  # all of them by number, comments as well
    names: tuple[str, ...] = ()  # of the columns
    fields: dict[str, Any] | None = None  # of a JSON object


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
    sentences = [
        block.tokens
        for block in read_blocks(
            path_or_file, columns=columns, separator=separator, comment=comment
        )
        if block.tokens
    ]
    if not sentences:
        raise BadData(
            f"{name_of(path_or_file)}:1: found no token in the file, expected one token a line"
        )
    return sentences


def read_blocks(
    source: Source,
    *,
    columns: int | None = None,
    separator: str | None = None,
    comment: str | None = None,
    passed_over: Callable[[str], bool] = lambda line: False,
) -> Iterator[Block]:
    """What stands between blank lines, read when it is asked for; for the options see above.

    ``passed_over`` tells which other lines are no tokens.
    """
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    if separator is not None and not separator:
        raise ValueError("separator must not be empty")
    expected = "" if columns is None else " as asked for"
    name = name_of(source)
    block = Block()
    for number, line in numbered_lines(source):
        token = _split(line, separator)
        if not token:
            if block.lines:
                yield block
                block = Block()
            continue
        block.lines[number] = line
        if (comment and line.startswith(comment)) or passed_over(line):
            continue
        if columns is None:
            columns, expected = len(token), f" as in line {number}"
        if len(token) != columns:
            raise BadData(
                f"{name}:{number}: found {counted(len(token))} in {short_line(line)}, "
                f"expected {columns}{expected}"
            )
        if "" in token:
            raise BadData(
                f"{name}:{number}: found nothing in column {token.index('') + 1} of "
                f"{short_line(line)}, expected {columns} columns that are not empty"
            )
        block.tokens.append(token)
        block.places.append(number)
    if block.lines:
        yield block


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
                    f"sentence {number}, token {place}: found {counted(len(token))}, "
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


def _split(line: str, separator: str | None) -> Token:
    """The columns of a line; none if it is blank."""
    stripped = line.strip(" \t")
    if not stripped:
        return ()
    if separator is None:
        return tuple(BLANKS.split(stripped))
    # Trailing spaces are noise, but a trailing tab between tabs is an empty column.
    return tuple(line.rstrip(" ").split(separator))


def short_line(line: str) -> str:
    """A line as an error shows it."""
    return repr(line if len(line) <= 100 else line[:97] + "...")


def _writable(column: str, separator: str) -> bool:
    return bool(
        column
        and column == column.strip(" \t")
        and not column.startswith(BOM)
        and not any(mark in column for mark in (separator, "\t", "\r", "\n"))
    )


def counted(n: int) -> str:
    """So many columns, in words."""
    return f"{n} column" if n == 1 else f"{n} columns"
