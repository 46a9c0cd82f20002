"""What loading a model file may take: memory and time within a multiple of the file's size.

The sizes in the header of a file tell what its arrays take before any of them is unpacked.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from laso.engine.layout import Array
from laso.errors import BadModel, cut, quoted

LEAST = 256 << 20  # bytes that any file may take in memory
TIMES = 64  # how many times its own size a larger file may take
OF_ENTRY = 64  # bytes that an entry of a sparse row takes at most while it is loaded
OF_KEY = 64  # bytes that the hash table has for each key
OF_PAIR = 40  # bytes that constraints on a pair of labels take
OF_STRINGS = 16  # bytes that a byte of JSON takes as strings, and again for each of its views
MOST_MOVES = 8  # from its own place to the next, of a key on average; usual is 1
FEW_KEYS = 1 << 13  # for which nothing takes long
INNER = "task.tagger."  # the beginning of the names of arrays that hold model files themselves
LEAST_INNER = 16 << 20  # bytes that any of these may take in memory


def finite_json(text: str) -> Any:
    """Return what JSON says; NaN and numbers without end, such as 1e999, raise BadModel."""
    return json.loads(text, parse_constant=_refused, parse_float=_finite)


def _refused(constant: str) -> NoReturn:
    raise BadModel(f"found {cut(constant, limit=60)} in its header, expected a finite number")


def _finite(number: str) -> float:
    value = float(number)
    return value if math.isfinite(value) else _refused(number)


def check_needs(header: Mapping[str, Any], size: int, limit: float | None) -> None:
    """Raise BadModel if a model would take more memory than a file of this size may.

    Parameters
    ----------
    header : dict
        The header of the file.
    size : int
        The size of the file in bytes.
    limit : float, optional
        The largest number of bytes that the model may take.
    """
    allowed = max(LEAST, TIMES * size, _of_environment()) if limit is None else limit
    needed = memory_of(header)
    if needed > allowed:
        raise BadModel(
            f"it takes about {_shown(needed)} of memory, which is more than the "
            f"{_shown(allowed)} that a file of {_shown(size)} may take: "
            "load_model(path, limit=...) or LASO_LOAD_LIMIT, in bytes, allow more"
        )


def _of_environment() -> float:
    given = os.environ.get("LASO_LOAD_LIMIT", "0")
    try:
        return float(given)
    except ValueError:
        raise ValueError(f"LASO_LOAD_LIMIT must be a number of bytes, found {given!r}") from None


def memory_of(header: Mapping[str, Any]) -> int:
    """Return about how many bytes the arrays of a model take, by the sizes in its header."""
    arrays = header["arrays"].items()
    sizes = {name: (np.dtype(kind).itemsize, n) for name, (kind, n, *_) in arrays}
    total = sum(max(4, item) * n for item, n in sizes.values())  # float16 becomes float32
    labels = header.get("labels", 0)
    if type(labels) is not int or labels < 0:
        raise BadModel(f"found {quoted(labels)} labels, expected a number")
    parameters = header.get("parameters")  # a reference model has none
    given = parameters if isinstance(parameters, dict) else {}
    if any(given.get(name) for name in ("constraints", "pairs")):
        total += OF_PAIR * labels * labels
    for prefix in ("", "learning."):
        keys = sizes.get(f"{prefix}keys", (0, 0))[1]
        entries = sizes.get(f"{prefix}labels", (0, 0))[1]
        total += keys * OF_KEY + entries * OF_ENTRY
    inner = [n for name, (_, n) in sizes.items() if name.startswith(INNER)]
    total += sum(map(inner_limit, inner))
    strings = sum(n for name, (_, n) in sizes.items() if name.startswith(("task.", "names")))
    strings -= sum(inner)
    return int(total + strings * OF_STRINGS * (1 + _views(header)))


def inner_limit(size: int) -> int:
    """Return the largest number of bytes that a model inside of a model file may take."""
    return LEAST_INNER + TIMES * size


def _views(header: Mapping[str, Any]) -> int:
    """Return the number of base features that all values of a column are mapped to."""
    learned = header.get("learned")
    templates = learned.get("templates", ()) if isinstance(learned, dict) else ()
    if not isinstance(templates, list):
        return 0
    # In an argument there may be anything; what it is taken for only makes the bound higher.
    chains = {part for each in templates for part in re.split(r"\[[^]|]*\]\|?", str(each)) if part}
    return sum(1 + chain.count(".") for chain in chains)


def check_finite(array: Array) -> None:
    """Raise BadModel unless all numbers are finite."""
    if not np.isfinite(array).all():
        raise BadModel("found weights that are no finite numbers")


def check_collisions(n: int, moves: int) -> None:
    """Raise BadModel if n keys collide so often that placing and finding them takes long.

    ``moves`` is the number of times that a key was moved to the next place.
    """
    if moves > MOST_MOVES * (n + FEW_KEYS):
        raise BadModel("its feature keys collide too often; laso.mix makes keys that do not")


def _shown(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
