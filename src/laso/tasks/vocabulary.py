"""Vocabularies: dictionaries from the strings of a task's items to integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadData, quoted

UNKNOWN = -1
"""The number of a string that did not occur in training."""


@dataclass
class Vocabulary:
    """One dictionary for each column of the items; integers are kept unchanged."""

    columns: list[dict[str, int]] = field(default_factory=list)

    def number(self, rows: Sequence[Any], *, grow: bool, example: int) -> Array:
        """Return the items of one input as an integer matrix with a row for each item.

        An item is a string, an integer, or a tuple of them. With ``grow``, new strings get new
        numbers, otherwise they are ``UNKNOWN``.
        """
        tuples = [row if isinstance(row, (tuple, list)) else (row,) for row in rows]
        width = len(tuples[0]) if tuples else max(1, len(self.columns))
        if not self.columns:
            self.columns = [{} for _ in range(width)]
        for i, row in enumerate(tuples):
            if len(row) != len(self.columns):
                raise BadData(
                    f"found {len(row)} columns, expected {len(self.columns)}, as the model was "
                    "trained on",
                    sentence=example + 1,
                    token=i + 1,
                )
        table = np.zeros((len(tuples), len(self.columns)), np.int32)
        for j, known in enumerate(self.columns):
            table[:, j] = [
                self._one(known, row[j], grow, example, i) for i, row in enumerate(tuples)
            ]
        return table

    @staticmethod
    def _one(known: dict[str, int], value: Any, grow: bool, example: int, i: int) -> int:
        if isinstance(value, str) and grow:
            return known.setdefault(value, len(known))
        if isinstance(value, str) and known:
            return known.get(value, UNKNOWN)
        whole = isinstance(value, (int, np.integer)) and -(1 << 31) <= value < 1 << 31
        if whole and (grow or not known):
            return int(value)
        expected = "a string or an integer of 32 bits"
        if not grow:
            kind = "a string" if known else "an integer of 32 bits"
            expected = f"{kind}, as the model was trained on"
        raise BadData(
            f"found {quoted(value)}, expected {expected}",
            sentence=example + 1,
            token=i + 1,
        )
