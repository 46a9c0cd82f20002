"""Arrays in files, which workers of other processes map into memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.errors import WorkerLost
from laso.files.atomic import naming


@dataclass(frozen=True)
class ArrayFile:
    """An array in a file, to be mapped into memory."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    offset: int = 0

    def opened(self) -> Array:
        """Return the array; only the parts that are used are read."""
        if 0 in self.shape:
            return np.zeros(self.shape, self.dtype)
        if not os.path.exists(self.path):
            raise WorkerLost(
                f"a worker does not see the file {self.path}: expected a folder that all workers "
                "share, as in fit_stream(..., store=folder)"
            )
        # Not "r": compiled code takes arrays that may be written to; nothing ever is.
        found = np.memmap(self.path, self.dtype, "c", self.offset, self.shape)
        return np.asarray(found)


@dataclass(frozen=True)
class DatasetFiles:
    """A dataset in files."""

    arrays: tuple[ArrayFile, ...]

    @lru_cache(maxsize=4)  # noqa: B019 - a worker has few datasets, each for a long time
    def opened(self) -> Dataset:
        """Return the dataset, mapped into memory."""
        return Dataset(*(each.opened() for each in self.arrays))


def in_files(dataset: Dataset, folder: Path) -> DatasetFiles:
    """Return the dataset in files: its own where it is mapped already, else new ones."""
    with naming(folder.parent):
        return DatasetFiles(
            tuple(in_file(array, folder / name) for name, array in dataset._asdict().items())
        )


def in_file(array: Array, path: Path) -> ArrayFile:
    """Return an array in a file: its own if it is mapped already, else a new one."""
    dtype, shape, base = array.dtype.str, array.shape, mapped_by(array)
    if base is not None and array.flags.c_contiguous:
        offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return ArrayFile(str(base.filename), dtype, shape, base.offset + offset)
    with path.open("wb") as file:
        file.write(np.ascontiguousarray(array).data)
    return ArrayFile(str(path.resolve()), dtype, shape)


def mapped_by(array: Array) -> Any:
    """Return the mapped file that an array is a part of; None if it is in memory."""
    base: Any = array
    while base is not None and not isinstance(base, np.memmap):
        base = getattr(base, "base", None)
    return base


def folder_of(dataset: Dataset) -> Path | None:
    """Return the folder of the files that a dataset is mapped from, if it is."""
    base = mapped_by(dataset.items)
    return None if base is None else Path(base.filename).parent
