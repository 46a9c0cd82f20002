"""The dense vectors of a model in its file: their encoder's name, and what standardises them."""

from __future__ import annotations

from typing import Any

import numpy as np

from laso.errors import BadModel, quoted
from laso.features.dense import Dense, is_built_in, is_scale
from laso.files.container import Header, Tensors

MEAN, DEVIATION = "vectors.mean", "vectors.deviation"
MOST = 1 << 20  # dimensions


def packed_dense(dense: Dense | None) -> tuple[Header, Tensors]:
    """Return header and tensors; both are empty if a model has no vectors."""
    if dense is None or not dense.size:
        return {}, {}
    header = {
        "dimensions": dense.size,
        "scale": dense.scale,
        "encoder": dense.name,
        "fingerprint": dense.fingerprint,
    }
    return header, {MEAN: dense.mean, DEVIATION: dense.deviation}


def restored_dense(header: Any, tensors: Tensors, encoder: Any) -> Dense:
    """Return what ``packed_dense`` packed, with the encoder that is given, or a built-in one."""
    if header is None:
        if encoder is not None:
            raise BadModel("found a model without vectors, expected no encoder for it")
        dense = Dense()
        dense.size = 0
        return dense
    texts = [header[name] for name in ("encoder", "fingerprint")]
    size, scale = header["dimensions"], header["scale"]
    if not all(isinstance(text, str) for text in texts) or type(size) is not int or size < 1:
        raise BadModel(f"found the vectors {quoted(header)}, expected an encoder and dimensions")
    if size > MOST or not is_scale(scale) or scale is None:
        raise BadModel(f"found vectors of {quoted(size)} dimensions and the scale {quoted(scale)}")
    for name in (MEAN, DEVIATION):
        tensor = tensors[name]
        if tensor.shape != (size,) or tensor.dtype != np.float32 or not np.isfinite(tensor).all():
            raise BadModel(f"found no {name} of {size} numbers")
    if not (tensors[DEVIATION] > 0).all():
        raise BadModel(f"found {DEVIATION} with numbers up to 0, expected deviations above 0")
    name, fingerprint = texts
    if encoder is None and is_built_in(name):
        encoder = name
    dense = Dense(encoder, scale=scale)
    dense.size, dense.mean, dense.deviation = size, tensors[MEAN], tensors[DEVIATION]
    dense.expect(name, fingerprint)
    return dense
