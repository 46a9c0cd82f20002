"""The values and base features of an encoder in model files without compression."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from laso.engine.layout import Array
from laso.errors import BadModel
from laso.features.base import apply_bases
from laso.features.encoder import ColumnEncoder, unpack_strings
from laso.features.keys import string_keys
from laso.features.stored import (
    Later,
    StoredValues,
    characters,
    pack_bases,
    pack_values,
    unpack_bases,
    unpack_values,
)

CHARACTERS = "unicode"
"""The key of the version of Unicode, in the header of what was learned."""


def plain_encoder(
    encoder: ColumnEncoder, header: dict[str, Any], tensors: dict[str, Array]
) -> tuple[dict[str, Any], dict[str, Array]]:
    """Return header and tensors of an encoder with tensors that need no unpacking.

    They stay as they are in the unlikely case that two strings have one hash.
    """
    made: dict[str, Array] = {}
    parts = {f"values.{c}": pack_values(list(v)) for c, v in encoder.vocabularies.items()}
    for i, view in enumerate(encoder.views.values()):
        if view.bases:
            parts[f"base.{i}"] = pack_bases(view.of_value, list(view.ids))
    for prefix, part in parts.items():
        if part is None:
            return header, tensors
        made |= {f"{prefix}.{name}": tensor for name, tensor in part.items()}
    others = {name: tensor for name, tensor in tensors.items() if name not in parts}
    return {**header, CHARACTERS: characters()}, others | made


def restore_encoder(encoder: ColumnEncoder, tensors: Mapping[str, Array], *, whole: bool) -> None:
    """Give an encoder the values of a file; base features are computed again if ``whole``."""
    for column in encoder.vocabularies:
        encoder.vocabularies[column] = unpack_values(_part(tensors, f"values.{column}."))
    for i, view in enumerate(encoder.views.values()):
        values = encoder.vocabularies[view.column]
        assert isinstance(values, StoredValues)
        if view.bases:
            compute = partial(apply_bases, view.bases, words=view.words)
            part = _part(tensors, f"base.{i}.")
            view.of_value, view.ids = unpack_bases(part, values, compute, whole=whole)
        else:
            view.of_value, view.ids = values.all_numbers(), values


def _part(tensors: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    """Return the tensors whose names begin so, without that."""
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def stored_names(stored: Array) -> Mapping[int, str]:
    """Return names of features by their keys, which are unpacked when one is needed."""

    def made() -> dict[int, str]:
        try:
            names = unpack_strings(stored)
        except ValueError as error:
            raise BadModel(f"found no names of features: {error}") from error
        return dict(zip(string_keys(names).tolist(), names, strict=True))

    return Later(made)
