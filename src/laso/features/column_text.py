"""Column files read by compiled code: batches of whole blocks, their cells as items.

What a file may have and this code does not read, ``laso.data.columns`` reads.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from laso.data.columns import DOCUMENT, Block
from laso.data.formats import Format, cells
from laso.data.lines import BOM, Resumed, name_of
from laso.data.reading import read
from laso.data.table import Array, Columns, ItemColumns
from laso.engine import thresholds
from laso.engine.native import text_kernels
from laso.engine.text import layout as lt
from laso.engine.text.layout import PAD, Cells, Lines
from laso.engine.text.lexicon import MOST_COLUMNS
from laso.errors import BadData
from laso.features.value_tables import NewValues

CHUNK = 1 << 18  # bytes to read at a time
NONE = np.zeros(0, np.int64)


def is_plain(form: Format) -> bool:
    """Return whether compiled code reads files of a format, as far as that can be told."""
    marks = (form.separator or " ", form.comment or "#")
    return (
        form.kind == "columns"
        and form.separator != ""
        and len((form.separator or " ").encode("utf-8", "replace")) == 1
        and not any(mark in text for mark in "\r\n" for text in marks)
    )


@dataclass(frozen=True)
class Batch:
    """Whole blocks of a file.

    Parameters
    ----------
    text : array of uint8
        The bytes, and some that follow.
    size : int
        The number of bytes.
    lines : int
        The number of lines.
    lines_before, bytes_before : int
        What is before it in the file.
    """

    text: Array
    size: int
    lines: int
    lines_before: int
    bytes_before: int

    def content(self) -> bytes:
        """Return the bytes."""
        return self.text[: self.size].tobytes()

    @property
    def start(self) -> int:
        """The place of the first line: after the byte order mark of a file."""
        mark = BOM.encode()
        return len(mark) if not self.bytes_before and self.content().startswith(mark) else 0


class Batches:
    """Splits a file into batches, each of the fewest blocks that have so many tokens together."""

    def __init__(self, file: IO[bytes], form: Format, tokens: int) -> None:
        self.file, self.form, self.name = file, form, name_of(file)
        self.comment = comment_of(form)
        self.tokens = tokens
        self.rest = file.read(CHUNK)  # bytes that were read and are in no batch yet

    @property
    def is_short(self) -> bool:
        """Whether the file is so short that the general code reads it as fast."""
        return len(self.rest) < min(thresholds.SHORT_FILE, CHUNK)

    def __iter__(self) -> Iterator[Batch]:
        lines = before = 0
        meta, ended = np.zeros(len(lt.LinesMeta), np.int64), False
        meta[lt.ENOUGH] = self.tokens
        meta[lt.LINES_STOP] = self.rest.rfind(b"\n") + 1
        if self.rest.startswith(BOM.encode()):
            meta[lt.LINES_AT] = len(BOM.encode())
        while True:
            text = padded(self.rest)
            given = Lines(text, self.comment, NONE, NONE[:, None], NONE.astype(np.int32), meta)
            status, begin = lt.READ, 0
            while status == lt.READ:
                status, _ = text_kernels()("find_batch", given)
                end = int(meta[lt.LINES_AT])
                if status == lt.READ or (ended and end > begin):
                    n = int(meta[lt.LINES_READ])
                    self.rest = self.rest[end - begin :]
                    yield Batch(text[begin : end + PAD], end - begin, n, lines, before)
                    lines, before, begin = lines + n, before + end - begin, end
                    meta[lt.LINES_READ] = meta[lt.N_WORDS] = 0
            if ended:
                return
            more = self.file.read(max(CHUNK, len(self.rest)))
            ended = not more
            self._add(meta, more, begin)

    def first_block(self, batch: Batch) -> Block | None:
        """Return the first sentence of a batch; None if only the general code can read it."""
        try:
            blocks = read(io.BytesIO(batch.content()), format=self.form)
            block = next((block for block in blocks if block.tokens), None)
        except BadData:  # the general code raises it, after what is before
            return None
        return block if block is None or len(block.names) <= MOST_COLUMNS else None

    def left(self, batches: Sequence[Batch], columns: int = 0, first: int = 0) -> Resumed:
        """Return what is from these batches on, for the general code; see ``Resumed``."""
        known = b"".join(batch.content() for batch in batches) + self.rest
        known += b"" if known.endswith(b"\n") else self.file.readline()
        lines, offset = (batches[0].lines_before, batches[0].bytes_before) if batches else (0, 0)
        parts = (io.BytesIO(known), self.file)
        return Resumed(self.name, parts, lines, offset, columns, first)

    def _add(self, meta: Array, data: bytes, begin: int) -> None:
        """Append bytes to the rest, whose first ``begin`` bytes were removed."""
        if not data and self.rest and not self.rest.endswith(b"\n"):
            data = b"\n"
        self.rest += data
        meta[lt.LINES_AT] -= begin
        meta[lt.LINES_STOP] = self.rest.rfind(b"\n") + 1


def padded(data: bytes) -> Array:
    """Return bytes as an array with some more, which compiled code may read."""
    text = np.zeros(len(data) + PAD, np.uint8)
    text[: len(data)] = np.frombuffer(data, np.uint8)
    return text


def comment_of(form: Format) -> Array:
    """Return the bytes with which comments begin."""
    comment = (form.comment or DOCUMENT).encode("utf-8", "surrogatepass")
    return np.frombuffer(bytearray(comment), np.uint8)


class Reader:
    """Reads the cells of batches of a file; one thread at a time may use it.

    Parameters
    ----------
    values : NewValues
        Numbers the values.
    form : Format
        The format of the file.
    roles : array of int64
        The input column of each column of the file, -1 if it is none.
    name : str
        The name of the file.
    """

    def __init__(self, values: NewValues, form: Format, roles: Array, name: str) -> None:
        self.values, self.roles, self.name = values, roles, name
        self.comment = comment_of(form)
        self.separator = -1 if form.separator is None else ord(form.separator)

    def items(self, batch: Batch) -> tuple[ItemColumns, Lines] | None:
        """Return the sentences of a batch, and its lines; None if general code must read it."""
        self.values.limit()
        cells, given = self._cells(batch) or (None, None)
        if cells is None or given is None:
            return None
        items, numbers = self.values.items(cells.codes), given.numbers[: len(cells.codes)]
        return ItemColumns(cells.lengths, [], self.name, numbers, items=items), given

    def table(self, batch: Batch) -> Columns | None:
        """Return the sentences of a batch with their values; None if general code must read it."""
        self.values.clear()
        cells, given = self._cells(batch) or (None, None)
        if cells is None or given is None:
            return None
        columns = self.values.factors(cells.codes)
        return Columns(cells.lengths, columns, self.name, given.numbers[: len(cells.codes)])

    def _cells(self, batch: Batch) -> tuple[Cells, Lines] | None:
        if not _is_text(batch.content()):
            return None
        n = batch.lines
        given = Lines(
            batch.text,
            self.comment,
            self.roles,
            np.empty((2 * n + 1, len(lt.LineColumn)), np.int64),
            np.empty(n, np.int32),
            np.zeros(len(lt.LinesMeta), np.int64),
        )
        given.meta[[lt.LINES_AT, lt.LINES_STOP, lt.LINES_READ, lt.SEPARATOR]] = (
            batch.start,
            batch.size,
            batch.lines_before,
            self.separator,
        )
        values, width = self.values, len(self.values.known.views)
        cells = Cells(np.zeros((n, width), np.int32), np.empty(n, np.int64))
        status = lt.MORE_TEXT
        while status == lt.MORE_TEXT:
            status, tokens = text_kernels()(
                "read_lines", given, cells, values.known.lexicon, values.lexicon
            )
            if status == lt.MORE_TEXT:
                values.make_room()
        if status != lt.READ:
            return None
        return Cells(cells.codes[:tokens], cells.lengths[: int(given.meta[lt.N_SENTENCES])]), given


def _is_text(data: bytes) -> bool:
    try:
        if not data.isascii():
            data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def written(given: Lines, codes: Array, outputs: Sequence[Any], *, form: Format) -> memoryview:
    """Return the lines of a batch with the outputs of its tokens behind them."""
    blank = form.separator or " "
    texts = [
        separator.join(["", *map(str, cells(output))]).encode()
        for separator in (blank, "\t")
        for output in outputs
    ]
    ends = np.zeros(len(texts) + 1, np.int64)
    ends[1:] = np.cumsum([len(text) for text in texts]) if texts else 0
    longest = max(map(len, texts), default=0)
    n = len(given.bytes) + len(codes) * longest + int(given.meta[lt.N_LINES])
    out = np.empty(n, np.uint8)
    size, _ = text_kernels()(
        "write_lines",
        given,
        np.ascontiguousarray(codes, np.int32),
        ends,
        padded(b"".join(texts)),
        out,
    )
    return out[:size].data
