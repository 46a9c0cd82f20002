"""The weights of an epoch in files: all of them once, and then what each epoch has changed.

A worker that has the weights of the last epoch in memory reads the last file only. Any other reads
all files. When the changes have become larger than the weights, these are written anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from laso.engine import layout as at
from laso.engine.layout import Array
from laso.engine.machine import longer
from laso.engine.parallel.array_files import ArrayFile
from laso.engine.parallel.shards import Start, entries
from laso.engine.weights.hash_table import insert, placed
from laso.engine.weights.row_layouts import from_triples, spread
from laso.files.atomic import naming
from laso.locks import own_lock

ARRAYS = (
    *("keys", "slots", "v", "heads", "entry_labels"),
    *("ints", "reals", "precisions", "squares"),
)


class Difference(NamedTuple):
    """What has changed in the weights since the last epoch."""

    keys: Array  # of new rows
    where: Array  # the changed weights, as row * labels + label
    v: Array  # their values now
    precisions: Array  # of arow(); else empty
    squares: Array  # of adagrad(); else empty
    ints: Array
    reals: Array


@dataclass(frozen=True)
class WeightFiles:
    """The weights of an epoch: those of the first file, with the changes in the others."""

    files: tuple[tuple[ArrayFile, ...], ...]
    capacity: int  # of the hash table
    clock: float

    def opened(self) -> Start:
        """Return the weights; this process keeps them for the next epoch."""
        with _lock:
            known = _known.get(self.files[0], ())
            if known and self.files[: known[0]] == known[1]:
                start, further = known[2], self.files[known[0] :]
            else:
                start, further = _first(self.files[0]), self.files[1:]
            for each in further:
                found = Difference(*(np.array(file.opened()) for file in each))
                start = _with(start, found, self.capacity)
            start = start._replace(clock=self.clock)
            _known.clear()
            _known[self.files[0]] = len(self.files), self.files, start
        return start


_known: dict[tuple[ArrayFile, ...], tuple[int, tuple[tuple[ArrayFile, ...], ...], Start]] = {}
_lock = own_lock()


def _first(files: tuple[ArrayFile, ...]) -> Start:
    found = dict(zip(ARRAYS, (np.array(file.opened()) for file in files), strict=True))
    squares = found.pop("squares")
    return Start(**found, squares=squares if len(squares) else None, clock=0.0)


def _with(start: Start, found: Difference, capacity: int) -> Start:
    """Return the weights with the changes, in arrays of their own."""
    before = len(start.keys)
    keys = np.concatenate([start.keys, found.keys])
    numbered = np.stack([keys, np.arange(1, len(keys) + 1)], axis=1)
    if capacity == len(start.slots):
        slots = start.slots.copy()
        insert(slots, numbered[before:])
    else:
        slots = placed(numbered, capacity)

    start = start._replace(keys=keys, slots=slots, ints=found.ints, reals=found.reals)
    if len(start.heads):
        return _with_entries(start, found, before)

    def changed(array: Array | None, values: Array) -> Array:
        made = longer(start.v[:0] if array is None else array, len(keys))
        made.reshape(-1)[found.where] = values
        return made

    return start._replace(
        v=changed(start.v, found.v),
        precisions=changed(start.precisions, found.precisions)
        if len(found.precisions)
        else start.precisions,
        squares=changed(start.squares, found.squares) if len(found.squares) else start.squares,
    )


def _with_entries(start: Start, found: Difference, rows: int) -> Start:
    """Return sparse rows with the changes, as ``mix`` makes them; so many rows are from before."""
    places, values = entries(start, rows)
    union = np.union1d(places, found.where)
    made = {}
    for name in ("v", "precisions") if len(found.precisions) else ("v",):
        made[name] = spread(values[name], np.searchsorted(union, places), len(union))
        made[name][np.searchsorted(union, found.where)] = getattr(found, name)
    row, label = np.divmod(union, int(start.ints[at.LABELS]))
    arrays = from_triples(row, label, made, len(start.keys), int(start.ints[at.LABELS]))
    return start._replace(
        v=arrays["v"],
        heads=arrays["heads"],
        entry_labels=arrays["entry_labels"],
        precisions=arrays["precisions"],
    )


class WeightLog:
    """Writes the weights of each epoch to a folder; without one it only counts the bytes.

    ``changed`` has the places of the weights that were changed since the last call; None: many.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self.changed: Array | None = None
        self._keys = np.zeros(0, np.int64)
        self._files: list[tuple[ArrayFile, ...]] = []
        self._paths: list[Path] = []
        self._sizes: list[int] = []
        self._number = 0

    def written(self, start: Start) -> tuple[Start | WeightFiles, int]:
        """Return the weights for workers, and the bytes that are new to them."""
        arrays: Sequence[Array] = [
            np.zeros(0) if each is None else each
            for each in (getattr(start, name) for name in ARRAYS)
        ]
        difference = self._difference(start)
        if difference is not None:
            size = sum(each.nbytes for each in difference)
            if sum(self._sizes[1:]) + size <= self._sizes[0]:
                arrays = difference
        if arrays is not difference:
            for path in self._paths:
                path.unlink(missing_ok=True)
            self._files, self._paths, self._sizes = [], [], []
        self._keys = start.keys
        self._sizes.append(sum(each.nbytes for each in arrays))
        if self.folder is None:
            return start, self._sizes[-1]
        self._files.append(self._in_file(arrays))
        return WeightFiles(tuple(self._files), len(start.slots), start.clock), self._sizes[-1]

    def _difference(self, start: Start) -> Difference | None:
        """Return what has changed; None if that is not known."""
        known, where = len(self._keys), self.changed
        same = len(start.keys) >= known and np.array_equal(start.keys[:known], self._keys)
        if where is None or not self._sizes or not same:
            return None
        if int(where[-1] if len(where) else 0) < 2**31:
            where = where.astype(np.int32)
        none, squares = start.v[:0, 0], start.squares
        if len(start.heads):
            places, values = entries(start, len(start.keys))
            chosen = np.searchsorted(places, where)
            v, precisions = values["v"][chosen], values["precisions"]
            precisions = precisions[chosen] if len(precisions) else none
            new = start.keys[known:]
            return Difference(new, where, v, precisions, none, start.ints, start.reals)
        precisions = start.precisions
        return Difference(
            start.keys[known:],
            where,
            start.v.reshape(-1)[where],
            precisions.reshape(-1)[where] if len(precisions) else none,
            none if squares is None else squares.reshape(-1)[where],
            start.ints,
            start.reals,
        )

    def _in_file(self, arrays: Sequence[Array]) -> tuple[ArrayFile, ...]:
        """Write arrays to one new file, end to end."""
        assert self.folder is not None
        self._number += 1
        path = (self.folder / f"weights-{self._number}").resolve()
        files, offset = [], 0
        with naming(self.folder.parent), path.open("wb") as file:
            for each in arrays:
                file.write(np.ascontiguousarray(each).data)
                files.append(ArrayFile(str(path), each.dtype.str, each.shape, offset))
                offset += each.nbytes
        self._paths.append(path)
        return tuple(files)
