"""What predicts the tags that a parser reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from laso.data.table import Columns, Data
from laso.engine.layout import Array


class Tags(Protocol):
    """Predicts tags in place of those that data has (see laso.estimators.learning.jackknife)."""

    fitted: list[Any]

    def learned(self, data: Data, names: tuple[str, ...]) -> Columns:
        """Return training data with tags predicted by taggers that have not seen them."""

    def tagged(self, data: Data) -> Columns:
        """Return data with predicted tags."""

    def tags_of(self, data: Data) -> list[list[Any]]:
        """Return the tags of what ``tagged`` returned."""

    def pack(self, *, compress: bool = True) -> dict[str, Array]:
        """Return the taggers as arrays."""

    def unpack(self, tensors: Mapping[str, Array]) -> None:
        """Take over what ``pack`` returned."""
