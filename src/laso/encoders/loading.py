"""Encoders by their names, and from folders."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from laso.encoders import weights
from laso.encoders.cache import CachedEncoder
from laso.encoders.pretrained import BertEncoder
from laso.errors import quoted


def load_encoder(spec: Any, *, cache: bool = True, threads: int | None = None) -> Any:
    """Return the encoder that a name, a folder or an object stands for.

    Parameters
    ----------
    spec : str, path or Encoder
        "minilm" is the third layer of all-MiniLM-L6-v2, "minilm:6" its sixth. A path is a folder
        with ``model.safetensors``, ``config.json`` and ``tokenizer.json`` of a BERT, of which the
        last layer is used, or the one behind a colon. An object with ``encode`` is returned
        as it is.
    cache : bool, default=True
        Keep the vectors on disk: see ``CachedEncoder``.
    threads : int, default=None
        The number of threads; None for one on each core that the process may use.

    Examples
    --------
    >>> class Mine:
    ...     def encode(self, sentences): ...
    >>> mine = Mine()
    >>> load_encoder(mine) is mine
    True
    >>> load_encoder("largelm")
    Traceback (most recent call last):
        ...
    ValueError: found the encoder 'largelm', expected minilm, a folder, or an object with encode
    """
    if not isinstance(spec, (str, os.PathLike)):
        if not callable(getattr(spec, "encode", None)):
            raise TypeError(f"found the encoder {quoted(spec)}, expected {_expected()}")
        return spec
    name, layer = os.fspath(spec), None
    if (match := re.fullmatch(r"(.+):(\d+)", name)) and not Path(name).is_dir():
        name, layer = match[1], int(match[2])
    known = weights.KNOWN.get(name)
    if known is not None and not isinstance(spec, os.PathLike):
        layer = known.layer if layer is None else layer
        encoder = BertEncoder(weights.find(known), layer=layer, threads=threads)
        encoder.name = f"{name}:{layer}"
    elif Path(name).is_dir():
        encoder = BertEncoder(name, layer=layer, threads=threads)
    else:
        raise ValueError(f"found the encoder {quoted(os.fspath(spec))}, expected {_expected()}")
    return CachedEncoder(encoder) if cache else encoder


def _expected() -> str:
    return f"{', '.join(weights.KNOWN)}, a folder, or an object with encode"
