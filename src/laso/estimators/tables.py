"""Weight tables made over: with more labels, or with a bias for some."""

from __future__ import annotations

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, Table
from laso.model_file import stored_rows, table_of


def wider(table: Table, more: int) -> Table:
    """The table with so many more labels, whose weights are zero."""
    if not more:
        return table
    v, u = (np.pad(weights, ((0, 0), (0, more))) for weights in (table.v, table.u))
    return table._replace(v=v, u=u)


def with_bias(table: Table, constants: list[int], amounts: Array) -> Table:
    """A table that only scores, with amounts added to the weights of some keys, for each label."""
    if not constants:
        raise ValueError(
            "no feature is there in every step, so there is none to add a bias to: "
            "expected 'bias' or 'label[-1]' among the templates, 'length' among those of chunks"
        )
    bits = int(table.ints[at.BITS])
    mask = (1 << bits) - 1 if bits else -1
    keys, rows = stored_rows(table)
    wanted = np.array(sorted({key & mask for key in constants}), np.int64)
    missing = np.setdiff1d(wanted, keys)
    v = np.concatenate([table.v[rows], np.zeros((len(missing), table.v.shape[1]), table.v.dtype)])
    keys = np.concatenate([keys, missing])
    v[np.isin(keys, wanted)] += amounts.astype(v.dtype)
    return table_of(keys, v, bits=bits)
