"""Columns that users pass as tuples of strings or as strings, numbered by compiled code.

``marshal`` writes them as bytes in one pass. Whatever it cannot write, and whatever else is there,
``laso.features.inputs`` reads, with the same result.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from laso.data.table import ItemColumns
from laso.engine.native import text_kernels
from laso.engine.text import layout as lt
from laso.engine.text.layout import Cells, Marshalled
from laso.features.encoder import ColumnEncoder
from laso.features.feature_lists import SLICE, is_usable, read_slice
from laso.features.value_tables import NewValues, is_numbered, known_values


def read_cells(sentences: Any, encoder: ColumnEncoder, layers: int) -> ItemColumns | None:
    """Return sentences with numbered columns; None if the general code must read them.

    Tokens may have ``layers`` columns of labels behind those of the encoder.
    """
    if type(sentences) is not list or len(sentences) < 2 or not is_numbered(encoder):
        return None
    token = next((s[0] for s in sentences if type(s) in (list, tuple) and s), None)
    width = 1 if type(token) is str else len(token) if type(token) is tuple else 0
    inputs = len(encoder.names)
    if width not in (inputs, inputs + layers):
        return None
    if not is_usable():
        return None
    roles = np.full(width, -1, np.int64)
    for column in encoder.vocabularies:
        roles[column] = column
    try:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
    except TypeError:
        return None
    cells = Cells(np.zeros((int(lengths.sum()), inputs), np.int32), np.zeros_like(lengths))
    values = _new_values(encoder)
    if not _read(sentences, roles, cells, values):
        return None
    items = values.items(cells.codes)
    values.known.spare.append(values)
    return ItemColumns(lengths, [], items=items)


def _new_values(encoder: ColumnEncoder) -> NewValues:
    """Return the new values of earlier calls, which no other thread has now, or an empty table."""
    known = known_values(encoder)
    try:
        values = known.spare.pop()
    except IndexError:
        return NewValues(known)
    values.limit()
    return values


def _read(sentences: list[Any], roles: Any, cells: Cells, found: NewValues) -> bool:
    """Read the codes of all cells; False if there is something that only general code reads."""
    meta = np.zeros(len(lt.TextMeta), np.int64)

    def call(given: Marshalled) -> int:
        arrays = (given, roles, cells, found.known.lexicon, found.lexicon)
        return int(text_kernels()("read_cells", *arrays)[0])

    for first in range(0, len(sentences), SLICE):
        try:
            if not read_slice(sentences[first : first + SLICE], meta, call, found.make_room):
                return False
        except ValueError:  # it cannot write everything
            return False
    kinds = int(meta[lt.TOKEN_KINDS])
    return kinds in (lt.AS_TUPLE, lt.AS_STRING) and int(meta[lt.N_TOKENS]) == len(cells.codes)
