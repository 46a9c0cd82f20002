"""The values and base features of an encoder in model files.

A file has the strings of each vocabulary; one without compression has those of each base feature,
too, and the numbers of all values.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadModel
from laso.features.base import apply_bases
from laso.features.encoder import ColumnEncoder, View
from laso.features.vocabulary import Vocabulary

CHARACTERS = "unicode"
"""The key of the version of Unicode, in the header of what was learned."""
SAMPLE = 64  # values of which base features are computed again when a model is loaded


def values_of(encoder: ColumnEncoder) -> dict[str, Array]:
    """Return the values of all columns as tensors."""
    return _joined({f"values.{c}": known.pack() for c, known in encoder.vocabularies.items()})


def bases_of(encoder: ColumnEncoder) -> dict[str, Array]:
    """Return the base features of all values as tensors, for a file without compression."""
    return _joined(
        {
            f"base.{i}": {**view.ids.pack(), "numbers": view.of_value.astype("<i4")}
            for i, view in enumerate(encoder.views.values())
            if view.bases
        }
    )


def checksums(encoder: ColumnEncoder) -> list[int]:
    """Return a checksum of each base feature of all values."""
    return [view.checksum() for view in encoder.views.values() if view.bases]


def restore_encoder(
    encoder: ColumnEncoder, header: Mapping[str, Any], tensors: Mapping[str, Array]
) -> None:
    """Give an encoder the values of a file, and their base features.

    A file without compression has base features; these are computed again if they followed another
    version of Unicode.
    """
    for column in encoder.vocabularies:
        part = _part(tensors, f"values.{column}.")
        encoder.vocabularies[column] = Vocabulary.unpack(part, distinct=True)
    is_plain = CHARACTERS in header
    for i, view in enumerate(encoder.views.values()):
        values = encoder.vocabularies[view.column]
        if not view.bases:
            view.ids, view.of_value = values, np.arange(len(values), dtype=np.int32)
        elif is_plain:
            whole = header[CHARACTERS] != characters()
            _restore_bases(view, _part(tensors, f"base.{i}."), values, whole=whole)
        else:
            view.grow(list(values))
    if not is_plain and checksums(encoder) != header["base features"]:
        raise _other_bases()


def _restore_bases(
    view: View, tensors: Mapping[str, Array], values: Vocabulary, *, whole: bool
) -> None:
    """Give a view its strings, and the number of each value; wrong ones raise BadModel.

    Base features of some values are computed again, of all if ``whole``.
    """
    numbers, view.ids = tensors["numbers"], Vocabulary.unpack(tensors, distinct=False)
    if numbers.dtype.str != "<i4" or len(numbers) != len(values):
        raise BadModel(f"found {len(numbers)} base features as {numbers.dtype.str}")
    if len(values) and not (numbers.min() >= 0 and numbers.max() < len(view.ids)):
        raise BadModel("found base features of other strings")
    n = len(values) if whole else min(SAMPLE, len(values))
    sample = np.linspace(0, max(0, len(values) - 1), n, dtype=np.int64)
    if apply_bases(view.bases, values.some(sample), view.words) != view.ids.some(numbers[sample]):
        raise _other_bases()
    view.of_value = numbers


def _joined(parts: Mapping[str, Mapping[str, Array]]) -> dict[str, Array]:
    """Return the tensors of all parts, whose names begin with that of the part."""
    return {f"{prefix}.{n}": t for prefix, part in parts.items() for n, t in part.items()}


def _part(tensors: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the tensors whose names begin so, without that."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def _other_bases() -> BadModel:
    """Return the error about base features that differ from those of training."""
    return BadModel(
        "its base features come out otherwise here, perhaps because another version of Python "
        "knows other characters"
    )


def characters() -> str:
    """Return the version of Unicode that base features follow."""
    return unicodedata.unidata_version
