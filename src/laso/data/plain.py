"""The fast parser of plain column files: bytes to integer codes, without a string per token."""

from __future__ import annotations

import numpy as np

from laso.data.formats import Format
from laso.data.lines import BOM
from laso.data.table import Array, Column, Columns, Factor

PIECE = 1 << 18  # bytes of a file to split into tokens at a time
_TAB, _LINE_FEED, _SPACE = 9, 10, 32


def plain_columns(data: bytes, form: Format, name: str) -> Columns | None:
    """Return the columns of a plain file with positions; None if ``read`` must read the file.

    A file is plain if it is valid UTF-8, has line feeds only, no comments, and in every line the
    same number of columns with exactly one separator between them and no blanks at the ends.
    """
    separator = b"" if form.separator is None else form.separator.encode("utf-8", "surrogatepass")
    if form.separator == "" or len(separator) > 1 or not _is_plain_text(data, form.comment):
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    text = np.frombuffer(data, np.uint8)
    new_line = text == _LINE_FEED
    blank = (text == _SPACE) | (text == _TAB)
    between = text == separator[0] if separator else blank
    apart = between | new_line
    if between[0] or (between[1:] & apart[:-1]).any() or (between[:-1] & apart[1:]).any():
        return None
    if separator and (blank[:-1] & new_line[1:]).any():
        return None
    ends = np.flatnonzero(new_line)
    starts = np.concatenate([[0], ends[:-1] + 1])
    full = np.flatnonzero(ends > starts)
    n, width = len(full), _width(np.flatnonzero(between), starts[full], ends[full])
    if width is None or width != (len(form.names) or width):
        return None
    # A line that follows another without a gap continues its sentence.
    firsts = np.flatnonzero(np.diff(full, prepend=-2) > 1)
    lengths = np.diff(firsts, append=n)
    columns = _factors(data, width, separator or None)
    return Columns(lengths, columns, name, (full + 1).astype(np.int32))


def _is_plain_text(data: bytes, comment: str | None) -> bool:
    if any(mark in data for mark in (b"\r", b"\v", b"\f")) or data.startswith(BOM.encode()):
        return False
    if comment:
        start = comment.encode("utf-8", "surrogatepass")
        if data.startswith(start) or b"\n" + start in data:
            return False
    try:
        if not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _width(separators: Array, begins: Array, ends: Array) -> int | None:
    """Return the number of columns of all lines; None if there is no line or the lines differ."""
    n = len(begins)
    if not n or len(separators) % n:
        return None
    width = len(separators) // n + 1
    if width > 1:
        by_line = separators.reshape(n, width - 1)
        if not ((by_line[:, 0] > begins) & (by_line[:, -1] < ends)).all():
            return None
    return width


def _factors(data: bytes, width: int, separator: bytes | None) -> list[Column]:
    """Code the columns piece by piece, so that few tokens are strings at a time."""
    numbers: list[dict[bytes, int]] = [{} for _ in range(width)]
    codes: list[list[Array]] = [[] for _ in range(width)]
    first = 0
    while first < len(data):
        end = data.index(b"\n", min(first + PIECE, len(data) - 1)) + 1
        tokens = _tokens(data[first:end], separator)
        for j, number in enumerate(numbers):
            column = tokens[j::width]
            for value in dict.fromkeys(column):
                number.setdefault(value, len(number))
            codes[j].append(np.fromiter(map(number.__getitem__, column), np.int32, len(column)))
        first = end
    return [
        Factor(np.concatenate(parts), [value.decode("utf-8") for value in number])
        for parts, number in zip(codes, numbers, strict=True)
    ]


def _tokens(piece: bytes, separator: bytes | None) -> list[bytes]:
    if separator is None:
        return piece.split()
    return list(filter(None, piece.replace(b"\n", separator).split(separator)))
