"""The values and base features of an encoder in model files without compression.

A file has the strings of each vocabulary, and of each base feature the numbers of all values.
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


def plain_encoder(
    encoder: ColumnEncoder, header: dict[str, Any], tensors: dict[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and tensors of an encoder with tensors that need no unpacking."""
    parts = {f"values.{column}": values.pack() for column, values in encoder.vocabularies.items()}
    made = {name: tensor for name, tensor in tensors.items() if name not in parts}
    for i, view in enumerate(encoder.views.values()):
        if view.bases:
            parts[f"base.{i}"] = {**view.ids.pack(), "numbers": view.of_value.astype("<i4")}
    for prefix, part in parts.items():
        made |= {f"{prefix}.{name}": tensor for name, tensor in part.items()}
    return {**header, CHARACTERS: characters()}, made


def restore_encoder(encoder: ColumnEncoder, tensors: Mapping[str, Array], *, whole: bool) -> None:
    """Give an encoder the values of a file; base features are computed again if ``whole``."""
    for column in encoder.vocabularies:
        part = _part(tensors, f"values.{column}.")
        encoder.vocabularies[column] = Vocabulary.unpack(part, distinct=True)
    for i, view in enumerate(encoder.views.values()):
        values = encoder.vocabularies[view.column]
        if view.bases:
            _restore_bases(view, _part(tensors, f"base.{i}."), values, whole=whole)
        else:
            view.ids, view.of_value = values, np.arange(len(values), dtype=np.int32)


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
    some = np.linspace(0, max(0, len(values) - 1), n, dtype=np.int64)
    if apply_bases(view.bases, values.some(some), view.words) != view.ids.some(numbers[some]):
        raise other_bases()
    view.of_value = numbers


def _part(tensors: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the tensors whose names begin so, without that."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def other_bases() -> BadModel:
    """Return the error about base features that differ from those of training."""
    return BadModel(
        "its base features come out otherwise here, perhaps because another version of Python "
        "knows other characters"
    )


def characters() -> str:
    """Return the version of Unicode that base features follow."""
    return unicodedata.unidata_version
