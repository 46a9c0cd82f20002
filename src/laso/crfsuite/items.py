"""The features of a sequence, prepared once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from laso.errors import BadData, quoted
from laso.features.inputs import token_features


class ItemSequence:
    """The features of a sequence as dicts of numbers.

    Parameters
    ----------
    pyseq : iterable of tokens
        A token is a dict, or any other iterable of feature names. A value may be a number, a truth
        value, a string, or a dict or a list of these.

    Examples
    --------
    >>> ItemSequence([["foo"], {"bar": {"baz": 1}, "spam": "egg"}]).items()
    [{'foo': 1.0}, {'bar:baz': 1.0, 'spam:egg': 1.0}]
    """

    def __init__(self, pyseq: Iterable[Any]) -> None:
        if isinstance(pyseq, (str, bytes)) or not hasattr(pyseq, "__iter__"):
            raise BadData(f"found {quoted(pyseq)}, expected a list of tokens")
        is_ready = isinstance(pyseq, ItemSequence)
        self._items = list(pyseq) if is_ready else [token_features(token) for token in pyseq]

    def items(self) -> list[dict[str, float]]:
        """Return the features of each token with their values."""
        return [dict(item) for item in self._items]

    def __iter__(self) -> Iterator[dict[str, float]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __repr__(self) -> str:
        return f"<ItemSequence of size {len(self)}>"
