"""Inputs and outputs of a compiled problem as one dataset of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.errors import BadData


def make_dataset(
    inputs: Iterable[Any],
    outputs: Iterable[Any] | None = None,
    *,
    spec: Sequence[int] | Array = (),
    pool: Any = (),
    values: Any = (),
) -> Dataset:
    """Join inputs (tables of integers, one row per item) and outputs (rows of integers) to arrays.

    The problem's methods receive ``spec``, ``pool`` and ``values`` unchanged.

    Examples
    --------
    >>> from laso import make_dataset
    >>> dataset = make_dataset([[3, 5], [7]], [[0, 1], [1]])
    >>> dataset.items.ravel().tolist(), dataset.starts.tolist()
    ([3, 5, 7], [0, 2, 3])
    """
    tables = [_table(x, i) for i, x in enumerate(inputs)]
    gold = [np.asarray(y, np.int32).reshape(-1) for y in (outputs if outputs is not None else ())]
    if outputs is not None and len(gold) != len(tables):
        raise BadData(f"found {len(tables)} inputs but {len(gold)} outputs")
    columns = {x.shape[1] for x in tables}
    if len(columns) > 1:
        raise BadData(f"all inputs need equally many columns, found {sorted(columns)}")
    return Dataset(
        items=_joined(tables, np.zeros((0, columns.pop() if columns else 1), np.int32)),
        starts=_starts(tables),
        pool=np.ascontiguousarray(pool, np.int64),
        values=np.ascontiguousarray(values, np.float32),
        spec=np.ascontiguousarray(spec, np.int64),
        outputs=_joined(gold, np.zeros(0, np.int32)),
        output_starts=_starts(gold if outputs is not None else tables[:0]),
    )


def _table(x: Any, i: int) -> Array:
    table = np.asarray(x)
    if table.size and not np.issubdtype(table.dtype, np.integer):
        raise BadData(f"input {i + 1} must be a table of integers, found {table.dtype}")
    if table.ndim == 1:
        table = table.reshape(-1, 1)
    if table.ndim != 2:
        raise BadData(
            f"input {i + 1} must have one row for each item, found {table.ndim} dimensions"
        )
    return np.asarray(table, np.int32)


def _joined(arrays: list[Array], empty: Array) -> Array:
    return np.ascontiguousarray(np.concatenate(arrays)) if arrays else empty


def _starts(arrays: list[Array]) -> Array:
    return np.concatenate([[0], np.cumsum([len(a) for a in arrays], dtype=np.int64)]).astype(
        np.int64
    )
