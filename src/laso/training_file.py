"""The state of training in model files: all rows, running sums and counters, to go on from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array, WeightTable
from laso.engine.passes import Training
from laso.engine.rows import dense_rows, from_triples
from laso.errors import BadModel
from laso.load_limits import check_collisions
from laso.model_file import (
    Tensors,
    batches,
    concatenate,
    keys_and_rows,
    make_sparse_table,
    make_table,
)
from laso.sparse_matrix import (
    check_finite,
    delta_decode,
    delta_encode,
    to_dense,
    to_sparse,
    triples,
)

NEVER_NEGATIVE = ("squares", "precisions")


def pack_learning(training: Training) -> Tensors:
    """Return the state of training as tensors."""
    table = training.table
    keys, rows = keys_and_rows(table)
    tensors = {
        "learning.keys": delta_encode(keys),
        "learning.ints": table.ints[: at.SAVED_INTS].astype("<i8"),
        "learning.reals": table.reals.astype("<f8"),
        "learning.clock": np.array([training.clock], "<f8"),
    }
    for name in ("v", "u", *(["precisions"] if len(table.precisions) else [])):
        parts = (dense_rows(table, some, name) for some in batches(rows))
        tensors |= concatenate([to_sparse(part, f"learning.{name}.") for part in parts])
    if training.squares is not None:
        parts = (training.squares[some] for some in batches(rows))
        tensors |= concatenate([to_sparse(part, "learning.squares.") for part in parts])
    return tensors


def unpack_learning(
    training: Training,
    tensors: Mapping[str, Array],
    n_labels: int,
    dtype: Any,
    *,
    sparse: bool = False,
) -> None:
    """Restore the state of training that ``pack_learning`` stored."""
    keys = delta_decode(tensors["learning.keys"])
    ints, reals = tensors["learning.ints"].astype(np.int64), tensors["learning.reals"].copy()
    kinds = {tensors[f"learning.{name}.values"].dtype for name in ("v", "u")}
    if kinds != {np.dtype(dtype)} or ints.shape != (at.SAVED_INTS,) or reals.shape != (4,):
        raise BadModel("the state of its training is not of the right shape")
    clock = tensors["learning.clock"]
    if clock.shape != (1,):
        raise BadModel("the clock of its training is none")
    names = [name for name in ("v", "u", *NEVER_NEGATIVE) if f"learning.{name}.counts" in tensors]
    for name in names:
        values = tensors[f"learning.{name}.values"]
        check_finite(values)
        if name in NEVER_NEGATIVE and (values < 0.0).any():
            raise BadModel(f"found {name} below zero")
    for array in (reals, clock):
        check_finite(array)
    if ints[at.GENERATION] < 1 or ints[at.TICKS] < 0 or not 0 <= ints[at.BITS] < 63:
        raise BadModel("the counters of its training are out of range")
    if sparse:
        table = _sparse(tensors, keys, n_labels, names)
    else:
        dense = {
            name: to_dense(tensors, len(keys), n_labels, f"learning.{name}.").astype(dtype)
            for name in names
        }
        training.squares = dense.get("squares")
        table = make_table(keys, dense["v"], u=dense["u"], check=check_collisions)
        table = table._replace(precisions=dense.get("precisions", table.precisions))
    table.ints[: at.SAVED_INTS] = ints
    table.ints[at.ROWS] = len(keys)
    training.table = table._replace(reals=reals)
    training.clock = float(clock[0])


def _sparse(
    tensors: Mapping[str, Array], keys: Array, n_labels: int, names: list[str]
) -> WeightTable:
    """Return a table of sparse rows: a row has an entry for each label in any of the matrices."""
    found = {name: triples(tensors, len(keys), n_labels, f"learning.{name}.") for name in names}
    places = {name: rows * n_labels + labels for name, (rows, labels, _) in found.items()}
    entries = np.unique(np.concatenate(list(places.values())))
    matrices = {}
    for name, (_, _, values) in found.items():
        matrices[name] = np.zeros(len(entries), values.dtype)
        matrices[name][np.searchsorted(entries, places[name])] = values
    rows, labels = np.divmod(entries, n_labels)
    made = from_triples(rows, labels, matrices, len(keys), n_labels)
    return make_sparse_table(keys, made, n_labels, 0, training=True, check=check_collisions)
