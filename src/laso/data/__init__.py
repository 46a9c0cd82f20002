"""Corpora: the bundled one, the reader of column files, and where other corpora are looked for."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from laso.data.columns import Sentence, Token, read_columns, write_columns
from laso.errors import MissingData

__all__ = [
    "Sentence",
    "Token",
    "find_corpus",
    "load_bundled",
    "read_columns",
    "write_columns",
]

HOMES = {
    "conll2000": "https://www.clips.uantwerpen.be/conll2000/chunking/",
    "litbank_coref": "https://github.com/dbamman/litbank",
    "ud_ewt": "https://github.com/UniversalDependencies/UD_English-EWT",
    "wnut17": "https://github.com/leondz/emerging_entities_17",
}


def load_bundled() -> tuple[list[Sentence], list[Sentence]]:
    """The bundled corpus, train and test: sentences of tokens (word, POS tag, chunk tag)."""
    train, test = (_bundled(name) for name in ("train.txt", "test.txt"))
    return train, test


def find_corpus(name: str) -> Path:
    """The folder of a corpus, ``name`` under the first folder of ``LASO_DATA`` that has it.

    ``LASO_DATA`` is a folder, or several with ``os.pathsep`` between them.
    """
    folders = [Path(part) for part in os.environ.get("LASO_DATA", "").split(os.pathsep) if part]
    for folder in folders:
        if (folder / name).is_dir():
            return folder / name
    if folders:
        looked = "looked for in " + ", ".join(str(folder / name) for folder in folders)
    else:
        looked = "LASO_DATA is not set"
    where = f"get it from {HOMES[name]}" if name in HOMES else "get it from its publisher"
    raise MissingData(
        f"the corpus {name} was not found ({looked}); {where}, unpack it into a folder called "
        f"{name}, and set LASO_DATA to the folder that holds {name}"
    )


def _bundled(name: str) -> list[Sentence]:
    with files("laso.data").joinpath("bundled", name).open("rb") as file:
        return read_columns(file, columns=3)
