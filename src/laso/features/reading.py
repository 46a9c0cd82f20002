"""Files as tables of columns with positions: by compiled code as far as that can read them.

The general reader, ``laso.data.reading``, reads the others, with the same result and errors.
"""

from __future__ import annotations

import io
import os
from collections.abc import Generator, Iterator
from typing import IO, cast

import numpy as np

from laso.data.columns import batches, no_token
from laso.data.formats import ColumnRoles, Format, default_roles
from laso.data.lines import Resumed, Source, name_of
from laso.data.reading import check_format, format_of, read, whole
from laso.data.table import Columns, table_of
from laso.features.column_text import Batches, Reader, is_plain
from laso.features.value_tables import NewValues, no_values

ALL = 1 << 62  # tokens


def read_table(source: Source, *, format: Format | str = "columns") -> Columns:  # noqa: A002
    """Read all sentences of a file into columns with positions, which ``fit`` and ``predict`` take.

    Parameters
    ----------
    source : path or open file
        The text must be UTF-8.
    format : Format or str, default="columns"
        The format, or the name of one: "columns", "conllu", "jsonl" or "text".
    """
    form = format_of(format)
    if isinstance(source, (str, os.PathLike)):
        source = whole(source)
    table = next(read_tables(source, form, ALL), None)
    if table is None:
        raise no_token(name_of(source))
    return table


def read_column_file(file: io.BytesIO, form: Format) -> Columns:
    """Read a file of columns or of JSON lines; another, taken for columns, is BadData."""
    if form.kind == "jsonl":
        blocks = [block for block in read(file, format=form) if block.tokens]
        if not blocks:
            raise no_token(name_of(file))
        names = blocks[0].names
        roles = default_roles(form, names) if len(names) > 1 else ColumnRoles(names, (), 1)
        chosen = [names.index(name) for name in (*roles.inputs, *roles.labels)]
        return table_of(blocks).with_columns(chosen)
    check_format(name_of(file), form)
    return read_table(file)


def read_tables(source: Source, form: Format, tokens: int) -> Iterator[Columns]:
    """Yield the sentences of an open file, as many at a time as have so many tokens together."""
    rest: Source | None = source
    if is_plain(form) and not isinstance(source, (str, os.PathLike, io.TextIOBase, Resumed)):
        rest = yield from _plain_tables(Batches(cast("IO[bytes]", source), form, tokens))
    if rest is not None:
        for blocks in batches(read(rest, format=form), tokens):
            if any(block.tokens for block in blocks):
                yield table_of(blocks)


def _plain_tables(found: Batches) -> Generator[Columns, None, Resumed | None]:
    """Yield tables as far as compiled code reads a file; return what the general code must read."""
    reader, width, first = None, 0, 0
    if found.is_short:
        return found.left([])
    for batch in found:
        if reader is None:
            block = found.first_block(batch)
            if block is None:
                return found.left([batch])
            width, first = len(block.names), block.line_numbers[0]
            values = NewValues(no_values(width))
            reader = Reader(values, found.form, np.arange(width), found.name)
        table = reader.table(batch)
        if table is None:
            return found.left([batch], width, first)
        if len(table):
            yield table
    return None
