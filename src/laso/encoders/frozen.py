"""Encoders that stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laso.encoders.base import (
    Array,
    Encoder,
    Progress,
    Sentence,
    dimensions_of,
    encoded,
    fingerprint_of,
    name_of,
)


class Frozen:
    """An encoder without what makes it learn: see ``frozen``."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoder: Any = encoder

    @property
    def name(self) -> str:
        """The name of the encoder."""
        return name_of(self.encoder)

    @property
    def dimensions(self) -> int:
        """The number of dimensions of its vectors."""
        return dimensions_of(self.encoder)

    @property
    def fingerprint(self) -> str:
        """A hash of what determines its vectors."""
        return fingerprint_of(self.encoder)

    def encode(
        self, sentences: Sequence[Sentence], progress: Progress | None = None
    ) -> list[Array]:
        """Return the vectors of the words of sentences."""
        return encoded(self.encoder, sentences, progress)


def frozen(encoder: Encoder) -> Frozen:
    """Return an encoder of the same vectors that does not learn, although this one could.

    Examples
    --------
    >>> import numpy as np
    >>> from laso.encoders import LearningEncoder, LinearEncoder
    >>> class Letters:
    ...     def encode(self, sentences):
    ...         return [np.array([[w == "a", w == "b"] for w in words]) for words in sentences]
    >>> encoder = LinearEncoder(Letters())
    >>> isinstance(encoder, LearningEncoder), isinstance(frozen(encoder), LearningEncoder)
    (True, False)
    """
    return Frozen(encoder)
