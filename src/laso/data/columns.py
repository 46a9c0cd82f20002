"""Column files: one token per line, columns separated by blanks, a blank line after each sentence.

This is the format of CoNLL-2000 and of most tagged corpora since.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO, TypeAlias

from laso.data.lines import BOM, Resumed, Source, name_of, numbered_lines
from laso.errors import BadData, counted, quoted
from laso.files.atomic import write_text

Token: TypeAlias = tuple[str, ...]
Sentence: TypeAlias = list[Token]

# Not str.split(): a no-break space belongs to the word it is in.
BLANKS = re.compile("[ \t]+")
DOCUMENT = "-DOCSTART-"  # a line that begins so is no token, unless comments begin otherwise
SHOWN = 100  # characters of a line that an error shows


@dataclass
class Block:
    """A sentence of a file, with the lines it was read from."""

    tokens: list[tuple[Any, ...]] = field(default_factory=list)
    line_numbers: list[int] = field(default_factory=list)  # of each token, counted from 1
    lines: dict[int, str] = field(default_factory=dict)  # all lines by number, with comments
    names: tuple[str, ...] = ()  # of the columns
    fields: dict[str, Any] | None = None  # the JSON object of a line of JSON
    source: str = ""  # the name of the file


def read_columns(
    path_or_file: Source,
    *,
    columns: int | None = None,
    separator: str | None = None,
    comment: str | None = None,
) -> list[Sentence]:
    """Read the sentences of a column file: lists of tokens, each a tuple of its columns.

    Parameters
    ----------
    path_or_file : path or open file
        The text must be UTF-8.
    columns : int, optional
        The number of columns; by default that of the first line.
    separator : str, optional
        The text between two columns; by default any number of spaces and tabs.
    comment : str, optional
        Lines that begin with this text are skipped; by default ``-DOCSTART-``, which marks
        documents in the files of CoNLL-2003. Other words may begin with any character.

    Examples
    --------
    >>> import io
    >>> read_columns(io.StringIO("The DT\\ncat NN\\n\\nIt PRP\\n"))
    [[('The', 'DT'), ('cat', 'NN')], [('It', 'PRP')]]
    """
    sentences = [
        block.tokens
        for block in read_blocks(
            path_or_file, columns=columns, separator=separator, comment=comment
        )
        if block.tokens
    ]
    if not sentences:
        raise no_token(name_of(path_or_file))
    return sentences


def no_token(file: str) -> BadData:
    """Return the error about a file without tokens."""
    return BadData("found no token in the file, expected one token a line", file=file, line=1)


def read_blocks(
    source: Source,
    *,
    columns: int | None = None,
    separator: str | None = None,
    comment: str | None = None,
    skip: Callable[[str], bool] = lambda line: False,
) -> Iterator[Block]:
    """Yield the text between blank lines as it is read; for the options see ``read_columns``.

    ``skip`` decides which other lines are not tokens.
    """
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, not {columns}")
    if separator is not None and not separator:
        raise ValueError("separator must not be empty")
    expected = "" if columns is None else " as asked for"
    if columns is None and isinstance(source, Resumed) and source.columns:
        columns, expected = source.columns, f" as in line {source.first}"
    name = name_of(source)
    names = _numbers(columns)
    block = Block(names=names, source=name)
    for number, line in numbered_lines(source):
        token = _split(line, separator)
        if not token:
            if block.lines:
                yield block
                block = Block(names=names, source=name)
            continue
        block.lines[number] = line
        if line.startswith(comment or DOCUMENT) or skip(line):
            continue
        if columns is None:
            columns, expected = len(token), f" as in line {number}"
            block.names = names = _numbers(columns)
        if len(token) != columns or "" in token:
            message = _malformed(token, line, columns, expected)
            raise BadData(message, file=name, line=number)
        block.tokens.append(token)
        block.line_numbers.append(number)
    if block.lines:
        yield block


def batches(blocks: Iterable[Block], size: float) -> Iterator[list[Block]]:
    """Yield lists of blocks that have at least ``size`` tokens together."""
    batch: list[Block] = []
    tokens = 0
    for block in blocks:
        batch.append(block)
        tokens += len(block.tokens)
        if tokens >= size:
            yield batch
            batch, tokens = [], 0
    if batch:
        yield batch


def _numbers(columns: int | None) -> tuple[str, ...]:
    """Return the default names of columns: their numbers, counted from 1."""
    return tuple(map(str, range(1, (columns or 0) + 1)))


def _malformed(token: Token, line: str, columns: int, expected: str) -> str:
    shown = quoted(line, limit=SHOWN)
    if len(token) != columns:
        return f"found {counted(len(token), 'column')} in {shown}, expected {columns}{expected}"
    return (
        f"found nothing in column {token.index('') + 1} of {shown}, expected {columns} columns "
        "that are not empty"
    )


def write_columns(
    path_or_file: str | os.PathLike[str] | TextIO,
    sentences: Iterable[Sequence[Sequence[str]]],
    *,
    separator: str = " ",
) -> None:
    """Write sentences so that ``read_columns`` reads them back; what it could not read is refused.

    ``separator`` is a space or a tab.

    Examples
    --------
    >>> import sys
    >>> write_columns(sys.stdout, [[("The", "DT"), ("cat", "NN")]])
    The DT
    cat NN
    """
    if separator not in (" ", "\t"):
        raise ValueError(f"separator must be a space or a tab, not {separator!r}")
    width = 0
    blocks = []
    for number, sentence in enumerate(sentences, start=1):
        if not sentence:
            raise BadData("found no token, expected at least one", sentence=number)
        width = width or len(sentence[0])
        for place, token in enumerate(sentence, start=1):
            message = _unwritable(token, width, separator)
            if message:
                raise BadData(message, sentence=number, token=place)
        blocks.append("".join(separator.join(token) + "\n" for token in sentence))
    if not blocks:
        raise BadData("found no sentence to write, expected at least one")
    text = "\n".join(blocks)
    if isinstance(path_or_file, (str, os.PathLike)):
        write_text(path_or_file, text)
    else:
        path_or_file.write(text)


def _split(line: str, separator: str | None) -> Token:
    """Return the columns of a line; none if the line is blank."""
    stripped = line.strip(" \t")
    if not stripped:
        return ()
    if separator is not None:
        # Trailing spaces are noise, but a trailing tab between tabs is an empty column.
        return tuple(line.rstrip(" ").split(separator))
    if "\t" in stripped or "  " in stripped:
        return tuple(BLANKS.split(stripped))
    return tuple(stripped.split(" "))  # the usual case, without a regular expression


def _unwritable(token: Sequence[str], width: int, separator: str) -> str:
    """Return what is wrong with a token to write; nothing if it can be read back."""
    if len(token) != width or not width:
        return f"found {counted(len(token), 'column')}, expected {width or 'at least 1'}"
    if token[0].startswith(DOCUMENT):
        return f"found {quoted(token[0])}, which marks documents, expected a word"
    for column in token:
        if not _writable(column, separator):
            return (
                f"found the column {quoted(column)}, expected text without separators, ends of "
                "lines or blanks at its ends"
            )
    return ""


def _writable(column: str, separator: str) -> bool:
    return bool(
        column
        and column == column.strip(" \t")
        and not column.startswith(BOM)
        and not any(mark in column for mark in (separator, "\t", "\r", "\n"))
    )
