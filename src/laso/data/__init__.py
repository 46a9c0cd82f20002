"""Corpora and files: the bundled corpus, where other corpora are, and the reader of all formats.

lines.py      lines with their numbers
columns.py    the line-by-line reader of column files, and the writer
formats.py    the formats, how to detect them, and which columns are inputs and labels
reading.py    read: the general reader of all formats
frames.py     sentences from a table with one row a token
table.py      sentences as columns with positions; errors with file and line

``laso.features.reading.read_table`` reads a file as a whole table, by compiled code where that can.
"""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from laso.data.columns import Block, Sentence, Token, read_columns, write_columns
from laso.data.formats import Format
from laso.data.frames import from_frame
from laso.data.reading import read
from laso.data.registry import CORPORA
from laso.errors import MissingData

__all__ = [
    "Block",
    "Format",
    "Sentence",
    "Token",
    "cache_folder",
    "find_corpus",
    "from_frame",
    "load_bundled",
    "read",
    "read_columns",
    "write_columns",
]


def load_bundled() -> tuple[list[Sentence], list[Sentence]]:
    """Load the bundled corpus, train and test: sentences of tokens (word, POS tag, chunk tag).

    Examples
    --------
    >>> from laso.data import load_bundled
    >>> train, test = load_bundled()
    >>> train[0][:3]
    [('The', 'DT', 'B-NP'), ('kettle', 'NN', 'I-NP'), ('had', 'VBD', 'B-VP')]
    """
    train, test = (_bundled(name) for name in ("train.txt", "test.txt"))
    return train, test


def find_corpus(name: str) -> Path:
    """Find the folder of a corpus: ``name`` in the first folder of ``LASO_DATA`` that has it.

    ``LASO_DATA`` is a folder, or several with ``os.pathsep`` between them. The last place to look
    is the cache, where ``laso data get`` puts corpora.
    """
    folders = [Path(part) for part in os.environ.get("LASO_DATA", "").split(os.pathsep) if part]
    for folder in (*folders, cache_folder()):
        if (folder / name).is_dir():
            return folder / name
    if folders:
        looked = "looked for in " + ", ".join(str(folder / name) for folder in folders)
    else:
        looked = "LASO_DATA is not set"
    corpus = CORPORA.get(name)
    how = "get it from its publisher" if corpus is None else f"get it from {corpus.home}"
    if corpus is not None and corpus.can_be_got:
        how = f"laso data get {name} gets it; or {how}"
    raise MissingData(
        f"the corpus {name} was not found ({looked}); {how}, unpack it into a folder called "
        f"{name}, and set LASO_DATA to the folder that holds {name}"
    )


def _bundled(name: str) -> list[Sentence]:
    with files("laso.data").joinpath("bundled", name).open("rb") as file:
        return read_columns(file, columns=3)


def cache_folder() -> Path:
    """Return the folder of downloaded corpora: in LASO_CACHE, or in the user's cache folder."""
    if os.environ.get("LASO_CACHE"):
        return Path(os.environ["LASO_CACHE"]) / "data"
    from platformdirs import user_cache_path

    return Path(user_cache_path("laso")) / "data"
