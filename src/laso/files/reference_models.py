"""Model files of the reference engine's ``Model``: queue and weights, in the usual file format.

Feature names are stored as JSON. They may be strings, numbers, booleans, None and tuples of these.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from laso.errors import BadModel, quoted
from laso.files.atomic import naming
from laso.files.container import Header, Tensors, as_bad_model, read_file, write_file
from laso.files.limits import check_finite
from laso.problem import shortened
from laso.queues import MakeQueue
from laso.values import parse, unparse
from laso.vectors import Linear, PNorm

if TYPE_CHECKING:
    from laso.training import Model

KIND = "model"


def write_model(path: str | os.PathLike[str], model: Model) -> int:
    """Write the queue and the weights of a model; return the size of the file in bytes."""
    if not isinstance(model.w, (Linear, PNorm)):
        raise ValueError(
            f"found weights of the type {type(model.w).__name__}, which cannot be saved: expected "
            "linear weights, without a kernel"
        )
    with naming(path):
        return write_file(path, *_packed(model, model.w.weights))


def _packed(model: Model, weights: Mapping[Any, float]) -> tuple[Header, Tensors]:
    """Return header and tensors of a model."""
    names = [_name_to_json(name) for name in weights]
    header: Header = {
        "kind": KIND,
        "queue": _queue_text(model.queue),
        "updates": int(model.updates),
        "converged": bool(model.converged),
        "k": int(model.w.k),
    }
    tensors = {
        "names": np.frombuffer(json.dumps(names, separators=(",", ":")).encode(), np.uint8),
        "weights": np.array(list(weights.values()), "<f8"),
    }
    return header, tensors


def _queue_text(queue: MakeQueue) -> str | None:
    """Return the queue as text; None if a parameter of it is a function of the user's own."""
    try:
        return unparse(queue)
    except ValueError:
        return None


def read_model(
    path: str | os.PathLike[str], limit: float | None = None, queue: MakeQueue | None = None
) -> tuple[Linear, MakeQueue, int, bool]:
    """Return weights, queue, number of updates and convergence of a saved model.

    A queue that is given takes the place of the file's own.
    """
    header, tensors = read_file(path, limit=limit)
    with as_bad_model(path):
        if header.get("kind") != KIND:
            raise BadModel(
                f"found a model for {quoted(header.get('task'))}, expected one of laso.fit: use "
                "laso.load_model"
            )
        if queue is None and header["queue"] is None:
            raise BadModel(
                "its queue has a function of your own, which is not in the file: expected "
                "load(path, problem=..., queue=...)"
            )
        queue = queue or parse(header["queue"])
        if not callable(queue):
            raise BadModel(f"found the queue {quoted(queue)}")
        updates, converged, k = header["updates"], header["converged"], header["k"]
        if type(updates) is not int or type(k) is not int or updates < 0 or k < 1:
            raise BadModel(f"found {quoted(updates)} updates and generation {quoted(k)}")
        if type(converged) is not bool:
            raise BadModel(f"found {quoted(converged)} for converged, expected true or false")
        return Linear(_weights(tensors), k=k), queue, updates, converged


def _weights(tensors: Tensors) -> dict[Any, float]:
    values = tensors["weights"]
    if values.dtype != np.dtype("<f8") or tensors["names"].dtype != np.uint8:
        raise BadModel("found names or weights of another type")
    check_finite(values)
    names = json.loads(tensors["names"].tobytes(), parse_constant=_reject_constant)
    if not isinstance(names, list) or len(names) != len(values):
        raise BadModel("its names and weights are not equally many")
    weights = dict(zip(map(_name_from_json, names), values.tolist(), strict=True))
    if len(weights) != len(values):
        raise BadModel("found a feature name twice")
    return weights


def _name_to_json(name: Any) -> Any:
    """Return a feature name as JSON; raise ValueError if that is impossible."""
    plain = _as_json(name)
    if plain is not None or name is None:
        again = _name_from_json(plain)
        if again == name and hash(again) == hash(name):
            return plain
    raise ValueError(
        f"found the feature name {shortened(name)} of the type {type(name).__name__}, which cannot "
        "be saved: expected text, numbers, truth values, None and tuples of these"
    )


def _as_json(name: Any) -> Any:
    """Return a name as a JSON value; None if there is none."""
    if isinstance(name, bool) or name is None:
        return name
    if isinstance(name, str):
        return str(name)
    if isinstance(name, Integral):
        return int(name)
    if isinstance(name, Real):
        return float(name) if math.isfinite(name) else None
    return [_name_to_json(part) for part in name] if isinstance(name, tuple) else None


def _name_from_json(name: Any) -> Any:
    if isinstance(name, list):
        return tuple(map(_name_from_json, name))
    if name is None or isinstance(name, (bool, int, float, str)):
        return name
    raise BadModel(f"found the feature name {shortened(name)}")


def _reject_constant(text: str) -> NoReturn:
    raise BadModel(f"found {text} in a feature name")
