"""Arrays in files, which workers of other processes map into memory."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from laso.engine.layout import Array, Dataset
from laso.errors import WorkerLost
from laso.files.atomic import naming

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])


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
        mapped = np.memmap(self.path, self.dtype, "c", self.offset, self.shape)
        return np.asarray(mapped)


@dataclass(frozen=True)
class InFiles(Generic[Arrays]):
    """A named tuple whose arrays are in files."""

    kind: type[Arrays]
    fields: tuple[Any, ...]

    def opened(self) -> Arrays:
        """Return the tuple, its arrays mapped into memory."""
        return self.kind(
            *(each.opened() if isinstance(each, ArrayFile) else each for each in self.fields)
        )


def in_files(arrays: Arrays, folder: Path) -> InFiles[Arrays]:
    """Return a named tuple with its arrays in files; the other fields travel as they are.

    Arrays that are mapped already stay in their own files.
    """
    kind = type(arrays).__name__.lower()
    with naming(folder.parent):
        fields = tuple(
            in_file(each, folder / f"{kind}-{name}") if isinstance(each, np.ndarray) else each
            for name, each in arrays._asdict().items()  # type: ignore[attr-defined]
        )
    return InFiles(type(arrays), fields)


def in_file(array: Array, path: Path) -> ArrayFile:
    """Return an array in a file: its own if it is mapped already, else a new one."""
    dtype, shape, base = array.dtype.str, array.shape, mapped_by(array)
    if base is not None and array.flags.c_contiguous:
        offset = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return ArrayFile(str(base.filename), dtype, shape, base.offset + offset)
    path.unlink(missing_ok=True)  # a worker may still have the old one mapped
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
